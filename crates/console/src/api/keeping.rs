//! `/api/v1/webhooks` and `/api/v1/secrets`.

use axum::response::Response;
use http::StatusCode;
use rialto_model::{credential::Secret, failure::Failure};
use serde::Deserialize;
use serde_json::json;

use super::{asking::Asking, good, told};
use crate::admin::{
    secrets,
    webhooks::{self, Wanted, shown},
};

/// A secret, once.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    value: String,
}

pub(super) async fn webhooks(asking: Asking) -> Result<Response, Failure> {
    let found = webhooks::list(&asking.console, &asking.caller).await?;
    good(&json!({ "webhooks": found.iter().map(shown).collect::<Vec<_>>() }))
}

pub(super) async fn add_webhook(asking: Asking) -> Result<Response, Failure> {
    let wanted: Wanted = asking.json()?;
    let (webhook, key) = webhooks::add(&asking.console, &asking.caller, &wanted).await?;
    let mut made = shown(&webhook);
    made["secret"] = json!(key);
    Ok(told(StatusCode::CREATED, &made))
}

pub(super) async fn remove_webhook(asking: Asking) -> Result<Response, Failure> {
    let webhook = webhooks::remove(&asking.console, &asking.caller, asking.part("id")).await?;
    good(&shown(&webhook))
}

pub(super) async fn test_webhook(asking: Asking) -> Result<Response, Failure> {
    good(&shown(&webhooks::test(&asking.console, &asking.caller, asking.part("id")).await?))
}

pub(super) async fn retry_webhook(asking: Asking) -> Result<Response, Failure> {
    good(&shown(&webhooks::retry(&asking.console, &asking.caller, asking.part("id")).await?))
}

pub(super) async fn secrets(asking: Asking) -> Result<Response, Failure> {
    good(&json!({ "secrets": secrets::list(&asking.console, &asking.caller).await? }))
}

pub(super) async fn set_secret(asking: Asking) -> Result<Response, Failure> {
    let Kept { value } = asking.json()?;
    let name = asking.part("name");
    secrets::set(&asking.console, &asking.caller, name, &Secret::from(value)).await?;
    good(&json!({ "name": name }))
}

pub(super) async fn remove_secret(asking: Asking) -> Result<Response, Failure> {
    let name = asking.part("name");
    let used_by = secrets::remove(&asking.console, &asking.caller, name).await?;
    good(&json!({ "name": name, "usedBy": used_by }))
}
