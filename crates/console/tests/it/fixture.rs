//! Fixture: the console with a real engine, in-memory store and scripted agents, behind authentication.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use axum::{Router, body::Body};
use futures::StreamExt;
use http::{Request, header};
use rialto_admin::{
    Administration, AdministrationDeps,
    host::{
        AdminHost, ChangedPolicy, PolicyHistoryEntry, PolicyHost, PolicyScope, SecretHost, SecretRow,
        WebhookHost,
    },
};
use rialto_api_types::policies::PolicyPlace;
use rialto_engine::{
    Config, Engine, PolicyLoader, Registry,
    peer::Peer,
    peer_by_backing::{Discoveries, Peers},
    registry::{Deployment, Registration},
};
use rialto_http_server::{
    admission::{AdmissionLayer, AdmissionService, RouteRule},
    auth::{Authentication, BearerAuthenticator, TokenCache, TrustedIssuers},
    host_check::HostCheck,
    listener::ConnectionPeer,
    session::{API, BrowserSessions, CookieSealing, PAGES},
};
use rialto_model::{
    agent::{Agent, AgentTrust},
    backing::{self, Backing, BackingTransport, McpServerBacking},
    call::{Caller, CallerKind},
    card::Card,
    clock::{Clock, SystemClock},
    credential::{self, Secret},
    failure::{Failure, FailureKind},
    ids::{OrgId, Scope},
    node::Node,
    store::{Store, Token},
    token_scopes::TokenScopes,
    webhook::Webhook,
};
use rialto_policy::{Policy, PolicySource, PolicyTemplate, STARTER};
use rialto_store::SqliteStore;
use rialto_testkit::{
    agents,
    peer::{ScriptedDiscovery, ScriptedPeer},
};
use rialto_workflow::run::{self, RunnerDeps, WorkflowRunner};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::response_schemas;

/// Token of `ann`, an administrator.
pub(crate) const ANN: &str = "ann's token";
/// Token of `bob`, who can call.
pub(crate) const BOB: &str = "bob's token";

/// Policy that allows ann to administer everything.
const ADMIN: &str = r#"@id("ann") permit (principal == User::"ann", action, resource == Org::"default");"#;

pub(crate) struct Fixture {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) discovery: Arc<ScriptedDiscovery>,
    pub(crate) flows: WorkflowRunner,
    app: AdmissionService<Router>,
    bearers: Option<Arc<BearerAuthenticator>>,
}

/// Response with its body.
#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: String,
}

/// Reader of an event stream.
pub(crate) struct EventReader {
    stream: axum::body::BodyDataStream,
    read: String,
}

/// Host with policies and names of secrets in memory.
#[derive(Default)]
struct TestHost {
    policies: Mutex<Vec<PolicySource>>,
    /// Replaced versions.
    older: Mutex<Vec<PolicyHistoryEntry>>,
    tokens: AtomicUsize,
    secrets: Mutex<Vec<String>>,
}

// === impl Fixture ===

impl Fixture {
    /// Fixture with tokens, whose agents are scripted by `peer`.
    pub(crate) async fn new(peer: Arc<ScriptedPeer>) -> Self {
        Self::build(peer, true, Config::default(), "").await
    }

    /// Fixture with additional policies.
    pub(crate) async fn with_policies(peer: Arc<ScriptedPeer>, more: &str) -> Self {
        Self::build(peer, true, Config::default(), more).await
    }

    /// Fixture in which changed cards wait for approval.
    pub(crate) async fn pinned() -> Self {
        Self::pinned_with(ScriptedPeer::echo(), "").await
    }

    /// Fixture with pinned cards and additional policies.
    pub(crate) async fn pinned_with(peer: Arc<ScriptedPeer>, more: &str) -> Self {
        Self::build(peer, true, Config { pin_cards: true, ..Config::default() }, more).await
    }

    /// Fixture without authentication.
    pub(crate) async fn open() -> Self {
        Self::build(ScriptedPeer::echo(), false, Config::default(), "").await
    }

    /// Adds a node to the store.
    pub(crate) async fn add_node(&self, name: &str) {
        let now = SystemClock.now();
        let node = Node {
            name: name.to_owned(),
            runner: rialto_model::ids::ProcessId::fresh(),
            process: 42,
            address: "127.0.0.1:8420".to_owned(),
            version: "1.0.0".to_owned(),
            started_at: now,
            renewed_at: now,
        };
        self.store.beat_node(&node).await.unwrap();
    }

    async fn build(peer: Arc<ScriptedPeer>, needs_token: bool, config: Config, more: &str) -> Self {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory(agents::parse_card).unwrap());
        let discovery = Arc::new(ScriptedDiscovery::default());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let flows = WorkflowRunner::new(RunnerDeps { store: store.clone() }, run::Config::default());
        let discoveries = Arc::new(Discoveries { a2a: discovery.clone(), mcp: discovery.clone() });
        let registry = Registry::new(store.clone(), discoveries, clock.clone(), config.clone());
        let source =
            |name: &str, text: &str| PolicySource { name: name.to_owned(), text: text.to_owned(), org: None };
        let policies = Mutex::new(vec![
            source("starter.cedar", STARTER),
            source("admin.cedar", ADMIN),
            source("more.cedar", more),
        ]);
        let host = Arc::new(TestHost { policies, ..TestHost::default() });
        let loaded = host.clone();
        let load: PolicyLoader = Box::new(move || {
            let policy = Policy::parse(&loaded.policies.lock().unwrap());
            Box::pin(async move { Ok(policy) })
        });
        let engine = Engine::new(rialto_engine::EngineDeps {
            store: store.clone(),
            registry: Arc::new(registry),
            peer: peers(peer, &flows),
            policy: Policy::parse(&host.policies.lock().unwrap()).unwrap(),
            policy_loader: Some(load),
            clock: clock.clone(),
            config,
        });
        flows.connect(engine.downgrade());
        engine.policies().sync().await.unwrap();
        for (caller, token, rights) in [("ann", ANN, TokenScopes::ALL), ("bob", BOB, TokenScopes::default())]
        {
            store.put_token(&row(caller, token, rights)).await.unwrap();
        }
        let admin = Administration::new(AdministrationDeps {
            engine: engine.clone(),
            store: store.clone(),
            flows: flows.clone(),
            host,
            site: rialto_http_server::public_url::PublicUrl::default(),
            needs_token,
            is_local: false,
            allow_private: false,
            allow_secrets: more.contains("machine-secrets"),
            max_body_bytes: 100_000,
            streams: rialto_http_server::stream_limits::StreamLimits::default(),
            stop: CancellationToken::new(),
        });
        let authentication = authentication(&store, clock.clone(), needs_token).await;
        let bearers = match &authentication {
            Authentication::Bearer(bearers) => Some(bearers.clone()),
            Authentication::Open(_) => None,
        };
        let router = rialto_console::router(&admin).merge(rialto_api::router(&admin));
        let app = gate(authentication, clock).wrap(router);
        Self { engine, store, discovery, flows, app, bearers }
    }

    /// Registers an agent with this card.
    pub(crate) async fn register(&self, url: &str, card: Card, trust: AgentTrust) -> Arc<Agent> {
        self.discovery.serve(url, card);
        let wanted = Registration { trust: Some(trust), ..Registration::new(url) };
        self.engine.registry().register(wanted).await.unwrap().agent
    }

    /// Starts the loop that resumes decided calls.
    pub(crate) fn keep_approvals(&self) {
        let engine = self.engine.clone();
        tokio::spawn(async move { engine.approvals().run_expiry_loop(CancellationToken::new()).await });
    }

    /// Creates a token for an existing caller, as the operator on the machine can.
    pub(crate) async fn add_token(&self, caller: &str, token: &str, rights: TokenScopes) {
        let id = format!("tok_{caller}_2");
        self.store.put_token(&Token { id, ..row(caller, token, rights) }).await.unwrap();
    }

    /// Starts the loop that ends streams of revoked tokens.
    pub(crate) fn follow_revocations(&self) {
        let bearers = self.bearers.clone().unwrap();
        tokio::spawn(async move { bearers.follow_revocations(CancellationToken::new()).await });
    }

    /// Opens an event stream with a session cookie.
    pub(crate) async fn listen_with_cookie(&self, cookie: &str) -> EventReader {
        let response = self.respond("GET", "/api/v1/events", &[("cookie", cookie)], "").await;
        assert_eq!(response.status().as_u16(), 200);
        EventReader { stream: response.into_body().into_data_stream(), read: String::new() }
    }

    /// Waits until a page shows a text to ann.
    pub(crate) async fn wait_for(&self, path: &str, text: &str) -> TestResponse {
        for _ in 0..500 {
            let page = self.page(path).await;
            if page.body.contains(text) {
                return page;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{path} never shows {text}: {:?}", self.page(path).await);
    }

    /// Sends a request with a bearer token.
    pub(crate) async fn api(&self, token: &str, method: &str, path: &str, body: &str) -> TestResponse {
        self.send(method, path, &[("authorization", &format!("Bearer {token}"))], body).await
    }

    /// Gets a page as ann.
    pub(crate) async fn page(&self, path: &str) -> TestResponse {
        let bearer = format!("Bearer {ANN}");
        self.send("GET", path, &[("authorization", &bearer), ("accept", "text/html")], "").await
    }

    /// Submits a form with a bearer token, which needs no CSRF token.
    pub(crate) async fn submit(&self, token: &str, path: &str, form: &str) -> TestResponse {
        let bearer = format!("Bearer {token}");
        self.send("POST", path, &[("accept", "text/html"), ("authorization", &bearer)], form).await
    }

    /// Signs in. Returns the cookie.
    pub(crate) async fn sign_in(&self, token: &str) -> String {
        let form = format!("token={}&next=/factory/agents", token.replace(' ', "+"));
        let answer = self.send("POST", "/factory/sign-in", &[("origin", "http://localhost")], &form).await;
        assert_eq!(answer.status, 303, "{answer:?}");
        answer.header("set-cookie").split(';').next().unwrap().to_owned()
    }

    /// Opens an event stream with a bearer token.
    pub(crate) async fn listen(&self, token: &str, headers: &[(&str, &str)]) -> EventReader {
        let bearer = format!("Bearer {token}");
        let headers = [&[("authorization", bearer.as_str())], headers].concat();
        let response = self.respond("GET", "/api/v1/events", &headers, "").await;
        assert_eq!(response.status().as_u16(), 200);
        EventReader { stream: response.into_body().into_data_stream(), read: String::new() }
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> TestResponse {
        let response = self.respond(method, path, headers, body).await;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let answer = TestResponse { status, headers, body: String::from_utf8(body.to_vec()).unwrap() };
        response_schemas::check(method, path, &answer);
        answer
    }

    async fn respond(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> http::Response<Body> {
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, "localhost");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let peer = ConnectionPeer { address: IpAddr::from([192, 0, 2, 1]), certified: None };
        self.app.with_peer(peer).oneshot(request).await.unwrap()
    }
}

// === impl EventReader ===

impl EventReader {
    /// Next event: name and data.
    pub(crate) async fn next(&mut self) -> (String, serde_json::Value) {
        let next = tokio::time::timeout(Duration::from_secs(20), self.find());
        next.await.unwrap_or_else(|_| panic!("nothing more came; {:?} is left", self.read))
    }

    /// Reads until the stream ends.
    pub(crate) async fn read_to_end(&mut self) {
        let drained = async { while self.stream.next().await.is_some() {} };
        tokio::time::timeout(Duration::from_secs(5), drained).await.expect("the stream ends within 5 s");
    }

    async fn find(&mut self) -> (String, serde_json::Value) {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let field =
                    |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
                let found = field("event:").zip(field("data:"));
                let found = found.map(|(name, data)| (name.to_owned(), serde_json::from_str(data).unwrap()));
                self.read = rest.to_owned();
                match found {
                    Some(found) => return found,
                    None => continue,
                }
            }
            let more = self.stream.next().await.expect("the stream is not over").unwrap();
            self.read += std::str::from_utf8(&more).unwrap();
        }
    }
}

// === impl TestResponse ===

impl TestResponse {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// Path of the first approval form.
    #[track_caller]
    pub(crate) fn approve_path(&self) -> String {
        let end = self.body.find("/approve\"").unwrap_or_else(|| panic!("{self:?}"));
        let begin = self.body[..end].rfind('"').unwrap();
        format!("{}/approve", &self.body[begin + 1..end])
    }

    /// CSRF token of the page.
    #[track_caller]
    pub(crate) fn csrf(&self) -> String {
        let (_, rest) = self.body.split_once("name=\"csrf\" content=\"").unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    }
}

// === impl TestHost ===

impl TestHost {
    fn save(&self, scope: &PolicyScope, name: &str, text: Option<&str>) -> Result<ChangedPolicy, Failure> {
        let name = format!("{}.cedar", name.strip_suffix(".cedar").unwrap_or(name));
        let mut sources = self.policies.lock().unwrap();
        let is_it = |source: &PolicySource, owner: Option<&OrgId>| {
            source.name == name && source.org.as_ref() == owner && scope.includes(owner)
        };
        let own = scope.owner();
        let is_shared = !sources.iter().any(|source| is_it(source, own.as_ref()))
            && sources.iter().any(|source| is_it(source, None));
        let org = own.filter(|_| !is_shared);
        let kept = |source: &&PolicySource| !is_it(source, org.as_ref());
        let mut after: Vec<PolicySource> = sources.iter().filter(kept).cloned().collect();
        if text.is_none() && after.len() == sources.len() {
            return Err(Failure::new(FailureKind::NotFound, format!("there is no policy \"{name}\"")));
        }
        after.extend(text.map(|text| PolicySource {
            name: name.clone(),
            text: text.to_owned(),
            org: org.clone(),
        }));
        Policy::parse(&after).map_err(|error| Failure::new(FailureKind::Invalid, error.to_string()))?;
        if let Some(old) = sources.iter().find(|source| source.name == name).filter(|_| text.is_some()) {
            self.archive(old);
        }
        *sources = after;
        Ok(ChangedPolicy { listed: name.clone(), org, location: format!("/policies/{name}"), name })
    }

    fn archive(&self, old: &PolicySource) {
        let mut older = self.older.lock().unwrap();
        let (version, name) = (i64::try_from(older.len()).unwrap() + 1, old.name.clone());
        let (place, at, text) = (PolicyPlace::Files, SystemClock.now(), Some(old.text.clone()));
        older.push(PolicyHistoryEntry { name, place, version, at, by: None, text });
    }
}

#[async_trait]
impl PolicyHost for TestHost {
    async fn policy_sources(&self) -> Result<Vec<PolicySource>, Failure> {
        Ok(self.policies.lock().unwrap().clone())
    }

    async fn save_policy(
        &self,
        scope: &PolicyScope,
        name: &str,
        text: &str,
        _: Option<PolicyPlace>,
    ) -> Result<ChangedPolicy, Failure> {
        self.save(scope, name, Some(text))
    }

    async fn add_policy(
        &self,
        scope: &PolicyScope,
        template: &PolicyTemplate<'_>,
        name: Option<&str>,
        _: Option<PolicyPlace>,
    ) -> Result<ChangedPolicy, Failure> {
        let name = name.map_or_else(|| template.name(), str::to_owned);
        self.save(scope, &name, Some(&template.compile(&name).text))
    }

    async fn remove_policy(
        &self,
        scope: &PolicyScope,
        name: &str,
        _: Option<PolicyPlace>,
    ) -> Result<ChangedPolicy, Failure> {
        self.save(scope, name, None)
    }

    async fn policy_history(
        &self,
        _: &PolicyScope,
        name: &str,
        _: Option<PolicyPlace>,
    ) -> Result<Vec<PolicyHistoryEntry>, Failure> {
        let is_own = |old: &&PolicyHistoryEntry| {
            old.name.trim_end_matches(".cedar") == name.trim_end_matches(".cedar")
        };
        Ok(self.older.lock().unwrap().iter().filter(is_own).cloned().collect())
    }

    async fn restore_policy(
        &self,
        scope: &PolicyScope,
        name: &str,
        version: i64,
        _: Option<PolicyPlace>,
    ) -> Result<ChangedPolicy, Failure> {
        let older = self.policy_history(scope, name, None).await?;
        let found = older.into_iter().find(|old| old.version == version).and_then(|old| old.text);
        let missing = || Failure::new(FailureKind::NotFound, format!("{name} has no version {version}"));
        self.save(scope, name, Some(&found.ok_or_else(missing)?))
    }

    async fn remove_agent_policies(&self, _: &Agent) -> Result<(), Failure> {
        Ok(())
    }

    async fn remove_org_policies(&self, org: &OrgId) -> Result<(), Failure> {
        self.policies.lock().unwrap().retain(|source| source.org.as_ref() != Some(org));
        Ok(())
    }
}

impl AdminHost for TestHost {
    fn read_card(&self, text: &str) -> Option<Card> {
        agents::parse_card(text).ok()
    }

    fn describe_credential(&self, _: &Agent) -> Option<String> {
        None
    }

    fn describe_auth_scheme(&self, _: &Agent) -> Option<String> {
        None
    }

    fn new_token(&self) -> Result<String, Failure> {
        // The first token is always the same.
        let before = self.tokens.fetch_add(1, Ordering::Relaxed);
        Ok(if before == 0 { "rialto_fresh".to_owned() } else { format!("rialto_fresh_{before}") })
    }

    /// MCP server by its name and URL; a URL with `run:` is a program.
    fn read_deployment(&self, described: &str, scope: &Scope) -> Result<Deployment, Failure> {
        let wanted: serde_json::Value = serde_json::from_str(described)
            .map_err(|_| Failure::new(FailureKind::Invalid, "this is not JSON"))?;
        let (name, to) = (wanted["name"].as_str().unwrap(), wanted["url"].as_str());
        let to = to.ok_or_else(|| Failure::new(FailureKind::Invalid, "url: say how it is reached"))?;
        let via = match to.strip_prefix("run:") {
            Some(program) => BackingTransport::Command(backing::ProcessCommand {
                argv: vec![program.to_owned()],
                ..Default::default()
            }),
            None => BackingTransport::Http(backing::BackingEndpoint {
                url: to.to_owned(),
                headers: BTreeMap::new(),
            }),
        };
        let server = McpServerBacking { name: name.to_owned(), via, sampling: None };
        Ok(Deployment {
            scope: scope.clone(),
            backing: Backing::Mcp(Arc::new(server)),
            allow_private: true,
            timeout_ms: None,
            trust: wanted["trust"].as_str().map(|level| match level {
                "external" => AgentTrust::External,
                "trusted" => AgentTrust::Trusted,
                _ => AgentTrust::System,
            }),
        })
    }

    fn operator_name(&self) -> String {
        "op".to_owned()
    }

    fn cli_command(&self) -> String {
        "rialto --data /srv/rialto".to_owned()
    }
}

#[async_trait]
impl WebhookHost for TestHost {
    fn create_webhook_key(&self, id: &str) -> Result<(credential::SecretSource, String), Failure> {
        Ok((credential::SecretSource::File(format!("{id}.key")), "whsec_made".to_owned()))
    }

    fn remove_webhook_key(&self, _: &str) -> Result<(), Failure> {
        Ok(())
    }

    async fn check_webhook_key(&self, _: &str) -> Result<(), Failure> {
        Ok(())
    }

    async fn send_test_event(&self, webhook: &Webhook) -> Result<(), Failure> {
        if webhook.url.contains("good") {
            Ok(())
        } else {
            Err(Failure::new(FailureKind::PeerFailed, "it is not good"))
        }
    }
}

#[async_trait]
impl SecretHost for TestHost {
    async fn list_secrets(&self) -> Result<Vec<SecretRow>, Failure> {
        let row =
            |name: &String| SecretRow { name: name.clone(), set_at: SystemClock.now(), key: "k".to_owned() };
        Ok(self.secrets.lock().unwrap().iter().map(row).collect())
    }

    async fn set_secret(&self, name: &str, _: &Secret) -> Result<(), Failure> {
        self.secrets.lock().unwrap().push(name.to_owned());
        Ok(())
    }

    async fn remove_secret(&self, name: &str) -> Result<(), Failure> {
        self.secrets.lock().unwrap().retain(|known| known != name);
        Ok(())
    }
}

/// Backends for agents and for workflows.
fn peers(agents: Arc<ScriptedPeer>, flows: &WorkflowRunner) -> Arc<dyn Peer> {
    let (a2a, flow): (Arc<dyn Peer>, Arc<dyn Peer>) = (agents, Arc::new(flows.clone()));
    Arc::new(Peers { mcp: a2a.clone(), function: a2a.clone(), acp: a2a.clone(), a2a, flow })
}

async fn authentication(store: &Arc<dyn Store>, clock: Arc<dyn Clock>, needs_token: bool) -> Authentication {
    if needs_token {
        let book = TokenCache::open(store.clone(), Vec::new()).await.unwrap();
        Authentication::Bearer(Arc::new(BearerAuthenticator::new(book, issuers(&clock), clock)))
    } else {
        Authentication::Open(Caller::user("ann"))
    }
}

fn gate(authentication: Authentication, clock: Arc<dyn Clock>) -> AdmissionLayer {
    AdmissionLayer::new(HostCheck::new(&[], 100_000), authentication)
        .with_routes(&[
            RouteRule { path: API, needs: TokenScopes::ALL },
            RouteRule { path: PAGES, needs: TokenScopes::ALL },
        ])
        .with_sessions(sessions(clock), &rialto_console::paths_before_sign_in())
}

fn row(caller: &str, token: &str, rights: TokenScopes) -> Token {
    Token {
        id: format!("tok_{caller}"),
        hash: rialto_http_server::auth::hash_token(token),
        scope: Scope::default(),
        caller: caller.into(),
        kind: CallerKind::User,
        rights,
        created_at: SystemClock.now(),
        expires_at: None,
        revoked_at: None,
        created_by: None,
        session_of: None,
    }
}

fn issuers(clock: &Arc<dyn Clock>) -> TrustedIssuers {
    let nobody = |_: rialto_http_client::fetch::FetchRequest| -> Result<
        rialto_http_client::fetch::FetchResponse,
        rialto_http_client::fetch::FetchError,
    > { unreachable!("there are no issuers") };
    let fetch: Arc<dyn rialto_http_client::fetch::Fetch> = Arc::new(nobody);
    TrustedIssuers::new(rialto_http_server::auth::Config::default(), &fetch, clock).unwrap()
}

/// Sessions sealed by reversing their bytes, which is enough for tests.
fn sessions(clock: Arc<dyn Clock>) -> Arc<BrowserSessions> {
    let turned = |text: &[u8]| text.iter().rev().copied().collect::<Vec<u8>>();
    let sealing = CookieSealing {
        seal: Box::new(move |text| Some(turned(text.expose().as_bytes()))),
        open: Box::new(move |text| String::from_utf8(turned(text)).ok().map(Secret::from)),
    };
    Arc::new(BrowserSessions::new(sealing, [7; 32], clock).unwrap())
}
