//! What callers say, looked through before anything else happens with it.
//!
//! Policy is asked first: nobody learns from a guardrail what it may not even ask for, and no model server is asked for strangers.
//! What is blocked is on record as a refused call whose arguments are withheld.

use std::sync::Arc;

use rialto_guard::{
    Verdict,
    config::{Action as Strictness, Target as Aim},
    setting::Called,
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
use rialto_policy::{Action, Question};
use serde_json::json;

use super::{
    Guarding,
    checker::{ClassifierScope, GuardrailChecker},
    report::{GuardDirection, GuardrailReport},
    text_fields::{self, TextField},
};
use crate::{
    conversation::Talk,
    engine::{Engine, verb_of},
    request::Request,
};

// === impl Engine ===

impl Engine {
    /// What looks through a call, if anything does.
    pub(crate) fn guard_of(&self, call: &Call) -> Option<GuardrailChecker> {
        self.screen(&self.inner().guarding.load()?, &call.target)
    }

    /// The same call, as far as guardrails let it go on.
    pub(crate) async fn guard_call(&self, screen: GuardrailChecker, call: Call) -> Result<Call, Failure> {
        let ask = if self.may_be_permitted(&call) { ClassifierScope::All } else { ClassifierScope::Nobody };
        let mut call = call;
        let mut report = GuardrailReport::default();
        look(&screen, &mut call, ask, &mut report).await;
        if report.is_empty() {
            return Ok(call);
        }
        if ask == ClassifierScope::Nobody {
            // It is refused in any case, and the record of that shows what was asked.
            if report.verdict() >= Verdict::Redact {
                (call.parts, call.spoken) = (vec![Part::data(withheld())], None);
            }
            return Ok(call);
        }
        let journal = &self.inner().journal;
        report.tell(journal, verb_of(&call, Json::null()), GuardDirection::Input).await;
        if report.verdict() < Verdict::Block {
            if let Some(notice) = report.notice() {
                screen.guarding.warn(&call.task, notice);
            }
            return Ok(call);
        }
        let failure = report.failure(GuardDirection::Input);
        let (verb, cost) = (verb_of(&call, withheld()), call.target.cost());
        let (mut announcement, pre) = journal.announce(verb, cost, Err(&failure.message));
        journal.close(&mut announcement, Some(pre), &failure).await;
        Err(failure)
    }

    /// The same message to a task that waits for a decision here, as far as guardrails let it go on: it is kept with the task.
    pub(crate) async fn guard_said(&self, mut request: Request) -> Result<Request, Failure> {
        let call = Call {
            task: TaskId::from(request.task.as_deref().unwrap_or_default()),
            caller: request.caller.clone(),
            door: request.door,
            target: request.target.clone(),
            parts: request.parts.clone(),
            continues: RemoteIds::default(),
            session: "".into(),
            trace: None,
            spoken: request.talk.as_ref().map(|talk| Arc::clone(&talk.spoken)),
            presence: CallerPresence::default(),
        };
        let Some(screen) = self.guard_of(&call) else { return Ok(request) };
        let call = self.guard_call(screen, call).await?;
        as_cleared(&mut request.talk, &call);
        request.parts = call.parts;
        Ok(request)
    }

    /// Looks through work before it is written down who shall do it: what it says, and what is sent along. What is to be
    /// replaced in its description is replaced.
    pub(crate) async fn guard_work(
        &self,
        caller: &Caller,
        target: &CallTarget,
        work: &mut WorkDescription,
        parts: &[Part],
    ) -> Result<(), Failure> {
        let Some(guarding) = self.inner().guarding.load() else { return Ok(()) };
        let Some(screen) = self.screen(&guarding, target) else { return Ok(()) };
        let mut said = parts.to_vec();
        let mut report = GuardrailReport::default();
        let mut slots = vec![TextField::Words(&mut work.description), TextField::Words(&mut work.work_type)];
        slots.extend(work.required_skills.iter_mut().map(TextField::Words));
        slots.push(TextField::Parts { parts: &mut said, is_whole: true });
        screen.look(slots, ClassifierScope::All, &mut report).await;
        if report.verdict() < Verdict::Block {
            // What else there is to tell is told with the call.
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
        let journal = &self.inner().journal;
        report.tell(journal, verb_of(&call, Json::null()), GuardDirection::Input).await;
        let (mut announcement, pre) =
            journal.announce(verb_of(&call, withheld()), None, Err(&failure.message));
        journal.close(&mut announcement, Some(pre), &failure).await;
        Err(failure)
    }

    /// Whether what is wanted may be told to another registry: there it is in somebody else's hands.
    pub(crate) fn may_tell_elsewhere(&self, caller: &Caller, work: &WorkDescription) -> bool {
        let Some(guarding) = self.inner().guarding.load() else { return true };
        let called = Called { org: caller.scope.org.as_str(), agent: "", skill: "", canonical: "" };
        let Some(guards) = guarding.guards(&called) else { return true };
        let names = work.required_skills.iter().chain([&work.work_type]).chain(&work.input_modes);
        let names: Vec<Part> = names.map(Part::text).collect();
        guards.glance(&names, Aim::Input).verdict() < Verdict::Redact
    }

    /// What may be kept of what a call is going to say, before the call itself is looked through: nothing, if it would not go on
    /// as it is. Where nobody is named yet, all guardrails there are count.
    pub fn keepable(&self, target: Option<&CallTarget>, said: Json) -> Json {
        let Some(guarding) = self.inner().guarding.load() else { return said };
        let guards = match target {
            Some(target) => guarding.of(self.registry().version(), target),
            None => guarding.all(),
        };
        let Some(guards) = guards else { return said };
        let may_be_stopped = guards.classifiers(Aim::Input).any(|asked| asked.action >= Strictness::Redact)
            || guards.check(&[Part::data(said.clone())], Aim::Input).verdict() >= Verdict::Redact;
        if may_be_stopped { withheld() } else { said }
    }

    fn screen(&self, guarding: &Arc<Guarding>, target: &CallTarget) -> Option<GuardrailChecker> {
        let guards = guarding.of(self.registry().version(), target)?;
        guards.look_at(Aim::Input).then(|| GuardrailChecker {
            guarding: Arc::clone(guarding),
            guards,
            target: Aim::Input,
        })
    }

    /// Whether policy would let it go, now or once somebody has approved it.
    fn may_be_permitted(&self, call: &Call) -> bool {
        let inner = self.inner();
        let row = inner.caller_agent(&call.caller);
        let question = Question::about(&call.caller, Action::Invoke, &call.target).by(row.as_deref());
        let decision = inner.policies.load().decide(&question);
        decision.allowed || !decision.approvers.is_empty()
    }
}

/// What a conversation says, as far as it may be kept.
pub(crate) fn as_cleared(talk: &mut Option<Box<Talk>>, call: &Call) {
    if let (Some(talk), Some(spoken)) = (talk, &call.spoken)
        && !Arc::ptr_eq(&talk.spoken, spoken)
    {
        talk.spoken = Arc::clone(spoken);
    }
}

async fn look(
    screen: &GuardrailChecker,
    call: &mut Call,
    ask: ClassifierScope,
    report: &mut GuardrailReport,
) {
    let mut parts = call.parts.clone();
    // What is said to us as a message is the same once more, with what stands beside it.
    let mut spoken = call.spoken.as_deref().cloned();
    let is_same = spoken.as_ref().is_some_and(|spoken: &OriginalMessage| spoken.message.parts == parts);
    let mut slots = vec![TextField::Parts { parts: &mut parts, is_whole: true }];
    if let Some(spoken) = &mut spoken {
        slots.extend(text_fields::of_spoken(spoken, !is_same));
    }
    screen.look(slots, ask, report).await;
    if report.verdict() != Verdict::Redact {
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

/// What stands in place of arguments that must not be on record.
fn withheld() -> Json {
    Json::encode(&json!({ "withheld": "a guardrail found something in it" }))
}
