//! The way to one agent: its program, started when it is needed, and not again and again when it dies.
//!
//! A program is told when it is started how many calls led to it (`RIALTO_HOPS`), so calls of different depth do not share one: an agent that
//! calls itself through us would otherwise count from the same number again and again. There are at most as many programs as hops.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rialto_edge::process::Launcher;
use rialto_model::{backing::CodingAgentBacking, call::Caller};
use tokio::{sync::Mutex, time::Instant};

use crate::link::Link;

/// How long to wait before a program is started again that has died.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Whoever calls is made to wait for a program at most so long before it is even tried.
const PATIENCE: Duration = Duration::from_secs(5);

/// A program that has run for so long did not die at once.
const LASTING: Duration = Duration::from_secs(30);

/// The way to one agent.
pub(crate) struct Line {
    pub(crate) local: Arc<CodingAgentBacking>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By how many calls lead to them.
    links: BTreeMap<u8, Arc<Link>>,
    begun: Option<Instant>,
    deaths: u32,
}

// === impl Line ===

impl Line {
    pub(crate) fn new(local: Arc<CodingAgentBacking>) -> Self {
        Self { local, state: Mutex::default() }
    }

    /// The program for a caller, started if it does not run. Others who want it wait for the same start.
    pub(crate) async fn link(&self, launcher: &Launcher, caller: &Caller) -> Result<Arc<Link>, String> {
        let mut state = self.state.lock().await;
        if let Some(link) = state.links.get(&caller.hops).filter(|link| !link.is_gone()) {
            return Ok(Arc::clone(link));
        }
        if state.links.remove(&caller.hops).is_some() {
            let lasted = state.begun.is_some_and(|begun| begun.elapsed() > LASTING);
            state.deaths = if lasted { 1 } else { state.deaths.saturating_add(1) };
            tracing::warn!("the program of {} has ended; it is started again", self.local.name);
        }
        let again = state.begun.map(|begun| begun + pause(state.deaths));
        if let Some(left) = again.map(|again| again.saturating_duration_since(Instant::now())) {
            if left > PATIENCE {
                let seconds = left.as_secs() + 1;
                return Err(format!(
                    "its program died {} times and is started again in {seconds} s",
                    state.deaths
                ));
            }
            tokio::time::sleep(left).await;
        }
        state.begun = Some(Instant::now());
        match Link::start(&launcher.for_caller(caller), &self.local).await {
            Ok(link) => {
                state.links.insert(caller.hops, Arc::clone(&link));
                Ok(link)
            }
            Err(why) => {
                state.deaths = state.deaths.saturating_add(1);
                Err(why)
            }
        }
    }
}

fn pause(deaths: u32) -> Duration {
    match deaths {
        0 => Duration::ZERO,
        deaths => (FIRST_PAUSE * 2_u32.saturating_pow((deaths - 1).min(10))).min(LONGEST_PAUSE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_keeps_dying_is_started_less_and_less_often() {
        let pauses: Vec<_> = [0, 1, 2, 3, 8, 50].map(|deaths| pause(deaths).as_millis()).into();
        assert_eq!(pauses, [0, 500, 1_000, 2_000, 60_000, 60_000]);
    }
}
