//! One attempt to deliver an event.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822::DateTimeParser};
use rialto_http_client::{
    address::Reach,
    fetch::{Fetch, FetchError, FetchRequest, FetchResponse},
};
use rialto_model::{
    credential::{Secret, SecretSource},
    webhook::Webhook,
};
use serde::Serialize;

use crate::{
    cloud_event::{CLOUD_EVENT_MEDIA_TYPE, CloudEvent},
    signing_key::SigningKey,
};

/// Maximum bytes of a response; it is read only so that the connection can be reused.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// Longest `Retry-After` that is respected.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// Function that reads a secret, or names what is missing.
pub type Secrets = Arc<dyn Fn(&SecretSource) -> BoxFuture<'static, Result<Secret, String>> + Send + Sync>;

/// Delivers events to receivers.
#[derive(Clone)]
pub struct Delivery {
    /// Outbound HTTP client.
    pub fetch: Arc<dyn Fetch>,
    /// Reader of signing keys.
    pub secrets: Secrets,
    /// Timeout of a delivery.
    pub timeout: Duration,
}

/// Outcome of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The receiver accepted the event.
    Accepted,
    /// The receiver answered 410 Gone and wants no more events.
    Gone,
    /// The delivery failed.
    Failed {
        /// Reason, for the owner of the webhook.
        why: String,
        /// Pause that the receiver asks for.
        wait: Option<Duration>,
    },
}

// === impl Delivery ===

impl Delivery {
    /// Delivers one event.
    pub async fn deliver<T: Serialize>(
        &self,
        webhook: &Webhook,
        event: &CloudEvent<'_, T>,
        now: Timestamp,
    ) -> DeliveryOutcome {
        let secret = (self.secrets)(&webhook.secret).await;
        let request = secret
            .map_err(|why| describe_missing_key(&webhook.secret, &why))
            .and_then(|secret| self.request(webhook, &secret, event, now));
        let request = match request {
            Ok(request) => request,
            Err(why) => return DeliveryOutcome::failed(why),
        };
        match self.fetch.fetch(request).await {
            Ok(answer) => outcome_of(answer, now).await,
            Err(error) => DeliveryOutcome::failed(describe_fetch_error(&error)),
        }
    }

    fn request<T: Serialize>(
        &self,
        webhook: &Webhook,
        secret: &Secret,
        event: &CloudEvent<'_, T>,
        now: Timestamp,
    ) -> Result<FetchRequest, String> {
        let key = SigningKey::parse(secret.expose()).map_err(|error| error.to_string())?;
        let body = serde_json::to_vec(event).map_err(|error| error.to_string())?;
        let uri = webhook.url.parse::<Uri>().map_err(|_| "its address is not valid".to_owned())?;
        let timestamp = now.as_second();
        let value = |text: &str| HeaderValue::from_str(text).map_err(|error| error.to_string());
        let mut request = FetchRequest::new(Method::POST, uri)
            .header(header::CONTENT_TYPE, HeaderValue::from_static(CLOUD_EVENT_MEDIA_TYPE))
            .header(HeaderName::from_static("webhook-id"), value(&event.id)?)
            .header(HeaderName::from_static("webhook-timestamp"), timestamp.into())
            .header(
                HeaderName::from_static("webhook-signature"),
                value(&key.sign(&event.id, timestamp, &body))?,
            );
        request.body = body.into();
        request.reach = if webhook.allow_private { Reach::Private } else { Reach::Public };
        (request.patience, request.total) = (self.timeout, Some(self.timeout));
        request.limit = Some(MAX_RESPONSE_BYTES);
        Ok(request)
    }
}

// === impl DeliveryOutcome ===

impl DeliveryOutcome {
    const fn failed(why: String) -> Self {
        Self::Failed { why, wait: None }
    }
}

async fn outcome_of(answer: FetchResponse, now: Timestamp) -> DeliveryOutcome {
    let (status, wait) = (answer.status, retry_after(&answer, now));
    // Its content does not matter: the status has been received.
    let _ = answer.body.read().await;
    match status {
        status if status.is_success() => DeliveryOutcome::Accepted,
        StatusCode::GONE => DeliveryOutcome::Gone,
        status if status.is_redirection() => DeliveryOutcome::failed(format!(
            "it answered with HTTP status {status}; redirects are not followed"
        )),
        status => DeliveryOutcome::Failed { why: format!("it answered with HTTP status {status}"), wait },
    }
}

/// Value of `Retry-After`: seconds, or a date.
fn retry_after(answer: &FetchResponse, now: Timestamp) -> Option<Duration> {
    let text = answer.headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let then = DateTimeParser::new().parse_timestamp(text).ok()?;
            Duration::try_from(SignedDuration::from_secs(then.as_second() - now.as_second())).ok()?
        }
    };
    Some(wait.min(MAX_RETRY_AFTER))
}

fn describe_fetch_error(error: &FetchError) -> String {
    format!("it could not be reached: {error}")
}

fn describe_missing_key(secret: &SecretSource, why: &str) -> String {
    match secret {
        SecretSource::Env(name) => {
            format!("its key is missing: set the environment variable {name} where `rialto serve` runs")
        }
        SecretSource::File(path) => {
            format!(
                "its key is missing: {path} cannot be read or is empty; remove the webhook and add it again"
            )
        }
        SecretSource::Store(_) | SecretSource::Held(_) => format!("its key is missing: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use rialto_model::{audit_event::AuditPhase, ids::OrgId, webhook::DeliveryState};
    use rialto_testkit::store_suite::at;

    use super::*;

    fn key() -> Secret {
        Secret::from(SigningKey::encode(&[7; 32]))
    }

    fn webhook() -> Webhook {
        Webhook {
            id: "hook_1".into(),
            org: OrgId::from("default"),
            url: "https://hooks.example/rialto".into(),
            phases: vec![AuditPhase::PreVerb],
            secret: SecretSource::Env("KEY".into()),
            allow_private: false,
            created_at: at(0),
            standing: DeliveryState::default(),
        }
    }

    /// Outcome of an event with this response.
    async fn answered(
        answer: impl Fn() -> Result<FetchResponse, FetchError> + Send + Sync + 'static,
    ) -> DeliveryOutcome {
        let delivery = Delivery {
            fetch: Arc::new(move |_: FetchRequest| answer()),
            secrets: Arc::new(|_| Box::pin(std::future::ready(Ok(key())))),
            timeout: Duration::from_secs(10),
        };
        let event = CloudEvent::test("test-1".into(), "urn:rialto", at(0));
        delivery.deliver(&webhook(), &event, at(0)).await
    }

    async fn asked_to_wait(text: &'static str) -> Option<u64> {
        let busy = move || {
            let answer = FetchResponse::fixed(StatusCode::SERVICE_UNAVAILABLE, "");
            Ok(answer.header(header::RETRY_AFTER, HeaderValue::from_static(text)))
        };
        match answered(busy).await {
            DeliveryOutcome::Failed { wait, .. } => wait.map(|wait| wait.as_secs()),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_receiver_says_how_long_to_wait_in_seconds_or_as_a_date() {
        for (text, seconds) in [
            ("120", Some(120)),
            ("Sat, 01 Aug 2026 12:01:30 GMT", Some(90)),
            ("Sat, 01 Aug 2026 11:00:00 GMT", None),
            ("999999999", Some(3600)),
            ("soon", None),
            ("-5", None),
        ] {
            assert_eq!(asked_to_wait(text).await, seconds, "{text}");
        }
    }

    #[tokio::test]
    async fn only_success_counts_as_taken() {
        for (status, is_taken) in [(200, true), (204, true), (301, false), (404, false), (500, false)] {
            let outcome =
                answered(move || Ok(FetchResponse::fixed(StatusCode::from_u16(status).unwrap(), "ok"))).await;
            assert_eq!(outcome == DeliveryOutcome::Accepted, is_taken, "{status}: {outcome:?}");
        }
        assert_eq!(answered(|| Ok(FetchResponse::fixed(StatusCode::GONE, ""))).await, DeliveryOutcome::Gone);
        let outcome = answered(|| Err(FetchError::Timeout(Duration::from_secs(10)))).await;
        let why = "it could not be reached: took longer than 10 s to answer".to_owned();
        assert_eq!(outcome, DeliveryOutcome::failed(why));
    }

    #[tokio::test]
    async fn what_is_sent_says_who_it_is_for_and_nothing_of_the_key() {
        let delivery = Delivery {
            fetch: Arc::new(|_: FetchRequest| Err(FetchError::TooLarge(0))),
            secrets: Arc::new(|_| Box::pin(std::future::ready(Ok(key())))),
            timeout: Duration::from_secs(10),
        };
        let event = CloudEvent::test("test-1".into(), "urn:rialto", at(0));
        let request = delivery.request(&webhook(), &key(), &event, at(0)).unwrap();
        let headers =
            request.headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
        insta::assert_snapshot!(headers.collect::<Vec<_>>().join("\n"));
        assert_eq!((request.reach, request.total), (Reach::Public, Some(Duration::from_secs(10))));
        assert!(!format!("{request:?}").contains(&SigningKey::encode(&[7; 32])));
    }
}
