//! Calls that take long become tasks, for clients that declare MCP's extension for them.
//!
//! The task is the one in the journal, under the same id: so it outlives this process, whoever works on it, and no caller sees another's.
//! A tool that ran and failed has completed, as the extension wants it; what failed without the tool's doing has failed.

use std::{collections::VecDeque, time::Duration};

use parking_lot::Mutex;
use rialto_model::{
    failure::{Failure, Kind},
    message::text_of,
    rights::Right,
    task::{Task, TaskState},
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
    answer::{self, Answer, Marks, SERVER},
    asking::{Inquiry, Responses, with_ids},
    client::Client,
    desk::{Begun, Desk, may},
    progress::shortened,
    trouble,
    underway::{Note, Underway},
};

/// So many tasks may have been answered in part.
const IN_PART: usize = 1_024;

/// Answers to some of the questions of a task, until all of them are there.
#[derive(Default)]
pub(crate) struct InPart(Mutex<VecDeque<(String, u64, Responses)>>);

// === impl Desk ===

impl Desk {
    /// Waits a while for a call. When it takes longer, it is handed over to those who ask for it, and this is its task.
    pub(crate) async fn or_task(
        &self,
        client: &Client,
        mut call: Box<Underway>,
        patience: Duration,
    ) -> Result<Result<Note, CreateTaskResult>, ErrorData> {
        if let Some(note) = call.settled_within(patience).await {
            return Ok(Ok(note));
        }
        let id = call.hand_over();
        let task = self.engine.look(&client.caller, id.as_str()).await;
        let task = task.map_err(|failure| trouble::error(&failure))?;
        let meta = answer::as_meta(&Marks { server: Some(&SERVER), ..Marks::of(&task) }).unwrap_or_default();
        Ok(Err(CreateTaskResult::new(self.shown(client, &task).task).with_meta(meta)))
    }

    /// `tasks/get`: how a task stands, with its result or its questions.
    pub(crate) async fn get_task(&self, client: &Client, id: &str) -> Result<DetailedTask, ErrorData> {
        may(client, Right::Call)?;
        let task = self.engine.task(&client.caller, id).await;
        let task = task.map_err(|failure| trouble::error(&failure))?;
        Ok(self.shown(client, &task))
    }

    /// `tasks/update`: takes answers to the questions of a task. When it has them all, the task goes on.
    pub(crate) async fn update_task(
        &self,
        client: &Client,
        id: &str,
        responses: Responses,
    ) -> Result<(), ErrorData> {
        may(client, Right::Call)?;
        self.take_answers(client, id, responses).await.map_err(|failure| trouble::error(&failure))
    }

    /// `tasks/cancel`: calls a task off. One that is over stays as it is.
    pub(crate) async fn cancel_task(&self, client: &Client, id: &str) -> Result<(), ErrorData> {
        may(client, Right::Call)?;
        match self.engine.cancel(&client.caller, id).await {
            Ok(_) => Ok(()),
            Err(failure) if failure.kind == Kind::Conflict => Ok(()),
            Err(failure) => Err(trouble::error(&failure)),
        }
    }

    async fn take_answers(&self, client: &Client, id: &str, responses: Responses) -> Result<(), Failure> {
        let task = self.engine.look(&client.caller, id).await?;
        let version = task.head.version;
        let Some(mut inquiry) = self.inquiry(client, &task) else { return Ok(()) };
        inquiry.given.extend(responses);
        let given = std::mem::take(&mut inquiry.given);
        match self.answer(client, inquiry, given).await? {
            Begun::Asked(inquiry) if inquiry.task.head.version == version => {
                self.in_part.keep(task.head.id.as_str(), version, inquiry.given);
            }
            // It goes on by itself.
            Begun::Underway(mut call) => drop(call.hand_over()),
            Begun::Asked(_) | Begun::Done(_) => {}
        }
        Ok(())
    }

    /// What a task asks, without what was answered already.
    fn inquiry(&self, client: &Client, task: &Task) -> Option<Inquiry> {
        let mut inquiry = Inquiry::of(task, client.abilities, client.fluency)?.in_task();
        inquiry.given = self.in_part.get(task.head.id.as_str(), task.head.version);
        Some(inquiry)
    }

    /// A task as its client sees it.
    pub(crate) fn shown(&self, client: &Client, task: &Task) -> DetailedTask {
        let head = &task.head;
        let (created, updated) = (head.created_at.to_string(), head.updated_at.to_string());
        let mut shown = Shown::new(head.id.as_str(), TaskStatus::Working, created, updated)
            .with_poll_interval_ms(self.config.task_poll_ms.max(1));
        shown.ttl_ms = self.config.task_ttl_ms;
        shown.status_message = words(task);
        DetailedTask::new(shown, self.payload(client, task))
    }

    fn payload(&self, client: &Client, task: &Task) -> TaskPayload {
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
                // This client has nobody to ask: the question is the result, as of a call that is waited for.
                None => completed(self.told(client, task)),
            },
            TaskState::Completed => completed(self.told(client, task)),
            TaskState::Canceled => TaskPayload::Cancelled,
            TaskState::Failed | TaskState::Rejected => failed(task),
        }
    }
}

// === impl InPart ===

impl InPart {
    fn get(&self, task: &str, version: u64) -> Responses {
        let kept = self.0.lock();
        let found = kept.iter().find(|(id, at, _)| id == task && *at == version);
        found.map(|(.., given)| given.clone()).unwrap_or_default()
    }

    fn keep(&self, task: &str, version: u64, given: Responses) {
        let mut kept = self.0.lock();
        kept.retain(|(id, ..)| id != task);
        kept.push_back((task.to_owned(), version, given));
        let too_many = kept.len().saturating_sub(IN_PART);
        kept.drain(..too_many);
    }
}

/// The last words of the agent, or why it ended.
fn words(task: &Task) -> Option<String> {
    let said =
        || task.message.as_ref().map(|message| text_of(&message.parts)).filter(|text| !text.is_empty());
    let why = task.failure.as_ref().map(|failure| failure.message.clone());
    why.or_else(said).map(shortened)
}

fn completed(answer: Answer) -> TaskPayload {
    let marks = Marks { server: Some(&SERVER), ..answer.marks };
    let result = CallToolResult::from(Answer { marks, ..answer });
    TaskPayload::Completed { result: object(&result) }
}

fn failed(task: &Task) -> TaskPayload {
    let failure = task.failure.clone().unwrap_or_else(|| Failure::new(Kind::PeerFailed, "the task failed"));
    let failure = with_ids(failure, task);
    let is_protocols = failure.data.as_ref().is_some_and(|data| data.value().get("remoteCode").is_some());
    if failure.kind == Kind::PeerFailed && !is_protocols {
        return completed(trouble::answer(&failure));
    }
    TaskPayload::Failed { error: object(&trouble::error(&failure)) }
}

fn object<T: Serialize>(value: &T) -> JsonObject {
    match serde_json::to_value(value) {
        Ok(Value::Object(members)) => members,
        _ => JsonObject::new(),
    }
}
