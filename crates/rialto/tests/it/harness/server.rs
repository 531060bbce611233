//! `rialto serve` as a process, and a client of it that leaves nothing to an SDK.

use std::process::ExitStatus;

use serde_json::{Value, json};

use super::{
    client::{McpTransport, names},
    http::{self, HttpAnswer},
    outcome::CallOutcome,
    process::ChildProcess,
    until,
};

/// The protocol that [`ServerProcess::call`] speaks: it needs no session.
pub(crate) const VERSION: &str = "2026-07-28";

/// A server that answers.
pub(crate) struct ServerProcess {
    /// Where it listens, without a path.
    pub(crate) url: String,
    /// The token it showed when it started, if it did.
    pub(crate) token: Option<String>,
    /// Everything it said when it started.
    pub(crate) greeting: String,
    process: ChildProcess,
}

// === impl ServerProcess ===

impl ServerProcess {
    /// Waits until a server that was started answers.
    #[track_caller]
    pub(crate) fn ready(process: ChildProcess) -> Self {
        let mut greeting = String::new();
        let url = loop {
            let line = process.line().unwrap_or_else(|| panic!("the server ended: {}", process.stderr()));
            greeting += &line;
            greeting.push('\n');
            if let Some((_, url)) = line.split_once(" as MCP tools at ") {
                break url.trim().strip_suffix("/mcp").unwrap().to_owned();
            }
        };
        let token = first_token(&greeting);
        // Over TLS a client that knows the authority waits for the first response.
        if url.starts_with("http://") {
            let health = format!("{url}/healthz");
            until("the server is healthy", || http::get(&health).filter(|answer| answer.status == 200));
        }
        Self { url, token, greeting, process }
    }

    /// The rest of the next line that begins so, among those it prints once it is ready.
    #[track_caller]
    pub(crate) fn printed(&self, start: &str) -> String {
        loop {
            let line = self.process.line().unwrap_or_else(|| panic!("there is no line \"{start}\""));
            if let Some(rest) = line.strip_prefix(start) {
                return rest.to_owned();
            }
        }
    }

    /// Where MCP clients go.
    pub(crate) fn mcp(&self) -> String {
        format!("{}/mcp", self.url)
    }

    /// The door of SDK clients, with the token if there is one.
    pub(crate) fn door(&self) -> McpTransport {
        McpTransport::Http { url: self.mcp(), token: self.token.clone(), ca: None }
    }

    /// The tools that are listed now.
    #[track_caller]
    pub(crate) fn list(&self) -> Vec<String> {
        names(&self.list_at("/mcp")["tools"])
    }

    /// The answer to `tools/list` at a path.
    #[track_caller]
    pub(crate) fn list_at(&self, path: &str) -> Value {
        let answer = self.request(path, "tools/list", json!({}), self.token.as_deref());
        message(&answer)["result"].take()
    }

    /// Calls a tool.
    #[track_caller]
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> CallOutcome {
        let params = json!({ "name": tool, "arguments": arguments });
        CallOutcome::of(
            message(&self.request("/mcp", "tools/call", params, self.token.as_deref())),
            Vec::new(),
        )
    }

    /// Sends one request of the newest protocol.
    #[track_caller]
    pub(crate) fn request(&self, path: &str, method: &str, params: Value, token: Option<&str>) -> HttpAnswer {
        request(&format!("{}{path}", self.url), method, params, token, &[])
    }

    /// Its number.
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Sends it a signal: `TERM`, `INT`, `HUP`.
    pub(crate) fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    /// Waits until it has ended by itself.
    #[track_caller]
    pub(crate) fn end(&mut self) -> ExitStatus {
        self.process.end()
    }

    /// Ends it as nobody can prevent.
    pub(crate) fn kill(mut self) {
        self.process.kill();
    }

    /// Asks it to stop, and waits until it has.
    #[track_caller]
    pub(crate) fn stop(&mut self) -> ExitStatus {
        self.process.signal("TERM");
        self.process.end()
    }

    /// What it logged so far.
    pub(crate) fn log(&self) -> String {
        self.process.stderr()
    }
}

/// What each request of the newest protocol says about its sender.
pub(crate) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "rialto-tests", "version": "1" },
    })
}

/// Sends one request of the newest protocol to an address.
#[track_caller]
pub(crate) fn request(
    url: &str,
    method: &str,
    mut params: Value,
    token: Option<&str>,
    more: &[(&str, &str)],
) -> HttpAnswer {
    let said = params["_meta"].as_object().cloned().unwrap_or_default();
    params["_meta"] = meta();
    params["_meta"].as_object_mut().unwrap().extend(said);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let (name, bearer) =
        (params["name"].as_str().unwrap_or_default(), token.map(|token| format!("Bearer {token}")));
    let mut headers = vec![("MCP-Protocol-Version", VERSION), ("Mcp-Method", method)];
    headers.extend(Some(("Mcp-Name", name)).filter(|(_, name)| !name.is_empty()));
    headers.extend(bearer.as_deref().map(|bearer| ("Authorization", bearer)));
    headers.extend(more);
    http::post(url, &headers, &body)
}

/// The token that a server writes into a file at its first start, and says where.
fn first_token(greeting: &str) -> Option<String> {
    let path = greeting
        .lines()
        .find_map(|line| line.strip_prefix("A token for the owner was created; it is in "))?;
    Some(std::fs::read_to_string(path).unwrap().trim().to_owned())
}

/// The JSON-RPC answer, whether it came alone or in a stream.
#[track_caller]
pub(crate) fn message(answer: &HttpAnswer) -> Value {
    let data = answer.body.lines().filter_map(|line| line.strip_prefix("data:"));
    let texts = data.chain([answer.body.as_str()]);
    texts
        .filter_map(|text| serde_json::from_str::<Value>(text).ok())
        .find(|message| !message["result"].is_null() || !message["error"].is_null())
        .unwrap_or_else(|| panic!("no answer: {answer:?}"))
}
