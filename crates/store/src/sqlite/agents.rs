//! The registry: agents, the cards they had, and their probes.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use rialto_model::{
    agent::{Agent, CardRevision, Health, PendingCard, Probe, RowStorage},
    backing::Backing,
    card::Card,
    credential::{Credential, SecretSource},
    ids::AgentId,
    json::Json,
    store::{AgentStore, Store, StoreError},
};
use rusqlite::{Connection, OptionalExtension, Params, Row, named_params, params};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    SqliteStore,
    column::{At, Word, scope, taken},
    routing,
    writer::Write,
};
use crate::{error::SqliteError, open::CardParser};

/// Maximum number of probes kept per agent, the newest.
const MAX_PROBES: usize = 200;

/// Maximum number of replaced cards kept per agent, the newest: a remote that rewrites its card each time must not fill
/// the disk.
const MAX_OLD_CARDS: usize = 100;

/// Something to be written to the registry.
pub(super) enum AgentWrite {
    /// A new row, or a row in place of the one with the expected version.
    Put {
        /// The row.
        agent: Box<Agent>,
        /// The version it replaces; none for a new row.
        expected: Option<u64>,
    },
    /// The row goes, with all that belongs to it.
    Remove(AgentId),
    /// One more probe.
    Probe(Probe),
}

#[async_trait]
impl AgentStore for SqliteStore {
    async fn agents(&self) -> Result<Vec<Agent>, StoreError> {
        let parse = self.parse;
        self.read(move |connection| all(connection, parse)).await
    }

    async fn put_agent(&self, agent: &Agent, expected: Option<u64>) -> Result<u64, StoreError> {
        if agent.keep == RowStorage::Session {
            tracing::debug!(agent.id = %agent.id, "agent {} belongs to this process and is not stored", agent.id);
            return Ok(self.generation());
        }
        let put = AgentWrite::Put { agent: Box::new(agent.clone()), expected };
        self.change(Write::Agent(put)).await
    }

    async fn remove_agent(&self, id: &AgentId) -> Result<Option<u64>, StoreError> {
        self.write(Write::Agent(AgentWrite::Remove(id.clone()))).await
    }

    async fn card_history(&self, id: &AgentId) -> Result<Vec<CardRevision>, StoreError> {
        let id = id.clone();
        self.read(move |connection| history(connection, &id)).await
    }

    async fn record_probe(&self, probe: &Probe) -> Result<(), StoreError> {
        self.write(Write::Agent(AgentWrite::Probe(probe.clone()))).await.map(drop)
    }

    async fn probes(&self, id: &AgentId, limit: usize) -> Result<Vec<Probe>, StoreError> {
        let id = id.clone();
        self.read(move |connection| probes(connection, &id, limit)).await
    }
}

/// Returns whether others have to read the registry again.
pub(super) fn write(connection: &Connection, write: &AgentWrite) -> Result<bool, SqliteError> {
    match write {
        AgentWrite::Put { agent, expected: None } => insert(connection, agent),
        AgentWrite::Put { agent, expected: Some(expected) } => replace(connection, agent, *expected),
        AgentWrite::Remove(id) => {
            routing::forget(connection, id)?;
            let mut delete = connection.prepare_cached("DELETE FROM agent_cards WHERE id = ?1")?;
            Ok(delete.execute([id.as_str()])? > 0)
        }
        AgentWrite::Probe(probe) => add_probe(connection, probe).map(|()| false),
    }
}

fn insert(connection: &Connection, agent: &Agent) -> Result<bool, SqliteError> {
    put(
        connection,
        "INSERT INTO agent_cards (id, org, project, url, slug, card, pending_card, pending_seen_at, trust_level,
             health_status, signature, credential, allow_private, card_path, etag, speaks, timeout_ms, registered_at,
             last_fetched_at, last_seen_at, last_error, version, backing, configured)
         VALUES (:id, :org, :project, :url, :slug, :card, :pending_card, :pending_seen_at, :trust_level,
             :health_status, :signature, :credential, :allow_private, :card_path, :etag, :speaks, :timeout_ms,
             :registered_at, :last_fetched_at, :last_seen_at, :last_error, :version,
             :backing, :configured)",
        agent,
    )?;
    Ok(true)
}

fn replace(connection: &Connection, agent: &Agent, expected: u64) -> Result<bool, SqliteError> {
    let mut select =
        connection.prepare_cached("SELECT card FROM agent_cards WHERE id = ?1 AND version = ?2")?;
    let old: Option<String> =
        select.query_row(params![agent.id.as_str(), expected], |row| row.get(0)).optional()?;
    let old = old.ok_or(StoreError::Conflict)?;
    put(
        connection,
        "UPDATE agent_cards SET org = :org, project = :project, url = :url, slug = :slug, card = :card,
             pending_card = :pending_card, pending_seen_at = :pending_seen_at, trust_level = :trust_level,
             health_status = :health_status, signature = :signature, credential = :credential,
             allow_private = :allow_private, card_path = :card_path, etag = :etag, speaks = :speaks,
             timeout_ms = :timeout_ms, registered_at = :registered_at, last_fetched_at = :last_fetched_at,
             last_seen_at = :last_seen_at, last_error = :last_error, version = :version, backing = :backing,
             configured = :configured
         WHERE id = :id",
        agent,
    )?;
    if old != agent.card.raw.get() {
        insert_old_card(connection, &agent.id, agent.last_fetched_at, &old)?;
    }
    Ok(true)
}

fn put(connection: &Connection, sql: &str, agent: &Agent) -> Result<(), SqliteError> {
    let credential = credential_text(agent.credential.as_ref())?;
    let backing = if agent.backing.is_agent() { None } else { Some(text_of(&agent.backing)?) };
    let values = named_params! {
        ":id": agent.id.as_str(),
        ":org": agent.scope.org.as_str(),
        ":project": agent.scope.project.as_str(),
        ":url": agent.url,
        ":slug": agent.slug,
        ":card": agent.card.raw.get(),
        ":pending_card": agent.pending.as_ref().map(|pending| pending.card.raw.get()),
        ":pending_seen_at": agent.pending.as_ref().map(|pending| At(pending.seen_at)),
        ":trust_level": Word(agent.trust),
        ":health_status": Word(agent.health),
        ":signature": Word(agent.signature),
        ":credential": credential,
        ":allow_private": agent.allow_private,
        ":card_path": agent.card_path,
        ":etag": agent.etag,
        ":speaks": agent.speaks.map(Word),
        ":timeout_ms": agent.timeout_ms,
        ":registered_at": At(agent.registered_at),
        ":last_fetched_at": At(agent.last_fetched_at),
        ":last_seen_at": agent.last_seen_at.map(At),
        ":last_error": agent.last_error,
        ":version": agent.version,
        ":backing": backing,
        ":configured": agent.keep == RowStorage::Configured,
    };
    execute(connection, sql, values).map_err(|error| which_is_taken(error, agent))
}

fn execute(connection: &Connection, sql: &str, values: impl Params) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute(values).map(drop)
}

fn which_is_taken(error: rusqlite::Error, agent: &Agent) -> SqliteError {
    let what = if taken(&error, "agent_cards.url") {
        format!("the URL {}", agent.url)
    } else if taken(&error, "agent_cards.slug") {
        format!("the name {}", agent.slug)
    } else if taken(&error, "agent_cards.id") {
        format!("the id {}", agent.id)
    } else {
        return error.into();
    };
    StoreError::Taken(what).into()
}

/// Source of the credential as JSON. A secret that was handed over is never stored.
fn credential_text(credential: Option<&Credential>) -> rusqlite::Result<Option<String>> {
    match credential {
        None | Some(Credential { source: SecretSource::Held(_), .. }) => Ok(None),
        Some(reference) => text_of(reference).map(Some),
    }
}

fn text_of(value: &impl Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

fn insert_old_card(connection: &Connection, id: &AgentId, at: Timestamp, card: &str) -> rusqlite::Result<()> {
    execute(
        connection,
        "INSERT INTO card_history (agent, replaced_at, card) VALUES (?1, ?2, ?3)",
        params![id.as_str(), At(at), card],
    )?;
    execute(
        connection,
        "DELETE FROM card_history WHERE agent = ?1 AND row <=
             (SELECT row FROM card_history WHERE agent = ?1 ORDER BY row DESC LIMIT 1 OFFSET ?2)",
        params![id.as_str(), MAX_OLD_CARDS],
    )
}

/// A probe of an agent that has been removed meanwhile is dropped.
fn add_probe(connection: &Connection, probe: &Probe) -> Result<(), SqliteError> {
    let agent = probe.agent.as_str();
    execute(
        connection,
        "INSERT INTO health_probes (agent, at, health, elapsed_ms, error)
         SELECT id, ?2, ?3, ?4, ?5 FROM agent_cards WHERE id = ?1",
        params![agent, At(probe.at), Word(probe.health), probe.elapsed_ms, probe.error],
    )?;
    if matches!(probe.health, Health::Healthy | Health::Degraded) {
        execute(
            connection,
            "UPDATE agent_cards SET last_seen_at = ?2 WHERE id = ?1 AND coalesce(last_seen_at < ?2, TRUE)",
            params![agent, At(probe.at)],
        )?;
    }
    execute(
        connection,
        "DELETE FROM health_probes WHERE agent = ?1 AND row <=
             (SELECT row FROM health_probes WHERE agent = ?1 ORDER BY row DESC LIMIT 1 OFFSET ?2)",
        params![agent, MAX_PROBES],
    )?;
    Ok(())
}

/// All agents. A row that cannot be read is left out and reported, so that it does not take the others with it.
pub(super) fn all(connection: &Connection, parse: CardParser) -> Result<Vec<Agent>, SqliteError> {
    let mut select = connection.prepare_cached("SELECT * FROM agent_cards ORDER BY org, project, id")?;
    let mut rows = select.query([])?;
    let mut agents = Vec::new();
    while let Some(row) = rows.next()? {
        let id = AgentId::from(row.get::<_, String>("id")?);
        match agent(row, id.clone(), parse) {
            Ok(agent) => agents.push(agent),
            Err(trouble) => {
                tracing::error!(agent.id = %id, trouble, "agent {id} is left out: its row cannot be read");
            }
        }
    }
    Ok(agents)
}

fn agent(row: &Row<'_>, id: AgentId, parse: CardParser) -> Result<Agent, String> {
    let card = read_card(row, "card", parse)?.ok_or("there is no card")?;
    let pending = read_card(row, "pending_card", parse)?;
    let fields = |row: &Row<'_>| -> rusqlite::Result<Agent> {
        let pending_seen_at = row.get::<_, Option<At>>("pending_seen_at")?;
        Ok(Agent {
            id,
            scope: scope(row)?,
            url: row.get("url")?,
            slug: row.get("slug")?,
            card,
            pending: pending.zip(pending_seen_at).map(|(card, At(seen_at))| PendingCard { card, seen_at }),
            trust: row.get::<_, Word<_>>("trust_level")?.0,
            health: row.get::<_, Word<_>>("health_status")?.0,
            signature: row.get::<_, Word<_>>("signature")?.0,
            backing: read_json::<Backing>(row, "backing")?.unwrap_or_default(),
            keep: if row.get("configured")? { RowStorage::Configured } else { RowStorage::Stored },
            credential: read_json(row, "credential")?,
            allow_private: row.get("allow_private")?,
            card_path: row.get("card_path")?,
            etag: row.get("etag")?,
            speaks: row.get::<_, Option<Word<_>>>("speaks")?.map(|Word(dialect)| dialect),
            timeout_ms: row.get("timeout_ms")?,
            registered_at: row.get::<_, At>("registered_at")?.0,
            last_fetched_at: row.get::<_, At>("last_fetched_at")?.0,
            last_seen_at: row.get::<_, Option<At>>("last_seen_at")?.map(|At(at)| at),
            last_error: row.get("last_error")?,
            version: row.get("version")?,
        })
    };
    fields(row).map_err(|error| error.to_string())
}

fn read_card(row: &Row<'_>, column: &str, parse: CardParser) -> Result<Option<Arc<Card>>, String> {
    let value = row.get_ref(column).map_err(|error| error.to_string())?;
    let Some(text) = value.as_str_or_null().map_err(|error| error.to_string())? else { return Ok(None) };
    parse(text).map(Arc::new).map(Some)
}

fn read_json<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<T>> {
    let Some(text) = row.get::<_, Option<String>>(column)? else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
    })
}

/// The cards an agent had, newest first.
pub(super) fn history(connection: &Connection, id: &AgentId) -> Result<Vec<CardRevision>, SqliteError> {
    let mut select = connection
        .prepare_cached("SELECT replaced_at, card FROM card_history WHERE agent = ?1 ORDER BY row DESC")?;
    let mut rows = select.query([id.as_str()])?;
    let mut cards = Vec::new();
    while let Some(row) = rows.next()? {
        let card = Json::parse(row.get::<_, String>("card")?)
            .map_err(|error| StoreError::Corrupt(format!("an old card of {id}: {error}")))?;
        cards.push(CardRevision { replaced_at: row.get::<_, At>("replaced_at")?.0, card });
    }
    Ok(cards)
}

/// An agent's probes, newest first.
pub(super) fn probes(connection: &Connection, id: &AgentId, limit: usize) -> Result<Vec<Probe>, SqliteError> {
    let mut select = connection.prepare_cached(
        "SELECT at, health, elapsed_ms, error FROM health_probes WHERE agent = ?1 ORDER BY row DESC LIMIT ?2",
    )?;
    let probes = select.query_map(params![id.as_str(), limit], |row| {
        Ok(Probe {
            agent: id.clone(),
            at: row.get::<_, At>("at")?.0,
            health: row.get::<_, Word<_>>("health")?.0,
            elapsed_ms: row.get("elapsed_ms")?,
            error: row.get("error")?,
        })
    })?;
    Ok(probes.collect::<Result<_, _>>()?)
}
