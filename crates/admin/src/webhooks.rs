//! Webhooks. A webhook receives events of all calls of an org, so managing webhooks needs permission to read the audit log.

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

use crate::{Administration, administration::store_failure, operation::AdminOperation};

/// Lists the webhooks of the caller's org, or all on the server's machine.
pub async fn list(admin: &Administration, caller: &Caller) -> Result<Vec<Webhook>, Failure> {
    admin.authorize_admin(caller, Action::AdminAudit).await?;
    let mut webhooks = admin.store().webhooks().await.map_err(store_failure)?;
    webhooks.retain(|webhook| admin.is_local() || webhook.org == caller.scope.org);
    Ok(webhooks)
}

/// Adds a webhook. Returns its key too, if one was created; it is shown once.
pub async fn add(
    admin: &Administration,
    caller: &Caller,
    new_webhook: &NewWebhook,
) -> Result<(Webhook, Option<String>), Failure> {
    let operation = AdminOperation::new("webhook.add", redact_query(&new_webhook.url));
    let work = add_authorized(admin, caller, new_webhook, &operation);
    admin.administer(caller, Action::AdminAudit, &operation, work).await
}

async fn add_authorized(
    admin: &Administration,
    caller: &Caller,
    new_webhook: &NewWebhook,
    operation: &AdminOperation,
) -> Result<(Webhook, Option<String>), Failure> {
    let (url, org, phases) = (
        parse_address(&new_webhook.url)?,
        webhook_org(admin, caller, new_webhook)?,
        parse_events(&new_webhook.events)?,
    );
    let id = format!("hook_{}", fresh());
    let (secret, key) = match &new_webhook.secret_env {
        Some(variable) => (key_from_environment(admin, caller, variable).await?, None),
        None => {
            let (secret, key) = admin.host().create_webhook_key(&id)?;
            (secret, Some(key))
        }
    };
    let webhook = Webhook {
        id,
        org,
        url,
        phases,
        secret,
        allow_private: admin.may_use_private_addresses(caller),
        created_at: admin.engine().now(),
        standing: DeliveryState::default(),
    };
    operation.org(&webhook.org);
    admin.store().put_webhook(&webhook).await.map_err(store_failure)?;
    operation.after(audit_state(&webhook));
    Ok((webhook, key))
}

/// Removes a webhook.
pub async fn remove(admin: &Administration, caller: &Caller, name: &str) -> Result<Webhook, Failure> {
    let operation = AdminOperation::new("webhook.remove", redact_query(name));
    admin
        .administer(caller, Action::AdminAudit, &operation, async {
            let webhook = find_to_change(admin, caller, name, &operation).await?;
            admin.store().remove_webhook(&webhook.id).await.map_err(store_failure)?;
            admin.host().remove_webhook_key(&webhook.id)?;
            Ok(webhook)
        })
        .await
}

/// Sends a test event to a webhook now.
pub async fn test(admin: &Administration, caller: &Caller, name: &str) -> Result<Webhook, Failure> {
    let operation = AdminOperation::new("webhook.test", redact_query(name));
    admin
        .administer(caller, Action::AdminAudit, &operation, async {
            let webhook = find_to_change(admin, caller, name, &operation).await?;
            admin.host().send_test_event(&webhook).await?;
            operation.after(audit_state(&webhook));
            Ok(webhook)
        })
        .await
}

/// Retries a webhook that failed or was disabled.
pub async fn retry(admin: &Administration, caller: &Caller, name: &str) -> Result<Webhook, Failure> {
    let operation = AdminOperation::new("webhook.retry", redact_query(name));
    admin
        .administer(caller, Action::AdminAudit, &operation, async {
            let webhook = find_to_change(admin, caller, name, &operation).await?;
            admin.store().retry_webhook(&webhook.id).await.map_err(store_failure)?;
            let after = Webhook {
                standing: DeliveryState { disabled: None, failures: 0, ..webhook.standing.clone() },
                ..webhook.clone()
            };
            operation.after(audit_state(&after));
            Ok(webhook)
        })
        .await
}

/// Finds the webhook of an operation and records its state before the change.
async fn find_to_change(
    admin: &Administration,
    caller: &Caller,
    name: &str,
    operation: &AdminOperation,
) -> Result<Webhook, Failure> {
    let webhook = find(admin, caller, name).await?;
    operation.org(&webhook.org);
    operation.before(audit_state(&webhook));
    Ok(webhook)
}

/// State of a webhook in audit records.
fn audit_state(webhook: &Webhook) -> Value {
    let events: Vec<&str> = webhook.phases.iter().map(|phase| phase.as_str()).collect();
    json!({
        "id": webhook.id,
        "url": redact_query(&webhook.url),
        "org": webhook.org,
        "events": events,
        "state": delivery_state(&webhook.standing),
    })
}

/// Row of a webhook, without its key.
pub fn webhook_row(webhook: &Webhook) -> WebhookRow {
    let standing = &webhook.standing;
    WebhookRow {
        id: webhook.id.clone(),
        url: redact_query(&webhook.url),
        org: webhook.org.clone(),
        events: webhook.phases.clone(),
        created_at: webhook.created_at,
        state: delivery_state(standing),
        handled: standing.handled,
        delivered: standing.delivered,
        lost: standing.lost,
        failures: standing.failures,
        next_attempt_at: standing.next_attempt_at,
        last_error: standing.last_error.clone(),
        disabled: standing.disabled.clone(),
    }
}

/// Finds a webhook by its id or URL.
async fn find(admin: &Administration, caller: &Caller, name: &str) -> Result<Webhook, Failure> {
    let webhooks = list(admin, caller).await?;
    let mut found = webhooks.into_iter().filter(|webhook| webhook.id == name || webhook.url == name);
    match (found.next(), found.next()) {
        (Some(webhook), None) => Ok(webhook),
        (Some(_), Some(_)) => {
            let message = format!("several webhooks have the URL {name}; use the id");
            Err(Failure::new(FailureKind::Invalid, message))
        }
        (None, _) => {
            let message = format!("there is no webhook \"{name}\"; see `rialto webhooks list`");
            Err(Failure::new(FailureKind::NotFound, message))
        }
    }
}

/// Webhook URL, if events can be sent to it.
fn parse_address(text: &str) -> Result<String, Failure> {
    let wrong = |why: &str| Failure::new(FailureKind::Invalid, format!("\"{}\" {why}", redact_query(text)));
    let url = text.parse::<Url>().map_err(|_| wrong("is not a URL; use https://example.com/hook"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong("is not an http URL; use one like https://example.com/hook"));
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err(wrong("must not contain a user, password or fragment, because URLs are listed"));
    }
    Ok(url.into())
}

fn webhook_org(admin: &Administration, caller: &Caller, new_webhook: &NewWebhook) -> Result<OrgId, Failure> {
    let own = &caller.scope.org;
    match new_webhook.org.as_deref() {
        None => Ok(own.clone()),
        Some(org) if org == own.as_str() => Ok(own.clone()),
        Some(_) if !admin.is_local() => {
            let message =
                "add webhooks for another org on the server's machine, with `rialto webhooks add --org`";
            Err(Failure::new(FailureKind::Denied, message))
        }
        Some(org) if is_slug(org) => Ok(OrgId::from(org)),
        Some(org) => Err(Failure::new(FailureKind::Invalid, format!("\"{org}\" is not a valid org name"))),
    }
}

fn parse_events(events: &[String]) -> Result<Vec<AuditPhase>, Failure> {
    if events.is_empty() {
        // Administrative operations are sent only if requested.
        return Ok(AuditPhase::ALL.into_iter().filter(|phase| *phase != AuditPhase::Admin).collect());
    }
    let phase = |name: &String| {
        AuditPhase::ALL.into_iter().find(|phase| phase.as_str() == name).ok_or_else(|| {
            let all = AuditPhase::ALL.map(AuditPhase::as_str).join(", ");
            Failure::new(FailureKind::Invalid, format!("\"{name}\" is not an event; use {all}"))
        })
    };
    events.iter().map(phase).collect()
}

/// Source of a key in an environment variable. A variable that is set must hold a valid key; it may be set later.
async fn key_from_environment(
    admin: &Administration,
    caller: &Caller,
    variable: &str,
) -> Result<SecretSource, Failure> {
    if !admin.may_use_machine_resources(caller) {
        let message = "secrets of the server's machine cannot be used over the network: set [server] allow_commands_over_api, or use `rialto webhooks add` on that machine";
        return Err(Failure::new(FailureKind::Denied, message));
    }
    admin.host().check_webhook_key(variable).await?;
    Ok(SecretSource::Env(variable.to_owned()))
}

const fn delivery_state(standing: &DeliveryState) -> WebhookState {
    if standing.disabled.is_some() {
        WebhookState::Disabled
    } else if standing.failures > 0 {
        WebhookState::Failing
    } else {
        WebhookState::Good
    }
}

/// URL with its query masked, which may contain secrets of the receiver.
fn redact_query(url: &str) -> String {
    url.split_once('?').map_or_else(|| url.to_owned(), |(address, _)| format!("{address}?…"))
}
