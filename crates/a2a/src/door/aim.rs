//! Whom a message is for: the task that it goes on with, or a skill.

use std::{sync::Arc, time::Duration};

use futures::FutureExt;
use rialto_a2a_wire::{error::Code, request::SendRequest};
use rialto_engine::DispatchRequest;
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
    pub(crate) task: Option<Task>,
    /// The id that a new task must have, because somebody was promised work under it.
    pub(crate) id: Option<TaskId>,
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
    pub(crate) async fn aim(&self, visit: &Visit, send: &SendRequest) -> Result<Aim, Trouble> {
        if let Some(task) = self.goes_on(visit, send).await? {
            let target = self.engine.worker(&visit.caller, task.head.id.as_str()).boxed().await?;
            return Ok(Aim { target, task: Some(task), id: None });
        }
        let target = match (&visit.agent, send.skill_id()) {
            (Some(agent), skill) => of_agent(agent, skill.as_deref())?,
            (None, Some(skill)) => self.engine.resolve(&visit.caller, &skill).ok_or_else(|| {
                let message = format!("there is no skill \"{skill}\"; {}", self.choices(&visit.caller));
                Trouble::new(Code::InvalidParams, message)
            })?,
            (None, None) if self.routes(&visit.caller) => return self.choose(visit, send).boxed().await,
            (None, None) => self.without_skill(&visit.caller)?,
        };
        Ok(Aim { target, task: None, id: None })
    }

    fn routes(&self, caller: &Caller) -> bool {
        self.engine.config().routing.routes_messages(caller.scope.org.as_str())
    }

    /// Whoever does best what a message says. Who wants to say more about the work says it in the metadata.
    async fn choose(&self, visit: &Visit, send: &SendRequest) -> Result<Aim, Trouble> {
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
        Ok(Aim { target: assigned.target, task: None, id: Some(assigned.task) })
    }

    /// The task that a message goes on with, if it names one.
    async fn goes_on(&self, visit: &Visit, send: &SendRequest) -> Result<Option<Task>, Trouble> {
        if visit.door == Door::A2aFirst {
            // There the client's own name begins a task, and goes on with it when it waits.
            let Some(id) = &send.task_id else { return Ok(None) };
            let known = self.engine.task_of_message(&visit.caller, id).boxed().await?;
            return Ok(known.filter(|task| task.head.state.is_waiting()));
        }
        let Some(id) = send.message.task_id.as_ref().filter(|id| !id.is_empty()) else { return Ok(None) };
        let task = self.find(visit, id).boxed().await?;
        let task = self.taken(&visit.caller, task).boxed().await?;
        if task.head.state.is_terminal() {
            let message = format!(
                "task {id} is {} and takes no more messages; start another one in its context",
                task.head.state
            );
            return Err(Trouble::new(Code::UnsupportedOperation, message));
        }
        let context = send.message.context_id.as_ref().filter(|context| !context.is_empty());
        if context.is_some_and(|context| render::context(&task.head).as_ref() != Some(context)) {
            let message = format!("message.contextId: task {id} belongs to another context");
            return Err(Trouble::new(Code::InvalidParams, message));
        }
        Ok(Some(task))
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

    /// Where a message goes that names no skill: to the configured one, or to the only one.
    fn without_skill(&self, caller: &Caller) -> Result<Target, Trouble> {
        if let Some(target) =
            self.config.default_skill.as_ref().and_then(|skill| self.engine.resolve(caller, skill))
        {
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

/// What is asked of one agent: a skill under the id that it has there, or just to listen.
fn of_agent(agent: &Arc<Agent>, skill: Option<&str>) -> Result<Target, Trouble> {
    let Some(id) = skill else { return Ok(Target { agent: Arc::clone(agent), skill: None }) };
    let own = id.strip_prefix(agent.slug.as_str()).and_then(|rest| rest.strip_prefix('.'));
    let known = agent.card.skill(id).or_else(|| agent.card.skill(own?));
    let skill = known.ok_or_else(|| {
        let names: Vec<&str> = agent.card.skills.iter().map(|skill| skill.id.as_str()).take(NAMED).collect();
        let message = format!("agent {} has no skill \"{id}\"; it has {}", agent.slug, names.join(", "));
        Trouble::new(Code::InvalidParams, message)
    })?;
    Ok(Target { agent: Arc::clone(agent), skill: Some(Arc::clone(skill)) })
}
