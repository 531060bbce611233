//! `rialto webhooks …`: receivers of call events.

use rialto_api_types::webhooks::{CreatedWebhook, NewWebhook, WebhookList, WebhookRow};
use rialto_model::json::Json;

use crate::{
    api_client::{ApiClient, parse_response},
    cli::{AddWebhookOptions, OutputOptions, WebhooksCommand},
    output::{self, CommandError},
};

pub(crate) async fn run(api: &ApiClient, command: WebhooksCommand) -> Result<(), CommandError> {
    match command {
        WebhooksCommand::Add(wanted) => return add(api, wanted).await,
        WebhooksCommand::List(listing) => return list(api, listing).await,
        WebhooksCommand::Remove { webhook } => {
            let gone: WebhookRow = api.delete(&["webhooks", &webhook]).read().await?;
            output::print_line(format!("Removed the webhook {}.", gone.id));
        }
        WebhooksCommand::Test { webhook } => {
            let took: WebhookRow =
                api.post(&["webhooks", &webhook, "test"]).with_long_timeout().read().await?;
            output::print_line(format!("{} accepted the test event.", took.id));
        }
        WebhooksCommand::Retry { webhook } => {
            let tried: WebhookRow = api.post(&["webhooks", &webhook, "retry"]).read().await?;
            output::print_line(format!("{} is retried at once, if a server is running.", tried.id));
        }
    }
    Ok(())
}

async fn add(api: &ApiClient, wanted: AddWebhookOptions) -> Result<(), CommandError> {
    let question = api.post(&["webhooks"]).with_json(&NewWebhook {
        url: wanted.url,
        events: wanted.events.iter().map(|event| event.phase().as_str().to_owned()).collect(),
        secret_env: wanted.secret_env,
        ..NewWebhook::default()
    });
    let response: Json = question.read().await?;
    if wanted.listing.json {
        output::print_json(&response);
        return Ok(());
    }
    let CreatedWebhook { row, secret } = parse_response(&response)?;
    output::print_line(&row.id);
    if let Some(key) = secret {
        output::print_line(key);
        output::print_note(
            "The key verifies the signatures of events (Standard Webhooks). It is not shown again.",
        );
    }
    output::print_note(format!(
        "Events of new calls are sent while `rialto serve` runs. To test it: rialto webhooks test {}",
        row.id
    ));
    Ok(())
}

async fn list(api: &ApiClient, listing: OutputOptions) -> Result<(), CommandError> {
    let WebhookList::<Json> { webhooks } = api.get(&["webhooks"]).read().await?;
    if listing.json {
        output::print_json(&webhooks);
    } else if webhooks.is_empty() {
        output::print_line("No webhooks: rialto webhooks add URL");
    } else {
        let rows = webhooks.iter().map(parse_response::<WebhookRow>).collect::<Result<Vec<_>, _>>()?;
        let header = ["webhook", "url", "org", "events", "state", "delivered", "dropped", "last error"];
        output::print_table(&header, rows.into_iter().map(webhook_row).collect());
    }
    Ok(())
}

fn webhook_row(response: WebhookRow) -> Vec<String> {
    vec![
        response.id,
        response.url,
        response.org.to_string(),
        response.events.iter().map(|phase| phase.as_str()).collect::<Vec<_>>().join(","),
        response.state.as_str().to_owned(),
        response.delivered.to_string(),
        response.lost.to_string(),
        response.disabled.or(response.last_error).unwrap_or_default(),
    ]
}
