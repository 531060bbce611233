//! A gate with a store behind it and a clock in our hands.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use axum::{Extension, Router, routing};
use futures::StreamExt;
use http::{HeaderValue, StatusCode, header};
use rialto_edge::{
    auth::{self, Authentication, Bearers, Config, IssuerConfig, Issuers, TokenBook},
    fetch::{Fetch, Response},
    gate::{Entrance, Gate},
    guard::Guard,
    site::Site,
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

/// A server that tells callers who they are.
pub(crate) struct House {
    pub(crate) server: Server,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) clock: Arc<Hand>,
    pub(crate) bearers: Arc<Bearers>,
}

/// A clock that is moved by hand.
pub(crate) struct Hand(AtomicI64);

// === impl House ===

impl House {
    /// With these tokens.
    pub(crate) async fn with(tokens: &[Token]) -> Self {
        Self::trusting(Vec::new(), tokens).await
    }

    /// With tokens of these issuers, and these.
    pub(crate) async fn trusting(issuers: Vec<IssuerConfig>, tokens: &[Token]) -> Self {
        Self::at(Site::default(), issuers, tokens).await
    }

    /// With all of that, reached from outside like this.
    pub(crate) async fn at(site: Site, issuers: Vec<IssuerConfig>, tokens: &[Token]) -> Self {
        Self::configured(site, Config { issuers, ..Config::default() }, tokens).await
    }

    /// With all that can be set.
    pub(crate) async fn configured(site: Site, config: Config, tokens: &[Token]) -> Self {
        let clock = Arc::new(Hand::new());
        let store = Arc::new(SqliteStore::in_memory(|_| Err("no cards here".into())).unwrap());
        for token in tokens {
            store.put_token(token).await.unwrap();
        }
        let book = TokenBook::open(store.clone(), Vec::new()).await.unwrap();
        let (fetch, time) = (Arc::new(client()) as Arc<dyn Fetch>, clock.clone() as Arc<dyn Clock>);
        let issuers = Issuers::new(config, &fetch, &time).unwrap();
        let bearers = Arc::new(Bearers::new(book, issuers, time));
        let authentication = Authentication::Bearer(bearers.clone());
        Self { server: serve_at(site, authentication).await, store, clock, bearers }
    }

    /// The answer to somebody who shows `authorization`.
    pub(crate) async fn ask(&self, authorization: &str) -> Response {
        let shown = HeaderValue::from_str(authorization).unwrap();
        fetch(get(self.server.uri("/")).header(header::AUTHORIZATION, shown)).await.unwrap()
    }

    /// The answer at a path of a host.
    pub(crate) async fn visit(&self, host: &str, path: &str, token: Option<&str>) -> Response {
        visit(&self.server, host, path, token).await
    }

    pub(crate) async fn status(&self, authorization: &str) -> StatusCode {
        self.ask(authorization).await.status
    }
}

// === impl Hand ===

impl Hand {
    fn new() -> Self {
        Self(AtomicI64::new(noon().as_second()))
    }

    /// Lets so many seconds pass.
    pub(crate) fn pass(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.0.load(Ordering::SeqCst)).unwrap()
    }
}

/// A server that tells callers who they are, and everybody else why not.
pub(crate) async fn serve(authentication: Authentication) -> Server {
    serve_at(Site::default(), authentication).await
}

/// The same, reached from outside like this.
pub(crate) async fn serve_at(site: Site, authentication: Authentication) -> Server {
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
    let gate = Gate::new(Guard::new(&["*.bridge.example".to_owned()], 10), authentication)
        .at(site)
        .before(&[
            Entrance {
                path: "/mcp",
                needs: TokenScopes::from_scopes([TokenScope::Call, TokenScope::Discover]),
            },
            Entrance { path: "/rules", needs: TokenScopes::from_scopes([TokenScope::Admin]) },
        ])
        .open_to_all(&["/open"]);
    Server::start(Router::new().fallback_service(gate.around(router.route("/open", routing::get("open")))))
        .await
}

/// The answer at a path of a host.
pub(crate) async fn visit(server: &Server, host: &str, path: &str, token: Option<&str>) -> Response {
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
        hash: auth::hash(secret),
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

/// When every test begins.
pub(crate) fn noon() -> Timestamp {
    "2026-08-01T12:00:00Z".parse().unwrap()
}
