//! Agents, calls and peers as tests want them.

use std::sync::{
    Arc, LazyLock, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use futures::StreamExt;
use jiff::Timestamp;
use rialto_a2a::{
    backend::{A2aBackend, A2aBackendDeps, Config},
    credential::{SecretResolver, no_store, resolver},
};
use rialto_engine::peer::{DialectObserver, Peer};
use rialto_http_client::{self as client, HttpClient, fetch::Fetch};
use rialto_model::{
    agent::{Agent, AgentTrust, Health},
    backing,
    call::{Call, CallTarget, Caller, CancelRequest, EntryProtocol, FollowRequest},
    card::{Binding, Card, Dialect, Interface},
    clock::FixedClock,
    credential::{Credential, SecretSource},
    event::{Event, RemoteIds},
    failure::Failure,
    ids::{AgentId, TaskId},
    json::Json,
    message::Part,
    presence::CallerPresence,
};
use rialto_policy::{Authorizable, Permitted, Policy};

use crate::script::Script;

/// What a peer has learned, to look at.
#[derive(Default)]
pub(crate) struct Notes(Mutex<Vec<Dialect>>);

impl Notes {
    pub(crate) fn dialects(&self) -> Vec<Dialect> {
        self.0.lock().unwrap().clone()
    }
}

impl DialectObserver for Notes {
    fn speaks(&self, _: &Arc<Agent>, dialect: Dialect) {
        self.0.lock().unwrap().push(dialect);
    }
}

/// A peer and what it learns. `TOKEN` is set in its environment.
pub(crate) struct Desk {
    pub(crate) peer: A2aBackend,
    pub(crate) notes: Arc<Notes>,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self::with(quick())
    }

    pub(crate) fn with(config: Config) -> Self {
        Self::on(config, &client::Config::default())
    }

    pub(crate) fn on(config: Config, outbound: &client::Config) -> Self {
        Self::over(config, Arc::new(HttpClient::new(outbound)))
    }

    pub(crate) fn over(config: Config, fetch: Arc<dyn Fetch>) -> Self {
        let notes = Arc::new(Notes::default());
        let ports = A2aBackendDeps {
            fetch,
            tokens: tokens(),
            learned: Arc::clone(&notes) as Arc<dyn DialectObserver>,
            clock: Arc::new(FixedClock(Timestamp::from_millisecond(1_700_000_000_000).unwrap())),
        };
        Self { peer: A2aBackend::new(config, ports), notes }
    }

    pub(crate) async fn send(&self, call: Call) -> Vec<Event> {
        self.peer.send(permit(call)).collect().await
    }

    pub(crate) async fn follow(&self, agent: &Arc<Agent>, to_the_end: bool) -> Vec<Result<Event, Failure>> {
        let follow =
            FollowRequest { caller: caller(), target: target(agent), remote: remote("task-1"), to_the_end };
        self.peer.follow(permit(follow)).collect().await
    }

    pub(crate) async fn cancel(&self, agent: &Arc<Agent>) -> Result<Vec<Event>, Failure> {
        let cancel = CancelRequest { caller: caller(), target: target(agent), remote: remote("task-1") };
        self.peer.cancel(permit(cancel)).await
    }
}

/// Short waits, so that tests are quick.
pub(crate) fn quick() -> Config {
    Config {
        poll_first_ms: 5,
        poll_longest_ms: 20,
        stream_end_wait_ms: 100,
        cancel_wait_ms: 500,
        ..Config::default()
    }
}

pub(crate) fn tokens() -> SecretResolver {
    let reads = AtomicUsize::new(0);
    let env = move |name: &str| match name {
        "TOKEN" => Some("hunter2".to_owned()),
        // Another one whenever it is read.
        "ROTATING" => Some(format!("secret-{}", reads.fetch_add(1, Ordering::Relaxed) + 1)),
        _ => None,
    };
    resolver(env, no_store)
}

/// Calls an agent once, with a peer of its own.
pub(crate) async fn send(agent: &Arc<Agent>) -> Vec<Event> {
    Desk::new().send(call(agent)).await
}

/// An agent at the script's address that speaks one dialect over one binding.
pub(crate) fn agent(script: &Script, dialect: Dialect, binding: Binding) -> Arc<Agent> {
    let interface = Interface { url: script.url(), binding, dialect, tenant: None };
    Arc::new(row(&script.url(), vec![interface], false))
}

/// The same, and its card says that it streams.
pub(crate) fn streaming(script: &Script, dialect: Dialect, binding: Binding) -> Arc<Agent> {
    let interface = Interface { url: script.url(), binding, dialect, tenant: None };
    Arc::new(row(&script.url(), vec![interface], true))
}

/// An agent whose card names no interface.
pub(crate) fn minimal(script: &Script) -> Arc<Agent> {
    Arc::new(row(&script.url(), Vec::new(), false))
}

pub(crate) fn with_token(agent: &Arc<Agent>, variable: &str) -> Arc<Agent> {
    let mut agent = Agent::clone(agent);
    agent.credential = Some(Credential::new(SecretSource::Env(variable.into())));
    Arc::new(agent)
}

pub(crate) fn row(url: &str, interfaces: Vec<Interface>, is_streaming: bool) -> Agent {
    let (id, slug, card) = (AgentId::from("agt_1"), "weather".to_owned(), card(interfaces, is_streaming));
    let row = Agent::new(id, slug, url.to_owned(), Arc::new(card), Timestamp::UNIX_EPOCH);
    Agent { trust: AgentTrust::Trusted, health: Health::Healthy, allow_private: true, ..row }
}

fn card(interfaces: Vec<Interface>, is_streaming: bool) -> Card {
    let forecast = backing::skill("forecast", "Forecast", "");
    let raw = Json::empty_object();
    Card { interfaces, streaming: is_streaming, raw, ..backing::card("Weather", "", None, vec![forecast]) }
}

/// A call of the skill `forecast` with the arguments `{"city":"Venice"}`.
pub(crate) fn call(agent: &Arc<Agent>) -> Call {
    Call {
        task: TaskId::from("task_1"),
        caller: caller(),
        door: EntryProtocol::Library,
        target: target(agent),
        parts: vec![Part::data(Json::parse(r#"{"city":"Venice"}"#).unwrap())],
        continues: RemoteIds::default(),
        session: "a2a-agt_1-forecast-1".into(),
        trace: None,
        spoken: None,
        presence: CallerPresence::default(),
    }
}

pub(crate) fn target(agent: &Arc<Agent>) -> CallTarget {
    CallTarget { agent: Arc::clone(agent), skill: agent.card.skills.first().cloned() }
}

pub(crate) fn caller() -> Caller {
    Caller::user("ann")
}

pub(crate) fn remote(task: &str) -> RemoteIds {
    RemoteIds { task_id: Some(task.to_owned()), context_id: None }
}

pub(crate) fn permit<T: Authorizable>(value: T) -> Permitted<T> {
    static STARTER: LazyLock<Policy> = LazyLock::new(|| Policy::starter().unwrap());
    STARTER.authorize(value).unwrap()
}

/// The names of events, and what they say.
pub(crate) fn told(events: &[Event]) -> Vec<String> {
    events.iter().map(tell).collect()
}

pub(crate) fn tell(event: &Event) -> String {
    let words = |message: &Option<rialto_model::message::Message>| {
        message.as_ref().map(|message| format!(": {}", message.text())).unwrap_or_default()
    };
    let name = event.name();
    match event {
        Event::Accepted { remote, .. } => {
            let [task, context] =
                [&remote.task_id, &remote.context_id].map(|id| id.as_deref().unwrap_or("-"));
            format!("{name} {task} {context}")
        }
        Event::Progress { working, message, .. } => {
            format!("{}{}", if *working { "working" } else { "queued" }, words(message))
        }
        Event::Artifact { artifact, append, last, .. } => {
            let parts: Vec<_> = artifact.parts.iter().map(|part| format!("{:?}", part.content)).collect();
            let mark = |is: bool, word: &'static str| if is { word } else { "" };
            format!("{name} {}{}{} {}", artifact.id, mark(*append, " +"), mark(*last, " ."), parts.join(" "))
        }
        Event::Asked { ask, message, .. } => format!("{name} {ask:?}{}", words(message)),
        Event::Finished { message, .. }
        | Event::Rejected { message, .. }
        | Event::Canceled { message, .. } => {
            format!("{name}{}", words(message))
        }
        Event::Replied { message } | Event::Answered { message, .. } => format!("{name}: {}", message.text()),
        Event::Failed { failure, .. } => format!("{name} {:?}: {}", failure.kind, failure.message),
    }
}

/// The failure that ended it.
pub(crate) fn failure(events: &[Event]) -> Failure {
    match events.last() {
        Some(Event::Failed { failure, .. }) => failure.clone(),
        other => panic!("expected a failure, got {other:?}"),
    }
}
