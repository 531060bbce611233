//! The registry: agents, the cards they had, and their probes.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use rialto_model::{
    agent::{Agent, CardRevision, Health, PendingCard, Probe, RowStorage},
    card::Card,
    credential::{Credential, SecretSource},
    ids::AgentId,
    json::Json,
    store::{AgentStore, Store, StoreError},
};

use super::{
    PostgresStore, begin,
    column::{Cells, json, limit, maybe_nanoseconds, nanoseconds, signed, word},
    connection::GenericClient,
    error::PostgresError,
    sql::{self, Value},
};
use crate::open::CardParser;

/// Maximum number of probes kept per agent, the newest.
const MAX_PROBES: i64 = 200;

/// Maximum number of replaced cards kept per agent, the newest: a remote that rewrites its card each time must not fill
/// the disk.
const MAX_OLD_CARDS: i64 = 100;

const INSERT: &str = "
    INSERT INTO agent_cards (id, org, project, url, slug, card, pending_card, pending_seen_at, trust_level,
        health_status, signature, credential, allow_private, card_path, etag, speaks, timeout_ms, registered_at,
        last_fetched_at, last_seen_at, last_error, version, backing, configured)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22,
        $23, $24)";

const REPLACE: &str = "
    UPDATE agent_cards SET org = $2, project = $3, url = $4, slug = $5, card = $6, pending_card = $7,
        pending_seen_at = $8, trust_level = $9, health_status = $10, signature = $11, credential = $12,
        allow_private = $13, card_path = $14, etag = $15, speaks = $16, timeout_ms = $17, registered_at = $18,
        last_fetched_at = $19, last_seen_at = $20, last_error = $21, version = $22, backing = $23, configured = $24
    WHERE id = $1";

#[async_trait]
impl AgentStore for PostgresStore {
    async fn agents(&self) -> Result<Vec<Agent>, StoreError> {
        Ok(all(&self.client().await?, self.parse).await?)
    }

    async fn put_agent(&self, agent: &Agent, expected: Option<u64>) -> Result<u64, StoreError> {
        if agent.keep == RowStorage::Session {
            tracing::debug!(agent.id = %agent.id, "agent {} belongs to this process and is not stored", agent.id);
            return Ok(self.generation());
        }
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        put(&transaction, agent, expected).await?;
        let made = self.commit_change(transaction).await?;
        self.spread(&client, Some(made)).await;
        Ok(made)
    }

    async fn remove_agent(&self, id: &AgentId) -> Result<Option<u64>, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let was_there = remove(&transaction, id).await?;
        let made = self.commit(transaction, was_there).await?;
        self.spread(&client, made).await;
        Ok(made)
    }

    async fn card_history(&self, id: &AgentId) -> Result<Vec<CardRevision>, StoreError> {
        Ok(history(&self.client().await?, id).await?)
    }

    async fn record_probe(&self, probe: &Probe) -> Result<(), StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        add_probe(&transaction, probe).await?;
        self.commit(transaction, false).await.map(drop)
    }

    async fn probes(&self, id: &AgentId, limit: usize) -> Result<Vec<Probe>, StoreError> {
        Ok(probes(&self.client().await?, id, limit).await?)
    }
}

/// Adds a row, or replaces the one with the expected version.
pub(super) async fn put(
    client: &impl GenericClient,
    agent: &Agent,
    expected: Option<u64>,
) -> Result<(), PostgresError> {
    let Some(expected) = expected else { return write(client, INSERT, agent).await };
    let select = "SELECT card FROM agent_cards WHERE id = $1 AND version = $2 FOR UPDATE";
    let found = sql::maybe_row(client, select, &[&agent.id.as_str(), &signed(expected)]).await?;
    let found = found.ok_or(StoreError::Conflict)?;
    write(client, REPLACE, agent).await?;
    let old = Cells(&found).text("card")?;
    if old != agent.card.raw.get() {
        insert_old_card(client, &agent.id, agent.last_fetched_at, &old).await?;
    }
    Ok(())
}

/// Removes a row, with all that belongs to it. Returns whether it was there.
pub(super) async fn remove(client: &impl GenericClient, id: &AgentId) -> Result<bool, PostgresError> {
    sql::execute(client, "DELETE FROM arms WHERE agent = $1", &[&id.as_str()]).await?;
    Ok(sql::execute(client, "DELETE FROM agent_cards WHERE id = $1", &[&id.as_str()]).await? > 0)
}

async fn write(client: &impl GenericClient, statement: &str, agent: &Agent) -> Result<(), PostgresError> {
    let (trust, health) = (word(&agent.trust)?, word(&agent.health)?);
    let (signature, credential) = (word(&agent.signature)?, credential_text(agent.credential.as_ref())?);
    let speaks = agent.speaks.map(|dialect| word(&dialect)).transpose()?;
    let backing = if agent.backing.is_agent() { None } else { Some(json(&agent.backing)?) };
    let pending = agent.pending.as_ref();
    let pending_card = pending.map(|pending| pending.card.raw.get());
    let pending_seen_at = maybe_nanoseconds(pending.map(|pending| pending.seen_at))?;
    let timeout_ms = agent.timeout_ms.map(signed);
    let (registered_at, last_fetched_at) =
        (nanoseconds(agent.registered_at)?, nanoseconds(agent.last_fetched_at)?);
    let last_seen_at = maybe_nanoseconds(agent.last_seen_at)?;
    let values: [Value<'_>; 24] = [
        &agent.id.as_str(),
        &agent.scope.org.as_str(),
        &agent.scope.project.as_str(),
        &agent.url,
        &agent.slug,
        &agent.card.raw.get(),
        &pending_card,
        &pending_seen_at,
        &trust,
        &health,
        &signature,
        &credential,
        &agent.allow_private,
        &agent.card_path,
        &agent.etag,
        &speaks,
        &timeout_ms,
        &registered_at,
        &last_fetched_at,
        &last_seen_at,
        &agent.last_error,
        &signed(agent.version),
        &backing,
        &(agent.keep == RowStorage::Configured),
    ];
    sql::execute(client, statement, &values).await.map(drop).map_err(|failure| {
        failure
            .or_taken("agent_url", || format!("the URL {}", agent.url))
            .or_taken("agent_slug", || format!("the name {}", agent.slug))
            .or_taken("agent_id", || format!("the id {}", agent.id))
    })
}

/// Source of the credential as JSON. A secret that was handed over is never stored.
fn credential_text(credential: Option<&Credential>) -> Result<Option<String>, PostgresError> {
    match credential {
        None | Some(Credential { source: SecretSource::Held(_), .. }) => Ok(None),
        Some(reference) => json(reference).map(Some),
    }
}

async fn insert_old_card(
    client: &impl GenericClient,
    id: &AgentId,
    at: Timestamp,
    card: &str,
) -> Result<(), PostgresError> {
    let insert = "INSERT INTO card_history (agent, replaced_at, card) VALUES ($1, $2, $3)";
    sql::execute(client, insert, &[&id.as_str(), &nanoseconds(at)?, &card]).await?;
    let trim = "DELETE FROM card_history WHERE agent = $1 AND row <=
        (SELECT row FROM card_history WHERE agent = $1 ORDER BY row DESC LIMIT 1 OFFSET $2)";
    sql::execute(client, trim, &[&id.as_str(), &MAX_OLD_CARDS]).await.map(drop)
}

/// Writes down a probe. One of an agent that has been removed meanwhile is dropped.
pub(super) async fn add_probe(client: &impl GenericClient, probe: &Probe) -> Result<(), PostgresError> {
    let (agent, at) = (probe.agent.as_str(), nanoseconds(probe.at)?);
    let insert = "INSERT INTO health_probes (agent, at, health, elapsed_ms, error)
        SELECT id, $2, $3, $4, $5 FROM agent_cards WHERE id = $1 FOR KEY SHARE";
    let values: [Value<'_>; 5] =
        [&agent, &at, &word(&probe.health)?, &signed(probe.elapsed_ms), &probe.error];
    if sql::execute(client, insert, &values).await? == 0 {
        return Ok(());
    }
    if matches!(probe.health, Health::Healthy | Health::Degraded) {
        let update = "UPDATE agent_cards SET last_seen_at = $2
            WHERE id = $1 AND coalesce(last_seen_at < $2, TRUE)";
        sql::execute(client, update, &[&agent, &at]).await?;
    }
    let trim = "DELETE FROM health_probes WHERE agent = $1 AND row <=
        (SELECT row FROM health_probes WHERE agent = $1 ORDER BY row DESC LIMIT 1 OFFSET $2)";
    sql::execute(client, trim, &[&agent, &MAX_PROBES]).await.map(drop)
}

/// All agents. A row that cannot be read is left out and reported, so that it does not take the others with it.
pub(super) async fn all(client: &impl GenericClient, parse: CardParser) -> Result<Vec<Agent>, PostgresError> {
    let rows = sql::rows(client, "SELECT * FROM agent_cards ORDER BY org, project, id", &[]).await?;
    let mut agents = Vec::with_capacity(rows.len());
    for row in &rows {
        let id = AgentId::from(Cells(row).text("id")?);
        match agent(Cells(row), id.clone(), parse) {
            Ok(agent) => agents.push(agent),
            Err(failure) => {
                let trouble = StoreError::from(failure);
                tracing::error!(agent.id = %id, %trouble, "agent {id} is left out: its row cannot be read");
            }
        }
    }
    Ok(agents)
}

fn agent(row: Cells<'_>, id: AgentId, parse: CardParser) -> Result<Agent, PostgresError> {
    let read = |text: String| -> Result<Arc<Card>, PostgresError> {
        parse(&text).map(Arc::new).map_err(PostgresError::corrupt)
    };
    let pending = row.get::<Option<String>>("pending_card")?.map(read).transpose()?;
    let seen_at = row.maybe_at("pending_seen_at")?;
    Ok(Agent {
        id,
        scope: row.scope()?,
        url: row.text("url")?,
        slug: row.text("slug")?,
        card: read(row.text("card")?)?,
        pending: pending.zip(seen_at).map(|(card, seen_at)| PendingCard { card, seen_at }),
        trust: row.word("trust_level")?,
        health: row.word("health_status")?,
        signature: row.word("signature")?,
        backing: row.maybe_json("backing")?.unwrap_or_default(),
        keep: if row.get("configured")? { RowStorage::Configured } else { RowStorage::Stored },
        credential: row.maybe_json("credential")?,
        allow_private: row.get("allow_private")?,
        card_path: row.get("card_path")?,
        etag: row.get("etag")?,
        speaks: row.maybe_word("speaks")?,
        timeout_ms: row.maybe_number("timeout_ms")?,
        registered_at: row.at("registered_at")?,
        last_fetched_at: row.at("last_fetched_at")?,
        last_seen_at: row.maybe_at("last_seen_at")?,
        last_error: row.get("last_error")?,
        version: row.number("version")?,
    })
}

/// The cards an agent had, newest first.
pub(super) async fn history(
    client: &impl GenericClient,
    id: &AgentId,
) -> Result<Vec<CardRevision>, PostgresError> {
    let select = "SELECT replaced_at, card FROM card_history WHERE agent = $1 ORDER BY row DESC";
    let rows = sql::rows(client, select, &[&id.as_str()]).await?;
    let card = |row| {
        let row = Cells(row);
        let card = Json::parse(row.text("card")?)
            .map_err(|error| PostgresError::corrupt(format!("an old card of {id}: {error}")))?;
        Ok(CardRevision { replaced_at: row.at("replaced_at")?, card })
    };
    rows.iter().map(card).collect()
}

/// An agent's probes, newest first.
pub(super) async fn probes(
    client: &impl GenericClient,
    id: &AgentId,
    most: usize,
) -> Result<Vec<Probe>, PostgresError> {
    let select =
        "SELECT at, health, elapsed_ms, error FROM health_probes WHERE agent = $1 ORDER BY row DESC LIMIT $2";
    let rows = sql::rows(client, select, &[&id.as_str(), &limit(most)]).await?;
    let probe = |row| {
        let row = Cells(row);
        Ok(Probe {
            agent: id.clone(),
            at: row.at("at")?,
            health: row.word("health")?,
            elapsed_ms: row.number("elapsed_ms")?,
            error: row.get("error")?,
        })
    };
    rows.iter().map(probe).collect()
}
