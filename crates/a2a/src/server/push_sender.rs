//! Sender of push notifications.
//!
//! A task's events are its outbox: each config stores the number of the last delivered one. Events are delivered in order, one at a time
//! per config; a failed delivery is retried with backoff, and abandoned after too many failures, which is logged. A config whose access
//! token has ended is removed.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use http::{HeaderName, HeaderValue, Method, Uri, header};
use rialto_a2a_codec::{answer, delivery, task::StreamEvent, wire::Wire};
use rialto_http_client::fetch::{Fetch, FetchRequest};
use rialto_model::{
    card::Dialect,
    clock::Clock,
    credential::Secret,
    event::Event,
    ids::fresh,
    push::{PushLogin, PushSubscription},
    store::{Store, StoreError},
    task::Task,
    webhook::DeliveryLease,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{render, service::Service};

/// Poll interval while there are configs.
const ACTIVE_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Poll interval otherwise: another process may have added one.
const IDLE_POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Time for which a check of a config's access token is cached. Revocation is noticed at once.
const TOKEN_TRUST: Duration = Duration::from_secs(2);

/// Timeout of one delivery.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(15);

/// Lease of a config. Longer than one batch of deliveries can take.
const LEASE_DURATION: Duration = Duration::from_secs(600);

/// Maximum number of events delivered before the next config.
const MAX_EVENTS_PER_ROUND: usize = 32;

/// Maximum number of configs served concurrently.
const MAX_CONCURRENT_CONFIGS: usize = 16;

/// Number of failures after which a delivery is abandoned.
const MAX_FAILURES: u32 = 10;

const INITIAL_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(300);

/// Maximum bytes read of a receiver's response. It is read only so that the connection can be reused.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// Last successful check of a config's access token.
struct TokenCheck {
    generation: u64,
    at: Instant,
}

/// Sender of push notifications.
pub struct PushSender {
    service: Arc<Service>,
    store: Arc<dyn Store>,
    fetch: Arc<dyn Fetch>,
    clock: Arc<dyn Clock>,
    holder: String,
}

// === impl Pusher ===

impl PushSender {
    pub(crate) fn new(
        service: Arc<Service>,
        store: Arc<dyn Store>,
        fetch: Arc<dyn Fetch>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { service, store, fetch, clock, holder: fresh() }
    }

    /// Delivers push notifications until stopped.
    pub async fn run(self, stop: CancellationToken) {
        let (mut is_busy, mut checked) = (true, None);
        while !stop.is_cancelled() {
            self.remove_ended(&mut checked).await;
            tokio::select! {
                () = stop.cancelled() => return,
                served = self.round() => is_busy = match served {
                    // While calls run, there may be new events.
                    Ok(served) => served > 0 || is_busy && self.service.engine.running().count() > 0,
                    Err(error) => {
                        tracing::error!("due push notifications could not be read: {error}");
                        false
                    }
                },
            }
            let pause = if is_busy { ACTIVE_POLL_INTERVAL } else { IDLE_POLL_INTERVAL };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.service.asked_to_push.notified() => is_busy = true,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Serves all configs with new events, and returns their number.
    async fn round(&self) -> Result<usize, StoreError> {
        if self.service.engine.nodes().is_draining() {
            // Another node serves them.
            return Ok(0);
        }
        let now = self.clock.now();
        let until = now.checked_add(LEASE_DURATION).unwrap_or(now);
        let lease = DeliveryLease { holder: self.holder.clone(), now, until };
        let due = self.store.due_pushes(&lease, MAX_CONCURRENT_CONFIGS).await?;
        let served = due.len();
        stream::iter(due).for_each_concurrent(MAX_CONCURRENT_CONFIGS, |push| self.serve(push)).await;
        Ok(served)
    }

    /// Removes the configs of access tokens that have ended, if some may have since the last check.
    async fn remove_ended(&self, checked: &mut Option<TokenCheck>) {
        let generation = self.service.engine.tokens().generation();
        if checked.as_ref().is_some_and(|check| check.is_fresh(generation)) {
            return;
        }
        *checked = Some(TokenCheck { generation, at: Instant::now() });
        if let Err(failure) = self.service.engine.push_configs().remove_ended().await {
            tracing::error!("push notification configs of ended tokens could not be removed: {failure}");
        }
    }

    /// True while a config's access token is valid. Nothing is delivered while that is unknown.
    async fn is_authorized(&self, push: &PushSubscription, checked: &mut Option<TokenCheck>) -> bool {
        let generation = self.service.engine.tokens().generation();
        if push.created_with.is_none() || checked.as_ref().is_some_and(|check| check.is_fresh(generation)) {
            return true;
        }
        let counts = self.service.engine.tokens().is_valid(push.created_with.as_ref()).await.unwrap_or(false);
        *checked = counts.then(|| TokenCheck { generation, at: Instant::now() });
        counts
    }

    /// Delivers the new events of one config, and stores its progress.
    async fn serve(&self, mut push: PushSubscription) {
        if let Err(error) = self.bring_all(&mut push).await {
            tracing::error!(task.id = %push.task, "task {} could not be read for its push notification: {error}", push.task);
        }
        match self.store.record_push_delivery(&push, &self.holder).await {
            Ok(true) => {}
            Ok(false) => tracing::debug!(task.id = %push.task, "a push notification config is gone"),
            Err(error) => {
                tracing::error!(task.id = %push.task, "delivery progress could not be stored: {error}");
            }
        }
    }

    async fn bring_all(&self, push: &mut PushSubscription) -> Result<(), StoreError> {
        let Some(head) = self.store.task(&push.scope, push.task.as_str()).await? else { return Ok(()) };
        let events = self.store.events(&push.task, 0).await?;
        let mut task = Task::new(head.as_opened());
        let (mut brought, mut checked) = (0, None);
        for recorded in &events {
            task.apply(&recorded.event, recorded.at);
            if recorded.seq <= push.standing.told {
                continue;
            }
            let event = render::event(&task.head, recorded, task.head.state);
            if let Some(event) = event.filter(|_| is_told(&recorded.event)) {
                if !self.is_authorized(push, &mut checked).await {
                    return Ok(());
                }
                let body = body(push.dialect, &task, &event);
                if let Err(why) = self.bring(push, body).await {
                    self.failed(push, why);
                    return Ok(());
                }
                brought += 1;
            }
            push.standing.told = recorded.seq;
            (push.standing.failures, push.standing.next_attempt_at, push.standing.last_error) =
                (0, None, None);
            if brought >= MAX_EVENTS_PER_ROUND {
                break;
            }
        }
        Ok(())
    }

    fn failed(&self, push: &mut PushSubscription, why: String) {
        let standing = &mut push.standing;
        standing.failures += 1;
        standing.is_dead = standing.failures >= MAX_FAILURES;
        let wait = INITIAL_BACKOFF.saturating_mul(1 << (standing.failures - 1).min(16)).min(MAX_BACKOFF);
        standing.next_attempt_at = self.clock.now().checked_add(wait).ok();
        if standing.is_dead {
            tracing::warn!(task.id = %push.task, "push notifications of task {} are abandoned: {why}", push.task);
        }
        standing.last_error = Some(why);
    }

    /// Signed token for a body, if signing is configured.
    fn token(&self, body: &str) -> Result<Option<String>, String> {
        let Some(signer) = &self.service.config.signer else { return Ok(None) };
        let token = delivery::token(signer, &fresh(), self.clock.now().as_second(), body.as_bytes());
        token.map(Some).map_err(|error| format!("it could not be signed: {error}"))
    }

    async fn bring(&self, push: &PushSubscription, body: String) -> Result<(), String> {
        let uri: Uri = push.url.parse().map_err(|_| "its address is not valid".to_owned())?;
        let kind = if push.dialect == Dialect::V10 { "application/a2a+json" } else { "application/json" };
        let mut request = FetchRequest::new(Method::POST, uri)
            .header(header::CONTENT_TYPE, HeaderValue::from_static(kind))
            .header(HeaderName::from_static("a2a-version"), HeaderValue::from_static(push.dialect.as_str()));
        if let Some(token) = &push.token {
            request =
                request.header(HeaderName::from_static("x-a2a-notification-token"), secret(token.expose())?);
        }
        let authorization = push.login.as_ref().and_then(authorization);
        if let Some(authorization) = &authorization {
            request = request.header(header::AUTHORIZATION, secret(authorization)?);
        }
        if let Some(token) = self.token(&body)? {
            // 0.1 has one header for it, unless its receiver expects other credentials there.
            let is_shown = push.dialect == Dialect::V01 && authorization.is_none();
            request = if is_shown {
                request.header(header::AUTHORIZATION, secret(&format!("Bearer {token}"))?)
            } else {
                request.header(HeaderName::from_static(delivery::HEADER), secret(&token)?)
            };
        }
        request.body = body.into();
        request.reach = self.service.config.push_reach();
        (request.patience, request.total, request.limit) =
            (DELIVERY_TIMEOUT, Some(DELIVERY_TIMEOUT), Some(MAX_RESPONSE_BYTES));
        let answer =
            self.fetch.fetch(request).await.map_err(|error| format!("it could not be reached: {error}"))?;
        let status = answer.status;
        // Read in any case, even if incomplete: the status has been received.
        let _ = answer.body.read().await;
        if status.is_success() { Ok(()) } else { Err(format!("it answered with HTTP status {status}")) }
    }
}

// === impl TokenCheck ===

impl TokenCheck {
    /// True when no token can have ended since, except by expiry a moment ago.
    fn is_fresh(&self, generation: u64) -> bool {
        self.generation == generation && self.at.elapsed() < TOKEN_TRUST
    }
}

/// True for events that a receiver gets: not the caller's own messages.
const fn is_told(event: &Event) -> bool {
    !matches!(event, Event::Answered { .. })
}

/// Body of a delivery: one event in 1.0, the whole task before.
fn body(dialect: Dialect, task: &Task, event: &StreamEvent) -> String {
    match dialect {
        Dialect::V10 => answer::encode_stream_event(Wire::V10, event).text(),
        Dialect::V03 | Dialect::V02 => {
            answer::encode_task(Wire::V03, &render::task(task.clone(), None)).text()
        }
        Dialect::V01 => answer::encode_task(Wire::V01, &render::task(task.clone(), None)).text(),
    }
}

/// `Authorization` header: the first supported scheme, or a bearer token.
fn authorization(login: &PushLogin) -> Option<String> {
    let credentials = login.credentials.as_ref().map(Secret::expose)?;
    let scheme = login.schemes.first().map_or("Bearer", String::as_str);
    Some(format!("{scheme} {credentials}"))
}

fn secret(text: &str) -> Result<HeaderValue, String> {
    let mut value =
        HeaderValue::from_str(text).map_err(|_| "what it is shown does not fit in a header".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}
