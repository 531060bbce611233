//! Functions, as the engine calls them.
//!
//! A function has no tasks of its own: it runs while somebody listens, and whoever stops listening ends it.

use std::{sync::Arc, time::Duration};

use futures::{
    FutureExt, StreamExt,
    future::{self, BoxFuture},
    stream::{self, BoxStream},
};
use rialto_edge::{fetch::Fetch, process::Launcher, settings::Resolver};
use rialto_engine::{announce_working::announced, peer::Peer, schema::Schemas};
use rialto_model::{
    backing::{Backing, BackingTransport, FunctionBacking},
    call::{Call, CancelRequest, FollowRequest},
    event::{Event, EventAside},
    failure::{Failure, FailureKind},
    message::{Artifact, Content, Part},
};
use rialto_policy::Permitted;
use tokio::{sync::Semaphore, time::timeout};

use crate::{command, endpoint};

/// So many programs may run at once; calls beyond that wait for their turn, as long as they may take at all.
const PROGRAMS: usize = 64;

/// What the peer needs from outside.
pub struct Ports {
    /// The way out.
    pub fetch: Arc<dyn Fetch>,
    /// Starts programs.
    pub launcher: Launcher,
    /// Reads the secrets that headers are made of.
    pub secrets: Resolver,
}

/// Calls functions.
#[derive(Clone)]
pub struct FunctionPeer(Arc<Inner>);

struct Inner {
    ports: Ports,
    results: Schemas,
    programs: Semaphore,
}

// === impl FunctionPeer ===

impl FunctionPeer {
    /// A peer that has not called anything yet.
    pub fn new(ports: Ports) -> Self {
        let programs = Semaphore::new(PROGRAMS);
        Self(Arc::new(Inner { ports, results: Schemas::default(), programs }))
    }
}

impl Peer for FunctionPeer {
    fn send(&self, call: Permitted<Call>) -> BoxStream<'static, Event> {
        let inner = Arc::clone(&self.0);
        let told = async move {
            let call = call.get();
            match inner.run(call).await {
                Ok(part) => stream::iter(finished(call, part)),
                Err(failure) => stream::iter(vec![Event::failed(failure)]),
            }
        };
        announced(told.flatten_stream().boxed())
    }

    fn follow(&self, _: Permitted<FollowRequest>) -> BoxStream<'static, Result<Event, Failure>> {
        stream::once(future::ready(Err(nobody_to_ask()))).boxed()
    }

    fn cancel(&self, _: Permitted<CancelRequest>) -> BoxFuture<'static, Result<Vec<Event>, Failure>> {
        future::ready(Err(nobody_to_ask())).boxed()
    }
}

// === impl Inner ===

impl Inner {
    async fn run(&self, call: &Call) -> Result<Part, Failure> {
        let (Backing::Function(function), Some(_)) = (&call.target.agent.backing, &call.target.skill) else {
            return Err(Failure::new(
                FailureKind::Invalid,
                "a function is called by its name, with arguments",
            ));
        };
        let limit = Duration::from_millis(function.timeout_ms);
        let part = match timeout(limit, self.reach(function, call)).await {
            Ok(done) => done?,
            Err(_) => {
                let message =
                    format!("{} took longer than {} ms and was ended", function.name, function.timeout_ms);
                return Err(Failure::new(FailureKind::PeerTimeout, message));
            }
        };
        self.check(function, call, &part)?;
        Ok(part)
    }

    async fn reach(&self, function: &FunctionBacking, call: &Call) -> Result<Part, Failure> {
        match &function.via {
            BackingTransport::Http(endpoint) => endpoint::call(&self.ports, endpoint, function, call).await,
            BackingTransport::Command(wanted) => {
                // Nobody closes it.
                let _turn = self.programs.acquire().await;
                command::call(&self.ports.launcher, wanted, function, call).await
            }
        }
    }

    fn check(&self, function: &FunctionBacking, call: &Call, part: &Part) -> Result<(), Failure> {
        let Some(schema) = &function.output_schema else { return Ok(()) };
        let wrong = |why: &str| {
            let message = format!("the result of {} does not fit its output_schema: {why}", function.name);
            Failure::new(FailureKind::PeerGarbled, message)
        };
        let Content::Data(data) = &part.content else { return Err(wrong("it is not JSON")) };
        self.results.check_value(&call.target, schema, &data.value()).map_err(|why| wrong(&why))
    }
}

fn finished(call: &Call, part: Part) -> Vec<Event> {
    let name = Some(format!("{}-result", call.target.skill_id()));
    let artifact = Artifact { name, ..Artifact::new("result", vec![part]) };
    vec![
        Event::Artifact { artifact, append: false, last: true, aside: EventAside::default() },
        Event::Finished { message: None, aside: EventAside::default() },
    ]
}

fn nobody_to_ask() -> Failure {
    Failure::new(FailureKind::Conflict, "a function cannot be asked about what it did earlier; call it again")
}
