//! `rialto webhooks …`: who is told of calls.

use std::path::Path;

use rialto_hooks::{cloud::CloudEvent, delivery::Outcome, key::Key};
use rialto_model::{
    clock::{Clock, SystemClock},
    credential::Source,
    ids::{OrgId, fresh},
    verb::Phase,
    webhook::{Standing, Webhook},
};
use serde_json::{Value, json};
use url::Url;

use crate::{
    cli::{AddWebhook, Listing, Webhooks},
    environment::Environment,
    output::{self, Trouble},
    program::Program,
    webhooks,
};

pub(crate) async fn run(
    program: &Program,
    command: Webhooks,
    environment: &Environment,
) -> Result<(), Trouble> {
    match command {
        Webhooks::Add(wanted) => add(program, wanted, environment).await,
        Webhooks::List(listing) => list(program, listing).await,
        Webhooks::Remove { webhook } => remove(program, &webhook).await,
        Webhooks::Test { webhook } => test(program, &webhook).await,
        Webhooks::Retry { webhook } => {
            let webhook = find(program, &webhook).await?;
            program.store.retry_webhook(&webhook.id).await?;
            output::line(format!("{} is tried again at once, if a server runs.", webhook.id));
            Ok(())
        }
    }
}

async fn add(program: &Program, wanted: AddWebhook, environment: &Environment) -> Result<(), Trouble> {
    let url = address(&wanted.url)?;
    let id = format!("hook_{}", fresh());
    let (secret, key) = match wanted.secret_env {
        Some(name) => (named(name, environment)?, None),
        None => {
            let (secret, key) = webhooks::make_key(data(program)?, &id)
                .map_err(|error| Trouble::other(format!("the key could not be kept: {error}")))?;
            (secret, Some(key))
        }
    };
    let phases: Vec<Phase> = wanted.events.iter().map(|event| event.phase()).collect();
    let webhook = Webhook {
        id,
        org: OrgId::from(wanted.org.as_str()),
        url,
        phases: if phases.is_empty() { Phase::ALL.to_vec() } else { phases },
        secret,
        // Whoever is at this machine may reach what this machine reaches.
        allow_private: true,
        created_at: SystemClock.now(),
        standing: Standing::default(),
    };
    program.store.put_webhook(&webhook).await?;
    if wanted.listing.json {
        let mut shown = shown(&webhook);
        shown["secret"] = key.map_or(Value::Null, Value::String);
        output::json(&shown);
        return Ok(());
    }
    output::line(&webhook.id);
    if let Some(key) = key {
        output::line(key);
        output::note("The key verifies the events' signatures (Standard Webhooks). It is not shown again.");
    }
    output::note(format!(
        "Calls from now on are told while `rialto serve` runs. To try it: rialto webhooks test {}",
        webhook.id
    ));
    Ok(())
}

async fn list(program: &Program, listing: Listing) -> Result<(), Trouble> {
    let webhooks = program.store.webhooks().await?;
    if listing.json {
        output::json(&webhooks.iter().map(shown).collect::<Vec<_>>());
    } else if webhooks.is_empty() {
        output::line("No webhooks: rialto webhooks add URL");
    } else {
        let rows = webhooks.iter().map(|webhook| {
            let standing = &webhook.standing;
            let trouble = standing.disabled.as_ref().or(standing.last_error.as_ref());
            vec![
                webhook.id.clone(),
                without_query(&webhook.url),
                webhook.org.to_string(),
                names(webhook).join(","),
                state(standing).to_owned(),
                standing.delivered.to_string(),
                standing.lost.to_string(),
                trouble.cloned().unwrap_or_default(),
            ]
        });
        let header = ["webhook", "address", "org", "events", "state", "delivered", "lost", "trouble"];
        output::table(&header, rows.collect());
    }
    Ok(())
}

async fn remove(program: &Program, name: &str) -> Result<(), Trouble> {
    let webhook = find(program, name).await?;
    program.store.remove_webhook(&webhook.id).await?;
    webhooks::forget_key(data(program)?, &webhook.id).map_err(|error| {
        Trouble::other(format!("the key of {} could not be removed: {error}", webhook.id))
    })?;
    output::line(format!("{} is told nothing any more.", webhook.id));
    Ok(())
}

async fn test(program: &Program, name: &str) -> Result<(), Trouble> {
    let (webhook, now) = (find(program, name).await?, SystemClock.now());
    let event = CloudEvent::test(format!("test-{}", fresh()), webhooks::source(program), now);
    match webhooks::delivery(program).bring(&webhook, &event, now).await {
        Outcome::Taken => {
            output::line(format!("{} took the test event.", webhook.id));
            Ok(())
        }
        Outcome::Unwanted => Err(Trouble::other("it answered 410 Gone: it wants no events any more")),
        Outcome::Failed { why, .. } => Err(Trouble::other(format!("{} did not take it: {why}", webhook.id))),
    }
}

/// The one that is meant, by its id or its address.
async fn find(program: &Program, name: &str) -> Result<Webhook, Trouble> {
    let webhooks = program.store.webhooks().await?;
    let mut found = webhooks.into_iter().filter(|webhook| webhook.id == name || webhook.url == name);
    match (found.next(), found.next()) {
        (Some(webhook), None) => Ok(webhook),
        (Some(_), Some(_)) => {
            Err(Trouble::usage(format!("several webhooks have the address {name}; say which id is meant")))
        }
        (None, _) => {
            Err(Trouble::usage(format!("there is no webhook \"{name}\"; see `rialto webhooks list`")))
        }
    }
}

/// The address, if events can be sent there.
fn address(text: &str) -> Result<String, Trouble> {
    let wrong = |why: &str| Trouble::usage(format!("\"{}\" {why}", without_query(text)));
    let url = text.parse::<Url>().map_err(|_| wrong("is no address; write https://example.com/hook"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong("cannot be sent to; write an address like https://example.com/hook"));
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err(wrong("must have no user, password or fragment in it: addresses are listed"));
    }
    Ok(url.into())
}

/// A key in the environment. One that is there already must be good; one that is not may be set where the server runs.
fn named(variable: String, environment: &Environment) -> Result<Source, Trouble> {
    if let Some(text) = environment.get(&variable) {
        Key::parse(text.trim()).map_err(|error| Trouble::usage(format!("{variable}: {error}")))?;
    }
    Ok(Source::Env(variable))
}

fn data(program: &Program) -> Result<&Path, Trouble> {
    program.data.as_deref().ok_or_else(|| Trouble::usage("webhooks need a data folder; name one with --data"))
}

fn shown(webhook: &Webhook) -> Value {
    let standing = &webhook.standing;
    json!({
        "id": webhook.id,
        "url": without_query(&webhook.url),
        "org": webhook.org,
        "events": names(webhook),
        "createdAt": webhook.created_at,
        "state": state(standing),
        "handled": standing.handled,
        "delivered": standing.delivered,
        "lost": standing.lost,
        "failures": standing.failures,
        "nextAttemptAt": standing.next_attempt_at,
        "lastError": standing.last_error,
        "disabled": standing.disabled,
    })
}

fn names(webhook: &Webhook) -> Vec<&'static str> {
    webhook.phases.iter().map(|phase| phase.as_str()).collect()
}

const fn state(standing: &Standing) -> &'static str {
    if standing.disabled.is_some() {
        "disabled"
    } else if standing.failures > 0 {
        "failing"
    } else {
        "good"
    }
}

/// A query may hold what only the receiver should know.
fn without_query(url: &str) -> String {
    url.split_once('?').map_or_else(|| url.to_owned(), |(address, _)| format!("{address}?…"))
}
