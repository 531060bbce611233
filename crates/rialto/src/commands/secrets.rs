//! `rialto secrets …`: what agents are shown, encrypted in the store.

use std::io::{IsTerminal, Read};

use rialto_model::{
    agent::Agent,
    credential::{Secret, Source},
};
use serde_json::json;

use crate::{
    cli::{Listing, Secrets},
    environment::Environment,
    output::{self, Trouble},
    program::Program,
};

/// No secret is larger.
const LIMIT: u64 = 64 * 1024;

pub(crate) async fn run(
    program: &Program,
    command: Secrets,
    environment: &Environment,
) -> Result<(), Trouble> {
    match command {
        Secrets::Set { name, from_env } => set(program, &name, from_env.as_deref(), environment).await,
        Secrets::List(listing) => list(program, listing).await,
        Secrets::Remove { name } => remove(program, &name).await,
        Secrets::RotateKey { to_env } => rotate(program, to_env.as_deref(), environment).await,
    }
}

async fn set(
    program: &Program,
    name: &str,
    from_env: Option<&str>,
    environment: &Environment,
) -> Result<(), Trouble> {
    let secret = match from_env {
        Some(variable) => variable_of(environment, variable)?,
        None => typed(name)?,
    };
    let text = secret.expose().trim_end_matches(['\r', '\n']);
    if text.is_empty() {
        return Err(Trouble::usage("the secret is empty; nothing was kept"));
    }
    program.vault.set(name, &Secret::from(text)).await?;
    output::line(format!("kept {name}; use it with --secret store:{name}"));
    Ok(())
}

async fn list(program: &Program, listing: Listing) -> Result<(), Trouble> {
    let secrets = program.vault.list().await?;
    let used_by =
        |name: &str| users(program, name).iter().map(|agent| agent.slug.clone()).collect::<Vec<_>>();
    if listing.json {
        let rows = secrets.iter().map(|secret| {
            json!({ "name": secret.name, "setAt": secret.set_at, "key": secret.key, "usedBy": used_by(&secret.name) })
        });
        output::json(&rows.collect::<Vec<_>>());
        return Ok(());
    }
    let rows = secrets.iter().map(|secret| {
        let set_at = secret.set_at.strftime("%F %T").to_string();
        vec![secret.name.clone(), set_at, secret.key.clone(), used_by(&secret.name).join(", ")]
    });
    output::table(&["secret", "set (utc)", "key", "used by"], rows.collect());
    Ok(())
}

async fn remove(program: &Program, name: &str) -> Result<(), Trouble> {
    program.vault.remove(name).await?;
    output::line(format!("removed {name}"));
    for agent in users(program, name) {
        output::note(format!("{} is shown it, and cannot be called until it is set again", agent.slug));
    }
    Ok(())
}

async fn rotate(program: &Program, to_env: Option<&str>, environment: &Environment) -> Result<(), Trouble> {
    let given = to_env.map(|variable| variable_of(environment, variable)).transpose()?;
    let count = program.vault.rotate(given.as_ref()).await?;
    output::line(format!("{count} secrets are sealed with a new key"));
    if let Some(variable) = to_env {
        output::note(format!("From now on RIALTO_SECRET_KEY must hold what {variable} holds."));
    }
    Ok(())
}

/// The agents that a secret is for.
fn users(program: &Program, name: &str) -> Vec<std::sync::Arc<Agent>> {
    let wanted = Source::Store(name.to_owned());
    let mut agents = program.engine.registry().agents(&rialto_model::ids::Scope::default());
    agents.retain(|agent| {
        agent.credential.as_ref().is_some_and(|credential| {
            credential.source == wanted || credential.callers.values().any(|source| *source == wanted)
        })
    });
    agents
}

fn variable_of(environment: &Environment, variable: &str) -> Result<Secret, Trouble> {
    environment
        .get(variable)
        .map(Secret::from)
        .ok_or_else(|| Trouble::usage(format!("the environment variable {variable} is not set")))
}

/// What comes in on stdin; on a terminal it is not shown while it is typed.
fn typed(name: &str) -> Result<Secret, Trouble> {
    let failed = |error: std::io::Error| Trouble::other(format!("the secret could not be read: {error}"));
    if std::io::stdin().is_terminal() {
        let terminal = console::Term::stderr();
        terminal.write_str(&format!("secret for {name}: ")).map_err(failed)?;
        return terminal.read_secure_line().map(Secret::from).map_err(failed);
    }
    let mut text = String::new();
    std::io::stdin().take(LIMIT + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > LIMIT {
        return Err(Trouble::usage(format!("a secret may have {LIMIT} bytes")));
    }
    Ok(Secret::from(text))
}
