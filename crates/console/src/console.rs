//! What pages and API share: the engine, the store, the office, and who may do what.

use std::sync::Arc;

use axum::Router;
use rialto_edge::site::Site;
use rialto_engine::Engine;
use rialto_flow::run::Runner;
use rialto_model::{
    agent::Agent,
    call::{Caller, CallerKind},
    failure::{Failure, Kind},
    ids::AgentId,
    rights::{Right, Rights},
    store::{Store, StoreError},
};
use rialto_policy::Action;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::{api, assets, office::Office, pages};

/// So many tasks may be followed at once.
const FOLLOWERS: usize = 256;

/// What a console is made of.
pub struct Parts {
    /// Does the work.
    pub engine: Engine,
    /// Where everything is kept.
    pub store: Arc<dyn Store>,
    /// Runs workflows.
    pub flows: Runner,
    /// What only the program can do.
    pub office: Arc<dyn Office>,
    /// How this server is reached.
    pub site: Site,
    /// Whether callers have to sign in.
    pub needs_token: bool,
    /// Whether agents that are registered here may have private addresses.
    pub allow_private: bool,
    /// Whether secrets of this machine may be named here.
    pub allow_secrets: bool,
    /// The largest body, in bytes.
    pub max_body_bytes: usize,
    /// Ends streams that would not end by themselves.
    pub stop: CancellationToken,
}

/// The console. Cloning shares it.
#[derive(Clone)]
pub struct Console(Arc<Inner>);

struct Inner {
    parts: Parts,
    /// Who follows a task takes one.
    seats: Arc<Semaphore>,
}

// === impl Console ===

impl Console {
    /// Puts it together.
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(Inner { parts, seats: Arc::new(Semaphore::new(FOLLOWERS)) }))
    }

    /// Its pages and its API. Requests must have come through the gate, which says who calls.
    pub fn router(&self) -> Router {
        pages::router(self).merge(api::router(self)).merge(assets::router())
    }

    /// Paths that are shown before somebody has signed in.
    pub fn before_sign_in() -> Vec<&'static str> {
        [rialto_edge::session::SIGN_IN, assets::style(), assets::script()].to_vec()
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.0.parts.engine
    }

    pub(crate) fn flows(&self) -> &Runner {
        &self.0.parts.flows
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.0.parts.store
    }

    pub(crate) fn office(&self) -> &dyn Office {
        &*self.0.parts.office
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.0.parts
    }

    /// A seat for somebody who follows a task, for as long as it is held.
    pub(crate) fn seat(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let busy = |_| Failure::new(Kind::Busy, format!("{FOLLOWERS} follow tasks already; try again later"));
        Arc::clone(&self.0.seats).try_acquire_owned().map_err(busy)
    }

    /// Whether the caller may administer this, with everything that changed elsewhere taken into account.
    pub(crate) async fn admit(&self, caller: &Caller, action: Action) -> Result<(), Failure> {
        self.engine().sync().await?;
        self.may(caller, action)
    }

    /// The same as things stood a moment ago: for what is shown, not for what is done.
    pub(crate) fn may(&self, caller: &Caller, action: Action) -> Result<(), Failure> {
        if !caller.rights.have(Right::Admin) {
            return Err(Right::Admin.lacking());
        }
        self.engine().may_administer(caller, action)
    }

    /// Whether the caller may do this at all, or administer.
    pub(crate) fn need(caller: &Caller, right: Right) -> Result<(), Failure> {
        if caller.rights.meet(Rights::of([right, Right::Admin])) { Ok(()) } else { Err(right.lacking()) }
    }

    /// The row of a caller that is an agent.
    pub(crate) fn caller_row(&self, caller: &Caller) -> Option<Arc<Agent>> {
        match caller.kind {
            CallerKind::User | CallerKind::Session => None,
            CallerKind::Agent => self.engine().registry().get(&AgentId::from(caller.id.as_str())),
        }
    }

    /// Whether the caller may see what everybody in its org did.
    pub(crate) fn sees_all(&self, caller: &Caller) -> bool {
        self.may(caller, Action::AdminAudit).is_ok()
    }
}

/// What is told of a store that did not do its part.
#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
pub(crate) fn store_failure(error: StoreError) -> Failure {
    tracing::error!(error = &error as &dyn std::error::Error, "the store failed: {error}");
    Failure::new(Kind::Internal, "the store did not answer; see the server's log, and try again")
}
