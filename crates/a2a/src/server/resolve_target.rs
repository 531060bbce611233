//! Resolves the target of a message: the task that it continues, or a skill.

use std::{sync::Arc, time::Duration};

use futures::FutureExt;
use rialto_a2a_codec::{error::ErrorCode, request::SendRequest};
use rialto_engine::{DispatchRequest, hash_parts, message_hashes};
use rialto_model::{
    agent::Agent,
    call::{CallTarget, Caller, EntryProtocol},
    failure::Failure,
    ids::TaskId,
    message::text_of,
    routing::{MAX_DESCRIPTION_BYTES, WorkDescription},
    task::Task,
};
use serde::Deserialize;

use super::{error::ServiceError, render, request_context::A2aRequestContext, service::Service};

/// Maximum number of skills named in an error.
const MAX_NAMED_SKILLS: usize = 20;

/// Timeout for an agent to accept the task that a message continues.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(10);

/// Resolved target: a new task of a skill, or a task to continue.
pub(crate) struct ResolvedTarget {
    pub(crate) target: CallTarget,
    pub(crate) task: Option<Box<Task>>,
    /// Reserved id for the new task, under which work was promised.
    pub(crate) id: Option<TaskId>,
}

/// Result of resolving the target.
pub(crate) enum TargetOutcome {
    /// Target of the message.
    At(ResolvedTarget),
    /// Duplicate: this task has received the message before.
    Heard(TaskId),
}

/// Relation of a message to the task that it names.
enum TaskMatch {
    /// Continues the task.
    On(Box<Task>),
    /// Duplicate of a message of that task.
    Heard(TaskId),
    /// Starts a new task: the named one has ended, or this is the message that created it.
    Anew,
}

/// Dispatch options in the metadata of a message.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DispatchHints {
    work_type: String,
    required_skills: Vec<String>,
    input_modes: Vec<String>,
}

// === impl Service ===

impl Service {
    /// Resolves the target of a message.
    pub(crate) async fn aim(
        &self,
        visit: &A2aRequestContext,
        send: &SendRequest,
    ) -> Result<TargetOutcome, ServiceError> {
        match self.goes_on(visit, send).await? {
            TaskMatch::On(task) => {
                let target = self.engine.tasks().target(&visit.caller, task.head.id.as_str()).boxed().await?;
                return Ok(TargetOutcome::At(ResolvedTarget { target, task: Some(task), id: None }));
            }
            TaskMatch::Heard(task) => return Ok(TargetOutcome::Heard(task)),
            TaskMatch::Anew => {}
        }
        let target = match (&visit.agent, send.skill_id()) {
            (Some(agent), skill) => of_agent(agent, skill.as_deref())?,
            (None, Some(name)) => self.named(&visit.caller, &name).ok_or_else(|| {
                let message = format!("there is no skill \"{name}\"; {}", self.choices(&visit.caller));
                ServiceError::new(ErrorCode::InvalidParams, message)
            })?,
            (None, None) if self.routes(&visit.caller) => return self.choose(visit, send).boxed().await,
            (None, None) => self.without_skill(&visit.caller)?,
        };
        Ok(TargetOutcome::At(ResolvedTarget { target, task: None, id: None }))
    }

    /// True when repeated messages are deduplicated.
    pub(crate) fn is_once(&self, visit: &A2aRequestContext) -> bool {
        self.config.once_per_message || visit.door == EntryProtocol::A2aFirst
    }

    fn routes(&self, caller: &Caller) -> bool {
        self.engine.config().routing.routes_messages(caller.scope.org.as_str())
    }

    /// Selects an agent by the text of a message, with optional dispatch options in the metadata.
    async fn choose(
        &self,
        visit: &A2aRequestContext,
        send: &SendRequest,
    ) -> Result<TargetOutcome, ServiceError> {
        let beside = [send.message.metadata.as_ref(), send.metadata.as_ref()];
        let beside = beside.into_iter().flatten().find_map(|metadata| metadata.read::<DispatchHints>().ok());
        let DispatchHints { work_type, required_skills, input_modes } = beside.unwrap_or_default();
        let mut description = text_of(&send.message.parts);
        let end = description.char_indices().map(|(at, _)| at).find(|at| *at > MAX_DESCRIPTION_BYTES - 4);
        description.truncate(end.unwrap_or(description.len()));
        let work = WorkDescription { work_type, description, required_skills, input_modes };
        let parts = send.message.parts.clone();
        let wanted = DispatchRequest::new(visit.caller.clone(), visit.door, work, parts);
        let assigned = self.engine.dispatches().assign(wanted).await?;
        Ok(TargetOutcome::At(ResolvedTarget { target: assigned.target, task: None, id: Some(assigned.task) }))
    }

    /// Finds the task that a message continues, if it names one.
    async fn goes_on(
        &self,
        visit: &A2aRequestContext,
        send: &SendRequest,
    ) -> Result<TaskMatch, ServiceError> {
        if visit.door == EntryProtocol::A2aFirst {
            return match &send.task_id {
                Some(id) => self.goes_on_first(visit, send, id).boxed().await,
                None => Ok(TaskMatch::Anew),
            };
        }
        let Some(id) = send.message.task_id.as_ref().filter(|id| !id.is_empty()) else {
            return Ok(TaskMatch::Anew);
        };
        let task = self.find(visit, id).boxed().await?;
        if self.is_once(visit)
            && !send.message.id.is_empty()
            && self.engine.messages().is_in_task(&task, &send.message).await
        {
            return Ok(TaskMatch::Heard(task.head.id));
        }
        let task = self.taken(&visit.caller, task).boxed().await?;
        if task.head.state.is_terminal() {
            return Err(over(id, &task));
        }
        let context = send.message.context_id.as_ref().filter(|context| !context.is_empty());
        if context.is_some_and(|context| render::context(&task.head).as_ref() != Some(context)) {
            let message = format!("message.contextId: task {id} belongs to another context");
            return Err(ServiceError::new(ErrorCode::InvalidParams, message));
        }
        Ok(TaskMatch::On(Box::new(task)))
    }

    /// Variant for 0.1, whose messages have no ids: there the client's own task id begins a task, and continues it until it has ended.
    /// Rialto's id for a task that began otherwise only continues it.
    async fn goes_on_first(
        &self,
        visit: &A2aRequestContext,
        send: &SendRequest,
        id: &str,
    ) -> Result<TaskMatch, ServiceError> {
        let named = self.engine.messages().find_named_task(&visit.caller, id).await?;
        let is_own_name = named.is_some();
        let found = match named {
            Some(task) => Some(task),
            None => self.engine.tasks().find_by_id(&visit.caller, id).await?,
        };
        let is_asked = |task: &Task| visit.agent.as_ref().is_none_or(|agent| agent.id == task.head.agent);
        let Some(task) = found.filter(is_asked) else { return Ok(TaskMatch::Anew) };
        if task.head.state.is_waiting() {
            return Ok(TaskMatch::On(Box::new(task)));
        }
        let sent = hash_parts(&send.message.parts);
        let mut received = message_hashes(&task).into_iter();
        let is_first = received.next().is_some_and(|hash| hash == sent);
        if is_own_name && is_first {
            return Ok(TaskMatch::Anew);
        }
        if is_first || received.any(|hash| hash == sent) {
            return Ok(TaskMatch::Heard(task.head.id));
        }
        match (task.head.state.is_terminal(), is_own_name) {
            (false, _) => Ok(TaskMatch::On(Box::new(task))),
            (true, true) => Ok(TaskMatch::Anew),
            (true, false) => Err(over(id, &task)),
        }
    }

    /// Waits until the agent has accepted the task: before that it has no id to continue it by.
    async fn taken(&self, caller: &Caller, task: Task) -> Result<Task, ServiceError> {
        // A task that waits before its agent knows of it waits for an approval.
        let is_taken = |task: &Task| {
            let state = task.head.state;
            task.head.remote.task_id.is_some() || state.is_terminal() || state.is_waiting()
        };
        if is_taken(&task) || !task.head.agent_url.starts_with("http") {
            return Ok(task);
        }
        let (mut task, mut following) = self.engine.tasks().subscribe(caller, task.head.id.as_str()).await?;
        let over = async {
            while !is_taken(&task) {
                for recorded in following.next().await? {
                    task.apply(&recorded.event, recorded.at);
                }
            }
            Ok::<_, Failure>(())
        };
        // A task that is still not accepted is rejected by the engine.
        if let Ok(heard) = tokio::time::timeout(ACCEPT_TIMEOUT, over.boxed()).await {
            heard?;
        }
        Ok(task)
    }

    /// Target with a name: a skill, or else an agent without a skill.
    fn named(&self, caller: &Caller, name: &str) -> Option<CallTarget> {
        let skill = self.engine.calls().resolve(caller, name);
        skill.or_else(|| self.seen_agent(caller, name).map(whole))
    }

    /// Target of a message without a skill: the configured skill or agent, or the only skill.
    fn without_skill(&self, caller: &Caller) -> Result<CallTarget, ServiceError> {
        let default = self.config.default_skill.as_ref();
        if let Some(target) = default.and_then(|name| self.named(caller, name)) {
            return Ok(target);
        }
        let directory = self.engine.registry().directory(&caller.scope);
        let mut seen = directory.listed().map(rialto_engine::directory::Entry::target);
        let mut visible = seen.by_ref().filter(|target| self.engine.policies().may_discover(caller, target));
        match (visible.next(), visible.next()) {
            (Some(only), None) => Ok(only),
            _ => {
                let message = format!("the message names no skill: {}", self.choices(caller));
                Err(ServiceError::new(ErrorCode::InvalidParams, message))
            }
        }
    }

    /// Names of the available skills, for the error that asks to choose one.
    fn choices(&self, caller: &Caller) -> String {
        let directory = self.engine.registry().directory(&caller.scope);
        let listed =
            directory.listed().filter(|entry| self.engine.policies().may_discover(caller, &entry.target()));
        let mut names: Vec<&str> =
            listed.map(|entry| entry.canonical.as_str()).take(MAX_NAMED_SKILLS + 1).collect();
        let is_more = names.len() > MAX_NAMED_SKILLS;
        names.truncate(MAX_NAMED_SKILLS);
        match (names.as_slice(), is_more) {
            ([], _) => "there are no skills that you may see".to_owned(),
            (names, false) => format!("choose one of {} in metadata.skillId", names.join(", ")),
            (names, true) => format!("choose one in metadata.skillId, for example {}", names.join(", ")),
        }
    }
}

/// Error: a task that has ended accepts no more messages.
fn over(id: &str, task: &Task) -> ServiceError {
    let state = task.head.state;
    let message =
        format!("task {id} is {state} and takes no more messages; start another one in its context");
    ServiceError::new(ErrorCode::UnsupportedOperation, message)
}

/// Agent without a skill.
const fn whole(agent: Arc<Agent>) -> CallTarget {
    CallTarget { agent, skill: None }
}

/// Target at one agent: a skill by the agent's own id, or none.
fn of_agent(agent: &Arc<Agent>, skill: Option<&str>) -> Result<CallTarget, ServiceError> {
    let Some(id) = skill else { return Ok(whole(Arc::clone(agent))) };
    let own = id.strip_prefix(agent.slug.as_str()).and_then(|rest| rest.strip_prefix('.'));
    let known = agent.card.skill(id).or_else(|| agent.card.skill(own?));
    let skill = known.ok_or_else(|| {
        let names: Vec<&str> =
            agent.card.skills.iter().map(|skill| skill.id.as_str()).take(MAX_NAMED_SKILLS).collect();
        let message = format!("agent {} has no skill \"{id}\"; it has {}", agent.slug, names.join(", "));
        ServiceError::new(ErrorCode::InvalidParams, message)
    })?;
    Ok(CallTarget { agent: Arc::clone(agent), skill: Some(Arc::clone(skill)) })
}
