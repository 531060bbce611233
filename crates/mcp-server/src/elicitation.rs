//! Elicitation: asks the person at the client when an agent needs input, in the way that the client supports.
//!
//! A waiting task becomes a [`QuestionSet`]: one or more questions, each an elicitation in MCP's terms. The transport differs: since
//! 2026-07-28 the questions are the result of the call, and the client calls again with the answers; before that each question is a
//! server request. Either way the answers go to the agent in the same task.
//!
//! A client without elicitation gets the question as an ordinary result (`render`).

mod form;
mod parse_answers;
mod question;
mod sealed_state;

pub(crate) use self::{
    question::{ElicitationQuestion, QuestionSet},
    sealed_state::StateSealer,
};

use std::{collections::BTreeMap, time::Duration};

use rialto_engine::{CallRequest, Engine};
use rialto_model::{
    call::Caller,
    event::RemoteIds,
    failure::{Failure, FailureKind},
    json::Json,
    message::Part,
    task::{Task, TaskState},
    token_scopes::TokenScope,
};
use rmcp::{
    ErrorData,
    model::{ElicitRequest, InputRequest, InputRequests, InputRequiredResult},
};
use serde_json::{Value, json};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep},
};

use self::{
    parse_answers::AnswerOutcome,
    sealed_state::{QuestionState, StateBinding},
};
use crate::{
    call_stream::{ResultStyle, ToolCallStream},
    client_profile::ClientProfile,
    errors, render, tool,
    tool_result::{self, ResultMeta, ToolResult},
    tool_service::{ToolCallStart, ToolService, may},
};

/// Answers of a client, by question key.
pub(crate) type ElicitationResponses = BTreeMap<String, Value>;

/// Time that an agent waiting for a login gets to notice it before Rialto sends it a message.
const LOGIN_NOTICE_TIMEOUT: Duration = Duration::from_secs(2);

/// Poll interval during that time.
const LOGIN_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Cancels the task if the client disconnects while its person is being asked.
pub(crate) struct CancelTaskOnDrop(Option<(Engine, Caller, String)>, Handle);

// === impl CancelTaskOnDrop ===

impl CancelTaskOnDrop {
    /// Disarms the guard: the person has answered or declined.
    pub(crate) fn over(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelTaskOnDrop {
    fn drop(&mut self) {
        let Some((engine, caller, task)) = self.0.take() else { return };
        self.1.spawn(async move {
            if let Err(failure) = engine.tasks().cancel(&caller, &task).await {
                let class = failure.kind.class();
                tracing::warn!(task.id = task, "task {task} could not be cancelled at the agent: {class}");
            }
        });
    }
}

// === impl ToolService ===

impl ToolService {
    /// Encodes questions as the `input_required` result of a 2026-07-28 call.
    pub(crate) async fn ask(&self, inquiry: &QuestionSet) -> Result<InputRequiredResult, ErrorData> {
        let requests: InputRequests = inquiry
            .open()
            .map(|question| {
                let request = ElicitRequest::new(question.params.clone());
                (question.key.clone(), InputRequest::Elicitation(request))
            })
            .collect();
        let head = &inquiry.task.head;
        let seconds = i64::try_from(self.config.question_ttl_secs).unwrap_or(i64::MAX);
        let state = QuestionState {
            task: head.id.to_string(),
            version: head.version,
            until: self.engine.now().as_second().saturating_add(seconds),
            is_login: head.state == TaskState::AuthRequired,
            given: inquiry.given.clone(),
        };
        let sealed = self.seals.seal(&self.engine, &state, StateBinding::of(&inquiry.task)).await;
        let sealed = sealed.map_err(|failure| errors::error(&failure))?;
        let mut result = InputRequiredResult::new(Some(requests), Some(sealed));
        result.meta = tool_result::as_meta(&ResultMeta {
            server: Some(&tool_result::SERVER_IDENTITY),
            ..ResultMeta::of(&inquiry.task)
        });
        Ok(result)
    }

    /// Resumes a call whose client was asked questions. Nothing changes unless the state was issued to this caller for this tool and its
    /// question is still open.
    pub(crate) async fn go_on(
        &self,
        client: &ClientProfile,
        name: &str,
        sealed: &str,
        responses: ElicitationResponses,
    ) -> Result<ToolCallStart, ErrorData> {
        may(client, TokenScope::Call)?;
        self.engine.policies().sync().await.map_err(|failure| errors::error(&failure))?;
        let Some(target) = self.find(&client.caller, name) else {
            return Err(self.no_such_tool(client, name));
        };
        let binding = StateBinding::to(&client.caller, &target);
        // A tampered state is not reported to the model.
        let state = self.seals.open(&self.engine, sealed, binding).await;
        let state = state.map_err(|failure| errors::error(&failure))?;
        let begun = self.resume(client, state, responses).await;
        begun.or_else(|failure| errors::told(&failure, client.errors).map(ToolCallStart::Done))
    }

    async fn resume(
        &self,
        client: &ClientProfile,
        state: QuestionState,
        responses: ElicitationResponses,
    ) -> Result<ToolCallStart, Failure> {
        let task = if state.is_login {
            self.engine.tasks().get(&client.caller, &state.task).await?
        } else {
            self.engine.tasks().read(&client.caller, &state.task).await?
        };
        let is_still_asked = task.head.version == state.version;
        match task.head.state {
            TaskState::AuthRequired | TaskState::InputRequired if !is_still_asked => {
                // The task asks another question by now, so these answers are for an old one.
                Ok(self.asked_or_told(client, &task))
            }
            TaskState::AuthRequired | TaskState::InputRequired => {
                let Some(mut inquiry) = QuestionSet::of(&task, client.abilities, client.fluency) else {
                    return Ok(ToolCallStart::Done(self.told(client, &task)));
                };
                inquiry.given = state.given;
                self.answer(client, inquiry, responses).await
            }
            _ if state.is_login => self.moved_on(client, task).await,
            _ => Err(answered_before(&task)),
        }
    }

    /// Applies the answers to a set of questions.
    pub(crate) async fn answer(
        &self,
        client: &ClientProfile,
        mut inquiry: QuestionSet,
        responses: ElicitationResponses,
    ) -> Result<ToolCallStart, Failure> {
        match parse_answers::read(&mut inquiry, responses)? {
            AnswerOutcome::Incomplete => Ok(ToolCallStart::Asked(Box::new(inquiry))),
            AnswerOutcome::LoggedIn => self.logged_in(client, &inquiry.task).await,
            AnswerOutcome::Said(parts) => self.say(client, &inquiry.task, parts).await,
            AnswerOutcome::Unanswered(why) => {
                Ok(ToolCallStart::Done(unanswered(self.told(client, &inquiry.task), why)))
            }
        }
    }

    /// Sends a message to a waiting task.
    async fn say(
        &self,
        client: &ClientProfile,
        task: &Task,
        parts: Vec<Part>,
    ) -> Result<ToolCallStart, Failure> {
        let id = task.head.id.as_str();
        let target = self.engine.tasks().target(&client.caller, id).await?;
        let mut request = CallRequest::message(client.caller.clone(), client.door, target, parts);
        (request.task, request.answers) = (Some(id.to_owned()), Some(task.head.version));
        self.begin(client, request, ResultStyle::Skill).await
    }

    /// Continues after a login. Many agents notice a login by themselves; the others get a message.
    async fn logged_in(&self, client: &ClientProfile, task: &Task) -> Result<ToolCallStart, Failure> {
        let until = Instant::now() + LOGIN_NOTICE_TIMEOUT;
        loop {
            let task = self.engine.tasks().get(&client.caller, task.head.id.as_str()).await?;
            if task.head.state != TaskState::AuthRequired {
                return self.moved_on(client, task).await;
            }
            if Instant::now() >= until {
                return self.say(client, &task, vec![Part::text("The login is done.")]).await;
            }
            sleep(LOGIN_POLL_INTERVAL).await;
        }
    }

    /// Result of a task that resumed by itself.
    async fn moved_on(&self, client: &ClientProfile, task: Task) -> Result<ToolCallStart, Failure> {
        if task.head.state.is_waiting() {
            return Ok(self.asked_or_told(client, &task));
        }
        if let Some(failure) = &task.failure {
            return Err(with_ids(failure.clone(), &task));
        }
        if task.head.state.is_terminal() {
            return Ok(ToolCallStart::Done(self.told(client, &task)));
        }
        let running = self.engine.calls().follow_remote(&client.caller, task.head.id.as_str()).await?;
        let agent = crate::builtin_tools::address(&self.engine, &task);
        let patience = client.abilities.tasks.then(|| Duration::from_millis(self.config.task_after_ms));
        let call = ToolCallStream::new(self.engine.clone(), client, agent, running, ResultStyle::Skill);
        Ok(ToolCallStart::Underway(Box::new(call.with_patience(patience))))
    }

    fn asked_or_told(&self, client: &ClientProfile, task: &Task) -> ToolCallStart {
        match QuestionSet::of(task, client.abilities, client.fluency) {
            Some(inquiry) => ToolCallStart::Asked(Box::new(inquiry)),
            None => ToolCallStart::Done(self.told(client, task)),
        }
    }

    /// Guard that cancels the task if the client disconnects while its person is asked.
    pub(crate) fn waiting(&self, client: &ClientProfile, inquiry: &QuestionSet) -> CancelTaskOnDrop {
        let task = inquiry.task.head.id.to_string();
        CancelTaskOnDrop(Some((self.engine.clone(), client.caller.clone(), task)), Handle::current())
    }

    /// Renders a task for clients without elicitation.
    pub(crate) fn told(&self, client: &ClientProfile, task: &Task) -> ToolResult {
        let agent = self.engine.registry().get(&task.head.agent);
        let promises = || {
            let agent = agent.as_ref()?;
            let skill = task.head.skill.as_ref().and_then(|id| agent.card.skill(id.as_str()))?;
            Some(tool::promises(agent, skill))
        };
        let reader = client.reader();
        let reader = agent.as_ref().map_or(reader, |agent| reader.of_backing(&agent.backing));
        let reader = if promises().unwrap_or(false) { reader.promised() } else { reader };
        render::result(task, &crate::builtin_tools::address(&self.engine, task), reader).read_by(reader)
    }
}

fn answered_before(task: &Task) -> Failure {
    let (id, state) = (&task.head.id, task.head.state);
    let message = format!(
        "this question was answered before, and task {id} is {state}; get_task with that task id tells what came of it"
    );
    with_ids(Failure::new(FailureKind::Conflict, message), task)
}

/// Adds the task and conversation ids to a failure, so that the client can find the task again.
pub(crate) fn with_ids(failure: Failure, task: &Task) -> Failure {
    let mut data = failure.data.as_ref().map_or_else(|| json!({}), Json::value);
    if let Some(members) = data.as_object_mut() {
        members.insert("taskId".to_owned(), json!(task.head.id));
        members.insert("state".to_owned(), json!(task.head.state));
        let RemoteIds { task_id, context_id } = &task.head.remote;
        members.extend(task_id.iter().map(|id| ("remoteTaskId".to_owned(), json!(id))));
        members.extend(context_id.iter().map(|id| ("contextId".to_owned(), json!(id))));
    }
    failure.with_data(Json::encode(&data))
}

/// Question of a task that keeps waiting, preceded by the reason why there is no answer.
fn unanswered(question: ToolResult, why: &str) -> ToolResult {
    let mut answer =
        ToolResult::text(format!("{why}, so the agent got no answer and the task keeps waiting."));
    answer.content.extend(question.content);
    ToolResult { content: answer.content, ..question }
}
