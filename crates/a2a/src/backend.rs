//! Backend that calls remote A2A agents.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{
    FutureExt, StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use rialto_a2a_codec::{
    error::ErrorCode,
    request::{A2aRequest, Configuration, GetTask, SendRequest, TaskRef},
};
use rialto_engine::peer::{DialectObserver, Peer};
use rialto_http_client::fetch::Fetch;
use rialto_model::{
    call::{Call, CancelRequest, FollowRequest},
    clock::Clock,
    event::Event,
    failure::{Failure, FailureKind},
    message::{Message, Role},
};
use rialto_policy::Permitted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::{
    agent_link::AgentLinks,
    arguments::parts_for,
    client::{AgentClient, ExchangeContext, RequestIds},
    credential::{CredentialResolver, SecretResolver},
    event_mapper::EventMapper,
    exchange::Exchange,
};

/// Configuration of calls to agents (`[a2a]`).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Maximum number of concurrent exchanges with one agent.
    pub max_in_flight: usize,
    /// Maximum number of detached exchanges with one agent, whose callers have stopped waiting, besides `max_in_flight`: a call without
    /// a free slot takes over that of such an exchange.
    pub max_detached: usize,
    /// Maximum time that a call waits for a slot, in milliseconds.
    pub max_wait_ms: u64,
    /// Idle timeout of an agent during an exchange, in milliseconds. Calls have a shorter timeout of their own; this one is for detached
    /// exchanges.
    pub patience_ms: u64,
    /// Time before a task is first polled, in milliseconds.
    pub poll_first_ms: u64,
    /// Maximum time between two polls, in milliseconds.
    pub poll_longest_ms: u64,
    /// Time for which a task is polled without any change, after the agent has closed its stream without a result, before the call
    /// fails, in milliseconds. At least as long as the call has taken so far.
    pub stream_end_wait_ms: u64,
    /// Maximum pause before a request is sent again to an agent that answers 429 or 503 and asks for a pause with
    /// `Retry-After`, in milliseconds. That is done up to four times, and not beyond the call's own timeout. A longer pause fails the call, with the pause in the error.
    pub retry_after_max_ms: u64,
    /// Time to wait for a cancelled task to end, in milliseconds.
    pub cancel_wait_ms: u64,
}

/// Dependencies of the backend.
pub struct A2aBackendDeps {
    /// Outbound HTTP client.
    pub fetch: Arc<dyn Fetch>,
    /// Resolver of agents' secrets.
    pub tokens: SecretResolver,
    /// Observer of the dialects that agents turned out to speak.
    pub learned: Arc<dyn DialectObserver>,
    /// Clock for request ids.
    pub clock: Arc<dyn Clock>,
}

/// Backend that calls A2A agents of every generation.
#[derive(Clone)]
pub struct A2aBackend(Arc<AgentClient>);

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            max_in_flight: 64,
            max_detached: 256,
            max_wait_ms: 5_000,
            patience_ms: 300_000,
            poll_first_ms: 250,
            poll_longest_ms: 5_000,
            stream_end_wait_ms: 4_000,
            retry_after_max_ms: 5_000,
            cancel_wait_ms: 5_000,
        }
    }
}

// === impl A2aPeer ===

impl A2aBackend {
    /// Creates a backend without connections.
    pub fn new(config: Config, ports: A2aBackendDeps) -> Self {
        Self(Arc::new(AgentClient {
            lines: AgentLinks::new(config.max_in_flight, config.max_detached),
            config,
            keys: CredentialResolver::new(ports.tokens, Arc::clone(&ports.fetch)),
            fetch: ports.fetch,
            learned: ports.learned,
            ids: RequestIds::new(ports.clock),
        }))
    }
}

impl Peer for A2aBackend {
    fn send(&self, call: Permitted<Call>) -> BoxStream<'static, Event> {
        let mut call = call.into_inner();
        let pair = ExchangeContext::new(Arc::clone(&call.target.agent), &self.0.lines, &call.caller);
        let pair = pair.in_trace(call.trace.take()).with_extensions(call.spoken.as_deref());
        let pair = pair.called_by(call.presence.clone(), call.target.skill.clone());
        let request = spoken(call, self.0.ids.fresh());
        let events = Exchange::saying(Arc::clone(&self.0), pair, request).events();
        events.map(|event| event.unwrap_or_else(Event::failed)).boxed()
    }

    fn follow(&self, follow: Permitted<FollowRequest>) -> BoxStream<'static, Result<Event, Failure>> {
        let FollowRequest { caller, target, remote, to_the_end } = follow.into_inner();
        if remote.task_id.is_none() {
            return stream::iter([Err(nameless())]).boxed();
        }
        let pair = ExchangeContext::new(target.agent, &self.0.lines, &caller);
        Exchange::following(Arc::clone(&self.0), pair, remote, to_the_end).events().boxed()
    }

    fn cancel(&self, cancel: Permitted<CancelRequest>) -> BoxFuture<'static, Result<Vec<Event>, Failure>> {
        let post = Arc::clone(&self.0);
        async move { post.call_off(cancel.into_inner()).await }.boxed()
    }
}

// === impl AgentClient ===

impl AgentClient {
    /// Cancels a task and waits until it has ended. An agent may need a moment to stop, and some never report the end unless they are
    /// polled (Q4).
    async fn call_off(&self, cancel: CancelRequest) -> Result<Vec<Event>, Failure> {
        let pair = ExchangeContext::new(cancel.target.agent, &self.lines, &cancel.caller);
        let id = cancel.remote.task_id.clone().ok_or_else(nameless)?;
        let mut teller = EventMapper::knowing(cancel.remote);
        let mut look = A2aRequest::Get(GetTask { id: id.clone(), ..GetTask::default() });
        let mut stop = A2aRequest::Cancel(TaskRef { id, ..TaskRef::default() });
        let asked = match self.ask_task(&pair, &mut stop).await {
            // It has ended already; its result is worth more than the refusal.
            Err(trouble) if trouble.code == Some(ErrorCode::TaskNotCancelable) => {
                self.ask_task(&pair, &mut look).await
            }
            asked => asked,
        };
        teller.hear_task(asked.map_err(|trouble| trouble.failure)?);
        let begun = Instant::now();
        while !teller.has_ended() && begun.elapsed() < Duration::from_millis(self.config.cancel_wait_ms) {
            sleep(Duration::from_millis(self.config.poll_first_ms)).await;
            if let Ok(task) = self.ask_task(&pair, &mut look).await {
                teller.hear_task(task);
            }
        }
        Ok(std::iter::from_fn(|| teller.next()).collect())
    }
}

/// Converts the call to a message for an agent.
fn spoken(call: Call, number: u64) -> SendRequest {
    let id = [&*call.session, "-", &number.to_string()].concat();
    let parts = match &call.spoken {
        // An A2A client has chosen the form of its parts itself.
        Some(_) => call.parts,
        None => parts_for(&call.target.agent, call.target.skill.as_deref(), call.parts),
    };
    let mut message = Message::new(id, Role::User, parts);
    let (mut metadata, mut configuration) = (None, Configuration::default());
    if let Some(spoken) = call.spoken {
        // Messages of A2A clients are passed on unchanged; only the ids of task and conversation are the agent's.
        let said = &spoken.message;
        if !said.id.is_empty() {
            message.id.clone_from(&said.id);
        }
        message.metadata.clone_from(&said.metadata);
        message.extensions.clone_from(&said.extensions);
        message.extra = said.extra.clone();
        message.reference_task_ids.clone_from(&spoken.references);
        configuration.accepted_output_modes.clone_from(&spoken.accepts);
        metadata.clone_from(&spoken.metadata);
    }
    message.task_id = call.continues.task_id;
    message.context_id = call.continues.context_id;
    SendRequest {
        metadata,
        configuration,
        skill: call.target.skill.as_ref().map(|skill| skill.id.as_str().to_owned()),
        correlation_id: Some(call.session.to_string()),
        task_id: Some(call.session.to_string()),
        ..SendRequest::new(message)
    }
}

fn nameless() -> Failure {
    Failure::new(FailureKind::Conflict, "the agent never gave this task a name, so it cannot be asked for")
}
