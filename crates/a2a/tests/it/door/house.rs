//! A door with everything behind it, built the way the program builds it, but with peers that follow a script.
//!
//! What an agent does is what it is told: `ask`, `hang`, `later`, `reply`, `fail`, `count`, `extend`; anything else it says back.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension, Router,
    body::{Body, to_bytes},
};
use futures::{StreamExt, stream};
use http::{Request, StatusCode, header};
use rialto_a2a::server::{A2aServer, Config};
use rialto_engine::{Engine, EngineDeps, Registry, registry::Deployment, registry::Registration};
use rialto_http_server::public_url::PublicUrl;
use rialto_model::{
    agent::{AgentTrust, RowStorage},
    backing::{Backing, BackingTransport, FunctionBacking, ProcessCommand},
    call::{Call, Caller},
    card::Card,
    clock::{FixedClock, Timestamp},
    event::{ACTIVATED, Event, EventAside, QuestionKind},
    failure::{Failure, FailureKind},
    ids::Scope,
    json::Json,
    message::{Artifact, Message, Part, Role, text_of},
};
use rialto_policy::{Policy, PolicySource, STARTER};
use rialto_store::SqliteStore;
use rialto_testkit::{
    agents::{card, skill},
    peer::{ScriptedDiscovery, ScriptedPeer, accepted, working},
    store_suite::parse_card,
};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// A door, and what is behind it.
pub(crate) struct House {
    pub(crate) engine: Engine,
    pub(crate) peer: Arc<ScriptedPeer>,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) clock: Arc<FixedClock>,
    pub(crate) door: A2aServer,
    pub(crate) stop: CancellationToken,
    /// An agent that is told `later` takes its task when this is opened.
    pub(crate) gate: Arc<Notify>,
    router: Router,
}

/// Somebody who calls.
#[derive(Clone)]
pub(crate) struct Client {
    router: Router,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) kind: String,
    pub(crate) text: String,
}

/// A stream that is still open.
pub(crate) struct Open {
    body: axum::body::BodyDataStream,
    read: String,
}

// === impl House ===

impl House {
    /// One agent with the skill `desk.work`.
    pub(crate) async fn new() -> Self {
        Self::with(Config { needs_token: false, push_private: true, ..Config::default() }).await
    }

    /// The same, set up in another way.
    pub(crate) async fn with(config: Config) -> Self {
        let house = Self::empty(config).await;
        house.meet(card("Desk", vec![skill("work")])).await;
        house
    }

    /// The function of the seed, and nothing else.
    pub(crate) async fn of_function(function: FunctionBacking) -> Self {
        let house = Self::empty(Config { needs_token: false, ..Config::default() }).await;
        let backing = Backing::Function(Arc::new(function));
        let wanted = Deployment {
            scope: Scope::default(),
            backing,
            allow_private: true,
            timeout_ms: None,
            trust: None,
        };
        house.engine.registry().deployments().configure(&[wanted], true).await.unwrap();
        house
    }

    async fn empty(config: Config) -> Self {
        let store = Arc::new(SqliteStore::in_memory(parse_card).unwrap());
        let clock = Arc::new(FixedClock(Timestamp::UNIX_EPOCH));
        let calls = rialto_engine::Config::default();
        let discovery = Arc::new(ScriptedDiscovery::default());
        discovery.serve("https://desk.example.com", card("Desk", vec![skill("work")]));
        discovery.serve("https://strict.example.com", demanding(card("Strict", vec![skill("work")])));
        discovery.serve("https://secured.example.com", secured(card("Secured", vec![skill("work")])));
        discovery.serve("https://other.example.com", card("Other", vec![skill("work")]));
        let registry = Arc::new(Registry::new(store.clone(), discovery, clock.clone(), calls.clone()));
        let gate = Arc::new(Notify::new());
        let opened = Arc::clone(&gate);
        let peer = ScriptedPeer::with(move |call| stream_of(call, &opened));
        let starter = PolicySource { name: "starter.cedar".into(), text: STARTER.into(), org: None };
        let engine = Engine::new(EngineDeps {
            store: store.clone(),
            registry,
            peer: peer.clone(),
            policy: Policy::parse(&[starter]).unwrap(),
            policy_loader: None,
            clock: clock.clone(),
            config: calls,
        });
        engine.policies().sync().await.unwrap();
        let door = A2aServer::new(engine.clone(), config, PublicUrl::default());
        let stop = CancellationToken::new();
        let router = door.router(stop.clone());
        Self { engine, peer, store, clock, door, stop, gate, router }
    }

    /// Registers an agent with this card, if it is one of those that are known at the beginning.
    pub(crate) async fn meet(&self, card: Card) {
        self.meet_at(&card.name.to_lowercase()).await;
    }

    /// The same by the agent's name: desk, other, strict, which demands an extension, or secured, which offers much.
    pub(crate) async fn meet_at(&self, name: &str) {
        let url = format!("https://{name}.example.com");
        let registration = Registration {
            trust: Some(AgentTrust::Trusted),
            keep: RowStorage::Session,
            ..Registration::new(url)
        };
        self.engine.registry().register(registration).await.unwrap();
    }

    /// Somebody called ann.
    pub(crate) fn ann(&self) -> Client {
        self.client("ann")
    }

    pub(crate) fn client(&self, name: &str) -> Client {
        self.caller(Caller::user(name))
    }

    pub(crate) fn caller(&self, caller: Caller) -> Client {
        Client { router: self.router.clone().layer(Extension(caller)) }
    }
}

/// A card that demands an extension.
fn demanding(card: Card) -> Card {
    let mut raw = card.raw.value();
    raw["capabilities"] = json!({ "extensions": [
        { "uri": "https://example.com/ext/v1", "required": true }, { "uri": "https://example.com/ext/v2" },
    ] });
    Card { raw: Json::from(raw), ..card }
}

/// A card that offers what only the agent itself can do.
fn secured(card: Card) -> Card {
    let mut raw = card.raw.value();
    raw["capabilities"] =
        json!({ "streaming": false, "stateTransitionHistory": true, "extendedAgentCard": true });
    raw["supportsAuthenticatedExtendedCard"] = json!(true);
    raw["additionalInterfaces"] = json!([{ "url": "https://secured.example.com/soap", "transport": "SOAP" }]);
    raw["securitySchemes"] = json!({ "theirs": { "type": "http", "scheme": "basic" } });
    raw["signatures"] = json!([{ "protected": "e30", "signature": "c2ln" }]);
    let mut work = skill("work");
    work.extra.push("security", Json::from(json!([{ "theirs": [] }])));
    Card { raw: Json::from(raw), skills: vec![Arc::new(work)], extended: true, ..card }
}

/// What a peer tells about a call.
fn stream_of(call: &Call, gate: &Arc<Notify>) -> stream::BoxStream<'static, Event> {
    let said = text_of(&call.parts);
    let words = |text: &str| Some(Message::new("said", Role::Agent, vec![Part::text(text)]));
    let (message, aside) = (None, EventAside::default());
    if call.continues.task_id.is_some() {
        return stream::iter(told(call, vec![Part::text(format!("you said {said}"))])).boxed();
    }
    match said.as_str() {
        "ask" => {
            let asked = Event::Asked { ask: QuestionKind::Input, message: words("which colour?"), aside };
            stream::iter([accepted("remote-1", "context-1"), asked]).boxed()
        }
        "later" => {
            let gate = Arc::clone(gate);
            let asked = Event::Asked { ask: QuestionKind::Input, message, aside };
            let taken = stream::once(async move {
                gate.notified().await;
                accepted("remote-1", "context-1")
            });
            taken.chain(stream::iter([asked])).boxed()
        }
        "hang" => {
            stream::iter([accepted("remote-1", "context-1"), working()]).chain(stream::pending()).boxed()
        }
        "reply" => stream::iter([Event::Replied { message: words("just a message").unwrap() }]).boxed(),
        "fail" => {
            let failure = Failure::new(FailureKind::PeerFailed, "it broke on purpose");
            stream::iter([accepted("remote-1", "context-1"), Event::Failed { failure, message, aside }])
                .boxed()
        }
        "extend" => {
            let mut told = told(call, call.parts.clone());
            if let Some(Event::Accepted { aside, .. }) = told.first_mut() {
                let uris = json!(["https://example.com/ext/v1", "https://example.com/ext/v9"]);
                aside.extra.push(ACTIVATED, Json::from(uris));
            }
            stream::iter(told).boxed()
        }
        "count" => stream::iter(counted()).boxed(),
        _ => stream::iter(told(call, call.parts.clone())).boxed(),
    }
}

/// A task that ends at once, with a result that is called as those of tools are.
fn told(call: &Call, parts: Vec<Part>) -> Vec<Event> {
    let name = Some(format!("{}-result", call.target.skill_id()));
    let parts = if call.target.agent.backing.is_agent() {
        parts
    } else {
        vec![Part::data(Json::parse(r#"{"temp":62,"condition":"foggy"}"#).unwrap())]
    };
    let artifact = Artifact { name, ..Artifact::new("result", parts) };
    vec![
        accepted("remote-1", "context-1"),
        Event::Artifact { artifact, append: false, last: true, aside: EventAside::default() },
        Event::Finished { message: None, aside: EventAside::default() },
    ]
}

fn counted() -> Vec<Event> {
    let piece = |text: &str, append, last| Event::Artifact {
        artifact: Artifact::new("numbers", vec![Part::text(text)]),
        append,
        last,
        aside: EventAside::default(),
    };
    vec![
        accepted("remote-1", "context-1"),
        working(),
        piece("1 ", false, false),
        piece("2", true, true),
        Event::Finished { message: None, aside: EventAside::default() },
    ]
}

// === impl Client ===

impl Client {
    /// Sends a request as it is.
    pub(crate) async fn send(&self, request: http::request::Builder, body: impl Into<Body>) -> Reply {
        let response = self.respond(request, body).await;
        let (parts, body) = response.into_parts();
        let bytes = within(to_bytes(body, 1 << 20)).await.unwrap();
        let kind = parts.headers.get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap().to_owned());
        Reply {
            status: parts.status,
            kind: kind.unwrap_or_default(),
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    /// Sends a request whose answer is read by and by.
    pub(crate) async fn open(&self, request: http::request::Builder, body: impl Into<Body>) -> Open {
        let response = self.respond(request, body).await;
        assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
        Open { body: response.into_body().into_data_stream(), read: String::new() }
    }

    /// The same, with the headers of the answer.
    pub(crate) async fn respond(
        &self,
        request: http::request::Builder,
        body: impl Into<Body>,
    ) -> http::Response<Body> {
        let request = request.header(header::HOST, "localhost").body(body.into()).unwrap();
        within(self.router.clone().oneshot(request)).await.unwrap()
    }

    /// Calls a method of JSON-RPC.
    pub(crate) async fn rpc(&self, method: &str, params: Value) -> Value {
        self.say(&asked(method, &params)).await
    }

    /// Posts JSON to the address of JSON-RPC.
    pub(crate) async fn say(&self, body: &Value) -> Value {
        self.send(post("/a2a"), body.to_string()).await.json()
    }

    /// Calls a method that answers with a stream, and reads all of it.
    pub(crate) async fn events(&self, method: &str, params: Value) -> Vec<Value> {
        let reply = self.send(post("/a2a"), asked(method, &params).to_string()).await;
        assert_eq!(reply.kind, "text/event-stream", "{}", reply.text);
        reply.events()
    }

    /// Sends a text in 1.0, and answers the task.
    pub(crate) async fn tell(&self, text: &str) -> Value {
        let mut answer = self.rpc("SendMessage", said(text)).await;
        answer["result"]["task"].take()
    }
}

// === impl Reply ===

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {}", self.text))
    }

    /// What the events of a stream carry.
    pub(crate) fn events(&self) -> Vec<Value> {
        let data = self.text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }
}

// === impl Open ===

impl Open {
    /// The next event; none when the stream is over.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data: ")).map(str::to_owned);
                self.read = rest.to_owned();
                match data {
                    Some(data) => return Some(serde_json::from_str(&data).unwrap()),
                    None => continue,
                }
            }
            let bytes = within(self.body.next()).await?.unwrap();
            self.read.push_str(std::str::from_utf8(&bytes).unwrap());
        }
    }
}

/// The function of the seed.
pub(crate) fn weather() -> FunctionBacking {
    FunctionBacking {
        name: "weather-lookup".into(),
        description: "Look up current weather for a city".into(),
        via: BackingTransport::Command(ProcessCommand {
            argv: vec!["weather".into()],
            ..ProcessCommand::default()
        }),
        input_schema: None,
        output_schema: None,
        idempotent: false,
        timeout_ms: 1000,
    }
}

pub(crate) fn post(path: &str) -> http::request::Builder {
    Request::post(path).header(header::CONTENT_TYPE, "application/json")
}

pub(crate) fn asked(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

/// The parameters of a message of 1.0 with one text.
pub(crate) fn said(text: &str) -> Value {
    let id = rialto_model::ids::fresh();
    json!({ "message": { "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] } })
}

/// The same in 0.3.
pub(crate) fn said_0_3(text: &str) -> Value {
    let parts = json!([{ "kind": "text", "text": text }]);
    let id = rialto_model::ids::fresh();
    json!({ "message": { "kind": "message", "messageId": id, "role": "user", "parts": parts } })
}

pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), what).await.expect("in time")
}

/// The same JSON with made-up ids numbered by the order they first appear, and without our version: the same in every run.
pub(crate) fn steady(value: &Value) -> Value {
    let version = format!(r#""version":"{}""#, env!("CARGO_PKG_VERSION"));
    let text = value.to_string().replace(&version, r#""version":"[version]""#);
    let mut seen: Vec<&str> = Vec::new();
    let (mut steady, mut rest) = (String::new(), text.as_str());
    while let Some(next) = rest.chars().next() {
        let id = rest.get(..32).filter(|id| id.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if let Some(id) = id {
            let known = seen.iter().position(|known| *known == id);
            let number = known.unwrap_or_else(|| {
                seen.push(id);
                seen.len() - 1
            });
            steady.push_str(&(number + 1).to_string());
            rest = &rest[32..];
        } else {
            steady.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    serde_json::from_str(&steady).unwrap()
}
