//! `GET /api/v1/events`: what comes on record in the caller's org, as it comes.
//!
//! A stream ends by itself after a while. Its client comes again through the gate, where a token that was revoked
//! meanwhile is refused, and goes on where it was.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    extract::{Request, State},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
    routing::get,
};
use futures::{Stream, StreamExt, stream};
use http::{HeaderMap, StatusCode};
use rialto_console::admin::audit::Record;
use rialto_engine::Engine;
use rialto_hooks::live::{Live, News, Watch};
use rialto_model::call::Caller;
use rialto_policy::Action;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::program::Program;

/// Where it is.
pub(crate) const PATH: &str = "/api/v1/events";

/// How often a client hears that the stream is alive when nothing happens.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How long a stream lasts.
const LIFE: Duration = Duration::from_secs(600);

/// How many may watch at once.
const WATCHERS: usize = 64;

#[derive(Clone)]
struct Events {
    engine: Engine,
    live: Live,
    seats: Arc<Semaphore>,
    stop: CancellationToken,
}

/// The stream's address.
pub(crate) fn router(program: &Program) -> Router {
    let events = Events {
        engine: program.engine.clone(),
        live: Live::new(Arc::clone(&program.store)),
        seats: Arc::new(Semaphore::new(WATCHERS)),
        stop: program.stop().clone(),
    };
    Router::new().route(PATH, get(watch)).with_state(events)
}

async fn watch(State(events): State<Events>, request: Request) -> Response {
    let Some(caller) = request.extensions().get::<Caller>().cloned() else {
        return refused(StatusCode::UNAUTHORIZED, "unauthenticated", "this request does not say who calls");
    };
    let Ok(seen) = place(request.headers()) else {
        return refused(StatusCode::BAD_REQUEST, "invalid", "Last-Event-ID must be the number of a record");
    };
    if let Err(failure) = events.engine.sync().await {
        return refused(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &failure.message);
    }
    if let Err(why) = events.allows(&caller) {
        return refused(StatusCode::FORBIDDEN, "denied", &why);
    }
    let Ok(seat) = Arc::clone(&events.seats).try_acquire_owned() else {
        let message = format!("{WATCHERS} watch already; try again later");
        return refused(StatusCode::SERVICE_UNAVAILABLE, "busy", &message);
    };
    match events.live.watch(caller.scope.org.clone(), seen).await {
        Ok(watch) => Sse::new(events.told(watch, caller, seat))
            .keep_alive(KeepAlive::new().interval(HEARTBEAT))
            .into_response(),
        Err(error) => refused(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &error.to_string()),
    }
}

// === impl Events ===

impl Events {
    /// Whether the caller may see what everybody in its org did.
    fn allows(&self, caller: &Caller) -> Result<(), String> {
        self.engine.may_administer(caller, Action::AdminAudit).map_err(|denied| denied.message)
    }

    /// The events of one watcher, for as long as it may watch.
    fn told(
        self,
        watch: Watch,
        caller: Caller,
        seat: OwnedSemaphorePermit,
    ) -> impl Stream<Item = Result<Event, Infallible>> + Send {
        let stop = self.stop.clone();
        let over = async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(LIFE) => {}
            }
        };
        let told =
            stream::unfold((self, watch, caller, seat), |(events, mut watch, caller, seat)| async move {
                let news = watch.next().await.ok()?;
                events.allows(&caller).ok()?;
                Some((Ok(event_of(&news)), (events, watch, caller, seat)))
            });
        told.take_until(Box::pin(over))
    }
}

fn event_of(news: &News) -> Event {
    match news {
        News::Record(record) => {
            let data = serde_json::to_string(&Record::of(record)).unwrap_or_default();
            Event::default().id(record.record.to_string()).event(record.event.phase.as_str()).data(data)
        }
        News::Missed(missed) => {
            Event::default().event("missed").data(json!({ "missed": missed }).to_string())
        }
    }
}

/// The record that was seen last.
fn place(headers: &HeaderMap) -> Result<Option<u64>, ()> {
    let Some(id) = headers.get("last-event-id") else { return Ok(None) };
    id.to_str().ok().and_then(|id| id.parse().ok()).map(Some).ok_or(())
}

/// Who asks, if it may do this.
pub(crate) async fn admit(
    engine: &Engine,
    caller: Option<Caller>,
    action: Action,
) -> Result<Caller, Response> {
    let Some(caller) = caller else {
        let why = "this request does not say who calls";
        return Err(refused(StatusCode::UNAUTHORIZED, "unauthenticated", why));
    };
    if let Err(failure) = engine.sync().await {
        return Err(refused(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &failure.message));
    }
    let denied = engine.may_administer(&caller, action);
    denied.map_err(|denied| refused(StatusCode::FORBIDDEN, "denied", &denied.message))?;
    Ok(caller)
}

pub(crate) fn refused(status: StatusCode, error: &str, message: &str) -> Response {
    (status, Json(json!({ "error": error, "message": message }))).into_response()
}
