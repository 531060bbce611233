//! Tasks that belong to conversations.

use rialto_model::{
    ids::{AgentId, ContextId, Scope, TaskId},
    store::{ConversationFilter, ConversationTasks, MAX_COUNTED_TASKS},
    task::TaskState,
};

use super::{
    column::{Cells, limit, nearest},
    connection::GenericClient,
    error::PostgresError,
    sql::{self, Value},
    tasks::head,
};

/// A caller's tasks, the last changed first.
pub(super) async fn list(
    client: &impl GenericClient,
    scope: &Scope,
    filter: &ConversationFilter,
) -> Result<ConversationTasks, PostgresError> {
    let common = "
        FROM tasks WHERE org = $1 AND project = $2 AND caller = $3 AND context IS NOT NULL
            AND ($4::text IS NULL OR context = $4) AND ($5::text IS NULL OR state = $5)
            AND ($6::bigint IS NULL OR updated_at >= $6) AND ($7::text IS NULL OR agent = $7)";
    let context = filter.context.as_ref().map(ContextId::as_str);
    let (state, since) = (filter.state.map(TaskState::as_str), filter.since.map(nearest));
    let (org, project, caller) = (scope.org.as_str(), scope.project.as_str(), filter.caller.as_str());
    let agent = filter.agent.as_ref().map(AgentId::as_str);
    let narrowed: [Value<'_>; 7] = [&org, &project, &caller, &context, &state, &since, &agent];
    let counting =
        format!("SELECT count(*) AS total FROM (SELECT 1 {common} LIMIT {MAX_COUNTED_TASKS}) AS counted");
    let count = sql::row(client, &counting, &narrowed).await?;
    let behind_at = filter.behind.as_ref().map(|(at, _)| nearest(*at));
    let behind_id = filter.behind.as_ref().map(|(_, id)| TaskId::as_str(id));
    let page = format!(
        "SELECT * {common} AND ($8::bigint IS NULL OR (updated_at, id) < ($8, $9::text))
         ORDER BY updated_at DESC, id DESC LIMIT $10"
    );
    let most = limit(filter.limit);
    let more: [Value<'_>; 3] = [&behind_at, &behind_id, &most];
    let rows = sql::rows(client, &page, &[&narrowed[..], &more].concat()).await?;
    let heads = rows.iter().map(head).collect::<Result<_, _>>()?;
    Ok(ConversationTasks { heads, total: Cells(&count).number("total")? })
}
