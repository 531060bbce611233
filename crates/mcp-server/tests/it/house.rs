//! A door with everything behind it, built the way the program builds it, but with agents that follow a script.

use std::{sync::Arc, time::Duration};

use futures::FutureExt;
use parking_lot::Mutex;
use rialto_engine::{Engine, EngineDeps, Registry, registry::Registration};
use rialto_mcp_server::{Config, LoadAgents, McpEndpoint, McpEndpointOptions, ToolErrors, ToolNames};
use rialto_model::{
    agent::{AgentTrust, RowStorage},
    call::Caller,
    card::{Card, Skill},
    clock::{FixedClock, Timestamp},
    ids::Scope,
};
use rialto_policy::{Policy, PolicySource, STARTER};
use rialto_store::SqliteStore;
use rialto_testkit::{
    agents::{card, skill},
    peer::{ScriptedDiscovery, ScriptedPeer},
    store_suite::parse_card,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// The parts of a door that a test may look at.
pub(crate) struct House {
    pub(crate) engine: Engine,
    pub(crate) peer: Arc<ScriptedPeer>,
    pub(crate) discovery: Arc<ScriptedDiscovery>,
    pub(crate) door: McpEndpoint,
    pub(crate) stop: CancellationToken,
    /// The policies beside the starter's, as they are read again.
    more: Arc<Mutex<String>>,
}

/// What a test says about its house; everything else is ordinary.
pub(crate) struct Plan {
    pub(crate) peer: Arc<ScriptedPeer>,
    pub(crate) agents: Vec<Card>,
    pub(crate) config: Config,
    pub(crate) calls: rialto_engine::Config,
    pub(crate) load_agents: LoadAgents,
    pub(crate) policy: &'static str,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            peer: ScriptedPeer::echo(),
            agents: vec![weather()],
            // Most tests read S0's codes and canonical names; `defaults` tests what clients get without any option.
            config: Config {
                tool_errors: ToolErrors::Protocol,
                tool_names: ToolNames::Canonical,
                ..Config::default()
            },
            calls: rialto_engine::Config::default(),
            load_agents: LoadAgents::Session,
            policy: "",
        }
    }
}

impl Plan {
    /// An ordinary house whose agents answer as `peer` does.
    pub(crate) fn with(peer: Arc<ScriptedPeer>) -> Self {
        Self { peer, ..Self::default() }
    }

    pub(crate) async fn build(self) -> House {
        let store = Arc::new(SqliteStore::in_memory(parse_card).unwrap());
        let discovery = Arc::new(ScriptedDiscovery::default());
        let clock = Arc::new(FixedClock(Timestamp::UNIX_EPOCH));
        let registry =
            Arc::new(Registry::new(store.clone(), discovery.clone(), clock.clone(), self.calls.clone()));
        let more = Arc::new(Mutex::new(self.policy.to_owned()));
        let read = {
            let more = Arc::clone(&more);
            move || {
                let source =
                    |name: &str, text: &str| PolicySource { name: name.into(), text: text.into(), org: None };
                Policy::parse(&[source("starter.cedar", STARTER), source("more.cedar", &more.lock())])
            }
        };
        let engine = Engine::new(EngineDeps {
            store,
            registry,
            peer: self.peer.clone(),
            policy: read().unwrap(),
            policy_loader: Some(Box::new(move || {
                let policy = read();
                async move { Ok(policy) }.boxed()
            })),
            clock,
            config: self.calls,
        });
        engine.policies().sync().await.unwrap();
        let control = McpEndpointOptions { load_agents: self.load_agents };
        let door = McpEndpoint::new(engine.clone(), self.config, control);
        let house = House { engine, peer: self.peer, discovery, door, stop: CancellationToken::new(), more };
        for card in self.agents {
            house.meet(card).await;
        }
        house
    }
}

impl House {
    /// Registers an agent with this card.
    pub(crate) async fn meet(&self, card: Card) {
        let url = url_of(&card);
        self.discovery.serve(&url, card);
        let registration = Registration {
            trust: Some(AgentTrust::Trusted),
            keep: RowStorage::Session,
            ..Registration::new(url)
        };
        self.engine.registry().register(registration).await.unwrap();
    }

    /// The same in another project.
    pub(crate) async fn meet_elsewhere(&self, card: Card) {
        let url = url_of(&card);
        self.discovery.serve(&url, card);
        let scope = Scope { project: "elsewhere".into(), ..Scope::default() };
        let registration = Registration { scope, keep: RowStorage::Session, ..Registration::new(url) };
        self.engine.registry().register(registration).await.unwrap();
    }

    /// Puts other policies into force, beside the starter's.
    pub(crate) async fn rule(&self, policies: &str) {
        policies.clone_into(&mut self.more.lock());
        self.engine.policies().reload().await.unwrap();
    }

    /// Removes an agent again.
    pub(crate) async fn part_from(&self, name: &str) {
        let agent = self.engine.registry().find(&ann().scope, name).unwrap();
        self.engine.registry().remove(&agent).await.unwrap();
    }
}

/// The caller of these tests.
pub(crate) fn ann() -> Caller {
    Caller::user("ann")
}

/// Where an agent of these tests lives.
pub(crate) fn url_of(card: &Card) -> String {
    format!("https://{}.example.com", rialto_model::name::agent_slug(&card.name).replace('_', "-"))
}

/// An agent with one skill that takes anything.
pub(crate) fn weather() -> Card {
    card("Weather", vec![named("forecast", "Forecast", "Tells the weather of tomorrow")])
}

pub(crate) fn named(id: &str, name: &str, description: &str) -> Skill {
    Skill { name: name.into(), description: description.into(), ..skill(id) }
}

/// Short enough to test, long enough to be met.
pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), what).await.expect("in time")
}

/// The same JSON with task ids by the order they first appear, and without our version: the same in every run.
pub(crate) fn steady(value: &Value) -> Value {
    let version = format!(r#""version":"{}""#, env!("CARGO_PKG_VERSION"));
    let text = value.to_string().replace(&version, r#""version":"[version]""#);
    let mut seen: Vec<String> = Vec::new();
    let mut steady = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find("task_") {
        let (before, from) = rest.split_at(at);
        steady.push_str(before);
        match from.get(5..37).filter(|id| id.bytes().all(|byte| byte.is_ascii_hexdigit())) {
            Some(id) => {
                let number = seen.iter().position(|known| known == id).unwrap_or_else(|| {
                    seen.push(id.to_owned());
                    seen.len() - 1
                });
                steady.push_str(&format!("task_{}", number + 1));
                rest = from.get(37..).unwrap_or_default();
            }
            None => {
                steady.push_str("task_");
                rest = from.get(5..).unwrap_or_default();
            }
        }
    }
    steady.push_str(rest);
    serde_json::from_str(&steady).unwrap()
}
