//! `GET /api/v1/events`: what comes on record, as it comes, and what has changed.
//!
//! Whoever may read the audit trail sees the records of its org, everybody else who may call those of its own calls. Changes are told by
//! what has changed, once for many of them, to those who may look at it.
//!
//! A stream ends by itself after a while. Its client comes again through the gate, where a token that was revoked
//! meanwhile is refused, and goes on where it was.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use axum::response::{
    IntoResponse, Response,
    sse::{Event, KeepAlive, Sse},
};
use futures::{Stream, StreamExt, stream};
use rialto_api_types::audit::AuditRecord;
use rialto_edge::streams::StreamSlot;
use rialto_hooks::live::{News, Watch};
use rialto_model::{
    call::Caller,
    failure::{Failure, FailureKind},
    json::Json,
    store::StoredAuditEvent,
    token_scopes::{TokenScope, TokenScopes},
};
use serde_json::json;

use super::asking::Asking;
use crate::{Console, changes::Watcher, console::store_failure};

/// How often a client hears that the stream is alive when nothing happens.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How long a stream lasts.
const LIFE: Duration = Duration::from_secs(600);

/// So many records are read again for somebody who sees only its own calls: all of them are looked at to find those.
const LATELY: u64 = 10_000;

/// One who watches.
struct Watching {
    console: Console,
    caller: Caller,
    /// Whether it sees what everybody in its org did.
    sees_all: bool,
    /// What comes on record, for whoever may call.
    records: Option<Watch>,
    changes: Watcher,
    due: VecDeque<Event>,
    _slot: StreamSlot,
}

pub(super) async fn watch(asking: Asking) -> Result<Response, Failure> {
    let seen = place(&asking)?;
    let (console, caller) = (asking.console, asking.caller);
    if !caller.rights.meet(TokenScopes::ALL) {
        return Err(TokenScope::Call.lacking());
    }
    console.engine().sync().await?;
    let slot = console.parts().streams.take(&caller)?;
    let sees_all = console.sees_all(&caller);
    let most = if sees_all { u64::MAX } else { LATELY };
    let records = match Console::need(&caller, TokenScope::Call) {
        Ok(()) => {
            let watch = console.live().watch_lately(caller.scope.org.clone(), seen, most).await;
            Some(watch.map_err(store_failure)?)
        }
        Err(_) => None,
    };
    let changes = console.changes().watch(&console).await?;
    let stop = console.parts().stop.clone();
    let watching =
        Watching { console, caller, sees_all, records, changes, due: VecDeque::new(), _slot: slot };
    let over = async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(LIFE) => {}
        }
    };
    let told = watching.told().take_until(Box::pin(over));
    Ok(Sse::new(told).keep_alive(KeepAlive::new().interval(HEARTBEAT)).into_response())
}

// === impl Watching ===

impl Watching {
    /// All that it is told, for as long as it may watch.
    fn told(self) -> impl Stream<Item = Result<Event, Infallible>> + Send {
        stream::unfold(self, |mut watching| async move { Some((Ok(watching.next().await?), watching)) })
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.due.pop_front() {
                return Some(event);
            }
            let records = self.records.as_mut();
            tokio::select! {
                news = next_record(records) => {
                    let news = news?;
                    // Whoever may no longer see everything comes again, and sees its own.
                    if self.sees_all && !self.console.sees_all(&self.caller) {
                        return None;
                    }
                    self.due.extend(self.event_of(&news));
                }
                changed = self.changes.next(&self.console, &self.caller) => {
                    self.due.extend(changed.into_iter().map(change));
                }
            }
        }
    }

    /// The news as this caller may have them.
    fn event_of(&self, news: &News) -> Option<Event> {
        match news {
            News::Record(record) if self.sees_all || is_own(&self.caller, record) => {
                let data = Json::encode(&AuditRecord::from(&**record));
                let (id, phase) = (record.record.to_string(), record.event.phase.as_str());
                Some(Event::default().id(id).event(phase).data(data.get()))
            }
            News::Record(_) => None,
            News::Missed(missed) => {
                // How much others do is theirs to know.
                let data = if self.sees_all { json!({ "missed": missed }) } else { json!({}) };
                Some(Event::default().event("missed").data(data.to_string()))
            }
        }
    }
}

async fn next_record(records: Option<&mut Watch>) -> Option<News> {
    match records {
        Some(watch) => watch.next().await.ok(),
        None => std::future::pending().await,
    }
}

fn change(what: &str) -> Event {
    Event::default().event("change").data(json!({ "what": what }).to_string())
}

fn is_own(caller: &Caller, record: &StoredAuditEvent) -> bool {
    &*record.event.verb.caller == caller.id.as_str()
}

/// The record that was seen last.
fn place(asking: &Asking) -> Result<Option<u64>, Failure> {
    let Some(id) = asking.headers.get("last-event-id") else { return Ok(None) };
    let wrong = || Failure::new(FailureKind::Invalid, "Last-Event-ID must be the number of a record");
    id.to_str().ok().and_then(|id| id.parse().ok()).map(Some).ok_or_else(wrong)
}
