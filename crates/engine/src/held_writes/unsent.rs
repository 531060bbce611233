//! Tasks whose beginning may be in the store though their call was not made.
//!
//! A connection that breaks during a commit leaves open whether it was done. The caller was told that its call was not made, so
//! a task that turns up after all must end with that, and a question that seems answered must be asked again.

use std::time::Duration;

use parking_lot::Mutex;
use rialto_model::{
    audit_event::AuditEvent,
    clock::Clock,
    event::Event,
    failure::{Failure, FailureKind},
    ids::{Scope, TaskId},
    store::{Store, StoreError, TaskAppend},
    task::{Task, TaskHead},
};
use tokio::time::Instant;

/// Pauses between the looks for a task that is not there: a commit that was under way may still arrive.
const PAUSES: [Duration; 4] =
    [Duration::ZERO, Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(60)];

/// A task whose call was not made.
pub(crate) struct Unsent {
    pub(crate) task: TaskId,
    scope: Scope,
    /// Version of the task if the write was done after all.
    version: u64,
    start: UnsentStart,
    /// Records that close the invocation, once it is known that it was opened.
    closing: Vec<AuditEvent>,
    looks: Mutex<TaskLookups>,
}

/// Way in which the call was to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnsentStart {
    /// With a new task.
    Opened,
    /// With an answer to a task that waited.
    Answered,
}

#[derive(Default)]
struct TaskLookups {
    count: usize,
    due_at: Option<Instant>,
}

// === impl Unsent ===

impl Unsent {
    pub(crate) fn new(head: &TaskHead, version: u64, start: UnsentStart, closing: Vec<AuditEvent>) -> Self {
        Self {
            task: head.id.clone(),
            scope: head.scope.clone(),
            version,
            start,
            closing,
            looks: Mutex::default(),
        }
    }

    /// When to look for it; none is at once.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.looks.lock().due_at
    }

    /// Ends the task if it is there. Answers what was recorded, or none while it has to be looked for again.
    pub(super) async fn settle(
        &self,
        store: &dyn Store,
        clock: &dyn Clock,
    ) -> Result<Option<Vec<AuditEvent>>, StoreError> {
        let head = store.task(&self.scope, self.task.as_str()).await?;
        let head = head.filter(|head| head.id == self.task && head.version >= self.version);
        let Some(head) = head else {
            return Ok(self.is_given_up().then(Vec::new));
        };
        if head.version > self.version || head.state.is_terminal() {
            return Ok(Some(Vec::new()));
        }
        let events = store.events(&head.id, 0).await?;
        let mut task = Task::new(head.as_opened());
        let mut asked = None;
        for recorded in events {
            task.apply(&recorded.event, recorded.at);
            if matches!(recorded.event, Event::Asked { .. }) {
                asked = Some(recorded.event);
            }
        }
        let last = match (self.start, asked) {
            (UnsentStart::Answered, Some(asked)) => asked,
            (UnsentStart::Answered | UnsentStart::Opened, _) => Event::failed(not_sent()),
        };
        let at = clock.now();
        if !task.apply(&last, at) {
            return Ok(Some(Vec::new()));
        }
        let audit = self.closing.clone();
        let entry = TaskAppend {
            head: task.head,
            expected: self.version,
            events: vec![last],
            at,
            audit: audit.clone(),
        };
        match store.append(entry).await {
            Ok(()) => Ok(Some(audit)),
            // Somebody else has the task: what is there counts.
            Err(StoreError::Conflict) => Ok(Some(Vec::new())),
            Err(error) => Err(error),
        }
    }

    /// Counts a look that found nothing, and says whether it was the last.
    fn is_given_up(&self) -> bool {
        let mut looks = self.looks.lock();
        looks.count += 1;
        let pause = PAUSES.get(looks.count);
        looks.due_at = pause.map(|pause| Instant::now() + *pause);
        pause.is_none()
    }
}

fn not_sent() -> Failure {
    let message = "the call could not be recorded in time, so it was not made; call again";
    Failure::new(FailureKind::Internal, message)
}
