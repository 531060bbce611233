//! `rialto webhooks …`: who is told of calls.

use rialto_model::json::Json;
use serde::Deserialize;
use serde_json::json;

use crate::{
    cli::{AddWebhook, Listing, Webhooks},
    desk::{Desk, read},
    output::{self, Trouble},
};

/// A webhook as it is told.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    id: String,
    url: String,
    org: String,
    events: Vec<String>,
    state: String,
    delivered: u64,
    lost: u64,
    last_error: Option<String>,
    disabled: Option<String>,
    /// Its key, where it was just made.
    secret: Option<String>,
}

#[derive(Deserialize)]
struct List {
    webhooks: Vec<Json>,
}

pub(crate) async fn run(desk: &Desk, command: Webhooks) -> Result<(), Trouble> {
    match command {
        Webhooks::Add(wanted) => return add(desk, wanted).await,
        Webhooks::List(listing) => return list(desk, listing).await,
        Webhooks::Remove { webhook } => {
            let gone: Told = desk.delete(&["webhooks", &webhook]).read().await?;
            output::line(format!("{} is told nothing any more.", gone.id));
        }
        Webhooks::Test { webhook } => {
            let took: Told = desk.post(&["webhooks", &webhook, "test"]).patiently().read().await?;
            output::line(format!("{} took the test event.", took.id));
        }
        Webhooks::Retry { webhook } => {
            let tried: Told = desk.post(&["webhooks", &webhook, "retry"]).read().await?;
            output::line(format!("{} is tried again at once, if a server runs.", tried.id));
        }
    }
    Ok(())
}

async fn add(desk: &Desk, wanted: AddWebhook) -> Result<(), Trouble> {
    let events: Vec<&str> = wanted.events.iter().map(|event| event.phase().as_str()).collect();
    let question = desk.post(&["webhooks"]).saying(&json!({
        "url": wanted.url,
        "events": events,
        "secretEnv": wanted.secret_env,
    }));
    let told: Json = question.read().await?;
    if wanted.listing.json {
        output::json(&told);
        return Ok(());
    }
    let made: Told = read(&told)?;
    output::line(&made.id);
    if let Some(key) = made.secret {
        output::line(key);
        output::note("The key verifies the events' signatures (Standard Webhooks). It is not shown again.");
    }
    output::note(format!(
        "Calls from now on are told while `rialto serve` runs. To try it: rialto webhooks test {}",
        made.id
    ));
    Ok(())
}

async fn list(desk: &Desk, listing: Listing) -> Result<(), Trouble> {
    let List { webhooks } = desk.get(&["webhooks"]).read().await?;
    if listing.json {
        output::json(&webhooks);
    } else if webhooks.is_empty() {
        output::line("No webhooks: rialto webhooks add URL");
    } else {
        let rows = webhooks.iter().map(read::<Told>).collect::<Result<Vec<_>, _>>()?;
        let header = ["webhook", "address", "org", "events", "state", "delivered", "lost", "trouble"];
        output::table(&header, rows.into_iter().map(row).collect());
    }
    Ok(())
}

fn row(told: Told) -> Vec<String> {
    vec![
        told.id,
        told.url,
        told.org,
        told.events.join(","),
        told.state,
        told.delivered.to_string(),
        told.lost.to_string(),
        told.disabled.or(told.last_error).unwrap_or_default(),
    ]
}
