//! How an agent comes into the registry: by its address, or with a card that somebody has at hand.

use std::sync::Arc;

use futures::{StreamExt, stream::FuturesOrdered};
use rialto_model::{
    agent::{Agent, AgentTrust, Health, RowStorage, SignatureStatus},
    backing::Backing,
    card::Card,
    credential::Credential,
    ids::{AgentId, Scope},
    name,
};

use super::{Registry, RegistryError, intake::clean_card};
use crate::{
    address,
    peer::{DiscoveryError, Fetched, Place},
};

/// How the path of a card begins that was not fetched from its agent.
pub(super) const BY_HAND: &str = "by hand: ";

/// An agent somebody wants registered.
#[derive(Clone, Debug)]
pub struct Registration {
    /// Where it shall belong.
    pub scope: Scope,
    /// Its base URL, in any spelling.
    pub url: String,
    /// How far it is trusted; none leaves a known agent's trust as it is, and makes a new one external.
    pub trust: Option<AgentTrust>,
    /// Where its row is kept.
    pub keep: RowStorage,
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

// === impl Registration ===

impl Registration {
    /// A stored, external agent in the default project.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            scope: Scope::default(),
            url: url.into(),
            trust: None,
            keep: RowStorage::Stored,
            credential: None,
            allow_private: false,
            card_path: None,
            timeout_ms: None,
        }
    }
}

// === impl Registry ===

impl Registry {
    /// Fetches an agent's card and writes the agent down. On any failure nothing is stored.
    pub async fn register(&self, wanted: Registration) -> Result<Registered, RegistryError> {
        let (url, fetched) = self.look_up(&wanted).await?;
        self.take_in(url, &wanted, fetched).await
    }

    /// Registers several agents at once. Cards are fetched concurrently and registered in the order given, whichever agent
    /// answers first: of agents with equal names it is always the same one whose slug has a suffix.
    pub async fn register_all(&self, wanted: Vec<Registration>) -> Vec<Result<Registered, RegistryError>> {
        let fetches = wanted.into_iter().map(|wanted| async move {
            let fetched = self.look_up(&wanted).await;
            (wanted, fetched)
        });
        let mut fetches: FuturesOrdered<_> = fetches.collect();
        let mut registered = Vec::with_capacity(fetches.len());
        while let Some((wanted, fetched)) = fetches.next().await {
            registered.push(match fetched {
                Ok((url, fetched)) => self.take_in(url, &wanted, fetched).await,
                Err(error) => Err(error),
            });
        }
        registered
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
        Ok((url, self.discover(&place).await?))
    }

    /// Writes an agent down whose card somebody has at hand. The card says where the agent is; nobody is asked for another one.
    pub async fn register_card(&self, wanted: Registration, card: Card) -> Result<Registered, RegistryError> {
        let place = card.interfaces.first().map_or(wanted.url.as_str(), |interface| interface.url.as_str());
        let url = address::normalize(place)?;
        let signature = if card.signed { SignatureStatus::Unchecked } else { SignatureStatus::None };
        let path = format!("{BY_HAND}{}", wanted.url);
        let card = Box::new(clean_card(card));
        let fetched = Fetched::Card { card, path, etag: None, signature };
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
        let slug = name::unused(&name::agent_slug(&card.name), is_taken);
        let row = Agent::new(AgentId::fresh(), slug, url.clone(), Arc::from(card), now);
        Ok(Agent {
            scope: wanted.scope.clone(),
            trust: wanted.trust.unwrap_or_default(),
            signature,
            keep: wanted.keep,
            credential: wanted.credential.clone(),
            allow_private: wanted.allow_private,
            card_path: Some(path),
            etag,
            timeout_ms: wanted.timeout_ms,
            last_seen_at: Some(now),
            ..row
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
}
