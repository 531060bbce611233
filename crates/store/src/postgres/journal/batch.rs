//! The statements of one batch, pipelined in one transaction.

use std::collections::HashSet;

use jiff::Timestamp;
use rialto_model::{
    ids::{ContextId, SkillId},
    store::{MessageClaim, StoreError, TaskAppend},
    task::TaskHead,
};

use super::{
    super::{
        audit,
        audit_chains::{self, Chain, SealedRecords},
        column::{Cells, json, nanoseconds, signed},
        connection::{GenericClient, PgClient},
        error::PostgresError,
        leases::OwnRunners,
        messages,
        sql::{self, Value},
    },
    JournalWrite,
};

/// Writes new tasks, and answers which were new.
const OPEN: &str = "
    INSERT INTO tasks (id, org, project, caller, door, agent, agent_url, skill, session, args, state, open,
        version, remote_task_id, remote_context_id, created_at, updated_at, context, message, runner)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
        $9::text[], $10::text[], $11::text[], $12::boolean[], $13::bigint[], $14::text[], $15::text[], $16::bigint[],
        $17::bigint[], $18::text[], $19::text[], $20::bigint[])
    ON CONFLICT (id) DO NOTHING RETURNING id";

/// Moves tasks on that have as many events as expected, and answers which. One that we work on must still be ours.
const ADVANCE: &str = "
    UPDATE tasks SET state = new.state, open = new.open, version = new.version,
        remote_task_id = new.remote_task_id, remote_context_id = new.remote_context_id, updated_at = new.updated_at
    FROM unnest($1::text[], $2::bigint[], $3::text[], $4::boolean[], $5::bigint[], $6::text[], $7::text[], $8::bigint[],
        $9::bigint[]) AS new (id, expected, state, open, version, remote_task_id, remote_context_id, updated_at, runner)
    WHERE tasks.id = new.id AND tasks.version = new.expected AND new.runner IN (0, tasks.runner) RETURNING tasks.id";

/// Writes events. One that is there already belongs to a task that does not move on, so nothing of this will stay.
const ADD_EVENTS: &str = "
    INSERT INTO task_events (task, last, at, events)
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[])
    ON CONFLICT (task, last) DO NOTHING";

/// Begins a transaction whose statements find their rows by index.
///
/// A statement is planned once per connection, often while a table is small, and a plan that reads or hashes the whole table stays until the
/// statistics change: on a new database every batch read all tasks for up to a minute, at two to three times PostgreSQL's CPU per call.
/// The settings make unavoidable scans of small tables look expensive, so compilation of plans (`jit`) is off too.
const BEGIN: &str = "BEGIN; SET LOCAL jit = off; SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; \
                     SET LOCAL enable_mergejoin = off";

/// Results of the statements of a batch, before its commit.
pub(super) struct PendingBatch {
    pub(super) refused: Vec<(usize, StoreError)>,
    /// True if our chain ended where we thought.
    pub(super) is_ours: bool,
    pub(super) generation: u64,
    /// The keys of claims that were made.
    pub(super) claimed: HashSet<String>,
}

/// Prepares what this connection has not prepared before, so that the statements of a transaction can leave together.
pub(super) async fn prepare(client: &PgClient) -> Result<(), PostgresError> {
    for statement in
        [OPEN, ADVANCE, ADD_EVENTS, messages::CLAIM, audit::HOLD, audit_chains::ADVANCE, audit_chains::INSERT]
    {
        sql::prepare(client, statement).await?;
    }
    Ok(())
}

/// Begins a transaction and writes these lines. All statements leave before the first is answered, and are carried out in their order.
pub(super) async fn write(
    client: &PgClient,
    lines: &[&JournalWrite],
    chain: &Chain,
    sealed: &SealedRecords<'_>,
    (own, now): (&OwnRunners, Timestamp),
) -> Result<PendingBatch, PostgresError> {
    let begin = async { Ok(client.batch_execute(BEGIN).await?) };
    let ((), opened, advanced, (), claimed, generation, is_ours, ()) = futures::try_join!(
        begin,
        open(client, lines),
        advance(client, lines, own),
        add_events(client, lines),
        claim(client, lines),
        audit::hold(client, sealed),
        chain.advance(client, sealed, now),
        sealed.insert(client, chain.id()),
    )?;
    let refused = lines
        .iter()
        .enumerate()
        .filter_map(|(index, line)| refusal(line, &opened, &advanced).map(|refusal| (index, refusal)));
    Ok(PendingBatch { refused: refused.collect(), is_ours, generation, claimed })
}

/// Why a line cannot be written, if it cannot.
fn refusal(line: &JournalWrite, opened: &HashSet<String>, advanced: &HashSet<String>) -> Option<StoreError> {
    match line {
        JournalWrite::Open(entry) if !opened.contains(entry.head.id.as_str()) => {
            Some(StoreError::Taken(format!("the task id {}", entry.head.id)))
        }
        JournalWrite::Append(entry) if !advanced.contains(entry.head.id.as_str()) => {
            Some(StoreError::Conflict)
        }
        _ => None,
    }
}

/// Writes new tasks. Answers which were new.
async fn open(
    client: &impl GenericClient,
    lines: &[&JournalWrite],
) -> Result<HashSet<String>, PostgresError> {
    let heads: Vec<&TaskHead> = lines.iter().filter_map(|line| line.head()).collect();
    if heads.is_empty() {
        return Ok(HashSet::new());
    }
    let values: [Value<'_>; 20] = [
        &each(&heads, |head| head.id.as_str()),
        &each(&heads, |head| head.scope.org.as_str()),
        &each(&heads, |head| head.scope.project.as_str()),
        &each(&heads, |head| head.caller.as_str()),
        &each(&heads, |head| head.door.as_str()),
        &each(&heads, |head| head.agent.as_str()),
        &each(&heads, |head| head.agent_url.as_str()),
        &each(&heads, |head| head.skill.as_ref().map(SkillId::as_str)),
        &each(&heads, |head| &*head.session),
        &each(&heads, |head| head.args.get()),
        &each(&heads, |head| head.state.as_str()),
        &each(&heads, |head| !head.state.is_terminal()),
        &each(&heads, |head| signed(head.version)),
        &each(&heads, |head| head.remote.task_id.as_deref()),
        &each(&heads, |head| head.remote.context_id.as_deref()),
        &moments(&heads, |head| head.created_at)?,
        &moments(&heads, |head| head.updated_at)?,
        &each(&heads, |head| head.context.as_ref().map(ContextId::as_str)),
        &each(&heads, |head| head.message.as_deref()),
        &each(&heads, |head| head.runner.get().cast_signed()),
    ];
    ids(client, OPEN, &values).await
}

/// Moves tasks on that have as many events as expected. Answers which.
async fn advance(
    client: &impl GenericClient,
    lines: &[&JournalWrite],
    own: &OwnRunners,
) -> Result<HashSet<String>, PostgresError> {
    let entries: Vec<&TaskAppend> = lines.iter().filter_map(|line| line.entry()).collect();
    if entries.is_empty() {
        return Ok(HashSet::new());
    }
    let values: [Value<'_>; 9] = [
        &each(&entries, |entry| entry.head.id.as_str()),
        &each(&entries, |entry| signed(entry.expected)),
        &each(&entries, |entry| entry.head.state.as_str()),
        &each(&entries, |entry| !entry.head.state.is_terminal()),
        &each(&entries, last),
        &each(&entries, |entry| entry.head.remote.task_id.as_deref()),
        &each(&entries, |entry| entry.head.remote.context_id.as_deref()),
        &moments(&entries, |entry| entry.head.updated_at)?,
        &each(&entries, |entry| own.own_or_zero(entry.head.runner)),
    ];
    ids(client, ADVANCE, &values).await
}

/// Writes the events of new tasks and of those that were there.
async fn add_events(client: &impl GenericClient, lines: &[&JournalWrite]) -> Result<(), PostgresError> {
    let entries: Vec<&TaskAppend> =
        lines.iter().filter_map(|line| line.appended()).filter(|entry| !entry.events.is_empty()).collect();
    if entries.is_empty() {
        return Ok(());
    }
    let texts = entries.iter().map(|entry| json(&entry.events)).collect::<Result<Vec<_>, _>>()?;
    let values: [Value<'_>; 4] = [
        &each(&entries, |entry| entry.head.id.as_str()),
        &each(&entries, last),
        &moments(&entries, |entry| entry.at)?,
        &texts,
    ];
    sql::execute(client, ADD_EVENTS, &values).await.map(drop)
}

/// Makes claims of messages. Answers the keys of those that nobody has made before.
async fn claim(
    client: &impl GenericClient,
    lines: &[&JournalWrite],
) -> Result<HashSet<String>, PostgresError> {
    let claims: Vec<&MessageClaim> = lines.iter().filter_map(|line| line.claim()).collect();
    if claims.is_empty() {
        return Ok(HashSet::new());
    }
    let values: [Value<'_>; 4] = [
        &each(&claims, |claim| claim.key.as_str()),
        &each(&claims, |claim| claim.task.as_str()),
        &each(&claims, |claim| claim.runner.get().cast_signed()),
        &moments(&claims, |claim| claim.at)?,
    ];
    ids(client, messages::CLAIM, &values).await
}

/// The number of the last of the events.
fn last(entry: &TaskAppend) -> i64 {
    signed(entry.expected + entry.events.len() as u64)
}

async fn ids(
    client: &impl GenericClient,
    statement: &str,
    values: &[Value<'_>],
) -> Result<HashSet<String>, PostgresError> {
    let rows = sql::rows(client, statement, values).await?;
    rows.iter().map(|row| Cells(row).text("id")).collect()
}

fn each<'a, S, T>(all: &[&'a S], of: impl Fn(&'a S) -> T) -> Vec<T> {
    all.iter().map(|one| of(one)).collect()
}

fn moments<S>(all: &[&S], of: impl Fn(&S) -> jiff::Timestamp) -> Result<Vec<i64>, PostgresError> {
    all.iter().map(|one| nanoseconds(of(one))).collect()
}
