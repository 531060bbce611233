//! Backend that executes functions.
//!
//! A function has no tasks of its own: it runs while its call is polled, and ends when that is dropped.

use std::{sync::Arc, time::Duration};

use futures::{
    FutureExt, StreamExt,
    future::{self, BoxFuture},
    stream::{self, BoxStream},
};
use rialto_engine::{announce_working::with_working_notice, peer::Peer, schema::Schemas};
use rialto_http_client::fetch::Fetch;
use rialto_model::{
    backing::{Backing, BackingTransport, FunctionBacking},
    call::{Call, CancelRequest, FollowRequest},
    event::{Event, EventAside},
    failure::{Failure, FailureKind},
    message::{Artifact, Content, Part},
    secret_templates::SecretResolver,
};
use rialto_policy::Permitted;
use rialto_process::Launcher;
use tokio::{sync::Semaphore, time::timeout};

use crate::{command_function, http_function};

/// Maximum number of commands that run at once; further calls wait, within their timeout.
const MAX_RUNNING_PROGRAMS: usize = 64;

/// Dependencies of the backend.
pub struct FunctionDeps {
    /// Outbound HTTP client.
    pub fetch: Arc<dyn Fetch>,
    /// Launcher of commands.
    pub launcher: Launcher,
    /// Resolver of secrets in headers and variables.
    pub secrets: SecretResolver,
}

/// Executes calls to functions.
#[derive(Clone)]
pub struct FunctionBackend(Arc<FunctionInner>);

struct FunctionInner {
    deps: FunctionDeps,
    results: Schemas,
    programs: Semaphore,
}

// === impl FunctionBackend ===

impl FunctionBackend {
    /// Creates the backend.
    pub fn new(deps: FunctionDeps) -> Self {
        let programs = Semaphore::new(MAX_RUNNING_PROGRAMS);
        Self(Arc::new(FunctionInner { deps, results: Schemas::default(), programs }))
    }
}

impl Peer for FunctionBackend {
    fn send(&self, call: Permitted<Call>) -> BoxStream<'static, Event> {
        let inner = Arc::clone(&self.0);
        let events = async move {
            let call = call.get();
            match inner.run(call).await {
                Ok(part) => stream::iter(result_events(call, part)),
                Err(failure) => stream::iter(vec![Event::failed(failure)]),
            }
        };
        with_working_notice(events.flatten_stream().boxed())
    }

    fn follow(&self, _: Permitted<FollowRequest>) -> BoxStream<'static, Result<Event, Failure>> {
        stream::once(future::ready(Err(not_resumable()))).boxed()
    }

    fn cancel(&self, _: Permitted<CancelRequest>) -> BoxFuture<'static, Result<Vec<Event>, Failure>> {
        future::ready(Err(not_resumable())).boxed()
    }
}

// === impl FunctionInner ===

impl FunctionInner {
    async fn run(&self, call: &Call) -> Result<Part, Failure> {
        let (Backing::Function(function), Some(_)) = (&call.target.agent.backing, &call.target.skill) else {
            return Err(Failure::new(
                FailureKind::Invalid,
                "a function is called by its name, with arguments",
            ));
        };
        let limit = Duration::from_millis(function.timeout_ms);
        let part = match timeout(limit, self.execute(function, call)).await {
            Ok(done) => done?,
            Err(_) => {
                let message =
                    format!("{} took longer than {} ms and was ended", function.name, function.timeout_ms);
                return Err(Failure::new(FailureKind::PeerTimeout, message));
            }
        };
        self.check_result(function, call, &part)?;
        Ok(part)
    }

    async fn execute(&self, function: &FunctionBacking, call: &Call) -> Result<Part, Failure> {
        match &function.via {
            BackingTransport::Http(endpoint) => {
                http_function::call(&self.deps, endpoint, function, call).await
            }
            BackingTransport::Command(command) => {
                // The semaphore is never closed.
                let _permit = self.programs.acquire().await;
                command_function::call(&self.deps.launcher, command, function, call).await
            }
        }
    }

    fn check_result(&self, function: &FunctionBacking, call: &Call, part: &Part) -> Result<(), Failure> {
        let Some(schema) = &function.output_schema else { return Ok(()) };
        let wrong = |why: &str| {
            let message = format!("the result of {} does not fit its output_schema: {why}", function.name);
            Failure::new(FailureKind::PeerGarbled, message)
        };
        let Content::Data(data) = &part.content else { return Err(wrong("it is not JSON")) };
        self.results.check_value(&call.target, schema, &data.value()).map_err(|why| wrong(&why))
    }
}

fn result_events(call: &Call, part: Part) -> Vec<Event> {
    let name = Some(format!("{}-result", call.target.skill_id()));
    let artifact = Artifact { name, ..Artifact::new("result", vec![part]) };
    vec![
        Event::Artifact { artifact, append: false, last: true, aside: EventAside::default() },
        Event::Finished { message: None, aside: EventAside::default() },
    ]
}

fn not_resumable() -> Failure {
    Failure::new(FailureKind::Conflict, "a function cannot be asked about what it did earlier; call it again")
}
