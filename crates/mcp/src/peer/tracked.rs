//! Calls that a server has made a task of (the Tasks extension): it is asked how they go on.
//!
//! The server's name for such a task is all that is needed, so it survives a restart of ours.

use std::{sync::Arc, time::Duration};

use futures::stream::{self, BoxStream, StreamExt};
use rialto_model::{
    call::Caller,
    event::{Aside, Event, Remote},
    failure::{Failure, Kind},
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

use super::{
    connection::{Connection, Trouble},
    line::Line,
    question::{self, Answers, Question},
    rounds, told,
};

/// Our name for a task of the server's begins with this.
pub(super) const PREFIX: &str = "task:";

/// How often a server is asked that does not say.
const USUAL: Duration = Duration::from_secs(1);

/// No more often than this, and no less.
const LEAST: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_secs(30);

/// How often in a row a server may be out of reach.
const ATTEMPTS: u32 = 12;

/// How long a server may take to notice that a task was called off.
const NOTICES: u32 = 10;

/// A task of a server's.
pub(super) struct Tracked {
    pub(super) id: String,
    pause: Duration,
    said: Option<String>,
    failures: u32,
}

/// What became of it.
pub(super) enum Look {
    /// Nothing new.
    Same,
    /// This, and it goes on.
    Goes(Box<Event>),
    /// It waits for answers.
    Asks(Vec<Question>, Answers),
    /// It is over.
    Over(Vec<Event>),
}

// === impl Tracked ===

impl Tracked {
    /// A task whose server was not asked yet.
    pub(super) const fn known(id: String) -> Self {
        Self { id, pause: LEAST, said: None, failures: 0 }
    }

    /// A task that a server has just made.
    pub(super) fn made(task: &Task) -> Self {
        Self { id: task.task_id.clone(), pause: pause(task), said: None, failures: 0 }
    }

    /// The event that says so.
    pub(super) fn accepted(&self) -> Event {
        let remote = Remote { task_id: Some(format!("{PREFIX}{}", self.id)), context_id: None };
        Event::Accepted { remote, aside: Aside::default() }
    }

    /// Waits as long as the server wants, and looks. A server that is out of reach for a while is asked again.
    pub(super) async fn next(&mut self, line: &Arc<Line>, caller: &Caller, tool: &str) -> Look {
        sleep(self.pause).await;
        match self.look(line, caller, tool).await {
            Ok(look) => {
                self.failures = 0;
                look
            }
            Err(Trouble::Unreachable(_)) if self.failures < ATTEMPTS => {
                self.failures += 1;
                self.pause = (self.pause * 2).clamp(USUAL, MOST);
                Look::Same
            }
            Err(trouble) => Look::Over(vec![Event::failed(trouble.failure(&line.key.server.name))]),
        }
    }

    /// How it stands.
    pub(super) async fn look(
        &mut self,
        line: &Arc<Line>,
        caller: &Caller,
        tool: &str,
    ) -> Result<Look, Trouble> {
        let connection = line.connection().await.map_err(Trouble::Unreachable)?;
        let asked = connection.peer.get_task(GetTaskParams::new(self.id.clone())).await;
        let found = asked.map_err(Connection::trouble)?.task;
        self.pause = pause(&found.task);
        let words = found.task.status_message.clone().filter(|words| !words.is_empty());
        let server = &line.key.server.name;
        Ok(match found.payload {
            TaskPayload::Working if words.is_some() && words != self.said => {
                self.said.clone_from(&words);
                let (message, aside) = (message(words), Aside::default());
                Look::Goes(Box::new(Event::Progress { working: true, message, aside }))
            }
            TaskPayload::InputRequired { input_requests } => {
                let requests = serde_json::to_value(input_requests).unwrap_or_default();
                match rounds::read(&requests, line, caller).await {
                    Ok((questions, given)) => Look::Asks(questions, given),
                    Err(what) => Look::Over(vec![rounds::refused(server, tool, &what)]),
                }
            }
            TaskPayload::Completed { result } => {
                Look::Over(told::result(&Value::Object(result), server, tool))
            }
            TaskPayload::Failed { error } => {
                let text = error.get("message").and_then(Value::as_str).unwrap_or("it does not say why");
                let failure = Failure::new(Kind::PeerFailed, format!("{tool} failed: {text}"));
                let facts = json!({ "remoteCode": error.get("code"), "remoteMessage": text });
                Look::Over(vec![Event::Failed {
                    failure: failure.with_data(Json::of(&facts)),
                    message: message(words),
                    aside: Aside::default(),
                }])
            }
            TaskPayload::Cancelled => {
                Look::Over(vec![Event::Canceled { message: message(words), aside: Aside::default() }])
            }
            _ => Look::Same,
        })
    }

    /// Answers what it asked.
    pub(super) async fn answer(&self, line: &Arc<Line>, answers: Answers) -> Result<(), Trouble> {
        let connection = line.connection().await.map_err(Trouble::Unreachable)?;
        let told = connection.peer.update_task(UpdateTaskParams::new(self.id.clone(), answers)).await;
        acknowledged(told).map_err(Connection::trouble)
    }

    /// Calls it off, and tells what became of it as far as that is known soon.
    pub(super) async fn cancel(mut self, line: &Arc<Line>, caller: &Caller) -> Result<Vec<Event>, Failure> {
        let failed = |trouble: Trouble| trouble.failure(&line.key.server.name);
        let connection = line.connection().await.map_err(|why| failed(Trouble::Unreachable(why)))?;
        let asked = connection.peer.cancel_task(CancelTaskParams::new(self.id.clone())).await;
        acknowledged(asked).map_err(|error| failed(Connection::trouble(error)))?;
        for _ in 0..NOTICES {
            if let Look::Over(events) = self.look(line, caller, "").await.map_err(failed)? {
                return Ok(events);
            }
            sleep(LEAST).await;
        }
        Ok(Vec::new())
    }

    /// How it goes on: once, or until it ends or asks something.
    pub(super) fn follow(
        self,
        line: Arc<Line>,
        caller: Caller,
        tool: String,
        to_the_end: bool,
    ) -> BoxStream<'static, Result<Event, Failure>> {
        let looks = stream::unfold(Some((self, line, caller, tool)), move |state| async move {
            let (mut tracked, line, caller, tool) = state?;
            match tracked.look(&line, &caller, &tool).await {
                Ok(Look::Same) if !to_the_end => None,
                Ok(Look::Same) => {
                    sleep(tracked.pause).await;
                    Some((Vec::new(), Some((tracked, line, caller, tool))))
                }
                Ok(Look::Goes(event)) => {
                    if to_the_end {
                        sleep(tracked.pause).await;
                    }
                    Some((vec![Ok(*event)], to_the_end.then_some((tracked, line, caller, tool))))
                }
                Ok(Look::Asks(questions, _)) => Some((vec![Ok(question::asked(&questions, None))], None)),
                Ok(Look::Over(events)) => Some((events.into_iter().map(Ok).collect(), None)),
                Err(trouble) => Some((vec![Err(trouble.failure(&line.key.server.name))], None)),
            }
        });
        looks.flat_map(stream::iter).boxed()
    }
}

fn pause(task: &Task) -> Duration {
    task.poll_interval_ms.map_or(USUAL, Duration::from_millis).clamp(LEAST, MOST)
}

fn message(words: Option<String>) -> Option<Message> {
    words.map(|words| Message::new(fresh(), Role::Agent, vec![Part::text(words)]))
}

/// A result is a yes, whatever else a server puts into it.
fn acknowledged(told: Result<(), ServiceError>) -> Result<(), ServiceError> {
    match told {
        Err(ServiceError::UnexpectedResponse) => Ok(()),
        told => told,
    }
}
