//! What pages and API share: the engine, the store, the office, and who may do what.

use std::sync::Arc;

use axum::Router;
use rialto_edge::{site::Site, streams::StreamLimits};
use rialto_engine::Engine;
use rialto_flow::run::Runner;
use rialto_hooks::live::Live;
use rialto_model::{
    agent::Agent,
    call::{Caller, CallerKind, EntryProtocol},
    failure::{Failure, FailureKind},
    ids::{AgentId, Scope},
    json::Json,
    store::{Store, StoreError},
    token_scopes::{TokenScope, TokenScopes},
};
use rialto_policy::Action;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    admin::{refreshing::Rounds, sessions::RefusedSignIns, verifying::Verifications},
    api, assets,
    changes::Changes,
    office::Office,
    pages,
};

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
    /// Whether whoever asks works at this machine, and needs no policy.
    pub at_machine: bool,
    /// Whether agents that are registered here may have private addresses.
    pub allow_private: bool,
    /// Whether secrets of this machine may be named here.
    pub allow_secrets: bool,
    /// The largest body, in bytes.
    pub max_body_bytes: usize,
    /// How many streams each caller may have open.
    pub streams: StreamLimits,
    /// Ends streams that would not end by themselves.
    pub stop: CancellationToken,
}

/// The console. Cloning shares it.
#[derive(Clone)]
pub struct Console(Arc<Inner>);

struct Inner {
    parts: Parts,
    live: Live,
    changes: Changes,
    /// Who has many cards fetched again.
    rounds: Rounds,
    /// Who has the audit trail compared.
    verifications: Verifications,
    /// How many refused sign-ins were recorded lately.
    refused_sign_ins: RefusedSignIns,
}

// === impl Console ===

impl Console {
    /// Puts it together.
    pub fn new(parts: Parts) -> Self {
        let live = Live::new(Arc::clone(&parts.store));
        let changes = Changes::new();
        let (rounds, verifications) = (Rounds::default(), Verifications::default());
        let refused_sign_ins = RefusedSignIns::default();
        Self(Arc::new(Inner { parts, live, changes, rounds, verifications, refused_sign_ins }))
    }

    /// Its pages and its API. Requests must have come through the gate, which says who calls.
    pub fn router(&self) -> Router {
        pages::router(self).merge(api::router(self)).merge(assets::router())
    }

    /// Its API alone, for those who ask from inside the program. Requests must say who calls.
    pub fn api(&self) -> Router {
        api::router(self)
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

    pub(crate) fn rounds(&self) -> &Rounds {
        &self.0.rounds
    }

    pub(crate) fn refused_sign_ins(&self) -> &RefusedSignIns {
        &self.0.refused_sign_ins
    }

    pub(crate) fn verifications(&self) -> &Verifications {
        &self.0.verifications
    }

    /// What comes on record.
    pub(crate) fn live(&self) -> &Live {
        &self.0.live
    }

    /// What changes of what is there.
    pub(crate) fn changes(&self) -> &Changes {
        &self.0.changes
    }

    /// Whether whoever asks works at this machine.
    pub(crate) fn at_machine(&self) -> bool {
        self.0.parts.at_machine
    }

    /// By which door those come who ask here.
    pub(crate) fn door(&self) -> EntryProtocol {
        if self.at_machine() { EntryProtocol::Cli } else { EntryProtocol::Http }
    }

    /// Whether the caller may administer this, with everything that changed elsewhere taken into account.
    pub(crate) async fn admit(&self, caller: &Caller, action: Action) -> Result<(), Failure> {
        self.engine().sync().await?;
        self.may(caller, action)
    }

    /// The same as things stood a moment ago: for what is shown, not for what is done.
    pub(crate) fn may(&self, caller: &Caller, action: Action) -> Result<(), Failure> {
        if self.at_machine() {
            return Ok(());
        }
        if !caller.rights.have(TokenScope::Admin) {
            return Err(TokenScope::Admin.lacking());
        }
        self.engine().may_administer(caller, action)
    }

    /// Whether the caller may do this at all, or administer.
    pub(crate) fn need(caller: &Caller, right: TokenScope) -> Result<(), Failure> {
        if caller.rights.meet(TokenScopes::from_scopes([right, TokenScope::Admin])) {
            Ok(())
        } else {
            Err(right.lacking())
        }
    }

    /// Whether the caller may do this itself: administering others' doings is not enough.
    pub(crate) fn own(caller: &Caller, right: TokenScope) -> Result<(), Failure> {
        if caller.rights.have(right) { Ok(()) } else { Err(right.lacking()) }
    }

    /// Whether the caller may name secrets and run programs of the server's machine. These are the server's own, and so for callers
    /// of the org `default` alone, where the configuration lets them.
    pub(crate) fn may_use_machine(&self, caller: &Caller) -> bool {
        let is_own = self.at_machine() || caller.scope.org == Scope::default().org;
        is_own && self.0.parts.allow_secrets
    }

    /// Whether agents, tools and webhooks of the caller may have private addresses: where the configuration says so, and for the
    /// server's own owner, whose machine and network it is.
    pub(crate) fn may_use_private_addresses(&self, caller: &Caller) -> bool {
        let is_server_owner = caller.rights.is_owner() && caller.scope.org == Scope::default().org;
        self.0.parts.allow_private || is_server_owner
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
    let message = "the store did not answer; see the server's log, and try again";
    Failure::new(FailureKind::StoreUnavailable, message).with_data(Json::encode(&json!({ "retryAfter": 1 })))
}
