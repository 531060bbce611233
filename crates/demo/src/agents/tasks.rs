//! Tasks of the sample agents.
//!
//! Nothing runs in the background: the progress of a task follows from its start time. So a stream, a poll and a late subscriber
//! agree.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::Value;

/// Output of a skill, decided when the task starts.
#[derive(Clone, Debug)]
pub(super) enum SkillOutput {
    /// A piece of data.
    Data(Value),
    /// A text.
    Text(String),
    /// Text in pieces, with a pause before each.
    Story(Vec<String>),
    /// Nothing, for that reason.
    Failure(&'static str),
}

/// Task of a sample agent.
#[derive(Clone, Debug)]
pub(super) struct SampleTask {
    pub(super) id: String,
    pub(super) context: String,
    pub(super) outcome: SkillOutput,
    begun: Instant,
    /// Number of pieces at the time it was cancelled.
    canceled: Option<usize>,
}

/// State of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SampleTaskState {
    Working,
    Completed,
    Failed,
    Canceled,
}

/// The tasks an agent remembers: the newest.
#[derive(Default)]
pub(super) struct RecentTasks {
    works: Mutex<VecDeque<SampleTask>>,
    made: AtomicU64,
}

const PIECE_INTERVAL: Duration = Duration::from_millis(150);
const MAX_TASKS: usize = 256;

// === impl SampleTask ===

impl SampleTask {
    pub(super) fn begin(id: String, context: String, outcome: SkillOutput) -> Self {
        Self { id, context, outcome, begun: Instant::now(), canceled: None }
    }

    /// Total number of pieces.
    pub(super) const fn pieces(&self) -> usize {
        match &self.outcome {
            SkillOutput::Data(_) | SkillOutput::Text(_) => 1,
            SkillOutput::Story(pieces) => pieces.len(),
            SkillOutput::Failure(_) => 0,
        }
    }

    /// Number of pieces done by now.
    pub(super) fn pieces_done(&self) -> usize {
        let due = (0..self.pieces())
            .take_while(|piece| self.due_at(*piece).is_some_and(|due| due <= Instant::now()));
        self.canceled.unwrap_or_else(|| due.count())
    }

    /// Time at which a piece is due; none if it does not exist.
    pub(super) fn due_at(&self, piece: usize) -> Option<Instant> {
        let before = u32::try_from(piece).ok().filter(|_| piece < self.pieces())?;
        let pause =
            if matches!(self.outcome, SkillOutput::Story(_)) { PIECE_INTERVAL } else { Duration::ZERO };
        Some(self.begun + pause * (before + 1))
    }

    pub(super) fn state(&self) -> SampleTaskState {
        match &self.outcome {
            _ if self.is_canceled() => SampleTaskState::Canceled,
            SkillOutput::Failure(_) => SampleTaskState::Failed,
            _ if self.pieces_done() == self.pieces() => SampleTaskState::Completed,
            _ => SampleTaskState::Working,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.state() != SampleTaskState::Working
    }

    pub(super) const fn is_canceled(&self) -> bool {
        self.canceled.is_some()
    }
}

// === impl RecentTasks ===

impl RecentTasks {
    /// A name no other task of this agent has.
    pub(super) fn new_id(&self, agent: &str) -> String {
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        format!("{}-{number}", agent.to_lowercase().replace(' ', "-"))
    }

    pub(super) fn put(&self, work: SampleTask) {
        let mut works = self.works.lock().unwrap_or_else(PoisonError::into_inner);
        if works.len() == MAX_TASKS {
            works.pop_front();
        }
        works.push_back(work);
    }

    pub(super) fn find(&self, id: &str) -> Option<SampleTask> {
        let works = self.works.lock().unwrap_or_else(PoisonError::into_inner);
        works.iter().rev().find(|work| work.id == id).cloned()
    }

    /// Cancels a task; none if it has ended.
    pub(super) fn cancel(&self, id: &str) -> Option<SampleTask> {
        let mut works = self.works.lock().unwrap_or_else(PoisonError::into_inner);
        let work = works.iter_mut().rev().find(|work| work.id == id && !work.is_over())?;
        work.canceled = Some(work.pieces_done());
        Some(work.clone())
    }
}
