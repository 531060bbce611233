//! Engine with functions, and the call endpoint.

use std::sync::{Arc, Mutex};

use axum::{Router, body::Body};
use futures::FutureExt;
use http::{Request, header};
use rialto_engine::{Config, Engine, EngineDeps, Registry, peer_by_backing::Peers, registry::Deployment};
use rialto_functions::backend::{FunctionBackend, FunctionDeps};
use rialto_http_client::fetch;
use rialto_model::{
    backing::{Backing, BackingEndpoint, BackingTransport, FunctionBacking, TransportSetting},
    call::{Caller, EntryProtocol},
    clock::SystemClock,
    credential::{Secret, SecretSource},
    failure::Failure,
    ids::Scope,
    json::Json,
    secret_templates::SecretResolver,
    store::Store,
    task::Task,
};
use rialto_policy::Policy;
use rialto_process::Launcher;
use rialto_store::SqliteStore;
use rialto_testkit::{agents, peer::ScriptedDiscovery, peer::ScriptedPeer};
use tower::ServiceExt;

/// Scripted response of the network.
pub(crate) type Reply = Box<dyn Fn() -> Result<fetch::FetchResponse, fetch::FetchError> + Send + Sync>;

pub(crate) struct Fixture {
    pub(crate) engine: Engine,
    pub(crate) discovery: Arc<ScriptedDiscovery>,
    /// Requests that were sent.
    pub(crate) sent: Arc<Mutex<Vec<fetch::FetchRequest>>>,
    router: Router,
}

/// Response of the endpoint.
#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: u16,
    pub(crate) kind: String,
    pub(crate) body: String,
}

// === impl Fixture ===

impl Fixture {
    /// Fixture with this response of the network and this agent.
    pub(crate) async fn new(reply: Reply, peer: Arc<ScriptedPeer>) -> Self {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory(agents::parse_card).unwrap());
        let discovery = Arc::new(ScriptedDiscovery::default());
        let clock = Arc::new(SystemClock);
        let registry = Registry::new(store.clone(), discovery.clone(), clock.clone(), Config::default());
        let sent: Arc<Mutex<Vec<fetch::FetchRequest>>> = Arc::default();
        let log = Arc::clone(&sent);
        let network = move |request: fetch::FetchRequest| {
            log.lock().unwrap().push(request);
            reply()
        };
        let secrets: SecretResolver = Arc::new(|source| {
            let found = match source {
                SecretSource::Env(name) if name == "TOKEN" => Ok(Secret::from("hunter2")),
                source => Err(format!("{source} is missing")),
            };
            async move { found }.boxed()
        });
        let launcher =
            Launcher::new(|name| (name == "PATH").then(|| "/usr/bin:/bin".into()), secrets.clone());
        let function =
            Arc::new(FunctionBackend::new(FunctionDeps { fetch: Arc::new(network), launcher, secrets }));
        let engine = Engine::new(EngineDeps {
            store,
            registry: Arc::new(registry),
            peer: Arc::new(Peers {
                a2a: peer.clone(),
                mcp: peer.clone(),
                flow: peer.clone(),
                acp: peer.clone(),
                function,
            }),
            policy: Policy::starter().unwrap(),
            policy_loader: None,
            clock,
            config: Config::default(),
        });
        engine.policies().sync().await.unwrap();
        let router = rialto_functions::call_endpoint::router(engine.clone(), 1024, true);
        Self { engine, discovery, sent, router }
    }

    /// Fixture without tokens.
    pub(crate) fn open(mut self) -> Self {
        self.router = rialto_functions::call_endpoint::router(self.engine.clone(), 1024, false);
        self
    }

    /// Deploys functions.
    pub(crate) async fn deploy(&self, functions: Vec<FunctionBacking>, allow_private: bool) {
        let wanted = functions.into_iter().map(|function| Deployment {
            scope: Scope::default(),
            backing: Backing::Function(Arc::new(function)),
            allow_private,
            timeout_ms: None,
            trust: None,
        });
        self.engine.registry().deployments().configure(&wanted.collect::<Vec<_>>(), true).await.unwrap();
    }

    pub(crate) async fn call(&self, name: &str, args: &str) -> Result<Task, Failure> {
        let caller = Caller::user("ann");
        let target = self.engine.calls().resolve(&caller, name).unwrap();
        let request = rialto_engine::CallRequest::skill(
            caller,
            EntryProtocol::Library,
            target,
            Json::parse(args).unwrap(),
        );
        self.engine.calls().start(request).await?.into_handle()?.finish().await
    }

    /// Sends a request to the endpoint, as ann.
    pub(crate) async fn ask(&self, method: &str, path: &str, accept: &str, body: &str) -> TestResponse {
        let request = Request::builder().method(method).uri(path).header(header::ACCEPT, accept);
        let mut request = request.body(Body::from(body.to_owned())).unwrap();
        request.extensions_mut().insert(Caller::user("ann"));
        let response = self.router.clone().oneshot(request).await.unwrap();
        let kind = response.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned();
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        TestResponse { status, kind, body: String::from_utf8(body.to_vec()).unwrap() }
    }
}

/// A function at an address, with a header that is a secret.
pub(crate) fn function(name: &str) -> FunctionBacking {
    let headers = [("X-Key".to_owned(), TransportSetting::Text("key ${TOKEN}".into()))].into();
    FunctionBacking {
        name: name.to_owned(),
        description: format!("Does {name}"),
        via: BackingTransport::Http(BackingEndpoint { url: "https://f.example.com/run".into(), headers }),
        input_schema: None,
        output_schema: None,
        idempotent: false,
        timeout_ms: 1_000,
    }
}
