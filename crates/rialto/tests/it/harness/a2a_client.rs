//! An A2A client that others wrote, driven over JSON lines. See `interop/README.md`.
//!
//! Nothing here panics because of what the client saw: what goes wrong is said, so that a table of many clients and agents
//! can be filled to its end.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{client::McpTransport, process::ChildProcess};

/// Longer than any operation takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Which client: how `interop/run` calls it, and what it speaks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientVariant {
    /// What a reader is told.
    pub(crate) name: &'static str,
    peer: &'static str,
    binding: &'static str,
    pub(crate) dialect: Dialect,
}

/// The generation that it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    V10,
    V03,
    V02,
    V01,
}

/// Every client there is.
pub(crate) const KINDS: &[ClientVariant] = &[
    ClientVariant::new("a2a-sdk 1.3.0, JSON-RPC", "a2a_py_1_3", "jsonrpc", Dialect::V10),
    ClientVariant::new("a2a-sdk 1.3.0, HTTP+JSON", "a2a_py_1_3", "rest", Dialect::V10),
    ClientVariant::new("a2a-sdk 1.3.0, gRPC", "a2a_py_1_3", "grpc", Dialect::V10),
    ClientVariant::new("@a2a-js/sdk 1.3.0, JSON-RPC", "a2a_js_1_3", "jsonrpc", Dialect::V10),
    ClientVariant::new("@a2a-js/sdk 1.3.0, HTTP+JSON", "a2a_js_1_3", "rest", Dialect::V10),
    ClientVariant::new("a2a-sdk 0.3.26, JSON-RPC", "a2a_py_0_3", "jsonrpc", Dialect::V03),
    ClientVariant::new("a2a-sdk 0.3.26, HTTP+JSON", "a2a_py_0_3", "rest", Dialect::V03),
    ClientVariant::new("a2a-sdk 0.3.26, gRPC", "a2a_py_0_3", "grpc", Dialect::V03),
    ClientVariant::new("a2a-sdk 0.2.16, JSON-RPC", "a2a_py_0_2", "jsonrpc", Dialect::V02),
    ClientVariant::new("0.1 by hand, JSON-RPC", "a2a_plain_0_1", "jsonrpc", Dialect::V01),
];

/// The client for agents of 0.3 that a2a-sdk 1.3 has for HTTP+JSON: it writes the names of the proto file.
pub(crate) const PROTO_NAMES: ClientVariant =
    ClientVariant::new("a2a-sdk 1.3.0, HTTP+JSON of 0.3", "a2a_py_1_3", "rest03", Dialect::V03);

/// A client that has read a card.
pub(crate) struct A2aClient {
    pub(crate) kind: ClientVariant,
    /// The card as it read it: `name`, `skills`, `streaming`, `push`, `schemes`.
    pub(crate) card: Value,
    ops: Value,
    process: ChildProcess,
    /// Lines that nobody wanted yet.
    unread: VecDeque<Value>,
    begun: u32,
}

// === impl ClientVariant ===

impl ClientVariant {
    const fn new(name: &'static str, peer: &'static str, binding: &'static str, dialect: Dialect) -> Self {
        Self { name, peer, binding, dialect }
    }

    /// The client that `interop/run` calls so, with this binding.
    pub(crate) fn of(peer: &str, binding: &str) -> Self {
        *KINDS.iter().find(|kind| kind.peer == peer && kind.binding == binding).unwrap()
    }
}

// === impl A2aClient ===

impl A2aClient {
    /// Starts a client and has it read the card at `url`.
    pub(crate) fn start(kind: ClientVariant, url: &str, token: Option<&str>) -> Result<Self, String> {
        Self::enter(
            kind,
            &McpTransport::Http { url: url.to_owned(), token: token.map(str::to_owned), ca: None },
        )
    }

    /// Starts a client and has it read the card there.
    pub(crate) fn enter(kind: ClientVariant, door: &McpTransport) -> Result<Self, String> {
        let command = &mut door.entered_by(&[kind.peer, "--binding", kind.binding]);
        let process = ChildProcess::start(kind.name, command);
        let mut client =
            Self { kind, card: Value::Null, ops: Value::Null, process, unread: VecDeque::new(), begun: 0 };
        let mut greeting = client.read()?;
        if greeting["card"].is_null() {
            return Err(format!("it could not read the card: {greeting}"));
        }
        (client.card, client.ops) = (greeting["card"].take(), greeting["ops"].take());
        Ok(client)
    }

    /// Whether its generation has the operation.
    pub(crate) fn can(&self, op: &str) -> bool {
        self.ops.as_array().is_some_and(|ops| ops.iter().any(|known| known == op))
    }

    /// Runs an operation to its end.
    pub(crate) fn call(&mut self, op: &str, more: Value) -> Result<Value, String> {
        self.try_call(op, more)?.map_err(|error| format!("{op}: {error}"))
    }

    /// Runs an operation that may be refused; the inner error is what the client was told.
    pub(crate) fn try_call(&mut self, op: &str, more: Value) -> Result<Result<Value, Value>, String> {
        let id = self.begin(op, more);
        loop {
            let mut line = self.line_of(id)?;
            if !line["error"].is_null() {
                return Ok(Err(line["error"].take()));
            }
            if line["event"].is_null() {
                return Ok(Ok(line["result"].take()));
            }
        }
    }

    /// Runs a stream to its end: all its events.
    pub(crate) fn events(&mut self, op: &str, more: Value) -> Result<Vec<Value>, String> {
        let id = self.begin(op, more);
        self.rest_of(id)
    }

    /// Begins an operation, beside whatever else is done.
    pub(crate) fn begin(&mut self, op: &str, mut more: Value) -> u32 {
        self.begun += 1;
        (more["id"], more["op"]) = (json!(self.begun), json!(op));
        self.process.say(more.to_string().as_bytes());
        self.begun
    }

    /// The next event of a stream that was begun.
    pub(crate) fn event(&mut self, id: u32) -> Result<Value, String> {
        let mut line = self.line_of(id)?;
        if line["event"].is_null() {
            Err(format!("the stream ended: {line}"))
        } else {
            Ok(line["event"].take())
        }
    }

    /// What is left of a stream.
    pub(crate) fn rest_of(&mut self, id: u32) -> Result<Vec<Value>, String> {
        let mut events = Vec::new();
        loop {
            let mut line = self.line_of(id)?;
            if !line["error"].is_null() {
                return Err(format!("the stream broke: {}", line["error"]));
            }
            if line["event"].is_null() {
                return Ok(events);
            }
            events.push(line["event"].take());
        }
    }

    /// Hangs up in the middle of a stream.
    pub(crate) fn hang_up(&mut self, id: u32) -> Result<(), String> {
        self.process.say(json!({ "drop": id }).to_string().as_bytes());
        loop {
            let line = self.line_of(id)?;
            if line["event"].is_null() {
                let is_dropped = line["dropped"] == true;
                return is_dropped.then_some(()).ok_or_else(|| format!("it was over before: {line}"));
            }
        }
    }

    fn line_of(&mut self, id: u32) -> Result<Value, String> {
        if let Some(at) = self.unread.iter().position(|line| line["id"] == id) {
            return self.unread.remove(at).ok_or_else(String::new);
        }
        loop {
            let line = self.read()?;
            if line["id"] == id {
                return Ok(line);
            }
            self.unread.push_back(line);
        }
    }

    fn read(&mut self) -> Result<Value, String> {
        let line = self.process.line_until(Instant::now() + PATIENCE);
        let line = line.map_err(|_| format!("nothing more came within {PATIENCE:?}"))?;
        let line = line.ok_or_else(|| format!("the client has ended: {}", self.process.stderr()))?;
        serde_json::from_str(&line).map_err(|_| format!("not JSON: {line}"))
    }
}
