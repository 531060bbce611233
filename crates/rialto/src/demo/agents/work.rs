//! What an agent is busy with.
//!
//! Nothing runs in the background: how far a work has come follows from when it began. So a stream, a poll and a late
//! subscriber all tell the same story.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::Value;

/// What a skill makes, decided when it is asked.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// A piece of data.
    Data(Value),
    /// A text.
    Text(String),
    /// A text told piece by piece, with a pause before each.
    Story(Vec<String>),
    /// Nothing, for that reason.
    Failure(&'static str),
}

/// One task.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) id: String,
    pub(super) context: String,
    pub(super) outcome: Outcome,
    begun: Instant,
    /// How many pieces were done when it was called off.
    canceled: Option<usize>,
}

/// How a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    Working,
    Completed,
    Failed,
    Canceled,
}

/// The tasks an agent remembers: the newest.
#[derive(Default)]
pub(super) struct Shelf {
    works: Mutex<VecDeque<Work>>,
    made: AtomicU64,
}

const PAUSE: Duration = Duration::from_millis(150);
const REMEMBERED: usize = 256;

// === impl Work ===

impl Work {
    pub(super) fn begin(id: String, context: String, outcome: Outcome) -> Self {
        Self { id, context, outcome, begun: Instant::now(), canceled: None }
    }

    /// How many pieces there will be.
    pub(super) const fn pieces(&self) -> usize {
        match &self.outcome {
            Outcome::Data(_) | Outcome::Text(_) => 1,
            Outcome::Story(pieces) => pieces.len(),
            Outcome::Failure(_) => 0,
        }
    }

    /// How many pieces are done by now.
    pub(super) fn pieces_done(&self) -> usize {
        let due =
            (0..self.pieces()).take_while(|piece| self.due(*piece).is_some_and(|due| due <= Instant::now()));
        self.canceled.unwrap_or_else(|| due.count())
    }

    /// When a piece is done; none when there is no such piece.
    pub(super) fn due(&self, piece: usize) -> Option<Instant> {
        let before = u32::try_from(piece).ok().filter(|_| piece < self.pieces())?;
        let pause = if matches!(self.outcome, Outcome::Story(_)) { PAUSE } else { Duration::ZERO };
        Some(self.begun + pause * (before + 1))
    }

    pub(super) fn stand(&self) -> Stand {
        match &self.outcome {
            _ if self.is_canceled() => Stand::Canceled,
            Outcome::Failure(_) => Stand::Failed,
            _ if self.pieces_done() == self.pieces() => Stand::Completed,
            _ => Stand::Working,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.stand() != Stand::Working
    }

    pub(super) const fn is_canceled(&self) -> bool {
        self.canceled.is_some()
    }
}

// === impl Shelf ===

impl Shelf {
    /// A name no other task of this agent has.
    pub(super) fn new_id(&self, agent: &str) -> String {
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        format!("{}-{number}", agent.to_lowercase().replace(' ', "-"))
    }

    pub(super) fn put(&self, work: Work) {
        let mut works = self.works.lock().unwrap_or_else(PoisonError::into_inner);
        if works.len() == REMEMBERED {
            works.pop_front();
        }
        works.push_back(work);
    }

    pub(super) fn find(&self, id: &str) -> Option<Work> {
        let works = self.works.lock().unwrap_or_else(PoisonError::into_inner);
        works.iter().rev().find(|work| work.id == id).cloned()
    }

    /// Calls a task off; none when it is over.
    pub(super) fn cancel(&self, id: &str) -> Option<Work> {
        let mut works = self.works.lock().unwrap_or_else(PoisonError::into_inner);
        let work = works.iter_mut().rev().find(|work| work.id == id && !work.is_over())?;
        work.canceled = Some(work.pieces_done());
        Some(work.clone())
    }
}
