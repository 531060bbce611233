//! Server with admission, a store and a manual clock.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use axum::{Extension, Router, routing};
use futures::StreamExt;
use http::{HeaderValue, StatusCode, header};
use rialto_http_client::fetch::{Fetch, FetchResponse};
use rialto_http_server::{
    admission::{AdmissionLayer, RouteRule},
    auth::{self, Authentication, BearerAuthenticator, Config, IssuerConfig, TokenCache, TrustedIssuers},
    host_check::HostCheck,
    public_url::PublicUrl,
};
use rialto_model::{
    call::{Caller, CallerKind},
    clock::{Clock, Timestamp},
    ids::Scope,
    store::{Token, TokenStore},
    token_scopes::{TokenScope, TokenScopes},
};
use rialto_store::SqliteStore;

use crate::server::{Server, client, fetch, get};

/// Server that responds with the caller.
pub(crate) struct Fixture {
    pub(crate) server: Server,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) bearers: Arc<BearerAuthenticator>,
}

/// A clock that is moved by hand.
pub(crate) struct ManualClock(AtomicI64);

// === impl Fixture ===

impl Fixture {
    /// Server with these tokens.
    pub(crate) async fn with(tokens: &[Token]) -> Self {
        Self::trusting(Vec::new(), tokens).await
    }

    /// Server with these issuers and tokens.
    pub(crate) async fn trusting(issuers: Vec<IssuerConfig>, tokens: &[Token]) -> Self {
        Self::at(PublicUrl::default(), issuers, tokens).await
    }

    /// Server with this public address, these issuers and tokens.
    pub(crate) async fn at(site: PublicUrl, issuers: Vec<IssuerConfig>, tokens: &[Token]) -> Self {
        Self::configured(site, Config { issuers, ..Config::default() }, tokens).await
    }

    /// Server with this configuration.
    pub(crate) async fn configured(site: PublicUrl, config: Config, tokens: &[Token]) -> Self {
        let clock = Arc::new(ManualClock::new());
        let store = Arc::new(SqliteStore::in_memory(|_| Err("no cards here".into())).unwrap());
        for token in tokens {
            store.put_token(token).await.unwrap();
        }
        let tokens = TokenCache::open(store.clone(), Vec::new()).await.unwrap();
        let (fetch, time) = (Arc::new(client()) as Arc<dyn Fetch>, clock.clone() as Arc<dyn Clock>);
        let issuers = TrustedIssuers::new(config, &fetch, &time).unwrap();
        let bearers = Arc::new(BearerAuthenticator::new(tokens, issuers, time));
        let authentication = Authentication::Bearer(bearers.clone());
        Self { server: serve_at(site, authentication).await, store, clock, bearers }
    }

    /// Response to a request with this `Authorization`.
    pub(crate) async fn ask(&self, authorization: &str) -> FetchResponse {
        let shown = HeaderValue::from_str(authorization).unwrap();
        fetch(get(self.server.uri("/")).header(header::AUTHORIZATION, shown)).await.unwrap()
    }

    /// Response at a path of a host.
    pub(crate) async fn visit(&self, host: &str, path: &str, token: Option<&str>) -> FetchResponse {
        visit(&self.server, host, path, token).await
    }

    pub(crate) async fn status(&self, authorization: &str) -> StatusCode {
        self.ask(authorization).await.status
    }
}

// === impl ManualClock ===

impl ManualClock {
    fn new() -> Self {
        Self(AtomicI64::new(noon().as_second()))
    }

    /// Advances the clock.
    pub(crate) fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.0.load(Ordering::SeqCst)).unwrap()
    }
}

/// Server that responds with the caller, or with the reason for rejection.
pub(crate) async fn serve(authentication: Authentication) -> Server {
    serve_at(PublicUrl::default(), authentication).await
}

/// Server with this public address.
pub(crate) async fn serve_at(site: PublicUrl, authentication: Authentication) -> Server {
    let whoami = |Extension(caller): Extension<Caller>| async move { described(&caller) };
    let proof = |Extension(caller): Extension<Caller>| async move {
        caller.proof.map_or_else(|| "none".to_owned(), |proof| proof.expose().to_owned())
    };
    let rules = |_: Extension<Caller>| async { "rules" };
    let endless = || async {
        let first = futures::stream::iter([Ok::<_, std::convert::Infallible>("first ")]);
        axum::body::Body::from_stream(first.chain(futures::stream::pending()))
    };
    let slow = || async {
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        "late"
    };
    let router = Router::new()
        .route("/", routing::get(whoami))
        .route("/mcp", routing::get(whoami))
        .route("/mcp/proof", routing::get(proof))
        .route("/mcp/endless", routing::get(endless))
        .route("/mcp/slow", routing::get(slow))
        .route("/rules", routing::get(rules));
    let gate = AdmissionLayer::new(HostCheck::new(&["*.bridge.example".to_owned()], 10), authentication)
        .with_public_url(site)
        .with_routes(&[
            RouteRule {
                path: "/mcp",
                needs: TokenScopes::from_scopes([TokenScope::Call, TokenScope::Discover]),
            },
            RouteRule { path: "/rules", needs: TokenScopes::from_scopes([TokenScope::Admin]) },
        ])
        .without_checks(&["/open"]);
    Server::start(Router::new().fallback_service(gate.wrap(router.route("/open", routing::get("open")))))
        .await
}

/// Response at a path of a host.
pub(crate) async fn visit(server: &Server, host: &str, path: &str, token: Option<&str>) -> FetchResponse {
    let value = |text: &str| HeaderValue::from_str(text).unwrap();
    let mut request = get(server.uri(path)).header(header::HOST, value(host));
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, value(&format!("Bearer {token}")));
    }
    fetch(request).await.unwrap()
}

fn described(caller: &Caller) -> String {
    if caller.scope == Scope::default() {
        caller.id.to_string()
    } else {
        format!("{} of {}/{}", caller.id, caller.scope.org, caller.scope.project)
    }
}

pub(crate) fn token(secret: &str, caller: &str) -> Token {
    Token {
        id: caller.into(),
        hash: auth::hash_token(secret),
        scope: Scope::default(),
        caller: caller.into(),
        kind: CallerKind::User,
        rights: TokenScopes::default(),
        created_at: noon(),
        expires_at: None,
        revoked_at: None,
        created_by: None,
        session_of: None,
    }
}

/// Time when every test begins.
pub(crate) fn noon() -> Timestamp {
    "2026-08-01T12:00:00Z".parse().unwrap()
}
