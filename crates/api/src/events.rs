//! `GET /api/v1/events`: stream of audit records and changes.
//!
//! With permission to read the audit log, a caller gets the records of its org; with the right to call, it gets those of its own calls.
//! Changes name the kind of resource that changed, and are combined. A caller gets those of resources that it is allowed to see.
//!
//! A stream ends after a while. Its client reconnects, is authenticated again, and continues after the last record.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use axum::response::{
    IntoResponse, Response,
    sse::{Event, KeepAlive, Sse},
};
use futures::{FutureExt, Stream, StreamExt, stream};
use rialto_admin::{Administration, change_feed::ChangeWatcher, require_right_or_admin, store_failure};
use rialto_api_types::audit::AuditRecord;
use rialto_http_server::stream_limits::StreamSlot;
use rialto_model::{
    call::Caller,
    failure::{Failure, FailureKind},
    json::Json,
    store::StoredAuditEvent,
    token_scopes::{TokenScope, TokenScopes},
};
use rialto_webhooks::audit_feed::{FeedItem, FeedSubscription};
use serde_json::json;

use super::{
    request::RouteRequest,
    routes::{Route, get, handler},
};

/// Interval of keep-alive comments on an idle stream.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);

/// Maximum duration of a stream.
const STREAM_LIFETIME: Duration = Duration::from_secs(600);

/// Maximum number of records that are searched for a reconnecting caller that sees only its own calls.
const MAX_REPLAYED_RECORDS: u64 = 10_000;

/// Subscription of one client.
struct EventSubscription {
    admin: Administration,
    caller: Caller,
    /// Whether it gets the records of its whole org.
    sees_all: bool,
    /// Audit records, for callers with the right to call.
    records: Option<FeedSubscription>,
    changes: ChangeWatcher,
    pending: VecDeque<Event>,
    _slot: StreamSlot,
}

/// Routes of this resource.
pub(super) const ROUTES: &[Route] = &[get(
    "/api/v1/events",
    "Stream of audit records and changes (text/event-stream)",
    "Server-sent events",
    handler!(watch),
)];

pub(super) async fn watch(request: RouteRequest) -> Result<Response, Failure> {
    let last_seen = last_event_id(&request)?;
    let (admin, caller) = (request.admin, request.caller);
    if !caller.rights.meet(TokenScopes::ALL) {
        return Err(TokenScope::Call.lacking());
    }
    admin.engine().policies().sync().await?;
    let slot = admin.deps().streams.acquire(&caller)?;
    let sees_all = admin.sees_all_callers(&caller);
    let max_replayed = if sees_all { u64::MAX } else { MAX_REPLAYED_RECORDS };
    let records = match require_right_or_admin(&caller, TokenScope::Call) {
        Ok(()) => {
            let watch =
                admin.audit_feed().subscribe_recent(caller.scope.org.clone(), last_seen, max_replayed).await;
            Some(watch.map_err(store_failure)?)
        }
        Err(_) => None,
    };
    let changes = admin.change_feed().watch(&admin).await?;
    let stop = admin.deps().stop.clone();
    let subscription = EventSubscription {
        admin,
        caller,
        sees_all,
        records,
        changes,
        pending: VecDeque::new(),
        _slot: slot,
    };
    let over = async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(STREAM_LIFETIME) => {}
        }
    };
    let stream = subscription.into_stream().take_until(Box::pin(over));
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(HEARTBEAT_INTERVAL)).into_response())
}

// === impl EventSubscription ===

impl EventSubscription {
    /// Stream of its events, until its permission ends.
    fn into_stream(self) -> impl Stream<Item = Result<Event, Infallible>> + Send {
        stream::unfold(self, |mut subscription| async move {
            Some((Ok(subscription.next().await?), subscription))
        })
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            let records = self.records.as_mut();
            tokio::select! {
                news = next_record(records) => {
                    let news = news?;
                    // A caller that lost the permission reconnects and gets its own records.
                    if self.sees_all && !self.admin.sees_all_callers(&self.caller) {
                        return None;
                    }
                    self.pending.extend(self.to_sse_event(&news));
                }
                changed = self.changes.next(&self.admin, &self.caller) => {
                    self.pending.extend(changed.into_iter().map(change_event));
                }
            }
        }
    }

    /// Event for a record, if the caller is allowed to see it.
    fn to_sse_event(&self, news: &FeedItem) -> Option<Event> {
        match news {
            FeedItem::Record(record) if self.sees_all || is_own(&self.caller, record) => {
                let data = Json::encode(&AuditRecord::from(&**record));
                let (id, phase) = (record.record.to_string(), record.event.phase.as_str());
                Some(Event::default().id(id).event(phase).data(data.get()))
            }
            FeedItem::Record(_) => None,
            FeedItem::Missed(missed) => {
                // The number of other callers' records is not disclosed.
                let data = if self.sees_all { json!({ "missed": missed }) } else { json!({}) };
                Some(Event::default().event("missed").data(data.to_string()))
            }
        }
    }
}

async fn next_record(records: Option<&mut FeedSubscription>) -> Option<FeedItem> {
    match records {
        Some(watch) => watch.next().await.ok(),
        None => std::future::pending().await,
    }
}

fn change_event(what: &str) -> Event {
    Event::default().event("change").data(json!({ "what": what }).to_string())
}

fn is_own(caller: &Caller, record: &StoredAuditEvent) -> bool {
    &*record.event.verb.caller == caller.id.as_str()
}

/// Number of the last record that the client has seen.
fn last_event_id(request: &RouteRequest) -> Result<Option<u64>, Failure> {
    let Some(id) = request.headers.get("last-event-id") else { return Ok(None) };
    let wrong = || Failure::new(FailureKind::Invalid, "Last-Event-ID must be the number of a record");
    id.to_str().ok().and_then(|id| id.parse().ok()).map(Some).ok_or_else(wrong)
}
