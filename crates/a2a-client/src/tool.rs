//! One skill of one agent as a library function.
//!
//! A call passes the complete call pipeline (policy, events, schema validation, the agent's dialect), but needs no registry, no disk with
//! a store in memory, and no network with a test client. Subscribe to the bus to observe the call.

use std::sync::Arc;

use rialto_a2a_codec::card::signature::VerificationKeys;
use rialto_engine::{AuditRecorder, CallRequest, Config, Engine, EngineDeps, Registry};
use rialto_http_client::fetch::Fetch;
use rialto_model::{
    agent::Agent,
    call::{CallTarget, Caller, EntryProtocol},
    card::{Card, Skill},
    clock::SystemClock,
    failure::Failure,
    json::Json,
    store::Store,
    task::Task,
};
use rialto_policy::Policy;

use crate::{
    backend::{self, A2aBackend, A2aBackendDeps},
    credential::{no_store, resolver},
    discover::Discoverer,
};

/// Callable skill.
pub struct SkillTool {
    engine: Engine,
    target: CallTarget,
    caller: Caller,
}

/// Dependencies of a skill tool.
pub struct SkillToolDeps {
    /// Sends its requests.
    pub fetch: Arc<dyn Fetch>,
    /// Calls that it does not permit are rejected.
    pub policy: Policy,
    /// Store of its calls.
    pub store: Arc<dyn Store>,
}

// === impl SkillTool ===

impl SkillTool {
    /// Creates a tool for `skill` of the agent in this row with this card.
    pub fn new(agent: Agent, card: Card, skill: Skill, deps: SkillToolDeps) -> Self {
        let SkillToolDeps { fetch, policy, store } = deps;
        let clock = Arc::new(SystemClock);
        let config = Config::default();
        // Only inline secrets are available: there is no environment.
        let tokens = resolver(|_| None, no_store);
        let discovery =
            Arc::new(Discoverer::new(Arc::clone(&fetch), Arc::clone(&tokens), VerificationKeys::new()));
        let registry = Arc::new(Registry::new(Arc::clone(&store), discovery, clock.clone(), config.clone()));
        let ports = A2aBackendDeps { fetch, tokens, learned: registry.clone(), clock: clock.clone() };
        let peer = Arc::new(A2aBackend::new(backend::Config::default(), ports));
        let engine =
            Engine::new(EngineDeps { store, registry, peer, policy, policy_loader: None, clock, config });
        let caller = Caller { scope: agent.scope.clone(), ..Caller::user("library") };
        let agent = Arc::new(Agent { card: Arc::new(card), ..agent });
        Self { engine, target: CallTarget { agent, skill: Some(Arc::new(skill)) }, caller }
    }

    /// Sets the caller.
    #[must_use]
    pub fn with_caller(mut self, caller: Caller) -> Self {
        self.caller = caller;
        self
    }

    /// `<agentSlug>.<skillId>`.
    pub fn name(&self) -> String {
        self.target.verb()
    }

    /// Name in the format of older clients.
    pub fn legacy_alias(&self) -> String {
        self.target.legacy_alias()
    }

    /// Audit log, whose subscribers receive an event before and after every call.
    pub fn audit(&self) -> &AuditRecorder {
        self.engine.audit()
    }

    /// Calls the skill and waits for its end.
    pub async fn call(&self, args: Json) -> Result<Task, Failure> {
        let request =
            CallRequest::skill(self.caller.clone(), EntryProtocol::Library, self.target.clone(), args);
        self.engine.calls().start(request).await?.into_handle()?.finish().await
    }
}
