//! Supervisor of one agent's programs: starts them on demand, and restarts them with backoff.
//!
//! A program receives at its start how many calls led to it (`RIALTO_HOPS`), so calls of different depth do not share one: an agent that
//! calls itself through this server would otherwise count from the same number again and again. There are at most as many programs as hops.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rialto_model::{backing::CodingAgentBacking, call::Caller};
use rialto_process::Launcher;
use tokio::{sync::Mutex, time::Instant};

use crate::connection::AgentConnection;

/// Pause before a program that has ended is restarted.
const FIRST_RESTART_PAUSE: Duration = Duration::from_millis(500);
const MAX_RESTART_PAUSE: Duration = Duration::from_secs(60);

/// Longest time that a call waits for a restart.
const MAX_START_WAIT: Duration = Duration::from_secs(5);

/// Run time from which a program counts as stable.
const STABLE_RUN_TIME: Duration = Duration::from_secs(30);

/// Supervisor of one agent.
pub(crate) struct AgentSupervisor {
    pub(crate) local: Arc<CodingAgentBacking>,
    state: Mutex<SupervisorState>,
}

#[derive(Default)]
struct SupervisorState {
    /// Connections, by number of hops.
    connections: BTreeMap<u8, Arc<AgentConnection>>,
    started_at: Option<Instant>,
    deaths: u32,
}

// === impl AgentSupervisor ===

impl AgentSupervisor {
    pub(crate) fn new(local: Arc<CodingAgentBacking>) -> Self {
        Self { local, state: Mutex::default() }
    }

    /// Connection for a caller; starts the program if it does not run. Concurrent callers wait for the same start.
    pub(crate) async fn connect(
        &self,
        launcher: &Launcher,
        caller: &Caller,
    ) -> Result<Arc<AgentConnection>, String> {
        let mut state = self.state.lock().await;
        if let Some(connection) =
            state.connections.get(&caller.hops).filter(|connection| !connection.has_ended())
        {
            return Ok(Arc::clone(connection));
        }
        if state.connections.remove(&caller.hops).is_some() {
            let lasted = state.started_at.is_some_and(|started_at| started_at.elapsed() > STABLE_RUN_TIME);
            state.deaths = if lasted { 1 } else { state.deaths.saturating_add(1) };
            tracing::warn!("the program of {} has ended; it is started again", self.local.name);
        }
        let next_start = state.started_at.map(|started_at| started_at + restart_pause(state.deaths));
        if let Some(left) = next_start.map(|next_start| next_start.saturating_duration_since(Instant::now()))
        {
            if left > MAX_START_WAIT {
                let seconds = left.as_secs() + 1;
                return Err(format!(
                    "its program died {} times and is started again in {seconds} s",
                    state.deaths
                ));
            }
            tokio::time::sleep(left).await;
        }
        state.started_at = Some(Instant::now());
        match AgentConnection::start(&launcher.for_caller(caller), &self.local).await {
            Ok(connection) => {
                state.connections.insert(caller.hops, Arc::clone(&connection));
                Ok(connection)
            }
            Err(why) => {
                state.deaths = state.deaths.saturating_add(1);
                Err(why)
            }
        }
    }
}

fn restart_pause(deaths: u32) -> Duration {
    match deaths {
        0 => Duration::ZERO,
        deaths => (FIRST_RESTART_PAUSE * 2_u32.saturating_pow((deaths - 1).min(10))).min(MAX_RESTART_PAUSE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_keeps_dying_is_started_less_and_less_often() {
        let pauses: Vec<_> = [0, 1, 2, 3, 8, 50].map(|deaths| restart_pause(deaths).as_millis()).into();
        assert_eq!(pauses, [0, 500, 1_000, 2_000, 60_000, 60_000]);
    }
}
