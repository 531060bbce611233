//! What agents are shown, encrypted in the store. A secret can be set and forgotten here, and is never read back.
//!
//! All projects of a server share them, so over the network they are for those whom its configuration trusts with the machine's
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

use crate::{Console, office::SecretRow, operation::Operation};

/// No secret is larger.
const LIMIT: usize = 64 * 1024;

/// All of them, without themselves.
pub async fn list(console: &Console, caller: &Caller) -> Result<Vec<SecretSummary>, Failure> {
    console.admit(caller, Action::AdminAgents).await?;
    trusted_with_secrets(console, caller)?;
    let secrets = console.office().secrets().await?;
    let listed = |row: SecretRow| {
        let used_by = users(console, caller, &row.name);
        SecretSummary { name: row.name, set_at: row.set_at, key: row.key, used_by }
    };
    Ok(secrets.into_iter().map(listed).collect())
}

/// Keeps a secret.
pub async fn set(console: &Console, caller: &Caller, name: &str, secret: &Secret) -> Result<(), Failure> {
    let operation = Operation::new("secret.set", name);
    console
        .administer(caller, Action::AdminAgents, &operation, async {
            trusted_with_secrets(console, caller)?;
            operation.before(state(console, name).await?);
            put(console, caller, name, secret).await?;
            operation.after(state(console, name).await?);
            Ok(())
        })
        .await
}

/// Keeps a secret for an operation that is recorded under another name.
pub(super) async fn put(
    console: &Console,
    caller: &Caller,
    name: &str,
    secret: &Secret,
) -> Result<(), Failure> {
    trusted_with_secrets(console, caller)?;
    let invalid = |message: String| Err(Failure::new(FailureKind::Invalid, message));
    if !is_slug(name) {
        let rule = "use letters, digits, `-` and `_`, at most 64 of them, a letter or digit first";
        return invalid(format!("\"{name}\" cannot be the name of a secret; {rule}"));
    }
    match secret.expose().len() {
        0 => invalid("the secret is empty; nothing was kept".to_owned()),
        size if size > LIMIT => invalid(format!("a secret may have {LIMIT} bytes")),
        _ => console.office().set_secret(name, secret).await,
    }
}

/// Forgets a secret. Answers who is shown it.
pub async fn remove(console: &Console, caller: &Caller, name: &str) -> Result<Vec<String>, Failure> {
    let operation = Operation::new("secret.remove", name);
    console
        .administer(caller, Action::AdminAgents, &operation, async {
            trusted_with_secrets(console, caller)?;
            if !is_slug(name) {
                let message =
                    format!("there is no secret {name}; `rialto secrets list` shows those there are");
                return Err(Failure::new(FailureKind::NotFound, message));
            }
            operation.before(state(console, name).await?);
            console.office().remove_secret(name).await?;
            Ok(users(console, caller, name))
        })
        .await
}

/// A secret as records show it: that it is there, since when, and which key opens it.
async fn state(console: &Console, name: &str) -> Result<Value, Failure> {
    let secrets = console.office().secrets().await?;
    let row = secrets.into_iter().find(|row| row.name == name);
    Ok(row.map_or(Value::Null, |row| json!({ "name": row.name, "setAt": row.set_at, "key": row.key })))
}

/// Whether the caller may name secrets of this machine.
fn trusted_with_secrets(console: &Console, caller: &Caller) -> Result<(), Failure> {
    if console.may_use_machine(caller) {
        return Ok(());
    }
    let message = "these are secrets of this server's machine: use `rialto secrets` there, or, from the org default, set [server] allow_commands_over_api";
    Err(Failure::new(FailureKind::Denied, message))
}

/// The agents of the caller's project that a secret is for.
fn users(console: &Console, caller: &Caller, name: &str) -> Vec<String> {
    let wanted = SecretSource::Store(name.to_owned());
    let mut agents = console.engine().registry().agents(&caller.scope);
    agents.retain(|agent| {
        agent.credential.as_ref().is_some_and(|credential| {
            credential.source == wanted || credential.callers.values().any(|source| *source == wanted)
        })
    });
    agents.iter().map(|agent| agent.slug.clone()).collect()
}
