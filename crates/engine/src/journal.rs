//! Writes down what happens, then tells others.
//!
//! The order is the promise: an event is in the store before any hook or door hears of it, so nobody is ever told
//! something that a restart could un-happen.

use std::sync::Arc;

use rialto_model::{
    clock::Clock,
    cost::Cents,
    event::Event,
    failure::{Failure, Kind},
    ids::TaskId,
    json::Json,
    store::{Entry, Store, StoreError},
    task::{Task, TaskHead, TaskState},
    verb::{Outcome, Phase, Verb, VerbError, VerbEvent},
};

use crate::{
    bus::Bus,
    following::{Following, Listeners},
};

/// Writes down, then tells.
#[derive(Clone)]
pub(crate) struct Journal {
    store: Arc<dyn Store>,
    bus: Arc<Bus>,
    clock: Arc<dyn Clock>,
    listeners: Arc<Listeners>,
}

/// One invocation, as the bus sees it: announced once before, and once after.
pub(crate) struct Announcement {
    verb: Arc<Verb>,
    /// What it is said to cost once its task is completed.
    cost: Option<Cents>,
    begun: tokio::time::Instant,
    /// Whether its task waits for its caller.
    is_waiting: bool,
    is_closed: bool,
}

// === impl Journal ===

impl Journal {
    pub(crate) fn new(store: Arc<dyn Store>, bus: Arc<Bus>, clock: Arc<dyn Clock>) -> Self {
        Self { store, bus, clock, listeners: Arc::default() }
    }

    /// Hears of what is written to a task behind this version of it.
    pub(crate) fn listen(&self, task: &TaskId, seen: u64) -> Following {
        Following::new(Arc::clone(&self.store), Arc::clone(&self.listeners), task.clone(), seen)
    }

    /// Emits the pre-verb; subscribers may deny. `verdict` is what policy already decided, and by what.
    pub(crate) fn announce(
        &self,
        verb: Verb,
        cost: Option<Cents>,
        verdict: Result<&Arc<[String]>, &str>,
    ) -> (Announcement, VerbEvent) {
        let verb = Arc::new(verb);
        let mut event = VerbEvent::new(Phase::PreVerb, Arc::clone(&verb), self.clock.now());
        match verdict {
            Ok(policies) => event.context.policies = Arc::clone(policies),
            Err(reason) => event.context.deny(reason),
        }
        self.bus.emit(&mut event);
        let begun = tokio::time::Instant::now();
        (Announcement { verb, cost, begun, is_waiting: false, is_closed: false }, event)
    }

    /// Takes up an invocation that another process announced: nothing is said before, and the end is put on record.
    pub(crate) fn take_up(&self, verb: Verb, cost: Option<Cents>) -> Announcement {
        let begun = tokio::time::Instant::now();
        Announcement { verb: Arc::new(verb), cost, begun, is_waiting: false, is_closed: false }
    }

    /// Takes up an invocation that waited meanwhile: it is said again that it goes on, and why it may.
    pub(crate) async fn take_up_again(
        &self,
        verb: Verb,
        cost: Option<Cents>,
        policies: &[String],
    ) -> Announcement {
        let (announcement, pre) = self.announce(verb, cost, Ok(&policies.into()));
        if let Err(error) = self.store.audit(vec![pre]).await {
            tracing::error!("an audit record was lost: {error}");
        }
        announcement
    }

    /// Writes a new task down.
    pub(crate) async fn open(&self, head: &TaskHead, pre: VerbEvent) -> Result<(), StoreError> {
        self.store.open_task(head, vec![pre]).await
    }

    /// Writes a new task down that begins with an event. Nobody can listen to it yet.
    pub(crate) async fn begin(
        &self,
        task: &mut Task,
        first: Event,
        pre: VerbEvent,
    ) -> Result<(), StoreError> {
        task.apply(&first, task.head.created_at);
        self.store.begin_task(&task.head, &[first], vec![pre]).await
    }

    /// Adds events to a task, those that can happen, and closes the announcement with them when the invocation ends.
    ///
    /// On an error `task` is ahead of the store: read it again.
    pub(crate) async fn record(
        &self,
        task: &mut Task,
        mut events: Vec<Event>,
        mut ending: Option<(&mut Announcement, Option<&Failure>)>,
    ) -> Result<(), StoreError> {
        let at = self.clock.now();
        let expected = task.head.version;
        events.retain(|event| task.apply(event, at));
        let audit = ending.as_mut().map_or_else(Vec::new, |(announcement, failure)| {
            // A task is paid for once, however often its caller was asked something on the way.
            announcement.cost = announcement.cost.filter(|_| task.head.state == TaskState::Completed);
            announcement.is_waiting = task.head.state.is_waiting();
            self.closing(announcement, *failure)
        });
        if events.is_empty() && audit.is_empty() {
            return Ok(());
        }
        let told = audit.clone();
        let heard = self.listeners.are_there().then(|| events.clone());
        let written = self.store.append(Entry { head: task.head.clone(), expected, events, at, audit }).await;
        if let (Err(_), Some((announcement, _))) = (&written, ending) {
            // Nothing is on record: whoever tries again closes it.
            announcement.is_closed = false;
        }
        written?;
        if self.listeners.are_there() {
            self.listeners.tell(&task.head.id, expected, at, heard);
        }
        self.tell(told);
        Ok(())
    }

    /// Closes an invocation that has no events to go with it.
    pub(crate) async fn close(
        &self,
        announcement: &mut Announcement,
        pre: Option<VerbEvent>,
        failure: &Failure,
    ) {
        let closing = self.closing(announcement, Some(failure));
        let audit = pre.into_iter().chain(closing.iter().cloned()).collect();
        if let Err(error) = self.store.audit(audit).await {
            tracing::error!("an audit record was lost: {error}");
        }
        self.tell(closing);
    }

    /// Puts something on record that belongs to no invocation, and tells it.
    pub(crate) async fn note(&self, verb: Verb, phase: Phase) {
        let event = VerbEvent::new(phase, Arc::new(verb), self.clock.now());
        if let Err(error) = self.store.audit(vec![event.clone()]).await {
            tracing::error!("an audit record was lost: {error}");
        }
        self.tell(vec![event]);
    }

    /// Puts an event on record that belongs to no invocation, and then tells it.
    pub(crate) async fn put(&self, event: VerbEvent) -> Result<(), StoreError> {
        self.store.audit(vec![event.clone()]).await?;
        self.tell(vec![event]);
        Ok(())
    }

    /// The task as it stands in the store.
    pub(crate) async fn read(&self, head: TaskHead) -> Result<Task, StoreError> {
        let version = head.version;
        let events = self.store.events(&head.id, 0).await?;
        let mut task = Task::new(head.as_opened());
        // An event that arrived between the two reads belongs to the next look.
        for recorded in events.iter().take_while(|recorded| recorded.seq <= version) {
            task.apply(&recorded.event, recorded.at);
        }
        Ok(task)
    }

    /// Reads a task again that somebody else wrote to.
    pub(crate) async fn reread(&self, task: &Task) -> Result<Task, StoreError> {
        let missing = || StoreError::Corrupt(format!("task {} is gone", task.head.id));
        let head = self.store.task(&task.head.scope, task.head.id.as_str()).await?.ok_or_else(missing)?;
        self.read(head).await
    }

    pub(crate) fn now(&self) -> rialto_model::clock::Timestamp {
        self.clock.now()
    }

    /// What is put on record at the end of an invocation; nothing the second time.
    fn closing(&self, announcement: &mut Announcement, failure: Option<&Failure>) -> Vec<VerbEvent> {
        if std::mem::replace(&mut announcement.is_closed, true) {
            return Vec::new();
        }
        let emitted_at = self.clock.now();
        let mut post = VerbEvent::new(Phase::PostVerb, Arc::clone(&announcement.verb), emitted_at);
        let took = announcement.begun.elapsed();
        (post.duration_ms, post.took) =
            (Some(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)), Some(took));
        post.outcome = Some(match failure {
            Some(_) => Outcome::Failed,
            None if announcement.is_waiting => Outcome::Waiting,
            None => Outcome::Completed,
        });
        // Policy, a subscriber or a person who was asked refused it.
        let denied = failure.filter(|failure| failure.kind == Kind::Denied);
        if let Some(denied) = denied {
            post.context.deny(&denied.message);
        }
        post.estimated_cents = announcement.cost.filter(|_| failure.is_none());
        let post_context = post.context.clone();
        let mut events = vec![post];
        if let Some(failure) = failure {
            let mut error = VerbEvent::new(Phase::VerbError, Arc::clone(&announcement.verb), emitted_at);
            error.took = Some(took);
            error.context = post_context;
            error.error = Some(VerbError { code: failure.kind.rpc_code(), message: failure.message.clone() });
            events.push(error);
        }
        events
    }

    /// Tells what is on record.
    fn tell(&self, events: Vec<VerbEvent>) {
        for mut event in events {
            self.bus.emit(&mut event);
        }
    }
}

// === impl Announcement ===

impl Announcement {
    /// What was asked, secrets redacted.
    pub(crate) fn args(&self) -> &Json {
        &self.verb.args
    }
}

/// Names a task for logs.
pub(crate) fn log_lost(task: &TaskId, error: &StoreError) {
    tracing::error!(task.id = %task, "task {task} could not be written to: {error}");
}
