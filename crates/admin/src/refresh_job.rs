//! Background refresh of the cards of many agents, with its progress.

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

use super::agents::join_slugs;
use crate::{Administration, operation::AdminOperation};

/// Maximum number of cards that are fetched at the same time.
const MAX_CONCURRENT_FETCHES: usize = 32;

/// Maximum duration of a refresh.
const MAX_DURATION: Duration = Duration::from_secs(30 * 60);

/// Background refresh of a project's agents, with its progress.
#[derive(Debug)]
pub struct RefreshJob {
    scope: Scope,
    /// Number of agents.
    pub all: usize,
    /// Time of the start.
    pub started_at: Timestamp,
    answered: AtomicUsize,
    unanswered: AtomicUsize,
    is_over: AtomicBool,
}

/// Last refresh of each project.
#[derive(Debug, Default)]
pub(crate) struct RefreshJobs(Mutex<Vec<Arc<RefreshJob>>>);

// === impl RefreshJob ===

impl RefreshJob {
    /// Numbers of agents that answered and that did not.
    pub fn counts(&self) -> (usize, usize) {
        (self.answered.load(Ordering::Relaxed), self.unanswered.load(Ordering::Relaxed))
    }

    /// Whether the refresh has ended.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

// === impl RefreshJobs ===

impl RefreshJobs {
    fn find(&self, scope: &Scope) -> Option<Arc<RefreshJob>> {
        let jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.iter().find(|job| job.scope == *scope).cloned()
    }

    /// Registers a refresh; fails while another one of the project is running.
    fn register(&self, job: &Arc<RefreshJob>) -> Result<(), Failure> {
        let mut jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if jobs.iter().any(|known| known.scope == job.scope && !known.is_over()) {
            let message = "a refresh is running already; try again when it has ended";
            return Err(Failure::new(FailureKind::Conflict, message));
        }
        jobs.retain(|known| known.scope != job.scope);
        jobs.push(Arc::clone(job));
        Ok(())
    }
}

/// Starts a refresh of these agents, or of all agents.
pub async fn start(
    admin: &Administration,
    caller: &Caller,
    slugs: &[String],
) -> Result<Arc<RefreshJob>, Failure> {
    let operation = AdminOperation::new("agent.refresh", join_slugs(slugs));
    let work = async { start_authorized(admin, caller, slugs, &operation) };
    admin.administer(caller, Action::AdminAgents, &operation, work).await
}

fn start_authorized(
    admin: &Administration,
    caller: &Caller,
    slugs: &[String],
    operation: &AdminOperation,
) -> Result<Arc<RefreshJob>, Failure> {
    let mut agents = admin.engine().registry().agents(&caller.scope);
    agents.retain(|agent| slugs.is_empty() || slugs.contains(&agent.slug));
    let job = Arc::new(RefreshJob {
        scope: caller.scope.clone(),
        all: agents.len(),
        started_at: admin.engine().now(),
        answered: AtomicUsize::new(0),
        unanswered: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
    });
    admin.refresh_jobs().register(&job)?;
    operation.after(json!({ "begun": true, "agents": job.all }));
    let (engine, running, stop) = (admin.engine().clone(), Arc::clone(&job), admin.deps().stop.clone());
    tokio::spawn(async move {
        let fetch_all = futures::stream::iter(agents).for_each_concurrent(MAX_CONCURRENT_FETCHES, |agent| {
            let (engine, running) = (&engine, &running);
            async move {
                let has_answered = engine.registry().refresh(&agent).await.is_ok();
                let counted = if has_answered { &running.answered } else { &running.unanswered };
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        tokio::select! {
            () = fetch_all => {}
            () = stop.cancelled() => {}
            () = tokio::time::sleep(MAX_DURATION) => {}
        }
        running.is_over.store(true, Ordering::Relaxed);
    });
    Ok(job)
}

/// Last refresh of the caller's project, if there was one since the server started.
pub async fn latest(admin: &Administration, caller: &Caller) -> Result<Option<Arc<RefreshJob>>, Failure> {
    admin.authorize_admin(caller, Action::AdminAgents).await?;
    Ok(admin.refresh_jobs().find(&caller.scope))
}
