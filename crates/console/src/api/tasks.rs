//! `/api/v1/tasks`.

use std::{convert::Infallible, time::Duration};

use axum::response::{
    IntoResponse, Response,
    sse::{Event as SseEvent, KeepAlive, Sse},
};
use futures::{Stream, StreamExt, stream};
use http::{HeaderMap, StatusCode, header};
use rialto_api_types::tasks::{
    AcceptedReply, NewCall, TaskDetail, TaskEvents, TaskPage, TaskReply, UndeliveredPushes,
};
use rialto_engine::Following;
use rialto_model::{
    event::RecordedEvent,
    failure::{Failure, FailureKind},
    ids::TaskId,
    json::Json,
    message::Part,
    task::TaskState,
};

use super::{asking::Asking, good, told};
use crate::admin::{
    calling, inspect,
    tasks::{self, Filter},
};

/// How often a client hears that a stream is alive when nothing happens.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How long a stream lasts; its client comes again by itself.
const LIFE: Duration = Duration::from_secs(600);

/// How many push notifications that were given up are told when nobody says, and at most.
const UNDELIVERED: usize = 50;
const MOST_UNDELIVERED: usize = 10_000;

pub(super) async fn list(asking: Asking) -> Result<Response, Failure> {
    let filter = Filter {
        agent: asking.query("agent").map(str::to_owned),
        state: asking.read_query("state", TaskState::parse)?,
        open: asking.is_set("open"),
        own: asking.is_set("own"),
        limit: asking.limit()?,
        cursor: asking.query("cursor").map(TaskId::from),
    };
    let page = tasks::list(&asking.console, &asking.caller, &filter).await?;
    good(&TaskPage { tasks: page.tasks, next: page.next })
}

pub(super) async fn begin(asking: Asking) -> Result<Response, Failure> {
    let new: NewCall = asking.json()?;
    let started = calling::begin(&asking.console, &asking.caller, &new).await?;
    Ok(told(StatusCode::ACCEPTED, &started))
}

pub(super) async fn show(asking: Asking) -> Result<Response, Failure> {
    let (console, caller, id) = (&asking.console, &asking.caller, asking.part("id"));
    let task = if asking.is_set("ask") {
        tasks::look(console, caller, id).await?
    } else {
        tasks::show(console, caller, id).await?.0
    };
    good(&TaskDetail::from(task))
}

pub(super) async fn undelivered(asking: Asking) -> Result<Response, Failure> {
    let limit = asking.limit()?.unwrap_or(UNDELIVERED).min(MOST_UNDELIVERED);
    let found = tasks::undelivered(&asking.console, &asking.caller, limit).await?;
    good(&UndeliveredPushes { undelivered: found.iter().map(tasks::undelivered_push).collect() })
}

pub(super) async fn events(asking: Asking) -> Result<Response, Failure> {
    let after = asking.read_query("after", |text| text.parse::<u64>().ok())?.unwrap_or(0);
    let (task, mut events) = tasks::show(&asking.console, &asking.caller, asking.part("id")).await?;
    if !wants_stream(&asking.headers) {
        events.retain(|recorded| recorded.seq > after);
        return good(&TaskEvents { events });
    }
    let seen =
        asking.headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok()).unwrap_or(after);
    events.retain(|recorded| recorded.seq > seen);
    let version = task.head.version;
    let following = if task.head.state.is_terminal() {
        None
    } else {
        Some(tasks::follow(&asking.console, &asking.caller, asking.part("id"), version).await?)
    };
    let told =
        stream::iter(events.into_iter().map(|recorded| Ok(event_of(&recorded)))).chain(later(following));
    let parts = asking.console.parts();
    let (slot, stop) = (parts.streams.take(&asking.caller)?, parts.stop.clone());
    let over = async move {
        let _slot = slot;
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(LIFE) => {}
        }
    };
    let told = told.take_until(Box::pin(over));
    Ok(Sse::new(told).keep_alive(KeepAlive::new().interval(HEARTBEAT)).into_response())
}

pub(super) async fn inspect(asking: Asking) -> Result<Response, Failure> {
    good(&inspect::inspect(&asking.console, &asking.caller, asking.part("id")).await?)
}

pub(super) async fn cancel(asking: Asking) -> Result<Response, Failure> {
    let task = tasks::cancel(&asking.console, &asking.caller, asking.part("id")).await?;
    good(&TaskDetail::from(task))
}

pub(super) async fn say(asking: Asking) -> Result<Response, Failure> {
    let part = match asking.json()? {
        TaskReply { text: Some(text), data: None } => Part::text(text),
        TaskReply { text: None, data: Some(data) } => Part::data(data),
        _ => return Err(Failure::new(FailureKind::Invalid, "say one thing: `text`, or `data`")),
    };
    let task = tasks::say(&asking.console, &asking.caller, asking.part("id"), part).await?;
    Ok(told(StatusCode::ACCEPTED, &AcceptedReply { task_id: task }))
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepts.is_some_and(|accepts| accepts.contains("text/event-stream"))
}

/// What happens from now on, to the task's end.
fn later(following: Option<Following>) -> impl Stream<Item = Result<SseEvent, Infallible>> + Send {
    let batches = stream::unfold(following, |following| async move {
        let mut following = following?;
        let news = following.next().await.ok()?;
        let is_over = news.iter().any(|recorded| is_end(&recorded.event));
        Some((news, (!is_over).then_some(following)))
    });
    batches.flat_map(|news| stream::iter(news.into_iter().map(|recorded| Ok(event_of(&recorded)))))
}

const fn is_end(event: &rialto_model::event::Event) -> bool {
    matches!(TaskState::Working.after(event), Some(state) if state.is_terminal())
}

fn event_of(recorded: &RecordedEvent) -> SseEvent {
    let data = Json::encode(recorded);
    SseEvent::default().id(recorded.seq.to_string()).event(recorded.event.name()).data(data.get())
}
