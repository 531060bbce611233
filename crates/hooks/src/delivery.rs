//! One event, brought to its receiver once.

use std::{sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822::DateTimeParser};
use rialto_edge::{
    address::Reach,
    fetch::{Fetch, FetchError, Request, Response},
};
use rialto_model::{
    agent::{Credential, Secret},
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

/// Reads a secret from where it is kept; none when there is nothing to read.
pub type Secrets = Arc<dyn Fn(&Credential) -> Option<Secret> + Send + Sync>;

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
        let request = match self.request(webhook, event, now) {
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
        event: &CloudEvent<'_, T>,
        now: Timestamp,
    ) -> Result<Request, String> {
        let secret = (self.secrets)(&webhook.secret).ok_or_else(|| missing(&webhook.secret))?;
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

fn missing(secret: &Credential) -> String {
    match secret {
        Credential::Env(name) => {
            format!("its key is missing: set the environment variable {name} where `rialto serve` runs")
        }
        Credential::File(path) => {
            format!(
                "its key is missing: {path} cannot be read or is empty; remove the webhook and add it again"
            )
        }
        Credential::Held(_) => "its key is empty".to_owned(),
    }
}
