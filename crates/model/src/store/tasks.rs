//! Tasks and their events.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::layer::store_trait;
use crate::{
    audit_event::AuditEvent,
    call::CallerId,
    event::{Event, RecordedEvent},
    ids::{AgentId, ContextId, OrgId, Scope, TaskId},
    store::StoreError,
    task::{TaskHead, TaskState},
};

/// Events that are added to a task together.
#[derive(Clone, Debug)]
pub struct TaskAppend {
    /// The head as it is after the events.
    pub head: TaskHead,
    /// Number of events before these.
    pub expected: u64,
    /// The events, in order.
    pub events: Vec<Event>,
    /// When they happened.
    pub at: Timestamp,
    /// Audit events of these events.
    pub audit: Vec<AuditEvent>,
}

/// Filter for a list of tasks, newest first.
#[derive(Clone, Debug, Default)]
pub struct TaskFilter {
    /// Only this caller's.
    pub caller: Option<CallerId>,
    /// Only this agent's.
    pub agent: Option<AgentId>,
    /// Only in this state.
    pub state: Option<TaskState>,
    /// Only those of this conversation.
    pub context: Option<ContextId>,
    /// Only those not in a terminal state.
    pub open: bool,
    /// Only those older than this one: the last id of the page before.
    pub before: Option<TaskId>,
    /// Maximum number of rows.
    pub limit: usize,
}

/// Filter for a caller's tasks in conversations, the last changed first.
#[derive(Clone, Debug)]
pub struct ConversationFilter {
    /// Only this caller's.
    pub caller: CallerId,
    /// Only those of this conversation.
    pub context: Option<ContextId>,
    /// Only those of this agent.
    pub agent: Option<AgentId>,
    /// Only in this state.
    pub state: Option<TaskState>,
    /// Only those that changed at or after this moment.
    pub since: Option<Timestamp>,
    /// Only those behind this one: when the last of the page before had changed, and its id.
    pub behind: Option<(Timestamp, TaskId)>,
    /// Maximum number of rows.
    pub limit: usize,
}

/// A list counts its tasks up to this many; of a longer one, this is the total.
pub const MAX_COUNTED_TASKS: u64 = 10_000;

/// One page of them.
#[derive(Clone, Debug, Default)]
pub struct ConversationTasks {
    /// The tasks of this page.
    pub heads: Vec<TaskHead>,
    /// Number of tasks on all pages, counted up to [`MAX_COUNTED_TASKS`]: more are not counted for every page.
    pub total: u64,
}

store_trait! {
    /// Tasks and their events. Part of every [`Store`](super::Store).
    pub trait TaskStore {
        /// Writes a new task down, with what the bus announces. It is durable when this returns.
        async fn open_task(&self, head: &TaskHead, audit: Vec<AuditEvent>) -> Result<(), StoreError>;

        /// Adds a new task with its first events, which `head` has taken in already and which happened when
        /// it was last changed.
        async fn begin_task(
            &self,
            head: &TaskHead,
            first: &[Event],
            audit: Vec<AuditEvent>,
        ) -> Result<(), StoreError>;

        /// Adds events to a task; refused when it does not have exactly the expected number of events.
        async fn append(&self, entry: TaskAppend) -> Result<(), StoreError>;

        /// The task with that id: ours, or else the newest with that remote id.
        async fn task(&self, scope: &Scope, id: &str) -> Result<Option<TaskHead>, StoreError>;

        /// A task's events, from the one after `after`.
        async fn events(&self, task: &TaskId, after: u64) -> Result<Vec<RecordedEvent>, StoreError>;

        /// Tasks of a scope, newest first.
        async fn tasks(&self, scope: &Scope, filter: &TaskFilter) -> Result<Vec<TaskHead>, StoreError>;

        /// A caller's tasks that belong to conversations, the last changed first.
        async fn conversation_tasks(&self, scope: &Scope, filter: &ConversationFilter) -> Result<ConversationTasks, StoreError>;

        /// Number of open tasks of each agent of an org. Agents without any are left out. A call that was
        /// refused is no task.
        async fn load(&self, org: &OrgId) -> Result<BTreeMap<AgentId, u64>, StoreError>;
    }
}
