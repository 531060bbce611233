//! `rialto mcp` as a process, spoken to line by line.

use serde_json::{Value, json};

use super::{outcome::CallOutcome, process::ChildProcess};

/// An MCP server on stdin and stdout.
pub(crate) struct StdioServer {
    process: ChildProcess,
    asked: u64,
}

// === impl StdioServer ===

impl StdioServer {
    pub(crate) const fn new(process: ChildProcess) -> Self {
        Self { process, asked: 0 }
    }

    /// Begins as clients of 2025-06-18 do.
    #[track_caller]
    pub(crate) fn initialize(&mut self) -> Value {
        self.initialize_as("rialto-tests")
    }

    /// Begins as a client that calls itself `name`.
    #[track_caller]
    pub(crate) fn initialize_as(&mut self, name: &str) -> Value {
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": name, "version": "1" },
        });
        let mut answer = self.ask("initialize", &params);
        self.write(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer["result"].take()
    }

    /// Calls a tool.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> CallOutcome {
        CallOutcome::of(self.ask("tools/call", &json!({ "name": tool, "arguments": arguments })), Vec::new())
    }

    /// Makes a request and waits for its answer. Whatever else comes meanwhile must be protocol too.
    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params });
        self.write(request.to_string().as_bytes());
        loop {
            let message = self.hear();
            if message["id"] == self.asked {
                return message;
            }
        }
    }

    /// Writes a line, whatever it is.
    pub(crate) fn write(&mut self, line: &[u8]) {
        self.process.say(line);
    }

    /// The next message.
    #[track_caller]
    pub(crate) fn hear(&mut self) -> Value {
        let line = self.process.line().unwrap_or_else(|| panic!("it ended: {}", self.process.stderr()));
        protocol(&line)
    }

    /// Kills it.
    pub(crate) fn kill(mut self) {
        self.process.kill();
    }

    /// Closes its stdin. It must end by itself, content, and have said nothing but protocol. Answers its stderr.
    #[track_caller]
    pub(crate) fn leave(mut self) -> String {
        self.process.hang_up();
        assert!(self.process.end().success(), "{}", self.process.stderr());
        while let Some(line) = self.process.line_now() {
            protocol(&line);
        }
        self.process.stderr()
    }
}

#[track_caller]
fn protocol(line: &str) -> Value {
    let message: Value =
        serde_json::from_str(line).unwrap_or_else(|_| panic!("this is not protocol: {line}"));
    assert_eq!(message["jsonrpc"], "2.0", "this is not protocol: {line}");
    message
}
