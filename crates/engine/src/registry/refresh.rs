//! What agents say when they are asked: cards that are fetched again, and probes.

use std::{sync::Arc, time::Duration};

use rialto_model::{
    agent::{Agent, AgentTrust, Health, PendingCard, Probe},
    card::Card,
};

use super::{Registry, RegistryError, hold::card_in_force, intake::clean_card, register::BY_HAND};
use crate::{
    diff::CardDiff,
    peer::{DiscoveryError, Fetched, Place},
};

/// A valid card that takes longer than this makes an agent `degraded`.
const SLOW: Duration = Duration::from_secs(2);

/// Who wants a card fetched again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RefreshTrigger {
    /// A person, who takes what is found.
    Person,
    /// A probe: what it finds at an external agent is held.
    Probe,
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

// === impl Refreshed ===

impl Refreshed {
    /// The agent, as it is now.
    pub const fn agent(&self) -> &Arc<Agent> {
        match self {
            Self::Unchanged(agent) | Self::Changed(agent, _) | Self::Held(agent, _) => agent,
        }
    }
}

// === impl Registry ===

impl Registry {
    /// Fetches an agent's card again.
    pub async fn refresh(&self, agent: &Arc<Agent>) -> Result<Refreshed, RegistryError> {
        let place = self.place_of(agent);
        let (fetched, elapsed) = self.fetch(&place).await;
        match fetched {
            Ok(fetched) => self.take_card(agent, fetched, elapsed, RefreshTrigger::Person).await,
            // Nothing was learned about the agent.
            Err(error @ DiscoveryError::Local { .. }) => Err(error.into()),
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
        if let Err(error @ DiscoveryError::Local { .. }) = fetched {
            // Nothing was learned about the agent.
            return Err(error.into());
        }
        let health = health_of(&fetched, elapsed);
        let error = fetched.as_ref().err().map(ToString::to_string);
        let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        if agent.keep.is_stored() {
            let at = self.clock.now();
            let probe = Probe { agent: agent.id.clone(), at, health, elapsed_ms, error: error.clone() };
            self.store.record_probe(&probe).await?;
        }
        let is_new = matches!(&fetched, Ok(Fetched::Card { card, .. }) if self.is_news(agent, card));
        match fetched {
            Ok(fetched) if is_new => {
                drop(self.take_card(agent, fetched, elapsed, RefreshTrigger::Probe).await?);
            }
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

    /// Fetches a card, and cleans it: nothing that others wrote gets into the registry another way.
    pub(super) async fn discover(&self, place: &Place) -> Result<Fetched, DiscoveryError> {
        let fetched = self.discovery.fetch(place).await?;
        let Fetched::Card { card, path, etag, signature } = fetched else { return Ok(fetched) };
        if place.known.as_ref().is_some_and(|known| known.raw == card.raw) {
            return Ok(Fetched::Card { card, path, etag, signature });
        }
        let card = clean_card(*card);
        for warning in card.warnings() {
            tracing::warn!(agent.url = %place.url, "the card of {} was changed: {warning}", place.url);
        }
        Ok(Fetched::Card { card: Box::new(card), path, etag, signature })
    }

    async fn fetch(&self, place: &Place) -> (Result<Fetched, DiscoveryError>, Duration) {
        let begun = tokio::time::Instant::now();
        let fetched = self.discover(place).await;
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

    async fn take_card(
        &self,
        agent: &Arc<Agent>,
        fetched: Fetched,
        elapsed: Duration,
        asker: RefreshTrigger,
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
        let is_pinned = self.config.pin_cards && is_new && !is_first;
        let may_hold = asker == RefreshTrigger::Probe && is_new && !is_first;
        let in_force = |row: &Agent, card: &Card| match is_pinned {
            true => Some(Arc::clone(&row.card)),
            false if may_hold && row.trust == AgentTrust::External => card_in_force(&row.card, card),
            false => None,
        };
        let row = self
            .update(agent, |row| {
                (row.health, row.last_error) = (health, None);
                (row.last_fetched_at, row.last_seen_at) = (now, Some(now));
                let Some((card, path, etag, signature)) = &new else { return };
                if let Some(in_force) = in_force(row, card) {
                    row.card = in_force;
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
        if row.pending.is_none() {
            return Ok(Refreshed::Changed(row, diff));
        }
        if asker == RefreshTrigger::Probe {
            tracing::warn!(
                agent.id = %row.id,
                "the card of {slug} has changed and the change is held; see it with `rialto agents show {slug}`, take it with \
                 `rialto agents approve {slug}`, or what the card is by then with `rialto agents refresh {slug}`",
                slug = row.slug
            );
        }
        Ok(Refreshed::Held(row, diff))
    }

    /// Whether a probe has found something to write down: a card that is neither in use nor waiting, one that waited and need not any
    /// more, or the one in use while another waits.
    fn is_news(&self, agent: &Agent, card: &Card) -> bool {
        let is_in_use = card.raw == agent.card.raw;
        match &agent.pending {
            None => !is_in_use,
            Some(_) if is_in_use => true,
            Some(pending) => {
                let holds = self.config.pin_cards || agent.trust == AgentTrust::External;
                !holds || pending.card.raw != card.raw
            }
        }
    }
}

fn health_of(fetched: &Result<Fetched, DiscoveryError>, elapsed: Duration) -> Health {
    match fetched {
        Ok(_) if elapsed < SLOW => Health::Healthy,
        Ok(_) | Err(DiscoveryError::Invalid { .. }) => Health::Degraded,
        Err(_) => Health::Unreachable,
    }
}
