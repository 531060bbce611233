//! A gate with a store behind it and a clock in our hands.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use axum::{Extension, Router, routing};
use http::{HeaderValue, StatusCode, header};
use rialto_edge::{
    auth::{self, Authentication, Bearers, Config, IssuerConfig, Issuers, TokenBook},
    fetch::{Fetch, Response},
    gate::Gate,
    guard::Guard,
};
use rialto_model::{
    call::{Caller, CallerKind},
    clock::{Clock, Timestamp},
    ids::Scope,
    rights::Rights,
    store::{Store, Token},
};
use rialto_store::SqliteStore;

use crate::server::{Server, client, fetch, get};

/// A server that tells callers who they are.
pub(crate) struct House {
    pub(crate) server: Server,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) clock: Arc<Hand>,
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
        let clock = Arc::new(Hand::new());
        let store = Arc::new(SqliteStore::in_memory(|_| Err("no cards here".into())).unwrap());
        for token in tokens {
            store.put_token(token).await.unwrap();
        }
        let book = TokenBook::open(store.clone(), Vec::new()).await.unwrap();
        let (fetch, time) = (Arc::new(client()) as Arc<dyn Fetch>, clock.clone() as Arc<dyn Clock>);
        let issuers = Issuers::new(Config { issuers }, &fetch, &time).unwrap();
        let authentication = Authentication::Bearer(Arc::new(Bearers::new(book, issuers, time)));
        Self { server: serve(authentication).await, store, clock }
    }

    /// The answer to somebody who shows `authorization`.
    pub(crate) async fn ask(&self, authorization: &str) -> Response {
        let shown = HeaderValue::from_str(authorization).unwrap();
        fetch(get(self.server.uri("/")).header(header::AUTHORIZATION, shown)).await.unwrap()
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
    let whoami = |Extension(caller): Extension<Caller>| async move { described(&caller) };
    let router = Router::new().route("/", routing::get(whoami));
    Server::start(router.layer(Gate::new(Guard::new(&[], 10), authentication))).await
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
        rights: Rights::default(),
        created_at: noon(),
        expires_at: None,
        revoked_at: None,
    }
}

/// When every test begins.
pub(crate) fn noon() -> Timestamp {
    "2026-08-01T12:00:00Z".parse().unwrap()
}
