//! `rialto agents …`: the registry from the command line.

mod credential;

use std::{path::Path, sync::Arc};

use futures::StreamExt;
use rialto_console::admin::agents::{refreshed as outcome, row};
use rialto_engine::{
    diff::CardDiff,
    registry::{Refreshed, Registration},
};
use rialto_model::{
    agent::{Agent, Trust},
    clock::{Clock, SystemClock},
    ids::Scope,
};
use serde_json::{Value, json};

use crate::{
    cli::{AddAgent, Agents, ImportAgents, Listing},
    output::{self, Spinner, Trouble},
    program::Program,
};

pub(crate) use self::credential::{described, open_to_others};

/// How many cards are fetched at once when there are many.
const AT_ONCE: usize = 32;

/// Probes shown of one agent.
const PROBES: usize = 5;

pub(crate) async fn run(program: &Program, command: Agents) -> Result<(), Trouble> {
    match command {
        Agents::Add(add) => self::add(program, *add).await,
        Agents::Import(import) => self::import(program, import).await,
        Agents::List(listing) => list(program, listing),
        Agents::Show { agent, listing } => show(program, &agent, listing).await,
        Agents::Refresh { agent: Some(agent), listing, .. } => refresh(program, &agent, listing).await,
        Agents::Refresh { agent: None, listing, .. } => refresh_all(program, listing).await,
        Agents::Remove { agent } => remove(program, &agent).await,
        Agents::Trust { agent, level } => trust(program, &agent, &level).await,
        Agents::Credential(wanted) => credential::change(program, *wanted).await,
        Agents::Approve { agent } => approve(program, &agent).await,
    }
}

async fn add(program: &Program, add: AddAgent) -> Result<(), Trouble> {
    let spinner = Spinner::new(format!("fetching the card of {}", add.url));
    let credential = credential::wanted(&add.credential)?;
    let registration = Registration {
        trust: add.trust.as_deref().map(assignable).transpose()?,
        credential,
        // Whoever types at this machine may name addresses of this machine.
        allow_private: true,
        card_path: add.card_path,
        timeout_ms: add.timeout_ms,
        ..Registration::new(add.url)
    };
    let registered = program.engine.registry().register(registration).await?;
    drop(spinner);
    let agent = registered.agent;
    credential::warn(&agent);
    let permit = if add.allow { Some(allow(program, &agent).await?) } else { None };
    if add.listing.json {
        output::json(&row(&agent));
        return Ok(());
    }
    let word = if registered.created { "registered" } else { "updated" };
    output::line(format!("{word} {} ({}) with {}:", agent.slug, agent.url, skills(&agent)));
    for skill in &agent.card.skills {
        output::line(format!(
            "  {}",
            output::printable(&rialto_model::name::canonical(&agent.slug, skill.id.as_str()))
        ));
    }
    if let Some(file) = permit {
        output::line(format!("allowed by {file}"));
    } else if agent.trust == Trust::External {
        output::line(format!(
            "It is external: calls need a permit. `rialto policy allow {}` writes one, or `rialto agents trust {} trusted`.",
            agent.slug, agent.slug
        ));
    }
    Ok(())
}

/// Writes a permit and makes every running server look at it.
pub(crate) async fn allow(program: &Program, agent: &Agent) -> Result<String, Trouble> {
    let kept = program.policies.allow(agent, SystemClock.now()).await?;
    program.store.touch().await.map_err(|error| Trouble::other(error.to_string()))?;
    Ok(kept.to_string())
}

async fn import(program: &Program, import: ImportAgents) -> Result<(), Trouble> {
    let trust = import.trust.as_deref().map(assignable).transpose()?;
    let text = read(&import.file)?;
    let urls: Vec<&str> =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let spinner = Spinner::new(format!("fetching {} cards", urls.len()));
    let registry = program.engine.registry();
    let results: Vec<(&str, Result<_, _>)> = futures::stream::iter(urls)
        .map(|url| async move {
            let registration = Registration { trust, allow_private: true, ..Registration::new(url) };
            (url, registry.register(registration).await)
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    drop(spinner);
    let failed: Vec<Value> = results
        .iter()
        .filter_map(|(url, result)| {
            result.as_ref().err().map(|error| json!({ "url": url, "error": error.to_string() }))
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

fn read(file: &Path) -> Result<String, Trouble> {
    let text = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(file)
    };
    text.map_err(|error| Trouble::usage(format!("{}: {error}", file.display())))
}

fn list(program: &Program, listing: Listing) -> Result<(), Trouble> {
    let agents = program.engine.registry().agents(&Scope::default());
    if listing.json {
        output::json(&agents.iter().map(|agent| row(agent)).collect::<Vec<_>>());
    } else if agents.is_empty() {
        output::line(
            "No agents yet. `rialto agents add URL` registers one; `rialto demo` shows some at work.",
        );
    } else {
        let rows = agents.iter().map(|agent| {
            vec![
                agent.slug.clone(),
                agent.url.clone(),
                agent.card.skills.len().to_string(),
                agent.health.to_string(),
                agent.trust.to_string(),
                agent.last_seen_at.map_or_else(|| "never".to_owned(), |at| at.strftime("%F %T").to_string()),
            ]
        });
        output::table(&["agent", "url", "skills", "health", "trust", "last seen (utc)"], rows.collect());
    }
    Ok(())
}

async fn show(program: &Program, key: &str, listing: Listing) -> Result<(), Trouble> {
    let registry = program.engine.registry();
    let agent = registry.find(&Scope::default(), key)?;
    let probes = registry.probes(&agent, PROBES).await?;
    let history = registry.history(&agent).await?;
    let diffs = changes(&agent, &history);
    if listing.json {
        let mut value = row(&agent);
        value["shownAs"] = json!(credential::shown_as(&agent));
        value["card"] = agent.card.raw.value();
        value["probes"] = json!(probes);
        value["history"] = json!(
            diffs.iter().map(|(at, diff)| json!({ "replacedAt": at, "changes": diff })).collect::<Vec<_>>()
        );
        value["pending"] =
            json!(agent.pending.as_ref().map(|pending| CardDiff::between(&agent.card, &pending.card)));
        output::json(&value);
        return Ok(());
    }
    describe(&agent);
    for (at, diff) in &diffs {
        output::line(format!("\ncard changed {at}:\n{}", diff.to_string().trim_end()));
    }
    if let Some(pending) = &agent.pending {
        output::line(format!("\na changed card waits for `rialto agents approve {}`:", agent.slug));
        output::line(CardDiff::between(&agent.card, &pending.card).to_string().trim_end());
    }
    if !probes.is_empty() {
        output::line("");
        let rows = probes.iter().map(|probe| {
            let error = probe.error.clone().unwrap_or_default();
            vec![
                probe.at.strftime("%F %T").to_string(),
                probe.health.to_string(),
                format!("{} ms", probe.elapsed_ms),
                error,
            ]
        });
        output::table(&["probed (utc)", "health", "took", "error"], rows.collect());
    }
    Ok(())
}

fn describe(agent: &Agent) {
    let facts = [
        ("name", agent.card.name.clone()),
        ("slug", agent.slug.clone()),
        ("id", agent.id.to_string()),
        ("url", agent.url.clone()),
        ("trust", agent.trust.to_string()),
        ("health", agent.health.to_string()),
        ("signature", format!("{:?}", agent.signature).to_lowercase()),
        ("credential", credential::described(agent)),
        ("error", agent.last_error.clone().unwrap_or_default()),
    ];
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        output::line(format!("{name:<10} {}", output::printable(value)));
    }
    for face in &agent.card.interfaces {
        output::line(format!("{:<10} {} (A2A {})", "speaks", output::printable(&face.url), face.dialect));
    }
    output::line("");
    let rows = agent.card.skills.iter().map(|skill| {
        let name = rialto_model::name::canonical(&agent.slug, skill.id.as_str());
        vec![
            name,
            if skill.input_schema.is_some() { "yes" } else { "" }.to_owned(),
            skill.description.clone(),
        ]
    });
    output::table(&["skill", "schema", "description"], rows.collect());
}

/// What changed at each step of the history, newest first.
fn changes(agent: &Agent, history: &[rialto_model::agent::OldCard]) -> Vec<(String, CardDiff)> {
    let mut after = Arc::clone(&agent.card);
    let mut changes = Vec::new();
    for old in history {
        let Ok(before) = rialto_a2a_wire::card::decode(old.card.get()) else { continue };
        let before = Arc::new(before);
        changes.push((old.replaced_at.to_string(), CardDiff::between(&before, &after)));
        after = before;
    }
    changes
}

async fn refresh(program: &Program, key: &str, listing: Listing) -> Result<(), Trouble> {
    let registry = program.engine.registry();
    let agent = registry.find(&Scope::default(), key)?;
    let spinner = Spinner::new(format!("fetching the card of {}", agent.url));
    let refreshed = registry.refresh(&agent).await?;
    drop(spinner);
    if listing.json {
        output::json(&outcome(&refreshed));
        return Ok(());
    }
    match refreshed {
        Refreshed::Unchanged(agent) => output::line(format!("{}: the card is as it was", agent.slug)),
        Refreshed::Changed(agent, diff) => {
            output::line(format!("{}: the card has changed\n{}", agent.slug, diff.to_string().trim_end()));
        }
        Refreshed::Held(agent, diff) => output::line(format!(
            "{}: the card has changed, and waits for `rialto agents approve {}`\n{}",
            agent.slug,
            agent.slug,
            diff.to_string().trim_end()
        )),
    }
    Ok(())
}

async fn refresh_all(program: &Program, listing: Listing) -> Result<(), Trouble> {
    let registry = program.engine.registry();
    let agents = registry.agents(&Scope::default());
    let spinner = Spinner::new(format!("fetching {} cards", agents.len()));
    let results: Vec<(String, Result<Refreshed, _>)> = futures::stream::iter(agents)
        .map(|agent| async move { (agent.slug.clone(), registry.refresh(&agent).await) })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    drop(spinner);
    let failed = results.iter().filter(|(_, result)| result.is_err()).count();
    let rows = results.iter().map(|(slug, result)| match result {
        Ok(refreshed) => outcome(refreshed),
        Err(error) => json!({ "agent": slug, "outcome": "failed", "error": error.to_string() }),
    });
    let rows: Vec<Value> = rows.collect();
    if listing.json {
        output::json(&rows);
    } else {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let cells =
            rows.iter().map(|row| vec![text(&row["agent"]), text(&row["outcome"]), text(&row["error"])]);
        output::table(&["agent", "outcome", "error"], cells.collect());
    }
    if failed == 0 {
        Ok(())
    } else {
        Err(Trouble { status: 5, ..Trouble::other(format!("{failed} agents did not answer")) })
    }
}

async fn remove(program: &Program, key: &str) -> Result<(), Trouble> {
    let registry = program.engine.registry();
    let agent = registry.find(&Scope::default(), key)?;
    registry.remove(&agent).await?;
    program
        .policies
        .forget(&agent, SystemClock.now())
        .await
        .map_err(|error| Trouble::other(format!("its policies were not removed: {error}")))?;
    output::line(format!("removed {} ({})", agent.slug, agent.url));
    Ok(())
}

async fn trust(program: &Program, key: &str, level: &str) -> Result<(), Trouble> {
    let level = assignable(level)?;
    let registry = program.engine.registry();
    let agent = registry.find(&Scope::default(), key)?;
    let agent = registry.set_trust(&agent, level).await?;
    output::line(format!("{} is now {}", agent.slug, agent.trust));
    Ok(())
}

async fn approve(program: &Program, key: &str) -> Result<(), Trouble> {
    let registry = program.engine.registry();
    let agent = registry.find(&Scope::default(), key)?;
    let agent = registry.approve(&agent).await?;
    output::line(format!("{} now uses its new card, with {}", agent.slug, skills(&agent)));
    Ok(())
}

fn assignable(level: &str) -> Result<Trust, Trouble> {
    Trust::parse_assignable(level).ok_or_else(|| {
        Trouble::usage(if level == "system" {
            "system is the platform's own level and cannot be given; use external or trusted".to_owned()
        } else {
            format!("\"{level}\" is not a level of trust; use external or trusted")
        })
    })
}

fn skills(agent: &Agent) -> String {
    match agent.card.skills.len() {
        1 => "1 skill".to_owned(),
        n => format!("{n} skills"),
    }
}
