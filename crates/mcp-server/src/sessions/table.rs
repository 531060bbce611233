//! Table of the sessions in this process, with eviction of idle ones.

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use rialto_model::{
    call::{Caller, CallerId},
    ids::OrgId,
};
use rmcp::{model::InitializeRequestParams, transport::streamable_http_server::session::SessionId};

use super::sealed_id::ClientHello;

/// Maximum numbers of sessions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionLimits {
    pub(crate) max: usize,
    pub(crate) max_per_caller: usize,
    /// Idle time after which a session may be evicted for another caller's.
    pub(crate) idle: Duration,
}

/// Reason why a caller gets no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSession {
    /// The caller has reached its limit, and all its sessions are in use.
    Caller(usize),
    /// The process has reached its limit, and no session may be evicted.
    All(usize),
}

/// Owner of a session, for limits.
pub(super) type Owner = (OrgId, CallerId);

/// Open sessions, and those that are about to be opened.
#[derive(Default)]
pub(super) struct SessionTable {
    pub(super) known: HashMap<SessionId, Arc<HeldSession>>,
    /// Ids of the known sessions inside this process, by their keys.
    by_key: HashMap<String, SessionId>,
    pub(super) reserved: HashMap<Owner, usize>,
    /// Sessions that are being rebuilt, by their keys.
    pub(super) rebuilding: HashMap<String, (SessionId, InitializeRequestParams)>,
    rebuilds: u64,
}

/// State of a session beside rmcp's.
#[derive(Default)]
pub(super) struct HeldSession {
    pub(super) owner: OnceLock<Caller>,
    /// Handshake of the client.
    pub(super) hello: OnceLock<ClientHello>,
    /// The order of use.
    pub(super) used: AtomicU64,
    /// The time of use, in milliseconds since the start.
    pub(super) used_at: AtomicU64,
    pub(super) open: AtomicUsize,
    /// True when the token that opened it can expire.
    pub(super) may_expire: AtomicBool,
    /// True once rmcp has the client's `initialized` notification, real or replayed.
    pub(super) is_ready: AtomicBool,
}

// === impl SessionTable ===

impl SessionTable {
    /// Id inside this process of the session with that key, if it is held.
    pub(super) fn find(&self, key: &str) -> Option<SessionId> {
        self.by_key.get(key).cloned()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty() && self.rebuilding.is_empty()
    }

    pub(super) fn insert(&mut self, id: &SessionId) {
        self.by_key.insert(key_of(id).to_owned(), Arc::clone(id));
        self.known.insert(Arc::clone(id), Arc::default());
    }

    pub(super) fn remove(&mut self, id: &SessionId) {
        self.known.remove(id);
        if self.by_key.get(key_of(id)) == Some(id) {
            self.by_key.remove(key_of(id));
        }
    }

    /// Begins to rebuild a session under an id that no earlier one had: what is left of an earlier one cannot end it.
    pub(super) fn begin_rebuild(&mut self, key: &str, handshake: InitializeRequestParams) -> SessionId {
        self.rebuilds += 1;
        let id: SessionId = format!("{key}.{}", self.rebuilds).into();
        self.rebuilding.insert(key.to_owned(), (Arc::clone(&id), handshake));
        id
    }

    /// Handshake of a session that is being rebuilt.
    pub(super) fn handshake(&self, id: &str) -> Option<InitializeRequestParams> {
        let (rebuilt, handshake) = self.rebuilding.get(key_of(id))?;
        (**rebuilt == *id).then(|| handshake.clone())
    }

    /// Adds a rebuilt session, unless it has ended meanwhile.
    pub(super) fn finish_rebuild(&mut self, id: &SessionId) -> bool {
        let is_wanted = self.rebuilding.get(key_of(id)).is_some_and(|(rebuilt, _)| rebuilt == id);
        if is_wanted {
            self.insert(id);
        }
        is_wanted
    }

    /// Removes the sessions that must be dropped so that `owner` may open one more.
    pub(super) fn make_room(
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
                |session: &HeldSession| now.saturating_sub(session.used_at.load(Ordering::Relaxed)) >= idle;
            let unused = self.known.iter().filter(|(_, session)| session.is_idle() && is_unused(session));
            ended.extend(unused.map(|(id, _)| Arc::clone(id)));
            if ended.is_empty() {
                ended.push(self.oldest_idle(owner).ok_or(NoSession::All(limits.max))?);
            }
        }
        for id in &ended {
            self.remove(id);
        }
        Ok(ended)
    }

    /// The session of `owner` that has been idle the longest.
    fn oldest_idle(&self, owner: &Owner) -> Option<SessionId> {
        let idle = self.known.iter().filter(|(_, session)| session.is_idle() && session.belongs_to(owner));
        idle.min_by_key(|(_, session)| session.used.load(Ordering::Relaxed)).map(|(id, _)| Arc::clone(id))
    }
}

// === impl HeldSession ===

impl HeldSession {
    fn belongs_to(&self, (org, id): &Owner) -> bool {
        self.owner.get().is_some_and(|owner| owner.scope.org == *org && owner.id == *id)
    }

    fn is_idle(&self) -> bool {
        self.open.load(Ordering::Relaxed) == 0
    }
}

/// Key of a session: its id inside a process, without the number that it gets when it is rebuilt.
pub(super) fn key_of(id: &str) -> &str {
    id.split_once('.').map_or(id, |(key, _)| key)
}
