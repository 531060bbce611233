//! `rialto agents …`: the registry from the command line.

mod credential;
mod format;

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

use self::format::describe_skill_count;
use crate::{
    api_client::{ApiClient, parse_response},
    cli::{AddAgentOptions, AgentsCommand, ImportAgentsOptions, OutputOptions},
    output::{self, CommandError, ProgressSpinner},
};

pub(crate) use self::{
    credential::{describe_credential, describe_scheme, exposed_secret_file},
    format::card_diff,
};

/// Maximum number of agents registered at once.
const MAX_CONCURRENT: usize = 32;

/// Probes shown of one agent.
const SHOWN_PROBES: usize = 5;

pub(crate) async fn run(api: &ApiClient, command: AgentsCommand) -> Result<(), CommandError> {
    match command {
        AgentsCommand::Add(add) => self::add(api, *add).await,
        AgentsCommand::Import(import) => self::import(api, import).await,
        AgentsCommand::List(listing) => list(api, listing).await,
        AgentsCommand::Show { agent, listing } => show(api, &agent, listing).await,
        AgentsCommand::Refresh { agent: Some(agent), listing, .. } => refresh(api, &agent, listing).await,
        AgentsCommand::Refresh { agent: None, listing, .. } => refresh_all(api, listing).await,
        AgentsCommand::Remove { agent } => remove(api, &agent).await,
        AgentsCommand::Trust { agent, level } => trust(api, &agent, &level).await,
        AgentsCommand::Credential(wanted) => credential::change(api, *wanted).await,
        AgentsCommand::Approve { agent } => approve(api, &agent).await,
    }
}

async fn add(api: &ApiClient, add: AddAgentOptions) -> Result<(), CommandError> {
    let spinner = ProgressSpinner::new(format!("fetching the card of {}", add.url));
    let credential = credential::credential_from_flags(&add.credential)?;
    let new = NewAgent {
        url: add.url,
        trust: add.trust,
        card_path: add.card_path,
        timeout_ms: add.timeout_ms,
        secret: None,
        credential,
        allow: add.allow,
    };
    let (is_new, mut row): (bool, Extra) =
        api.post(&["agents"]).with_json(&new).with_long_timeout().send_created().await?;
    drop(spinner);
    let policy = row.take("allowedBy").and_then(|policy| policy.read::<String>().ok());
    let agent: AgentRow = parse_response(&Json::encode(&row))?;
    credential::warn(api, agent.credential.as_ref()).await;
    if add.listing.json {
        output::print_json(&row);
        return Ok(());
    }
    let word = if is_new { "registered" } else { "updated" };
    output::print_line(format!(
        "{word} {} ({}) with {}:",
        agent.slug,
        agent.url,
        describe_skill_count(&agent)
    ));
    for skill in &agent.skills {
        output::print_line(format!("  {}", output::sanitize(&skill.name)));
    }
    if let Some(policy) = policy {
        output::print_line(format!("allowed by {policy}"));
    } else if agent.trust == AgentTrust::External {
        output::print_line(format!(
            "The agent is external: calls need a permit. Add one: `rialto policy allow {}`, or trust the agent: `rialto agents trust {} trusted`.",
            agent.slug, agent.slug
        ));
    }
    Ok(())
}

async fn import(api: &ApiClient, import: ImportAgentsOptions) -> Result<(), CommandError> {
    let text = read_file(&import.file)?;
    let urls: Vec<&str> =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let spinner = ProgressSpinner::new(format!("fetching {} cards", urls.len()));
    let trust = import.trust.as_deref();
    let asked = futures::stream::iter(urls).map(|url| async move {
        let new = NewAgent { url: url.to_owned(), trust: trust.map(str::to_owned), ..NewAgent::default() };
        (url, api.post(&["agents"]).with_json(&new).with_long_timeout().send_unit().await)
    });
    let results: Vec<_> = asked.buffered(MAX_CONCURRENT).collect().await;
    drop(spinner);
    let failed: Vec<Value> = results
        .iter()
        .filter_map(|(url, result)| {
            result.as_ref().err().map(|failure| json!({ "url": url, "error": failure.message }))
        })
        .collect();
    let registered = results.len() - failed.len();
    if import.listing.json {
        output::print_json(&json!({ "registered": registered, "failed": failed }));
    } else {
        output::print_line(format!("registered {registered} of {}", results.len()));
        for failure in &failed {
            output::print_note(format!("{}: {}", failure["url"], failure["error"]));
        }
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(CommandError::failed(format!("{} agents were not registered", failed.len())))
    }
}

fn read_file(file: &Path) -> Result<String, CommandError> {
    let text = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(file)
    };
    text.map_err(|error| CommandError::usage(format!("{}: {error}", file.display())))
}

async fn list(api: &ApiClient, listing: OutputOptions) -> Result<(), CommandError> {
    let rows: Vec<Json> = api.get(&["agents"]).fetch_rows("agents", None).await?;
    if listing.json {
        output::print_json(&rows);
    } else if rows.is_empty() {
        output::print_line(
            "No agents yet. `rialto agents add URL` registers one; `rialto demo` runs samples.",
        );
    } else {
        let agents = rows.iter().map(parse_response::<AgentRow>).collect::<Result<Vec<_>, _>>()?;
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
        output::print_table(
            &["agent", "url", "skills", "health", "trust", "last seen (utc)"],
            rows.collect(),
        );
    }
    Ok(())
}

async fn show(api: &ApiClient, key: &str, listing: OutputOptions) -> Result<(), CommandError> {
    let mut row: Extra = api.get(&["agents", key]).read().await?;
    let (agent, facts): (AgentRow, AgentFacts) =
        (parse_response(&Json::encode(&row))?, parse_response(&Json::encode(&row))?);
    let id = agent.id.as_str();
    let mut probes: Extra =
        api.get(&["agents", id, "probes"]).with_query("limit", SHOWN_PROBES).read().await?;
    let mut history: Extra = api.get(&["agents", id, "history"]).read().await?;
    let taken = |members: &mut Extra, name: &str| members.take(name).unwrap_or_else(Json::null);
    let (probes, history) = (taken(&mut probes, "probes"), taken(&mut history, "history"));
    if listing.json {
        drop(row.take("shownAs"));
        let (card, scheme) = (taken(&mut row, "card"), taken(&mut row, "scheme"));
        let pending = taken(&mut row, "pending");
        let response = [
            ("shownAs", scheme),
            ("card", card),
            ("probes", probes),
            ("history", history),
            ("pending", pending),
        ];
        response.into_iter().for_each(|(name, value)| row.push(name, value));
        output::print_json(&row);
        return Ok(());
    }
    format::print_agent(&agent, &facts);
    for ReplacedCard { replaced_at, changes } in parse_response::<Vec<ReplacedCard>>(&history)? {
        output::print_line(format!(
            "\ncard changed {replaced_at}:\n{}",
            card_diff(changes).to_string().trim_end()
        ));
    }
    if let Some(pending) = facts.pending.map(card_diff) {
        output::print_line(format!(
            "\na changed card waits for approval; approve it: `rialto agents approve {}`:",
            agent.slug
        ));
        output::print_line(pending.to_string().trim_end());
    }
    format::print_probes(&parse_response::<Vec<Probe>>(&probes)?);
    Ok(())
}

async fn refresh(api: &ApiClient, key: &str, listing: OutputOptions) -> Result<(), CommandError> {
    let spinner = ProgressSpinner::new(format!("fetching the card of {key}"));
    let row: Json = api.post(&["agents", key, "refresh"]).with_long_timeout().read().await?;
    drop(spinner);
    if listing.json {
        output::print_json(&row);
        return Ok(());
    }
    let CardRefresh { agent, outcome, changes, .. } = parse_response(&row)?;
    let changes = card_diff(changes.unwrap_or_default()).to_string();
    output::print_line(match outcome {
        RefreshOutcome::Changed => format!("{agent}: the card has changed\n{}", changes.trim_end()),
        RefreshOutcome::Held => format!(
            "{agent}: the card has changed, and waits for `rialto agents approve {agent}`\n{}",
            changes.trim_end()
        ),
        RefreshOutcome::Unchanged | RefreshOutcome::Failed => format!("{agent}: the card is as it was"),
    });
    Ok(())
}

async fn refresh_all(api: &ApiClient, listing: OutputOptions) -> Result<(), CommandError> {
    let spinner = ProgressSpinner::new("fetching all cards");
    let mut came: Extra = api.post(&["refresh"]).with_long_timeout().read().await?;
    drop(spinner);
    let outcomes = came.take("outcomes").unwrap_or_else(Json::null);
    let rows: Vec<CardRefresh> = parse_response(&outcomes)?;
    let failed = rows.iter().filter(|row| row.outcome == RefreshOutcome::Failed).count();
    if listing.json {
        output::print_json(&outcomes);
    } else {
        let cells = rows
            .into_iter()
            .map(|row| vec![row.agent, row.outcome.to_string(), row.error.unwrap_or_default()]);
        output::print_table(&["agent", "outcome", "error"], cells.collect());
    }
    if failed == 0 {
        Ok(())
    } else {
        Err(CommandError { status: 5, ..CommandError::failed(format!("{failed} agents did not answer")) })
    }
}

async fn remove(api: &ApiClient, key: &str) -> Result<(), CommandError> {
    let agent: AgentRow = api.get(&["agents", key]).read().await?;
    api.delete(&["agents", agent.id.as_str()]).send_unit().await?;
    output::print_line(format!("removed {} ({})", agent.slug, agent.url));
    Ok(())
}

async fn trust(api: &ApiClient, key: &str, level: &str) -> Result<(), CommandError> {
    let change = TrustChange { trust: level.to_owned() };
    let agent: AgentRow = api.post(&["agents", key, "trust"]).with_json(&change).read().await?;
    output::print_line(format!("{} is now {}", agent.slug, agent.trust));
    Ok(())
}

async fn approve(api: &ApiClient, key: &str) -> Result<(), CommandError> {
    let agent: AgentRow = api.post(&["agents", key, "approve"]).read().await?;
    output::print_line(format!(
        "{} now uses its new card, with {}",
        agent.slug,
        describe_skill_count(&agent)
    ));
    Ok(())
}
