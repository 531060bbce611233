//! A call that a server makes: it is begun there, followed from here, and called off from here.

use std::time::Duration;

use rialto_api_types::tasks::{NewCall, StartedCall, TaskDetail};
use rialto_model::{
    event::{Event, RecordedEvent},
    failure::{Failure, FailureKind},
    json::{Extra, Json},
    task::TaskState,
};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::tell;
use crate::{
    cli::Call,
    desk::{Desk, There, read},
    output::{Spinner, Trouble},
};

/// How long is waited before a stream that broke off is asked for again: at first, and at most.
const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(5);

/// What happens at once is told at once.
const MOMENT: Duration = Duration::from_millis(50);

/// How long a server may be away while its answer is waited for.
const AWAY: Duration = Duration::from_secs(60);

/// A call on a server, as it is followed.
struct Followed<'a> {
    desk: &'a Desk,
    there: &'a There,
    begun: StartedCall,
    seen: u64,
    /// What came last. With the end of the call comes its result, which is shown and not told before.
    untold: Vec<RecordedEvent>,
    spinner: Spinner,
    quiet: bool,
}

/// Makes a call and answers its task, as it is told.
pub(super) async fn run(
    desk: &Desk,
    there: &There,
    call: &Call,
    said: Option<String>,
) -> Result<Json, Trouble> {
    if let Some(url) = call.agents.first() {
        return Err(Trouble::usage(format!(
            "--agent loads an agent into this process, and a server has its own; register it there with `rialto agents add {url}`, or leave --server out"
        )));
    }
    let begun = begin(desk, call, said).await?;
    let (seen, spinner) = (begun.after, Spinner::new(format!("calling {}", begun.called)));
    let late = Instant::now() + Duration::from_millis(begun.timeout_ms);
    let mut followed =
        Followed { desk, there, begun, seen, untold: Vec::new(), spinner, quiet: call.listing.json };
    tokio::select! {
        ended = timeout_at(late, followed.until_over()) => match ended {
            Ok(ended) => ended?,
            Err(_) => return Err(followed.too_late().await),
        },
        Ok(()) = tokio::signal::ctrl_c() => followed.call_off().await?,
    }
    followed.result().await
}

async fn begin(desk: &Desk, call: &Call, said: Option<String>) -> Result<StartedCall, Failure> {
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
    desk.post(&["tasks"]).saying(&new).read().await
}

// === impl Followed ===

impl Followed<'_> {
    /// Tells what happens, until the task is over or waits. A stream that breaks off is gone on with where it was.
    async fn until_over(&mut self) -> Result<(), Failure> {
        let (mut pause, mut since) = (FIRST, Instant::now());
        loop {
            let seen = self.seen;
            match self.listen().await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(failure) if !is_passing(&failure) || since.elapsed() > AWAY => return Err(failure),
                Err(_) => {}
            }
            if self.seen > seen {
                (pause, since) = (FIRST, Instant::now());
            }
            sleep(pause).await;
            pause = LONGEST.min(pause * 2);
        }
    }

    /// Listens as long as the stream lasts. Answers whether that was to the end.
    async fn listen(&mut self) -> Result<bool, Failure> {
        let path = format!("/tasks/{}/events", self.begun.task_id);
        let mut stream = self.there.listen(&path, Some(&self.seen.to_string())).await?;
        loop {
            let next = match timeout(MOMENT, stream.next()).await {
                Ok(next) => next?,
                // Nothing more belongs to what came last.
                Err(_) => {
                    self.tell();
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
                self.tell();
            }
            if is_end(&recorded.event) {
                return Ok(true);
            }
            self.untold.push(recorded);
        }
    }

    /// Tells what is held back.
    fn tell(&mut self) {
        for recorded in self.untold.drain(..) {
            tell(&self.spinner, &recorded.event, self.quiet);
        }
    }

    /// Calls it off. One that is over by then is shown as it is.
    async fn call_off(&self) -> Result<(), Failure> {
        self.spinner.say("calling it off");
        let path = ["tasks", self.begun.task_id.as_str(), "cancel"];
        match self.desk.post(&path).patiently().done().await {
            Err(failure) if failure.kind != FailureKind::Conflict => Err(failure),
            _ => Ok(()),
        }
    }

    /// The task as it stands, unless it failed.
    async fn result(&self) -> Result<Json, Trouble> {
        let told = self.task().await?;
        let task: TaskDetail = read(&told)?;
        match &task.failure {
            Some(failure) => Err(found_again(failure.clone(), &task).into()),
            None => Ok(told),
        }
    }

    /// What somebody is told who waited as long as it was to be waited.
    async fn too_late(&self) -> Trouble {
        let StartedCall { called, timeout_ms, task_id, .. } = &self.begun;
        let message = format!(
            "{called} took longer than {timeout_ms} ms; the task goes on, and `rialto tasks show {task_id}` fetches its result"
        );
        let failure = Failure::new(FailureKind::PeerTimeout, message);
        let task = self.task().await.ok().and_then(|told| told.read::<TaskDetail>().ok());
        task.map_or_else(|| failure.clone(), |task| found_again(failure.clone(), &task)).into()
    }

    async fn task(&self) -> Result<Json, Failure> {
        self.desk.get(&["tasks", self.begun.task_id.as_str()]).read().await
    }
}

/// The failure's facts together with everything needed to find the task again, as the engine tells them.
fn found_again(failure: Failure, task: &TaskDetail) -> Failure {
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

/// Whether a call is over with this, or waits for its caller.
const fn is_end(event: &Event) -> bool {
    match TaskState::Working.after(event) {
        Some(state) => state.is_terminal() || state.is_waiting(),
        None => false,
    }
}

/// Whether trouble of this kind may be over in a moment.
const fn is_passing(failure: &Failure) -> bool {
    matches!(failure.kind, FailureKind::PeerUnreachable | FailureKind::PeerTimeout | FailureKind::Busy)
}
