//! Whoever executes calls, with guardrails in front.
//!
//! Everything that comes back comes this way: what a call brings, what a task is asked about later, by whoever takes it over too, and
//! what calling it off brings.

use std::sync::Arc;

use futures::{FutureExt, StreamExt, future::BoxFuture, stream::BoxStream};
use rialto_guard::config::Target as Aim;
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

use super::{ActiveGuardrails, Guarding, checker::GuardrailChecker, response_filter::ResponseFilter};
use crate::{engine::verb_of, journal::TaskJournal, peer::Peer, registry::Registry};

/// A peer with guardrails in front.
pub(crate) struct GuardedPeer {
    pub(crate) peer: Arc<dyn Peer>,
    pub(crate) post: ActiveGuardrails,
    pub(crate) journal: TaskJournal,
    pub(crate) registry: Arc<Registry>,
}

// === impl Guarded ===

impl GuardedPeer {
    fn screen(&self, guarding: &Arc<Guarding>, target: &CallTarget) -> Option<GuardrailChecker> {
        let guards = guarding.of(self.registry.version(), target)?;
        guards.look_at(Aim::Output).then(|| GuardrailChecker {
            guarding: Arc::clone(guarding),
            guards,
            target: Aim::Output,
        })
    }

    /// What is to be done with what comes back; none when nothing is.
    fn watch(
        &self,
        target: &CallTarget,
        task: Option<&TaskId>,
        verb: impl FnOnce() -> SkillInvocation,
    ) -> Option<ResponseFilter> {
        let guarding = self.post.load()?;
        let screen = self.screen(&guarding, target);
        let notice: Option<GuardrailNotice> = task.and_then(|task| guarding.warning(task));
        (screen.is_some() || notice.is_some())
            .then(|| ResponseFilter::new(screen, notice, self.journal.clone(), verb()))
    }
}

impl Peer for GuardedPeer {
    fn send(&self, call: Permitted<Call>) -> BoxStream<'static, Event> {
        let said = call.get();
        let watch = self.watch(&said.target, Some(&said.task), || verb_of(said, Json::null()));
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

/// Whose task is asked about. Its name here is not known there.
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
    verb_of(&call, Json::null())
}
