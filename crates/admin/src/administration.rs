//! State that all operations share: engine, store, host and permission checks.

use std::sync::Arc;

use rialto_engine::Engine;
use rialto_http_server::{public_url::PublicUrl, stream_limits::StreamLimits};
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
use rialto_webhooks::audit_feed::AuditFeed;
use rialto_workflow::run::WorkflowRunner;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    change_feed::ChangeFeed, host::AdminHost, refresh_job::RefreshJobs, sessions::RefusedSignIns,
    verify_job::VerifyJobs,
};

/// Dependencies and settings of an administration.
pub struct AdministrationDeps {
    /// Engine that executes calls.
    pub engine: Engine,
    /// Store.
    pub store: Arc<dyn Store>,
    /// Workflow runner.
    pub flows: WorkflowRunner,
    /// Operations of the program.
    pub host: Arc<dyn AdminHost>,
    /// Public address of the server.
    pub site: PublicUrl,
    /// Whether callers need a token.
    pub needs_token: bool,
    /// Whether the caller is the operator on this machine, who needs no policy.
    pub is_local: bool,
    /// Whether registered agents may have private addresses.
    pub allow_private: bool,
    /// Whether secrets of this machine may be used.
    pub allow_secrets: bool,
    /// Maximum size of a request body, in bytes.
    pub max_body_bytes: usize,
    /// Limit of open streams for each caller.
    pub streams: StreamLimits,
    /// Token that ends open streams at shutdown.
    pub stop: CancellationToken,
}

/// Administrative operations of a server, for its pages, its API and its command line. Clones share their state.
#[derive(Clone)]
pub struct Administration(Arc<AdministrationInner>);

struct AdministrationInner {
    deps: AdministrationDeps,
    audit_feed: AuditFeed,
    change_feed: ChangeFeed,
    /// Background refreshes of cards.
    refresh_jobs: RefreshJobs,
    /// Background verifications of the audit log.
    verify_jobs: VerifyJobs,
    /// Counter of recorded sign-in failures.
    refused_sign_ins: RefusedSignIns,
}

// === impl Administration ===

impl Administration {
    /// Creates an administration.
    pub fn new(deps: AdministrationDeps) -> Self {
        let audit_feed = AuditFeed::new(Arc::clone(&deps.store));
        let change_feed = ChangeFeed::new();
        let (refresh_jobs, verify_jobs) = (RefreshJobs::default(), VerifyJobs::default());
        let refused_sign_ins = RefusedSignIns::default();
        Self(Arc::new(AdministrationInner {
            deps,
            audit_feed,
            change_feed,
            refresh_jobs,
            verify_jobs,
            refused_sign_ins,
        }))
    }

    /// Engine that executes calls.
    pub fn engine(&self) -> &Engine {
        &self.0.deps.engine
    }

    pub(crate) fn workflows(&self) -> &WorkflowRunner {
        &self.0.deps.flows
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.0.deps.store
    }

    /// Operations of the program.
    pub fn host(&self) -> &dyn AdminHost {
        &*self.0.deps.host
    }

    /// Dependencies and settings.
    pub fn deps(&self) -> &AdministrationDeps {
        &self.0.deps
    }

    pub(crate) fn refresh_jobs(&self) -> &RefreshJobs {
        &self.0.refresh_jobs
    }

    pub(crate) fn refused_sign_ins(&self) -> &RefusedSignIns {
        &self.0.refused_sign_ins
    }

    pub(crate) fn verify_jobs(&self) -> &VerifyJobs {
        &self.0.verify_jobs
    }

    /// Feed of audit records.
    pub fn audit_feed(&self) -> &AuditFeed {
        &self.0.audit_feed
    }

    /// Feed of changes.
    pub fn change_feed(&self) -> &ChangeFeed {
        &self.0.change_feed
    }

    /// Whether the caller is the operator on this machine.
    pub(crate) fn is_local(&self) -> bool {
        self.0.deps.is_local
    }

    /// Protocol of the requests.
    pub(crate) fn protocol(&self) -> EntryProtocol {
        if self.is_local() { EntryProtocol::Cli } else { EntryProtocol::Http }
    }

    /// Synchronizes with the store and checks permission for an administrative action.
    pub async fn authorize_admin(&self, caller: &Caller, action: Action) -> Result<(), Failure> {
        self.engine().policies().sync().await?;
        self.check_admin(caller, action)
    }

    /// Checks permission for an administrative action by the state of this process: to show it, not to do it.
    pub fn check_admin(&self, caller: &Caller, action: Action) -> Result<(), Failure> {
        if self.is_local() {
            return Ok(());
        }
        if !caller.rights.have(TokenScope::Admin) {
            return Err(TokenScope::Admin.lacking());
        }
        self.engine().policies().require_admin(caller, action)
    }

    /// Whether the caller may use secrets and programs of the server's machine: only callers of the org `default`, if the configuration
    /// allows it.
    pub fn may_use_machine_resources(&self, caller: &Caller) -> bool {
        let is_own = self.is_local() || caller.scope.org == Scope::default().org;
        is_own && self.0.deps.allow_secrets
    }

    /// Whether agents, tools and webhooks of the caller may have private addresses: if the configuration allows it, and for the
    /// server's owner.
    pub(crate) fn may_use_private_addresses(&self, caller: &Caller) -> bool {
        let is_server_owner = caller.rights.is_owner() && caller.scope.org == Scope::default().org;
        self.0.deps.allow_private || is_server_owner
    }

    /// Registered agent of a caller that is an agent.
    pub(crate) fn agent_of_caller(&self, caller: &Caller) -> Option<Arc<Agent>> {
        match caller.kind {
            CallerKind::User | CallerKind::Session => None,
            CallerKind::Agent => self.engine().registry().get(&AgentId::from(caller.id.as_str())),
        }
    }

    /// Whether the caller is allowed to see calls of all callers in its org.
    pub fn sees_all_callers(&self, caller: &Caller) -> bool {
        self.check_admin(caller, Action::AdminAudit).is_ok()
    }
}

/// Fails unless the caller has this right or the right to administer.
pub fn require_right_or_admin(caller: &Caller, right: TokenScope) -> Result<(), Failure> {
    if caller.rights.meet(TokenScopes::from_scopes([right, TokenScope::Admin])) {
        Ok(())
    } else {
        Err(right.lacking())
    }
}

/// Fails unless the caller has this right itself. The right to administer does not replace it.
pub(crate) fn require_right(caller: &Caller, right: TokenScope) -> Result<(), Failure> {
    if caller.rights.have(right) { Ok(()) } else { Err(right.lacking()) }
}

/// Failure for the caller when the store failed.
#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
pub fn store_failure(error: StoreError) -> Failure {
    tracing::error!(error = &error as &dyn std::error::Error, "the store failed: {error}");
    let message = "the store did not answer; see the server's log, and try again";
    Failure::new(FailureKind::StoreUnavailable, message).with_data(Json::encode(&json!({ "retryAfter": 1 })))
}
