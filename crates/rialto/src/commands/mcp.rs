//! `rialto mcp`: an MCP server on stdin and stdout, for one client.

use std::sync::Arc;

use rialto_engine::Engine;
use rialto_mcp::{LoadAgents, McpEndpoint, McpEndpointOptions, SchemaStyle, ToolErrors, ToolList, ToolNames};
use rialto_model::card::Card;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::{
    app::App,
    cli::McpStdioOptions,
    commands::{call, serve},
    output::CommandError,
};

/// The largest card file.
const MAX_CARD_BYTES: u64 = 1024 * 1024;

pub(crate) async fn run(program: App, mcp: McpStdioOptions) -> Result<(), CommandError> {
    let mut config = program.config.mcp_config();
    // A client on stdin is a local user.
    config.invoking.read_card = Some(Arc::new(read_card));
    if let Some(mode) = &mcp.names {
        config.tool_names = ToolNames::parse(mode).ok_or_else(|| {
            CommandError::usage(format!(
                "\"{mode}\" is not a way to name tools; use auto, canonical, legacy or both"
            ))
        })?;
    }
    if let Some(list) = &mcp.tools {
        config.tools = ToolList::parse(list).ok_or_else(|| {
            CommandError::usage(format!("\"{list}\" is no list of tools; use all or search"))
        })?;
    }
    if let Some(schemas) = &mcp.schemas {
        config.schemas = SchemaStyle::parse(schemas).ok_or_else(|| {
            CommandError::usage(format!(
                "\"{schemas}\" is no kind of schemas; use auto, portable or original"
            ))
        })?;
    }
    if let Some(errors) = &mcp.errors {
        config.tool_errors = ToolErrors::parse(errors).ok_or_else(|| {
            CommandError::usage(format!("\"{errors}\" is no form of failed calls; use result or protocol"))
        })?;
    }
    program.log_calls();
    program.start();
    program.watch_config(false);
    program.run_learning();
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
        serve::stop_signal().await;
        terminated.cancel();
    });
    let loading = async {
        load_agents(&program, &mcp.agents).await;
        loaded.cancel();
        if mcp.policy.is_none() {
            // Policies of this process alone must not end tasks of others.
            program.run_takeover();
        }
        std::future::pending().await
    };
    let served = tokio::select! {
        served = door.serve_stdio(program.local_caller(), stop) => served,
        served = loading => served,
    };
    drain_calls(&program.engine).await;
    program.close().await;
    served.map_err(|error| CommandError::failed(error.to_string()))
}

/// Loads the agents of the command line. An unreachable one does not prevent the start: the error is
/// logged, and the client can try again with `load_agent`.
async fn load_agents(program: &App, agents: &[String]) {
    for (url, outcome) in agents.iter().zip(call::load_agents(program, agents).await) {
        if let Err(trouble) = outcome {
            tracing::error!("agent {} was not loaded: {}", without_login(url), trouble.message);
        }
    }
}

/// Reads a card file of this machine.
fn read_card(path: &str) -> Result<Card, String> {
    let about = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !about.is_file() || about.len() > MAX_CARD_BYTES {
        return Err(format!("not a file of at most {MAX_CARD_BYTES} bytes"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    rialto_a2a_codec::card::decode(&text).map_err(|error| error.to_string())
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

/// Drains calls after the client disconnected. Tasks continue at their agents; the next process asks for them.
async fn drain_calls(engine: &Engine) {
    engine.running().drain(std::time::Duration::from_millis(200)).await;
    engine.running().detach_all().await;
}
