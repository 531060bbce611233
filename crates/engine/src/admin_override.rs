//! Cancellation and answers for tasks of other callers, by administrators of agents.
//!
//! The message is sent in the name of the task's own caller, with that caller's rights: an administrator can do nothing here that the caller
//! could not do. The administrator is in the audit log by name, and policy is asked about both. A task that waits for approval is
//! not answered here: approvers decide about it.

use std::sync::Arc;

use rialto_model::{
    approval::ApprovalFilter,
    call::{CallTarget, Caller, EntryProtocol},
    failure::{Failure, FailureKind},
    message::Part,
    store::Store,
    task::{Task, TaskHead},
};
use rialto_policy::Action;
use serde_json::json;

use crate::{
    admin_record::{AdminRecord, AuditRecorder},
    call_handle::CallHandle,
    call_service::CallService,
    policies::PolicyService,
    request::CallRequest,
    store_failure::store_failure,
    task_service::TaskService,
};

/// Operations on tasks of other callers.
pub struct AdminOverride {
    store: Arc<dyn Store>,
    policies: Arc<PolicyService>,
    tasks: Arc<TaskService>,
    calls: Arc<CallService>,
    audit: Arc<AuditRecorder>,
}

// === impl AdminOverride ===

impl AdminOverride {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        policies: Arc<PolicyService>,
        tasks: Arc<TaskService>,
        (calls, audit): (Arc<CallService>, Arc<AuditRecorder>),
    ) -> Self {
        Self { store, policies, tasks, calls, audit }
    }

    /// Cancels a task of another caller.
    pub async fn cancel(&self, by: &Caller, id: &str) -> Result<Task, Failure> {
        let (head, owner) = self.find_task(by, id).await?;
        let target = self.tasks.target(&owner, id).await?;
        let policies = self.policies.require(by, Action::Cancel, &target)?;
        let task = self.tasks.cancel(&owner, id).await?;
        self.audit_override(by, &head, "cancel_task", &policies).await;
        Ok(task)
    }

    /// Sends a message in a task of another caller: most often the answer to its question.
    pub async fn answer(&self, by: &Caller, id: &str, parts: Vec<Part>) -> Result<CallHandle, Failure> {
        let (head, owner) = self.find_task(by, id).await?;
        let waits = ApprovalFilter {
            task: Some(head.id.clone()),
            undecided: true,
            limit: 1,
            ..ApprovalFilter::default()
        };
        if !self.store.approvals(&waits).await.map_err(store_failure)?.is_empty() {
            let message =
                format!("task {id} waits for approval: a caller with approve_call decides about it");
            return Err(Failure::new(FailureKind::Conflict, message));
        }
        let worker = self.tasks.target(&owner, id).await?;
        let policies = self.policies.require(by, Action::Invoke, &worker)?;
        // A workflow receives a message as a whole, whichever skill started it.
        let skill = worker.skill.filter(|_| !worker.agent.backing.begins_once());
        let target = CallTarget { agent: worker.agent, skill };
        let request = CallRequest {
            task: Some(id.to_owned()),
            ..CallRequest::message(owner, EntryProtocol::Http, target, parts)
        };
        let running = self.calls.start(request).await?.into_handle()?;
        self.audit_override(by, &head, "answer_task", &policies).await;
        Ok(running)
    }

    /// Finds a task and its caller, if policy permits administration to `by`.
    async fn find_task(&self, by: &Caller, id: &str) -> Result<(TaskHead, Caller), Failure> {
        self.policies.sync().await?;
        self.policies.require_admin(by, Action::AdminAgents)?;
        let head = self.store.task(&by.scope, id).await.map_err(store_failure)?;
        let head =
            head.ok_or_else(|| Failure::new(FailureKind::NotFound, format!("there is no task \"{id}\"")))?;
        let owner = self.tasks.caller_of(&head);
        Ok((head, owner))
    }

    async fn audit_override(&self, by: &Caller, head: &TaskHead, word: &'static str, policies: &[String]) {
        let facts = json!({ "task": head.id, "of": head.caller });
        let record = AdminRecord {
            org: head.scope.org.clone(),
            agent: self.policies.registry.get(&head.agent),
            task: Some(head.id.clone()),
            before: json!({ "state": head.state }),
            facts: facts.as_object().cloned().unwrap_or_default(),
            policies: policies.to_vec(),
            ..AdminRecord::new(word, by, head.id.as_str())
        };
        if let Err(failure) = self.audit.record(record).await {
            tracing::error!("{word} of {} is not in the audit trail: {failure}", head.id);
        }
    }
}
