//! Many A2A agents on one port, each under its own path: enough to fill a registry.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::{
    agent::{json_response, status},
    child::Port,
    trouble::Trouble,
};

/// How many agents, with how many skills each.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct Args {
    /// How many agents there are.
    #[arg(long)]
    pub(crate) agents: usize,
    /// How many skills each of them has.
    #[arg(long)]
    pub(crate) skills: usize,
}

/// What every tool's name of this fleet begins with.
pub(crate) const PREFIX: &str = "fleet_agent_";

/// The base URL of one agent.
pub(crate) fn url(address: SocketAddr, agent: usize) -> String {
    format!("http://{address}/a/{agent}")
}

/// Serves the fleet until the parent is gone.
pub(crate) async fn serve(args: &Args) -> Result<(), Trouble> {
    let args = *args;
    let port = Port::open().await?;
    let address = port.address()?;
    port.serve(move |request| std::future::ready(answer(&request, address, args))).await
}

fn answer(request: &Request<Incoming>, address: SocketAddr, args: Args) -> Response<Full<Bytes>> {
    let number = request
        .uri()
        .path()
        .strip_prefix("/a/")
        .and_then(|path| path.strip_suffix("/.well-known/agent-card.json"));
    match number.and_then(|number| number.parse().ok()) {
        Some(agent) if agent < args.agents => {
            json_response(card(address, agent, args.skills).to_string().into())
        }
        _ => status(StatusCode::NOT_FOUND),
    }
}

fn card(address: SocketAddr, agent: usize, skills: usize) -> Value {
    json!({
        "protocolVersion": "0.3.0",
        "name": format!("Fleet Agent {agent:05}"),
        "description": format!("Number {agent} of many."),
        "version": "1.0.0",
        "url": url(address, agent),
        "preferredTransport": "JSONRPC",
        "capabilities": {"streaming": false},
        "defaultInputModes": ["application/json"],
        "defaultOutputModes": ["application/json"],
        "skills": (0..skills).map(skill).collect::<Vec<_>>(),
    })
}

fn skill(number: usize) -> Value {
    json!({
        "id": format!("skill-{number}"),
        "name": format!("Skill {number}"),
        "description": format!("Does what skill number {number} does, as well as it can, and says what came of it."),
        "tags": ["bench", format!("kind-{}", number % 3)],
        "inputSchema": {
            "type": "object",
            "properties": {
                "subject": {"type": "string", "description": "What it is about."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100},
            },
            "required": ["subject"],
        },
    })
}
