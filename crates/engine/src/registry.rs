//! The agents we know: registered, refreshed, trusted, removed.
//!
//! What is live in memory is a copy of the store's rows, and never older than the store: before each call the
//! store's generation is compared, and any process that changed a row has moved it.

mod deploy;
mod error;
mod hold;
mod intake;
mod refresh;
mod register;
mod snapshot;

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rialto_model::{
    agent::{Agent, AgentTrust, CardRevision, Probe, RowStorage},
    card::Dialect,
    clock::Clock,
    credential::Credential,
    ids::{AgentId, Scope},
    store::{Store, StoreError},
};
use tokio::sync::watch;

use self::snapshot::{RegistrySnapshot, is_same_place, looks_the_same};
pub use self::{
    deploy::Deployment,
    error::RegistryError,
    refresh::Refreshed,
    register::{Registered, Registration},
};
use crate::{
    address,
    config::Config,
    directory::Directory,
    peer::{Discovery, Learned},
    store_deadline::StoreDeadline,
};

/// A row that others change too is tried again this often.
const TRIES: usize = 5;

/// The agents we know.
pub struct Registry {
    store: Arc<dyn Store>,
    discovery: Arc<dyn Discovery>,
    clock: Arc<dyn Clock>,
    config: Config,
    live: ArcSwap<RegistrySnapshot>,
    directories: Mutex<Vec<(Scope, Arc<Directory>)>>,
    /// Serialises changes, so that a slug is given out once and no copy of the rows is lost.
    changing: tokio::sync::Mutex<()>,
    version: AtomicU64,
    schema_search: Mutex<Option<SchemaSearch>>,
    surprises: AtomicU64,
    changed: watch::Sender<u64>,
    /// The agents that are probed with backoff because they could not be reached.
    pub(crate) recovering: Mutex<HashSet<AgentId>>,
}

/// Cached result of [`Registry::any_schema_has`].
struct SchemaSearch {
    version: u64,
    word: String,
    found: bool,
}

// === impl Registry ===

impl Registry {
    /// An empty registry; the first [`Registry::sync`] fills it.
    pub fn new(
        store: Arc<dyn Store>,
        discovery: Arc<dyn Discovery>,
        clock: Arc<dyn Clock>,
        config: Config,
    ) -> Self {
        Self {
            store: StoreDeadline::wrap(store, config.store_timeout()),
            discovery,
            clock,
            config,
            live: ArcSwap::from_pointee(RegistrySnapshot::default()),
            directories: Mutex::new(Vec::new()),
            changing: tokio::sync::Mutex::new(()),
            version: AtomicU64::new(1),
            schema_search: Mutex::default(),
            surprises: AtomicU64::new(0),
            changed: watch::Sender::new(1),
            recovering: Mutex::default(),
        }
    }

    /// Reads the rows again if any process changed them.
    pub async fn sync(&self) -> Result<(), StoreError> {
        if self.is_current() {
            return Ok(());
        }
        let _changing = self.changing.lock().await;
        // It may have been a change of our own, or somebody has read it while we waited.
        if self.is_current() { Ok(()) } else { self.reload().await }
    }

    fn is_current(&self) -> bool {
        self.live.load().generation == Some(self.store.generation())
    }

    /// Moves with every change that can be seen from outside.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// How often something had been changed that we did not change ourselves.
    pub fn surprises(&self) -> u64 {
        self.surprises.load(Ordering::Acquire)
    }

    /// All agents of a project, by slug. What is deployed is not among them: see [`Registry::deployed`].
    pub fn agents(&self, scope: &Scope) -> Vec<Arc<Agent>> {
        let live = self.live.load();
        let is_meant = |agent: &&Arc<Agent>| agent.scope == *scope && agent.backing.is_agent();
        let mut agents: Vec<_> = live.all().filter(is_meant).cloned().collect();
        agents.sort_by(|a, b| a.slug.cmp(&b.slug));
        agents
    }

    /// All agents of all projects.
    pub fn all(&self) -> Vec<Arc<Agent>> {
        self.live.load().all().cloned().collect()
    }

    /// The agent with that id.
    pub fn get(&self, id: &AgentId) -> Option<Arc<Agent>> {
        self.live.load().get(id).cloned()
    }

    /// The agent with that slug.
    pub fn by_slug(&self, scope: &Scope, slug: &str) -> Option<Arc<Agent>> {
        self.live.load().by_slug(scope, slug).cloned()
    }

    /// The agent somebody means: by id, slug, URL or name.
    pub fn find(&self, scope: &Scope, key: &str) -> Result<Arc<Agent>, RegistryError> {
        let live = self.live.load();
        let url = address::normalize(key).ok();
        let by = |means: &dyn Fn(&Agent) -> bool| {
            live.all().find(|agent| agent.scope == *scope && means(agent)).cloned()
        };
        by(&|agent| agent.id.as_str() == key || agent.slug == key || agent.url == key)
            .or_else(|| by(&|agent| Some(&agent.url) == url.as_ref()))
            .or_else(|| by(&|agent| agent.card.name == key))
            .or_else(|| by(&|agent| agent.card.name.eq_ignore_ascii_case(key)))
            .ok_or_else(|| RegistryError::NotFound(key.to_owned()))
    }

    /// The skills of a project, prepared once per version.
    pub fn directory(&self, scope: &Scope) -> Arc<Directory> {
        let version = self.version.load(Ordering::Acquire);
        let mut directories = self.directories.lock();
        if let Some((_, known)) =
            directories.iter().find(|(of, known)| of == scope && known.version() == version)
        {
            return Arc::clone(known);
        }
        directories.retain(|(of, known)| of != scope && known.version() == version);
        let directory = Arc::new(Directory::build(version, scope, self.live.load().all()));
        directories.push((scope.clone(), Arc::clone(&directory)));
        directory
    }

    /// True if the input schema of any skill contains `word`. The result is cached for the registry's version, because each
    /// call asks for the same word.
    pub fn any_schema_has(&self, word: &str) -> bool {
        let version = self.version();
        let mut cached = self.schema_search.lock();
        if let Some(search) = &*cached
            && search.version == version
            && search.word == word
        {
            return search.found;
        }
        let live = self.live.load();
        let mut schemas =
            live.all().flat_map(|agent| &agent.card.skills).filter_map(|skill| skill.input_schema.as_ref());
        let found = schemas.any(|schema| schema.get().contains(word));
        *cached = Some(SchemaSearch { version, word: word.to_owned(), found });
        found
    }

    /// Hears each time something visible has changed.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Changes how far an agent is trusted. The next call sees it.
    pub async fn set_trust(
        &self,
        agent: &Arc<Agent>,
        trust: AgentTrust,
    ) -> Result<Arc<Agent>, RegistryError> {
        self.update(agent, |row| row.trust = trust).await
    }

    /// Says what an agent is shown at its door.
    pub async fn set_credential(
        &self,
        agent: &Arc<Agent>,
        credential: Option<Credential>,
    ) -> Result<Arc<Agent>, RegistryError> {
        self.update(agent, |row| row.credential.clone_from(&credential)).await
    }

    /// Takes a changed card that was held into use.
    pub async fn approve(&self, agent: &Arc<Agent>) -> Result<Arc<Agent>, RegistryError> {
        if agent.pending.is_none() {
            return Err(RegistryError::NothingPending(agent.slug.clone()));
        }
        self.update(agent, |row| {
            if let Some(pending) = row.pending.take() {
                row.card = pending.card;
            }
        })
        .await
    }

    /// Forgets an agent. That alone revokes it: every permission is built from live rows.
    pub async fn remove(&self, agent: &Arc<Agent>) -> Result<(), RegistryError> {
        if agent.keep == RowStorage::Configured {
            return Err(RegistryError::Configured(agent.slug.clone()));
        }
        let _changing = self.changing.lock().await;
        self.forget(agent).await
    }

    async fn forget(&self, agent: &Agent) -> Result<(), RegistryError> {
        let made = match agent.keep {
            RowStorage::Stored | RowStorage::Configured => self.store.remove_agent(&agent.id).await?,
            // A stored row of the same address may come to light again: read everything.
            RowStorage::Session => None,
        };
        self.publish(self.live.load().without(&agent.id), made, true).await
    }

    /// The cards an agent had before, newest first.
    pub async fn history(&self, agent: &Agent) -> Result<Vec<CardRevision>, RegistryError> {
        Ok(self.store.card_history(&agent.id).await?)
    }

    /// An agent's latest probes, newest first.
    pub async fn probes(&self, agent: &Agent, limit: usize) -> Result<Vec<Probe>, RegistryError> {
        Ok(self.store.probes(&agent.id, limit).await?)
    }

    /// Changes a row, again if somebody else changed it meanwhile.
    async fn update(
        &self,
        agent: &Arc<Agent>,
        change: impl Fn(&mut Agent),
    ) -> Result<Arc<Agent>, RegistryError> {
        let _changing = self.changing.lock().await;
        for _ in 0..TRIES {
            let gone = || RegistryError::NotFound(agent.slug.clone());
            let before = self.get(&agent.id).ok_or_else(gone)?;
            let mut row = Agent::clone(&before);
            change(&mut row);
            row.version += 1;
            match self.put(row, Some(before.version)).await {
                Err(RegistryError::Store(StoreError::Conflict)) => self.reload().await?,
                done => return done,
            }
        }
        Err(StoreError::Conflict.into())
    }

    async fn put(&self, row: Agent, expected: Option<u64>) -> Result<Arc<Agent>, RegistryError> {
        let made = match row.keep {
            RowStorage::Stored | RowStorage::Configured => Some(self.store.put_agent(&row, expected).await?),
            RowStorage::Session => self.live.load().generation,
        };
        let row = Arc::new(row);
        let live = self.live.load();
        let is_visible = !live.get(&row.id).is_some_and(|before| looks_the_same(before, &row));
        self.publish(live.with(Arc::clone(&row)), made, is_visible).await?;
        Ok(row)
    }

    /// Shows new rows to everybody. A generation other than the next one means that another process was faster: then
    /// everything is read again.
    async fn publish(
        &self,
        mut live: RegistrySnapshot,
        made: Option<u64>,
        is_visible: bool,
    ) -> Result<(), RegistryError> {
        let expected = live.generation.map(|known| [known, known.wrapping_add(1)]);
        let missed_nothing =
            matches!((expected, made), (Some(expected), Some(made)) if expected.contains(&made));
        live.generation = made.filter(|_| missed_nothing);
        self.show(live, is_visible);
        if !missed_nothing {
            self.reload().await?;
        }
        Ok(())
    }

    async fn reload(&self) -> Result<(), StoreError> {
        let generation = self.store.generation();
        let stored = self.store.agents().await?;
        let live = self.live.load();
        let session = live.all().filter(|row| row.keep == RowStorage::Session).cloned();
        let mut agents: Vec<Arc<Agent>> = session.collect();
        let own = agents.len();
        // A row that has not moved keeps its place in memory, and whoever compares it sees that it is the same.
        for row in stored {
            if agents.iter().take(own).any(|session| is_same_place(session, &row)) {
                continue;
            }
            agents.push(match live.get(&row.id) {
                Some(same) if same.version == row.version => Arc::clone(same),
                Some(older) if older.card.raw == row.card.raw => {
                    Arc::new(Agent { card: Arc::clone(&older.card), ..row })
                }
                _ => Arc::new(row),
            });
        }
        let read = RegistrySnapshot::new(Some(generation), &agents);
        let is_visible = !read.looks_like(&live);
        self.show(read, is_visible);
        self.surprises.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// `is_visible` says whether a list of tools or a permission may depend on what changed.
    fn show(&self, live: RegistrySnapshot, is_visible: bool) {
        self.live.store(Arc::new(live));
        if is_visible {
            let version = self.version.fetch_add(1, Ordering::AcqRel) + 1;
            self.changed.send_replace(version);
        }
    }
}

impl Learned for Registry {
    fn speaks(&self, agent: &Arc<Agent>, dialect: Dialect) {
        // Remembered for this process at once; the next change of the row keeps it for all.
        let live = self.live.load();
        if let Some(row) = live.get(&agent.id) {
            let row = Agent { speaks: Some(dialect), ..Agent::clone(row) };
            self.live.store(Arc::new(live.with(Arc::new(row))));
        }
    }
}
