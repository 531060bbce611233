//! Administrative operations in the audit trail: who did what, how it was before, and how it is after.
//!
//! One operation is one record, in the same sealed trail as calls, whether it was done, failed or was refused. Whatever carries out an
//! operation describes it with an [`AdminRecord`]; secrets are masked here, once more than where the description was made, because a record
//! cannot be taken back.

use std::sync::Arc;

use rialto_model::{
    agent::Agent,
    audit_event::{AuditEvent, AuditPhase, InvocationError, InvocationOutcome, SkillInvocation},
    call::Caller,
    failure::{Failure, FailureKind},
    ids::{OrgId, TaskId, TokenId},
    json::Json,
};
use serde_json::{Map, Value, json};

use crate::{
    engine::{Engine, store_failure},
    redact::{redact, redact_text},
};

/// A state that is longer than this, in bytes of JSON, is recorded by its length.
const MAX_STATE_BYTES: usize = 64 * 1024;

/// The longest object or error message that is recorded, in bytes.
const MAX_TEXT_BYTES: usize = 2_000;

/// One administrative operation, as it is recorded.
#[derive(Clone, Debug)]
pub struct AdminRecord {
    /// Its name: `token.create`, `policy.save`, …
    pub verb: &'static str,
    /// The caller who did it or tried to, or the operator at the machine.
    pub by: Arc<str>,
    /// The token that the caller came with.
    pub token: Option<TokenId>,
    /// The org that it is about.
    pub org: OrgId,
    /// What it is about: a token, a policy, an agent, …, by name.
    pub object: String,
    /// The agent that it is about.
    pub agent: Option<Arc<Agent>>,
    /// The task that it is about.
    pub task: Option<TaskId>,
    /// How the object was; null where there was none.
    pub before: Value,
    /// How it is now; null where there is none.
    pub after: Value,
    /// More that is known of it.
    pub facts: Map<String, Value>,
    /// The policies that permitted it, where they are known.
    pub policies: Vec<String>,
    /// Why it failed or was refused; nothing where it was done.
    pub failure: Option<Failure>,
}

// === impl AdminRecord ===

impl AdminRecord {
    /// An operation of this caller, on this object in its org.
    pub fn new(verb: &'static str, by: &Caller, object: impl Into<String>) -> Self {
        Self {
            verb,
            by: by.id.shared(),
            token: by.token.clone(),
            org: by.scope.org.clone(),
            object: object.into(),
            agent: None,
            task: None,
            before: Value::Null,
            after: Value::Null,
            facts: Map::new(),
            policies: Vec::new(),
            failure: None,
        }
    }

    fn into_event(self, emitted_at: rialto_model::clock::Timestamp) -> AuditEvent {
        let mut args = self.facts;
        args.insert("object".to_owned(), json!(shortened(&self.object)));
        args.insert("before".to_owned(), bounded(self.before));
        args.insert("after".to_owned(), bounded(self.after));
        if let Some(token) = &self.token {
            args.insert("tokenId".to_owned(), json!(token));
        }
        let agent = self.agent.as_deref();
        let verb = SkillInvocation {
            verb: self.verb.to_owned(),
            legacy_alias: self.verb.to_owned(),
            org_id: self.org.shared(),
            agent_card_id: agent.map_or_else(|| Arc::from(""), |agent| agent.id.shared()),
            agent_url: agent.map(|agent| agent.url.clone()).unwrap_or_default(),
            skill_id: Arc::from(""),
            session_id: Arc::from(""),
            args: redact(&Json::encode(&args)),
            caller: self.by,
            task_id: self.task.map_or_else(|| Arc::from(""), |task| task.shared()),
            door: None,
            trace: None,
        };
        let mut event = AuditEvent::new(AuditPhase::Admin, Arc::new(verb), emitted_at);
        event.context.policies = self.policies.into();
        event.outcome = Some(if self.failure.is_some() {
            InvocationOutcome::Failed
        } else {
            InvocationOutcome::Completed
        });
        if let Some(failure) = self.failure {
            let message = redact_text(&shortened(&failure.message));
            if failure.kind == FailureKind::Denied {
                event.context.deny(message.clone());
            }
            event.error = Some(InvocationError { code: failure.kind.rpc_code(), message });
        }
        event
    }
}

// === impl Engine ===

impl Engine {
    /// Writes an administrative operation to the audit trail, and then tells the subscribers of it.
    pub async fn record_admin(&self, record: AdminRecord) -> Result<(), Failure> {
        let journal = &self.inner().journal;
        journal.put(record.into_event(journal.now())).await.map_err(store_failure)
    }
}

fn bounded(state: Value) -> Value {
    let bytes = state.to_string().len();
    if bytes <= MAX_STATE_BYTES { state } else { json!({ "tooLong": true, "bytes": bytes }) }
}

fn shortened(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_TEXT_BYTES.min(text.len()));
    text.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use rialto_model::clock::Timestamp;

    use super::*;

    fn event(record: AdminRecord) -> AuditEvent {
        record.into_event(Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_record_says_who_what_before_and_after_and_masks_secrets() {
        let record = AdminRecord {
            before: json!({ "trust": "external" }),
            after: json!({ "trust": "trusted", "password": "hunter2" }),
            token: Some("tok_1".into()),
            ..AdminRecord::new("agent.set_trust", &Caller::user("ann"), "weather")
        };
        let event = event(record);
        assert_eq!((event.phase, &*event.verb.caller), (AuditPhase::Admin, "ann"));
        assert_eq!((event.outcome, event.error.is_some()), (Some(InvocationOutcome::Completed), false));
        let expected = json!({
            "object": "weather",
            "before": { "trust": "external" },
            "after": { "trust": "trusted", "password": "[redacted]" },
            "tokenId": "tok_1",
        });
        assert_eq!(event.verb.args.value(), expected);
    }

    #[test]
    fn a_refusal_is_told_from_a_failure() {
        let of = |kind| {
            let failure = Some(Failure::new(kind, "no"));
            event(AdminRecord { failure, ..AdminRecord::new("token.create", &Caller::user("ann"), "bob") })
        };
        let (denied, failed) = (of(FailureKind::Denied), of(FailureKind::Invalid));
        assert!(denied.context.denied && !failed.context.denied);
        assert_eq!(
            (denied.outcome, failed.outcome),
            (Some(InvocationOutcome::Failed), Some(InvocationOutcome::Failed))
        );
    }

    #[test]
    fn a_state_that_is_too_long_is_recorded_by_its_length() {
        let record = AdminRecord {
            after: json!("x".repeat(MAX_STATE_BYTES)),
            ..AdminRecord::new("policy.save", &Caller::user("ann"), "é".repeat(MAX_TEXT_BYTES))
        };
        let args = event(record).verb.args.value();
        assert_eq!(args["after"], json!({ "tooLong": true, "bytes": MAX_STATE_BYTES + 2 }));
        assert_eq!(args["object"].as_str().unwrap().len(), MAX_TEXT_BYTES);
    }
}
