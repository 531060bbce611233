//! Whom a message is for: the task that it goes on with, or a skill.

use std::{sync::Arc, time::Duration};

use futures::FutureExt;
use rialto_a2a_wire::{error::Code, request::SendRequest};
use rialto_engine::{DispatchRequest, hash_parts, message_hashes};
use rialto_model::{
    agent::Agent,
    call::{Caller, Door, Target},
    failure::Failure,
    ids::TaskId,
    message::text_of,
    routing::{LONGEST_DESCRIPTION, Work},
    task::Task,
};
use serde::Deserialize;

use super::{incoming::Visit, render, service::Service, trouble::Trouble};

/// How many skills an error names, so that the caller can choose one.
const NAMED: usize = 20;

/// How long a message waits for the agent to take the task that it goes on with.
const TAKING: Duration = Duration::from_secs(10);

/// What a message wants: a task of its own, or to go on with one.
pub(crate) struct Aim {
    pub(crate) target: Target,
    pub(crate) task: Option<Box<Task>>,
    /// The id that a new task must have, because somebody was promised work under it.
    pub(crate) id: Option<TaskId>,
}

/// What became of a message before anybody is asked to work.
pub(crate) enum Aimed {
    /// It is for somebody.
    At(Aim),
    /// This task has heard it before.
    Heard(TaskId),
}

/// How a message stands to the task that it names.
enum Named {
    /// It goes on with it.
    On(Box<Task>),
    /// It was said there before.
    Heard(TaskId),
    /// The task is over, or it is the message that began it: it is looked at as one that begins a task.
    Anew,
}

/// What a message may say about the work in its metadata.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Beside {
    work_type: String,
    required_skills: Vec<String>,
    input_modes: Vec<String>,
}

// === impl Service ===

impl Service {
    /// Who shall do what a message asks for.
    pub(crate) async fn aim(&self, visit: &Visit, send: &SendRequest) -> Result<Aimed, Trouble> {
        match self.goes_on(visit, send).await? {
            Named::On(task) => {
                let target = self.engine.worker(&visit.caller, task.head.id.as_str()).boxed().await?;
                return Ok(Aimed::At(Aim { target, task: Some(task), id: None }));
            }
            Named::Heard(task) => return Ok(Aimed::Heard(task)),
            Named::Anew => {}
        }
        let target = match (&visit.agent, send.skill_id()) {
            (Some(agent), skill) => of_agent(agent, skill.as_deref())?,
            (None, Some(name)) => self.named(&visit.caller, &name).ok_or_else(|| {
                let message = format!("there is no skill \"{name}\"; {}", self.choices(&visit.caller));
                Trouble::new(Code::InvalidParams, message)
            })?,
            (None, None) if self.routes(&visit.caller) => return self.choose(visit, send).boxed().await,
            (None, None) => self.without_skill(&visit.caller)?,
        };
        Ok(Aimed::At(Aim { target, task: None, id: None }))
    }

    /// Whether a message that comes again is the same one for us.
    pub(crate) fn is_once(&self, visit: &Visit) -> bool {
        self.config.once_per_message || visit.door == Door::A2aFirst
    }

    fn routes(&self, caller: &Caller) -> bool {
        self.engine.config().routing.routes_messages(caller.scope.org.as_str())
    }

    /// Whoever does best what a message says. Who wants to say more about the work says it in the metadata.
    async fn choose(&self, visit: &Visit, send: &SendRequest) -> Result<Aimed, Trouble> {
        let beside = [send.message.metadata.as_ref(), send.metadata.as_ref()];
        let beside = beside.into_iter().flatten().find_map(|metadata| metadata.read::<Beside>().ok());
        let Beside { work_type, required_skills, input_modes } = beside.unwrap_or_default();
        let mut description = text_of(&send.message.parts);
        let end = description.char_indices().map(|(at, _)| at).find(|at| *at > LONGEST_DESCRIPTION - 4);
        description.truncate(end.unwrap_or(description.len()));
        let work = Work { work_type, description, required_skills, input_modes };
        let parts = send.message.parts.clone();
        let wanted = DispatchRequest::new(visit.caller.clone(), visit.door, work, parts);
        let assigned = self.engine.assign(wanted).await?;
        Ok(Aimed::At(Aim { target: assigned.target, task: None, id: Some(assigned.task) }))
    }

    /// The task that a message goes on with, if it names one.
    async fn goes_on(&self, visit: &Visit, send: &SendRequest) -> Result<Named, Trouble> {
        if visit.door == Door::A2aFirst {
            return match &send.task_id {
                Some(id) => self.goes_on_first(visit, send, id).boxed().await,
                None => Ok(Named::Anew),
            };
        }
        let Some(id) = send.message.task_id.as_ref().filter(|id| !id.is_empty()) else {
            return Ok(Named::Anew);
        };
        let task = self.find(visit, id).boxed().await?;
        if self.is_once(visit) && !send.message.id.is_empty() && self.engine.heard(&task, &send.message).await
        {
            return Ok(Named::Heard(task.head.id));
        }
        let task = self.taken(&visit.caller, task).boxed().await?;
        if task.head.state.is_terminal() {
            return Err(over(id, &task));
        }
        let context = send.message.context_id.as_ref().filter(|context| !context.is_empty());
        if context.is_some_and(|context| render::context(&task.head).as_ref() != Some(context)) {
            let message = format!("message.contextId: task {id} belongs to another context");
            return Err(Trouble::new(Code::InvalidParams, message));
        }
        Ok(Named::On(Box::new(task)))
    }

    /// The same in 0.1, whose messages have no names: there the client's own name begins a task, and goes on with it while it is
    /// not over. Our name for one that it began otherwise only goes on.
    async fn goes_on_first(&self, visit: &Visit, send: &SendRequest, id: &str) -> Result<Named, Trouble> {
        let named = self.engine.named_task(&visit.caller, id).await?;
        let is_own_name = named.is_some();
        let found = match named {
            Some(task) => Some(task),
            None => self.engine.look_by_id(&visit.caller, id).await?,
        };
        let is_asked = |task: &Task| visit.agent.as_ref().is_none_or(|agent| agent.id == task.head.agent);
        let Some(task) = found.filter(is_asked) else { return Ok(Named::Anew) };
        if task.head.state.is_waiting() {
            return Ok(Named::On(Box::new(task)));
        }
        let sent = hash_parts(&send.message.parts);
        let mut received = message_hashes(&task).into_iter();
        let is_first = received.next().is_some_and(|hash| hash == sent);
        if is_own_name && is_first {
            return Ok(Named::Anew);
        }
        if is_first || received.any(|hash| hash == sent) {
            return Ok(Named::Heard(task.head.id));
        }
        match (task.head.state.is_terminal(), is_own_name) {
            (false, _) => Ok(Named::On(Box::new(task))),
            (true, true) => Ok(Named::Anew),
            (true, false) => Err(over(id, &task)),
        }
    }

    /// The same task once its agent has taken it: it cannot be asked to go on with what it has no name for.
    async fn taken(&self, caller: &Caller, task: Task) -> Result<Task, Trouble> {
        // One that waits before its agent knows of it waits for somebody's approval.
        let is_taken = |task: &Task| {
            let state = task.head.state;
            task.head.remote.task_id.is_some() || state.is_terminal() || state.is_waiting()
        };
        if is_taken(&task) || !task.head.agent_url.starts_with("http") {
            return Ok(task);
        }
        let (mut task, mut following) = self.engine.follow(caller, task.head.id.as_str()).await?;
        let over = async {
            while !is_taken(&task) {
                for recorded in following.next().await? {
                    task.apply(&recorded.event, recorded.at);
                }
            }
            Ok::<_, Failure>(())
        };
        // Whoever is not taken by then is refused by the engine.
        if let Ok(heard) = tokio::time::timeout(TAKING, over.boxed()).await {
            heard?;
        }
        Ok(task)
    }

    /// What is meant by a name: a skill, or else an agent that is spoken to without one.
    fn named(&self, caller: &Caller, name: &str) -> Option<Target> {
        let skill = self.engine.resolve(caller, name);
        skill.or_else(|| self.seen_agent(caller, name).map(whole))
    }

    /// Where a message goes that names no skill: to the configured skill or agent, or to the only skill.
    fn without_skill(&self, caller: &Caller) -> Result<Target, Trouble> {
        let default = self.config.default_skill.as_ref();
        if let Some(target) = default.and_then(|name| self.named(caller, name)) {
            return Ok(target);
        }
        let directory = self.engine.registry().directory(&caller.scope);
        let mut seen = directory.listed().map(rialto_engine::directory::Entry::target);
        let mut visible = seen.by_ref().filter(|target| self.engine.may_discover(caller, target));
        match (visible.next(), visible.next()) {
            (Some(only), None) => Ok(only),
            _ => {
                let message = format!("the message names no skill: {}", self.choices(caller));
                Err(Trouble::new(Code::InvalidParams, message))
            }
        }
    }

    /// The skills there are, for an error that asks to choose one.
    fn choices(&self, caller: &Caller) -> String {
        let directory = self.engine.registry().directory(&caller.scope);
        let listed = directory.listed().filter(|entry| self.engine.may_discover(caller, &entry.target()));
        let mut names: Vec<&str> = listed.map(|entry| entry.canonical.as_str()).take(NAMED + 1).collect();
        let is_more = names.len() > NAMED;
        names.truncate(NAMED);
        match (names.as_slice(), is_more) {
            ([], _) => "there are no skills that you may see".to_owned(),
            (names, false) => format!("choose one of {} in metadata.skillId", names.join(", ")),
            (names, true) => format!("choose one in metadata.skillId, for example {}", names.join(", ")),
        }
    }
}

/// A task that is over takes no more messages.
fn over(id: &str, task: &Task) -> Trouble {
    let state = task.head.state;
    let message =
        format!("task {id} is {state} and takes no more messages; start another one in its context");
    Trouble::new(Code::UnsupportedOperation, message)
}

/// An agent that is not asked for a skill.
const fn whole(agent: Arc<Agent>) -> Target {
    Target { agent, skill: None }
}

/// What is asked of one agent: a skill under the id that it has there, or just to listen.
fn of_agent(agent: &Arc<Agent>, skill: Option<&str>) -> Result<Target, Trouble> {
    let Some(id) = skill else { return Ok(whole(Arc::clone(agent))) };
    let own = id.strip_prefix(agent.slug.as_str()).and_then(|rest| rest.strip_prefix('.'));
    let known = agent.card.skill(id).or_else(|| agent.card.skill(own?));
    let skill = known.ok_or_else(|| {
        let names: Vec<&str> = agent.card.skills.iter().map(|skill| skill.id.as_str()).take(NAMED).collect();
        let message = format!("agent {} has no skill \"{id}\"; it has {}", agent.slug, names.join(", "));
        Trouble::new(Code::InvalidParams, message)
    })?;
    Ok(Target { agent: Arc::clone(agent), skill: Some(Arc::clone(skill)) })
}
