//! Task journal: records events and then publishes them.
//!
//! The order is the promise: an event is in the store before any hook or stream receives it, so no client ever receives
//! something that a restart could undo. Events that cannot be recorded, because the store is not available, are held and
//! recorded when it is back ([`held_writes`](crate::held_writes)).

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};

use rialto_model::{
    audit_event::{AuditEvent, AuditPhase, InvocationError, InvocationOutcome, SkillInvocation},
    call::Call,
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
    task_subscription::{TaskListeners, TaskSubscription},
};

/// Time to wait for the store to take an audit record. It is recorded later then.
const AUDIT_WRITE_TIMEOUT: Duration = Duration::from_millis(250);

/// Task journal.
#[derive(Clone)]
pub(crate) struct TaskJournal {
    store: Arc<dyn Store>,
    bus: Arc<Bus>,
    clock: Arc<dyn Clock>,
    listeners: Arc<TaskListeners>,
    held: HeldWrites,
    node: Arc<OnceLock<Arc<str>>>,
}

/// Audit span of one call: an event before it, and one after.
pub(crate) struct AuditSpan {
    verb: Arc<SkillInvocation>,
    /// Cost of the skill, which counts once the task is completed.
    cost: Option<Cents>,
    begun: tokio::time::Instant,
    /// Set while the task waits for its caller.
    is_waiting: bool,
    is_closed: bool,
}

// === impl TaskJournal ===

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

    /// Stores a copy of held results in a file of this folder.
    pub(crate) fn spill_in(&self, folder: PathBuf) {
        self.held.spill_in(folder);
    }

    /// True if more may be read from agents whose results are held.
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

    /// Records the results that gone processes held.
    pub(crate) async fn recover_held(&self) -> Result<(), StoreError> {
        self.held.recover().await
    }

    /// Subscribes to the events of a task after this version of it.
    pub(crate) fn listen(&self, task: &TaskId, seen: u64) -> TaskSubscription {
        TaskSubscription::new(Arc::clone(&self.store), Arc::clone(&self.listeners), task.clone(), seen)
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

    /// Continues the span of a call that another process announced: only its end is recorded.
    pub(crate) fn take_up(&self, verb: SkillInvocation, cost: Option<Cents>) -> AuditSpan {
        let begun = tokio::time::Instant::now();
        AuditSpan { verb: Arc::new(verb), cost, begun, is_waiting: false, is_closed: false }
    }

    /// Continues the span of a call that waited for approval: an event before it says why it is permitted.
    pub(crate) async fn take_up_again(
        &self,
        verb: SkillInvocation,
        cost: Option<Cents>,
        policies: &[String],
    ) -> AuditSpan {
        let (span, pre) = self.announce(verb, cost, Ok(&policies.into()));
        self.audit_or_hold(vec![pre], Vec::new()).await;
        span
    }

    /// Stores a new task.
    pub(crate) async fn open(&self, head: &TaskHead, pre: AuditEvent) -> Result<(), StoreError> {
        self.store.open_task(head, vec![pre]).await
    }

    /// Stores a new task that starts with an event. It has no subscriber yet.
    pub(crate) async fn begin(
        &self,
        task: &mut Task,
        first: Event,
        pre: AuditEvent,
    ) -> Result<(), StoreError> {
        task.apply(&first, task.head.created_at);
        self.store.begin_task(&task.head, &[first], vec![pre]).await
    }

    /// Adds events to a task, those that can happen, and closes the span with them when the call ends.
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
        if let (Err(_), Some((span, _))) = (&written, ending) {
            // Nothing is recorded: the next attempt closes it.
            span.is_closed = false;
        }
        written
    }

    /// Records events that cannot be received again: when the store has not taken them within `patience`, they
    /// are held until it does, and the outcome can be waited for.
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
                if let Some((span, _)) = ending {
                    span.is_closed = false;
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
        let audit = ending.as_mut().map_or_else(Vec::new, |(span, failure)| {
            // A task is paid for once, however often its caller was asked something on the way.
            span.cost = span.cost.filter(|_| task.head.state == TaskState::Completed);
            span.is_waiting = task.head.state.is_waiting();
            self.closing(span, *failure)
        });
        let is_empty = events.is_empty() && audit.is_empty();
        (!is_empty).then(|| TaskAppend { head: task.head.clone(), expected, events, at, audit })
    }

    async fn append(&self, entry: TaskAppend) -> Result<(), StoreError> {
        let (task, expected, at) = (entry.head.id.clone(), entry.expected, entry.at);
        let published = entry.audit.clone();
        let streamed = self.listeners.has_any().then(|| entry.events.clone());
        self.store.append(entry).await?;
        if self.listeners.has_any() {
            self.listeners.publish(&task, expected, at, streamed);
        }
        self.publish(published);
        Ok(())
    }

    /// Ends a task that may be in the store though its call was not made, because the store did not say whether it has its beginning.
    pub(crate) fn end_unsent(
        &self,
        head: &TaskHead,
        (version, start): (u64, UnsentStart),
        span: &mut AuditSpan,
        failure: &Failure,
    ) {
        let closing = self.closing(span, Some(failure));
        self.held.end_unsent(Unsent::new(head, version, start, closing));
    }

    /// Writes records to the audit log, and publishes those that are to be. Records that the store does not take now are held: no call waits
    /// longer than a moment for that.
    async fn audit_or_hold(&self, records: Vec<AuditEvent>, published: Vec<AuditEvent>) {
        let journal = self.clone();
        let attempt = tokio::spawn(async move {
            match journal.store.audit(records.clone()).await {
                Ok(()) => journal.publish(published),
                Err(error) => journal.held.hold_audit(records, published, &error),
            }
        });
        // It continues in the background when it takes longer.
        let _ = tokio::time::timeout(AUDIT_WRITE_TIMEOUT, attempt).await;
    }

    /// Closes a span without events of the task.
    pub(crate) async fn close(&self, span: &mut AuditSpan, pre: Option<AuditEvent>, failure: &Failure) {
        let closing = self.closing(span, Some(failure));
        let audit: Vec<_> = pre.into_iter().chain(closing.iter().cloned()).collect();
        if !audit.is_empty() {
            self.audit_or_hold(audit, closing).await;
        }
    }

    /// Records and publishes an audit event that belongs to no call.
    pub(crate) async fn note(&self, verb: SkillInvocation, phase: AuditPhase) {
        let event = self.event(phase, Arc::new(verb), self.clock.now());
        self.audit_or_hold(vec![event.clone()], vec![event]).await;
    }

    /// Records an audit event that belongs to no call, and then publishes it; fails if the store does not take it.
    pub(crate) async fn put(&self, mut event: AuditEvent) -> Result<(), StoreError> {
        event.node = self.node.get().cloned();
        self.store.audit(vec![event.clone()]).await?;
        self.publish(vec![event]);
        Ok(())
    }

    /// Reads a task from the store.
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

    /// Reads a task again that was changed by another write.
    pub(crate) async fn reread(&self, task: &Task) -> Result<Task, StoreError> {
        let missing = || StoreError::Corrupt(format!("task {} is gone", task.head.id));
        let head = self.store.task(&task.head.scope, task.head.id.as_str()).await?.ok_or_else(missing)?;
        self.read(head).await
    }

    pub(crate) fn now(&self) -> rialto_model::clock::Timestamp {
        self.clock.now()
    }

    /// Records of the end of a span; none the second time.
    fn closing(&self, span: &mut AuditSpan, failure: Option<&Failure>) -> Vec<AuditEvent> {
        if std::mem::replace(&mut span.is_closed, true) {
            return Vec::new();
        }
        let emitted_at = self.clock.now();
        let mut post = self.event(AuditPhase::PostVerb, Arc::clone(&span.verb), emitted_at);
        let took = span.begun.elapsed();
        (post.duration_ms, post.took) =
            (Some(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)), Some(took));
        post.outcome = Some(match failure {
            Some(_) => InvocationOutcome::Failed,
            None if span.is_waiting => InvocationOutcome::Waiting,
            None => InvocationOutcome::Completed,
        });
        // Policy, a subscriber or a person who was asked refused it.
        let denied = failure.filter(|failure| failure.kind == FailureKind::Denied);
        if let Some(denied) = denied {
            post.context.deny(&denied.message);
        }
        post.estimated_cents = span.cost.filter(|_| failure.is_none());
        let post_context = post.context.clone();
        let mut events = vec![post];
        if let Some(failure) = failure {
            let mut error = self.event(AuditPhase::VerbError, Arc::clone(&span.verb), emitted_at);
            error.took = Some(took);
            error.context = post_context;
            error.error =
                Some(InvocationError { code: failure.kind.rpc_code(), message: failure.message.clone() });
            events.push(error);
        }
        events
    }

    /// Publishes recorded events to the hooks.
    fn publish(&self, events: Vec<AuditEvent>) {
        for mut event in events {
            self.bus.emit(&mut event);
        }
    }
}

// === impl AuditSpan ===

impl AuditSpan {
    /// Opens the span again, because its end could not be recorded.
    pub(crate) const fn reopen(&mut self) {
        self.is_closed = false;
    }

    /// Arguments of the call, secrets redacted.
    pub(crate) fn args(&self) -> &Json {
        &self.verb.args
    }
}

/// Description of a call in the audit log, with arguments that may be shown.
pub(crate) fn audit_verb(call: &Call, args: Json) -> SkillInvocation {
    SkillInvocation {
        verb: call.target.verb(),
        legacy_alias: call.target.legacy_alias(),
        org_id: call.caller.scope.org.shared(),
        agent_card_id: call.target.agent.id.shared(),
        agent_url: call.target.agent.url.clone(),
        skill_id: call.target.skill.as_ref().map_or_else(|| "".into(), |skill| skill.id.shared()),
        session_id: Arc::clone(&call.session),
        args,
        caller: call.caller.id.shared(),
        task_id: call.task.shared(),
        door: Some(call.door),
        trace: call.trace.clone(),
    }
}

/// Names a task for logs.
pub(crate) fn log_lost(task: &TaskId, error: &StoreError) {
    tracing::error!(task.id = %task, "task {task} could not be written to: {error}");
}
