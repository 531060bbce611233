//! An engine with everything around it.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use rialto_engine::{
    Config, Engine, Overheard, Parts, Registry, Request, Said, Talk, registry::Registration,
};
use rialto_model::{
    agent::AgentTrust,
    call::{Caller, EntryProtocol, OriginalMessage},
    card::Skill,
    clock::{Clock, SystemClock, Timestamp},
    event::Event,
    failure::Failure,
    ids::{ContextId, TaskId},
    json::Json,
    message::{Message, Part, Role},
    store::Store,
    task::Task,
};
use rialto_policy::{Policy, STARTER, Source};
use rialto_store::SqliteStore;
use rialto_testkit::{
    agents,
    faulty_store::{FaultSwitch, FaultyStore},
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
    pub(crate) clock: Arc<Ahead>,
    /// The policies beside those of a fresh install.
    policies: &'static str,
}

pub(crate) const URL: &str = "https://vercel.example.com";

/// A clock that goes ahead of everybody else's.
pub(crate) struct Ahead(Mutex<Duration>);

impl World {
    /// One trusted agent, `Vercel Ops`, with the skill `deploy`.
    pub(crate) async fn with(peer: Arc<ScriptedPeer>) -> Self {
        let world = Self::empty(peer, Config::default()).await;
        world.register(agents::skill("deploy"), AgentTrust::Trusted).await;
        world
    }

    pub(crate) async fn telling(events: Vec<Event>) -> Self {
        Self::with(ScriptedPeer::telling(events)).await
    }

    pub(crate) async fn empty(peer: Arc<ScriptedPeer>, config: Config) -> Self {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory(agents::parse_card).unwrap());
        Self::on(store, Arc::default(), peer, (config, Duration::ZERO, ""))
    }

    /// The same with these policies too, and the one agent.
    pub(crate) async fn with_policies(
        peer: Arc<ScriptedPeer>,
        config: Config,
        policies: &'static str,
    ) -> Self {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory(agents::parse_card).unwrap());
        let world = Self::on(store, Arc::default(), peer, (config, Duration::ZERO, policies));
        world.register(agents::skill("deploy"), AgentTrust::Trusted).await;
        world
    }

    /// The one agent, on a store whose faults can be switched on.
    pub(crate) async fn faulty(peer: Arc<ScriptedPeer>, config: Config) -> (Self, FaultSwitch) {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory(agents::parse_card).unwrap());
        let (store, switch) = FaultyStore::wrap(store);
        let world = Self::on(store, Arc::default(), peer, (config, Duration::ZERO, ""));
        world.register(agents::skill("deploy"), AgentTrust::Trusted).await;
        (world, switch)
    }

    /// An engine on a store that another one has used.
    pub(crate) fn over(store: Arc<dyn Store>, peer: Arc<ScriptedPeer>) -> Self {
        Self::over_with(store, peer, Config::default())
    }

    pub(crate) fn over_with(store: Arc<dyn Store>, peer: Arc<ScriptedPeer>, config: Config) -> Self {
        Self::on(store, Arc::default(), peer, (config, Duration::ZERO, ""))
    }

    /// Another engine on the same store, as another process would have it.
    pub(crate) async fn beside(&self, peer: Arc<ScriptedPeer>) -> Self {
        self.later(peer, Duration::ZERO).await
    }

    /// The same, for which it is so much later.
    pub(crate) async fn later(&self, peer: Arc<ScriptedPeer>, ahead: Duration) -> Self {
        let (store, discovery) = (Arc::clone(&self.store), Arc::clone(&self.discovery));
        let world = Self::on(store, discovery, peer, (Config::default(), ahead, self.policies));
        world.engine.sync().await.unwrap();
        world
    }

    /// An engine that runs later on the same store, whose faults can be switched on for this engine.
    pub(crate) async fn later_with_faults(
        &self,
        peer: Arc<ScriptedPeer>,
        ahead: Duration,
    ) -> (Self, FaultSwitch) {
        let (store, switch) = FaultyStore::wrap(Arc::clone(&self.store));
        let world =
            Self::on(store, Arc::clone(&self.discovery), peer, (Config::default(), ahead, self.policies));
        world.engine.sync().await.unwrap();
        (world, switch)
    }

    fn on(
        store: Arc<dyn Store>,
        discovery: Arc<ScriptedDiscovery>,
        peer: Arc<ScriptedPeer>,
        (config, ahead, policies): (Config, Duration, &'static str),
    ) -> Self {
        let clock = Arc::new(Ahead(Mutex::new(ahead)));
        let registry =
            Arc::new(Registry::new(store.clone(), discovery.clone(), clock.clone(), config.clone()));
        let engine = Engine::new(Parts {
            store: store.clone(),
            registry,
            peer: peer.clone(),
            policy: policy(policies),
            policy_loader: None,
            clock: clock.clone(),
            config,
        });
        let heard = Overheard::default();
        engine.bus().subscribe(Arc::new(heard.clone()));
        Self { engine, store, peer, discovery, heard, caller: Caller::user("ann"), clock, policies }
    }

    pub(crate) async fn register(&self, skill: Skill, trust: AgentTrust) {
        self.discovery.serve(URL, agents::card("Vercel Ops", vec![skill]));
        let wanted = Registration { trust: Some(trust), ..Registration::new(URL) };
        self.engine.registry().register(wanted).await.unwrap();
    }

    pub(crate) fn request(&self, args: Value) -> Request {
        let target = self.engine.resolve(&self.caller, "vercel_ops.deploy").unwrap();
        Request::skill(self.caller.clone(), EntryProtocol::Library, target, Json::from(args))
    }

    /// A message of a conversation; without a context it begins one.
    pub(crate) fn talk(&self, id: &str, context: Option<&str>, args: Value) -> Request {
        let mut request = self.request(args);
        let message = Message::new(id, Role::User, request.parts.clone());
        let is_named = context.is_some();
        let context = context.map_or_else(ContextId::fresh, ContextId::from);
        let spoken = Arc::new(OriginalMessage::new(message, None));
        let (is_once, wants_begun) = (true, true);
        request.talk =
            Some(Box::new(Talk { context, is_named, is_once, wants_begun, spoken, content_hash: None }));
        request
    }

    /// Says something, lets it go on by itself, and answers its task. The same message must not have come before.
    pub(crate) async fn say(&self, request: Request) -> TaskId {
        match self.engine.say(request).await.unwrap() {
            Said::Begun { running, .. } => running.task().clone(),
            Said::Again(task) => panic!("{task} was begun before"),
        }
    }

    /// The task, once nothing runs here any more.
    pub(crate) async fn in_the_end(&self, id: &TaskId) -> Task {
        self.engine.drain(Duration::from_secs(60)).await;
        self.engine.look(&self.caller, id.as_str()).await.unwrap()
    }

    pub(crate) async fn call(&self, args: Value) -> Result<Task, Failure> {
        self.engine.call(self.request(args)).await?.finish().await
    }

    /// The names of the bus events so far, with their outcome.
    pub(crate) fn phases(&self) -> Vec<String> {
        let phase = |event: &rialto_model::audit_event::AuditEvent| {
            let phase = serde_json::to_value(event.phase).unwrap().as_str().unwrap().to_owned();
            event
                .outcome
                .map_or_else(|| phase.clone(), |outcome| format!("{phase} {outcome:?}").to_lowercase())
        };
        self.heard.events().iter().map(phase).collect()
    }
}

fn policy(extra: &str) -> Policy {
    let starter = Source { name: "starter.cedar".into(), text: STARTER.into(), org: None };
    Policy::parse(&[starter, Source { name: "extra.cedar".into(), text: extra.into(), org: None }]).unwrap()
}

// === impl Ahead ===

impl Ahead {
    /// From now on it is so much later.
    pub(crate) fn forward(&self, by: Duration) {
        *self.0.lock() += by;
    }
}

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        SystemClock.now() + *self.0.lock()
    }
}

/// A message in words.
pub(crate) fn words(text: &str) -> Message {
    Message::new("m", Role::Agent, vec![Part::text(text)])
}
