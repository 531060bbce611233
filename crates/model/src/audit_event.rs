//! The verb bus: what is announced before and after every invocation, and when an agent gets no work for a while.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::{call::EntryProtocol, cost::Cents, json::Json, trace::Trace};

/// When in the life of an invocation an event is emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "VerbPhase")]
pub enum AuditPhase {
    /// Before anything leaves; a subscriber may still deny it.
    PreVerb,
    /// After it ended, well or badly.
    PostVerb,
    /// Beside the post-verb of a failure.
    VerbError,
    /// No invocation: the breaker of an agent opened, let one call through, or closed. `verb` says which, `args` until when.
    Breaker,
    /// A guardrail found something in what was said or answered. `args` says which way, what kinds, and what was done.
    Guardrail,
    /// No invocation: an administrative operation, done, failed or refused. `verb` names it; `args` says on what, how that was before and
    /// how it is after.
    Admin,
}

/// How an invocation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "VerbOutcome")]
pub enum InvocationOutcome {
    /// With a result.
    Completed,
    /// With a question: the task waits for its caller, a login or an approval.
    Waiting,
    /// With an error.
    Failed,
}

/// Invocation of a skill. One value is shared by all of its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillInvocation {
    /// The canonical name, whatever name was called.
    pub verb: String,
    /// The name older clients know it by.
    pub legacy_alias: String,
    /// Org.
    pub org_id: Arc<str>,
    /// The agent's row.
    pub agent_card_id: Arc<str>,
    /// The agent's base URL.
    pub agent_url: String,
    /// The skill; empty for a plain message.
    pub skill_id: Arc<str>,
    /// The id that both sides' logs share.
    pub session_id: Arc<str>,
    /// The arguments, secrets redacted.
    pub args: Json,
    /// The caller.
    pub caller: Arc<str>,
    /// Our task.
    pub task_id: Arc<str>,
    /// Protocol by which it came in. Not on record.
    #[serde(skip)]
    pub door: Option<EntryProtocol>,
    /// The trace it is a part of, if it is one. Not on record.
    #[serde(skip)]
    pub trace: Option<Arc<Trace>>,
}

/// What subscribers may decide on a pre-verb.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "VerbContext")]
pub struct InvocationContext {
    /// Whether the invocation is refused. Once set it stays set.
    pub denied: bool,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The policies that decided. Only on pre-verb; empty when none did.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub policies: Arc<[String]>,
}

/// What went wrong, in numbers and words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "VerbError")]
pub struct InvocationError {
    /// The JSON-RPC code the caller gets.
    pub code: i64,
    /// The message the caller gets.
    pub message: String,
}

/// One announcement.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(from = "Flat")]
#[schemars(with = "Written<'static>")]
pub struct AuditEvent {
    /// When in the invocation's life.
    pub phase: AuditPhase,
    /// What is invoked.
    pub verb: Arc<SkillInvocation>,
    /// When this was said.
    pub emitted_at: Timestamp,
    /// The node that did this, by its name; none where a command or a client's own server did.
    pub node: Option<Arc<str>>,
    /// What was decided so far.
    pub context: InvocationContext,
    /// How long it took; on post-verb.
    pub duration_ms: Option<u64>,
    /// The same, exactly; on verb-error too. Not on record: an event that was read back does not have it.
    pub took: Option<Duration>,
    /// How it ended; on post-verb.
    pub outcome: Option<InvocationOutcome>,
    /// What the card says that this costs; on the post-verb that completes a task, if it is known.
    pub estimated_cents: Option<Cents>,
    /// What went wrong; on verb-error.
    pub error: Option<InvocationError>,
}

/// A subscriber of the bus.
///
/// `hear` runs in the call pipeline, so it must be quick: a subscriber with work to do keeps a queue of its own.
pub trait Hook: Send + Sync {
    /// Receives one event. On a pre-verb it may set `event.context.denied`.
    fn hear(&self, event: &mut AuditEvent);
}

/// The event as it is written. Every member is named: `flatten` cannot read raw JSON, and is slow in writing it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "VerbEvent")]
struct Written<'a> {
    phase: AuditPhase,
    verb: &'a str,
    legacy_alias: &'a str,
    org_id: &'a str,
    agent_card_id: &'a str,
    agent_url: &'a str,
    skill_id: &'a str,
    session_id: &'a str,
    args: &'a Json,
    caller: &'a str,
    task_id: &'a str,
    emitted_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
    context: &'a InvocationContext,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<InvocationOutcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_cents: Option<Cents>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a InvocationError>,
}

/// The event as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Flat {
    phase: AuditPhase,
    verb: String,
    legacy_alias: String,
    org_id: Arc<str>,
    agent_card_id: Arc<str>,
    agent_url: String,
    skill_id: Arc<str>,
    session_id: Arc<str>,
    args: Json,
    caller: Arc<str>,
    task_id: Arc<str>,
    emitted_at: Timestamp,
    node: Option<Arc<str>>,
    context: InvocationContext,
    duration_ms: Option<u64>,
    outcome: Option<InvocationOutcome>,
    estimated_cents: Option<Cents>,
    error: Option<InvocationError>,
}

// === impl AuditPhase ===

impl AuditPhase {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::PreVerb, Self::PostVerb, Self::VerbError, Self::Breaker, Self::Guardrail, Self::Admin];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PreVerb => "pre-verb",
            Self::PostVerb => "post-verb",
            Self::VerbError => "verb-error",
            Self::Breaker => "breaker",
            Self::Guardrail => "guardrail",
            Self::Admin => "admin",
        }
    }

    /// The phase with that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.as_str() == name)
    }
}

// === impl AuditEvent ===

impl AuditEvent {
    /// An event in which nothing is decided yet.
    pub fn new(phase: AuditPhase, verb: Arc<SkillInvocation>, emitted_at: Timestamp) -> Self {
        Self {
            phase,
            verb,
            emitted_at,
            node: None,
            context: InvocationContext::default(),
            duration_ms: None,
            took: None,
            outcome: None,
            estimated_cents: None,
            error: None,
        }
    }
}

impl Serialize for AuditEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let verb = &*self.verb;
        let written = Written {
            phase: self.phase,
            verb: &verb.verb,
            legacy_alias: &verb.legacy_alias,
            org_id: &verb.org_id,
            agent_card_id: &verb.agent_card_id,
            agent_url: &verb.agent_url,
            skill_id: &verb.skill_id,
            session_id: &verb.session_id,
            args: &verb.args,
            caller: &verb.caller,
            task_id: &verb.task_id,
            emitted_at: self.emitted_at,
            node: self.node.as_deref(),
            context: &self.context,
            duration_ms: self.duration_ms,
            outcome: self.outcome,
            estimated_cents: self.estimated_cents,
            error: self.error.as_ref(),
        };
        written.serialize(serializer)
    }
}

impl From<Flat> for AuditEvent {
    fn from(flat: Flat) -> Self {
        let verb = SkillInvocation {
            verb: flat.verb,
            legacy_alias: flat.legacy_alias,
            org_id: flat.org_id,
            agent_card_id: flat.agent_card_id,
            agent_url: flat.agent_url,
            skill_id: flat.skill_id,
            session_id: flat.session_id,
            args: flat.args,
            caller: flat.caller,
            task_id: flat.task_id,
            door: None,
            trace: None,
        };
        Self {
            phase: flat.phase,
            verb: Arc::new(verb),
            emitted_at: flat.emitted_at,
            node: flat.node,
            context: flat.context,
            duration_ms: flat.duration_ms,
            took: None,
            outcome: flat.outcome,
            estimated_cents: flat.estimated_cents,
            error: flat.error,
        }
    }
}

// === impl InvocationOutcome ===

impl InvocationOutcome {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
        }
    }
}

// === impl InvocationContext ===

impl InvocationContext {
    /// Refuses the invocation.
    pub fn deny(&mut self, reason: impl Into<String>) {
        self.denied = true;
        self.reason.get_or_insert_with(|| reason.into());
    }
}

impl<F: Fn(&mut AuditEvent) + Send + Sync> Hook for F {
    fn hear(&self, event: &mut AuditEvent) {
        self(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(phase: AuditPhase) -> AuditEvent {
        let verb = SkillInvocation {
            verb: "a.b".into(),
            legacy_alias: "a2a_a_b".into(),
            org_id: "def\"ault".into(),
            agent_card_id: "agt_1".into(),
            agent_url: "http://127.0.0.1:1".into(),
            skill_id: "b\n".into(),
            session_id: "a2a-agt_1-b-1".into(),
            args: Json::parse("{\"n\":1.000}").unwrap(),
            caller: "ann".into(),
            task_id: "task_1".into(),
            door: None,
            trace: None,
        };
        AuditEvent::new(phase, Arc::new(verb), "2026-08-01T12:00:00.123456789Z".parse::<Timestamp>().unwrap())
    }

    #[test]
    fn every_phase_survives_the_store_with_every_digit_of_its_arguments() {
        let mut denied = event(AuditPhase::PreVerb);
        denied.context.deny("because \"so\"");
        let mut post = event(AuditPhase::PostVerb);
        (post.duration_ms, post.outcome) = (Some(12), Some(InvocationOutcome::Completed));
        post.estimated_cents = serde_json::from_str("1.5").ok();
        let mut error = event(AuditPhase::VerbError);
        error.error = Some(InvocationError { code: -32003, message: "no\\way".into() });
        let mut failed = event(AuditPhase::PostVerb);
        failed.outcome = Some(InvocationOutcome::Failed);
        let waiting = AuditEvent { outcome: Some(InvocationOutcome::Waiting), ..failed.clone() };
        for event in
            [event(AuditPhase::PreVerb), event(AuditPhase::Breaker), denied, post, error, failed, waiting]
        {
            let text = serde_json::to_string(&event).unwrap();
            assert!(
                text.contains(r#""legacyAlias":"a2a_a_b""#) && text.contains(r#""args":{"n":1.000}"#),
                "{text}"
            );
            assert_eq!(serde_json::from_str::<AuditEvent>(&text).unwrap(), event);
        }
    }
}
