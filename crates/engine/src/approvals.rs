//! Calls that wait until somebody has approved them.
//!
//! A policy, or a tool that says of itself that it destroys, can ask for that. Then the task is written down as any other and
//! waits in `input-required`; what was said to it is sealed away, because the journal keeps no secrets. A row of the store is
//! the question, and its answer is written there once, whoever gives it: the caller in the same task, somebody at the command
//! line or over the network, or the clock. Whoever sees the answer first goes on; the task's version lets one of them.
//!
//! Backends use it too, for what they want to do in the middle of their work ([`ApprovalService::request`]).

pub mod config;
mod decide;
mod expiry_loop;
mod hold;
mod question;
mod resume;
mod sealed_calls;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use rialto_model::{
    approval::ApprovalFilter,
    call::{Call, Caller},
    ids::{AgentId, ApprovalId, Scope, TaskId},
    json::Json,
};

pub use self::{
    config::{Config, Destructive},
    decide::Decider,
    question::Verdict,
    sealed_calls::{Safe, SafeError},
};

use self::sealed_calls::MemorySealedCalls;
use crate::{
    admin_record::AuditRecorder, call_runner::CallRunner, node::NodeService, task_service::TaskService,
    token_validity::TokenChecker,
};

/// What a peer wants to do and must ask about first.
#[derive(Clone, Debug)]
pub struct ApprovalRequest {
    /// Where it belongs.
    pub scope: Scope,
    /// The task that waits.
    pub task: TaskId,
    /// Whose task that is.
    pub caller: Caller,
    /// Who does its work.
    pub agent: AgentId,
    /// What is to be done.
    pub tool: String,
    /// With which arguments. Secrets in them are masked before anybody sees them.
    pub args: Json,
    /// Who is to decide; where nobody is named, the caller itself may.
    pub by: Vec<String>,
    /// What asks for it.
    pub policies: Vec<String>,
    /// How long it waits, if not as long as everything else.
    pub patience: Option<Duration>,
}

/// Calls that wait for approval: requests, decisions and resumption.
pub struct ApprovalService {
    runner: Arc<CallRunner>,
    tasks: Arc<TaskService>,
    tokens: Arc<TokenChecker>,
    nodes: Arc<NodeService>,
    audit: Arc<AuditRecorder>,
    sealed_calls: OnceLock<Arc<dyn Safe>>,
    /// Used without another store of sealed calls: what waits is lost with the process.
    memory: Arc<MemorySealedCalls>,
}

// === impl ApprovalRequest ===

impl ApprovalRequest {
    /// What somebody who executes a call wants to do for it.
    pub fn of(call: &Call, tool: impl Into<String>, args: Json) -> Self {
        Self {
            scope: call.caller.scope.clone(),
            task: call.task.clone(),
            caller: call.caller.clone(),
            agent: call.target.agent.id.clone(),
            tool: tool.into(),
            args,
            by: Vec::new(),
            policies: Vec::new(),
            patience: None,
        }
    }
}

// === impl ApprovalService ===

impl ApprovalService {
    pub(crate) fn new(
        runner: Arc<CallRunner>,
        tasks: Arc<TaskService>,
        tokens: Arc<TokenChecker>,
        nodes: Arc<NodeService>,
        audit: Arc<AuditRecorder>,
    ) -> Self {
        let (sealed_calls, memory) = (OnceLock::new(), Arc::default());
        Self { runner, tasks, tokens, nodes, audit, sealed_calls, memory }
    }

    /// The store of sealed calls.
    fn sealed_calls(&self) -> Arc<dyn Safe> {
        self.sealed_calls.get().map_or_else(|| Arc::clone(&self.memory) as Arc<dyn Safe>, Arc::clone)
    }

    /// Sets the store of sealed calls; the first one counts.
    pub fn set_sealed_calls(&self, sealed_calls: Arc<dyn Safe>) {
        let _ = self.sealed_calls.set(sealed_calls);
    }
}

/// The one of that name.
fn one(id: &ApprovalId) -> ApprovalFilter {
    ApprovalFilter { id: Some(id.clone()), limit: 1, ..ApprovalFilter::default() }
}
