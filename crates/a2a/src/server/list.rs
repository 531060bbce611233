//! Pages of tasks, the most recently changed first.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use rialto_a2a_codec::{error::ErrorCode, request::ListTasks, task::TaskList};
use rialto_engine::Engine;
use rialto_model::{
    clock::Timestamp,
    ids::{ContextId, TaskId},
    json::Extra,
    store::ConversationFilter,
    task::TaskHead,
};

use super::{error::ServiceError, render, request_context::A2aRequestContext};

const DEFAULT_PAGE_SIZE: u32 = 50;
const MAX_PAGE_SIZE: u32 = 100;

/// Requested page.
pub(crate) async fn page(
    engine: &Engine,
    visit: &A2aRequestContext,
    wanted: &ListTasks,
) -> Result<TaskList, ServiceError> {
    let caller = &visit.caller;
    let size = wanted.page_size.unwrap_or(DEFAULT_PAGE_SIZE);
    if !(1..=MAX_PAGE_SIZE).contains(&size) {
        return Err(invalid(format!("pageSize: expected 1 to {MAX_PAGE_SIZE}, found {size}")));
    }
    let filter = ConversationFilter {
        caller: caller.id.clone(),
        context: wanted.context_id.as_ref().map(ContextId::from),
        agent: visit.agent.as_ref().map(|agent| agent.id.clone()),
        state: state(wanted)?,
        since: wanted.status_timestamp_after.as_deref().map(moment).transpose()?,
        behind: wanted.page_token.as_deref().filter(|token| !token.is_empty()).map(place).transpose()?,
        // One more task shows if there is another page.
        limit: usize::try_from(size).unwrap_or(usize::MAX).saturating_add(1),
    };
    let mut talks = engine.tasks().list_conversations(caller, &filter).await?;
    let is_more = talks.heads.len() > filter.limit - 1;
    talks.heads.truncate(filter.limit - 1);
    let next = talks.heads.last().filter(|_| is_more).map(token);
    let mut tasks = Vec::with_capacity(talks.heads.len());
    for head in talks.heads {
        let task = engine.tasks().read(caller, head.id.as_str()).await?;
        let mut told = render::task(task, wanted.history_length);
        if !wanted.include_artifacts.unwrap_or_default() {
            told.artifacts.clear();
        }
        tasks.push(told);
    }
    Ok(TaskList {
        tasks,
        next_page_token: next.unwrap_or_default(),
        page_size: size,
        total_size: u32::try_from(talks.total).unwrap_or(u32::MAX),
        extra: Extra::new(),
    })
}

fn state(wanted: &ListTasks) -> Result<Option<rialto_model::task::TaskState>, ServiceError> {
    wanted
        .status
        .map(|state| {
            state.known().ok_or_else(|| invalid("status: expected one of A2A's task states".to_owned()))
        })
        .transpose()
}

fn moment(text: &str) -> Result<Timestamp, ServiceError> {
    text.parse().map_err(|_| {
        invalid(format!("statusTimestampAfter: expected a time such as 2026-01-31T12:00:00Z, found {text}"))
    })
}

fn token(last: &TaskHead) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(format!("{} {}", last.updated_at, last.id))
}

fn place(token: &str) -> Result<(Timestamp, TaskId), ServiceError> {
    let read = || {
        let text = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
        let (at, id) = text.split_once(' ')?;
        Some((at.parse().ok()?, TaskId::from(id)))
    };
    read().ok_or_else(|| invalid("pageToken: expected one that was given out with a page".to_owned()))
}

fn invalid(message: String) -> ServiceError {
    ServiceError::new(ErrorCode::InvalidParams, message)
}
