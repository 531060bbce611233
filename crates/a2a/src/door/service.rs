//! Answers requests of every dialect and binding with the one engine.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures::FutureExt;
use rialto_a2a_wire::{
    error::Code,
    request::{GetTask, PushConfig, PushList, Request as Asked, SendRequest, TaskRef},
    task::{SendAnswer, Task as Told, TaskList},
    wire::Wire,
};
use rialto_edge::site::Site;
use rialto_engine::{Engine, Request, Running, Said, Step, Talk};
use rialto_model::{
    agent::Agent,
    call::{Caller, Door, Target},
    card::Skill,
    failure::{Failure, Kind},
    ids::ContextId,
    rights::Right,
    task::Task,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{
    card::Cards,
    config::Config,
    incoming::Visit,
    list, modes,
    render::{self, Length},
    stream::TaskStream,
    trouble::Trouble,
};

/// How many skills an error names, so that the caller can choose one.
const NAMED: usize = 20;

/// How long a message waits for the agent to take the task that it goes on with.
const TAKING: Duration = Duration::from_secs(10);

/// Answers requests.
pub struct Service {
    pub(crate) engine: Engine,
    pub(crate) config: Config,
    pub(crate) site: Site,
    pub(crate) cards: Cards,
    /// Somebody has asked to be told of a task.
    pub(crate) asked_to_push: Notify,
    stop: OnceLock<CancellationToken>,
}

/// The answer to a request, in canonical words.
pub enum Reply {
    /// To a message.
    Sent {
        /// The answer.
        answer: SendAnswer,
        /// How its task came in, which may be older than this request.
        door: Door,
    },
    /// To a look at a task, or to calling it off.
    Task {
        /// The task.
        task: Told,
        /// How it came in.
        door: Door,
    },
    /// A page of tasks.
    Tasks(TaskList),
    /// What happens, as it happens.
    Stream(TaskStream),
    /// One webhook.
    Push(PushConfig),
    /// The webhooks of a task.
    Pushes(PushList),
    /// It is done, and there is nothing to say.
    Nothing,
    /// A card, as JSON.
    Card(Arc<str>),
}

/// What a message wants: a task of its own, or to go on with one.
struct Aim {
    target: Target,
    task: Option<Task>,
}

// === impl Service ===

impl Service {
    pub(crate) fn new(engine: Engine, config: Config, site: Site) -> Self {
        Self {
            engine,
            config,
            site,
            cards: Cards::default(),
            asked_to_push: Notify::new(),
            stop: OnceLock::new(),
        }
    }

    pub(crate) fn end_streams_with(&self, stop: CancellationToken) {
        // The first router that is made counts; there is one.
        let _ = self.stop.set(stop);
    }

    /// Answers one request.
    pub async fn answer(&self, visit: &Visit, asked: Asked) -> Result<Reply, Trouble> {
        let needed = if matches!(asked, Asked::ExtendedCard(_)) { Right::Discover } else { Right::Call };
        if !visit.caller.rights.have(needed) {
            return Err(lacks(needed).into());
        }
        match asked {
            Asked::Send(send) => self.send(visit, send).await,
            Asked::Stream(send) => self.stream(visit, send).await,
            Asked::Get(get) => self.get(visit, &get).await,
            Asked::List(wanted) => list::page(&self.engine, &visit.caller, &wanted).await.map(Reply::Tasks),
            Asked::Cancel(cancel) => self.cancel(visit, &cancel).await,
            Asked::Subscribe(subscribe) => self.subscribe(visit, &subscribe).await,
            Asked::ExtendedCard(_) => self.cards.extended(self, visit).map(Reply::Card),
            Asked::PushCreate(config) => self.create_push(&visit.caller, visit.wire, config).await,
            Asked::PushGet(wanted) => self.get_push(&visit.caller, &wanted).await,
            Asked::PushList(wanted) => self.list_pushes(&visit.caller, &wanted).await,
            Asked::PushDelete(wanted) => self.delete_push(&visit.caller, &wanted).await,
        }
    }

    async fn send(&self, visit: &Visit, send: SendRequest) -> Result<Reply, Trouble> {
        let (history, at_once) = (send.configuration.history_length, send.configuration.return_immediately);
        let (running, task) = match self.say(visit, send).await? {
            Said::Begun { running, task } => (running, *task),
            Said::Again(id) => {
                let (task, following) = self.engine.follow(&visit.caller, id.as_str()).await?;
                let told = if at_once { task } else { self.wait_along(visit, task, following).await? };
                return Ok(sent(&told, history));
            }
        };
        if at_once {
            // It goes on by itself.
            drop(running);
            return Ok(sent(&task, history));
        }
        let task = self.wait(visit, running).await?;
        Ok(sent(&task, history))
    }

    async fn stream(&self, visit: &Visit, send: SendRequest) -> Result<Reply, Trouble> {
        let history = send.configuration.history_length;
        let (task, following) = match self.say(visit, send).await? {
            Said::Begun { running, task } => {
                let following = self.engine.listen(&task.head);
                // Listened to; now it may leave.
                drop(running);
                (*task, following)
            }
            Said::Again(id) => self.engine.follow(&visit.caller, id.as_str()).await?,
        };
        Ok(Reply::Stream(TaskStream::of(&task, following, history, self.stop())))
    }

    async fn get(&self, visit: &Visit, get: &GetTask) -> Result<Reply, Trouble> {
        let task = self.find(&visit.caller, &get.id).await?;
        // A task that nobody here works on is asked about at its agent.
        let task = if task.head.state.is_terminal() {
            task
        } else {
            self.engine.task(&visit.caller, task.head.id.as_str()).await?
        };
        Ok(Reply::Task { task: render::task(&task, get.history_length), door: task.head.door })
    }

    async fn cancel(&self, visit: &Visit, cancel: &TaskRef) -> Result<Reply, Trouble> {
        let task = self.find(&visit.caller, &cancel.id).await?;
        if task.head.state.is_terminal() {
            let message = format!("task {} is {} already", cancel.id, task.head.state);
            return Err(Trouble::new(Code::TaskNotCancelable, message));
        }
        let canceled = self.engine.cancel(&visit.caller, task.head.id.as_str()).await;
        let task = canceled.map_err(|failure| match failure.kind {
            // It ended in the meantime.
            Kind::Conflict => Trouble::new(Code::TaskNotCancelable, failure.message),
            _ => failure.into(),
        })?;
        if task.head.state.is_terminal() && task.head.state != rialto_model::task::TaskState::Canceled {
            let message = format!("task {} was {} before it could be canceled", cancel.id, task.head.state);
            return Err(Trouble::new(Code::TaskNotCancelable, message));
        }
        Ok(Reply::Task { task: render::task(&task, None), door: task.head.door })
    }

    async fn subscribe(&self, visit: &Visit, wanted: &TaskRef) -> Result<Reply, Trouble> {
        let id = self.find(&visit.caller, &wanted.id).await?.head.id;
        let (task, following) = self.engine.follow(&visit.caller, id.as_str()).await?;
        if task.head.state.is_terminal() {
            let message = format!("task {} is {}: there is nothing more to hear", wanted.id, task.head.state);
            return Err(Trouble::new(Code::UnsupportedOperation, message));
        }
        // In 1.0 who listens hears of a task that waits until it is over; before, a stream was over when a task waited.
        let stream = if visit.wire == Wire::V10 {
            TaskStream::on(&task, following, self.stop())
        } else {
            TaskStream::of(&task, following, None, self.stop())
        };
        Ok(Reply::Stream(stream))
    }

    /// Hands a message to the engine.
    async fn say(&self, visit: &Visit, send: SendRequest) -> Result<Said, Trouble> {
        if send.message.parts.is_empty() {
            return Err(Trouble::new(Code::InvalidParams, "message.parts: expected at least one part"));
        }
        self.engine.sync().await?;
        let aim = self.aim(visit, &send).await?;
        modes::check(&aim.target, &send.message.parts)?;
        let named = send.message.context_id.clone().filter(|context| !context.is_empty());
        let known = aim.task.as_ref().and_then(|task| task.head.context.clone());
        let is_named = named.is_some();
        let context = known.or_else(|| named.map(ContextId::from)).unwrap_or_else(ContextId::fresh);
        let push = send.configuration.push;
        if let Some(config) = &push {
            self.check_push(config)?;
        }
        let mut message = send.message;
        // What begins a task of 0.1 is known by the task's name; what goes on with one has no name, and comes but once.
        if visit.door == Door::A2aFirst
            && aim.task.is_none()
            && let Some(id) = send.task_id.filter(|_| message.id.is_empty())
        {
            message.id = id;
        }
        let (caller, parts) = (visit.caller.clone(), message.parts.clone());
        let mut request = Request::message(caller, visit.door, aim.target, parts);
        request.task = aim.task.map(|task| task.head.id.as_str().to_owned());
        request.wall_clock = Some(self.config.task_timeout);
        request.trace.clone_from(&visit.trace);
        let is_once = self.config.once_per_message || visit.door == Door::A2aFirst;
        let metadata = send.metadata;
        request.talk = Some(Box::new(Talk { context, is_named, is_once, message, metadata }));
        let said = self.engine.say(request).await?;
        let begun = match (&said, push) {
            (Said::Begun { task, .. }, Some(config)) => Some((task.head.clone(), config)),
            _ => None,
        };
        if let Some((head, config)) = begun {
            self.push_along(&head, visit.wire, config).await?;
        }
        Ok(said)
    }

    /// Who shall do what a message asks for.
    async fn aim(&self, visit: &Visit, send: &SendRequest) -> Result<Aim, Trouble> {
        if let Some(task) = self.goes_on(visit, send).await? {
            let target = self.engine.worker(&visit.caller, task.head.id.as_str()).await?;
            return Ok(Aim { target, task: Some(task) });
        }
        let target = match (&visit.agent, send.skill_id()) {
            (Some(agent), skill) => of_agent(agent, skill.as_deref())?,
            (None, Some(skill)) => self.engine.resolve(&visit.caller, &skill).ok_or_else(|| {
                let message = format!("there is no skill \"{skill}\"; {}", self.choices(&visit.caller));
                Trouble::new(Code::InvalidParams, message)
            })?,
            (None, None) => self.without_skill(&visit.caller)?,
        };
        Ok(Aim { target, task: None })
    }

    /// The agent with that slug, if the caller may see anything of it. Else there is none.
    pub(crate) async fn agent(&self, caller: Option<&Caller>, slug: &str) -> Result<Arc<Agent>, Trouble> {
        self.engine.sync().await?;
        let none = || Trouble::from(Failure::new(Kind::NotFound, format!("there is no agent \"{slug}\"")));
        let caller = caller.ok_or_else(none)?;
        let agent = self.engine.registry().by_slug(&caller.scope, slug);
        let agent = agent.filter(|agent| agent.backing.is_agent()).ok_or_else(none)?;
        let target =
            |skill: &Arc<Skill>| Target { agent: Arc::clone(&agent), skill: Some(Arc::clone(skill)) };
        let is_seen = agent.card.skills.iter().any(|skill| self.engine.may_discover(caller, &target(skill)));
        if is_seen { Ok(agent) } else { Err(none()) }
    }

    /// The task that a message goes on with, if it names one.
    async fn goes_on(&self, visit: &Visit, send: &SendRequest) -> Result<Option<Task>, Trouble> {
        if visit.door == Door::A2aFirst {
            // There the client's own name begins a task, and goes on with it when it waits.
            let Some(id) = &send.task_id else { return Ok(None) };
            let known = self.engine.task_of_message(&visit.caller, id).await?;
            return Ok(known.filter(|task| task.head.state.is_waiting()));
        }
        let Some(id) = send.message.task_id.as_ref().filter(|id| !id.is_empty()) else { return Ok(None) };
        let task = self.find(&visit.caller, id).await?;
        let task = self.taken(&visit.caller, task).await?;
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
        let is_taken = |task: &Task| task.head.remote.task_id.is_some() || task.head.state.is_terminal();
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

    /// A caller's own task, under whatever name it has for it.
    pub(crate) async fn find(&self, caller: &Caller, id: &str) -> Result<Task, Trouble> {
        match self.engine.look(caller, id).await {
            Ok(task) => Ok(task),
            Err(Failure { kind: Kind::NotFound, .. }) => {
                let named = self.engine.task_of_message(caller, id).await?;
                named.filter(|task| task.head.door == Door::A2aFirst).ok_or_else(|| Trouble::no_task(id))
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Waits for the end, or for a question, and at most for as long as callers are kept waiting.
    async fn wait(&self, visit: &Visit, mut running: Running) -> Result<Task, Trouble> {
        let id = running.task().clone();
        let over = async {
            loop {
                match running.next().await {
                    Step::Event(_) | Step::Heartbeat => {}
                    Step::Done(task) => return Some(*task),
                    Step::Failed(_) => return None,
                }
            }
        };
        match tokio::time::timeout(self.config.wait, over).await {
            Ok(Some(task)) => Ok(task),
            // How it failed is in the journal.
            Ok(None) | Err(_) => Ok(self.engine.look(&visit.caller, id.as_str()).await?),
        }
    }

    /// The same for a task that somebody else waits for.
    async fn wait_along(
        &self,
        visit: &Visit,
        task: Task,
        mut following: rialto_engine::Following,
    ) -> Result<Task, Trouble> {
        let mut state = task.head.state;
        let over = async {
            while !state.is_terminal() && !state.is_waiting() {
                for recorded in following.next().await? {
                    state = render::state_after(state, &recorded.event);
                }
            }
            Ok::<_, Failure>(())
        };
        // Late or not, what is in the journal is the answer.
        if let Ok(heard) = tokio::time::timeout(self.config.wait, over.boxed()).await {
            heard?;
        }
        Ok(self.engine.look(&visit.caller, task.head.id.as_str()).await?)
    }

    fn stop(&self) -> CancellationToken {
        self.stop.get().cloned().unwrap_or_default()
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

/// What a caller is told who lacks a right.
fn lacks(right: Right) -> Failure {
    let word = right.as_str();
    let message = format!(
        "this token lacks the scope {word}; make one that has it with `rialto tokens create NAME --scope {word}`"
    );
    Failure::new(Kind::Denied, message)
}

fn sent(task: &Task, history: Length) -> Reply {
    if let Some(message) = render::reply(task) {
        return Reply::Sent { answer: SendAnswer::Message(message), door: task.head.door };
    }
    Reply::Sent { answer: SendAnswer::Task(render::task(task, history)), door: task.head.door }
}
