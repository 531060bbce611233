//! Brings push notifications to those who asked for them.
//!
//! A task's events are its outbox: each config remembers the last one that was taken. They are brought in order, one at a
//! time for each config; one that fails is tried again, later and later, and given up in the end. What was given up is
//! listed. A config whose access token has ended is removed, and nothing more is brought to it.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use http::{HeaderName, HeaderValue, Method, Uri, header};
use rialto_a2a_wire::{answer, delivery, task::StreamEvent, wire::Wire};
use rialto_edge::fetch::{Fetch, Request};
use rialto_model::{
    card::Dialect,
    clock::Clock,
    credential::Secret,
    event::Event,
    ids::fresh,
    push::{Login, Push},
    store::{Store, StoreError},
    task::Task,
    webhook::Lease,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{render, service::Service};

/// How often to look for something to bring, while there is somebody to bring it to.
const LOOK: Duration = Duration::from_millis(250);

/// How often otherwise: another process may have been asked.
const IDLE: Duration = Duration::from_secs(5);

/// How long it is taken for granted that a config's access token has not expired. Revocation is noticed at once.
const TOKEN_TRUST: Duration = Duration::from_secs(2);

/// How long one delivery may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long a config is ours. Longer than all that is brought in one go can take.
const LEASE: Duration = Duration::from_secs(600);

/// So many events are brought before somebody else's turn.
const IN_ONE_GO: usize = 32;

/// So many configs are served at once.
const AT_ONCE: usize = 16;

/// After so many failures it is given up.
const MOST_FAILURES: u32 = 10;

const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// What a receiver says is of no interest; it is read so that the connection can be used again.
const MOST_READ: usize = 64 * 1024;

/// When a config's access token was last found to count.
struct TokenCheck {
    generation: u64,
    at: Instant,
}

/// Brings push notifications.
pub struct Pusher {
    service: Arc<Service>,
    store: Arc<dyn Store>,
    fetch: Arc<dyn Fetch>,
    clock: Arc<dyn Clock>,
    holder: String,
}

// === impl Pusher ===

impl Pusher {
    pub(crate) fn new(
        service: Arc<Service>,
        store: Arc<dyn Store>,
        fetch: Arc<dyn Fetch>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { service, store, fetch, clock, holder: fresh() }
    }

    /// Brings what there is to bring until it is told to stop.
    pub async fn run(self, stop: CancellationToken) {
        let (mut is_busy, mut checked) = (true, None);
        while !stop.is_cancelled() {
            self.remove_ended(&mut checked).await;
            tokio::select! {
                () = stop.cancelled() => return,
                served = self.round() => is_busy = match served {
                    // As long as calls run, something may happen to tell of.
                    Ok(served) => served > 0 || is_busy && self.service.engine.in_flight() > 0,
                    Err(error) => {
                        tracing::error!("push notifications could not be looked for: {error}");
                        false
                    }
                },
            }
            let pause = if is_busy { LOOK } else { IDLE };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.service.asked_to_push.notified() => is_busy = true,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Serves everybody who has something to hear, and answers how many that were.
    async fn round(&self) -> Result<usize, StoreError> {
        if self.service.engine.is_draining() {
            // Another node brings them.
            return Ok(0);
        }
        let now = self.clock.now();
        let until = now.checked_add(LEASE).unwrap_or(now);
        let lease = Lease { holder: self.holder.clone(), now, until };
        let due = self.store.due_pushes(&lease, AT_ONCE).await?;
        let served = due.len();
        stream::iter(due).for_each_concurrent(AT_ONCE, |push| self.serve(push)).await;
        Ok(served)
    }

    /// Removes the configs of access tokens that have ended, if some may have since the last time.
    async fn remove_ended(&self, checked: &mut Option<TokenCheck>) {
        let generation = self.service.engine.generation();
        if checked.as_ref().is_some_and(|check| check.is_fresh(generation)) {
            return;
        }
        *checked = Some(TokenCheck { generation, at: Instant::now() });
        if let Err(failure) = self.service.engine.remove_ended_pushes().await {
            tracing::error!("push notification configs of ended tokens could not be removed: {failure}");
        }
    }

    /// Whether a config's access token still counts. Nothing is delivered while that cannot be told.
    async fn is_authorized(&self, push: &Push, checked: &mut Option<TokenCheck>) -> bool {
        let generation = self.service.engine.generation();
        if push.created_with.is_none() || checked.as_ref().is_some_and(|check| check.is_fresh(generation)) {
            return true;
        }
        let counts = self.service.engine.may_go_on(push.created_with.as_ref()).await.unwrap_or(false);
        *checked = counts.then(|| TokenCheck { generation, at: Instant::now() });
        counts
    }

    /// Brings what one config has not heard, and writes down how far that came.
    async fn serve(&self, mut push: Push) {
        if let Err(error) = self.bring_all(&mut push).await {
            tracing::error!(task.id = %push.task, "task {} could not be read to be told of: {error}", push.task);
        }
        match self.store.note_push(&push, &self.holder).await {
            Ok(true) => {}
            Ok(false) => tracing::debug!(task.id = %push.task, "a push notification config is gone"),
            Err(error) => {
                tracing::error!(task.id = %push.task, "how far it was told is not written down: {error}");
            }
        }
    }

    async fn bring_all(&self, push: &mut Push) -> Result<(), StoreError> {
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
            if brought >= IN_ONE_GO {
                break;
            }
        }
        Ok(())
    }

    fn failed(&self, push: &mut Push, why: String) {
        let standing = &mut push.standing;
        standing.failures += 1;
        standing.is_dead = standing.failures >= MOST_FAILURES;
        let wait = FIRST_WAIT.saturating_mul(1 << (standing.failures - 1).min(16)).min(LONGEST_WAIT);
        standing.next_attempt_at = self.clock.now().checked_add(wait).ok();
        if standing.is_dead {
            tracing::warn!(task.id = %push.task, "push notifications of task {} are given up: {why}", push.task);
        }
        standing.last_error = Some(why);
    }

    /// What proves that a body comes from us, if we sign.
    fn token(&self, body: &str) -> Result<Option<String>, String> {
        let Some(signer) = &self.service.config.signer else { return Ok(None) };
        let token = delivery::token(signer, &fresh(), self.clock.now().as_second(), body.as_bytes());
        token.map(Some).map_err(|error| format!("it could not be signed: {error}"))
    }

    async fn bring(&self, push: &Push, body: String) -> Result<(), String> {
        let uri: Uri = push.url.parse().map_err(|_| "its address is not valid".to_owned())?;
        let kind = if push.dialect == Dialect::V10 { "application/a2a+json" } else { "application/json" };
        let mut request = Request::new(Method::POST, uri)
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
            // 0.1 has one place for it, unless its receiver wants to see something else there.
            let is_shown = push.dialect == Dialect::V01 && authorization.is_none();
            request = if is_shown {
                request.header(header::AUTHORIZATION, secret(&format!("Bearer {token}"))?)
            } else {
                request.header(HeaderName::from_static(delivery::HEADER), secret(&token)?)
            };
        }
        request.body = body.into();
        request.reach = self.service.config.push_reach();
        (request.patience, request.total, request.limit) = (PATIENCE, Some(PATIENCE), Some(MOST_READ));
        let answer =
            self.fetch.fetch(request).await.map_err(|error| format!("it could not be reached: {error}"))?;
        let status = answer.status;
        // Whatever it is, and whether or not it comes whole: the status was said.
        let _ = answer.body.read().await;
        if status.is_success() { Ok(()) } else { Err(format!("it answered with HTTP status {status}")) }
    }
}

// === impl TokenCheck ===

impl TokenCheck {
    /// Whether nothing can have ended since, but for what expired a moment ago.
    fn is_fresh(&self, generation: u64) -> bool {
        self.generation == generation && self.at.elapsed() < TOKEN_TRUST
    }
}

/// Whether a receiver is told of it: its caller knows what it said itself.
const fn is_told(event: &Event) -> bool {
    !matches!(event, Event::Answered { .. })
}

/// What is posted: one event in 1.0, the whole task before.
fn body(dialect: Dialect, task: &Task, event: &StreamEvent) -> String {
    match dialect {
        Dialect::V10 => answer::encode_stream_event(Wire::V10, event).text(),
        Dialect::V03 | Dialect::V02 => {
            answer::encode_task(Wire::V03, &render::task(task.clone(), None)).text()
        }
        Dialect::V01 => answer::encode_task(Wire::V01, &render::task(task.clone(), None)).text(),
    }
}

/// What is shown at the door: the first scheme it takes, or a bearer token.
fn authorization(login: &Login) -> Option<String> {
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
