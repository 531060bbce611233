//! Somebody else's task, called off or answered by whoever may administer agents.
//!
//! What is said goes on in the name of the task's own caller, with that caller's rights: stepping in lets nobody do what the caller
//! could not do. Who stepped in is on record under their own name, and policy is asked about them too. What waits for approval is
//! not answered here: whoever may approve decides about it.

use rialto_model::{
    approval::ApprovalFilter,
    call::{CallTarget, Caller, EntryProtocol},
    failure::{Failure, FailureKind},
    message::Part,
    task::{Task, TaskHead},
};
use rialto_policy::{Action, Question};
use serde_json::json;

use crate::{
    admin_record::AdminRecord,
    call_handle::Running,
    engine::{Engine, store_failure},
    request::Request,
};

// === impl Engine ===

impl Engine {
    /// Calls somebody's task off.
    pub async fn cancel_for(&self, by: &Caller, id: &str) -> Result<Task, Failure> {
        let (head, owner) = self.step_in(by, id).await?;
        let target = self.worker(&owner, id).await?;
        let policies = self.may(by, Action::Cancel, &target)?;
        let task = self.cancel(&owner, id).await?;
        self.put_step_on_record(by, &head, "cancel_task", &policies).await;
        Ok(task)
    }

    /// Says something in somebody's task: an answer to its question, most often.
    pub async fn answer_for(&self, by: &Caller, id: &str, parts: Vec<Part>) -> Result<Running, Failure> {
        let (head, owner) = self.step_in(by, id).await?;
        let waits = ApprovalFilter {
            task: Some(head.id.clone()),
            undecided: true,
            limit: 1,
            ..ApprovalFilter::default()
        };
        if !self.inner().store.approvals(&waits).await.map_err(store_failure)?.is_empty() {
            let message = format!("task {id} waits for approval: whoever may approve_call decides about it");
            return Err(Failure::new(FailureKind::Conflict, message));
        }
        let worker = self.worker(&owner, id).await?;
        let policies = self.may(by, Action::Invoke, &worker)?;
        // A workflow is told something as a whole, whatever skill began it.
        let skill = worker.skill.filter(|_| !worker.agent.backing.begins_once());
        let target = CallTarget { agent: worker.agent, skill };
        let request = Request {
            task: Some(id.to_owned()),
            ..Request::message(owner, EntryProtocol::Http, target, parts)
        };
        let running = self.call(request).await?;
        self.put_step_on_record(by, &head, "answer_task", &policies).await;
        Ok(running)
    }

    /// The task, and whose it is.
    async fn step_in(&self, by: &Caller, id: &str) -> Result<(TaskHead, Caller), Failure> {
        self.sync().await?;
        self.may_administer(by, Action::AdminAgents)?;
        let head = self.inner().store.task(&by.scope, id).await.map_err(store_failure)?;
        let head =
            head.ok_or_else(|| Failure::new(FailureKind::NotFound, format!("there is no task \"{id}\"")))?;
        let owner = self.caller_of(&head);
        Ok((head, owner))
    }

    /// The policies that let somebody do this themselves.
    fn may(&self, by: &Caller, action: Action, target: &CallTarget) -> Result<Vec<String>, Failure> {
        let row = self.inner().caller_agent(by);
        let question = Question::about(by, action, target).by(row.as_deref());
        let policy = self.policy();
        policy.allow(&question).map_err(|denied| Failure::new(FailureKind::Denied, denied.to_string()))?;
        Ok(policy.decide(&question).policies.to_vec())
    }

    async fn put_step_on_record(
        &self,
        by: &Caller,
        head: &TaskHead,
        word: &'static str,
        policies: &[String],
    ) {
        let facts = json!({ "task": head.id, "of": head.caller });
        let record = AdminRecord {
            org: head.scope.org.clone(),
            agent: self.registry().get(&head.agent),
            task: Some(head.id.clone()),
            before: json!({ "state": head.state }),
            facts: facts.as_object().cloned().unwrap_or_default(),
            policies: policies.to_vec(),
            ..AdminRecord::new(word, by, head.id.as_str())
        };
        if let Err(failure) = self.record_admin(record).await {
            tracing::error!("{word} of {} is not in the audit trail: {failure}", head.id);
        }
    }
}
