//! `rialto serve`: the HTTP door.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, routing::get};
use rialto_edge::{
    auth::{self, Authentication, TokenTable},
    gate::Gate,
    guard::Guard,
    serve::Door,
};
use rialto_mcp::{Control, LoadAgents};
use rialto_model::{
    call::CallerId,
    clock::{Clock, SystemClock},
    ids::Scope,
    store::Token,
};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::Serve,
    commands::tokens,
    environment::Environment,
    output::{self, Trouble},
    program::Program,
};

/// How long open streams may keep a stop waiting.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often it is checked whether tokens were made or revoked.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) async fn run(program: Program, serve: Serve, environment: &Environment) -> Result<(), Trouble> {
    let address = serve.addr.clone().unwrap_or_else(|| program.config.server.addr.clone());
    let door = Door::open(&address).await.map_err(|error| Trouble::other(with_cause(&error)))?;
    if serve.allow_no_auth && !door.address().ip().is_loopback() {
        return Err(Trouble::usage(format!(
            "--allow-no-auth lets everybody in, so it works on loopback only, not on {address}; leave it out, and give callers tokens with `rialto tokens create`"
        )));
    }
    let authentication = if serve.allow_no_auth {
        Authentication::Open(Program::local_caller())
    } else {
        Authentication::Tokens(tokens_of(&program, environment).await?)
    };
    let terminated = terminated();
    program.start();
    greet(&program, door.address(), serve.allow_no_auth);
    let router = router(&program, authentication);
    let stop = program.stop().clone();
    let stopped = stop.clone();
    tokio::spawn(async move {
        terminated.await;
        stop.cancel();
    });
    serve_until(door, router, stopped).await?;
    program.close().await;
    Ok(())
}

/// The whole HTTP surface. What is open to all is outside of the checks.
pub(crate) fn router(program: &Program, authentication: Authentication) -> Router {
    let server = &program.config.server;
    let refused = "agents are registered by whoever runs this server: `rialto agents add URL`";
    let mut mcp = program.config.mcp.clone();
    mcp.allowed_hosts.extend(server.allowed_hosts.iter().cloned());
    let control = Control { load_agents: LoadAgents::Refused(refused.to_owned()) };
    let mcp = rialto_mcp::Door::new(program.engine.clone(), mcp, control);
    let guard = Guard::new(&server.allowed_hosts, server.max_body_bytes);
    Router::new()
        .merge(mcp.router(program.stop().clone()))
        .layer(Gate::new(guard, authentication))
        .route("/healthz", get(|| async { "ok\n" }))
}

pub(crate) async fn serve_until(door: Door, router: Router, stop: CancellationToken) -> Result<(), Trouble> {
    let patience = stop.clone();
    let out_of_patience = async move {
        patience.cancelled().await;
        tokio::time::sleep(PATIENCE).await;
    };
    tokio::select! {
        served = door.serve(router, stop.cancelled_owned()) => {
            served.map_err(|error| Trouble::other(format!("the server stopped: {error}")))
        }
        () = out_of_patience => Ok(()),
    }
}

/// The tokens that may come in; made anew when any process changes them. The first start makes one and shows it once.
async fn tokens_of(program: &Program, environment: &Environment) -> Result<Arc<TokenTable>, Trouble> {
    let store = Arc::clone(&program.store);
    let unavailable = |error: rialto_model::store::StoreError| Trouble::other(error.to_string());
    let given = environment.get("RIALTO_TOKEN").map(given_token);
    let mut known = store.tokens().await.map_err(unavailable)?;
    if known.is_empty() && given.is_none() {
        let (row, token) = tokens::create(&*store, "admin").await.map_err(unavailable)?;
        output::line(format!("A token for this server was made. It is shown this once:\n\n    {token}\n"));
        known.push(row);
    }
    let all = |known: Vec<Token>| known.into_iter().chain(given.clone()).collect::<Vec<_>>();
    let table = Arc::new(TokenTable::new(&all(known)));
    let (followed, stop) = (Arc::clone(&table), program.stop().clone());
    let given = given.clone();
    tokio::spawn(async move {
        let mut generation = store.generation();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            if store.generation() != generation {
                generation = store.generation();
                match store.tokens().await {
                    Ok(tokens) => {
                        followed.replace(&tokens.into_iter().chain(given.clone()).collect::<Vec<_>>());
                    }
                    Err(error) => tracing::error!("the tokens could not be read: {error}"),
                }
            }
        }
    });
    Ok(table)
}

fn given_token(token: &str) -> Token {
    Token {
        id: "RIALTO_TOKEN".to_owned(),
        hash: auth::hash(token),
        scope: Scope::default(),
        caller: CallerId::from("admin"),
        created_at: SystemClock.now(),
    }
}

fn greet(program: &Program, address: SocketAddr, open: bool) {
    let skills = program.engine.registry().directory(&Scope::default()).len();
    let agents = program.engine.registry().agents(&Scope::default()).len();
    output::line(format!(
        "Rialto serves {skills} skills of {agents} agents as MCP tools at http://{address}/mcp"
    ));
    if let Some(data) = &program.data {
        output::line(format!("Data is kept in {}", data.display()));
    }
    let header = if open { "" } else { " --header \"Authorization: Bearer $RIALTO_TOKEN\"" };
    output::line(format!(
        "Claude Code:  claude mcp add --transport http rialto http://{address}/mcp{header}"
    ));
    if agents == 0 {
        output::line("No agents yet: rialto agents add URL --allow");
    }
}

/// Waits for the signal to stop. It is heard from now on, not only once it is waited for.
pub(crate) fn terminated() -> impl Future<Output = ()> + Send {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
        async move {
            let (Ok(mut interrupt), Ok(mut terminate)) = signals else {
                return std::future::pending().await;
            };
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        }
    }
    #[cfg(not(unix))]
    async {
        let _ = tokio::signal::ctrl_c().await;
    }
}

fn with_cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error} ({cause})"))
}
