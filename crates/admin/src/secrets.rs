//! Secrets for agents, encrypted in the store. They can be set and removed, and are never read back.
//!
//! All projects of a server share them, so over the network they need the configuration that allows secrets of the server's machine.
//! secrets.

use rialto_api_types::secrets::SecretSummary;
use rialto_model::{
    call::Caller,
    credential::{Secret, SecretSource},
    failure::{Failure, FailureKind},
    ids::is_slug,
};
use rialto_policy::Action;
use serde_json::{Value, json};

use crate::{Administration, host::SecretRow, operation::AdminOperation};

/// Maximum size of a secret.
const MAX_SECRET_BYTES: usize = 64 * 1024;

/// Lists all secrets, without their values.
pub async fn list(admin: &Administration, caller: &Caller) -> Result<Vec<SecretSummary>, Failure> {
    admin.authorize_admin(caller, Action::AdminAgents).await?;
    check_machine_access(admin, caller)?;
    let secrets = admin.host().list_secrets().await?;
    let listed = |row: SecretRow| {
        let used_by = agents_using(admin, caller, &row.name);
        SecretSummary { name: row.name, set_at: row.set_at, key: row.key, used_by }
    };
    Ok(secrets.into_iter().map(listed).collect())
}

/// Saves a secret.
pub async fn set(
    admin: &Administration,
    caller: &Caller,
    name: &str,
    secret: &Secret,
) -> Result<(), Failure> {
    let operation = AdminOperation::new("secret.set", name);
    admin
        .administer(caller, Action::AdminAgents, &operation, async {
            check_machine_access(admin, caller)?;
            operation.before(audit_state(admin, name).await?);
            save_authorized(admin, caller, name, secret).await?;
            operation.after(audit_state(admin, name).await?);
            Ok(())
        })
        .await
}

/// Saves a secret as part of another recorded operation.
pub(super) async fn save_authorized(
    admin: &Administration,
    caller: &Caller,
    name: &str,
    secret: &Secret,
) -> Result<(), Failure> {
    check_machine_access(admin, caller)?;
    let invalid = |message: String| Err(Failure::new(FailureKind::Invalid, message));
    if !is_slug(name) {
        let rule = "use letters, digits, `-` and `_`, at most 64 of them, a letter or digit first";
        return invalid(format!("\"{name}\" is not a valid name of a secret; {rule}"));
    }
    match secret.expose().len() {
        0 => invalid("the secret is empty and was not saved".to_owned()),
        size if size > MAX_SECRET_BYTES => invalid(format!("a secret has at most {MAX_SECRET_BYTES} bytes")),
        _ => admin.host().set_secret(name, secret).await,
    }
}

/// Removes a secret. Returns the agents that use it.
pub async fn remove(admin: &Administration, caller: &Caller, name: &str) -> Result<Vec<String>, Failure> {
    let operation = AdminOperation::new("secret.remove", name);
    admin
        .administer(caller, Action::AdminAgents, &operation, async {
            check_machine_access(admin, caller)?;
            if !is_slug(name) {
                let message = format!("there is no secret {name}; see `rialto secrets list`");
                return Err(Failure::new(FailureKind::NotFound, message));
            }
            operation.before(audit_state(admin, name).await?);
            admin.host().remove_secret(name).await?;
            Ok(agents_using(admin, caller, name))
        })
        .await
}

/// State of a secret in audit records, without its value.
async fn audit_state(admin: &Administration, name: &str) -> Result<Value, Failure> {
    let secrets = admin.host().list_secrets().await?;
    let row = secrets.into_iter().find(|row| row.name == name);
    Ok(row.map_or(Value::Null, |row| json!({ "name": row.name, "setAt": row.set_at, "key": row.key })))
}

/// Fails unless the caller is allowed to use secrets of the server's machine.
fn check_machine_access(admin: &Administration, caller: &Caller) -> Result<(), Failure> {
    if admin.may_use_machine_resources(caller) {
        return Ok(());
    }
    let message = "secrets of the server's machine cannot be used over the network: use `rialto secrets` on that machine, or, from the org default, set [server] allow_commands_over_api";
    Err(Failure::new(FailureKind::Denied, message))
}

/// Agents of the caller's project that use a secret.
fn agents_using(admin: &Administration, caller: &Caller, name: &str) -> Vec<String> {
    let secret_source = SecretSource::Store(name.to_owned());
    let mut agents = admin.engine().registry().agents(&caller.scope);
    agents.retain(|agent| {
        agent.credential.as_ref().is_some_and(|credential| {
            credential.source == secret_source
                || credential.callers.values().any(|source| *source == secret_source)
        })
    });
    agents.iter().map(|agent| agent.slug.clone()).collect()
}
