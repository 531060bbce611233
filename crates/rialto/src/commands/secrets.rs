//! `rialto secrets …`: what agents are shown, encrypted in the store.

use std::{
    io::{IsTerminal, Read},
    sync::Arc,
};

use rialto_api_types::secrets::{RemovedSecret, SecretList, SecretSummary, SecretValue};
use rialto_engine::AdminRecord;
use rialto_model::{
    credential::Secret,
    failure::{Failure, FailureKind},
    json::Json,
};
use serde_json::{Value, json};

use crate::{
    cli::{Listing, Secrets},
    desk::{Desk, read},
    environment::Environment,
    output::{self, Trouble},
    program::Program,
};

/// No secret is larger.
const LIMIT: u64 = 64 * 1024;

pub(crate) async fn run(desk: &Desk, command: Secrets, environment: &Environment) -> Result<(), Trouble> {
    match command {
        Secrets::Set { name, from_env } => set(desk, &name, from_env.as_deref(), environment).await,
        Secrets::List(listing) => list(desk, listing).await,
        Secrets::Remove { name } => remove(desk, &name).await,
        Secrets::RotateKey { to_env } => match desk.program() {
            Some(program) => rotate(program, to_env.as_deref(), environment).await,
            None => Err(Trouble::usage("the key is changed at the server's machine, without --server")),
        },
    }
}

async fn set(
    desk: &Desk,
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
    desk.put(&["secrets", name]).saying(&SecretValue { value: text.to_owned() }).done().await?;
    output::line(format!("kept {name}; use it with --secret store:{name}"));
    Ok(())
}

async fn list(desk: &Desk, listing: Listing) -> Result<(), Trouble> {
    let SecretList::<Json> { secrets } = desk.get(&["secrets"]).read().await?;
    if listing.json {
        output::json(&secrets);
        return Ok(());
    }
    let secrets = secrets.iter().map(read::<SecretSummary>).collect::<Result<Vec<_>, _>>()?;
    let rows = secrets.into_iter().map(|told| {
        vec![told.name, told.set_at.strftime("%F %T").to_string(), told.key, told.used_by.join(", ")]
    });
    output::table(&["secret", "set (utc)", "key", "used by"], rows.collect());
    Ok(())
}

async fn remove(desk: &Desk, name: &str) -> Result<(), Trouble> {
    let RemovedSecret { used_by, .. } = desk.delete(&["secrets", name]).read().await?;
    output::line(format!("removed {name}"));
    for agent in used_by {
        output::note(format!("{agent} is shown it, and cannot be called until it is set again"));
    }
    Ok(())
}

async fn rotate(program: &Program, to_env: Option<&str>, environment: &Environment) -> Result<(), Trouble> {
    let given = to_env.map(|variable| variable_of(environment, variable)).transpose()?;
    let rotated = program.vault.rotate(given.as_ref()).await;
    let record = AdminRecord {
        by: Arc::from(program.policies.scope().by.as_str()),
        after: rotated.as_ref().map_or(Value::Null, |count| json!({ "sealedAgain": count })),
        failure: rotated.as_ref().err().map(|error| Failure::new(FailureKind::Conflict, error.to_string())),
        ..AdminRecord::new("secret.rotate_key", &program.local_caller(), "all secrets")
    };
    let recorded = program.engine.record_admin(record).await;
    let count = rotated?;
    recorded.map_err(|failure| Trouble::other(failure.message))?;
    output::line(format!("{count} secrets are sealed with a new key"));
    if let Some(variable) = to_env {
        output::note(format!("From now on RIALTO_SECRET_KEY must hold what {variable} holds."));
    }
    Ok(())
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
