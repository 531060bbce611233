//! Looking at tasks and calling them off. A caller finds its own tasks, and no others.

use std::sync::Arc;

use futures::StreamExt;
use rialto_model::{
    agent::Agent,
    backing::skill,
    call::{CallTarget, Caller, FollowRequest},
    event::Event,
    failure::{Failure, FailureKind},
    ids::SkillId,
    store::{StoreError, TaskFilter},
    task::{Task, TaskHead},
};

use crate::{
    budget::TaskBudget,
    call_run::{state_after, with_local_cancel},
    engine::{Engine, store_failure},
    store_failure::read_failure,
};

/// How often something is written down anew because others wrote meanwhile.
const ATTEMPTS: u32 = 8;

// === impl Engine ===

impl Engine {
    /// A task as it stands now: an open one is asked about at the agent first.
    ///
    /// `id` is ours or the agent's. Trouble in asking is not the task's trouble: then what is known is answered.
    pub async fn task(&self, caller: &Caller, id: &str) -> Result<Task, Failure> {
        self.sync().await?;
        let task = self.own_task(caller, id).await?;
        let inner = self.inner();
        let is_ours = inner.running.lock().contains_key(&task.head.id);
        if task.head.state.is_terminal() || is_ours || task.head.remote.task_id.is_none() {
            return Ok(task);
        }
        let Some(agent) = self.agent_of(&task) else { return Ok(task) };
        let target = target_of(agent, &task);
        let remote = task.head.remote.clone();
        let follow = FollowRequest { caller: caller.clone(), target, remote, to_the_end: false };
        let permitted = inner.check(follow);
        let permitted = permitted.map_err(|denied| Failure::new(FailureKind::Denied, denied.to_string()))?;
        let mut heard = inner.peer.follow(permitted);
        let mut events = Vec::new();
        let mut budget = TaskBudget::fresh(&inner.config);
        while let Some(event) = heard.next().await {
            let event = event.and_then(|event| budget.spend(&event).map(|()| event));
            match event {
                Ok(event) => events.push(event),
                Err(failure) => {
                    // An agent's words may repeat what it was told, so they are not logged.
                    let (id, class, code) = (&task.head.id, failure.kind.class(), failure.kind.rpc_code());
                    tracing::warn!(task.id = %id, code, "task {id} could not be asked about: {class}");
                    break;
                }
            }
        }
        self.learn(task, events).await
    }

    /// Who does the work of a caller's task.
    pub async fn worker(&self, caller: &Caller, id: &str) -> Result<CallTarget, Failure> {
        let task = self.own_task(caller, id).await?;
        let agent = self.agent_of(&task).ok_or_else(|| gone(id, &task))?;
        Ok(target_of(agent, &task))
    }

    /// A caller's tasks, newest first.
    pub async fn tasks(&self, caller: &Caller, filter: TaskFilter) -> Result<Vec<TaskHead>, Failure> {
        let filter = TaskFilter { caller: Some(caller.id.clone()), ..filter };
        self.inner().store.tasks(&caller.scope, &filter).await.map_err(read_failure)
    }

    /// Calls a task off and tells what became of it.
    pub async fn cancel(&self, caller: &Caller, id: &str) -> Result<Task, Failure> {
        self.sync().await?;
        let (task, is_settled) = self.try_cancel(caller, id).await?;
        if is_settled {
            return Ok(task);
        }
        // The agent gave it a name while it was called off without one: now it can be called off there.
        self.try_cancel(caller, id).await.map(|(task, _)| task)
    }

    /// Calls a task off as it stands, and says whether that is all that can be done about it.
    async fn try_cancel(&self, caller: &Caller, id: &str) -> Result<(Task, bool), Failure> {
        let task = self.own_task(caller, id).await?;
        if task.head.state.is_terminal() {
            let message = format!("task {id} is already {} and cannot be canceled", task.head.state);
            return Err(Failure::new(FailureKind::Conflict, message));
        }
        let inner = self.inner();
        let agent = self.agent_of(&task).ok_or_else(|| gone(id, &task))?;
        let events = inner.call_off(caller, &target_of(agent, &task), &task).await?;
        // A run of ours hears it from the agent too; whoever writes first is right.
        if let Some(run) = inner.running.lock().get(&task.head.id) {
            run.cancel();
        }
        let state = state_after(task.head.state, &events);
        let named = task.head.remote.task_id.is_some();
        let events = if state.is_terminal() || named { events } else { with_local_cancel(events) };
        let task = self.learn(task, events).await.map_err(|failure| unrecorded_cancel(id, failure))?;
        let is_settled = named || task.head.state.is_terminal();
        Ok((task, is_settled))
    }

    /// The caller's own task with that id.
    pub(crate) async fn own_task(&self, caller: &Caller, id: &str) -> Result<Task, Failure> {
        let head = self.inner().store.task(&caller.scope, id).await.map_err(read_failure)?;
        match head {
            Some(head) if head.caller == caller.id => {
                self.inner().journal.read(head).await.map_err(read_failure)
            }
            // Somebody else's task is not there at all.
            _ => Err(Failure::new(FailureKind::NotFound, format!("there is no task \"{id}\""))),
        }
    }

    /// Writes down what is new among `events`, on top of whatever others write meanwhile.
    async fn learn(&self, mut task: Task, events: Vec<Event>) -> Result<Task, Failure> {
        let journal = &self.inner().journal;
        for _ in 0..ATTEMPTS {
            let mut seen = task.clone();
            let mut news = events.clone();
            news.retain(|event| seen.learns_from(event) && seen.apply(event, journal.now()));
            if news.is_empty() {
                return Ok(task);
            }
            match journal.record(&mut task, news, None).await {
                Ok(()) => return Ok(task),
                Err(StoreError::Conflict) => task = journal.reread(&task).await.map_err(store_failure)?,
                Err(error) => return Err(store_failure(error)),
            }
        }
        Ok(task)
    }

    /// Who does a task's work: by id, or at the same address when it was registered anew.
    pub(crate) fn agent_of(&self, task: &Task) -> Option<Arc<Agent>> {
        let registry = self.registry();
        registry.get(&task.head.agent).or_else(|| registry.find(&task.head.scope, &task.head.agent_url).ok())
    }
}

/// A task was cancelled at its agent, and the store could not take that.
fn unrecorded_cancel(id: &str, failure: Failure) -> Failure {
    if failure.kind != FailureKind::StoreUnavailable {
        return failure;
    }
    let message = format!(
        "the agent was told to cancel task {id}, but the store is not available, so that is not recorded yet; cancel it again in a \
         moment"
    );
    Failure { message, ..failure }
}

pub(crate) fn gone(id: &str, task: &Task) -> Failure {
    let message = format!("the agent of task {id} ({}) is no longer registered", task.head.agent_url);
    Failure::new(FailureKind::NotFound, message)
}

pub(crate) fn target_of(agent: Arc<Agent>, task: &Task) -> CallTarget {
    let id = task.head.skill.as_ref().map(SkillId::as_str);
    let known = id.and_then(|id| agent.card.skill(id)).cloned();
    // A workflow is run by its name also where it is no skill for others.
    let own = || id.filter(|_| agent.backing.begins_once()).map(|id| Arc::new(skill(id, id, "")));
    let skill = known.or_else(own);
    CallTarget { agent, skill }
}
