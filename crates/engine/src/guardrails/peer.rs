//! Guardrail check in front of the backends.
//!
//! Every response passes here: the events of a call, of a task that is followed later, also after a takeover, and of a cancellation.

use std::sync::Arc;

use futures::{FutureExt, StreamExt, future::BoxFuture, stream::BoxStream};
use rialto_guardrails::config::CheckDirection as Aim;
use rialto_model::{
    audit_event::SkillInvocation,
    call::{Call, CallTarget, Caller, CancelRequest, EntryProtocol, FollowRequest},
    event::{Event, RemoteIds},
    failure::Failure,
    guardrail::GuardrailNotice,
    ids::TaskId,
    json::Json,
    presence::CallerPresence,
};
use rialto_policy::Permitted;

use super::{ActiveGuardrails, GuardrailSet, checker::GuardrailChecker, response_filter::ResponseFilter};
use crate::{
    journal::{TaskJournal, audit_verb},
    peer::Peer,
    registry::Registry,
};

/// Backend with guardrails in front.
pub(crate) struct GuardedPeer {
    pub(crate) peer: Arc<dyn Peer>,
    pub(crate) active: ActiveGuardrails,
    pub(crate) journal: TaskJournal,
    pub(crate) registry: Arc<Registry>,
}

// === impl GuardedPeer ===

impl GuardedPeer {
    fn screen(&self, set: &Arc<GuardrailSet>, target: &CallTarget) -> Option<GuardrailChecker> {
        let guards = set.guards_of(self.registry.version(), target)?;
        guards.has_checks(Aim::Output).then(|| GuardrailChecker {
            set: Arc::clone(set),
            guards,
            target: Aim::Output,
        })
    }

    /// Filter for the response; none when nothing is checked.
    fn watch(
        &self,
        target: &CallTarget,
        task: Option<&TaskId>,
        verb: impl FnOnce() -> SkillInvocation,
    ) -> Option<ResponseFilter> {
        let set = self.active.load()?;
        let screen = self.screen(&set, target);
        let notice: Option<GuardrailNotice> = task.and_then(|task| set.warning(task));
        (screen.is_some() || notice.is_some())
            .then(|| ResponseFilter::new(screen, notice, self.journal.clone(), verb()))
    }
}

impl Peer for GuardedPeer {
    fn send(&self, call: Permitted<Call>) -> BoxStream<'static, Event> {
        let said = call.get();
        let watch = self.watch(&said.target, Some(&said.task), || audit_verb(said, Json::null()));
        let events = self.peer.send(call);
        match watch {
            None => events,
            Some(watch) => {
                let told = watch.over(events.map(Ok).boxed());
                told.map(|event| event.unwrap_or_else(Event::failed)).boxed()
            }
        }
    }

    fn follow(&self, follow: Permitted<FollowRequest>) -> BoxStream<'static, Result<Event, Failure>> {
        let asked = follow.get();
        let watch = self.watch(&asked.target, None, || verb(&asked.caller, &asked.target, &asked.remote));
        let events = self.peer.follow(follow);
        match watch {
            None => events,
            Some(watch) => watch.over(events),
        }
    }

    fn cancel(&self, cancel: Permitted<CancelRequest>) -> BoxFuture<'static, Result<Vec<Event>, Failure>> {
        let asked = cancel.get();
        let watch = self.watch(&asked.target, None, || verb(&asked.caller, &asked.target, &asked.remote));
        let told = self.peer.cancel(cancel);
        match watch {
            None => told,
            Some(watch) => async move {
                let events = match told.await {
                    Ok(events) => events.into_iter().map(Ok).collect(),
                    Err(failure) => vec![Err(failure)],
                };
                let told: Vec<_> = watch.over(futures::stream::iter(events).boxed()).collect().await;
                told.into_iter().collect()
            }
            .boxed(),
        }
    }
}

/// Description of the call for the audit log. The backend does not know our id of the task.
fn verb(caller: &Caller, target: &CallTarget, remote: &RemoteIds) -> SkillInvocation {
    let call = Call {
        task: TaskId::from(remote.task_id.as_deref().unwrap_or_default()),
        caller: caller.clone(),
        door: EntryProtocol::Library,
        target: target.clone(),
        parts: Vec::new(),
        continues: remote.clone(),
        session: "".into(),
        trace: None,
        spoken: None,
        presence: CallerPresence::default(),
    };
    audit_verb(&call, Json::null())
}
