//! Calls that wait for approval.
//!
//! A policy can require approval, or the configuration for tools that describe themselves as destructive. Then the task is stored like any other
//! and waits in `input-required`; the message is sealed, because the journal keeps no secrets. A row of the store is the approval request, and
//! the decision is written there once: by the caller in the same task, at the command line, over the network, or by expiry. The first process
//! that notices it resumes the task; the task's version lets only one do that.
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
    sealed_calls::{SealedCallError, SealedCallStore},
};

use self::sealed_calls::MemorySealedCalls;
use crate::{
    admin_record::AuditRecorder, call_runner::CallRunner, node::NodeService, task_service::TaskService,
    token_validity::TokenChecker,
};

/// Approval that a backend needs before it does something.
#[derive(Clone, Debug)]
pub struct ApprovalRequest {
    /// Org and project.
    pub scope: Scope,
    /// The task that waits.
    pub task: TaskId,
    /// The caller of that task.
    pub caller: Caller,
    /// The agent that works on it.
    pub agent: AgentId,
    /// The tool that is to be used.
    pub tool: String,
    /// Arguments of the tool. Secrets in them are masked.
    pub args: Json,
    /// Approvers; without any, the caller itself may decide.
    pub by: Vec<String>,
    /// Policies that require it.
    pub policies: Vec<String>,
    /// Time until it is denied, if not the default.
    pub patience: Option<Duration>,
}

/// Calls that wait for approval: requests, decisions and resumption.
pub struct ApprovalService {
    runner: Arc<CallRunner>,
    tasks: Arc<TaskService>,
    tokens: Arc<TokenChecker>,
    nodes: Arc<NodeService>,
    audit: Arc<AuditRecorder>,
    sealed_calls: OnceLock<Arc<dyn SealedCallStore>>,
    /// Used without another store of sealed calls: what waits is lost with the process.
    memory: Arc<MemorySealedCalls>,
}

// === impl ApprovalRequest ===

impl ApprovalRequest {
    /// Approval request of the backend of a call.
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
    fn sealed_calls(&self) -> Arc<dyn SealedCallStore> {
        self.sealed_calls
            .get()
            .map_or_else(|| Arc::clone(&self.memory) as Arc<dyn SealedCallStore>, Arc::clone)
    }

    /// Sets the store of sealed calls; the first one counts.
    pub fn set_sealed_calls(&self, sealed_calls: Arc<dyn SealedCallStore>) {
        let _ = self.sealed_calls.set(sealed_calls);
    }
}

/// Filter for one approval.
fn with_id(id: &ApprovalId) -> ApprovalFilter {
    ApprovalFilter { id: Some(id.clone()), limit: 1, ..ApprovalFilter::default() }
}
