//! Check of responses, before they are recorded or published.
//!
//! While anything may be blocked or redacted, the chunks of an artifact are held back until it is complete, or the task ends or waits;
//! otherwise they pass at once, and are checked at the end. Progress messages are checked one by one. The findings of a run are
//! recorded once.

use std::collections::VecDeque;

use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use rialto_guardrails::{ContentFinding, FindingVerdict, PartField, config::CheckAction};
use rialto_model::{
    audit_event::SkillInvocation,
    event::{Event, RemoteIds},
    failure::Failure,
    guardrail::GuardrailNotice,
    json::Json,
};

use super::{
    artifact_buffer::{ArtifactBuffer, BufferedArtifact},
    checker::{ClassifierScope, GuardrailChecker},
    report::{GuardDirection, GuardrailReport},
    text_fields::{self, TextField},
};
use crate::journal::TaskJournal;

/// Event of a task, or the failure to ask for it.
type EventResult = Result<Event, Failure>;

/// Filter of a response.
pub(super) struct ResponseFilter {
    /// None if only a warning is passed on.
    screen: Option<GuardrailChecker>,
    /// Warnings so far.
    notice: Option<GuardrailNotice>,
    journal: TaskJournal,
    verb: SkillInvocation,
    report: GuardrailReport,
    held: ArtifactBuffer,
    /// Set when more was received than is kept.
    is_full: bool,
    has_artifact: bool,
    /// Failure or message that the backend sent about the task.
    metadata: Option<Json>,
    ready: VecDeque<EventResult>,
    is_over: bool,
}

/// The response is blocked.
struct TaskBlocked;

// === impl Watch ===

impl ResponseFilter {
    pub(super) fn new(
        screen: Option<GuardrailChecker>,
        notice: Option<GuardrailNotice>,
        journal: TaskJournal,
        verb: SkillInvocation,
    ) -> Self {
        Self {
            screen,
            notice,
            journal,
            verb,
            report: GuardrailReport::default(),
            held: ArtifactBuffer::default(),
            is_full: false,
            has_artifact: false,
            metadata: None,
            ready: VecDeque::new(),
            is_over: false,
        }
    }

    /// Filters a stream of events.
    pub(super) fn over(self, events: BoxStream<'static, EventResult>) -> BoxStream<'static, EventResult> {
        let next = |(mut watch, mut events): (Self, BoxStream<'static, EventResult>)| async move {
            loop {
                if let Some(told) = watch.ready.pop_front() {
                    return Some((told, (watch, events)));
                }
                if watch.is_over {
                    return None;
                }
                let told = events.next().await;
                watch.hear(told).await;
            }
        };
        stream::unfold((self, events), next).boxed()
    }

    async fn hear(&mut self, told: Option<EventResult>) {
        let passed = match told {
            Some(Ok(event)) => self.take(event).await,
            Some(Err(failure)) => self.trouble(failure).await,
            None => {
                self.is_over = true;
                let released = self.release_all().await;
                if released.is_ok() {
                    self.conclude().await;
                }
                released
            }
        };
        if passed.is_err() {
            self.block().await;
        }
    }

    async fn take(&mut self, mut event: Event) -> Result<(), TaskBlocked> {
        if matches!(event, Event::Artifact { .. }) {
            self.has_artifact = true;
            return self.take_artifact(event).await;
        }
        let is_end = ends(&event);
        if is_end {
            self.release_all().await?;
        }
        let ask = if is_end { ClassifierScope::All } else { ClassifierScope::Strict };
        let is_answer = !self.has_artifact;
        self.look(text_fields::of_event(&mut event, is_answer), ask).await?;
        if let Event::Accepted { aside, .. } = &mut event
            && aside.metadata.is_some()
        {
            self.metadata.clone_from(&aside.metadata);
            if let Some(notice) = &self.notice {
                aside.metadata = Some(notice.put(aside.metadata.as_ref()));
            }
        }
        if is_end {
            self.conclude().await;
            self.warn(&mut event);
        }
        self.ready.push_back(Ok(event));
        Ok(())
    }

    async fn take_artifact(&mut self, event: Event) -> Result<(), TaskBlocked> {
        let Some(screen) = &self.screen else {
            self.ready.push_back(Ok(event));
            return Ok(());
        };
        let (holds, most) = (screen.guards.needs_hold(screen.target), screen.set.setting.hold_bytes);
        if !holds {
            self.ready.push_back(Ok(event.clone()));
            if !self.is_full {
                let complete = self.held.take(event);
                self.is_full = self.held.bytes() > most;
                if let Some(pieces) = complete {
                    self.release(pieces).await?;
                }
            }
            return Ok(());
        }
        let complete = self.held.take(event);
        if self.held.bytes() + complete.as_ref().map_or(0, BufferedArtifact::bytes) > most {
            self.report.add_one(&too_large(), false);
            return Err(TaskBlocked);
        }
        match complete {
            Some(pieces) => self.release(pieces).await,
            None => Ok(()),
        }
    }

    /// Checks everything that is held.
    async fn release_all(&mut self) -> Result<(), TaskBlocked> {
        while let Some(pieces) = self.held.first() {
            self.release(pieces).await?;
        }
        Ok(())
    }

    /// Checks an artifact, and passes it on if it was held back.
    async fn release(&mut self, mut pieces: BufferedArtifact) -> Result<(), TaskBlocked> {
        let Some(screen) = self.screen.clone() else { return Ok(()) };
        for event in pieces.events_mut() {
            self.look(text_fields::of_event(event, false), ClassifierScope::Nobody).await?;
        }
        let whole = pieces.parts();
        let mut parts = whole.clone();
        self.look(vec![TextField::Parts { parts: &mut parts, is_whole: true }], ClassifierScope::All).await?;
        if !screen.guards.needs_hold(screen.target) {
            // It was passed on when it came.
            return Ok(());
        }
        if parts == whole {
            self.ready.extend(pieces.into_events().into_iter().map(Ok));
        } else {
            self.ready.extend(pieces.with(parts).map(Ok));
        }
        Ok(())
    }

    async fn look(&mut self, slots: Vec<TextField<'_>>, ask: ClassifierScope) -> Result<(), TaskBlocked> {
        let Some(screen) = self.screen.clone() else { return Ok(()) };
        screen.look(slots, ask, &mut self.report).await;
        if self.report.verdict() == FindingVerdict::Block { Err(TaskBlocked) } else { Ok(()) }
    }

    /// Checks a failure to ask: it says nothing about the task, but its text may contain anything.
    async fn trouble(&mut self, failure: Failure) -> Result<(), TaskBlocked> {
        let kind = failure.kind;
        let mut event = Event::failed(failure);
        let looked = self.look(text_fields::of_event(&mut event, false), ClassifierScope::Nobody).await;
        let told = match (looked, event) {
            (Ok(()), Event::Failed { failure, .. }) => failure,
            _ => Failure::new(kind, "the agent's words about this are withheld by a guardrail"),
        };
        self.report = GuardrailReport::default();
        self.ready.push_back(Err(told));
        Ok(())
    }

    /// Records the findings, and keeps the warnings.
    async fn conclude(&mut self) {
        let report = std::mem::take(&mut self.report);
        report.tell(&self.journal, self.verb.clone(), GuardDirection::Output).await;
        if let Some(found) = report.notice() {
            self.notice.get_or_insert_default().join(&found);
        }
    }

    /// Adds the warnings to the last event of a run.
    fn warn(&mut self, event: &mut Event) {
        let Some(notice) = &self.notice else { return };
        let metadata = Some(notice.put(self.metadata.as_ref()));
        let aside = rialto_model::event::EventAside { metadata, ..Default::default() };
        self.ready.push_back(Ok(Event::Accepted { remote: RemoteIds::default(), aside }));
        match event {
            Event::Asked { aside, .. }
            | Event::Finished { aside, .. }
            | Event::Failed { aside, .. }
            | Event::Rejected { aside, .. }
            | Event::Canceled { aside, .. } => aside.metadata = Some(notice.put(aside.metadata.as_ref())),
            Event::Replied { message } => message.metadata = Some(notice.put(message.metadata.as_ref())),
            Event::Accepted { .. }
            | Event::Progress { .. }
            | Event::Artifact { .. }
            | Event::Answered { .. } => {}
        }
    }

    /// Ends the task in place of its response.
    async fn block(&mut self) {
        let report = std::mem::take(&mut self.report);
        self.held = ArtifactBuffer::default();
        report.tell(&self.journal, self.verb.clone(), GuardDirection::Output).await;
        self.ready.push_back(Ok(Event::failed(report.failure(GuardDirection::Output))));
        self.is_over = true;
    }
}

/// True if a run ends with this event.
const fn ends(event: &Event) -> bool {
    match event {
        Event::Asked { .. }
        | Event::Finished { .. }
        | Event::Replied { .. }
        | Event::Failed { .. }
        | Event::Rejected { .. }
        | Event::Canceled { .. } => true,
        Event::Accepted { .. } | Event::Progress { .. } | Event::Artifact { .. } | Event::Answered { .. } => {
            false
        }
    }
}

/// Failure of a response that is larger than can be held back.
fn too_large() -> ContentFinding {
    ContentFinding {
        check: "hold",
        kind: "too-large".into(),
        part: 0,
        field: PartField::Message,
        at: None,
        action: CheckAction::Block,
    }
}
