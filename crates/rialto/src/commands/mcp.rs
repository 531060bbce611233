//! `rialto mcp`: an MCP server on stdin and stdout, for one client.

use std::sync::Arc;

use rialto_engine::Engine;
use rialto_mcp::{LoadAgents, McpEndpoint, McpEndpointOptions, SchemaStyle, ToolErrors, ToolList, ToolNames};
use rialto_model::card::Card;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::{
    cli::Mcp,
    commands::{call, serve},
    output::Trouble,
    program::Program,
};

/// The largest card file.
const LARGEST_CARD: u64 = 1024 * 1024;

pub(crate) async fn run(program: Program, mcp: Mcp) -> Result<(), Trouble> {
    let mut config = program.config.mcp_door();
    // Whoever talks to us on stdin sits at this machine.
    config.invoking.read_card = Some(Arc::new(read_card));
    if let Some(mode) = &mcp.names {
        config.tool_names = ToolNames::parse(mode).ok_or_else(|| {
            Trouble::usage(format!(
                "\"{mode}\" is not a way to name tools; use auto, canonical, legacy or both"
            ))
        })?;
    }
    if let Some(list) = &mcp.tools {
        config.tools = ToolList::parse(list)
            .ok_or_else(|| Trouble::usage(format!("\"{list}\" is no list of tools; use all or search")))?;
    }
    if let Some(schemas) = &mcp.schemas {
        config.schemas = SchemaStyle::parse(schemas).ok_or_else(|| {
            Trouble::usage(format!("\"{schemas}\" is no kind of schemas; use auto, portable or original"))
        })?;
    }
    if let Some(errors) = &mcp.errors {
        config.tool_errors = ToolErrors::parse(errors).ok_or_else(|| {
            Trouble::usage(format!("\"{errors}\" is no form of failed calls; use result or protocol"))
        })?;
    }
    program.log_calls();
    program.start();
    program.follow_file(false);
    program.keep_learning();
    let loaded = CancellationToken::new();
    let door = McpEndpoint::new(
        program.engine.clone(),
        config,
        McpEndpointOptions { load_agents: LoadAgents::Session },
    )
    .complete_after(loaded.clone());
    let stop = program.stop().clone();
    let terminated = stop.clone();
    tokio::spawn(async move {
        serve::terminated().await;
        terminated.cancel();
    });
    let loading = async {
        load(&program, &mcp.agents).await;
        loaded.cancel();
        if mcp.policy.is_none() {
            // What policies of its own deny is not the end of somebody else's task.
            program.keep_post();
        }
        std::future::pending().await
    };
    let served = tokio::select! {
        served = door.serve_stdio(program.local_caller(), stop) => served,
        served = loading => served,
    };
    drain(&program.engine).await;
    program.close().await;
    served.map_err(|error| Trouble::other(error.to_string()))
}

/// Loads the agents that the command line names. One that does not answer does not keep the server from starting: the error is
/// logged, and the client can try again with `load_agent`.
async fn load(program: &Program, agents: &[String]) {
    for (url, outcome) in agents.iter().zip(call::load(program, agents).await) {
        if let Err(trouble) = outcome {
            tracing::error!("agent {} was not loaded: {}", without_login(url), trouble.message);
        }
    }
}

/// Reads a card file of this machine.
fn read_card(path: &str) -> Result<Card, String> {
    let about = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !about.is_file() || about.len() > LARGEST_CARD {
        return Err(format!("it is no file of at most {LARGEST_CARD} bytes"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    rialto_a2a_wire::card::decode(&text).map_err(|error| error.to_string())
}

/// An address as it may be shown: a password in it is not.
fn without_login(url: &str) -> String {
    let Ok(mut url) = Url::parse(url) else {
        return url.split('@').next_back().unwrap_or_default().to_owned();
    };
    // An address that has no room for a login has none.
    let _ = (url.set_username(""), url.set_password(None));
    url.into()
}

/// A client that hung up does not wait for its calls any more. What agents still do for it is kept: the next process asks them.
async fn drain(engine: &Engine) {
    engine.running().drain(std::time::Duration::from_millis(200)).await;
    engine.running().detach_all().await;
}
