//! One event, brought to its receiver once.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822::DateTimeParser};
use rialto_edge::{
    address::Reach,
    fetch::{Fetch, FetchError, Request, Response},
};
use rialto_model::{
    credential::{Secret, SecretSource},
    webhook::Webhook,
};
use serde::Serialize;

use crate::{
    cloud::{CloudEvent, MEDIA_TYPE},
    key::Key,
};

/// What a receiver says is of no interest; it is read so that the connection can be used again.
const MOST_READ: usize = 64 * 1024;

/// Longer than this nobody is asked to wait.
const LONGEST_WISH: Duration = Duration::from_secs(3600);

/// Reads a secret from where it is kept, or says why there is nothing to read.
pub type Secrets = Arc<dyn Fn(&SecretSource) -> BoxFuture<'static, Result<Secret, String>> + Send + Sync>;

/// Brings events to receivers.
#[derive(Clone)]
pub struct Delivery {
    /// The one way out.
    pub fetch: Arc<dyn Fetch>,
    /// Where keys are read.
    pub secrets: Secrets,
    /// How long a receiver may take.
    pub timeout: Duration,
}

/// How it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was taken.
    Taken,
    /// The receiver wants nothing any more.
    Unwanted,
    /// It was not taken.
    Failed {
        /// Why, for whoever looks after the webhook.
        why: String,
        /// How long the receiver asks to be left alone.
        wait: Option<Duration>,
    },
}

// === impl Delivery ===

impl Delivery {
    /// Brings one event.
    pub async fn bring<T: Serialize>(
        &self,
        webhook: &Webhook,
        event: &CloudEvent<'_, T>,
        now: Timestamp,
    ) -> Outcome {
        let secret = (self.secrets)(&webhook.secret).await;
        let request = secret
            .map_err(|why| missing(&webhook.secret, &why))
            .and_then(|secret| self.request(webhook, &secret, event, now));
        let request = match request {
            Ok(request) => request,
            Err(why) => return Outcome::failed(why),
        };
        match self.fetch.fetch(request).await {
            Ok(answer) => judged(answer, now).await,
            Err(error) => Outcome::failed(unreached(&error)),
        }
    }

    fn request<T: Serialize>(
        &self,
        webhook: &Webhook,
        secret: &Secret,
        event: &CloudEvent<'_, T>,
        now: Timestamp,
    ) -> Result<Request, String> {
        let key = Key::parse(secret.expose()).map_err(|error| error.to_string())?;
        let body = serde_json::to_vec(event).map_err(|error| error.to_string())?;
        let uri = webhook.url.parse::<Uri>().map_err(|_| "its address is not valid".to_owned())?;
        let timestamp = now.as_second();
        let value = |text: &str| HeaderValue::from_str(text).map_err(|error| error.to_string());
        let mut request = Request::new(Method::POST, uri)
            .header(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE))
            .header(HeaderName::from_static("webhook-id"), value(&event.id)?)
            .header(HeaderName::from_static("webhook-timestamp"), timestamp.into())
            .header(
                HeaderName::from_static("webhook-signature"),
                value(&key.sign(&event.id, timestamp, &body))?,
            );
        request.body = body.into();
        request.reach = if webhook.allow_private { Reach::Private } else { Reach::Public };
        (request.patience, request.total) = (self.timeout, Some(self.timeout));
        request.limit = Some(MOST_READ);
        Ok(request)
    }
}

// === impl Outcome ===

impl Outcome {
    const fn failed(why: String) -> Self {
        Self::Failed { why, wait: None }
    }
}

async fn judged(answer: Response, now: Timestamp) -> Outcome {
    let (status, wait) = (answer.status, wish(&answer, now));
    // Whatever it is, and whether or not it comes whole: the status was said.
    let _ = answer.body.read().await;
    match status {
        status if status.is_success() => Outcome::Taken,
        StatusCode::GONE => Outcome::Unwanted,
        status if status.is_redirection() => {
            Outcome::failed(format!("it answered with HTTP status {status}; redirects are not followed"))
        }
        status => Outcome::Failed { why: format!("it answered with HTTP status {status}"), wait },
    }
}

/// What `Retry-After` says: seconds, or a date.
fn wish(answer: &Response, now: Timestamp) -> Option<Duration> {
    let text = answer.headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let then = DateTimeParser::new().parse_timestamp(text).ok()?;
            Duration::try_from(SignedDuration::from_secs(then.as_second() - now.as_second())).ok()?
        }
    };
    Some(wait.min(LONGEST_WISH))
}

fn unreached(error: &FetchError) -> String {
    format!("it could not be reached: {error}")
}

fn missing(secret: &SecretSource, why: &str) -> String {
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
        Secret::from(Key::text(&[7; 32]))
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

    /// What comes of an event that is answered like this.
    async fn answered(answer: impl Fn() -> Result<Response, FetchError> + Send + Sync + 'static) -> Outcome {
        let delivery = Delivery {
            fetch: Arc::new(move |_: Request| answer()),
            secrets: Arc::new(|_| Box::pin(std::future::ready(Ok(key())))),
            timeout: Duration::from_secs(10),
        };
        let event = CloudEvent::test("test-1".into(), "urn:rialto", at(0));
        delivery.bring(&webhook(), &event, at(0)).await
    }

    async fn asked_to_wait(text: &'static str) -> Option<u64> {
        let busy = move || {
            let answer = Response::fixed(StatusCode::SERVICE_UNAVAILABLE, "");
            Ok(answer.header(header::RETRY_AFTER, HeaderValue::from_static(text)))
        };
        match answered(busy).await {
            Outcome::Failed { wait, .. } => wait.map(|wait| wait.as_secs()),
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
                answered(move || Ok(Response::fixed(StatusCode::from_u16(status).unwrap(), "ok"))).await;
            assert_eq!(outcome == Outcome::Taken, is_taken, "{status}: {outcome:?}");
        }
        assert_eq!(answered(|| Ok(Response::fixed(StatusCode::GONE, ""))).await, Outcome::Unwanted);
        let outcome = answered(|| Err(FetchError::Timeout(Duration::from_secs(10)))).await;
        let why = "it could not be reached: took longer than 10 s to answer".to_owned();
        assert_eq!(outcome, Outcome::failed(why));
    }

    #[tokio::test]
    async fn what_is_sent_says_who_it_is_for_and_nothing_of_the_key() {
        let delivery = Delivery {
            fetch: Arc::new(|_: Request| Err(FetchError::TooLarge(0))),
            secrets: Arc::new(|_| Box::pin(std::future::ready(Ok(key())))),
            timeout: Duration::from_secs(10),
        };
        let event = CloudEvent::test("test-1".into(), "urn:rialto", at(0));
        let request = delivery.request(&webhook(), &key(), &event, at(0)).unwrap();
        let headers =
            request.headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
        insta::assert_snapshot!(headers.collect::<Vec<_>>().join("\n"));
        assert_eq!((request.reach, request.total), (Reach::Public, Some(Duration::from_secs(10))));
        assert!(!format!("{request:?}").contains(&Key::text(&[7; 32])));
    }
}
