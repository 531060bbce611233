//! Many A2A agents on one port, each under its own path: enough to fill a registry.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::{
    agent::{json_response, status_response},
    child::ChildPort,
    error::BenchError,
};

/// Number of agents, and of their skills.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct FleetArgs {
    /// Number of agents.
    #[arg(long)]
    pub(crate) agents: usize,
    /// Number of skills per agent.
    #[arg(long)]
    pub(crate) skills: usize,
}

/// Prefix of all tool names of this fleet.
pub(crate) const PREFIX: &str = "fleet_agent_";

/// The base URL of one agent.
pub(crate) fn agent_url(address: SocketAddr, agent: usize) -> String {
    format!("http://{address}/a/{agent}")
}

/// Serves the fleet until the parent is gone.
pub(crate) async fn serve(args: &FleetArgs) -> Result<(), BenchError> {
    let args = *args;
    let port = ChildPort::open().await?;
    let address = port.local_addr()?;
    port.serve(move |request| std::future::ready(answer(&request, address, args))).await
}

fn answer(request: &Request<Incoming>, address: SocketAddr, args: FleetArgs) -> Response<Full<Bytes>> {
    let number = request
        .uri()
        .path()
        .strip_prefix("/a/")
        .and_then(|path| path.strip_suffix("/.well-known/agent-card.json"));
    match number.and_then(|number| number.parse().ok()) {
        Some(agent) if agent < args.agents => {
            json_response(agent_card(address, agent, args.skills).to_string().into())
        }
        _ => status_response(StatusCode::NOT_FOUND),
    }
}

fn agent_card(address: SocketAddr, agent: usize, skills: usize) -> Value {
    json!({
        "protocolVersion": "0.3.0",
        "name": format!("Fleet Agent {agent:05}"),
        "description": format!("Number {agent} of many."),
        "version": "1.0.0",
        "url": agent_url(address, agent),
        "preferredTransport": "JSONRPC",
        "capabilities": {"streaming": false},
        "defaultInputModes": ["application/json"],
        "defaultOutputModes": ["application/json"],
        "skills": (0..skills).map(agent_skill).collect::<Vec<_>>(),
    })
}

fn agent_skill(number: usize) -> Value {
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
