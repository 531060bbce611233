//! An engine with everything around it.

use std::sync::Arc;

use rialto_engine::{Config, Engine, Overheard, Parts, Registry, Request, registry::Registration};
use rialto_model::{
    agent::Trust,
    call::{Caller, Door},
    card::Skill,
    clock::SystemClock,
    event::Event,
    failure::Failure,
    json::Json,
    store::Store,
    task::Task,
};
use rialto_policy::Policy;
use rialto_store::SqliteStore;
use rialto_testkit::{
    agents,
    peer::{ScriptedDiscovery, ScriptedPeer},
};
use serde_json::Value;

pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) peer: Arc<ScriptedPeer>,
    pub(crate) discovery: Arc<ScriptedDiscovery>,
    pub(crate) heard: Overheard,
    pub(crate) caller: Caller,
}

pub(crate) const URL: &str = "https://vercel.example.com";

impl World {
    /// One trusted agent, `Vercel Ops`, with the skill `deploy`.
    pub(crate) async fn with(peer: Arc<ScriptedPeer>) -> Self {
        let world = Self::empty(peer, Config::default()).await;
        world.register(agents::skill("deploy"), Trust::Trusted).await;
        world
    }

    pub(crate) async fn telling(events: Vec<Event>) -> Self {
        Self::with(ScriptedPeer::telling(events)).await
    }

    pub(crate) async fn empty(peer: Arc<ScriptedPeer>, config: Config) -> Self {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory(agents::parse_card).unwrap());
        let discovery = Arc::new(ScriptedDiscovery::default());
        let clock = Arc::new(SystemClock);
        let registry =
            Arc::new(Registry::new(store.clone(), discovery.clone(), clock.clone(), config.clone()));
        let engine = Engine::new(Parts {
            store: store.clone(),
            registry,
            peer: peer.clone(),
            policy: Policy::starter().unwrap(),
            policy_loader: None,
            clock,
            config,
        });
        let heard = Overheard::default();
        engine.bus().subscribe(Arc::new(heard.clone()));
        Self { engine, store, peer, discovery, heard, caller: Caller::user("ann") }
    }

    pub(crate) async fn register(&self, skill: Skill, trust: Trust) {
        self.discovery.serve(URL, agents::card("Vercel Ops", vec![skill]));
        let wanted = Registration { trust: Some(trust), ..Registration::new(URL) };
        self.engine.registry().register(wanted).await.unwrap();
    }

    pub(crate) fn request(&self, args: Value) -> Request {
        let target = self.engine.resolve(&self.caller, "vercel_ops.deploy").unwrap();
        Request::skill(self.caller.clone(), Door::Library, target, Json::from(args))
    }

    pub(crate) async fn call(&self, args: Value) -> Result<Task, Failure> {
        self.engine.call(self.request(args)).await?.finish().await
    }

    /// The names of the bus events so far, with their outcome.
    pub(crate) fn phases(&self) -> Vec<String> {
        let phase = |event: &rialto_model::verb::VerbEvent| {
            let phase = serde_json::to_value(event.phase).unwrap().as_str().unwrap().to_owned();
            event
                .outcome
                .map_or_else(|| phase.clone(), |outcome| format!("{phase} {outcome:?}").to_lowercase())
        };
        self.heard.events().iter().map(phase).collect()
    }
}
