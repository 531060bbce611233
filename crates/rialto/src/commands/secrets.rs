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
    api_client::{ApiClient, parse_response},
    app::App,
    cli::{OutputOptions, SecretsCommand},
    environment::Environment,
    output::{self, CommandError},
};

/// No secret is larger.
const MAX_SECRET_BYTES: u64 = 64 * 1024;

pub(crate) async fn run(
    api: &ApiClient,
    command: SecretsCommand,
    environment: &Environment,
) -> Result<(), CommandError> {
    match command {
        SecretsCommand::Set { name, from_env } => set(api, &name, from_env.as_deref(), environment).await,
        SecretsCommand::List(listing) => list(api, listing).await,
        SecretsCommand::Remove { name } => remove(api, &name).await,
        SecretsCommand::RotateKey { to_env } => match api.local_app() {
            Some(program) => rotate(program, to_env.as_deref(), environment).await,
            None => Err(CommandError::usage("the key is changed at the server's machine, without --server")),
        },
    }
}

async fn set(
    api: &ApiClient,
    name: &str,
    from_env: Option<&str>,
    environment: &Environment,
) -> Result<(), CommandError> {
    let secret = match from_env {
        Some(variable) => secret_from_variable(environment, variable)?,
        None => read_secret(name)?,
    };
    let text = secret.expose().trim_end_matches(['\r', '\n']);
    if text.is_empty() {
        return Err(CommandError::usage("the secret is empty; nothing was stored"));
    }
    api.put(&["secrets", name]).with_json(&SecretValue { value: text.to_owned() }).send_unit().await?;
    output::print_line(format!("stored {name}; use it with --secret store:{name}"));
    Ok(())
}

async fn list(api: &ApiClient, listing: OutputOptions) -> Result<(), CommandError> {
    let SecretList::<Json> { secrets } = api.get(&["secrets"]).read().await?;
    if listing.json {
        output::print_json(&secrets);
        return Ok(());
    }
    let secrets = secrets.iter().map(parse_response::<SecretSummary>).collect::<Result<Vec<_>, _>>()?;
    let rows = secrets.into_iter().map(|response| {
        vec![
            response.name,
            response.set_at.strftime("%F %T").to_string(),
            response.key,
            response.used_by.join(", "),
        ]
    });
    output::print_table(&["secret", "set (utc)", "key", "used by"], rows.collect());
    Ok(())
}

async fn remove(api: &ApiClient, name: &str) -> Result<(), CommandError> {
    let RemovedSecret { used_by, .. } = api.delete(&["secrets", name]).read().await?;
    output::print_line(format!("removed {name}"));
    for agent in used_by {
        output::print_note(format!("{agent} uses it, and cannot be called until it is set again"));
    }
    Ok(())
}

async fn rotate(program: &App, to_env: Option<&str>, environment: &Environment) -> Result<(), CommandError> {
    let given = to_env.map(|variable| secret_from_variable(environment, variable)).transpose()?;
    let rotated = program.vault.rotate(given.as_ref()).await;
    let record = AdminRecord {
        by: Arc::from(program.policies.scope().by.as_str()),
        after: rotated.as_ref().map_or(Value::Null, |count| json!({ "sealedAgain": count })),
        failure: rotated.as_ref().err().map(|error| Failure::new(FailureKind::Conflict, error.to_string())),
        ..AdminRecord::new("secret.rotate_key", &program.local_caller(), "all secrets")
    };
    let recorded = program.engine.audit().record(record).await;
    let count = rotated?;
    recorded.map_err(|failure| CommandError::failed(failure.message))?;
    output::print_line(format!("encrypted {count} secrets with a new key"));
    if let Some(variable) = to_env {
        output::print_note(format!("Now set RIALTO_SECRET_KEY to the value of {variable}."));
    }
    Ok(())
}

fn secret_from_variable(environment: &Environment, variable: &str) -> Result<Secret, CommandError> {
    environment
        .get(variable)
        .map(Secret::from)
        .ok_or_else(|| CommandError::usage(format!("the environment variable {variable} is not set")))
}

/// Reads a secret from stdin; a terminal does not echo it.
fn read_secret(name: &str) -> Result<Secret, CommandError> {
    let failed =
        |error: std::io::Error| CommandError::failed(format!("the secret could not be read: {error}"));
    if std::io::stdin().is_terminal() {
        let terminal = console::Term::stderr();
        terminal.write_str(&format!("secret for {name}: ")).map_err(failed)?;
        return terminal.read_secure_line().map(Secret::from).map_err(failed);
    }
    let mut text = String::new();
    std::io::stdin().take(MAX_SECRET_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_SECRET_BYTES {
        return Err(CommandError::usage(format!("a secret may have at most {MAX_SECRET_BYTES} bytes")));
    }
    Ok(Secret::from(text))
}
