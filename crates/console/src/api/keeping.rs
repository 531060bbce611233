//! `/api/v1/webhooks` and `/api/v1/secrets`.

use axum::response::Response;
use http::StatusCode;
use rialto_api_types::{
    secrets::{RemovedSecret, SavedSecret, SecretList, SecretValue},
    webhooks::{CreatedWebhook, NewWebhook, WebhookList},
};
use rialto_model::{credential::Secret, failure::Failure};

use super::{asking::Asking, good, told};
use crate::admin::{
    secrets,
    webhooks::{self, webhook_row},
};

pub(super) async fn webhooks(asking: Asking) -> Result<Response, Failure> {
    let found = webhooks::list(&asking.console, &asking.caller).await?;
    good(&WebhookList { webhooks: found.iter().map(webhook_row).collect() })
}

pub(super) async fn add_webhook(asking: Asking) -> Result<Response, Failure> {
    let new: NewWebhook = asking.json()?;
    let (webhook, key) = webhooks::add(&asking.console, &asking.caller, &new).await?;
    Ok(told(StatusCode::CREATED, &CreatedWebhook { row: webhook_row(&webhook), secret: key }))
}

pub(super) async fn remove_webhook(asking: Asking) -> Result<Response, Failure> {
    let webhook = webhooks::remove(&asking.console, &asking.caller, asking.part("id")).await?;
    good(&webhook_row(&webhook))
}

pub(super) async fn test_webhook(asking: Asking) -> Result<Response, Failure> {
    good(&webhook_row(&webhooks::test(&asking.console, &asking.caller, asking.part("id")).await?))
}

pub(super) async fn retry_webhook(asking: Asking) -> Result<Response, Failure> {
    good(&webhook_row(&webhooks::retry(&asking.console, &asking.caller, asking.part("id")).await?))
}

pub(super) async fn secrets(asking: Asking) -> Result<Response, Failure> {
    good(&SecretList { secrets: secrets::list(&asking.console, &asking.caller).await? })
}

pub(super) async fn set_secret(asking: Asking) -> Result<Response, Failure> {
    let SecretValue { value } = asking.json()?;
    let name = asking.part("name");
    secrets::set(&asking.console, &asking.caller, name, &Secret::from(value)).await?;
    good(&SavedSecret { name: name.to_owned() })
}

pub(super) async fn remove_secret(asking: Asking) -> Result<Response, Failure> {
    let name = asking.part("name");
    let used_by = secrets::remove(&asking.console, &asking.caller, name).await?;
    good(&RemovedSecret { name: name.to_owned(), used_by })
}
