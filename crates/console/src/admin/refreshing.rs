//! The cards of many agents, fetched again while nobody waits: whoever wants to know looks how far it is.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::StreamExt;
use jiff::Timestamp;
use rialto_model::{
    call::Caller,
    failure::{Failure, FailureKind},
    ids::Scope,
};
use rialto_policy::Action;
use serde_json::json;

use super::agents::names;
use crate::{Console, operation::Operation};

/// How many cards are fetched at once.
const AT_ONCE: usize = 32;

/// No round takes longer.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// How far a round is.
#[derive(Debug)]
pub struct Round {
    scope: Scope,
    /// How many agents are asked.
    pub all: usize,
    /// When it began.
    pub begun: Timestamp,
    answered: AtomicUsize,
    silent: AtomicUsize,
    is_over: AtomicBool,
}

/// The last round of each project.
#[derive(Debug, Default)]
pub(crate) struct Rounds(Mutex<Vec<Arc<Round>>>);

// === impl Round ===

impl Round {
    /// How many have answered, and how many did not.
    pub fn counts(&self) -> (usize, usize) {
        (self.answered.load(Ordering::Relaxed), self.silent.load(Ordering::Relaxed))
    }

    /// Whether nobody is asked any more.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

// === impl Rounds ===

impl Rounds {
    fn of(&self, scope: &Scope) -> Option<Arc<Round>> {
        let rounds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rounds.iter().find(|round| round.scope == *scope).cloned()
    }

    /// Takes a round into the list, unless one of the project is under way.
    fn take(&self, round: &Arc<Round>) -> Result<(), Failure> {
        let mut rounds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if rounds.iter().any(|known| known.scope == round.scope && !known.is_over()) {
            let message = "cards are being fetched already; wait until that is over, and try again";
            return Err(Failure::new(FailureKind::Conflict, message));
        }
        rounds.retain(|known| known.scope != round.scope);
        rounds.push(Arc::clone(round));
        Ok(())
    }
}

/// Begins to fetch the cards of these agents again, or of all.
pub async fn begin(console: &Console, caller: &Caller, slugs: &[String]) -> Result<Arc<Round>, Failure> {
    let operation = Operation::new("agent.refresh", names(slugs));
    let work = async { begin_now(console, caller, slugs, &operation) };
    console.administer(caller, Action::AdminAgents, &operation, work).await
}

fn begin_now(
    console: &Console,
    caller: &Caller,
    slugs: &[String],
    operation: &Operation,
) -> Result<Arc<Round>, Failure> {
    let mut agents = console.engine().registry().agents(&caller.scope);
    agents.retain(|agent| slugs.is_empty() || slugs.contains(&agent.slug));
    let round = Arc::new(Round {
        scope: caller.scope.clone(),
        all: agents.len(),
        begun: console.engine().now(),
        answered: AtomicUsize::new(0),
        silent: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
    });
    console.rounds().take(&round)?;
    operation.after(json!({ "begun": true, "agents": round.all }));
    let (engine, mine, stop) = (console.engine().clone(), Arc::clone(&round), console.parts().stop.clone());
    tokio::spawn(async move {
        let ask = futures::stream::iter(agents).for_each_concurrent(AT_ONCE, |agent| {
            let (engine, mine) = (&engine, &mine);
            async move {
                let has_answered = engine.registry().refresh(&agent).await.is_ok();
                let counted = if has_answered { &mine.answered } else { &mine.silent };
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        tokio::select! {
            () = ask => {}
            () = stop.cancelled() => {}
            () = tokio::time::sleep(LONGEST) => {}
        }
        mine.is_over.store(true, Ordering::Relaxed);
    });
    Ok(round)
}

/// The last round of the caller's project, if there was one since the server started.
pub async fn last(console: &Console, caller: &Caller) -> Result<Option<Arc<Round>>, Failure> {
    console.admit(caller, Action::AdminAgents).await?;
    Ok(console.rounds().of(&caller.scope))
}
