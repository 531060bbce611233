//! `rialto webhooks …`: who is told of calls.

use rialto_api_types::webhooks::{CreatedWebhook, NewWebhook, WebhookList, WebhookRow};
use rialto_model::json::Json;

use crate::{
    cli::{AddWebhook, Listing, Webhooks},
    desk::{Desk, read},
    output::{self, Trouble},
};

pub(crate) async fn run(desk: &Desk, command: Webhooks) -> Result<(), Trouble> {
    match command {
        Webhooks::Add(wanted) => return add(desk, wanted).await,
        Webhooks::List(listing) => return list(desk, listing).await,
        Webhooks::Remove { webhook } => {
            let gone: WebhookRow = desk.delete(&["webhooks", &webhook]).read().await?;
            output::line(format!("{} is told nothing any more.", gone.id));
        }
        Webhooks::Test { webhook } => {
            let took: WebhookRow = desk.post(&["webhooks", &webhook, "test"]).patiently().read().await?;
            output::line(format!("{} took the test event.", took.id));
        }
        Webhooks::Retry { webhook } => {
            let tried: WebhookRow = desk.post(&["webhooks", &webhook, "retry"]).read().await?;
            output::line(format!("{} is tried again at once, if a server runs.", tried.id));
        }
    }
    Ok(())
}

async fn add(desk: &Desk, wanted: AddWebhook) -> Result<(), Trouble> {
    let question = desk.post(&["webhooks"]).saying(&NewWebhook {
        url: wanted.url,
        events: wanted.events.iter().map(|event| event.phase().as_str().to_owned()).collect(),
        secret_env: wanted.secret_env,
        ..NewWebhook::default()
    });
    let told: Json = question.read().await?;
    if wanted.listing.json {
        output::json(&told);
        return Ok(());
    }
    let CreatedWebhook { row, secret } = read(&told)?;
    output::line(&row.id);
    if let Some(key) = secret {
        output::line(key);
        output::note("The key verifies the events' signatures (Standard Webhooks). It is not shown again.");
    }
    output::note(format!(
        "Calls from now on are told while `rialto serve` runs. To try it: rialto webhooks test {}",
        row.id
    ));
    Ok(())
}

async fn list(desk: &Desk, listing: Listing) -> Result<(), Trouble> {
    let WebhookList::<Json> { webhooks } = desk.get(&["webhooks"]).read().await?;
    if listing.json {
        output::json(&webhooks);
    } else if webhooks.is_empty() {
        output::line("No webhooks: rialto webhooks add URL");
    } else {
        let rows = webhooks.iter().map(read::<WebhookRow>).collect::<Result<Vec<_>, _>>()?;
        let header = ["webhook", "address", "org", "events", "state", "delivered", "lost", "trouble"];
        output::table(&header, rows.into_iter().map(row).collect());
    }
    Ok(())
}

fn row(told: WebhookRow) -> Vec<String> {
    vec![
        told.id,
        told.url,
        told.org.to_string(),
        told.events.iter().map(|phase| phase.as_str()).collect::<Vec<_>>().join(","),
        told.state.as_str().to_owned(),
        told.delivered.to_string(),
        told.lost.to_string(),
        told.disabled.or(told.last_error).unwrap_or_default(),
    ]
}
