//! Call through a server: started there, followed and cancelled from here.

use std::time::Duration;

use rialto_api_types::tasks::{NewCall, StartedCall, TaskDetail};
use rialto_model::{
    event::{Event, RecordedEvent},
    failure::{Failure, FailureKind},
    json::{Extra, Json},
    task::TaskState,
};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::show_progress;
use crate::{
    api_client::{ApiClient, RemoteApi, parse_response},
    cli::CallOptions,
    output::{CommandError, ProgressSpinner},
};

/// Pause before a broken stream is requested again: the first, and the maximum.
const FIRST_RECONNECT_PAUSE: Duration = Duration::from_millis(200);
const MAX_RECONNECT_PAUSE: Duration = Duration::from_secs(5);

/// Events within this time are shown together.
const EVENT_HOLD_TIME: Duration = Duration::from_millis(50);

/// Maximum time for which a server may be unreachable during a call.
const MAX_OUTAGE: Duration = Duration::from_secs(60);

/// A call on a server, as it is followed.
struct RemoteCall<'a> {
    api: &'a ApiClient,
    remote: &'a RemoteApi,
    begun: StartedCall,
    seen: u64,
    /// Last event, held back: the end of the call is shown with its result, not as progress.
    untold: Vec<RecordedEvent>,
    spinner: ProgressSpinner,
    quiet: bool,
}

/// Makes a call and returns its task.
pub(super) async fn run(
    api: &ApiClient,
    remote: &RemoteApi,
    call: &CallOptions,
    said: Option<String>,
) -> Result<Json, CommandError> {
    if let Some(url) = call.agents.first() {
        return Err(CommandError::usage(format!(
            "--agent loads an agent into this process, and a server has its own; register it there with `rialto agents add {url}`, or leave --server out"
        )));
    }
    let begun = start_call(api, call, said).await?;
    let (seen, spinner) = (begun.after, ProgressSpinner::new(format!("calling {}", begun.called)));
    let late = Instant::now() + Duration::from_millis(begun.timeout_ms);
    let mut followed =
        RemoteCall { api, remote, begun, seen, untold: Vec::new(), spinner, quiet: call.listing.json };
    tokio::select! {
        ended = timeout_at(late, followed.run_until_end()) => match ended {
            Ok(ended) => ended?,
            Err(_) => return Err(followed.timeout_error().await),
        },
        Ok(()) = tokio::signal::ctrl_c() => followed.cancel().await?,
    }
    followed.result().await
}

async fn start_call(
    api: &ApiClient,
    call: &CallOptions,
    said: Option<String>,
) -> Result<StartedCall, Failure> {
    // An object is data for skills and agents alike; what else it may be is up to what the name means.
    let arguments = said.as_deref().and_then(|text| Json::parse(text.trim()).ok()).filter(Json::is_object);
    let text = said.filter(|_| arguments.is_none());
    let new = NewCall {
        name: call.name.clone(),
        arguments,
        text,
        task: call.task.clone(),
        context: call.context.clone(),
        timeout_ms: call.timeout_ms,
    };
    api.post(&["tasks"]).with_json(&new).read().await
}

// === impl RemoteCall ===

impl RemoteCall<'_> {
    /// Shows progress until the task ends or waits. A broken stream is resumed at its position.
    async fn run_until_end(&mut self) -> Result<(), Failure> {
        let (mut pause, mut since) = (FIRST_RECONNECT_PAUSE, Instant::now());
        loop {
            let seen = self.seen;
            match self.read_stream().await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(failure) if !is_transient(&failure) || since.elapsed() > MAX_OUTAGE => {
                    return Err(failure);
                }
                Err(_) => {}
            }
            if self.seen > seen {
                (pause, since) = (FIRST_RECONNECT_PAUSE, Instant::now());
            }
            sleep(pause).await;
            pause = MAX_RECONNECT_PAUSE.min(pause * 2);
        }
    }

    /// Reads the stream. Returns true if the call ended.
    async fn read_stream(&mut self) -> Result<bool, Failure> {
        let path = format!("/tasks/{}/events", self.begun.task_id);
        let mut stream = self.remote.listen(&path, Some(&self.seen.to_string())).await?;
        loop {
            let next = match timeout(EVENT_HOLD_TIME, stream.next()).await {
                Ok(next) => next?,
                // The held event is complete.
                Err(_) => {
                    self.flush_held_event();
                    stream.next().await?
                }
            };
            let Some(event) = next else { return Ok(false) };
            let Ok(recorded) = serde_json::from_str::<RecordedEvent>(&event.data) else { continue };
            if recorded.seq <= self.seen {
                continue;
            }
            self.seen = recorded.seq;
            if self.untold.last().is_some_and(|last| last.at != recorded.at) {
                self.flush_held_event();
            }
            if is_end(&recorded.event) {
                return Ok(true);
            }
            self.untold.push(recorded);
        }
    }

    /// Shows the held event.
    fn flush_held_event(&mut self) {
        for recorded in self.untold.drain(..) {
            show_progress(&self.spinner, &recorded.event, self.quiet);
        }
    }

    /// Cancels the call. A task that has ended is shown as it is.
    async fn cancel(&self) -> Result<(), Failure> {
        self.spinner.set_message("cancelling the call");
        let path = ["tasks", self.begun.task_id.as_str(), "cancel"];
        match self.api.post(&path).with_long_timeout().send_unit().await {
            Err(failure) if failure.kind != FailureKind::Conflict => Err(failure),
            _ => Ok(()),
        }
    }

    /// The current task, unless it failed.
    async fn result(&self) -> Result<Json, CommandError> {
        let response = self.task().await?;
        let task: TaskDetail = parse_response(&response)?;
        match &task.failure {
            Some(failure) => Err(with_task_ids(failure.clone(), &task).into()),
            None => Ok(response),
        }
    }

    /// Error after the timeout.
    async fn timeout_error(&self) -> CommandError {
        let StartedCall { called, timeout_ms, task_id, .. } = &self.begun;
        let message = format!(
            "{called} did not finish within {timeout_ms} ms; the task continues: `rialto tasks show {task_id}` prints its result"
        );
        let failure = Failure::new(FailureKind::PeerTimeout, message);
        let task = self.task().await.ok().and_then(|response| response.read::<TaskDetail>().ok());
        task.map_or_else(|| failure.clone(), |task| with_task_ids(failure.clone(), &task)).into()
    }

    async fn task(&self) -> Result<Json, Failure> {
        self.api.get(&["tasks", self.begun.task_id.as_str()]).read().await
    }
}

/// Adds the ids of the task to a failure, as the engine does.
fn with_task_ids(failure: Failure, task: &TaskDetail) -> Failure {
    let mut facts: Extra = failure.data.as_ref().and_then(|data| data.read().ok()).unwrap_or_default();
    let known = [
        ("taskId", Some(Json::encode(&task.task_id))),
        ("state", Some(Json::encode(&task.state))),
        ("remoteTaskId", task.remote_task_id.as_ref().map(Json::encode)),
        ("contextId", task.context_id.as_ref().map(Json::encode)),
    ];
    for (name, value) in known {
        if let Some(value) = value {
            drop(facts.take(name));
            facts.push(name, value);
        }
    }
    failure.with_data(Json::encode(&facts))
}

/// True if the call ended or waits for its caller.
const fn is_end(event: &Event) -> bool {
    match TaskState::Working.after(event) {
        Some(state) => state.is_terminal() || state.is_waiting(),
        None => false,
    }
}

/// True if a retry could succeed.
const fn is_transient(failure: &Failure) -> bool {
    matches!(failure.kind, FailureKind::PeerUnreachable | FailureKind::PeerTimeout | FailureKind::Busy)
}
