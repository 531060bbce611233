//! Sessions of HTTP clients that speak a protocol version before 2026-07-28.
//!
//! rmcp ends a session that has been idle for a while, even one with a call in flight or an open stream, and clients
//! do not recover. So here no session ends by itself; instead their number is limited, for each caller and in all. One too many ends
//! the caller's own that has been idle the longest, and never one that another caller uses. A session belongs to the caller who opened
//! it: nobody else may use it.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};

use futures::{Stream, StreamExt};
use http::request::Parts;
use parking_lot::Mutex;
use rialto_engine::{Engine, TokenValidity};
use rialto_model::{
    call::{Caller, CallerId},
    ids::{OrgId, TokenId},
};
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
    table: Mutex<SessionTable>,
    limits: SessionLimits,
    clock: AtomicU64,
    started: Instant,
    /// Ends the streams that nobody else would end.
    stop: CancellationToken,
}

/// How many sessions there may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionLimits {
    pub(crate) max: usize,
    pub(crate) max_per_caller: usize,
    /// After this time without use a session may make room for another caller's.
    pub(crate) idle: Duration,
}

/// Why a caller gets no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSession {
    /// It has as many as it may have, and all of them are in use.
    Caller(usize),
    /// There are as many as there may be, and none may be ended for it.
    All(usize),
}

/// Room for one more session of a caller, until it is opened.
pub(crate) struct Reservation<'a> {
    sessions: &'a Sessions,
    owner: Owner,
}

type Owner = (OrgId, CallerId);

/// The sessions, and those that are about to be opened.
#[derive(Default)]
struct SessionTable {
    known: HashMap<SessionId, Arc<Known>>,
    reserved: HashMap<Owner, usize>,
}

/// What we know of a session beside what rmcp does.
#[derive(Default)]
struct Known {
    owner: OnceLock<Caller>,
    /// The order of use.
    used: AtomicU64,
    /// The time of use, in milliseconds since the start.
    used_at: AtomicU64,
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
    pub(crate) fn new(limits: SessionLimits, stop: CancellationToken) -> Self {
        let mut inner = LocalSessionManager::default();
        inner.session_config.keep_alive = None;
        // An empty first event breaks clients before 2025-11-25: they read it as JSON.
        inner.session_config.sse_retry = None;
        let (table, clock, started) = (Mutex::default(), AtomicU64::new(0), Instant::now());
        Self { inner, table, limits, clock, started, stop }
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
        let table = self.table.lock();
        let owned = table.known.iter().filter_map(|(id, session)| {
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

    /// Makes room for one more session of `caller`: of its own sessions, or of those that nobody has used for long.
    pub(crate) async fn reserve(&self, caller: &Caller) -> Result<Reservation<'_>, NoSession> {
        let owner = (caller.scope.org.clone(), caller.id.clone());
        let ended = {
            let mut table = self.table.lock();
            let ended = table.make_room(&owner, self.limits, self.now())?;
            *table.reserved.entry(owner.clone()).or_insert(0) += 1;
            ended
        };
        let reservation = Reservation { sessions: self, owner };
        for id in ended {
            tracing::info!(
                "session {id} made room for a new one; [mcp] max_sessions and max_sessions_per_caller are the limits"
            );
            if let Err(error) = self.close_session(&id).await {
                tracing::debug!("session {id} could not be closed: {error}");
            }
        }
        Ok(reservation)
    }

    fn get(&self, id: &str) -> Option<Arc<Known>> {
        self.table.lock().known.get(id).cloned()
    }

    fn used(&self, id: &SessionId) -> Option<Arc<Known>> {
        let session = self.get(id)?;
        session.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        session.used_at.store(self.now(), Ordering::Relaxed);
        Some(session)
    }

    /// Milliseconds since the start.
    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

// === impl SessionTable ===

impl SessionTable {
    /// The sessions that must end so that `owner` may have one more. They are taken out of the table.
    fn make_room(
        &mut self,
        owner: &Owner,
        limits: SessionLimits,
        now: u64,
    ) -> Result<Vec<SessionId>, NoSession> {
        let total = self.known.len() + self.reserved.values().sum::<usize>();
        let own = self.known.values().filter(|session| session.belongs_to(owner)).count()
            + self.reserved.get(owner).copied().unwrap_or(0);
        let mut ended = Vec::new();
        if own >= limits.max_per_caller.max(1) {
            ended.push(self.oldest_idle(owner).ok_or(NoSession::Caller(limits.max_per_caller))?);
        }
        if total >= limits.max.max(1) && ended.is_empty() {
            let idle = u64::try_from(limits.idle.as_millis()).unwrap_or(u64::MAX);
            let is_unused =
                |session: &Known| now.saturating_sub(session.used_at.load(Ordering::Relaxed)) >= idle;
            let unused = self.known.iter().filter(|(_, session)| session.is_idle() && is_unused(session));
            ended.extend(unused.map(|(id, _)| Arc::clone(id)));
            if ended.is_empty() {
                ended.push(self.oldest_idle(owner).ok_or(NoSession::All(limits.max))?);
            }
        }
        for id in &ended {
            self.known.remove(id);
        }
        Ok(ended)
    }

    /// The session of `owner` that has been idle the longest.
    fn oldest_idle(&self, owner: &Owner) -> Option<SessionId> {
        let idle = self.known.iter().filter(|(_, session)| session.is_idle() && session.belongs_to(owner));
        idle.min_by_key(|(_, session)| session.used.load(Ordering::Relaxed)).map(|(id, _)| Arc::clone(id))
    }
}

// === impl Known ===

impl Known {
    fn belongs_to(&self, (org, id): &Owner) -> bool {
        self.owner.get().is_some_and(|owner| owner.scope.org == *org && owner.id == *id)
    }

    fn is_idle(&self) -> bool {
        self.open.load(Ordering::Relaxed) == 0
    }
}

// === impl Reservation ===

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut table = self.sessions.table.lock();
        if let Some(count) = table.reserved.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                table.reserved.remove(&self.owner);
            }
        }
    }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = WorkerTransport<LocalSessionWorker>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.inner.create_session().await?;
        self.table.lock().known.insert(Arc::clone(&id), Arc::default());
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
        self.table.lock().known.remove(id);
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
