//! `rialto agents …`: the registry from the command line.

mod credential;
mod shown;

use std::path::Path;

use futures::StreamExt;
use rialto_api_types::agents::{
    AgentFacts, AgentRow, CardRefresh, NewAgent, RefreshOutcome, ReplacedCard, TrustChange,
};
use rialto_model::{
    agent::{AgentTrust, Probe},
    json::{Extra, Json},
};
use serde_json::{Value, json};

use self::shown::skills;
use crate::{
    cli::{AddAgent, Agents, ImportAgents, Listing},
    desk::{Desk, read},
    output::{self, Spinner, Trouble},
};

pub(crate) use self::{
    credential::{described, open_to_others, shown_as},
    shown::card_diff,
};

/// How many agents are registered at once when there are many.
const AT_ONCE: usize = 32;

/// Probes shown of one agent.
const PROBES: usize = 5;

pub(crate) async fn run(desk: &Desk, command: Agents) -> Result<(), Trouble> {
    match command {
        Agents::Add(add) => self::add(desk, *add).await,
        Agents::Import(import) => self::import(desk, import).await,
        Agents::List(listing) => list(desk, listing).await,
        Agents::Show { agent, listing } => show(desk, &agent, listing).await,
        Agents::Refresh { agent: Some(agent), listing, .. } => refresh(desk, &agent, listing).await,
        Agents::Refresh { agent: None, listing, .. } => refresh_all(desk, listing).await,
        Agents::Remove { agent } => remove(desk, &agent).await,
        Agents::Trust { agent, level } => trust(desk, &agent, &level).await,
        Agents::Credential(wanted) => credential::change(desk, *wanted).await,
        Agents::Approve { agent } => approve(desk, &agent).await,
    }
}

async fn add(desk: &Desk, add: AddAgent) -> Result<(), Trouble> {
    let spinner = Spinner::new(format!("fetching the card of {}", add.url));
    let credential = credential::wanted(&add.credential)?;
    let new = NewAgent {
        url: add.url,
        trust: add.trust,
        card_path: add.card_path,
        timeout_ms: add.timeout_ms,
        secret: None,
        credential,
        allow: add.allow,
    };
    let (is_new, mut row): (bool, Extra) = desk.post(&["agents"]).saying(&new).patiently().made().await?;
    drop(spinner);
    let policy = row.take("allowedBy").and_then(|policy| policy.read::<String>().ok());
    let agent: AgentRow = read(&Json::encode(&row))?;
    credential::warn(desk, agent.credential.as_ref()).await;
    if add.listing.json {
        output::json(&row);
        return Ok(());
    }
    let word = if is_new { "registered" } else { "updated" };
    output::line(format!("{word} {} ({}) with {}:", agent.slug, agent.url, skills(&agent)));
    for skill in &agent.skills {
        output::line(format!("  {}", output::printable(&skill.name)));
    }
    if let Some(policy) = policy {
        output::line(format!("allowed by {policy}"));
    } else if agent.trust == AgentTrust::External {
        output::line(format!(
            "It is external: calls need a permit. `rialto policy allow {}` writes one, or `rialto agents trust {} trusted`.",
            agent.slug, agent.slug
        ));
    }
    Ok(())
}

async fn import(desk: &Desk, import: ImportAgents) -> Result<(), Trouble> {
    let text = read_file(&import.file)?;
    let urls: Vec<&str> =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let spinner = Spinner::new(format!("fetching {} cards", urls.len()));
    let trust = import.trust.as_deref();
    let asked = futures::stream::iter(urls).map(|url| async move {
        let new = NewAgent { url: url.to_owned(), trust: trust.map(str::to_owned), ..NewAgent::default() };
        (url, desk.post(&["agents"]).saying(&new).patiently().done().await)
    });
    let results: Vec<_> = asked.buffered(AT_ONCE).collect().await;
    drop(spinner);
    let failed: Vec<Value> = results
        .iter()
        .filter_map(|(url, result)| {
            result.as_ref().err().map(|failure| json!({ "url": url, "error": failure.message }))
        })
        .collect();
    let registered = results.len() - failed.len();
    if import.listing.json {
        output::json(&json!({ "registered": registered, "failed": failed }));
    } else {
        output::line(format!("registered {registered} of {}", results.len()));
        for failure in &failed {
            output::note(format!("{}: {}", failure["url"], failure["error"]));
        }
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(Trouble::other(format!("{} agents were not registered", failed.len())))
    }
}

fn read_file(file: &Path) -> Result<String, Trouble> {
    let text = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(file)
    };
    text.map_err(|error| Trouble::usage(format!("{}: {error}", file.display())))
}

async fn list(desk: &Desk, listing: Listing) -> Result<(), Trouble> {
    let rows: Vec<Json> = desk.get(&["agents"]).rows("agents", None).await?;
    if listing.json {
        output::json(&rows);
    } else if rows.is_empty() {
        output::line(
            "No agents yet. `rialto agents add URL` registers one; `rialto demo` shows some at work.",
        );
    } else {
        let agents = rows.iter().map(read::<AgentRow>).collect::<Result<Vec<_>, _>>()?;
        let rows = agents.into_iter().map(|agent| {
            vec![
                agent.slug,
                agent.url,
                agent.skills.len().to_string(),
                agent.health.to_string(),
                match agent.change_held {
                    true => format!("{}, change held", agent.trust),
                    false => agent.trust.to_string(),
                },
                agent.last_seen_at.map_or_else(|| "never".to_owned(), |at| at.strftime("%F %T").to_string()),
            ]
        });
        output::table(&["agent", "url", "skills", "health", "trust", "last seen (utc)"], rows.collect());
    }
    Ok(())
}

async fn show(desk: &Desk, key: &str, listing: Listing) -> Result<(), Trouble> {
    let mut row: Extra = desk.get(&["agents", key]).read().await?;
    let (agent, facts): (AgentRow, AgentFacts) = (read(&Json::encode(&row))?, read(&Json::encode(&row))?);
    let id = agent.id.as_str();
    let mut probes: Extra = desk.get(&["agents", id, "probes"]).with("limit", PROBES).read().await?;
    let mut history: Extra = desk.get(&["agents", id, "history"]).read().await?;
    let taken = |members: &mut Extra, name: &str| members.take(name).unwrap_or_else(Json::null);
    let (probes, history) = (taken(&mut probes, "probes"), taken(&mut history, "history"));
    if listing.json {
        drop(row.take("shownAs"));
        let (card, scheme) = (taken(&mut row, "card"), taken(&mut row, "scheme"));
        let pending = taken(&mut row, "pending");
        let told = [
            ("shownAs", scheme),
            ("card", card),
            ("probes", probes),
            ("history", history),
            ("pending", pending),
        ];
        told.into_iter().for_each(|(name, value)| row.push(name, value));
        output::json(&row);
        return Ok(());
    }
    shown::describe(&agent, &facts);
    for ReplacedCard { replaced_at, changes } in read::<Vec<ReplacedCard>>(&history)? {
        output::line(format!("\ncard changed {replaced_at}:\n{}", card_diff(changes).to_string().trim_end()));
    }
    if let Some(pending) = facts.pending.map(card_diff) {
        output::line(format!("\na changed card is held; `rialto agents approve {}` takes it:", agent.slug));
        output::line(pending.to_string().trim_end());
    }
    shown::list_probes(&read::<Vec<Probe>>(&probes)?);
    Ok(())
}

async fn refresh(desk: &Desk, key: &str, listing: Listing) -> Result<(), Trouble> {
    let spinner = Spinner::new(format!("fetching the card of {key}"));
    let row: Json = desk.post(&["agents", key, "refresh"]).patiently().read().await?;
    drop(spinner);
    if listing.json {
        output::json(&row);
        return Ok(());
    }
    let CardRefresh { agent, outcome, changes, .. } = read(&row)?;
    let changes = card_diff(changes.unwrap_or_default()).to_string();
    output::line(match outcome {
        RefreshOutcome::Changed => format!("{agent}: the card has changed\n{}", changes.trim_end()),
        RefreshOutcome::Held => format!(
            "{agent}: the card has changed, and waits for `rialto agents approve {agent}`\n{}",
            changes.trim_end()
        ),
        RefreshOutcome::Unchanged | RefreshOutcome::Failed => format!("{agent}: the card is as it was"),
    });
    Ok(())
}

async fn refresh_all(desk: &Desk, listing: Listing) -> Result<(), Trouble> {
    let spinner = Spinner::new("fetching all cards");
    let mut came: Extra = desk.post(&["refresh"]).patiently().read().await?;
    drop(spinner);
    let outcomes = came.take("outcomes").unwrap_or_else(Json::null);
    let rows: Vec<CardRefresh> = read(&outcomes)?;
    let failed = rows.iter().filter(|row| row.outcome == RefreshOutcome::Failed).count();
    if listing.json {
        output::json(&outcomes);
    } else {
        let cells = rows
            .into_iter()
            .map(|row| vec![row.agent, row.outcome.to_string(), row.error.unwrap_or_default()]);
        output::table(&["agent", "outcome", "error"], cells.collect());
    }
    if failed == 0 {
        Ok(())
    } else {
        Err(Trouble { status: 5, ..Trouble::other(format!("{failed} agents did not answer")) })
    }
}

async fn remove(desk: &Desk, key: &str) -> Result<(), Trouble> {
    let agent: AgentRow = desk.get(&["agents", key]).read().await?;
    desk.delete(&["agents", agent.id.as_str()]).done().await?;
    output::line(format!("removed {} ({})", agent.slug, agent.url));
    Ok(())
}

async fn trust(desk: &Desk, key: &str, level: &str) -> Result<(), Trouble> {
    let change = TrustChange { trust: level.to_owned() };
    let agent: AgentRow = desk.post(&["agents", key, "trust"]).saying(&change).read().await?;
    output::line(format!("{} is now {}", agent.slug, agent.trust));
    Ok(())
}

async fn approve(desk: &Desk, key: &str) -> Result<(), Trouble> {
    let agent: AgentRow = desk.post(&["agents", key, "approve"]).read().await?;
    output::line(format!("{} now uses its new card, with {}", agent.slug, skills(&agent)));
    Ok(())
}
