//! Form in which a call is passed on to the node that runs its program, and the events come back.

use std::sync::Arc;

use rialto_model::{
    call::{Call, CallTarget, Caller, CancelRequest, EntryProtocol, OriginalMessage},
    event::{Event, RemoteIds},
    failure::{Failure, FailureKind},
    ids::{AgentId, TaskId},
    json::Json,
    message::{Message, Part},
    presence::CallerPresence,
};
use serde::{Deserialize, Serialize};

use crate::engine::Engine;

/// Work that is passed on.
#[derive(Serialize, Deserialize)]
pub(crate) enum RelayedWork {
    /// Execute a call.
    Send(Box<SentCall>),
    /// Cancel a task.
    Cancel(Box<SentCancel>),
}

/// A line of the answer.
#[derive(Serialize, Deserialize)]
pub(crate) enum RelayedItem {
    /// An event.
    Event(Box<Event>),
    /// The work could not be done.
    Failed(Failure),
    /// There is nothing more.
    End,
}

/// A call, without what means nothing elsewhere: its trace, the signed token of its caller, and how long that waits.
#[derive(Serialize, Deserialize)]
pub(crate) struct SentCall {
    task: TaskId,
    caller: Caller,
    hops: u8,
    door: EntryProtocol,
    agent: AgentId,
    skill: Option<String>,
    parts: Vec<Part>,
    continues: RemoteIds,
    session: Arc<str>,
    spoken: Option<SentMessage>,
}

/// A message as its caller sent it.
#[derive(Serialize, Deserialize)]
struct SentMessage {
    message: Message,
    metadata: Option<Json>,
    extensions: Vec<String>,
    accepts: Vec<String>,
    references: Vec<String>,
}

/// A cancellation.
#[derive(Serialize, Deserialize)]
pub(crate) struct SentCancel {
    caller: Caller,
    agent: AgentId,
    skill: Option<String>,
    remote: RemoteIds,
}

// === impl SentCall ===

impl SentCall {
    pub(crate) fn new(call: &Call) -> Self {
        let spoken = call.spoken.as_ref().map(|spoken| SentMessage {
            message: spoken.message.clone(),
            metadata: spoken.metadata.clone(),
            extensions: spoken.extensions.clone(),
            accepts: spoken.accepts.clone(),
            references: spoken.references.clone(),
        });
        Self {
            task: call.task.clone(),
            caller: call.caller.clone(),
            hops: call.caller.hops,
            door: call.door,
            agent: call.target.agent.id.clone(),
            skill: skill_id(&call.target),
            parts: call.parts.clone(),
            continues: call.continues.clone(),
            session: Arc::clone(&call.session),
            spoken,
        }
    }

    pub(crate) fn into_call(self, engine: &Engine) -> Result<Call, Failure> {
        let spoken = self.spoken.map(|sent| {
            Arc::new(OriginalMessage {
                message: sent.message,
                metadata: sent.metadata,
                extensions: sent.extensions,
                accepts: sent.accepts,
                references: sent.references,
            })
        });
        Ok(Call {
            target: find_target(engine, &self.agent, self.skill.as_deref())?,
            task: self.task,
            caller: Caller { hops: self.hops, ..self.caller },
            door: self.door,
            parts: self.parts,
            continues: self.continues,
            session: self.session,
            trace: None,
            spoken,
            presence: CallerPresence::default(),
        })
    }
}

// === impl SentCancel ===

impl SentCancel {
    pub(crate) fn new(cancel: &CancelRequest) -> Self {
        Self {
            caller: cancel.caller.clone(),
            agent: cancel.target.agent.id.clone(),
            skill: skill_id(&cancel.target),
            remote: cancel.remote.clone(),
        }
    }

    pub(crate) fn into_cancel(self, engine: &Engine) -> Result<CancelRequest, Failure> {
        let target = find_target(engine, &self.agent, self.skill.as_deref())?;
        Ok(CancelRequest { caller: self.caller, target, remote: self.remote })
    }
}

fn skill_id(target: &CallTarget) -> Option<String> {
    target.skill.as_ref().map(|skill| skill.id.as_str().to_owned())
}

fn find_target(engine: &Engine, agent: &AgentId, skill: Option<&str>) -> Result<CallTarget, Failure> {
    let missing = |what: String| {
        Failure::new(FailureKind::Conflict, format!("{what} was removed; list the tools again"))
    };
    let agent = engine.registry().get(agent).ok_or_else(|| missing(format!("agent {agent}")))?;
    let skill = match skill {
        Some(id) => {
            let known = agent.card.skill(id).cloned();
            Some(known.ok_or_else(|| missing(format!("skill {id} of {}", agent.slug)))?)
        }
        None => None,
    };
    Ok(CallTarget { agent, skill })
}
