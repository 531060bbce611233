//! Every way to say something to Rialto, and what comes back.

use rialto_a2a_codec::wire::Wire;
use serde_json::{Value, json};

use crate::harness::{
    agent::SampleAgent,
    grpc, http,
    rialto::Rialto,
    server::{self, ServerProcess},
    stdio::StdioServer,
};

/// What is looked for in what is said, and in what is answered.
pub(super) const INSIDE: &str = "inmark4711";
pub(super) const OUTSIDE: &str = "outmark4711";

/// One guardrail for each action, each on an agent that is called like it.
pub(super) const ACTIONS: [&str; 4] = ["block", "redact", "warn", "log"];

fn setting() -> String {
    let guardrail = |action: &str| {
        format!(
            "[guardrails.skills.\"{action}.*\"]\naction = \"{action}\"\n\
             [[guardrails.skills.\"{action}.*\".checks]]\ntype = \"regex\"\ntarget = \"input\"\n\
             config.patterns = [{{ name = \"mark\", pattern = 'inmark\\d+' }}]\n\
             [[guardrails.skills.\"{action}.*\".checks]]\ntype = \"regex\"\ntarget = \"output\"\n\
             config.patterns = [{{ name = \"mark\", pattern = 'outmark\\d+|12345678901234567890' }}]\n"
        )
    };
    ACTIONS.map(guardrail).concat()
}

/// Where something is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GuardedEndpoint {
    Stdio,
    McpHttp,
    JsonRpc,
    JsonRpcStream,
    JsonRpcOld,
    Rest,
    RestStream,
    Grpc,
    GrpcStream,
    Plain,
    Dispatch,
}

pub(super) const DOORS: [GuardedEndpoint; 11] = [
    GuardedEndpoint::Stdio,
    GuardedEndpoint::McpHttp,
    GuardedEndpoint::JsonRpc,
    GuardedEndpoint::JsonRpcStream,
    GuardedEndpoint::JsonRpcOld,
    GuardedEndpoint::Rest,
    GuardedEndpoint::RestStream,
    GuardedEndpoint::Grpc,
    GuardedEndpoint::GrpcStream,
    GuardedEndpoint::Plain,
    GuardedEndpoint::Dispatch,
];

/// What came back.
#[derive(Debug)]
pub(super) struct EndpointResponse {
    /// The HTTP status, or gRPC's.
    pub(super) status: u16,
    /// The JSON-RPC error's code, if there is one.
    pub(super) code: Option<i64>,
    pub(super) warning: Option<String>,
    pub(super) body: String,
}

/// A server and an MCP server on the same data, with an agent for each action.
pub(super) struct GuardrailFixture {
    pub(super) rialto: Rialto,
    pub(super) agents: Vec<SampleAgent>,
    pub(super) server: ServerProcess,
    pub(super) stdio: StdioServer,
    said: usize,
}

// === impl GuardrailFixture ===

impl GuardrailFixture {
    pub(super) fn open() -> Self {
        let rialto = Rialto::fresh().with("RIALTO_LOG", "trace");
        std::fs::write(rialto.folder().join("rialto.toml"), setting()).unwrap();
        let agents: Vec<SampleAgent> = ACTIONS.map(SampleAgent::named).into();
        for (agent, action) in agents.iter().zip(ACTIONS) {
            agent.learn("digits");
            agent.change_card(|card| {
                for skill in card["skills"].as_array_mut().unwrap() {
                    skill["tags"] = json!([format!("{action}-{}", skill["id"].as_str().unwrap())]);
                }
            });
            rialto.trust(&agent.url);
        }
        let server = rialto.serve(&[]);
        let mut stdio = rialto.mcp(&[]);
        stdio.initialize();
        Self { rialto, agents, server, stdio, said: 0 }
    }

    pub(super) fn heard(&self, action: &str) -> Vec<String> {
        self.agents[ACTIONS.iter().position(|known| *known == action).unwrap()].heard()
    }

    fn post(&self, path: &str, body: &Value) -> EndpointResponse {
        let bearer = format!("Bearer {}", self.server.token.as_deref().unwrap());
        let url = format!("{}{path}", self.server.url);
        let answer = http::post(&url, &[("Authorization", &bearer)], &body.to_string());
        EndpointResponse::of(&answer)
    }

    /// Says something to a skill of the agent for an action.
    pub(super) fn say(
        &mut self,
        door: GuardedEndpoint,
        action: &str,
        skill: &str,
        text: &str,
    ) -> EndpointResponse {
        self.said += 1;
        let (name, args) = (format!("{action}.{skill}"), json!({ "note": format!("it is {text}.") }));
        let message = json!({ "messageId": format!("m-{}", self.said), "role": "ROLE_USER", "parts": [{ "data": args }] });
        let params = json!({ "message": message, "metadata": { "skillId": name } });
        let rpc = |method: &str| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        match door {
            GuardedEndpoint::Stdio => {
                let answer = self.stdio.ask("tools/call", &json!({ "name": name, "arguments": args }));
                let code = answer["error"]["code"].as_i64();
                let warning = answer["result"]["_meta"]["rialto/guardrail"].is_object().then(String::new);
                EndpointResponse { status: 0, code, warning, body: answer.to_string() }
            }
            GuardedEndpoint::McpHttp => {
                let params = json!({ "name": name, "arguments": args });
                let answer = self.server.request("/mcp", "tools/call", params, self.server.token.as_deref());
                let code = server::message(&answer)["error"]["code"].as_i64();
                EndpointResponse { code, ..EndpointResponse::of(&answer) }
            }
            GuardedEndpoint::JsonRpc => self.post("/a2a", &rpc("SendMessage")),
            GuardedEndpoint::JsonRpcStream => self.post("/a2a", &rpc("SendStreamingMessage")),
            GuardedEndpoint::JsonRpcOld => {
                let part = json!({ "kind": "data", "data": args });
                let id = format!("o-{}", self.said);
                let message = json!({ "kind": "message", "messageId": id, "role": "user", "parts": [part] });
                let params = json!({ "message": message, "metadata": { "skillId": name } });
                let rpc = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params });
                self.post("/a2a", &rpc)
            }
            GuardedEndpoint::Rest => self.post("/a2a/message:send", &params),
            GuardedEndpoint::RestStream => self.post("/a2a/message:stream", &params),
            GuardedEndpoint::Grpc | GuardedEndpoint::GrpcStream => {
                let method =
                    if door == GuardedEndpoint::Grpc { "SendMessage" } else { "SendStreamingMessage" };
                let told = grpc::call(&self.server, Wire::V10, method, &params);
                let status = told.status.as_ref().map_or(99, |status| status.number);
                let said = told.status.as_ref().map(|status| status.message.clone()).unwrap_or_default();
                let body = format!("{:?} {said}", told.messages);
                EndpointResponse {
                    status: u16::try_from(status).unwrap(),
                    code: None,
                    warning: told.warning,
                    body,
                }
            }
            GuardedEndpoint::Plain => self.post(&format!("/call/{name}"), &args),
            GuardedEndpoint::Dispatch => {
                let tag = format!("{action}-{skill}");
                let work = json!({ "workType": tag, "requiredSkills": [tag], "message": args });
                self.post("/api/v1/dispatch", &work)
            }
        }
    }
}

// === impl EndpointResponse ===

impl EndpointResponse {
    fn of(answer: &http::HttpAnswer) -> Self {
        let header = answer.head.lines().find_map(|line| line.strip_prefix("x-rialto-guardrail: "));
        let read: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        Self {
            status: answer.status,
            code: read["error"]["code"].as_i64().or_else(|| read["code"].as_i64()),
            warning: header.map(str::to_owned),
            body: answer.body.clone(),
        }
    }
}

// === impl GuardedEndpoint ===

impl GuardedEndpoint {
    pub(super) const fn is_stream(self) -> bool {
        matches!(self, Self::JsonRpcStream | Self::RestStream | Self::GrpcStream)
    }

    /// What it answers to something that is blocked before a task exists: its status and its code.
    pub(super) const fn refusal(self) -> (u16, Option<i64>) {
        match self {
            Self::Stdio => (0, Some(-32209)),
            Self::McpHttp | Self::JsonRpc | Self::JsonRpcStream | Self::JsonRpcOld => (200, Some(-32209)),
            Self::Rest | Self::RestStream => (403, Some(403)),
            Self::Grpc | Self::GrpcStream => (7, None),
            Self::Plain | Self::Dispatch => (403, Some(-32209)),
        }
    }

    /// Whether a task that failed is told as such there, and not as an error.
    pub(super) const fn tells_tasks(self) -> bool {
        !matches!(self, Self::Stdio | Self::McpHttp | Self::Plain | Self::Dispatch)
    }
}
