//! Coding agents, as the engine calls them.

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
use rialto_edge::process::Launcher;
use rialto_engine::{
    FaintEngine,
    approvals::{Verdict, Wish},
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
use tokio_util::sync::CancellationToken;

use crate::{
    blocks,
    line::Line,
    link::Link,
    turn::{News, Turn},
};

/// How long an agent may take to stop when its task is called off.
const STOPPING: Duration = Duration::from_secs(5);

/// So many of a caller's tasks, the latest, are looked through for the session that it names.
const LOOKED_THROUGH: usize = 500;

/// Prompts coding agents on this machine.
#[derive(Clone)]
pub struct AcpPeer(Arc<Inner>);

struct Inner {
    launcher: Launcher,
    engine: OnceLock<FaintEngine>,
    lines: Mutex<HashMap<AgentId, Arc<Line>>>,
    /// Turns that wait for approval.
    waiting: Mutex<HashMap<String, Turn>>,
    /// Turns that are not over, to be called off.
    handles: Mutex<HashMap<String, Handle>>,
}

/// What calling a turn off needs. The program does not stay because of it.
struct Handle {
    link: Weak<Link>,
    session: agent_client_protocol::v1::schema::SessionId,
    over: CancellationToken,
}

// === impl AcpPeer ===

impl AcpPeer {
    /// A peer that has not started anything yet.
    pub fn new(launcher: Launcher) -> Self {
        Self(Arc::new(Inner {
            launcher,
            engine: OnceLock::new(),
            lines: Mutex::default(),
            waiting: Mutex::default(),
            handles: Mutex::default(),
        }))
    }

    /// Who is asked for approval, once it is there.
    pub fn join(&self, engine: FaintEngine) {
        let _ = self.0.engine.set(engine);
    }

    /// Ends the programs of all rows but these.
    pub fn keep_only(&self, rows: &[Arc<Agent>]) {
        self.0.lines.lock().retain(|id, line| {
            rows.iter().any(|row| {
                row.id == *id && matches!(&row.backing, Backing::Acp(local) if *local == line.local)
            })
        });
    }

    /// Ends every program that was started.
    pub fn close(&self) {
        self.0.waiting.lock().clear();
        self.0.lines.lock().clear();
    }
}

impl Peer for AcpPeer {
    fn send(&self, call: Permitted<Call>) -> BoxStream<'static, Event> {
        let (inner, call) = (Arc::clone(&self.0), Arc::new(call.into_inner()));
        let told = async move {
            match inner.begin(&call).await {
                Ok((turn, first)) => stream::iter(first).chain(inner.listen(call, turn)).boxed(),
                Err(failure) => stream::iter([Event::failed(failure)]).boxed(),
            }
        };
        told.flatten_stream().boxed()
    }

    fn follow(&self, follow: Permitted<FollowRequest>) -> BoxStream<'static, Result<Event, Failure>> {
        if !follow.get().to_the_end {
            // What is known is in the journal.
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
            // One that waits for approval is called off by letting go of it.
            drop(inner.waiting.lock().remove(&id));
            if let Some(handle) = handle.filter(|handle| !handle.over.is_cancelled()) {
                if let Some(link) = handle.link.upgrade() {
                    link.cancel(&handle.session);
                }
                let _ = tokio::time::timeout(STOPPING, handle.over.cancelled()).await;
            }
            Ok(vec![Event::Canceled { message: None, aside: EventAside::default() }])
        }
        .boxed()
    }
}

// === impl Inner ===

impl Inner {
    /// Begins a turn, or goes on with one that waited.
    async fn begin(&self, call: &Call) -> Result<(Turn, Vec<Event>), Failure> {
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
        let local = local(call)?;
        let unreachable = |why: String| {
            Failure::new(
                FailureKind::PeerUnreachable,
                format!("the agent {} cannot be had: {why}", local.name),
            )
        };
        let line = self.line(&call.target.agent.id, local);
        let link = line.link(&self.launcher, &call.caller).await.map_err(unreachable)?;
        let takes = &link.capabilities.prompt_capabilities;
        let blocks = blocks::of(&call.parts, local.instructions(call.target.skill_id()), takes)?;
        let named = self.own_session(call).await;
        let taken = link.session(named).await.map_err(unreachable)?;
        link.prompt(&taken, blocks);
        let turn = Turn::new(format!("turn_{}", fresh()), link, taken);
        let handle = Handle {
            link: Arc::downgrade(&turn.link),
            session: turn.session().clone(),
            over: turn.over.clone(),
        };
        let mut handles = self.handles.lock();
        handles.retain(|_, handle| !handle.over.is_cancelled());
        handles.insert(turn.id.clone(), handle);
        drop(handles);
        let remote =
            RemoteIds { task_id: Some(turn.id.clone()), context_id: Some(turn.session().to_string()) };
        Ok((turn, vec![Event::Accepted { remote, aside: EventAside::default() }, working()]))
    }

    /// The session that a call names, if it is one in which its caller has worked before: nobody else's is.
    async fn own_session<'a>(&self, call: &'a Call) -> Option<&'a str> {
        let named = call.continues.context_id.as_deref()?;
        let engine = self.engine.get().and_then(FaintEngine::get)?;
        let agent = Some(call.target.agent.id.clone());
        let filter = TaskFilter { agent, limit: LOOKED_THROUGH, ..TaskFilter::default() };
        let heads = engine.tasks(&call.caller, filter).await.ok()?;
        // A task that was never taken has the name that its caller gave, which proves nothing.
        let is_own = |head: &TaskHead| {
            head.id != call.task
                && head.remote.task_id.is_some()
                && head.remote.context_id.as_deref() == Some(named)
        };
        heads.iter().any(is_own).then_some(named)
    }

    fn line(&self, id: &AgentId, local: &Arc<CodingAgentBacking>) -> Arc<Line> {
        let mut lines = self.lines.lock();
        let line = lines.entry(id.clone()).or_insert_with(|| Arc::new(Line::new(Arc::clone(local))));
        if line.local != *local {
            // It was configured anew.
            *line = Arc::new(Line::new(Arc::clone(local)));
        }
        Arc::clone(line)
    }

    /// What happens in a turn, up to its end or to something that must be approved.
    fn listen(self: Arc<Self>, call: Arc<Call>, turn: Turn) -> BoxStream<'static, Event> {
        let state = Some((self, call, turn));
        let batches = stream::unfold(state, |state| async move {
            let (inner, call, mut turn) = state?;
            loop {
                match turn.news().await {
                    News::Events(events) => return Some((stream::iter(events), Some((inner, call, turn)))),
                    News::End(events) => {
                        inner.handles.lock().remove(&turn.id);
                        return Some((stream::iter(events), None));
                    }
                    News::Wish(tool, args) => {
                        let Some(asked) = inner.ask(&call, &mut turn, tool, args).await else { continue };
                        inner.waiting.lock().insert(turn.id.clone(), turn);
                        return Some((stream::iter(vec![asked]), None));
                    }
                }
            }
        });
        batches.flatten().boxed()
    }

    /// Has somebody asked about a wish, unless it is settled how such wishes are answered.
    async fn ask(
        &self,
        call: &Call,
        turn: &mut Turn,
        tool: String,
        args: rialto_model::json::Json,
    ) -> Option<Event> {
        let permission = local(call).map_or(ToolPermission::Deny, |local| local.permission);
        match permission {
            ToolPermission::Allow => turn.decide(true),
            ToolPermission::Deny => turn.decide(false),
            ToolPermission::Ask => {
                let engine = self.engine.get().and_then(FaintEngine::get);
                let asked = match &engine {
                    Some(engine) => engine.hold_for_approval(Wish::of(call, tool, args)).await.ok(),
                    None => None,
                };
                if asked.is_some() {
                    return asked;
                }
                // Nobody can be asked, so nobody has approved it.
                turn.decide(false);
            }
        }
        None
    }
}

fn local(call: &Call) -> Result<&Arc<CodingAgentBacking>, Failure> {
    match &call.target.agent.backing {
        Backing::Acp(local) => Ok(local),
        _ => Err(Failure::new(FailureKind::Internal, "this is no coding agent on this machine")),
    }
}

fn working() -> Event {
    Event::Progress { working: true, message: None, aside: EventAside::default() }
}
