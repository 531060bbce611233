//! What is deployed: MCP servers, functions and workflows, as rows like those of agents.

use std::sync::Arc;

use rialto_model::{
    agent::{Agent, AgentTrust, Health, RowStorage},
    backing::{Backing, WorkflowsBacking},
    card::Card,
    ids::{AgentId, Scope},
    name,
};

use super::{Registered, Registry, RegistryError};
use crate::peer::{DiscoveryError, Fetched, Place};

/// Something to be deployed.
#[derive(Clone, Debug)]
pub struct Deployment {
    /// Where it shall belong.
    pub scope: Scope,
    /// What it is.
    pub backing: Backing,
    /// Whether private and loopback addresses may be used to reach it.
    pub allow_private: bool,
    /// Its own wall clock.
    pub timeout_ms: Option<u64>,
    /// How far it is trusted. Without it a known one stays as it is, and a new one is one of ours.
    pub trust: Option<AgentTrust>,
}

// === impl Registry ===

impl Registry {
    /// Everything that is deployed in a project, in the order it came.
    pub fn deployed(&self, scope: &Scope) -> Vec<Arc<Agent>> {
        let live = self.live.load();
        let is_meant = |row: &&Arc<Agent>| row.scope == *scope && !row.backing.is_agent();
        let mut rows: Vec<_> = live.all().filter(is_meant).cloned().collect();
        rows.sort_by(|a, b| a.id.cmp(&b.id));
        rows
    }

    /// Asks something what it can do and writes it down. On any failure nothing is stored.
    pub async fn deploy(&self, wanted: Deployment) -> Result<Registered, RegistryError> {
        let place = Place {
            scope: wanted.scope.clone(),
            backing: wanted.backing.clone(),
            url: url_of(&wanted),
            card_path: None,
            credential: None,
            allow_private: wanted.allow_private,
            etag: None,
            known: None,
            timeout: self.config.start_timeout(),
        };
        if self.row_at(&wanted).is_some_and(|row| row.keep == RowStorage::Configured) {
            return Err(RegistryError::Configured(place.url));
        }
        let card = match self.discover(&place).await? {
            Fetched::Card { card, .. } => Arc::from(card),
            Fetched::Unchanged => {
                let reason = "it says that nothing has changed though we know nothing yet".to_owned();
                return Err(DiscoveryError::Invalid { url: place.url, reason }.into());
            }
        };
        let _changing = self.changing.lock().await;
        if !self.is_current() {
            self.reload().await?;
        }
        let known = self.row_at(&wanted);
        if known.as_ref().is_some_and(|row| row.keep == RowStorage::Configured) {
            return Err(RegistryError::Configured(place.url));
        }
        let row = Agent {
            health: Health::Healthy,
            ..self.row_of(&wanted, RowStorage::Stored, card, known.as_deref())
        };
        let agent = self.put(row, known.as_ref().map(|known| known.version)).await?;
        Ok(Registered { created: known.is_none(), agent })
    }

    /// The row of a project's workflows, with these as its skills. Nothing is written when it has them already.
    pub async fn publish_flows(
        &self,
        scope: &Scope,
        flows: WorkflowsBacking,
    ) -> Result<Arc<Agent>, RegistryError> {
        let backing = Backing::Flow(Arc::new(flows));
        let wanted =
            Deployment { scope: scope.clone(), backing, allow_private: false, timeout_ms: None, trust: None };
        match self.row_at(&wanted).filter(|row| row.backing == wanted.backing) {
            Some(row) => Ok(row),
            None => Ok(self.deploy(wanted).await?.agent),
        }
    }

    /// The row of a project's workflows; one without any skills, where there was none.
    pub async fn flows(&self, scope: &Scope) -> Result<Arc<Agent>, RegistryError> {
        let known = self.find_flows(scope);
        match known {
            Some(row) => Ok(row),
            None => self.publish_flows(scope, WorkflowsBacking::default()).await,
        }
    }

    /// The row of a project's workflows, if there is one.
    pub fn find_flows(&self, scope: &Scope) -> Option<Arc<Agent>> {
        let live = self.live.load();
        live.all().find(|row| row.scope == *scope && matches!(row.backing, Backing::Flow(_))).cloned()
    }

    /// Makes the configured rows what the configuration says, without asking anybody. With `is_whole`, those that it does
    /// not name are removed. Answers the rows that somebody has yet to be asked about.
    pub async fn configure(
        &self,
        wanted: &[Deployment],
        is_whole: bool,
    ) -> Result<Vec<Arc<Agent>>, RegistryError> {
        let _changing = self.changing.lock().await;
        if !self.is_current() {
            self.reload().await?;
        }
        let mut unasked = Vec::new();
        for wanted in wanted {
            unasked.extend(self.configure_one(wanted).await?);
        }
        if is_whole {
            let is_named =
                |row: &Agent| wanted.iter().any(|it| it.scope == row.scope && url_of(it) == row.url);
            let rows =
                self.all().into_iter().filter(|row| row.keep == RowStorage::Configured && !is_named(row));
            for row in rows {
                tracing::info!("{} is no longer configured and was removed", row.url);
                self.forget(&row).await?;
            }
        }
        Ok(unasked)
    }

    async fn configure_one(&self, wanted: &Deployment) -> Result<Option<Arc<Agent>>, RegistryError> {
        let known = self.row_at(wanted);
        if let Some(known) = known.as_ref().filter(|known| is_as(known, wanted)) {
            let is_unasked = known.card.skills.is_empty();
            return Ok(is_unasked.then(|| Arc::clone(known)));
        }
        let first = wanted.backing.first_card().map(Arc::new);
        let card = match (&wanted.backing, &known) {
            // What it could do before is the best guess until it is asked again.
            (Backing::Mcp(_), Some(known)) => Arc::clone(&known.card),
            _ => first.ok_or_else(|| RegistryError::NotFound(url_of(wanted)))?,
        };
        let is_known = wanted.backing.own_card().is_some();
        let health = if is_known { Health::Healthy } else { Health::Unknown };
        let row = Agent { health, ..self.row_of(wanted, RowStorage::Configured, card, known.as_deref()) };
        let row = self.put(row, known.map(|known| known.version)).await?;
        Ok((!is_known).then_some(row))
    }

    fn row_at(&self, wanted: &Deployment) -> Option<Arc<Agent>> {
        let (live, url) = (self.live.load(), url_of(wanted));
        live.all().find(|row| row.scope == wanted.scope && row.url == url).cloned()
    }

    fn row_of(&self, wanted: &Deployment, keep: RowStorage, card: Arc<Card>, known: Option<&Agent>) -> Agent {
        let now = self.clock.now();
        let live = self.live.load();
        let is_taken = |slug: &str| live.all().any(|row| row.scope == wanted.scope && row.slug == slug);
        let fresh_slug = || name::unused(wanted.backing.name().unwrap_or_default(), is_taken);
        let id = known.map_or_else(AgentId::fresh, |known| known.id.clone());
        let slug = known.map_or_else(fresh_slug, |known| known.slug.clone());
        Agent {
            scope: wanted.scope.clone(),
            trust: wanted.trust.unwrap_or_else(|| known.map_or(AgentTrust::System, |known| known.trust)),
            backing: wanted.backing.clone(),
            keep,
            allow_private: wanted.allow_private,
            timeout_ms: wanted.timeout_ms,
            registered_at: known.map_or(now, |known| known.registered_at),
            version: known.map_or(1, |known| known.version + 1),
            ..Agent::new(id, slug, url_of(wanted), card, now)
        }
    }
}

fn url_of(wanted: &Deployment) -> String {
    wanted.backing.url().unwrap_or_default()
}

fn is_as(row: &Agent, wanted: &Deployment) -> bool {
    row.keep == RowStorage::Configured
        && row.backing == wanted.backing
        && row.allow_private == wanted.allow_private
        && row.timeout_ms == wanted.timeout_ms
        && wanted.trust.is_none_or(|trust| row.trust == trust)
}
