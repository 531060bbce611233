//! When an agent wants to know something, the person at the client is asked, in the form that the client has for it.
//!
//! A task that waits becomes an [`Inquiry`]: one or more questions, each of them what MCP calls an elicitation. How they travel
//! differs: since 2026-07-28 they are the result of the call, and the client calls again with the answers; before that they are
//! requests of ours. What is done with the answers is the same: they go to the agent in the same task.
//!
//! A client that cannot ask its person gets the question as a result, as everybody can (`render`).

mod form;
mod question;
mod reading;
mod state;

pub(crate) use self::{
    question::{Inquiry, Question},
    state::Seals,
};

use std::{collections::BTreeMap, time::Duration};

use rialto_engine::{Engine, Request};
use rialto_model::{
    call::Caller,
    event::Remote,
    failure::{Failure, Kind},
    json::Json,
    message::Part,
    rights::Right,
    task::{Task, TaskState},
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
    reading::Reading,
    state::{Binding, State},
};
use crate::{
    answer::{self, Answer, Marks},
    client::Client,
    desk::{Begun, Desk, may},
    render, tool, trouble,
    underway::{Manner, Underway},
};

/// The answers of a client, by the keys of the questions.
pub(crate) type Responses = BTreeMap<String, Value>;

/// How long an agent that waited for a login may take to notice it, before it is told.
const NOTICES: Duration = Duration::from_secs(2);

/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(250);

/// Somebody who waits for a person.
pub(crate) struct Waiting(Option<(Engine, Caller, String)>, Handle);

// === impl Waiting ===

impl Waiting {
    /// The person has answered, or will not.
    pub(crate) fn over(mut self) {
        self.0 = None;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some((engine, caller, task)) = self.0.take() else { return };
        self.1.spawn(async move {
            if let Err(failure) = engine.cancel(&caller, &task).await {
                let class = failure.kind.class();
                tracing::warn!(task.id = task, "task {task} was not called off at the agent: {class}");
            }
        });
    }
}

// === impl Desk ===

impl Desk {
    /// An inquiry as the result of a call of 2026-07-28.
    pub(crate) async fn ask(&self, inquiry: &Inquiry) -> Result<InputRequiredResult, ErrorData> {
        let requests: InputRequests = inquiry
            .open()
            .map(|question| {
                let request = ElicitRequest::new(question.params.clone());
                (question.key.clone(), InputRequest::Elicitation(request))
            })
            .collect();
        let head = &inquiry.task.head;
        let seconds = i64::try_from(self.config.question_ttl_secs).unwrap_or(i64::MAX);
        let state = State {
            task: head.id.to_string(),
            version: head.version,
            until: self.engine.now().as_second().saturating_add(seconds),
            is_login: head.state == TaskState::AuthRequired,
            given: inquiry.given.clone(),
        };
        let sealed = self.seals.seal(&self.engine, &state, Binding::of(&inquiry.task)).await;
        let sealed = sealed.map_err(|failure| trouble::error(&failure))?;
        let mut result = InputRequiredResult::new(Some(requests), Some(sealed));
        result.meta = answer::as_meta(&Marks { server: Some(&answer::SERVER), ..Marks::of(&inquiry.task) });
        Ok(result)
    }

    /// Goes on with a call whose client was asked something. Nothing changes unless the state is one that we gave to this
    /// caller for this tool, and its question is still open.
    pub(crate) async fn go_on(
        &self,
        client: &Client,
        name: &str,
        sealed: &str,
        responses: Responses,
    ) -> Result<Begun, ErrorData> {
        may(client, Right::Call)?;
        self.engine.sync().await.map_err(|failure| trouble::error(&failure))?;
        let Some(target) = self.find(&client.caller, name) else {
            return Err(self.no_such_tool(client, name));
        };
        let binding = Binding::to(&client.caller, &target);
        // What is wrong with a state is not for the model to read.
        let state = self.seals.open(&self.engine, sealed, binding).await;
        let state = state.map_err(|failure| trouble::error(&failure))?;
        let begun = self.resume(client, state, responses).await;
        begun.or_else(|failure| trouble::told(&failure, client.errors).map(Begun::Done))
    }

    async fn resume(&self, client: &Client, state: State, responses: Responses) -> Result<Begun, Failure> {
        let task = if state.is_login {
            self.engine.task(&client.caller, &state.task).await?
        } else {
            self.engine.look(&client.caller, &state.task).await?
        };
        let is_still_asked = task.head.version == state.version;
        match task.head.state {
            TaskState::AuthRequired | TaskState::InputRequired if !is_still_asked => {
                // It asks something else by now, so nobody has answered that yet.
                Ok(self.asked_or_told(client, &task))
            }
            TaskState::AuthRequired | TaskState::InputRequired => {
                let Some(mut inquiry) = Inquiry::of(&task, client.abilities, client.fluency) else {
                    return Ok(Begun::Done(self.told(client, &task)));
                };
                inquiry.given = state.given;
                self.answer(client, inquiry, responses).await
            }
            _ if state.is_login => self.moved_on(client, task).await,
            _ => Err(answered_before(&task)),
        }
    }

    /// Does what the answers to an inquiry say.
    pub(crate) async fn answer(
        &self,
        client: &Client,
        mut inquiry: Inquiry,
        responses: Responses,
    ) -> Result<Begun, Failure> {
        match reading::read(&mut inquiry, responses)? {
            Reading::Incomplete => Ok(Begun::Asked(Box::new(inquiry))),
            Reading::LoggedIn => self.logged_in(client, &inquiry.task).await,
            Reading::Said(parts) => self.say(client, &inquiry.task, parts).await,
            Reading::Unanswered(why) => Ok(Begun::Done(unanswered(self.told(client, &inquiry.task), why))),
        }
    }

    /// Says something in a task that waits for it.
    async fn say(&self, client: &Client, task: &Task, parts: Vec<Part>) -> Result<Begun, Failure> {
        let id = task.head.id.as_str();
        let target = self.engine.worker(&client.caller, id).await?;
        let mut request = Request::message(client.caller.clone(), client.door, target, parts);
        (request.task, request.answers) = (Some(id.to_owned()), Some(task.head.version));
        self.begin(client, request, Manner::Skill).await
    }

    /// The person has logged in, or is about to. Many agents notice that by themselves; one that does not is told.
    async fn logged_in(&self, client: &Client, task: &Task) -> Result<Begun, Failure> {
        let until = Instant::now() + NOTICES;
        loop {
            let task = self.engine.task(&client.caller, task.head.id.as_str()).await?;
            if task.head.state != TaskState::AuthRequired {
                return self.moved_on(client, task).await;
            }
            if Instant::now() >= until {
                return self.say(client, &task, vec![Part::text("The login is done.")]).await;
            }
            sleep(LOOK).await;
        }
    }

    /// A task that went on by itself.
    async fn moved_on(&self, client: &Client, task: Task) -> Result<Begun, Failure> {
        if task.head.state.is_waiting() {
            return Ok(self.asked_or_told(client, &task));
        }
        if let Some(failure) = &task.failure {
            return Err(with_ids(failure.clone(), &task));
        }
        if task.head.state.is_terminal() {
            return Ok(Begun::Done(self.told(client, &task)));
        }
        let running = self.engine.rejoin(&client.caller, task.head.id.as_str()).await?;
        let agent = crate::own::address(&self.engine, &task);
        let patience = client.abilities.tasks.then(|| Duration::from_millis(self.config.task_after_ms));
        let call = Underway::new(self.engine.clone(), client, agent, running, Manner::Skill);
        Ok(Begun::Underway(Box::new(call.with_patience(patience))))
    }

    fn asked_or_told(&self, client: &Client, task: &Task) -> Begun {
        match Inquiry::of(task, client.abilities, client.fluency) {
            Some(inquiry) => Begun::Asked(Box::new(inquiry)),
            None => Begun::Done(self.told(client, task)),
        }
    }

    /// Calls a task off when its client goes away while its person is asked.
    pub(crate) fn waiting(&self, client: &Client, inquiry: &Inquiry) -> Waiting {
        let task = inquiry.task.head.id.to_string();
        Waiting(Some((self.engine.clone(), client.caller.clone(), task)), Handle::current())
    }

    /// A task as everybody can be told of it.
    pub(crate) fn told(&self, client: &Client, task: &Task) -> Answer {
        let agent = self.engine.registry().get(&task.head.agent);
        let promises = || {
            let agent = agent.as_ref()?;
            let skill = task.head.skill.as_ref().and_then(|id| agent.card.skill(id.as_str()))?;
            Some(tool::promises(agent, skill))
        };
        let reader = client.reader();
        let reader = agent.as_ref().map_or(reader, |agent| reader.of_backing(&agent.backing));
        let reader = if promises().unwrap_or(false) { reader.promised() } else { reader };
        render::result(task, &crate::own::address(&self.engine, task), reader).read_by(reader)
    }
}

fn answered_before(task: &Task) -> Failure {
    let (id, state) = (&task.head.id, task.head.state);
    let message = format!(
        "this question was answered before, and task {id} is {state}; get_task with that task id tells what came of it"
    );
    with_ids(Failure::new(Kind::Conflict, message), task)
}

/// The failure's facts, and what is needed to find its task again.
pub(crate) fn with_ids(failure: Failure, task: &Task) -> Failure {
    let mut data = failure.data.as_ref().map_or_else(|| json!({}), Json::value);
    if let Some(members) = data.as_object_mut() {
        members.insert("taskId".to_owned(), json!(task.head.id));
        members.insert("state".to_owned(), json!(task.head.state));
        let Remote { task_id, context_id } = &task.head.remote;
        members.extend(task_id.iter().map(|id| ("remoteTaskId".to_owned(), json!(id))));
        members.extend(context_id.iter().map(|id| ("contextId".to_owned(), json!(id))));
    }
    failure.with_data(Json::of(&data))
}

/// The question of a task that keeps waiting, led by why it has no answer.
fn unanswered(question: Answer, why: &str) -> Answer {
    let mut answer = Answer::text(format!("{why}, so the agent got no answer and the task keeps waiting."));
    answer.content.extend(question.content);
    Answer { content: answer.content, ..question }
}
