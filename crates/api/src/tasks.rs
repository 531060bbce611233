//! `/api/v1/tasks`.

use std::{convert::Infallible, time::Duration};

use axum::response::{
    IntoResponse, Response,
    sse::{Event as SseEvent, KeepAlive, Sse},
};
use futures::{FutureExt, Stream, StreamExt, stream};
use http::{HeaderMap, StatusCode, header};
use rialto_admin::{
    calls, inspection,
    tasks::{self, TaskQuery},
};
use rialto_api_types::{
    schema::schema_of,
    tasks::{AcceptedReply, NewCall, TaskDetail, TaskEvents, TaskPage, TaskReply, UndeliveredPushes},
};
use rialto_engine::TaskSubscription;
use rialto_model::{
    event::RecordedEvent,
    failure::{Failure, FailureKind},
    ids::TaskId,
    json::Json,
    message::Part,
    task::TaskState,
};

use super::{
    json_response, ok_json,
    request::RouteRequest,
    routes::{PAGED, Route, get, handler, post},
};

/// Interval of keep-alive comments on an idle stream.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);

/// Maximum duration of a stream; its client reconnects.
const STREAM_LIFETIME: Duration = Duration::from_secs(600);

/// Default and maximum number of undelivered push notifications in a response.
const DEFAULT_UNDELIVERED: usize = 50;
const MAX_UNDELIVERED: usize = 10_000;

/// Routes of this resource.
pub(super) const ROUTES: &[Route] = &[
    Route {
        query: &[
            ("agent", "Only tasks of this agent"),
            ("state", "Only tasks in this state"),
            ("open", "`true`: only active tasks"),
            ("own", "`true`: only your own"),
            PAGED[0],
            PAGED[1],
        ],
        ..get("/api/v1/tasks", "List tasks, newest first", "`tasks` and `next`", handler!(list))
    },
    post(
        "/api/v1/tasks",
        "Call a skill or an agent by name; the call continues in the background",
        Some(schema_of::<NewCall>),
        (202, "Id of the task, default timeout, and number of the event after which its events begin"),
        handler!(start),
    ),
    Route {
        query: &[PAGED[0]],
        ..get(
            "/api/v1/tasks/undelivered",
            "List push notifications that could not be delivered, newest first",
            "`undelivered`",
            handler!(undelivered),
        )
    },
    Route {
        query: &[("ask", "`true`: first get the state of your own active task from its agent")],
        ..get("/api/v1/tasks/{id}", "Show a task", "The task", handler!(show))
    },
    get(
        "/api/v1/tasks/{id}/inspect",
        "Inspect a call: request, policy decision, upstream call and timeline",
        "The call",
        handler!(inspect),
    ),
    Route {
        query: &[("after", "Only events after this number")],
        ..get(
            "/api/v1/tasks/{id}/events",
            "List the events of a task, or stream them with Accept: text/event-stream",
            "`events`",
            handler!(events),
        )
    },
    post("/api/v1/tasks/{id}/cancel", "Cancel a task", None, (200, "The task"), handler!(cancel)),
    post(
        "/api/v1/tasks/{id}/messages",
        "Answer the question of a task, or send it a message",
        Some(schema_of::<TaskReply>),
        (202, "Id of the task"),
        handler!(send_message),
    ),
];

pub(super) async fn list(request: RouteRequest) -> Result<Response, Failure> {
    let filter = TaskQuery {
        agent: request.query("agent").map(str::to_owned),
        state: request.parse_query("state", TaskState::parse)?,
        open: request.flag("open"),
        own: request.flag("own"),
        limit: request.limit()?,
        cursor: request.query("cursor").map(TaskId::from),
    };
    let page = tasks::list(&request.admin, &request.caller, &filter).await?;
    ok_json(&TaskPage { tasks: page.tasks, next: page.next })
}

pub(super) async fn start(request: RouteRequest) -> Result<Response, Failure> {
    let new: NewCall = request.json()?;
    let started = calls::start_call(&request.admin, &request.caller, &new).await?;
    Ok(json_response(StatusCode::ACCEPTED, &started))
}

pub(super) async fn show(request: RouteRequest) -> Result<Response, Failure> {
    let (admin, caller, id) = (&request.admin, &request.caller, request.path_param("id"));
    let task = if request.flag("ask") {
        tasks::refresh(admin, caller, id).await?
    } else {
        tasks::show(admin, caller, id).await?.0
    };
    ok_json(&TaskDetail::from(task))
}

pub(super) async fn undelivered(request: RouteRequest) -> Result<Response, Failure> {
    let limit = request.limit()?.unwrap_or(DEFAULT_UNDELIVERED).min(MAX_UNDELIVERED);
    let found = tasks::undelivered(&request.admin, &request.caller, limit).await?;
    ok_json(&UndeliveredPushes { undelivered: found.iter().map(tasks::undelivered_push).collect() })
}

pub(super) async fn events(request: RouteRequest) -> Result<Response, Failure> {
    let after = request.parse_query("after", |text| text.parse::<u64>().ok())?.unwrap_or(0);
    let (task, mut events) = tasks::show(&request.admin, &request.caller, request.path_param("id")).await?;
    if !wants_stream(&request.headers) {
        events.retain(|recorded| recorded.seq > after);
        return ok_json(&TaskEvents { events });
    }
    let seen =
        request.headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok()).unwrap_or(after);
    events.retain(|recorded| recorded.seq > seen);
    let version = task.head.version;
    let following = if task.head.state.is_terminal() {
        None
    } else {
        Some(tasks::follow(&request.admin, &request.caller, request.path_param("id"), version).await?)
    };
    let stream = stream::iter(events.into_iter().map(|recorded| Ok(to_sse_event(&recorded))))
        .chain(later_events(following));
    let parts = request.admin.deps();
    let (slot, stop) = (parts.streams.acquire(&request.caller)?, parts.stop.clone());
    let over = async move {
        let _slot = slot;
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(STREAM_LIFETIME) => {}
        }
    };
    let stream = stream.take_until(Box::pin(over));
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(HEARTBEAT_INTERVAL)).into_response())
}

pub(super) async fn inspect(request: RouteRequest) -> Result<Response, Failure> {
    ok_json(&inspection::inspect(&request.admin, &request.caller, request.path_param("id")).await?)
}

pub(super) async fn cancel(request: RouteRequest) -> Result<Response, Failure> {
    let task = tasks::cancel(&request.admin, &request.caller, request.path_param("id")).await?;
    ok_json(&TaskDetail::from(task))
}

pub(super) async fn send_message(request: RouteRequest) -> Result<Response, Failure> {
    let part = match request.json()? {
        TaskReply { text: Some(text), data: None } => Part::text(text),
        TaskReply { text: None, data: Some(data) } => Part::data(data),
        _ => return Err(Failure::new(FailureKind::Invalid, "set either `text` or `data`")),
    };
    let task = tasks::send_message(&request.admin, &request.caller, request.path_param("id"), part).await?;
    Ok(json_response(StatusCode::ACCEPTED, &AcceptedReply { task_id: task }))
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepts.is_some_and(|accepts| accepts.contains("text/event-stream"))
}

/// Events from now on, until the task ends.
fn later_events(
    following: Option<TaskSubscription>,
) -> impl Stream<Item = Result<SseEvent, Infallible>> + Send {
    let batches = stream::unfold(following, |following| async move {
        let mut following = following?;
        let news = following.next().await.ok()?;
        let is_over = news.iter().any(|recorded| is_end(&recorded.event));
        Some((news, (!is_over).then_some(following)))
    });
    batches.flat_map(|news| stream::iter(news.into_iter().map(|recorded| Ok(to_sse_event(&recorded)))))
}

const fn is_end(event: &rialto_model::event::Event) -> bool {
    matches!(TaskState::Working.after(event), Some(state) if state.is_terminal())
}

fn to_sse_event(recorded: &RecordedEvent) -> SseEvent {
    let data = Json::encode(recorded);
    SseEvent::default().id(recorded.seq.to_string()).event(recorded.event.name()).data(data.get())
}
