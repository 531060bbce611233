//! Sessions of HTTP clients that speak a protocol version before 2026-07-28.
//!
//! rmcp ends a session that has been idle for a while, even one with a call in flight or an open stream, and clients
//! do not recover. So here no session ends by itself; instead their number is limited, and one too many ends the one
//! that has been quiet the longest. A session belongs to the caller who opened it: nobody else may use it.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures::{Stream, StreamExt};
use http::request::Parts;
use parking_lot::Mutex;
use rialto_engine::{Engine, TokenValidity};
use rialto_model::{call::Caller, ids::TokenId};
use rmcp::{
    model::{ClientJsonRpcMessage, GetExtensions, ServerJsonRpcMessage},
    transport::{
        WorkerTransport,
        streamable_http_server::session::{
            ServerSseMessage, SessionId, SessionManager,
            local::{LocalSessionManager, LocalSessionManagerError, LocalSessionWorker},
        },
    },
};
use tokio_util::sync::CancellationToken;

/// How often it is looked whether the token of a session has ended.
const REVOCATION_POLL: Duration = Duration::from_secs(1);

/// Keeps sessions, a limited number of them.
pub(crate) struct Sessions {
    inner: LocalSessionManager,
    known: Mutex<HashMap<SessionId, Arc<Known>>>,
    max: usize,
    clock: AtomicU64,
    /// Ends the streams that nobody else would end.
    stop: CancellationToken,
}

/// What we know of a session beside what rmcp does.
#[derive(Default)]
struct Known {
    owner: OnceLock<Caller>,
    used: AtomicU64,
    open: AtomicUsize,
    /// Whether the token that it was opened with expires.
    may_expire: AtomicBool,
}

/// A stream that counts as use of its session while it lasts.
struct Used<S> {
    stream: S,
    session: Option<Arc<Known>>,
}

// === impl Sessions ===

impl Sessions {
    pub(crate) fn new(max: usize, stop: CancellationToken) -> Self {
        let mut inner = LocalSessionManager::default();
        inner.session_config.keep_alive = None;
        // An empty first event breaks clients before 2025-11-25: they read it as JSON.
        inner.session_config.sse_retry = None;
        Self { inner, known: Mutex::default(), max: max.max(1), clock: AtomicU64::new(0), stop }
    }

    /// Whether `caller` may use the session. One that is gone may be named by anybody: they learn that it is gone.
    pub(crate) fn is_open_to(&self, id: &str, caller: &Caller) -> bool {
        self.get(id).is_none_or(|session| session.owner.get().is_none_or(|owner| owner == caller))
    }

    /// Ends the sessions of tokens that have ended, in whichever process that happened, until the server stops.
    pub(crate) async fn end_revoked(self: Arc<Self>, engine: Engine) {
        let mut seen = None;
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(REVOCATION_POLL) => {}
            }
            // Expiry moves no generation, so every round counts while there are sessions that could expire.
            let generation = engine.generation();
            let owners = self.owned_with_tokens();
            if owners.is_empty()
                || seen == Some(generation) && !owners.iter().any(|(.., may_expire)| *may_expire)
            {
                continue;
            }
            seen = Some(generation);
            for (id, token, _) in owners {
                match engine.token_validity(&token).await {
                    Ok(TokenValidity::Ended) => {
                        tracing::info!("session {id} ends: its token was revoked or has expired");
                        if let Err(error) = self.close_session(&id).await {
                            tracing::warn!("session {id} could not be closed: {error}");
                        }
                    }
                    Ok(validity) => self.note_expiry(&id, matches!(validity, TokenValidity::Until(_))),
                    // The store is away; the next round tries again.
                    Err(_) => seen = None,
                }
            }
        }
    }

    /// The sessions that were opened with a token, and whether that may expire.
    fn owned_with_tokens(&self) -> Vec<(SessionId, TokenId, bool)> {
        let known = self.known.lock();
        let owned = known.iter().filter_map(|(id, session)| {
            let token = session.owner.get()?.token.clone()?;
            Some((Arc::clone(id), token, session.may_expire.load(Ordering::Relaxed)))
        });
        owned.collect()
    }

    fn note_expiry(&self, id: &SessionId, may_expire: bool) {
        if let Some(session) = self.get(id) {
            session.may_expire.store(may_expire, Ordering::Relaxed);
        }
    }

    fn get(&self, id: &str) -> Option<Arc<Known>> {
        self.known.lock().get(id).cloned()
    }

    fn used(&self, id: &SessionId) -> Option<Arc<Known>> {
        let session = self.get(id)?;
        session.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        Some(session)
    }

    /// The sessions that must go so that there is room for one more: idle ones first, then the longest quiet.
    fn too_many(&self) -> Vec<SessionId> {
        let known = self.known.lock();
        let excess = (known.len() + 1).saturating_sub(self.max);
        if excess == 0 {
            return Vec::new();
        }
        let mut ids: Vec<_> = known
            .iter()
            .map(|(id, session)| {
                let is_busy = session.open.load(Ordering::Relaxed) > 0;
                (is_busy, session.used.load(Ordering::Relaxed), Arc::clone(id))
            })
            .collect();
        ids.sort();
        ids.into_iter().map(|(.., id)| id).take(excess).collect()
    }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = WorkerTransport<LocalSessionWorker>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        for id in self.too_many() {
            tracing::info!("session {id} made room for a new one; `max_sessions` is the limit");
            self.close_session(&id).await?;
        }
        let (id, transport) = self.inner.create_session().await?;
        self.known.lock().insert(Arc::clone(&id), Arc::default());
        drop(self.used(&id));
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        if let (Some(session), Some(caller)) = (self.used(id), caller_of(&message)) {
            // A session is opened once, so this is the first owner.
            let _ = session.owner.set(caller);
        }
        self.inner.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.inner.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.known.lock().remove(id);
        self.inner.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let session = self.used(id);
        Ok(Used::new(Box::pin(self.inner.create_stream(id, message).await?), session))
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        drop(self.used(id));
        self.inner.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let session = self.used(id);
        let stream = self.inner.create_standalone_stream(id).await?;
        Ok(Used::new(Box::pin(stream.take_until(self.stop.clone().cancelled_owned())), session))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let session = self.used(id);
        let stream = self.inner.resume(id, last_event_id).await?;
        Ok(Used::new(Box::pin(stream.take_until(self.stop.clone().cancelled_owned())), session))
    }
}

// === impl Used ===

impl<S> Used<S> {
    fn new(stream: S, session: Option<Arc<Known>>) -> Self {
        if let Some(session) = &session {
            session.open.fetch_add(1, Ordering::Relaxed);
        }
        Self { stream, session }
    }
}

impl<S: Stream + Unpin> Stream for Used<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        Pin::new(&mut self.stream).poll_next(context)
    }
}

impl<S> Drop for Used<S> {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            session.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn caller_of(message: &ClientJsonRpcMessage) -> Option<Caller> {
    let ClientJsonRpcMessage::Request(request) = message else { return None };
    request
        .request
        .extensions()
        .get::<Parts>()?
        .extensions
        .get::<Caller>()
        .cloned()
        .map(Caller::without_proof)
}
