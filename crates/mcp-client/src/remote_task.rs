//! Remote tasks: calls that a server has turned into a task (the Tasks extension), followed by polling.
//!
//! Only the server's task id is needed, so polling survives a restart of Rialto.

use std::{sync::Arc, time::Duration};

use futures::stream::{self, BoxStream, StreamExt};
use rialto_model::{
    call::Caller,
    event::{Event, EventAside, RemoteIds},
    failure::{Failure, FailureKind},
    ids::fresh,
    json::Json,
    message::{Message, Part, Role},
};
use rmcp::{
    ServiceError,
    model::{CancelTaskParams, GetTaskParams, Task, TaskPayload, UpdateTaskParams},
};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    connection::{McpConnection, UpstreamError},
    convert, input_required,
    question::{self, ElicitationAnswers, ServerQuestion},
    server_link::ServerLink,
};

/// Prefix of the remote id of such a task.
pub(crate) const PREFIX: &str = "task:";

/// Default poll interval.
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Minimum and maximum poll interval.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(100);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(30);

/// Maximum number of consecutive polls without a connection.
const MAX_FAILED_POLLS: u32 = 12;

/// Polls after a cancellation until the server must have noticed it.
const MAX_CANCEL_POLLS: u32 = 10;

/// Task of an upstream server.
pub(crate) struct RemoteTask {
    pub(crate) id: String,
    pause: Duration,
    said: Option<String>,
    failures: u32,
}

/// Result of a poll.
pub(crate) enum TaskPoll {
    /// No change.
    Same,
    /// Updated, still running.
    Goes(Box<Event>),
    /// Waiting for answers.
    Asks(Vec<ServerQuestion>, ElicitationAnswers),
    /// Ended.
    Over(Vec<Event>),
}

// === impl RemoteTask ===

impl RemoteTask {
    /// A task that was not polled yet.
    pub(crate) const fn known(id: String) -> Self {
        Self { id, pause: MIN_POLL_INTERVAL, said: None, failures: 0 }
    }

    /// A task that a server has just created.
    pub(crate) fn made(task: &Task) -> Self {
        Self { id: task.task_id.clone(), pause: pause(task), said: None, failures: 0 }
    }

    /// Event that announces the task.
    pub(crate) fn accepted(&self) -> Event {
        let remote = RemoteIds { task_id: Some(format!("{PREFIX}{}", self.id)), context_id: None };
        Event::Accepted { remote, aside: EventAside::default() }
    }

    /// Waits for the poll interval and polls. A server that is unreachable for a while is polled again.
    pub(crate) async fn next(&mut self, line: &Arc<ServerLink>, caller: &Caller, tool: &str) -> TaskPoll {
        sleep(self.pause).await;
        match self.look(line, caller, tool).await {
            Ok(look) => {
                self.failures = 0;
                look
            }
            Err(UpstreamError::Unreachable(_)) if self.failures < MAX_FAILED_POLLS => {
                self.failures += 1;
                self.pause = (self.pause * 2).clamp(DEFAULT_POLL_INTERVAL, MAX_POLL_INTERVAL);
                TaskPoll::Same
            }
            Err(trouble) => TaskPoll::Over(vec![Event::failed(trouble.failure(&line.key.server.name))]),
        }
    }

    /// Polls the task once.
    pub(crate) async fn look(
        &mut self,
        line: &Arc<ServerLink>,
        caller: &Caller,
        tool: &str,
    ) -> Result<TaskPoll, UpstreamError> {
        let connection = line.connection().await.map_err(UpstreamError::Unreachable)?;
        let asked = connection.peer.get_task(GetTaskParams::new(self.id.clone())).await;
        let found = asked.map_err(McpConnection::trouble)?.task;
        self.pause = pause(&found.task);
        let words = found.task.status_message.clone().filter(|words| !words.is_empty());
        let server = &line.key.server.name;
        Ok(match found.payload {
            TaskPayload::Working if words.is_some() && words != self.said => {
                self.said.clone_from(&words);
                let (message, aside) = (message(words), EventAside::default());
                TaskPoll::Goes(Box::new(Event::Progress { working: true, message, aside }))
            }
            TaskPayload::InputRequired { input_requests } => {
                let requests = serde_json::to_value(input_requests).unwrap_or_default();
                match input_required::read(&requests, line, caller).await {
                    Ok((questions, given)) => TaskPoll::Asks(questions, given),
                    Err(what) => TaskPoll::Over(vec![input_required::refused(server, tool, &what)]),
                }
            }
            TaskPayload::Completed { result } => {
                TaskPoll::Over(convert::tool_result_events(&Value::Object(result), server, tool))
            }
            TaskPayload::Failed { error } => {
                let text = error.get("message").and_then(Value::as_str).unwrap_or("it does not say why");
                let failure = Failure::new(FailureKind::PeerFailed, format!("{tool} failed: {text}"));
                let facts = json!({ "remoteCode": error.get("code"), "remoteMessage": text });
                TaskPoll::Over(vec![Event::Failed {
                    failure: failure.with_data(Json::encode(&facts)),
                    message: message(words),
                    aside: EventAside::default(),
                }])
            }
            TaskPayload::Cancelled => TaskPoll::Over(vec![Event::Canceled {
                message: message(words),
                aside: EventAside::default(),
            }]),
            _ => TaskPoll::Same,
        })
    }

    /// Sends answers to its questions.
    pub(crate) async fn answer(
        &self,
        line: &Arc<ServerLink>,
        answers: ElicitationAnswers,
    ) -> Result<(), UpstreamError> {
        let connection = line.connection().await.map_err(UpstreamError::Unreachable)?;
        let told = connection.peer.update_task(UpdateTaskParams::new(self.id.clone(), answers)).await;
        acknowledged(told).map_err(McpConnection::trouble)
    }

    /// Cancels it, and returns its final events if they are known soon.
    pub(crate) async fn cancel(
        mut self,
        line: &Arc<ServerLink>,
        caller: &Caller,
    ) -> Result<Vec<Event>, Failure> {
        let failed = |trouble: UpstreamError| trouble.failure(&line.key.server.name);
        let connection = line.connection().await.map_err(|why| failed(UpstreamError::Unreachable(why)))?;
        let asked = connection.peer.cancel_task(CancelTaskParams::new(self.id.clone())).await;
        acknowledged(asked).map_err(|error| failed(McpConnection::trouble(error)))?;
        for _ in 0..MAX_CANCEL_POLLS {
            if let TaskPoll::Over(events) = self.look(line, caller, "").await.map_err(failed)? {
                return Ok(events);
            }
            sleep(MIN_POLL_INTERVAL).await;
        }
        Ok(Vec::new())
    }

    /// Events of the task: one poll, or until it ends or waits for input.
    pub(crate) fn follow(
        self,
        line: Arc<ServerLink>,
        caller: Caller,
        tool: String,
        to_the_end: bool,
    ) -> BoxStream<'static, Result<Event, Failure>> {
        let looks = stream::unfold(Some((self, line, caller, tool)), move |state| async move {
            let (mut tracked, line, caller, tool) = state?;
            match tracked.look(&line, &caller, &tool).await {
                Ok(TaskPoll::Same) if !to_the_end => None,
                Ok(TaskPoll::Same) => {
                    sleep(tracked.pause).await;
                    Some((Vec::new(), Some((tracked, line, caller, tool))))
                }
                Ok(TaskPoll::Goes(event)) => {
                    if to_the_end {
                        sleep(tracked.pause).await;
                    }
                    Some((vec![Ok(*event)], to_the_end.then_some((tracked, line, caller, tool))))
                }
                Ok(TaskPoll::Asks(questions, _)) => Some((vec![Ok(question::asked(&questions, None))], None)),
                Ok(TaskPoll::Over(events)) => Some((events.into_iter().map(Ok).collect(), None)),
                Err(trouble) => Some((vec![Err(trouble.failure(&line.key.server.name))], None)),
            }
        });
        looks.flat_map(stream::iter).boxed()
    }
}

fn pause(task: &Task) -> Duration {
    task.poll_interval_ms
        .map_or(DEFAULT_POLL_INTERVAL, Duration::from_millis)
        .clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL)
}

fn message(words: Option<String>) -> Option<Message> {
    words.map(|words| Message::new(fresh(), Role::Agent, vec![Part::text(words)]))
}

/// Any result is an acknowledgement, whatever the server puts into it.
fn acknowledged(told: Result<(), ServiceError>) -> Result<(), ServiceError> {
    match told {
        Err(ServiceError::UnexpectedResponse) => Ok(()),
        told => told,
    }
}
