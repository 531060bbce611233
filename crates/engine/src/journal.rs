//! Task journal: records events and then publishes them.
//!
//! The order is the promise: an event is in the store before any hook or stream receives it, so nobody is ever told
//! something that a restart could undo. What has happened and cannot be recorded, because the store is not available, is held and
//! recorded when it is back ([`held_writes`](crate::held_writes)).

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};

use rialto_model::{
    audit_event::{AuditEvent, AuditPhase, InvocationError, InvocationOutcome, SkillInvocation},
    clock::Clock,
    cost::Cents,
    event::Event,
    failure::{Failure, FailureKind},
    ids::TaskId,
    json::Json,
    store::{Store, StoreError, TaskAppend},
    task::{Task, TaskHead, TaskState},
};

use crate::{
    bus::Bus,
    held_writes::{HeldCounts, HeldWrite, HeldWrites, Unsent, UnsentStart},
    store_deadline::no_answer,
    task_subscription::{Following, TaskListeners},
};

/// How long somebody waits for an audit record that the store does not take. It is recorded later then.
const AUDIT_WAIT: Duration = Duration::from_millis(250);

/// Writes down, then tells.
#[derive(Clone)]
pub(crate) struct TaskJournal {
    store: Arc<dyn Store>,
    bus: Arc<Bus>,
    clock: Arc<dyn Clock>,
    listeners: Arc<TaskListeners>,
    held: HeldWrites,
    node: Arc<OnceLock<Arc<str>>>,
}

/// One invocation, as the bus sees it: announced once before, and once after.
pub(crate) struct AuditSpan {
    verb: Arc<SkillInvocation>,
    /// What it is said to cost once its task is completed.
    cost: Option<Cents>,
    begun: tokio::time::Instant,
    /// Whether its task waits for its caller.
    is_waiting: bool,
    is_closed: bool,
}

// === impl Journal ===

impl TaskJournal {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        bus: Arc<Bus>,
        clock: Arc<dyn Clock>,
        max_held_bytes: usize,
    ) -> Self {
        let listeners: Arc<TaskListeners> = Arc::default();
        let publishers = (Arc::clone(&bus), Arc::clone(&listeners));
        let held = HeldWrites::new(Arc::clone(&store), publishers, Arc::clone(&clock), max_held_bytes);
        Self { store, bus, clock, listeners, held, node: Arc::default() }
    }

    /// Name of this process as a node, which stands in its audit records from now on.
    pub(crate) fn set_node(&self, name: &Arc<str>) {
        // A process has one name.
        let _ = self.node.set(Arc::clone(name));
    }

    /// An event of this process.
    fn event(
        &self,
        phase: AuditPhase,
        verb: Arc<SkillInvocation>,
        emitted_at: rialto_model::clock::Timestamp,
    ) -> AuditEvent {
        AuditEvent { node: self.node.get().cloned(), ..AuditEvent::new(phase, verb, emitted_at) }
    }

    /// Keeps a copy of held results in a file of this folder.
    pub(crate) fn spill_in(&self, folder: PathBuf) {
        self.held.spill_in(folder);
    }

    /// Whether more may be read from agents whose results are held.
    pub(crate) fn has_room(&self) -> bool {
        self.held.has_room()
    }

    pub(crate) fn held_counts(&self) -> HeldCounts {
        self.held.counts()
    }

    /// Writes held results to their file, because this process ends.
    pub(crate) async fn flush_held(&self) {
        self.held.flush_spill().await;
    }

    /// Records what processes held that are gone.
    pub(crate) async fn recover_held(&self) -> Result<(), StoreError> {
        self.held.recover().await
    }

    /// Hears of what is written to a task behind this version of it.
    pub(crate) fn listen(&self, task: &TaskId, seen: u64) -> Following {
        Following::new(Arc::clone(&self.store), Arc::clone(&self.listeners), task.clone(), seen)
    }

    /// Emits the pre-verb; subscribers may deny. `verdict` is what policy already decided, and by what.
    pub(crate) fn announce(
        &self,
        verb: SkillInvocation,
        cost: Option<Cents>,
        verdict: Result<&Arc<[String]>, &str>,
    ) -> (AuditSpan, AuditEvent) {
        let verb = Arc::new(verb);
        let mut event = self.event(AuditPhase::PreVerb, Arc::clone(&verb), self.clock.now());
        match verdict {
            Ok(policies) => event.context.policies = Arc::clone(policies),
            Err(reason) => event.context.deny(reason),
        }
        self.bus.emit(&mut event);
        let begun = tokio::time::Instant::now();
        (AuditSpan { verb, cost, begun, is_waiting: false, is_closed: false }, event)
    }

    /// Takes up an invocation that another process announced: nothing is said before, and the end is put on record.
    pub(crate) fn take_up(&self, verb: SkillInvocation, cost: Option<Cents>) -> AuditSpan {
        let begun = tokio::time::Instant::now();
        AuditSpan { verb: Arc::new(verb), cost, begun, is_waiting: false, is_closed: false }
    }

    /// Takes up an invocation that waited meanwhile: it is said again that it goes on, and why it may.
    pub(crate) async fn take_up_again(
        &self,
        verb: SkillInvocation,
        cost: Option<Cents>,
        policies: &[String],
    ) -> AuditSpan {
        let (announcement, pre) = self.announce(verb, cost, Ok(&policies.into()));
        self.audit_or_hold(vec![pre], Vec::new()).await;
        announcement
    }

    /// Writes a new task down.
    pub(crate) async fn open(&self, head: &TaskHead, pre: AuditEvent) -> Result<(), StoreError> {
        self.store.open_task(head, vec![pre]).await
    }

    /// Writes a new task down that begins with an event. Nobody can listen to it yet.
    pub(crate) async fn begin(
        &self,
        task: &mut Task,
        first: Event,
        pre: AuditEvent,
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
        events: Vec<Event>,
        mut ending: Option<(&mut AuditSpan, Option<&Failure>)>,
    ) -> Result<(), StoreError> {
        let Some(entry) = self.entry(task, events, &mut ending) else { return Ok(()) };
        let written = self.append(entry).await;
        if let (Err(_), Some((announcement, _))) = (&written, ending) {
            // Nothing is on record: whoever tries again closes it.
            announcement.is_closed = false;
        }
        written
    }

    /// The same for events that have happened and cannot be had again: when the store has not taken them within `patience`, they
    /// are held until it does, and the answer is the outcome to wait for.
    pub(crate) async fn record_or_hold(
        &self,
        task: &mut Task,
        events: Vec<Event>,
        mut ending: Option<(&mut AuditSpan, Option<&Failure>)>,
        patience: Duration,
    ) -> Result<Option<HeldWrite>, StoreError> {
        let Some(entry) = self.entry(task, events, &mut ending) else { return Ok(None) };
        if self.held.has(&task.head.id) {
            return Ok(Some(self.held.hold(entry, None)));
        }
        let attempt = tokio::time::timeout(patience, self.append(entry.clone()));
        let written = attempt.await.unwrap_or_else(|_| Err(no_answer("append", patience)));
        match written {
            Ok(()) => Ok(None),
            Err(error @ StoreError::Unavailable(_)) => Ok(Some(self.held.hold(entry, Some(&error)))),
            Err(error) => {
                if let Some((announcement, _)) = ending {
                    announcement.is_closed = false;
                }
                Err(error)
            }
        }
    }

    /// Applies events to a task, those that can happen, and makes the entry that records them; none when there is nothing to record.
    fn entry(
        &self,
        task: &mut Task,
        mut events: Vec<Event>,
        ending: &mut Option<(&mut AuditSpan, Option<&Failure>)>,
    ) -> Option<TaskAppend> {
        let at = self.clock.now();
        let expected = task.head.version;
        events.retain(|event| task.apply(event, at));
        let audit = ending.as_mut().map_or_else(Vec::new, |(announcement, failure)| {
            // A task is paid for once, however often its caller was asked something on the way.
            announcement.cost = announcement.cost.filter(|_| task.head.state == TaskState::Completed);
            announcement.is_waiting = task.head.state.is_waiting();
            self.closing(announcement, *failure)
        });
        let is_empty = events.is_empty() && audit.is_empty();
        (!is_empty).then(|| TaskAppend { head: task.head.clone(), expected, events, at, audit })
    }

    async fn append(&self, entry: TaskAppend) -> Result<(), StoreError> {
        let (task, expected, at) = (entry.head.id.clone(), entry.expected, entry.at);
        let told = entry.audit.clone();
        let heard = self.listeners.are_there().then(|| entry.events.clone());
        self.store.append(entry).await?;
        if self.listeners.are_there() {
            self.listeners.tell(&task, expected, at, heard);
        }
        self.tell(told);
        Ok(())
    }

    /// Ends a task that may be in the store though its call was not made, because the store did not say whether it has its beginning.
    pub(crate) fn end_unsent(
        &self,
        head: &TaskHead,
        (version, start): (u64, UnsentStart),
        announcement: &mut AuditSpan,
        failure: &Failure,
    ) {
        let closing = self.closing(announcement, Some(failure));
        self.held.end_unsent(Unsent::new(head, version, start, closing));
    }

    /// Puts records on the audit trail, and publishes those that are to be. What the store does not take now is held: nobody waits
    /// for that longer than a moment.
    async fn audit_or_hold(&self, records: Vec<AuditEvent>, published: Vec<AuditEvent>) {
        let journal = self.clone();
        let attempt = tokio::spawn(async move {
            match journal.store.audit(records.clone()).await {
                Ok(()) => journal.tell(published),
                Err(error) => journal.held.hold_audit(records, published, &error),
            }
        });
        // It goes on by itself when it takes longer.
        let _ = tokio::time::timeout(AUDIT_WAIT, attempt).await;
    }

    /// Closes an invocation that has no events to go with it.
    pub(crate) async fn close(
        &self,
        announcement: &mut AuditSpan,
        pre: Option<AuditEvent>,
        failure: &Failure,
    ) {
        let closing = self.closing(announcement, Some(failure));
        let audit: Vec<_> = pre.into_iter().chain(closing.iter().cloned()).collect();
        if !audit.is_empty() {
            self.audit_or_hold(audit, closing).await;
        }
    }

    /// Puts something on record that belongs to no invocation, and tells it.
    pub(crate) async fn note(&self, verb: SkillInvocation, phase: AuditPhase) {
        let event = self.event(phase, Arc::new(verb), self.clock.now());
        self.audit_or_hold(vec![event.clone()], vec![event]).await;
    }

    /// Puts an event on record that belongs to no invocation, and then tells it.
    pub(crate) async fn put(&self, mut event: AuditEvent) -> Result<(), StoreError> {
        event.node = self.node.get().cloned();
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
    fn closing(&self, announcement: &mut AuditSpan, failure: Option<&Failure>) -> Vec<AuditEvent> {
        if std::mem::replace(&mut announcement.is_closed, true) {
            return Vec::new();
        }
        let emitted_at = self.clock.now();
        let mut post = self.event(AuditPhase::PostVerb, Arc::clone(&announcement.verb), emitted_at);
        let took = announcement.begun.elapsed();
        (post.duration_ms, post.took) =
            (Some(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)), Some(took));
        post.outcome = Some(match failure {
            Some(_) => InvocationOutcome::Failed,
            None if announcement.is_waiting => InvocationOutcome::Waiting,
            None => InvocationOutcome::Completed,
        });
        // Policy, a subscriber or a person who was asked refused it.
        let denied = failure.filter(|failure| failure.kind == FailureKind::Denied);
        if let Some(denied) = denied {
            post.context.deny(&denied.message);
        }
        post.estimated_cents = announcement.cost.filter(|_| failure.is_none());
        let post_context = post.context.clone();
        let mut events = vec![post];
        if let Some(failure) = failure {
            let mut error = self.event(AuditPhase::VerbError, Arc::clone(&announcement.verb), emitted_at);
            error.took = Some(took);
            error.context = post_context;
            error.error =
                Some(InvocationError { code: failure.kind.rpc_code(), message: failure.message.clone() });
            events.push(error);
        }
        events
    }

    /// Tells what is on record.
    fn tell(&self, events: Vec<AuditEvent>) {
        for mut event in events {
            self.bus.emit(&mut event);
        }
    }
}

// === impl Announcement ===

impl AuditSpan {
    /// What closed it could not be recorded: it is to be closed again.
    pub(crate) const fn reopen(&mut self) {
        self.is_closed = false;
    }

    /// What was asked, secrets redacted.
    pub(crate) fn args(&self) -> &Json {
        &self.verb.args
    }
}

/// Names a task for logs.
pub(crate) fn log_lost(task: &TaskId, error: &StoreError) {
    tracing::error!(task.id = %task, "task {task} could not be written to: {error}");
}
