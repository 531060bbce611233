//! Converts an agent's responses about a task to events, without duplicates.
//!
//! An agent may describe the same task by snapshots, by events, or by both in turn (a stream that breaks and is then polled). The mapper
//! remembers the events it has produced, so that a snapshot only adds new ones.

use std::collections::VecDeque;

use rialto_a2a_codec::task::{
    A2aState, A2aStatus, A2aTask, ArtifactUpdate, SendAnswer, StatusUpdate, StreamEvent,
};
use rialto_model::{
    event::{ACTIVATED, Event, EventAside, QuestionKind, RemoteIds},
    failure::{Failure, FailureKind},
    json::{Extra, Json},
    message::{Artifact, Message},
};
use serde_json::json;

/// Events produced for one task so far.
#[derive(Default)]
pub(crate) struct EventMapper {
    remote: RemoteIds,
    facts: EventAside,
    artifacts: Vec<Artifact>,
    status: Option<(A2aState, Option<Message>)>,
    queue: VecDeque<Event>,
    count: u64,
    is_over: bool,
    has_ended: bool,
    /// Active extensions, until they are reported.
    activated: Vec<String>,
    /// True when the next snapshot on the stream may be older than the answer to the task.
    may_be_old: bool,
}

// === impl EventMapper ===

impl EventMapper {
    /// Mapper for a task whose remote ids are recorded already.
    pub(crate) fn knowing(remote: RemoteIds) -> Self {
        Self { remote, ..Self::default() }
    }

    /// Mapper for a waiting task that is being answered: some agents send its waiting state once more before they continue.
    pub(crate) fn answering() -> Self {
        Self { may_be_old: true, ..Self::default() }
    }

    /// Records the active extensions.
    pub(crate) fn activate(&mut self, extensions: &[String]) {
        self.activated = extensions.to_vec();
    }

    /// True when there is an event to return.
    pub(crate) fn has_news(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Next event.
    pub(crate) fn next(&mut self) -> Option<Event> {
        self.queue.pop_front()
    }

    /// Number of events so far, including those not returned yet.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// Last known state of the task, by its wire name.
    pub(crate) fn state(&self) -> &'static str {
        match self.status.as_ref().map(|(state, _)| *state) {
            None | Some(A2aState::Unspecified) => "unknown",
            Some(A2aState::Submitted) => "submitted",
            Some(A2aState::Working) => "working",
            Some(A2aState::InputRequired) => "input-required",
            Some(A2aState::AuthRequired) => "auth-required",
            Some(A2aState::Completed) => "completed",
            Some(A2aState::Failed) => "failed",
            Some(A2aState::Rejected) => "rejected",
            Some(A2aState::Canceled) => "canceled",
        }
    }

    fn push(&mut self, event: Event) {
        self.count += 1;
        self.queue.push_back(event);
    }

    /// True when the last response ends the task or makes it wait.
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// True when the task has ended.
    pub(crate) const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The agent's ids of the task, as far as they are known.
    pub(crate) const fn remote(&self) -> &RemoteIds {
        &self.remote
    }

    pub(crate) fn hear_answer(&mut self, answer: SendAnswer) {
        match answer {
            SendAnswer::Task(task) => self.hear_task(task),
            SendAnswer::Message(message) => self.hear_message(message),
        }
    }

    pub(crate) fn hear_event(&mut self, event: StreamEvent) {
        let may_be_old = std::mem::take(&mut self.may_be_old);
        match event {
            StreamEvent::Task(task) if may_be_old && waits(task.status.state) => {
                self.accept(Some(task.id), task.context_id, EventAside::default());
            }
            StreamEvent::Task(task) => self.hear_task(task),
            StreamEvent::Message(message) => self.hear_message(message),
            StreamEvent::Status(update) => self.hear_status(update),
            StreamEvent::Artifact(update) => self.hear_artifact(update),
        }
    }

    pub(crate) fn hear_task(&mut self, task: A2aTask) {
        let facts = EventAside { timestamp: None, metadata: task.metadata, extra: task.extra };
        let ends = task.status.state.ends_stream();
        self.accept(Some(task.id), task.context_id, facts);
        for artifact in task.artifacts {
            self.tell_whole(artifact, ends);
        }
        self.tell_status(task.status, None, Extra::new());
    }

    fn hear_message(&mut self, message: Message) {
        if message.context_id.is_some() || !self.activated.is_empty() {
            self.accept(None, message.context_id.clone(), EventAside::default());
        }
        self.push(Event::Replied { message });
        self.is_over = true;
    }

    fn hear_status(&mut self, update: StatusUpdate) {
        self.accept(Some(update.task_id), update.context_id, EventAside::default());
        self.tell_status(update.status, update.metadata, update.extra);
    }

    fn hear_artifact(&mut self, update: ArtifactUpdate) {
        self.accept(Some(update.task_id), update.context_id, EventAside::default());
        let ArtifactUpdate { artifact, append, last_chunk: last, metadata, extra, .. } = update;
        self.remember(&artifact, append);
        let aside = EventAside { timestamp: None, metadata, extra };
        self.push(Event::Artifact { artifact, append, last, aside });
    }

    /// Records the agent's ids and metadata when they are new.
    fn accept(&mut self, task_id: Option<String>, context_id: Option<String>, facts: EventAside) {
        let task_id = task_id.filter(|id| !id.is_empty());
        let context_id = context_id.filter(|id| !id.is_empty());
        let known = |new: &Option<String>, old: &Option<String>| new.is_none() || new == old;
        let is_known = known(&task_id, &self.remote.task_id) && known(&context_id, &self.remote.context_id);
        let is_news = !self.activated.is_empty() || !(facts == EventAside::default() || facts == self.facts);
        if is_known && !is_news {
            return;
        }
        self.remote.task_id = task_id.or_else(|| self.remote.task_id.take());
        self.remote.context_id = context_id.or_else(|| self.remote.context_id.take());
        self.facts = facts.clone();
        let mut aside = facts;
        if !self.activated.is_empty() {
            aside.extra.push(ACTIVATED, Json::encode(&std::mem::take(&mut self.activated)));
        }
        self.push(Event::Accepted { remote: self.remote.clone(), aside });
    }

    /// Adds a complete artifact unless its chunks were added already. `ends` is true for the last snapshot.
    fn tell_whole(&mut self, artifact: Artifact, ends: bool) {
        let known = self.artifacts.iter().find(|known| known.id == artifact.id);
        if known.is_some_and(|known| known.parts == artifact.parts) {
            return;
        }
        if !ends {
            self.remember(&artifact, false);
        }
        self.push(Event::Artifact { artifact, append: false, last: true, aside: EventAside::default() });
    }

    fn remember(&mut self, piece: &Artifact, append: bool) {
        match self.artifacts.iter_mut().find(|known| known.id == piece.id) {
            Some(known) if append => known.parts.extend(piece.parts.iter().cloned()),
            Some(known) => known.clone_from(piece),
            None => self.artifacts.push(piece.clone()),
        }
    }

    fn tell_status(&mut self, status: A2aStatus, metadata: Option<Json>, more: Extra) {
        let A2aStatus { state, message, timestamp, extra } = status;
        self.is_over = state.ends_stream();
        self.has_ended = state.is_terminal();
        let is_known = self.status.as_ref().is_some_and(|known| known.0 == state && known.1 == message);
        if is_known && metadata.is_none() {
            return;
        }
        self.status = Some((state, message.clone()));
        let extra = if more.is_empty() { extra } else { more };
        let aside = EventAside { timestamp, metadata, extra };
        let event = match state {
            A2aState::Unspecified | A2aState::Submitted => Event::Progress { working: false, message, aside },
            A2aState::Working => Event::Progress { working: true, message, aside },
            A2aState::InputRequired => Event::Asked { ask: QuestionKind::Input, message, aside },
            A2aState::AuthRequired => Event::Asked { ask: QuestionKind::Auth, message, aside },
            A2aState::Completed => Event::Finished { message, aside },
            A2aState::Failed => {
                let failure = failure(message.as_ref());
                Event::Failed { failure, message, aside }
            }
            A2aState::Rejected => Event::Rejected { message, aside },
            A2aState::Canceled => Event::Canceled { message, aside },
        };
        self.push(event);
    }
}

fn failure(message: Option<&Message>) -> Failure {
    let words = message.map(Message::text).filter(|text| !text.trim().is_empty());
    let words = words.unwrap_or_else(|| "the agent says the task failed".to_owned());
    Failure::new(FailureKind::PeerFailed, words).with_data(Json::encode(&json!({ "remoteState": "failed" })))
}

/// True for a state in which a task waits for its caller.
const fn waits(state: A2aState) -> bool {
    matches!(state, A2aState::InputRequired | A2aState::AuthRequired)
}

#[cfg(test)]
mod tests {
    use rialto_model::message::Part;

    use super::*;

    fn task(state: A2aState, pieces: &[&str]) -> A2aTask {
        let mut task = A2aTask::new("t", A2aStatus::new(state));
        if !pieces.is_empty() {
            task.artifacts = vec![Artifact::new("a", pieces.iter().map(|text| Part::text(*text)).collect())];
        }
        task
    }

    fn chunk(text: &str, append: bool) -> StreamEvent {
        StreamEvent::Artifact(ArtifactUpdate {
            task_id: "t".into(),
            context_id: None,
            artifact: Artifact::new("a", vec![Part::text(text)]),
            append,
            last_chunk: false,
            metadata: None,
            extra: Extra::new(),
        })
    }

    fn told(teller: &mut EventMapper) -> Vec<&'static str> {
        std::iter::from_fn(|| teller.next()).map(|event| event.name()).collect()
    }

    #[test]
    fn a_snapshot_repeats_nothing_that_was_streamed() {
        let mut teller = EventMapper::default();
        teller.hear_event(chunk("1", false));
        teller.hear_event(chunk("2", true));
        assert_eq!(told(&mut teller), ["accepted", "artifact", "artifact"]);
        teller.hear_task(task(A2aState::Working, &["1", "2"]));
        assert_eq!(told(&mut teller), ["progress"]);
        teller.hear_task(task(A2aState::Working, &["1", "2"]));
        assert!(told(&mut teller).is_empty());
        teller.hear_task(task(A2aState::Completed, &["1", "2", "3"]));
        assert_eq!(told(&mut teller), ["artifact", "finished"]);
        assert!(teller.is_over() && teller.has_ended());
    }

    #[test]
    fn a_task_that_waits_is_over_for_now_but_has_not_ended() {
        let mut teller = EventMapper::default();
        teller.hear_task(task(A2aState::InputRequired, &[]));
        assert!(teller.is_over() && !teller.has_ended());
    }

    #[test]
    fn a_state_nobody_knows_is_progress() {
        let mut teller = EventMapper::default();
        teller.hear_task(task(A2aState::Unspecified, &[]));
        assert_eq!(told(&mut teller), ["accepted", "progress"]);
        assert!(!teller.is_over());
    }

    #[test]
    fn facts_about_a_task_are_told_again_only_when_they_change() {
        let mut teller = EventMapper::default();
        let with = |cost: u32| A2aTask {
            metadata: Some(Json::encode(&json!({ "cost": cost }))),
            ..task(A2aState::Working, &[])
        };
        teller.hear_task(with(1));
        assert_eq!(told(&mut teller), ["accepted", "progress"]);
        teller.hear_task(with(1));
        assert!(told(&mut teller).is_empty());
        teller.hear_task(with(2));
        assert_eq!(told(&mut teller), ["accepted"]);
    }
}
