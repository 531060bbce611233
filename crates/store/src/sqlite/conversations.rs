//! Tasks that belong to conversations.

use rialto_model::{
    ids::{AgentId, ContextId, Scope},
    store::{ConversationFilter, ConversationTasks, MAX_COUNTED_TASKS},
    task::TaskState,
};
use rusqlite::{Connection, ToSql};

use super::{column::At, tasks::head};
use crate::error::SqliteError;

/// A caller's tasks, the last changed first.
pub(super) fn list(
    connection: &Connection,
    scope: &Scope,
    filter: &ConversationFilter,
) -> Result<ConversationTasks, SqliteError> {
    let (org, project, caller) = (scope.org.as_str(), scope.project.as_str(), filter.caller.as_str());
    let context = filter.context.as_ref().map(ContextId::as_str);
    let agent = filter.agent.as_ref().map(AgentId::as_str);
    let (state, since) = (filter.state.map(TaskState::as_str), filter.since.map(At));
    // Tasks of a conversation and open ones are few, whatever a caller has; all others are in the order that is asked for.
    let is_open = filter.state.is_some_and(|state| !state.is_terminal());
    let index = match (context, is_open) {
        (Some(_), _) => "tasks_by_context",
        (None, true) => "tasks_open",
        (None, false) => "tasks_by_change",
    };
    let mut common = format!(
        "FROM tasks INDEXED BY {index}
         WHERE org = :org AND project = :project AND caller = :caller AND context IS NOT NULL"
    );
    if context.is_none() && is_open {
        common.push_str(" AND open = 1");
    }
    let mut values: Vec<(&str, &dyn ToSql)> =
        vec![(":org", &org), (":project", &project), (":caller", &caller)];
    if let Some(context) = &context {
        common.push_str(" AND context = :context");
        values.push((":context", context));
    }
    if let Some(agent) = &agent {
        common.push_str(" AND agent = :agent");
        values.push((":agent", agent));
    }
    if let Some(state) = &state {
        common.push_str(" AND state = :state");
        values.push((":state", state));
    }
    if let Some(since) = &since {
        common.push_str(" AND updated_at >= :since");
        values.push((":since", since));
    }
    let count = format!("SELECT count(*) FROM (SELECT 1 {common} LIMIT {MAX_COUNTED_TASKS})");
    let total = connection.prepare_cached(&count)?.query_row(values.as_slice(), |row| row.get(0))?;
    let behind = filter.behind.as_ref().map(|(at, id)| (At(*at), id.as_str()));
    if let Some((at, id)) = &behind {
        common.push_str(" AND (updated_at, id) < (:at, :id)");
        values.extend([(":at", at as &dyn ToSql), (":id", id)]);
    }
    values.push((":limit", &filter.limit));
    let sql = format!("SELECT * {common} ORDER BY updated_at DESC, id DESC LIMIT :limit");
    let mut select = connection.prepare_cached(&sql)?;
    let mut rows = select.query(values.as_slice())?;
    let mut heads = Vec::new();
    while let Some(row) = rows.next()? {
        heads.push(head(row)?);
    }
    Ok(ConversationTasks { heads, total })
}
