//! A2A service: answers decoded requests of every dialect and binding through the engine.

use std::sync::{Arc, OnceLock};

use futures::FutureExt;
use http::HeaderMap;
use rialto_a2a_codec::{
    error::ErrorCode,
    extension,
    request::{A2aRequest as Asked, GetTask, PushConfig, PushList, SendRequest, TaskRef},
    task::{A2aTask as Told, SendAnswer, TaskList},
    wire::Wire,
};
use rialto_engine::{CallHandle, CallRequest, CallStart, CallUpdate, ConversationMessage, Engine};
use rialto_http_server::public_url::PublicUrl;
use rialto_model::{
    agent::Agent,
    call::{CallTarget, Caller, EntryProtocol, OriginalMessage},
    card::Skill,
    failure::{Failure, FailureKind},
    guardrail::GuardrailNotice,
    ids::ContextId,
    message::Message,
    task::Task,
    token_scopes::TokenScope,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    card::CardCache,
    config::Config,
    error::ServiceError,
    list, media_types,
    render::{self, HistoryLength},
    request_context::{self, A2aRequestContext},
    resolve_target::TargetOutcome,
    stream::{TaskEventFeed, TaskStream},
};

/// A2A service.
pub(crate) struct Service {
    pub(crate) engine: Engine,
    pub(crate) config: Config,
    pub(crate) site: PublicUrl,
    pub(crate) cards: CardCache,
    /// Signals that a push notification config was added.
    pub(crate) asked_to_push: Notify,
    stop: OnceLock<CancellationToken>,
}

/// Response to a request, before it is encoded.
pub(crate) enum ServiceReply {
    /// Response to a message.
    Sent {
        /// Response.
        answer: SendAnswer,
        /// Binding of its task, which may be older than this request.
        door: EntryProtocol,
        /// Requested extensions that are active.
        activated: Vec<String>,
    },
    /// Response to getting or cancelling a task.
    Task {
        /// Task.
        task: Told,
        /// Binding of the task.
        door: EntryProtocol,
    },
    /// Page of tasks.
    Tasks(TaskList),
    /// Stream of events.
    Stream(TaskStream),
    /// One push notification config.
    Push(PushConfig),
    /// Push notification configs of a task.
    Pushes(PushList),
    /// Empty response.
    Nothing,
    /// Card as JSON.
    Card(Arc<str>),
}

// === impl ServiceReply ===

impl ServiceReply {
    /// Sets the response's headers: guardrail warnings and active extensions.
    pub(crate) fn put_beside(&self, wire: Wire, headers: &mut HeaderMap) {
        rialto_http_server::guardrail_header::insert(headers, self.notice().as_ref());
        if let Self::Sent { activated, .. } = self {
            extension::insert(wire, activated, headers);
        }
    }

    /// Guardrail warnings, if any.
    fn notice(&self) -> Option<GuardrailNotice> {
        let metadata = match self {
            Self::Sent { answer: SendAnswer::Task(task), .. } | Self::Task { task, .. } => &task.metadata,
            Self::Sent { answer: SendAnswer::Message(message), .. } => &message.metadata,
            Self::Tasks(_)
            | Self::Stream(_)
            | Self::Push(_)
            | Self::Pushes(_)
            | Self::Nothing
            | Self::Card(_) => return None,
        };
        GuardrailNotice::read(metadata.as_ref())
    }
}

// === impl Service ===

impl Service {
    pub(crate) fn new(engine: Engine, config: Config, site: PublicUrl) -> Self {
        Self {
            engine,
            config,
            site,
            cards: CardCache::default(),
            asked_to_push: Notify::new(),
            stop: OnceLock::new(),
        }
    }

    pub(crate) fn end_streams_with(&self, stop: CancellationToken) {
        // The first router counts; there is only one.
        let _ = self.stop.set(stop);
    }

    /// Answers one request.
    pub(crate) async fn answer(
        &self,
        visit: &A2aRequestContext,
        asked: Asked,
    ) -> Result<ServiceReply, ServiceError> {
        let needed =
            if matches!(asked, Asked::ExtendedCard(_)) { TokenScope::Discover } else { TokenScope::Call };
        if !visit.caller.rights.have(needed) {
            return Err(needed.lacking().into());
        }
        let tenant = asked.tenant().filter(|tenant| !tenant.is_empty());
        match tenant.map(str::to_owned) {
            None => self.answer_at(visit, asked).await,
            Some(slug) => {
                let visit = self.at_tenant(visit, &slug).boxed().await?;
                self.answer_at(&visit, asked).boxed().await
            }
        }
    }

    /// Context for the agent named as the tenant. Where an agent was addressed already it must be the same one.
    async fn at_tenant(
        &self,
        visit: &A2aRequestContext,
        slug: &str,
    ) -> Result<A2aRequestContext, ServiceError> {
        if visit.agent.as_ref().is_some_and(|agent| agent.slug != slug) {
            return Err(no_agent(slug));
        }
        let agent = self.agent(Some(&visit.caller), slug).await?;
        Ok(A2aRequestContext { agent: Some(agent), ..visit.clone() })
    }

    async fn answer_at(&self, visit: &A2aRequestContext, asked: Asked) -> Result<ServiceReply, ServiceError> {
        match asked {
            Asked::Send(send) => self.send(visit, send).await,
            // Boxed separately: otherwise every message would carry the largest future.
            Asked::Stream(send) => self.stream(visit, send).boxed().await,
            Asked::Get(get) => self.get(visit, &get).boxed().await,
            Asked::List(wanted) => {
                list::page(&self.engine, visit, &wanted).boxed().await.map(ServiceReply::Tasks)
            }
            Asked::Cancel(cancel) => self.cancel(visit, &cancel).boxed().await,
            Asked::Subscribe(subscribe) => self.subscribe(visit, &subscribe).boxed().await,
            Asked::ExtendedCard(_) => self.cards.extended(self, visit).map(ServiceReply::Card),
            Asked::PushCreate(config) => self.create_push(visit, config).boxed().await,
            Asked::PushGet(wanted) => self.get_push(visit, &wanted).boxed().await,
            Asked::PushList(wanted) => self.list_pushes(visit, &wanted).boxed().await,
            Asked::PushDelete(wanted) => self.delete_push(visit, &wanted).boxed().await,
        }
    }

    async fn send(&self, visit: &A2aRequestContext, send: SendRequest) -> Result<ServiceReply, ServiceError> {
        let history = visit.history(send.configuration.history_length);
        let at_once = send.configuration.return_immediately;
        let wanted = visit.wanted(&send.message);
        let task = match self.say(visit, send, at_once).await? {
            CallStart::Started(mut running) => match running.take_initial_task().filter(|_| at_once) {
                // The task resumes by itself.
                Some(task) => *task,
                None => self.wait(visit, running).await?,
            },
            CallStart::Duplicate(id) => {
                let (task, following) =
                    self.engine.tasks().subscribe(&visit.caller, id.as_str()).boxed().await?;
                if at_once { task } else { self.wait_along(visit, task, following).boxed().await? }
            }
        };
        Ok(sent(task, history, &wanted))
    }

    async fn stream(
        &self,
        visit: &A2aRequestContext,
        send: SendRequest,
    ) -> Result<ServiceReply, ServiceError> {
        // Before anything starts whose output could not be sent.
        let slot = self.config.streams.acquire(&visit.caller)?;
        let history = visit.history(send.configuration.history_length);
        let wanted = visit.wanted(&send.message);
        let (task, following) = match self.say(visit, send, true).await? {
            CallStart::Started(mut running) => match running.take_initial_task() {
                Some(task) => {
                    let following = self.engine.tasks().subscribe_after(&task.head);
                    // Subscribed first; now the call may start.
                    drop(running);
                    (*task, following)
                }
                None => self.engine.tasks().subscribe(&visit.caller, running.task().as_str()).await?,
            },
            CallStart::Duplicate(id) => self.engine.tasks().subscribe(&visit.caller, id.as_str()).await?,
        };
        let mut telling = TaskEventFeed::of(&task, following, history);
        Ok(ServiceReply::Stream(TaskStream::new(telling.activated(wanted).await, telling, self.stop(), slot)))
    }

    async fn get(&self, visit: &A2aRequestContext, get: &GetTask) -> Result<ServiceReply, ServiceError> {
        let task = self.find(visit, &get.id).await?;
        // A task that no process works on is polled at its agent.
        let task = if task.head.state.is_terminal() {
            task
        } else {
            self.engine.tasks().get(&visit.caller, task.head.id.as_str()).await?
        };
        let door = task.head.door;
        Ok(ServiceReply::Task { task: render::task(task, get.history_length), door })
    }

    async fn cancel(
        &self,
        visit: &A2aRequestContext,
        cancel: &TaskRef,
    ) -> Result<ServiceReply, ServiceError> {
        let task = self.find(visit, &cancel.id).await?;
        if task.head.state.is_terminal() {
            let message = format!("task {} is {} already", cancel.id, task.head.state);
            return Err(ServiceError::new(ErrorCode::TaskNotCancelable, message));
        }
        let canceled = self.engine.tasks().cancel(&visit.caller, task.head.id.as_str()).await;
        let task = canceled.map_err(|failure| match failure.kind {
            // It ended in the meantime.
            FailureKind::Conflict => ServiceError::new(ErrorCode::TaskNotCancelable, failure.message),
            _ => failure.into(),
        })?;
        if task.head.state.is_terminal() && task.head.state != rialto_model::task::TaskState::Canceled {
            let message = format!("task {} was {} before it could be canceled", cancel.id, task.head.state);
            return Err(ServiceError::new(ErrorCode::TaskNotCancelable, message));
        }
        let door = task.head.door;
        Ok(ServiceReply::Task { task: render::task(task, None), door })
    }

    async fn subscribe(
        &self,
        visit: &A2aRequestContext,
        wanted: &TaskRef,
    ) -> Result<ServiceReply, ServiceError> {
        let slot = self.config.streams.acquire(&visit.caller)?;
        let id = self.find(visit, &wanted.id).await?.head.id;
        let (task, following) = self.engine.tasks().subscribe(&visit.caller, id.as_str()).await?;
        if task.head.state.is_terminal() {
            let message = format!("task {} is {}: there is nothing more to hear", wanted.id, task.head.state);
            return Err(ServiceError::new(ErrorCode::UnsupportedOperation, message));
        }
        // In 1.0 a subscriber stays subscribed while a task waits; before, a stream ended when the task waited.
        let telling = if visit.wire == Wire::V10 {
            TaskEventFeed::on(&task, following)
        } else {
            TaskEventFeed::of(&task, following, None)
        };
        Ok(ServiceReply::Stream(TaskStream::new(Vec::new(), telling, self.stop(), slot)))
    }

    /// Passes a message to the engine. With `wants_initial_task` the stream includes the beginning of the task.
    async fn say(
        &self,
        visit: &A2aRequestContext,
        send: SendRequest,
        wants_initial_task: bool,
    ) -> Result<CallStart, ServiceError> {
        request_context::check_message(visit.wire, &send.message)?;
        let synced = self.engine.policies().sync().await?;
        let aim = match self.aim(visit, &send).await? {
            TargetOutcome::At(aim) => aim,
            TargetOutcome::Heard(task) => return Ok(CallStart::Duplicate(task)),
        };
        media_types::check(&aim.target, &send.message.parts)?;
        let extensions = visit.wanted(&send.message);
        visit.check_extensions(&extensions)?;
        let named = send.message.context_id.clone().filter(|context| !context.is_empty());
        let known = aim.task.as_ref().and_then(|task| task.head.context.clone());
        let is_named = named.is_some();
        let context = known.or_else(|| named.map(ContextId::from)).unwrap_or_else(ContextId::fresh);
        let push = send.configuration.push;
        if let Some(config) = &push {
            self.check_push(config)?;
        }
        let mut message = send.message;
        // A message that begins a 0.1 task is identified by the task's id; one that continues it has no id, and is sent only once.
        if visit.door == EntryProtocol::A2aFirst
            && aim.task.is_none()
            && let Some(id) = send.task_id.filter(|_| message.id.is_empty())
        {
            message.id = id;
        }
        let trace = visit.trace.clone().or_else(|| {
            // Clients that cannot set headers put it into the message.
            let beside = [message.metadata.as_ref(), send.metadata.as_ref()];
            beside.into_iter().flatten().find_map(request_context::trace_in)
        });
        let (caller, parts) = (visit.caller.clone(), message.parts.clone());
        let mut request = CallRequest::message(caller, visit.door, aim.target, parts);
        request.id = aim.id;
        request.task = aim.task.map(|task| task.head.id.as_str().to_owned());
        request.timeout = Some(self.config.task_timeout);
        request.trace = trace;
        request.synced = Some(synced);
        let references = self.references(visit, &request.target.agent, &message).await?;
        let (metadata, accepts) = (send.metadata, send.configuration.accepted_output_modes);
        let spoken = Arc::new(OriginalMessage { message, metadata, extensions, accepts, references });
        let wants_initial_task = wants_initial_task || push.is_some();
        request.conversation = Some(Box::new(ConversationMessage {
            context,
            is_named,
            is_once: self.is_once(visit),
            wants_initial_task,
            spoken,
            content_hash: None,
        }));
        let said = Box::pin(self.engine.calls().start(request)).await?;
        let begun = match (&said, push) {
            (CallStart::Started(call), Some(config)) => {
                call.initial_task().map(|task| (task.head.clone(), config))
            }
            _ => None,
        };
        if let Some((head, config)) = begun {
            self.push_along(visit, &head, config).boxed().await?;
        }
        Ok(said)
    }

    /// Referenced tasks of a message, under the ids of their agent if it is the one that is called. Unknown references stay unchanged.
    async fn references(
        &self,
        visit: &A2aRequestContext,
        agent: &Agent,
        message: &Message,
    ) -> Result<Vec<String>, ServiceError> {
        let mut references = Vec::with_capacity(message.reference_task_ids.len());
        for said in &message.reference_task_ids {
            let task = self.engine.tasks().find_by_id(&visit.caller, said).boxed().await?;
            let theirs =
                task.filter(|task| task.head.agent == agent.id).and_then(|task| task.head.remote.task_id);
            references.push(theirs.unwrap_or_else(|| said.clone()));
        }
        Ok(references)
    }

    /// Agent with that slug, if the caller may see any of it; otherwise not found.
    pub(crate) async fn agent(
        &self,
        caller: Option<&Caller>,
        slug: &str,
    ) -> Result<Arc<Agent>, ServiceError> {
        self.engine.policies().sync().await?;
        caller.and_then(|caller| self.seen_agent(caller, slug)).ok_or_else(|| no_agent(slug))
    }

    /// Agent with that slug in this process's copy of the registry.
    pub(crate) fn seen_agent(&self, caller: &Caller, slug: &str) -> Option<Arc<Agent>> {
        let agent = self.engine.registry().by_slug(&caller.scope, slug);
        let agent = agent.filter(|agent| agent.backing.is_agent())?;
        let target =
            |skill: &Arc<Skill>| CallTarget { agent: Arc::clone(&agent), skill: Some(Arc::clone(skill)) };
        let is_seen =
            agent.card.skills.iter().any(|skill| self.engine.policies().may_discover(caller, &target(skill)));
        is_seen.then_some(agent)
    }

    /// Task of the caller, by Rialto's id or the id that the caller chose. The agent's id is not accepted. At the endpoint of one agent
    /// only that agent's tasks are found.
    pub(crate) async fn find(&self, visit: &A2aRequestContext, id: &str) -> Result<Task, ServiceError> {
        let task = match self.engine.tasks().find_by_id(&visit.caller, id).await? {
            Some(task) => Some(task),
            None => self.engine.messages().find_named_task(&visit.caller, id).await?,
        };
        let is_asked = |task: &Task| visit.agent.as_ref().is_none_or(|agent| agent.id == task.head.agent);
        task.filter(is_asked).ok_or_else(|| ServiceError::no_task(id))
    }

    /// Waits for the end or for a question, at most for the maximum wait of a request.
    async fn wait(&self, visit: &A2aRequestContext, mut running: CallHandle) -> Result<Task, ServiceError> {
        let id = running.task().clone();
        let over = async {
            loop {
                match running.next().await {
                    CallUpdate::Event(_) | CallUpdate::Heartbeat => {}
                    CallUpdate::Done(task) => return Some(*task),
                    CallUpdate::Failed(_) => return None,
                }
            }
        };
        match tokio::time::timeout(self.config.wait, over).await {
            Ok(Some(task)) => Ok(task),
            // The failure is in the journal.
            Ok(None) | Err(_) => Ok(self.engine.tasks().read(&visit.caller, id.as_str()).boxed().await?),
        }
    }

    /// Waits for a task that another request drives.
    async fn wait_along(
        &self,
        visit: &A2aRequestContext,
        task: Task,
        mut following: rialto_engine::TaskSubscription,
    ) -> Result<Task, ServiceError> {
        let mut state = task.head.state;
        let over = async {
            while !state.is_terminal() && !state.is_waiting() {
                for recorded in following.next().await? {
                    state = render::state_after(state, &recorded.event);
                }
            }
            Ok::<_, Failure>(())
        };
        // In time or not, the journal has the answer.
        if let Ok(heard) = tokio::time::timeout(self.config.wait, over.boxed()).await {
            heard?;
        }
        Ok(self.engine.tasks().read(&visit.caller, task.head.id.as_str()).await?)
    }

    fn stop(&self) -> CancellationToken {
        self.stop.get().cloned().unwrap_or_default()
    }
}

fn no_agent(slug: &str) -> ServiceError {
    Failure::new(FailureKind::NotFound, format!("there is no agent \"{slug}\"")).into()
}

fn sent(mut task: Task, history: HistoryLength, wanted: &[String]) -> ServiceReply {
    let (door, mut activated) = (task.head.door, std::mem::take(&mut task.activated));
    activated.retain(|uri| wanted.contains(uri));
    let answer = match render::reply(&task) {
        Some(message) => SendAnswer::Message(message),
        None => SendAnswer::Task(render::task(task, history)),
    };
    ServiceReply::Sent { answer, door, activated }
}
