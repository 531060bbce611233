//! Remote A2A agents, as the engine calls them.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{
    FutureExt, StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use rialto_a2a_wire::{
    error::Code,
    request::{Configuration, GetTask, Request, SendRequest, TaskRef},
};
use rialto_edge::fetch::Fetch;
use rialto_engine::peer::{Learned, Peer};
use rialto_model::{
    call::{Call, Cancel, Follow},
    clock::Clock,
    event::Event,
    failure::{Failure, Kind},
    message::{Message, Role},
};
use rialto_policy::Permitted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::{
    arguments::parts_for,
    credential::{Keys, Resolver},
    exchange::Exchange,
    line::Lines,
    post::{Ids, Pair, Post},
    teller::Teller,
};

/// How agents are called.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// How many exchanges may run with one agent at the same time.
    pub max_in_flight: usize,
    /// How many exchanges with one agent may go on after their callers have stopped waiting, beside `max_in_flight`: a call that finds no turn takes
    /// that of such an exchange.
    pub max_detached: usize,
    /// How long a call may wait for its turn, in milliseconds.
    pub max_wait_ms: u64,
    /// How long an agent may be silent in the middle of an exchange, in milliseconds. Calls have a shorter wall clock of
    /// their own; this is for what goes on after it.
    pub patience_ms: u64,
    /// How long to wait before a task is first asked for again, in milliseconds.
    pub poll_first_ms: u64,
    /// How long to wait at most between two questions, in milliseconds.
    pub poll_longest_ms: u64,
    /// How long a task is polled without any change, after the agent has closed its stream without a result, before the call
    /// fails, in milliseconds. At least as long as the call has taken so far.
    pub stream_end_wait_ms: u64,
    /// How long to wait at most before a request is sent again to an agent that answers 429 or 503 and asks for a pause with
    /// `Retry-After`, in milliseconds. That is done up to four times, and not beyond the call's own timeout. A longer pause fails the call, and its caller is told how long it is.
    pub retry_after_max_ms: u64,
    /// How long to wait for a task that was called off to come to its end, in milliseconds.
    pub cancel_wait_ms: u64,
}

/// What the peer needs from outside.
pub struct Ports {
    /// The way out.
    pub fetch: Arc<dyn Fetch>,
    /// Reads the agents' secrets.
    pub tokens: Resolver,
    /// Hears which dialect an agent turned out to speak.
    pub learned: Arc<dyn Learned>,
    /// Numbers requests.
    pub clock: Arc<dyn Clock>,
}

/// Calls remote A2A agents of every generation.
#[derive(Clone)]
pub struct A2aPeer(Arc<Post>);

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

impl A2aPeer {
    /// A peer that has not talked to anybody yet.
    pub fn new(config: Config, ports: Ports) -> Self {
        Self(Arc::new(Post {
            lines: Lines::new(config.max_in_flight, config.max_detached),
            config,
            keys: Keys::new(ports.tokens, Arc::clone(&ports.fetch)),
            fetch: ports.fetch,
            learned: ports.learned,
            ids: Ids::new(ports.clock),
        }))
    }
}

impl Peer for A2aPeer {
    fn send(&self, call: Permitted<Call>) -> BoxStream<'static, Event> {
        let mut call = call.into_inner();
        let pair = Pair::new(Arc::clone(&call.target.agent), &self.0.lines, &call.caller);
        let pair = pair.in_trace(call.trace.take()).with_extensions(call.spoken.as_deref());
        let pair = pair.called_by(call.presence.clone(), call.target.skill.clone());
        let request = spoken(call, self.0.ids.fresh());
        let events = Exchange::saying(Arc::clone(&self.0), pair, request).events();
        events.map(|event| event.unwrap_or_else(Event::failed)).boxed()
    }

    fn follow(&self, follow: Permitted<Follow>) -> BoxStream<'static, Result<Event, Failure>> {
        let Follow { caller, target, remote, to_the_end } = follow.into_inner();
        if remote.task_id.is_none() {
            return stream::iter([Err(nameless())]).boxed();
        }
        let pair = Pair::new(target.agent, &self.0.lines, &caller);
        Exchange::following(Arc::clone(&self.0), pair, remote, to_the_end).events().boxed()
    }

    fn cancel(&self, cancel: Permitted<Cancel>) -> BoxFuture<'static, Result<Vec<Event>, Failure>> {
        let post = Arc::clone(&self.0);
        async move { post.call_off(cancel.into_inner()).await }.boxed()
    }
}

// === impl Post ===

impl Post {
    /// Calls a task off and stays until it is over. An agent may need a moment to stop, and some never say that they
    /// did unless they are asked (Q4).
    async fn call_off(&self, cancel: Cancel) -> Result<Vec<Event>, Failure> {
        let pair = Pair::new(cancel.target.agent, &self.lines, &cancel.caller);
        let id = cancel.remote.task_id.clone().ok_or_else(nameless)?;
        let mut teller = Teller::knowing(cancel.remote);
        let mut look = Request::Get(GetTask { id: id.clone(), ..GetTask::default() });
        let mut stop = Request::Cancel(TaskRef { id, ..TaskRef::default() });
        let asked = match self.ask_task(&pair, &mut stop).await {
            // It is over already; what became of it is worth more than the refusal.
            Err(trouble) if trouble.code == Some(Code::TaskNotCancelable) => {
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

/// The call as something said to an agent.
fn spoken(call: Call, number: u64) -> SendRequest {
    let id = [&*call.session, "-", &number.to_string()].concat();
    let parts = match &call.spoken {
        // A client that speaks A2A has chosen its parts itself.
        Some(_) => call.parts,
        None => parts_for(&call.target.agent, call.target.skill.as_deref(), call.parts),
    };
    let mut message = Message::new(id, Role::User, parts);
    let (mut metadata, mut configuration) = (None, Configuration::default());
    if let Some(spoken) = call.spoken {
        // Whoever speaks A2A is passed on in its own words; only the names of task and conversation are the agent's.
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
    Failure::new(Kind::Conflict, "the agent never gave this task a name, so it cannot be asked for")
}
