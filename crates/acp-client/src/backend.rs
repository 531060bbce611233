//! Backend that executes calls to coding agents.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use futures::{
    FutureExt, StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use parking_lot::Mutex;
use rialto_engine::{
    WeakEngine,
    approvals::{ApprovalRequest, Verdict},
    peer::Peer,
};
use rialto_model::{
    agent::Agent,
    backing::{Backing, CodingAgentBacking, ToolPermission},
    call::{Call, CancelRequest, FollowRequest},
    event::{Event, EventAside, RemoteIds},
    failure::{Failure, FailureKind},
    ids::{AgentId, fresh},
    store::TaskFilter,
    task::TaskHead,
};
use rialto_policy::Permitted;
use rialto_process::Launcher;
use tokio_util::sync::CancellationToken;

use crate::{
    connection::AgentConnection,
    content_blocks,
    supervisor::AgentSupervisor,
    turn::{AgentTurn, TurnUpdate},
};

/// Time that an agent may take to stop when its task is cancelled.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of a caller's latest tasks that are searched for a session.
const MAX_SEARCHED_TASKS: usize = 500;

/// Executes calls to coding agents on this machine.
#[derive(Clone)]
pub struct AcpBackend(Arc<AcpInner>);

struct AcpInner {
    launcher: Launcher,
    engine: OnceLock<WeakEngine>,
    supervisors: Mutex<HashMap<AgentId, Arc<AgentSupervisor>>>,
    /// Turns that wait for approval.
    waiting: Mutex<HashMap<String, AgentTurn>>,
    /// Turns that are not over, for cancellation.
    handles: Mutex<HashMap<String, CancelHandle>>,
}

/// Handle to cancel a turn. It does not keep the program running.
struct CancelHandle {
    connection: Weak<AgentConnection>,
    session: agent_client_protocol::v1::schema::SessionId,
    ended: CancellationToken,
}

// === impl AcpBackend ===

impl AcpBackend {
    /// Creates the backend. Nothing is started yet.
    pub fn new(launcher: Launcher) -> Self {
        Self(Arc::new(AcpInner {
            launcher,
            engine: OnceLock::new(),
            supervisors: Mutex::default(),
            waiting: Mutex::default(),
            handles: Mutex::default(),
        }))
    }

    /// Sets the engine, which holds calls for approval.
    pub fn join(&self, engine: WeakEngine) {
        let _ = self.0.engine.set(engine);
    }

    /// Stops the programs of all rows but these.
    pub fn keep_only(&self, rows: &[Arc<Agent>]) {
        self.0.supervisors.lock().retain(|id, supervisor| {
            rows.iter().any(|row| {
                row.id == *id && matches!(&row.backing, Backing::Acp(local) if *local == supervisor.local)
            })
        });
    }

    /// Stops every program.
    pub fn close(&self) {
        self.0.waiting.lock().clear();
        self.0.supervisors.lock().clear();
    }
}

impl Peer for AcpBackend {
    fn send(&self, call: Permitted<Call>) -> BoxStream<'static, Event> {
        let (inner, call) = (Arc::clone(&self.0), Arc::new(call.into_inner()));
        let events = async move {
            match inner.begin_turn(&call).await {
                Ok((turn, first)) => stream::iter(first).chain(inner.stream_updates(call, turn)).boxed(),
                Err(failure) => stream::iter([Event::failed(failure)]).boxed(),
            }
        };
        events.flatten_stream().boxed()
    }

    fn follow(&self, follow: Permitted<FollowRequest>) -> BoxStream<'static, Result<Event, Failure>> {
        if !follow.get().to_the_end {
            // Everything known is in the journal.
            return stream::empty().boxed();
        }
        let message = "the process that ran the agent has ended, and its turn with it; the agent may have done some of it: check before you \
                       send it again, in the same context";
        stream::iter([Ok(Event::failed(Failure::new(FailureKind::PeerFailed, message)))]).boxed()
    }

    fn cancel(&self, cancel: Permitted<CancelRequest>) -> BoxFuture<'static, Result<Vec<Event>, Failure>> {
        let inner = Arc::clone(&self.0);
        let id = cancel.get().remote.task_id.clone().unwrap_or_default();
        async move {
            let handle = inner.handles.lock().remove(&id);
            // A turn that waits for approval is cancelled by dropping it.
            drop(inner.waiting.lock().remove(&id));
            if let Some(handle) = handle.filter(|handle| !handle.ended.is_cancelled()) {
                if let Some(connection) = handle.connection.upgrade() {
                    connection.cancel(&handle.session);
                }
                let _ = tokio::time::timeout(CANCEL_TIMEOUT, handle.ended.cancelled()).await;
            }
            Ok(vec![Event::Canceled { message: None, aside: EventAside::default() }])
        }
        .boxed()
    }
}

// === impl AcpInner ===

impl AcpInner {
    /// Starts a turn, or resumes one that waited.
    async fn begin_turn(&self, call: &Call) -> Result<(AgentTurn, Vec<Event>), Failure> {
        if let Some(id) = &call.continues.task_id {
            let lost = "the process in which the agent waited for this has ended; send it again, in the same context";
            let verdict = Verdict::of(&call.parts);
            let waiting = self.waiting.lock().remove(id);
            let (Some(mut turn), Some(verdict)) = (waiting, verdict) else {
                return Err(Failure::new(FailureKind::PeerFailed, lost));
            };
            turn.decide(verdict.approved);
            return Ok((turn, vec![working()]));
        }
        let local = local_agent(call)?;
        let unreachable = |why: String| {
            Failure::new(
                FailureKind::PeerUnreachable,
                format!("the agent {} cannot be had: {why}", local.name),
            )
        };
        let supervisor = self.supervisor(&call.target.agent.id, local);
        let connection = supervisor.connect(&self.launcher, &call.caller).await.map_err(unreachable)?;
        let takes = &connection.capabilities.prompt_capabilities;
        let blocks =
            content_blocks::from_parts(&call.parts, local.instructions(call.target.skill_id()), takes)?;
        let named = self.own_session(call).await;
        let claimed = connection.claim_session(named).await.map_err(unreachable)?;
        connection.prompt(&claimed, blocks);
        let turn = AgentTurn::new(format!("turn_{}", fresh()), connection, claimed);
        let handle = CancelHandle {
            connection: Arc::downgrade(&turn.connection),
            session: turn.session().clone(),
            ended: turn.ended.clone(),
        };
        let mut handles = self.handles.lock();
        handles.retain(|_, handle| !handle.ended.is_cancelled());
        handles.insert(turn.id.clone(), handle);
        drop(handles);
        let remote =
            RemoteIds { task_id: Some(turn.id.clone()), context_id: Some(turn.session().to_string()) };
        Ok((turn, vec![Event::Accepted { remote, aside: EventAside::default() }, working()]))
    }

    /// Session that a call names, if its caller has worked in it before.
    async fn own_session<'a>(&self, call: &'a Call) -> Option<&'a str> {
        let named = call.continues.context_id.as_deref()?;
        let engine = self.engine.get().and_then(WeakEngine::upgrade)?;
        let agent = Some(call.target.agent.id.clone());
        let filter = TaskFilter { agent, limit: MAX_SEARCHED_TASKS, ..TaskFilter::default() };
        let heads = engine.tasks().list(&call.caller, filter).await.ok()?;
        // A task that was never taken has the name that its caller gave, which proves nothing.
        let is_own = |head: &TaskHead| {
            head.id != call.task
                && head.remote.task_id.is_some()
                && head.remote.context_id.as_deref() == Some(named)
        };
        heads.iter().any(is_own).then_some(named)
    }

    fn supervisor(&self, id: &AgentId, local: &Arc<CodingAgentBacking>) -> Arc<AgentSupervisor> {
        let mut supervisors = self.supervisors.lock();
        let supervisor = supervisors
            .entry(id.clone())
            .or_insert_with(|| Arc::new(AgentSupervisor::new(Arc::clone(local))));
        if supervisor.local != *local {
            // Its configuration has changed.
            *supervisor = Arc::new(AgentSupervisor::new(Arc::clone(local)));
        }
        Arc::clone(supervisor)
    }

    /// Events of a turn, up to its end or to a request for approval.
    fn stream_updates(self: Arc<Self>, call: Arc<Call>, turn: AgentTurn) -> BoxStream<'static, Event> {
        let state = Some((self, call, turn));
        let batches = stream::unfold(state, |state| async move {
            let (inner, call, mut turn) = state?;
            loop {
                match turn.next_update().await {
                    TurnUpdate::Events(events) => {
                        return Some((stream::iter(events), Some((inner, call, turn))));
                    }
                    TurnUpdate::End(events) => {
                        inner.handles.lock().remove(&turn.id);
                        return Some((stream::iter(events), None));
                    }
                    TurnUpdate::Permission(tool, args) => {
                        let Some(asked) = inner.request_approval(&call, &mut turn, tool, args).await else {
                            continue;
                        };
                        inner.waiting.lock().insert(turn.id.clone(), turn);
                        return Some((stream::iter(vec![asked]), None));
                    }
                }
            }
        });
        batches.flatten().boxed()
    }

    /// Asks for approval of a permission request, unless the configuration decides.
    async fn request_approval(
        &self,
        call: &Call,
        turn: &mut AgentTurn,
        tool: String,
        args: rialto_model::json::Json,
    ) -> Option<Event> {
        let permission = local_agent(call).map_or(ToolPermission::Deny, |local| local.permission);
        match permission {
            ToolPermission::Allow => turn.decide(true),
            ToolPermission::Deny => turn.decide(false),
            ToolPermission::Ask => {
                let engine = self.engine.get().and_then(WeakEngine::upgrade);
                let asked = match &engine {
                    Some(engine) => {
                        engine.approvals().request(ApprovalRequest::of(call, tool, args)).await.ok()
                    }
                    None => None,
                };
                if asked.is_some() {
                    return asked;
                }
                // Without an engine no approval is possible.
                turn.decide(false);
            }
        }
        None
    }
}

fn local_agent(call: &Call) -> Result<&Arc<CodingAgentBacking>, Failure> {
    match &call.target.agent.backing {
        Backing::Acp(local) => Ok(local),
        _ => Err(Failure::new(FailureKind::Internal, "this is no coding agent on this machine")),
    }
}

fn working() -> Event {
    Event::Progress { working: true, message: None, aside: EventAside::default() }
}
