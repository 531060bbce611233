//! Sessions of HTTP clients that speak a protocol version before 2026-07-28.
//!
//! A client's session id holds the state of its session ([`sealed_id`]), so every process that shares the store serves it: one that does
//! not hold the session rebuilds it, after a restart too. A session belongs to the caller that opened it, and only that caller may use
//! it. It ends when its client ends it, or when the caller's token ends.
//!
//! rmcp ends a session that has been idle for a while, even one with a call in flight or an open stream. So here none ends by itself;
//! instead the number that a process holds is limited, for each caller and in all. One too many drops the caller's own that has been idle
//! the longest, and never one that another caller uses. A dropped session is rebuilt when its client comes back.

mod manager;
mod node_tag;
mod relay;
mod sealed_id;
mod table;

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rialto_engine::{Engine, TokenValidity};
use rialto_model::{call::Caller, failure::Failure, ids::TokenId, store::MAX_SESSION_AGE};
use rmcp::{
    model::{ClientJsonRpcMessage, ClientNotification, InitializedNotification},
    transport::streamable_http_server::session::{SessionId, SessionManager, local::LocalSessionManager},
};
use tokio::sync::{Mutex as AsyncMutex, MutexGuard};
use tokio_util::sync::CancellationToken;

pub(crate) use self::{
    manager::HandshakeStore,
    relay::AnswerWaits,
    table::{NoSession, SessionLimits},
};
use self::{
    node_tag::NodeTag,
    sealed_id::{IdSealer, SessionSeal},
    table::{HeldSession, Owner, SessionTable},
};
use crate::tool_service::ToolService;

/// Interval of checking whether the tokens of sessions are still valid.
const REVOCATION_POLL: Duration = Duration::from_secs(1);

/// Locks among which sessions are spread that are being rebuilt.
const REBUILD_LOCKS: usize = 64;

/// Sessions of this process, with a limit on their number.
pub(crate) struct McpSessions {
    desk: Arc<ToolService>,
    inner: LocalSessionManager,
    sealer: IdSealer,
    node: NodeTag,
    /// A session is rebuilt once, however many of its requests come at the same time.
    rebuild_locks: [AsyncMutex<()>; REBUILD_LOCKS],
    hasher: RandomState,
    table: Mutex<SessionTable>,
    limits: SessionLimits,
    clock: AtomicU64,
    started: Instant,
    /// Ends open-ended streams at shutdown.
    stop: CancellationToken,
}

/// Reserved place for one more session of a caller, until it is opened.
pub(crate) struct SessionReservation<'a> {
    sessions: &'a McpSessions,
    owner: Owner,
}

/// Reason why a request is not served in the session that it names.
#[derive(Debug)]
pub(crate) enum AdmissionError {
    /// No such session, or it belongs to another caller.
    Unknown,
    /// The session limit leaves no room to rebuild it.
    Full(NoSession),
    /// The store did not answer whether it has ended.
    Unavailable(Failure),
}

/// Permission to use a session, held until its request has been handed over.
pub(crate) struct Admission<'a> {
    /// Id of the session inside this process.
    pub(crate) local: SessionId,
    _rebuild: Option<SessionRebuild<'a>>,
}

/// A session that the request at hand rebuilds.
struct SessionRebuild<'a> {
    sessions: &'a McpSessions,
    key: String,
    _reservation: SessionReservation<'a>,
    _turn: MutexGuard<'a, ()>,
}

// === impl McpSessions ===

impl McpSessions {
    pub(crate) fn new(desk: Arc<ToolService>, limits: SessionLimits, stop: CancellationToken) -> Self {
        let mut inner = LocalSessionManager::default();
        inner.session_config.keep_alive = None;
        // An empty first event breaks clients before 2025-11-25: they read it as JSON.
        inner.session_config.sse_retry = None;
        Self {
            desk,
            inner,
            sealer: IdSealer::default(),
            node: NodeTag::random(),
            rebuild_locks: std::array::from_fn(|_| AsyncMutex::default()),
            hasher: RandomState::new(),
            table: Mutex::default(),
            limits,
            clock: AtomicU64::new(0),
            started: Instant::now(),
            stop,
        }
    }

    fn engine(&self) -> &Engine {
        &self.desk.engine
    }

    /// Admits a caller's request to the session that it names, which is rebuilt if this process does not hold it.
    pub(crate) async fn admit(&self, id: &str, caller: &Caller) -> Result<Admission<'_>, AdmissionError> {
        let seal = self.open(id, caller).await?;
        if let Some(local) = self.table.lock().find(&seal.key) {
            return Ok(Admission { local, _rebuild: None });
        }
        let lock = self.hasher.hash_one(&seal.key) % REBUILD_LOCKS as u64;
        let lock = usize::try_from(lock).ok().and_then(|lock| self.rebuild_locks.get(lock));
        let turn = lock.ok_or(AdmissionError::Unknown)?.lock().await;
        if let Some(local) = self.table.lock().find(&seal.key) {
            return Ok(Admission { local, _rebuild: None });
        }
        let age = self.engine().now().as_second().saturating_sub(seal.opened_at);
        if age > MAX_SESSION_AGE.as_secs() {
            return Err(AdmissionError::Unknown);
        }
        let reservation = self.reserve(caller).await.map_err(AdmissionError::Full)?;
        // From here on, an end that another process reports is noticed.
        let local = self.table.lock().begin_rebuild(&seal.key, seal.handshake());
        let key = seal.key.clone();
        let rebuild = SessionRebuild { sessions: self, key, _reservation: reservation, _turn: turn };
        if self.engine().sessions().is_ended(&seal.key).await.map_err(AdmissionError::Unavailable)? {
            return Err(AdmissionError::Unknown);
        }
        Ok(Admission { local, _rebuild: Some(rebuild) })
    }

    /// Ends a caller's session in every process. Returns its id inside this one.
    pub(crate) async fn end(&self, id: &str, caller: &Caller) -> Result<SessionId, AdmissionError> {
        let seal = self.open(id, caller).await?;
        let ended =
            self.engine().sessions().is_ended(&seal.key).await.map_err(AdmissionError::Unavailable)?;
        if ended {
            return Err(AdmissionError::Unknown);
        }
        self.engine().sessions().end(&seal.key).await.map_err(AdmissionError::Unavailable)?;
        let held = self.table.lock().find(&seal.key);
        Ok(held.unwrap_or_else(|| seal.key.as_str().into()))
    }

    /// Id that a client gets for a session that it has just opened.
    pub(crate) async fn seal(&self, local: &str) -> Result<Option<String>, Failure> {
        let Some(session) = self.get(local) else { return Ok(None) };
        let (Some(owner), Some(hello)) = (session.owner.get(), session.hello.get()) else { return Ok(None) };
        let seal = SessionSeal::new(local, self.engine().now().as_second(), owner, hello.clone());
        self.sealer.seal(self.engine(), &seal).await.map(Some)
    }

    async fn open(&self, id: &str, caller: &Caller) -> Result<SessionSeal, AdmissionError> {
        let opened = self.sealer.open(self.engine(), id).await.map_err(AdmissionError::Unavailable)?;
        opened.filter(|seal| seal.belongs_to(caller)).ok_or(AdmissionError::Unknown)
    }

    /// True when this process holds no session and rebuilds none.
    fn is_empty(&self) -> bool {
        self.table.lock().is_empty()
    }

    /// Ends the sessions of tokens that have ended, in any process, until the server stops.
    pub(crate) async fn end_revoked(self: Arc<Self>) {
        let engine = self.engine();
        let mut seen = None;
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(REVOCATION_POLL) => {}
            }
            // Expiry does not change the generation, so every round checks while there are sessions whose token may expire.
            let generation = engine.tokens().generation();
            let owners = self.owned_with_tokens();
            if owners.is_empty()
                || seen == Some(generation) && !owners.iter().any(|(.., may_expire)| *may_expire)
            {
                continue;
            }
            seen = Some(generation);
            for (id, token, _) in owners {
                match engine.tokens().validity(&token).await {
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

    /// Sessions that were opened with a token, and whether it may expire.
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

    /// Makes room for one more session of `caller`: drops one of its own, or one that has been idle for long.
    pub(crate) async fn reserve(&self, caller: &Caller) -> Result<SessionReservation<'_>, NoSession> {
        let owner = (caller.scope.org.clone(), caller.id.clone());
        let ended = {
            let mut table = self.table.lock();
            let ended = table.make_room(&owner, self.limits, self.now())?;
            *table.reserved.entry(owner.clone()).or_insert(0) += 1;
            ended
        };
        let reservation = SessionReservation { sessions: self, owner };
        for id in ended {
            tracing::info!(
                "session {id} is dropped from memory for another one; [mcp] max_sessions and max_sessions_per_caller are the limits"
            );
            if let Err(error) = self.close_session(&id).await {
                tracing::debug!("session {id} could not be closed: {error}");
            }
        }
        Ok(reservation)
    }

    fn get(&self, id: &str) -> Option<Arc<HeldSession>> {
        self.table.lock().known.get(id).cloned()
    }

    /// Marks a session as initialized in rmcp, if the client's own notification reached another process.
    async fn ensure_ready(&self, id: &SessionId) {
        let Some(session) = self.get(id) else { return };
        let Some(owner) = session.owner.get() else { return };
        if session.is_ready.swap(true, Ordering::Relaxed) {
            return;
        }
        let (mut parts, ()) = http::Request::new(()).into_parts();
        parts.extensions.insert(owner.clone());
        let ready = ClientNotification::InitializedNotification(InitializedNotification::default());
        let mut ready = ClientJsonRpcMessage::notification(ready);
        ready.insert_extension(parts);
        if let Err(error) = self.inner.accept_message(id, ready).await {
            tracing::debug!("session {id} could not be marked as initialized: {error}");
        }
    }

    fn used(&self, id: &SessionId) -> Option<Arc<HeldSession>> {
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

// === impl SessionReservation ===

impl Drop for SessionReservation<'_> {
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

// === impl SessionRebuild ===

impl Drop for SessionRebuild<'_> {
    fn drop(&mut self) {
        self.sessions.table.lock().rebuilding.remove(&self.key);
    }
}
