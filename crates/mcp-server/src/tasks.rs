//! Tasks extension: long calls become tasks, for clients that declare it.
//!
//! The task is the one in the journal, under the same id: so it survives this process, and is visible only to its caller. A tool that
//! ran and failed is `completed`, as the extension requires; a call that failed before or outside the tool is `failed`.

use std::{collections::VecDeque, time::Duration};

use parking_lot::Mutex;
use rialto_model::{
    failure::{Failure, FailureKind},
    message::text_of,
    task::{Task, TaskState},
    token_scopes::TokenScope,
};
use rmcp::{
    ErrorData,
    model::{
        CallToolResult, CreateTaskResult, DetailedTask, ElicitRequest, InputRequest, JsonObject,
        Task as Shown, TaskPayload, TaskStatus,
    },
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    call_stream::{ToolCallStream, ToolCallUpdate},
    client_profile::ClientProfile,
    elicitation::{ElicitationResponses, QuestionSet, with_ids},
    errors,
    progress::shortened,
    tool_result::{self, ResultMeta, SERVER_IDENTITY, ToolResult},
    tool_service::{ToolCallStart, ToolService, may},
};

/// Maximum number of tasks with some of their questions answered.
const MAX_PARTIAL_TASKS: usize = 1_024;

/// Answers to some questions of a task, until all have arrived.
#[derive(Default)]
pub(crate) struct PartialAnswers(Mutex<VecDeque<(String, u64, ElicitationResponses)>>);

// === impl ToolService ===

impl ToolService {
    /// Waits for a call. After the timeout the call is detached and its task is returned.
    pub(crate) async fn or_task(
        &self,
        client: &ClientProfile,
        mut call: Box<ToolCallStream>,
        patience: Duration,
    ) -> Result<Result<ToolCallUpdate, CreateTaskResult>, ErrorData> {
        if let Some(note) = call.settled_within(patience).await {
            return Ok(Ok(note));
        }
        let id = call.hand_over();
        let task = self.engine.tasks().read(&client.caller, id.as_str()).await;
        let task = task.map_err(|failure| errors::error(&failure))?;
        let meta =
            tool_result::as_meta(&ResultMeta { server: Some(&SERVER_IDENTITY), ..ResultMeta::of(&task) })
                .unwrap_or_default();
        Ok(Err(CreateTaskResult::new(self.shown(client, &task).task).with_meta(meta)))
    }

    /// `tasks/get`: state of a task, with its result or its questions.
    pub(crate) async fn get_task(&self, client: &ClientProfile, id: &str) -> Result<DetailedTask, ErrorData> {
        may(client, TokenScope::Call)?;
        let task = self.engine.tasks().get(&client.caller, id).await;
        let task = task.map_err(|failure| errors::error(&failure))?;
        Ok(self.shown(client, &task))
    }

    /// `tasks/update`: records answers to the questions of a task. When all have arrived, the task resumes.
    pub(crate) async fn update_task(
        &self,
        client: &ClientProfile,
        id: &str,
        responses: ElicitationResponses,
    ) -> Result<(), ErrorData> {
        may(client, TokenScope::Call)?;
        self.take_answers(client, id, responses).await.map_err(|failure| errors::error(&failure))
    }

    /// `tasks/cancel`: cancels a task. One that has ended does not change.
    pub(crate) async fn cancel_task(&self, client: &ClientProfile, id: &str) -> Result<(), ErrorData> {
        may(client, TokenScope::Call)?;
        match self.engine.tasks().cancel(&client.caller, id).await {
            Ok(_) => Ok(()),
            Err(failure) if failure.kind == FailureKind::Conflict => Ok(()),
            Err(failure) => Err(errors::error(&failure)),
        }
    }

    async fn take_answers(
        &self,
        client: &ClientProfile,
        id: &str,
        responses: ElicitationResponses,
    ) -> Result<(), Failure> {
        let task = self.engine.tasks().read(&client.caller, id).await?;
        let version = task.head.version;
        let Some(mut inquiry) = self.inquiry(client, &task) else { return Ok(()) };
        inquiry.given.extend(responses);
        let given = std::mem::take(&mut inquiry.given);
        match self.answer(client, inquiry, given).await? {
            ToolCallStart::Asked(inquiry) if inquiry.task.head.version == version => {
                self.in_part.keep(task.head.id.as_str(), version, inquiry.given);
            }
            // It resumes by itself.
            ToolCallStart::Underway(mut call) => drop(call.hand_over()),
            ToolCallStart::Asked(_) | ToolCallStart::Done(_) => {}
        }
        Ok(())
    }

    /// Questions of a task that have no answer yet.
    fn inquiry(&self, client: &ClientProfile, task: &Task) -> Option<QuestionSet> {
        let mut inquiry = QuestionSet::of(task, client.abilities, client.fluency)?.in_task();
        inquiry.given = self.in_part.get(task.head.id.as_str(), task.head.version);
        Some(inquiry)
    }

    /// Task as its client sees it.
    pub(crate) fn shown(&self, client: &ClientProfile, task: &Task) -> DetailedTask {
        let head = &task.head;
        let (created, updated) = (head.created_at.to_string(), head.updated_at.to_string());
        let mut shown = Shown::new(head.id.as_str(), TaskStatus::Working, created, updated)
            .with_poll_interval_ms(self.config.task_poll_ms.max(1));
        shown.ttl_ms = self.config.task_ttl_ms;
        shown.status_message = words(task);
        DetailedTask::new(shown, self.payload(client, task))
    }

    fn payload(&self, client: &ClientProfile, task: &Task) -> TaskPayload {
        match task.head.state {
            TaskState::Submitted | TaskState::Working => TaskPayload::Working,
            TaskState::InputRequired | TaskState::AuthRequired => match self.inquiry(client, task) {
                Some(inquiry) => TaskPayload::InputRequired {
                    input_requests: inquiry
                        .open()
                        .map(|question| {
                            let request = ElicitRequest::new(question.params.clone());
                            (question.key.clone(), InputRequest::Elicitation(request))
                        })
                        .collect(),
                },
                // This client has no elicitation: the question is the result, as for a call without a task.
                None => completed(self.told(client, task)),
            },
            TaskState::Completed => completed(self.told(client, task)),
            TaskState::Canceled => TaskPayload::Cancelled,
            TaskState::Failed | TaskState::Rejected => failed(task),
        }
    }
}

// === impl PartialAnswers ===

impl PartialAnswers {
    fn get(&self, task: &str, version: u64) -> ElicitationResponses {
        let kept = self.0.lock();
        let found = kept.iter().find(|(id, at, _)| id == task && *at == version);
        found.map(|(.., given)| given.clone()).unwrap_or_default()
    }

    fn keep(&self, task: &str, version: u64, given: ElicitationResponses) {
        let mut kept = self.0.lock();
        kept.retain(|(id, ..)| id != task);
        kept.push_back((task.to_owned(), version, given));
        let too_many = kept.len().saturating_sub(MAX_PARTIAL_TASKS);
        kept.drain(..too_many);
    }
}

/// Last message of the agent, or the reason of its end.
fn words(task: &Task) -> Option<String> {
    let said =
        || task.message.as_ref().map(|message| text_of(&message.parts)).filter(|text| !text.is_empty());
    let why = task.failure.as_ref().map(|failure| failure.message.clone());
    why.or_else(said).map(shortened)
}

fn completed(answer: ToolResult) -> TaskPayload {
    let marks = ResultMeta { server: Some(&SERVER_IDENTITY), ..answer.marks };
    let result = CallToolResult::from(ToolResult { marks, ..answer });
    TaskPayload::Completed { result: object(&result) }
}

fn failed(task: &Task) -> TaskPayload {
    let failure =
        task.failure.clone().unwrap_or_else(|| Failure::new(FailureKind::PeerFailed, "the task failed"));
    let failure = with_ids(failure, task);
    let is_protocols = failure.data.as_ref().is_some_and(|data| data.value().get("remoteCode").is_some());
    if failure.kind == FailureKind::PeerFailed && !is_protocols {
        return completed(errors::answer(&failure));
    }
    TaskPayload::Failed { error: object(&errors::error(&failure)) }
}

fn object<T: Serialize>(value: &T) -> JsonObject {
    match serde_json::to_value(value) {
        Ok(Value::Object(members)) => members,
        _ => JsonObject::new(),
    }
}
