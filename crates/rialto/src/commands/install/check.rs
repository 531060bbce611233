//! `rialto install --check <client>`: connects with the entry that a client has, as the client would.

use std::{process::Stdio, time::Duration};

use http::{HeaderName, HeaderValue, Method, Uri, header};
use rialto_http_client::{
    ClientEnv, HttpClient,
    address::Reach,
    fetch::{Fetch, FetchRequest},
    proxy::ProxyRules,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    process::{ChildStdin, ChildStdout, Command},
};

use super::entry::{ClientConnection, expand};
use crate::{cli::ClientApp, config::Config, environment::Environment};

/// Timeout for a server to start, load its agents and list its tools.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum length of stderr output in an error.
const MAX_STDERR_BYTES: u64 = 4096;

/// The version that most clients ask for.
const PROTOCOL_VERSION: &str = "2025-06-18";

/// Variables that Codex passes on to a program; all others pass on their whole environment.
const CODEX_VARIABLES: &[&str] =
    &["HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ"];

/// Server information from the handshake.
pub(super) struct ServerSummary {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) tools: usize,
}

/// Why a client would not connect, and what to do.
pub(super) struct CheckFailure {
    pub(super) reason: String,
    pub(super) fix: String,
}

/// Connects, initialises, and lists the tools.
pub(super) async fn connect(
    client: ClientApp,
    connection: &ClientConnection,
    environment: &Environment,
) -> Result<ServerSummary, CheckFailure> {
    let exchange = async {
        match connection {
            ClientConnection::Stdio { command, args } => over_stdio(client, command, args, environment).await,
            ClientConnection::Http { url, authorization } => {
                over_http(client, url, authorization.as_deref(), environment).await
            }
        }
    };
    match tokio::time::timeout(CONNECT_TIMEOUT, exchange).await {
        Ok(outcome) => outcome,
        Err(_) => Err(CheckFailure {
            reason: format!("it did not answer within {} seconds", CONNECT_TIMEOUT.as_secs()),
            fix: "rialto doctor".to_owned(),
        }),
    }
}

async fn over_stdio(
    client: ClientApp,
    program: &str,
    args: &[String],
    environment: &Environment,
) -> Result<ServerSummary, CheckFailure> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    if client == ClientApp::Codex {
        let passed = CODEX_VARIABLES.iter().filter_map(|name| Some((name, environment.get(name)?)));
        command.env_clear().envs(passed);
    }
    let again = format!("rialto install {}", client.name());
    let mut child = command.spawn().map_err(|error| CheckFailure {
        reason: format!("{program} does not start: {error}"),
        fix: format!("{again}, which writes the path of this program"),
    })?;
    let broken = || CheckFailure { reason: format!("{program} has no stdin or stdout"), fix: again.clone() };
    let mut input = child.stdin.take().ok_or_else(broken)?;
    let mut lines = BufReader::new(child.stdout.take().ok_or_else(broken)?).lines();
    match converse(&mut input, &mut lines).await {
        Ok(summary) => Ok(summary),
        Err(reason) => {
            drop(input);
            let mut log = String::new();
            if let Some(stderr) = child.stderr.take() {
                let _ = stderr.take(MAX_STDERR_BYTES).read_to_string(&mut log).await;
            }
            let said = log.lines().last().map(|line| format!(": {line}")).unwrap_or_default();
            let words = [&[program.to_owned()], args].concat().join(" ");
            Err(CheckFailure {
                reason: format!("{reason}{said}"),
                fix: format!("run it by itself to see more: {words}"),
            })
        }
    }
}

async fn converse(
    input: &mut ChildStdin,
    lines: &mut Lines<BufReader<ChildStdout>>,
) -> Result<ServerSummary, String> {
    send(input, &initialize()).await;
    let hello = receive(lines, 1).await?;
    send(input, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    send(input, &list_tools()).await;
    summary(&hello, &receive(lines, 2).await?)
}

/// Writes a line. A program that has ended is noticed when its answer is read, with what it wrote before.
async fn send(input: &mut ChildStdin, message: &Value) {
    let line = format!("{message}\n");
    let _ = input.write_all(line.as_bytes()).await;
}

async fn receive(lines: &mut Lines<BufReader<ChildStdout>>, id: u64) -> Result<Value, String> {
    loop {
        let line = lines.next_line().await.map_err(|error| error.to_string())?;
        let line = line.ok_or("the program ended before it answered")?;
        let message: Value =
            serde_json::from_str(&line).map_err(|_| format!("it wrote a line that is no JSON: {line}"))?;
        if message["id"] == id {
            return Ok(message);
        }
    }
}

async fn over_http(
    client: ClientApp,
    url: &str,
    authorization: Option<&str>,
    environment: &Environment,
) -> Result<ServerSummary, CheckFailure> {
    let header =
        authorization.map(|text| expand(text, environment)).transpose().map_err(|name| CheckFailure {
            reason: format!("the variable {name}, which has the token, is not set"),
            fix: format!(
                "export {name}=$(rialto tokens create {}), where {} is started",
                client.name(),
                client.name()
            ),
        })?;
    let proxies = ProxyRules::from_env(|name: &str| environment.get(name).map(str::to_owned));
    let around = ClientEnv { proxies, ..ClientEnv::default() };
    let fetch = HttpClient::with_env(&Config::default().outbound, around);
    let (hello, session) = post(&fetch, url, header.as_deref(), None, &initialize()).await?;
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    post(&fetch, url, header.as_deref(), session.as_ref(), &ready).await?;
    let (tools, _) = post(&fetch, url, header.as_deref(), session.as_ref(), &list_tools()).await?;
    summary(&hello, &tools).map_err(|reason| CheckFailure {
        reason,
        fix: format!("see that {url} is the MCP endpoint (/mcp) of a Rialto server"),
    })
}

/// Posts one message. Returns the response, and the session that the server gave.
async fn post(
    fetch: &HttpClient,
    url: &str,
    authorization: Option<&str>,
    session: Option<&HeaderValue>,
    message: &Value,
) -> Result<(Value, Option<HeaderValue>), CheckFailure> {
    let failure = |reason: String| CheckFailure {
        reason,
        fix: format!("see that `rialto serve` runs, and that {url} is its MCP endpoint (/mcp)"),
    };
    let uri: Uri = url.parse().map_err(|_| failure(format!("{url} is not a URL")))?;
    let mut request = FetchRequest {
        reach: Reach::Private,
        patience: CONNECT_TIMEOUT,
        ..FetchRequest::new(Method::POST, uri)
    }
    .header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
    .header(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"))
    .header(HeaderName::from_static("mcp-protocol-version"), HeaderValue::from_static(PROTOCOL_VERSION));
    if let Some(text) = authorization {
        let mut value = HeaderValue::try_from(text)
            .map_err(|_| failure("the token has characters that no header can have".to_owned()))?;
        value.set_sensitive(true);
        request = request.header(header::AUTHORIZATION, value);
    }
    if let Some(session) = session {
        request = request.header(SESSION, session.clone());
    }
    request.body = message.to_string().into();
    let response = fetch
        .fetch(request)
        .await
        .map_err(|error| failure(format!("{url} could not be reached: {error}")))?;
    let (status, session) = (response.status, response.headers.get(SESSION).cloned());
    let body =
        response.body.read().await.map_err(|error| failure(format!("{url} did not answer: {error}")))?;
    if status == http::StatusCode::UNAUTHORIZED {
        return Err(CheckFailure {
            reason: format!("{url} does not accept the token (HTTP 401)"),
            fix: "make one with `rialto tokens create NAME`, and give its variable with --token-env"
                .to_owned(),
        });
    }
    if !status.is_success() {
        return Err(failure(format!("{url} answered with HTTP {}", status.as_u16())));
    }
    Ok((first_message(&String::from_utf8_lossy(&body)), session))
}

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The response in a JSON body or in a stream of events.
fn first_message(body: &str) -> Value {
    let messages =
        body.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data:")?).ok());
    let response = messages.into_iter().find(|message| message.get("id").is_some_and(|id| !id.is_null()));
    response.or_else(|| serde_json::from_str(body).ok()).unwrap_or_default()
}

fn initialize() -> Value {
    let info = json!({ "name": "rialto-install-check", "version": env!("CARGO_PKG_VERSION") });
    let params = json!({ "protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": info });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })
}

fn list_tools() -> Value {
    json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {} })
}

fn summary(hello: &Value, tools: &Value) -> Result<ServerSummary, String> {
    for response in [hello, tools] {
        if let Some(message) = response["error"]["message"].as_str() {
            return Err(format!("it answered with an error: {message}"));
        }
    }
    let server = &hello["result"]["serverInfo"];
    let (Some(name), Some(tools)) = (server["name"].as_str(), tools["result"]["tools"].as_array()) else {
        return Err("not an MCP server".to_owned());
    };
    let version = server["version"].as_str().unwrap_or_default().to_owned();
    Ok(ServerSummary { name: name.to_owned(), version, tools: tools.len() })
}
