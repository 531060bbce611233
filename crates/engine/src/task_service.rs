//! Tasks of callers: get, list, cancel and subscribe. A caller finds its own tasks, and no others.

use std::sync::Arc;

use futures::StreamExt;
use rialto_model::{
    agent::Agent,
    backing::skill,
    call::{CallTarget, Caller, CallerKind, FollowRequest},
    event::Event,
    failure::{Failure, FailureKind},
    ids::{AgentId, SkillId},
    store::{ConversationFilter, ConversationTasks, Store, StoreError, TaskFilter},
    task::{Task, TaskHead},
    token_scopes::TokenScopes,
};

use crate::{
    budget::TaskBudget,
    call_run::{state_after, with_local_cancel},
    call_runner::CallRunner,
    journal::TaskJournal,
    policies::PolicyService,
    registry::Registry,
    store_failure::{read_failure, store_failure},
    task_subscription::TaskSubscription,
};

/// Number of attempts to record events while others write to the task too.
const MAX_RECORD_ATTEMPTS: u32 = 8;

/// Tasks of callers.
pub struct TaskService {
    store: Arc<dyn Store>,
    journal: TaskJournal,
    registry: Arc<Registry>,
    policies: Arc<PolicyService>,
    runner: Arc<CallRunner>,
}

// === impl TaskService ===

impl TaskService {
    pub(crate) fn new(runner: Arc<CallRunner>) -> Self {
        Self {
            store: Arc::clone(&runner.store),
            journal: runner.journal.clone(),
            registry: Arc::clone(&runner.registry),
            policies: Arc::clone(&runner.policies),
            runner,
        }
    }

    /// Gets a task; the agent of an open one is asked for its state first.
    ///
    /// `id` is ours or the agent's. An agent that cannot be asked is not a failure of the task: then the stored state is returned.
    pub async fn get(&self, caller: &Caller, id: &str) -> Result<Task, Failure> {
        self.policies.sync().await?;
        let task = self.read(caller, id).await?;
        let is_ours = self.runner.running.contains(&task.head.id);
        if task.head.state.is_terminal() || is_ours || task.head.remote.task_id.is_none() {
            return Ok(task);
        }
        let Some(agent) = self.find_agent(&task) else { return Ok(task) };
        let target = target_of(agent, &task);
        let remote = task.head.remote.clone();
        let follow = FollowRequest { caller: caller.clone(), target, remote, to_the_end: false };
        let permitted = self.policies.check(follow);
        let permitted = permitted.map_err(|denied| Failure::new(FailureKind::Denied, denied.to_string()))?;
        let mut heard = self.runner.backends.follow(permitted);
        let mut events = Vec::new();
        let mut budget = TaskBudget::fresh(&self.runner.config);
        while let Some(event) = heard.next().await {
            let event = event.and_then(|event| budget.spend(&event).map(|()| event));
            match event {
                Ok(event) => events.push(event),
                Err(failure) => {
                    // The message of an agent may repeat arguments, so it is not logged.
                    let (id, class, code) = (&task.head.id, failure.kind.class(), failure.kind.rpc_code());
                    tracing::warn!(task.id = %id, code, "task {id} could not be asked about: {class}");
                    break;
                }
            }
        }
        self.record_new(task, events).await
    }

    /// The agent and skill that a caller's task was given to.
    pub async fn target(&self, caller: &Caller, id: &str) -> Result<CallTarget, Failure> {
        let task = self.read(caller, id).await?;
        let agent = self.find_agent(&task).ok_or_else(|| agent_removed(id, &task))?;
        Ok(target_of(agent, &task))
    }

    /// Lists a caller's tasks, newest first.
    pub async fn list(&self, caller: &Caller, filter: TaskFilter) -> Result<Vec<TaskHead>, Failure> {
        let filter = TaskFilter { caller: Some(caller.id.clone()), ..filter };
        self.store.tasks(&caller.scope, &filter).await.map_err(read_failure)
    }

    /// Cancels a task, and returns it as it is then.
    pub async fn cancel(&self, caller: &Caller, id: &str) -> Result<Task, Failure> {
        self.policies.sync().await?;
        let (task, is_settled) = self.try_cancel(caller, id).await?;
        if is_settled {
            return Ok(task);
        }
        // The agent named the task while it was cancelled without a name: now it can be cancelled there.
        self.try_cancel(caller, id).await.map(|(task, _)| task)
    }

    /// Cancels a task as it stands; the second value is true if nothing is left to do.
    async fn try_cancel(&self, caller: &Caller, id: &str) -> Result<(Task, bool), Failure> {
        let task = self.read(caller, id).await?;
        if task.head.state.is_terminal() {
            let message = format!("task {id} is already {} and cannot be canceled", task.head.state);
            return Err(Failure::new(FailureKind::Conflict, message));
        }
        let agent = self.find_agent(&task).ok_or_else(|| agent_removed(id, &task))?;
        let events = self.runner.cancel_at_agent(caller, &target_of(agent, &task), &task).await?;
        // A run in this process receives the cancellation from the agent too; the first write counts.
        self.runner.running.cancel(&task.head.id);
        let state = state_after(task.head.state, &events);
        let named = task.head.remote.task_id.is_some();
        let events = if state.is_terminal() || named { events } else { with_local_cancel(events) };
        let task = self.record_new(task, events).await.map_err(|failure| unrecorded_cancel(id, failure))?;
        let is_settled = named || task.head.state.is_terminal();
        Ok((task, is_settled))
    }

    /// Reads a caller's task from the journal. The agent is not asked.
    pub async fn read(&self, caller: &Caller, id: &str) -> Result<Task, Failure> {
        let head = self.store.task(&caller.scope, id).await.map_err(read_failure)?;
        match head {
            Some(head) if head.caller == caller.id => self.journal.read(head).await.map_err(read_failure),
            // The task of another caller does not exist for this one.
            _ => Err(Failure::new(FailureKind::NotFound, format!("there is no task \"{id}\""))),
        }
    }

    /// Records those of `events` that are new, after what others write meanwhile.
    async fn record_new(&self, mut task: Task, events: Vec<Event>) -> Result<Task, Failure> {
        let journal = &self.journal;
        for _ in 0..MAX_RECORD_ATTEMPTS {
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

    /// The agent of a task: by id, or by its address if it was registered again.
    pub(crate) fn find_agent(&self, task: &Task) -> Option<Arc<Agent>> {
        let registry = &self.registry;
        registry.get(&task.head.agent).or_else(|| registry.find(&task.head.scope, &task.head.agent_url).ok())
    }

    /// Finds a caller's task by our own id for it, as it is in the journal. The agent is not asked.
    pub async fn find_by_id(&self, caller: &Caller, id: &str) -> Result<Option<Task>, Failure> {
        match self.find_head(caller, id).await? {
            Some(head) => self.journal.read(head).await.map(Some).map_err(read_failure),
            None => Ok(None),
        }
    }

    /// Finds the head of a caller's task by our own id for it.
    pub(crate) async fn find_head(&self, caller: &Caller, id: &str) -> Result<Option<TaskHead>, Failure> {
        let head = self.store.task(&caller.scope, id).await.map_err(store_failure)?;
        Ok(head.filter(|head| head.id.as_str() == id && head.caller == caller.id))
    }

    /// Gets a caller's task as it is in the journal, and subscribes to its events after that.
    pub async fn subscribe(&self, caller: &Caller, id: &str) -> Result<(Task, TaskSubscription), Failure> {
        let head = self.read(caller, id).await?.head;
        // In this order: what is written meanwhile is in the task or comes to the subscription.
        let mut subscription = self.subscribe_after(&head);
        let task = self.read(caller, id).await?;
        subscription.skip_to(task.head.version);
        Ok((task, subscription))
    }

    /// Subscribes to the events of a task after this version of it.
    pub fn subscribe_after(&self, head: &TaskHead) -> TaskSubscription {
        self.journal.listen(&head.id, head.version)
    }

    /// Lists a caller's tasks that belong to conversations, the last changed first.
    pub async fn list_conversations(
        &self,
        caller: &Caller,
        filter: &ConversationFilter,
    ) -> Result<ConversationTasks, Failure> {
        self.store.conversation_tasks(&caller.scope, filter).await.map_err(store_failure)
    }

    /// The caller of a stored task. An agent's own id says that the caller is one.
    pub(crate) fn caller_of(&self, head: &TaskHead) -> Caller {
        let is_agent = self.registry.get(&AgentId::from(head.caller.as_str())).is_some();
        let kind = if is_agent { CallerKind::Agent } else { CallerKind::User };
        Caller {
            scope: head.scope.clone(),
            kind,
            id: head.caller.clone(),
            rights: TokenScopes::ALL,
            token: None,
            proof: None,
            hops: 0,
        }
    }
}

/// Failure of a cancellation that the agent has received and the store could not record.
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

pub(crate) fn agent_removed(id: &str, task: &Task) -> Failure {
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
