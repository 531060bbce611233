//! Administrative operations: permission, work and audit record in one place.
//!
//! Every change runs through `Administration::administer`, which checks permission, does the work and writes exactly one audit record with
//! caller, object and states before and after, also for denied and failed attempts. There is no other way to be authorized, so no change
//! is without a record.

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

use crate::Administration;

/// Maximum number of recorded skills of an agent.
const MAX_SKILLS: usize = 100;

/// Running administrative operation, with the facts for its audit record. Each fact is set once.
#[derive(Debug)]
pub struct AdminOperation {
    verb: &'static str,
    object: String,
    named: OnceLock<String>,
    org: OnceLock<OrgId>,
    agent: OnceLock<Arc<Agent>>,
    before: OnceLock<Value>,
    after: OnceLock<Value>,
}

// === impl AdminOperation ===

impl AdminOperation {
    /// Operation with this name on this object.
    pub fn new(verb: &'static str, object: impl Into<String>) -> Self {
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

    /// Sets the name of the object, if it was not known at the start.
    pub(crate) fn name(&self, object: impl Into<String>) {
        let _ = self.named.set(object.into());
    }

    /// Sets the org of the object, if it is not the caller's.
    pub(crate) fn org(&self, org: &OrgId) {
        let _ = self.org.set(org.clone());
    }

    /// Sets the agent of the operation.
    pub(crate) fn agent(&self, agent: &Arc<Agent>) {
        let _ = self.agent.set(Arc::clone(agent));
    }

    /// Sets the state of the object before the operation.
    pub(crate) fn before(&self, state: Value) {
        let _ = self.before.set(state);
    }

    /// Sets the state of the object after the operation.
    pub(crate) fn after(&self, state: Value) {
        let _ = self.after.set(state);
    }

    fn record(&self, admin: &Administration, caller: &Caller, failure: Option<&Failure>) -> AdminRecord {
        let by = if admin.is_local() { Arc::from(admin.host().operator_name()) } else { caller.id.shared() };
        let state = |known: &OnceLock<Value>| known.get().cloned().unwrap_or_default();
        let mut facts = Map::new();
        facts.insert("protocol".to_owned(), json!(admin.protocol().as_str()));
        AdminRecord {
            by,
            org: self.org.get().unwrap_or(&caller.scope.org).clone(),
            agent: self.agent.get().cloned(),
            before: state(&self.before),
            // A failure without a later state has changed nothing.
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

// === impl Administration ===

impl Administration {
    /// Runs an administrative operation, if the caller is authorized, and records it.
    pub(crate) async fn administer<T>(
        &self,
        caller: &Caller,
        action: Action,
        operation: &AdminOperation,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let done = match self.authorize_admin(caller, action).await {
            Ok(()) => work.await,
            Err(refused) => Err(refused),
        };
        self.record(caller, operation, done).await
    }

    /// Records an operation that succeeded, failed or was denied.
    pub async fn record<T>(
        &self,
        caller: &Caller,
        operation: &AdminOperation,
        done: Result<T, Failure>,
    ) -> Result<T, Failure> {
        let record = operation.record(self, caller, done.as_ref().err());
        match (self.engine().audit().record(record).await, done) {
            (Ok(()), done) => done,
            (Err(_), Err(failure)) => Err(failure),
            (Err(_), Ok(_)) => {
                let message = format!(
                    "{} was done, but could not be recorded in the audit log; see the server's log",
                    operation.verb
                );
                Err(Failure::new(FailureKind::Internal, message))
            }
        }
    }
}

/// Runs an operation to its end, even if its client disconnects, so that the change is recorded.
pub async fn detached<T: Send + 'static>(work: BoxFuture<'static, Result<T, Failure>>) -> Result<T, Failure> {
    let ended = tokio::spawn(work).await;
    ended.unwrap_or_else(|_| {
        Err(Failure::new(FailureKind::Internal, "the operation was interrupted; see the server's log"))
    })
}

/// State of an agent in audit records, without its secret.
pub(crate) fn agent_state(admin: &Administration, agent: &Agent) -> Value {
    json!({
        "id": agent.id,
        "slug": agent.slug,
        "url": agent.url,
        "trust": agent.trust.as_str(),
        "timeoutMs": agent.timeout_ms,
        "authentication": admin.host().describe_credential(agent),
        "cardPending": agent.pending.is_some(),
        "skills": agent.card.skills.iter().take(MAX_SKILLS).map(|skill| &skill.id).collect::<Vec<_>>(),
        "version": agent.version,
    })
}
