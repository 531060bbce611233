//! Check of requests, before anything else happens with them.
//!
//! Policy is asked first: a caller without permission learns nothing from a guardrail, and no model server is asked for it.
//! A blocked request is in the audit log as a refused call whose arguments are withheld.

use std::sync::Arc;

use rialto_guardrails::{
    FindingVerdict,
    config::{CheckAction as Strictness, CheckDirection as Aim},
    scoped_rules::CalledSkill,
};
use rialto_model::{
    call::{Call, CallTarget, Caller, EntryProtocol, OriginalMessage},
    event::RemoteIds,
    failure::Failure,
    ids::TaskId,
    json::Json,
    message::Part,
    presence::CallerPresence,
    routing::WorkDescription,
};
use serde_json::json;

use super::{
    GuardrailService, GuardrailSet,
    checker::{ClassifierScope, GuardrailChecker},
    report::{GuardDirection, GuardrailReport},
    text_fields::{self, TextField},
};
use crate::{conversation::ConversationMessage, journal::audit_verb, request::CallRequest};

// === impl GuardrailService ===

impl GuardrailService {
    /// The checker of a call, if any guardrail applies to it.
    pub(crate) fn find_checker(&self, call: &Call) -> Option<GuardrailChecker> {
        self.checker(&self.active.load()?, &call.target)
    }

    /// Checks a call, and returns it redacted; fails if it is blocked.
    pub(crate) async fn check_call(&self, checker: GuardrailChecker, call: Call) -> Result<Call, Failure> {
        let ask =
            if self.policies.may_permit(&call) { ClassifierScope::All } else { ClassifierScope::Nobody };
        let mut call = call;
        let mut report = GuardrailReport::default();
        look(&checker, &mut call, ask, &mut report).await;
        if report.is_empty() {
            return Ok(call);
        }
        if ask == ClassifierScope::Nobody {
            // It is refused in any case, and the record of that shows what was asked.
            if report.verdict() >= FindingVerdict::Redact {
                (call.parts, call.spoken) = (vec![Part::data(withheld())], None);
            }
            return Ok(call);
        }
        let journal = &self.journal;
        report.tell(journal, audit_verb(&call, Json::null()), GuardDirection::Input).await;
        if report.verdict() < FindingVerdict::Block {
            if let Some(notice) = report.notice() {
                checker.set.warn(&call.task, notice);
            }
            return Ok(call);
        }
        let failure = report.failure(GuardDirection::Input);
        let (verb, cost) = (audit_verb(&call, withheld()), call.target.cost());
        let (mut span, pre) = journal.announce(verb, cost, Err(&failure.message));
        journal.close(&mut span, Some(pre), &failure).await;
        Err(failure)
    }

    /// Checks a message to a task that waits for approval, and returns it redacted: it is stored with the task.
    pub(crate) async fn check_message(&self, mut request: CallRequest) -> Result<CallRequest, Failure> {
        let call = Call {
            task: TaskId::from(request.task.as_deref().unwrap_or_default()),
            caller: request.caller.clone(),
            door: request.door,
            target: request.target.clone(),
            parts: request.parts.clone(),
            continues: RemoteIds::default(),
            session: "".into(),
            trace: None,
            spoken: request.conversation.as_ref().map(|conversation| Arc::clone(&conversation.spoken)),
            presence: CallerPresence::default(),
        };
        let Some(checker) = self.find_checker(&call) else { return Ok(request) };
        let call = self.check_call(checker, call).await?;
        apply_redaction(&mut request.conversation, &call);
        request.parts = call.parts;
        Ok(request)
    }

    /// Checks work before the decision about its agent is stored: its description, which is redacted, and the parts.
    pub(crate) async fn check_work(
        &self,
        caller: &Caller,
        target: &CallTarget,
        work: &mut WorkDescription,
        parts: &[Part],
    ) -> Result<(), Failure> {
        let Some(set) = self.active.load() else { return Ok(()) };
        let Some(checker) = self.checker(&set, target) else { return Ok(()) };
        let mut said = parts.to_vec();
        let mut report = GuardrailReport::default();
        let mut slots = vec![TextField::Words(&mut work.description), TextField::Words(&mut work.work_type)];
        slots.extend(work.required_skills.iter_mut().map(TextField::Words));
        slots.push(TextField::Parts { parts: &mut said, is_whole: true });
        checker.look(slots, ClassifierScope::All, &mut report).await;
        if report.verdict() < FindingVerdict::Block {
            // Warnings are reported with the call.
            return Ok(());
        }
        let failure = report.failure(GuardDirection::Input);
        let call = Call {
            task: TaskId::fresh(),
            caller: caller.clone(),
            door: EntryProtocol::Library,
            target: target.clone(),
            parts: Vec::new(),
            continues: RemoteIds::default(),
            session: "".into(),
            trace: None,
            spoken: None,
            presence: CallerPresence::default(),
        };
        let journal = &self.journal;
        report.tell(journal, audit_verb(&call, Json::null()), GuardDirection::Input).await;
        let (mut span, pre) = journal.announce(audit_verb(&call, withheld()), None, Err(&failure.message));
        journal.close(&mut span, Some(pre), &failure).await;
        Err(failure)
    }

    /// True if guardrails allow to send the type and the skills of the work to another registry.
    pub(crate) fn may_share(&self, caller: &Caller, work: &WorkDescription) -> bool {
        let Some(set) = self.active.load() else { return true };
        let called = CalledSkill { org: caller.scope.org.as_str(), agent: "", skill: "", canonical: "" };
        let Some(guards) = set.guards(&called) else { return true };
        let names = work.required_skills.iter().chain([&work.work_type]).chain(&work.input_modes);
        let names: Vec<Part> = names.map(Part::text).collect();
        guards.check_fields(&names, Aim::Input).verdict() < FindingVerdict::Redact
    }

    /// Returns the part of a call's arguments that may be stored before the call itself is checked: nothing, if a guardrail would stop or
    /// change it. Without a target all guardrails are applied.
    pub fn storable_args(&self, target: Option<&CallTarget>, said: Json) -> Json {
        let Some(set) = self.active.load() else { return said };
        let guards = match target {
            Some(target) => set.guards_of(self.registry.version(), target),
            None => set.all(),
        };
        let Some(guards) = guards else { return said };
        let may_be_stopped = guards.classifiers(Aim::Input).any(|asked| asked.action >= Strictness::Redact)
            || guards.check(&[Part::data(said.clone())], Aim::Input).verdict() >= FindingVerdict::Redact;
        if may_be_stopped { withheld() } else { said }
    }

    fn checker(&self, set: &Arc<GuardrailSet>, target: &CallTarget) -> Option<GuardrailChecker> {
        let guards = set.guards_of(self.registry.version(), target)?;
        guards.has_checks(Aim::Input).then(|| GuardrailChecker {
            set: Arc::clone(set),
            guards,
            target: Aim::Input,
        })
    }
}

/// Replaces the message of a conversation with the redacted one of its call.
pub(crate) fn apply_redaction(conversation: &mut Option<Box<ConversationMessage>>, call: &Call) {
    if let (Some(conversation), Some(spoken)) = (conversation, &call.spoken)
        && !Arc::ptr_eq(&conversation.spoken, spoken)
    {
        conversation.spoken = Arc::clone(spoken);
    }
}

async fn look(
    checker: &GuardrailChecker,
    call: &mut Call,
    ask: ClassifierScope,
    report: &mut GuardrailReport,
) {
    let mut parts = call.parts.clone();
    // The original message holds the parts once more, beside its metadata.
    let mut spoken = call.spoken.as_deref().cloned();
    let is_same = spoken.as_ref().is_some_and(|spoken: &OriginalMessage| spoken.message.parts == parts);
    let mut slots = vec![TextField::Parts { parts: &mut parts, is_whole: true }];
    if let Some(spoken) = &mut spoken {
        slots.extend(text_fields::of_spoken(spoken, !is_same));
    }
    checker.look(slots, ask, report).await;
    if report.verdict() != FindingVerdict::Redact {
        return;
    }
    if let Some(mut spoken) = spoken {
        if is_same {
            spoken.message.parts.clone_from(&parts);
        }
        call.spoken = Some(Arc::new(spoken));
    }
    call.parts = parts;
}

/// Placeholder of arguments that must not be recorded.
fn withheld() -> Json {
    Json::encode(&json!({ "withheld": "a guardrail found something in it" }))
}
