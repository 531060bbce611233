//! One administrative operation: permission, work and audit record together.
//!
//! Every change that can be made here runs through [`Console::administer`], which asks for permission, does the work and writes exactly one
//! record of it: who, what, before and after, also when it was refused or failed. The work gets no other way to be permitted, so a change
//! without a record does not come about by forgetting one.

use std::{
    future::Future,
    sync::{Arc, OnceLock},
};

use futures::future::BoxFuture;
use rialto_engine::AdminRecord;
use rialto_model::{
    agent::Agent,
    call::Caller,
    failure::{Failure, FailureKind},
    ids::OrgId,
};
use rialto_policy::Action;
use serde_json::{Map, Value, json};

use crate::Console;

/// So many skills of an agent are recorded.
const MAX_SKILLS: usize = 100;

/// An operation under way. What becomes known of it while it is done is noted once.
#[derive(Debug)]
pub(crate) struct Operation {
    verb: &'static str,
    object: String,
    named: OnceLock<String>,
    org: OnceLock<OrgId>,
    agent: OnceLock<Arc<Agent>>,
    before: OnceLock<Value>,
    after: OnceLock<Value>,
}

// === impl Operation ===

impl Operation {
    /// An operation by its name, on this object.
    pub(crate) fn new(verb: &'static str, object: impl Into<String>) -> Self {
        Self {
            verb,
            object: object.into(),
            named: OnceLock::new(),
            org: OnceLock::new(),
            agent: OnceLock::new(),
            before: OnceLock::new(),
            after: OnceLock::new(),
        }
    }

    /// Notes what the object is called, where that was not known from the beginning.
    pub(crate) fn name(&self, object: impl Into<String>) {
        let _ = self.named.set(object.into());
    }

    /// Notes the org that it is about, where that is not the caller's.
    pub(crate) fn org(&self, org: &OrgId) {
        let _ = self.org.set(org.clone());
    }

    /// Notes the agent that it is about.
    pub(crate) fn agent(&self, agent: &Arc<Agent>) {
        let _ = self.agent.set(Arc::clone(agent));
    }

    /// Notes how the object was.
    pub(crate) fn before(&self, state: Value) {
        let _ = self.before.set(state);
    }

    /// Notes how it is now.
    pub(crate) fn after(&self, state: Value) {
        let _ = self.after.set(state);
    }

    fn record(&self, console: &Console, caller: &Caller, failure: Option<&Failure>) -> AdminRecord {
        let by =
            if console.at_machine() { Arc::from(console.office().operator()) } else { caller.id.shared() };
        let state = |known: &OnceLock<Value>| known.get().cloned().unwrap_or_default();
        let mut facts = Map::new();
        facts.insert("protocol".to_owned(), json!(console.door().as_str()));
        AdminRecord {
            by,
            org: self.org.get().unwrap_or(&caller.scope.org).clone(),
            agent: self.agent.get().cloned(),
            before: state(&self.before),
            // What failed before anything was noted has changed nothing.
            after: match self.after.get() {
                None if failure.is_some() => state(&self.before),
                after => after.cloned().unwrap_or_default(),
            },
            facts,
            failure: failure.cloned(),
            ..AdminRecord::new(self.verb, caller, self.named.get().unwrap_or(&self.object).as_str())
        }
    }
}

// === impl Console ===

impl Console {
    /// Does an administrative operation, if the caller may, and records it.
    pub(crate) async fn administer<T>(
        &self,
        caller: &Caller,
        action: Action,
        operation: &Operation,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let done = match self.admit(caller, action).await {
            Ok(()) => work.await,
            Err(refused) => Err(refused),
        };
        self.record(caller, operation, done).await
    }

    /// Records an operation that was done, failed or was refused.
    pub(crate) async fn record<T>(
        &self,
        caller: &Caller,
        operation: &Operation,
        done: Result<T, Failure>,
    ) -> Result<T, Failure> {
        let record = operation.record(self, caller, done.as_ref().err());
        match (self.engine().record_admin(record).await, done) {
            (Ok(()), done) => done,
            (Err(_), Err(failure)) => Err(failure),
            (Err(_), Ok(_)) => {
                let message = format!(
                    "{} was done, but the audit trail did not take the record of it; see the server's log",
                    operation.verb
                );
                Err(Failure::new(FailureKind::Internal, message))
            }
        }
    }
}

/// Runs an operation to its end, also when its client goes away meanwhile: what was changed is then recorded all the same.
pub(crate) async fn detached<T: Send + 'static>(
    work: BoxFuture<'static, Result<T, Failure>>,
) -> Result<T, Failure> {
    let ended = tokio::spawn(work).await;
    ended.unwrap_or_else(|_| {
        Err(Failure::new(FailureKind::Internal, "the operation broke off; see the server's log"))
    })
}

/// An agent as records show it: never what it is shown, only how and from where.
pub(crate) fn agent_state(console: &Console, agent: &Agent) -> Value {
    json!({
        "id": agent.id,
        "slug": agent.slug,
        "url": agent.url,
        "trust": agent.trust.as_str(),
        "timeoutMs": agent.timeout_ms,
        "authentication": console.office().credential(agent),
        "cardPending": agent.pending.is_some(),
        "skills": agent.card.skills.iter().take(MAX_SKILLS).map(|skill| &skill.id).collect::<Vec<_>>(),
        "version": agent.version,
    })
}
