//! Who is told of calls. A webhook hears of every call of an org, so whoever may read the audit trail sees to them.

use rialto_api_types::webhooks::{NewWebhook, WebhookRow, WebhookState};
use rialto_model::{
    audit_event::AuditPhase,
    call::Caller,
    credential::SecretSource,
    failure::{Failure, FailureKind},
    ids::{OrgId, fresh, is_slug},
    webhook::{DeliveryState, Webhook},
};
use rialto_policy::Action;
use serde_json::{Value, json};
use url::Url;

use crate::{Console, console::store_failure, operation::Operation};

/// Those of the caller's org; at the machine, all.
pub async fn list(console: &Console, caller: &Caller) -> Result<Vec<Webhook>, Failure> {
    console.admit(caller, Action::AdminAudit).await?;
    let mut webhooks = console.store().webhooks().await.map_err(store_failure)?;
    webhooks.retain(|webhook| console.at_machine() || webhook.org == caller.scope.org);
    Ok(webhooks)
}

/// Has an address told of calls from now on. Answers its key too, if one was made: it is shown this once.
pub async fn add(
    console: &Console,
    caller: &Caller,
    wanted: &NewWebhook,
) -> Result<(Webhook, Option<String>), Failure> {
    let operation = Operation::new("webhook.add", without_query(&wanted.url));
    let work = add_now(console, caller, wanted, &operation);
    console.administer(caller, Action::AdminAudit, &operation, work).await
}

async fn add_now(
    console: &Console,
    caller: &Caller,
    wanted: &NewWebhook,
    operation: &Operation,
) -> Result<(Webhook, Option<String>), Failure> {
    let (url, org, phases) = (address(&wanted.url)?, org(console, caller, wanted)?, phases(&wanted.events)?);
    let id = format!("hook_{}", fresh());
    let (secret, key) = match &wanted.secret_env {
        Some(variable) => (variable_of(console, caller, variable).await?, None),
        None => {
            let (secret, key) = console.office().make_webhook_key(&id)?;
            (secret, Some(key))
        }
    };
    let webhook = Webhook {
        id,
        org,
        url,
        phases,
        secret,
        allow_private: console.may_use_private_addresses(caller),
        created_at: console.engine().now(),
        standing: DeliveryState::default(),
    };
    operation.org(&webhook.org);
    console.store().put_webhook(&webhook).await.map_err(store_failure)?;
    operation.after(state_of(&webhook));
    Ok((webhook, key))
}

/// Tells an address nothing any more.
pub async fn remove(console: &Console, caller: &Caller, name: &str) -> Result<Webhook, Failure> {
    let operation = Operation::new("webhook.remove", without_query(name));
    console
        .administer(caller, Action::AdminAudit, &operation, async {
            let webhook = find_to_change(console, caller, name, &operation).await?;
            console.store().remove_webhook(&webhook.id).await.map_err(store_failure)?;
            console.office().forget_webhook_key(&webhook.id)?;
            Ok(webhook)
        })
        .await
}

/// Sends an event that says it is a test, now.
pub async fn test(console: &Console, caller: &Caller, name: &str) -> Result<Webhook, Failure> {
    let operation = Operation::new("webhook.test", without_query(name));
    console
        .administer(caller, Action::AdminAudit, &operation, async {
            let webhook = find_to_change(console, caller, name, &operation).await?;
            console.office().try_webhook(&webhook).await?;
            operation.after(state_of(&webhook));
            Ok(webhook)
        })
        .await
}

/// Has one tried again now that failed or was disabled.
pub async fn retry(console: &Console, caller: &Caller, name: &str) -> Result<Webhook, Failure> {
    let operation = Operation::new("webhook.retry", without_query(name));
    console
        .administer(caller, Action::AdminAudit, &operation, async {
            let webhook = find_to_change(console, caller, name, &operation).await?;
            console.store().retry_webhook(&webhook.id).await.map_err(store_failure)?;
            let after = Webhook {
                standing: DeliveryState { disabled: None, failures: 0, ..webhook.standing.clone() },
                ..webhook.clone()
            };
            operation.after(state_of(&after));
            Ok(webhook)
        })
        .await
}

/// The webhook that an operation is about, noted as it is before.
async fn find_to_change(
    console: &Console,
    caller: &Caller,
    name: &str,
    operation: &Operation,
) -> Result<Webhook, Failure> {
    let webhook = find(console, caller, name).await?;
    operation.org(&webhook.org);
    operation.before(state_of(&webhook));
    Ok(webhook)
}

/// A webhook as records show it.
fn state_of(webhook: &Webhook) -> Value {
    let events: Vec<&str> = webhook.phases.iter().map(|phase| phase.as_str()).collect();
    json!({
        "id": webhook.id,
        "url": without_query(&webhook.url),
        "org": webhook.org,
        "events": events,
        "state": state(&webhook.standing),
    })
}

/// Row of a webhook, without its key.
pub fn webhook_row(webhook: &Webhook) -> WebhookRow {
    let standing = &webhook.standing;
    WebhookRow {
        id: webhook.id.clone(),
        url: without_query(&webhook.url),
        org: webhook.org.clone(),
        events: webhook.phases.clone(),
        created_at: webhook.created_at,
        state: state(standing),
        handled: standing.handled,
        delivered: standing.delivered,
        lost: standing.lost,
        failures: standing.failures,
        next_attempt_at: standing.next_attempt_at,
        last_error: standing.last_error.clone(),
        disabled: standing.disabled.clone(),
    }
}

/// The one that is meant, by its id or its address.
async fn find(console: &Console, caller: &Caller, name: &str) -> Result<Webhook, Failure> {
    let webhooks = list(console, caller).await?;
    let mut found = webhooks.into_iter().filter(|webhook| webhook.id == name || webhook.url == name);
    match (found.next(), found.next()) {
        (Some(webhook), None) => Ok(webhook),
        (Some(_), Some(_)) => {
            let message = format!("several webhooks have the address {name}; say which id is meant");
            Err(Failure::new(FailureKind::Invalid, message))
        }
        (None, _) => {
            let message = format!("there is no webhook \"{name}\"; see `rialto webhooks list`");
            Err(Failure::new(FailureKind::NotFound, message))
        }
    }
}

/// The address, if events can be sent there.
fn address(text: &str) -> Result<String, Failure> {
    let wrong = |why: &str| Failure::new(FailureKind::Invalid, format!("\"{}\" {why}", without_query(text)));
    let url = text.parse::<Url>().map_err(|_| wrong("is no address; write https://example.com/hook"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong("cannot be sent to; write an address like https://example.com/hook"));
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err(wrong("must have no user, password or fragment in it: addresses are listed"));
    }
    Ok(url.into())
}

fn org(console: &Console, caller: &Caller, wanted: &NewWebhook) -> Result<OrgId, Failure> {
    let own = &caller.scope.org;
    match wanted.org.as_deref() {
        None => Ok(own.clone()),
        Some(org) if org == own.as_str() => Ok(own.clone()),
        Some(_) if !console.at_machine() => {
            let message =
                "calls of another org are told at the server's machine, with `rialto webhooks add --org`";
            Err(Failure::new(FailureKind::Denied, message))
        }
        Some(org) if is_slug(org) => Ok(OrgId::from(org)),
        Some(org) => Err(Failure::new(FailureKind::Invalid, format!("\"{org}\" is no org"))),
    }
}

fn phases(events: &[String]) -> Result<Vec<AuditPhase>, Failure> {
    if events.is_empty() {
        // Whoever wants to know of calls is not told of administration unasked.
        return Ok(AuditPhase::ALL.into_iter().filter(|phase| *phase != AuditPhase::Admin).collect());
    }
    let phase = |name: &String| {
        AuditPhase::ALL.into_iter().find(|phase| phase.as_str() == name).ok_or_else(|| {
            let all = AuditPhase::ALL.map(AuditPhase::as_str).join(", ");
            Failure::new(FailureKind::Invalid, format!("\"{name}\" is no event; there are {all}"))
        })
    };
    events.iter().map(phase).collect()
}

/// A key in the environment. One that is there already must be good; one that is not may be set where the server runs.
async fn variable_of(console: &Console, caller: &Caller, variable: &str) -> Result<SecretSource, Failure> {
    if !console.may_use_machine(caller) {
        let message = "these are secrets of this server's machine: set [server] allow_commands_over_api, or use `rialto webhooks add` there";
        return Err(Failure::new(FailureKind::Denied, message));
    }
    console.office().check_webhook_key(variable).await?;
    Ok(SecretSource::Env(variable.to_owned()))
}

const fn state(standing: &DeliveryState) -> WebhookState {
    if standing.disabled.is_some() {
        WebhookState::Disabled
    } else if standing.failures > 0 {
        WebhookState::Failing
    } else {
        WebhookState::Good
    }
}

/// A query may hold what only the receiver should know.
fn without_query(url: &str) -> String {
    url.split_once('?').map_or_else(|| url.to_owned(), |(address, _)| format!("{address}?…"))
}
