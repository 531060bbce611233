//! The agents we know: registered, refreshed, trusted, removed.
//!
//! What is live in memory is a copy of the store's rows, and never older than the store: before each call the
//! store's generation is compared, and any process that changed a row has moved it.

mod deploy;
mod live;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rialto_model::{
    agent::{Agent, Health, Keep, OldCard, PendingCard, Probe, Signature, Trust},
    card::{Card, Dialect},
    clock::Clock,
    credential::Credential,
    deployed::Backing,
    failure::{Failure, Kind},
    ids::{AgentId, Scope},
    json::Json,
    name,
    store::{Store, StoreError},
};
use tokio::sync::watch;

pub use self::deploy::Deployment;
use self::live::{Live, is_same_place, looks_the_same};
use crate::{
    address::{self, AddressError},
    config::Config,
    diff::CardDiff,
    directory::Directory,
    peer::{Discovery, DiscoveryError, Fetched, Learned, Place},
};

/// A row that others change too is tried again this often.
const TRIES: usize = 5;

/// How the path of a card begins that was not fetched from its agent.
const BY_HAND: &str = "by hand: ";

/// A valid card that takes longer than this makes an agent `degraded`.
pub(crate) const SLOW: Duration = Duration::from_secs(2);

/// The agents we know.
pub struct Registry {
    store: Arc<dyn Store>,
    discovery: Arc<dyn Discovery>,
    clock: Arc<dyn Clock>,
    config: Config,
    live: ArcSwap<Live>,
    directories: Mutex<Vec<(Scope, Arc<Directory>)>>,
    /// Serialises changes, so that a slug is given out once and no copy of the rows is lost.
    changing: tokio::sync::Mutex<()>,
    version: AtomicU64,
    /// A version, doubled, and one more if any skill of it repeats arguments elsewhere.
    repeats: AtomicU64,
    surprises: AtomicU64,
    changed: watch::Sender<u64>,
}

/// An agent somebody wants registered.
#[derive(Clone, Debug)]
pub struct Registration {
    /// Where it shall belong.
    pub scope: Scope,
    /// Its base URL, in any spelling.
    pub url: String,
    /// How far it is trusted; none leaves a known agent's trust as it is, and makes a new one external.
    pub trust: Option<Trust>,
    /// Where its row is kept.
    pub keep: Keep,
    /// Where its token comes from.
    pub credential: Option<Credential>,
    /// Whether private and loopback addresses may be used to reach it.
    pub allow_private: bool,
    /// Where below the base URL its card is, when not at a well-known place.
    pub card_path: Option<String>,
    /// Its own wall clock.
    pub timeout_ms: Option<u64>,
}

/// What became of a registration.
#[derive(Clone, Debug)]
pub struct Registered {
    /// The row.
    pub agent: Arc<Agent>,
    /// Whether it is new.
    pub created: bool,
}

/// What became of a refresh.
#[derive(Clone, Debug)]
pub enum Refreshed {
    /// The card is as it was.
    Unchanged(Arc<Agent>),
    /// There is a new card, and it is in use.
    Changed(Arc<Agent>, CardDiff),
    /// There is a new card, and it waits for approval.
    Held(Arc<Agent>, CardDiff),
}

/// Why the registry did not do as it was told.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// That is not an agent's address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// Its card could not be had.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    /// There is no such agent.
    #[error("no agent is registered as \"{0}\"; `rialto agents list` shows those that are")]
    NotFound(String),
    /// There is nothing to approve.
    #[error("{0} has no changed card that waits for approval")]
    NothingPending(String),
    /// Only the configuration changes it.
    #[error(
        "{0} stands in the configuration; change or remove it there (`[[mcp_servers]]`, `[[functions]]`)"
    )]
    Configured(String),
    /// It could not be written down.
    #[error("the registry could not be read or written")]
    Store(#[from] StoreError),
}

// === impl Registration ===

impl Registration {
    /// A stored, external agent in the default project.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            scope: Scope::default(),
            url: url.into(),
            trust: None,
            keep: Keep::Stored,
            credential: None,
            allow_private: false,
            card_path: None,
            timeout_ms: None,
        }
    }
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
            store,
            discovery,
            clock,
            config,
            live: ArcSwap::from_pointee(Live::default()),
            directories: Mutex::new(Vec::new()),
            changing: tokio::sync::Mutex::new(()),
            version: AtomicU64::new(1),
            repeats: AtomicU64::new(0),
            surprises: AtomicU64::new(0),
            changed: watch::Sender::new(1),
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

    /// Whether the schema of any skill has this word in it; looked at once per version, so that whoever asks with every call
    /// pays nothing. It must always be the same word.
    pub fn any_schema_has(&self, word: &str) -> bool {
        let version = self.version.load(Ordering::Acquire);
        let known = self.repeats.load(Ordering::Acquire);
        if known / 2 == version {
            return known % 2 == 1;
        }
        let has = |schema: &Option<Json>| schema.as_ref().is_some_and(|schema| schema.get().contains(word));
        let live = self.live.load();
        let skills = live.all().flat_map(|agent| &agent.card.skills);
        let any = skills.map(|skill| &skill.input_schema).any(has);
        self.repeats.store(version * 2 + u64::from(any), Ordering::Release);
        any
    }

    /// Hears each time something visible has changed.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Fetches an agent's card and writes the agent down. On any failure nothing is stored.
    pub async fn register(&self, wanted: Registration) -> Result<Registered, RegistryError> {
        let (url, fetched) = self.look_up(&wanted).await?;
        self.take_in(url, &wanted, fetched).await
    }

    /// Fetches an agent's card and tells what its row would be. Nothing is stored.
    pub async fn preview(&self, wanted: Registration) -> Result<Agent, RegistryError> {
        let (url, fetched) = self.look_up(&wanted).await?;
        self.created(url, &wanted, fetched)
    }

    async fn look_up(&self, wanted: &Registration) -> Result<(String, Fetched), RegistryError> {
        let url = address::normalize(&wanted.url)?;
        let place = Place {
            scope: wanted.scope.clone(),
            backing: Backing::A2a,
            url: url.clone(),
            card_path: wanted.card_path.clone(),
            credential: wanted.credential.clone(),
            allow_private: wanted.allow_private,
            etag: None,
            known: None,
            timeout: self.config.discovery_timeout(),
        };
        Ok((url, self.discovery.fetch(&place).await?))
    }

    /// Writes an agent down whose card somebody has at hand. The card says where the agent is; nobody is asked for another one.
    pub async fn register_card(&self, wanted: Registration, card: Card) -> Result<Registered, RegistryError> {
        let place = card.interfaces.first().map_or(wanted.url.as_str(), |interface| interface.url.as_str());
        let url = address::normalize(place)?;
        let signature = if card.signed { Signature::Unchecked } else { Signature::None };
        let path = format!("{BY_HAND}{}", wanted.url);
        let fetched = Fetched::Card { card: Box::new(card), path, etag: None, signature };
        self.take_in(url, &wanted, fetched).await
    }

    async fn take_in(
        &self,
        url: String,
        wanted: &Registration,
        fetched: Fetched,
    ) -> Result<Registered, RegistryError> {
        let _changing = self.changing.lock().await;
        if self.live.load().generation != Some(self.store.generation()) {
            self.reload().await?;
        }
        let known = self.live.load().all().find(|a| a.scope == wanted.scope && a.url == url).cloned();
        let agent = match (&known, wanted.keep) {
            (Some(known), keep) if known.keep == keep => self.updated(known, wanted, fetched),
            _ => self.created(url, wanted, fetched)?,
        };
        let expected = known.as_ref().filter(|known| known.id == agent.id).map(|known| known.version);
        let agent = self.put(agent, expected).await?;
        Ok(Registered { created: expected.is_none(), agent })
    }

    /// Fetches an agent's card again.
    pub async fn refresh(&self, agent: &Arc<Agent>) -> Result<Refreshed, RegistryError> {
        let place = self.place_of(agent);
        let (fetched, elapsed) = self.fetch(&place).await;
        match fetched {
            Ok(fetched) => self.take_card(agent, fetched, elapsed).await,
            Err(error) => {
                let message = error.to_string();
                self.update(agent, |row| {
                    row.health = Health::Unreachable;
                    row.last_error = Some(message.clone());
                })
                .await?;
                Err(error.into())
            }
        }
    }

    /// Asks an agent how it is, and writes the answer down.
    pub async fn probe(&self, agent: &Arc<Agent>) -> Result<Health, RegistryError> {
        let is_by_hand = agent.card_path.as_ref().is_some_and(|path| path.starts_with(BY_HAND));
        if agent.backing.own_card().is_some() || is_by_hand {
            // Nobody can be asked how it is without calling it.
            return Ok(agent.health);
        }
        let place = self.place_of(agent);
        let (fetched, elapsed) = self.fetch(&place).await;
        let health = health_of(&fetched, elapsed);
        let error = fetched.as_ref().err().map(ToString::to_string);
        let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        if agent.keep.is_stored() {
            let at = self.clock.now();
            let probe = Probe { agent: agent.id.clone(), at, health, elapsed_ms, error: error.clone() };
            self.store.record_probe(&probe).await?;
        }
        let is_new = matches!(&fetched, Ok(Fetched::Card { card, .. }) if is_news(agent, card));
        match fetched {
            Ok(fetched) if is_new => drop(self.take_card(agent, fetched, elapsed).await?),
            // Nothing to write down beside the probe: most probes end here.
            _ if agent.health == health && agent.last_error == error => {}
            _ => {
                self.update(agent, |row| {
                    row.health = health;
                    row.last_error.clone_from(&error);
                })
                .await?;
            }
        }
        Ok(health)
    }

    /// Changes how far an agent is trusted. The next call sees it.
    pub async fn set_trust(&self, agent: &Arc<Agent>, trust: Trust) -> Result<Arc<Agent>, RegistryError> {
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
        if agent.keep == Keep::Configured {
            return Err(RegistryError::Configured(agent.slug.clone()));
        }
        let _changing = self.changing.lock().await;
        self.forget(agent).await
    }

    async fn forget(&self, agent: &Agent) -> Result<(), RegistryError> {
        let made = match agent.keep {
            Keep::Stored | Keep::Configured => self.store.remove_agent(&agent.id).await?,
            // A stored row of the same address may come to light again: read everything.
            Keep::Session => None,
        };
        self.publish(self.live.load().without(&agent.id), made, true).await
    }

    /// The cards an agent had before, newest first.
    pub async fn history(&self, agent: &Agent) -> Result<Vec<OldCard>, RegistryError> {
        Ok(self.store.card_history(&agent.id).await?)
    }

    /// An agent's latest probes, newest first.
    pub async fn probes(&self, agent: &Agent, limit: usize) -> Result<Vec<Probe>, RegistryError> {
        Ok(self.store.probes(&agent.id, limit).await?)
    }

    async fn fetch(&self, place: &Place) -> (Result<Fetched, DiscoveryError>, Duration) {
        let begun = tokio::time::Instant::now();
        let fetched = self.discovery.fetch(place).await;
        (fetched, begun.elapsed())
    }

    fn place_of(&self, agent: &Agent) -> Place {
        // While a changed card waits, ask for the whole card: the validator belongs to the one in use.
        let etag = if agent.pending.is_none() { agent.etag.clone() } else { None };
        Place {
            scope: agent.scope.clone(),
            backing: agent.backing.clone(),
            url: agent.url.clone(),
            card_path: agent.card_path.clone(),
            credential: agent.credential.clone(),
            allow_private: agent.allow_private,
            etag,
            known: agent.pending.is_none().then(|| Arc::clone(&agent.card)),
            timeout: self.config.discovery_timeout(),
        }
    }

    fn created(&self, url: String, wanted: &Registration, fetched: Fetched) -> Result<Agent, RegistryError> {
        let Fetched::Card { card, path, etag, signature } = fetched else {
            let reason = "the server says \"not modified\" though we have no card yet".to_owned();
            return Err(DiscoveryError::Invalid { url, reason }.into());
        };
        let now = self.clock.now();
        let live = self.live.load();
        // A session's own row hides the stored one of the same address, so it may have that row's name.
        let is_taken =
            |slug: &str| live.all().any(|a| a.scope == wanted.scope && a.slug == slug && a.url != url);
        Ok(Agent {
            id: AgentId::fresh(),
            scope: wanted.scope.clone(),
            slug: name::unused(&name::agent_slug(&card.name), is_taken),
            url,
            card: Arc::from(card),
            pending: None,
            trust: wanted.trust.unwrap_or_default(),
            health: Health::Unknown,
            signature,
            backing: Backing::A2a,
            keep: wanted.keep,
            credential: wanted.credential.clone(),
            allow_private: wanted.allow_private,
            card_path: Some(path),
            etag,
            speaks: None,
            timeout_ms: wanted.timeout_ms,
            registered_at: now,
            last_fetched_at: now,
            last_seen_at: Some(now),
            last_error: None,
            version: 1,
        })
    }

    fn updated(&self, known: &Agent, wanted: &Registration, fetched: Fetched) -> Agent {
        let mut row = known.clone();
        if let Fetched::Card { card, path, etag, signature } = fetched {
            // Registering again is a person's decision: it takes the new card even where cards are pinned.
            if card.raw != row.card.raw {
                row.card = Arc::from(card);
                row.speaks = None;
            }
            row.pending = None;
            (row.card_path, row.etag, row.signature) = (Some(path), etag, signature);
        }
        row.trust = wanted.trust.unwrap_or(row.trust);
        row.allow_private = wanted.allow_private;
        row.credential = wanted.credential.clone().or(row.credential);
        row.timeout_ms = wanted.timeout_ms.or(row.timeout_ms);
        let now = self.clock.now();
        (row.last_fetched_at, row.last_seen_at, row.last_error) = (now, Some(now), None);
        if row.health == Health::Unreachable {
            row.health = Health::Unknown;
        }
        row.version += 1;
        row
    }

    async fn take_card(
        &self,
        agent: &Arc<Agent>,
        fetched: Fetched,
        elapsed: Duration,
    ) -> Result<Refreshed, RegistryError> {
        let health = if elapsed < SLOW { Health::Healthy } else { Health::Degraded };
        let now = self.clock.now();
        let new = match fetched {
            Fetched::Card { card, path, etag, signature } => {
                Some((Arc::<Card>::from(card), path, etag, signature))
            }
            Fetched::Unchanged => None,
        };
        let is_new = new.as_ref().is_some_and(|(card, ..)| card.raw != agent.card.raw);
        // What is deployed begins without a card; there is nothing to compare the first one with.
        let is_first = !agent.backing.is_agent() && agent.card.skills.is_empty();
        let pinned = self.config.pin_cards && is_new && !is_first;
        let row = self
            .update(agent, |row| {
                (row.health, row.last_error) = (health, None);
                (row.last_fetched_at, row.last_seen_at) = (now, Some(now));
                let Some((card, path, etag, signature)) = &new else { return };
                if pinned {
                    let seen_at = row.pending.as_ref().map_or(now, |pending| pending.seen_at);
                    row.pending = Some(PendingCard { card: Arc::clone(card), seen_at });
                    return;
                }
                row.pending = None;
                (row.etag, row.signature, row.card_path) = (etag.clone(), *signature, Some(path.clone()));
                if is_new {
                    row.card = Arc::clone(card);
                    row.speaks = None;
                }
            })
            .await?;
        let Some((card, ..)) = new.filter(|_| is_new) else { return Ok(Refreshed::Unchanged(row)) };
        let diff = CardDiff::between(&agent.card, &card);
        Ok(if pinned { Refreshed::Held(row, diff) } else { Refreshed::Changed(row, diff) })
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
            Keep::Stored | Keep::Configured => Some(self.store.put_agent(&row, expected).await?),
            Keep::Session => self.live.load().generation,
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
        mut live: Live,
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
        let session = live.all().filter(|row| row.keep == Keep::Session).cloned();
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
        let read = Live::new(Some(generation), &agents);
        let is_visible = !read.looks_like(&live);
        self.show(read, is_visible);
        self.surprises.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// `is_visible` says whether a list of tools or a permission may depend on what changed.
    fn show(&self, live: Live, is_visible: bool) {
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

// === impl RegistryError ===

impl RegistryError {
    /// Whose fault it is.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Address(_) => Kind::Invalid,
            Self::Discovery(DiscoveryError::Status { .. } | DiscoveryError::Unreachable { .. }) => {
                Kind::PeerUnreachable
            }
            Self::Discovery(DiscoveryError::Invalid { .. }) => Kind::PeerGarbled,
            Self::Discovery(DiscoveryError::Refused(_)) => Kind::Denied,
            Self::NotFound(_) => Kind::NotFound,
            Self::NothingPending(_) | Self::Configured(_) => Kind::Conflict,
            Self::Store(_) => Kind::Internal,
        }
    }
}

impl From<RegistryError> for Failure {
    fn from(error: RegistryError) -> Self {
        Self::new(error.kind(), error.to_string())
    }
}

/// Whether a fetched card is neither the one in use nor the one that already waits.
fn is_news(agent: &Agent, card: &Card) -> bool {
    card.raw != agent.card.raw && agent.pending.as_ref().is_none_or(|pending| pending.card.raw != card.raw)
}

fn health_of(fetched: &Result<Fetched, DiscoveryError>, elapsed: Duration) -> Health {
    match fetched {
        Ok(_) if elapsed < SLOW => Health::Healthy,
        Ok(_) | Err(DiscoveryError::Invalid { .. }) => Health::Degraded,
        Err(_) => Health::Unreachable,
    }
}
