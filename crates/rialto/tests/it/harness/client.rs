//! An official MCP SDK as a client, driven over JSON lines. See `interop/README.md`.

use std::{
    collections::VecDeque,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{PATIENCE, interop, outcome::CallOutcome, process::ChildProcess};

/// Whose SDK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sdk {
    Python,
    TypeScript,
    /// The Python one of another time, as `interop/run` calls it, and the one protocol that it speaks.
    Aged(&'static str, &'static str),
}

/// Which protocol it tries to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum McpEra {
    /// 2026-07-28 where the server can.
    Auto,
    /// 2025-11-25.
    Legacy,
}

/// How it reaches the program.
#[derive(Clone, Debug)]
pub(crate) enum McpTransport {
    /// It starts the program itself, with these variables.
    Stdio { command: Vec<String>, variables: Vec<(String, String)> },
    /// It goes to a server, whose certificate is of the authority in the file `ca` if it has one.
    Http { url: String, token: Option<String>, ca: Option<PathBuf> },
}

/// A connected client.
pub(crate) struct McpClient {
    /// What it greeted us with: `protocol`, `server`, `tools`.
    pub(crate) greeting: Value,
    process: ChildProcess,
    /// Lines that nobody wanted yet.
    unread: VecDeque<Value>,
}

// === impl Sdk ===

impl Sdk {
    const fn peer(self) -> &'static str {
        match self {
            Self::Python => "mcp_py",
            Self::TypeScript => "mcp_ts",
            Self::Aged(peer, _) => peer,
        }
    }

    /// The protocol that it must end up with here.
    const fn protocol(self, era: McpEra) -> &'static str {
        match self {
            Self::Python | Self::TypeScript => era.protocol(),
            Self::Aged(_, protocol) => protocol,
        }
    }
}

// === impl McpEra ===

impl McpEra {
    /// The protocol that a client of this era must end up with here.
    pub(crate) const fn protocol(self) -> &'static str {
        match self {
            Self::Auto => "2026-07-28",
            Self::Legacy => "2025-11-25",
        }
    }

    const fn mode(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Legacy => "legacy",
        }
    }
}

// === impl McpTransport ===

impl McpTransport {
    /// A command of `interop/run` that ends in this door.
    pub(crate) fn entered_by(&self, client: &[&str]) -> Command {
        let mut command = Command::new(interop());
        command.args(client);
        // What the machine has set for its own Rialto is not for the tests.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("RIALTO_") && name != "RIALTO_INTEROP_HOME" {
                command.env_remove(&*name);
            }
        }
        match self {
            Self::Stdio { command: program, variables } => {
                command
                    .arg("--stdio")
                    .args(program)
                    .envs(variables.iter().map(|(name, value)| (name, value)));
            }
            Self::Http { url, token, ca } => {
                command.args(["--url", url]);
                command.args(token.iter().flat_map(|token| ["--token", token]));
                // Python's clients read the one, Node's the other.
                let files = ca.iter().flat_map(|ca| [("SSL_CERT_FILE", ca), ("NODE_EXTRA_CA_CERTS", ca)]);
                command.envs(files);
            }
        }
        command
    }
}

// === impl McpClient ===

impl McpClient {
    /// Starts a client and waits until it has listed the tools.
    #[track_caller]
    pub(crate) fn start(sdk: Sdk, era: McpEra, door: &McpTransport) -> Self {
        Self::open(sdk, era, door, &[]).greeted(sdk, era)
    }

    /// The same for one whose person answers every question with this.
    #[track_caller]
    pub(crate) fn answering(sdk: Sdk, era: McpEra, door: &McpTransport, answer: &Value) -> Self {
        Self::open(sdk, era, door, &["--elicit", &answer.to_string()]).greeted(sdk, era)
    }

    /// The same for one that is started with more words.
    #[track_caller]
    pub(crate) fn start_with(sdk: Sdk, era: McpEra, door: &McpTransport, words: &[&str]) -> Self {
        Self::open(sdk, era, door, words).greeted(sdk, era)
    }

    #[track_caller]
    fn greeted(mut self, sdk: Sdk, era: McpEra) -> Self {
        let client = &mut self;
        let greeting = client.wait_for("the first list of tools", |line| !line["protocol"].is_null());
        assert_eq!(greeting["protocol"], sdk.protocol(era), "{sdk:?} {era:?}");
        client.greeting = greeting;
        self
    }

    /// Starts a client that is not let in, and answers its complaint.
    #[track_caller]
    pub(crate) fn refused(sdk: Sdk, era: McpEra, door: &McpTransport) -> Value {
        let mut client = Self::open(sdk, era, door, &[]);
        let mut complaint = client.wait_for("a complaint", |line| !line["error"].is_null());
        assert!(!client.process.end().success());
        complaint["error"].take()
    }

    fn open(sdk: Sdk, era: McpEra, door: &McpTransport, more: &[&str]) -> Self {
        let words = [&[sdk.peer(), "--mode", era.mode()], more].concat();
        let process =
            ChildProcess::start(format!("{} {}", sdk.peer(), era.mode()), &mut door.entered_by(&words));
        Self { greeting: Value::Null, process, unread: VecDeque::new() }
    }

    /// The names of the tools as they were when it connected.
    pub(crate) fn greeted_with(&self) -> Vec<String> {
        names(&self.greeting["tools"])
    }

    /// The tools as they are now.
    #[track_caller]
    pub(crate) fn list(&mut self) -> Vec<String> {
        self.say(&json!({ "list": true }));
        names(&self.wait_for("the list of tools", |line| line["tools"].is_array())["tools"])
    }

    /// Calls a tool and waits for its end.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> CallOutcome {
        self.say(&json!({ "call": tool, "arguments": arguments }));
        self.outcome(&Value::Null, tool)
    }

    /// Begins to call a tool, beside whatever else is done.
    pub(crate) fn begin(&mut self, id: u32, tool: &str, arguments: &Value) {
        self.say(&json!({ "id": id, "call": tool, "arguments": arguments }));
    }

    /// The same, with this in the request's `_meta`.
    pub(crate) fn begin_with(&mut self, id: u32, tool: &str, arguments: &Value, meta: &Value) {
        self.say(&json!({ "id": id, "call": tool, "arguments": arguments, "meta": meta }));
    }

    /// Waits until this many calls were answered with the handle of a task.
    #[track_caller]
    pub(crate) fn hear_of_tasks(&mut self, count: usize) -> Vec<Value> {
        let handle = |client: &mut Self| client.wait_for("a task's handle", |line| !line["task"].is_null());
        (0..count).map(|_| handle(self)["task"].take()).collect()
    }

    /// What was said with this member and nobody wanted; it is forgotten.
    pub(crate) fn unheard(&mut self, member: &str) -> Vec<Value> {
        let (told, others): (VecDeque<_>, _) =
            self.unread.drain(..).partition(|line| !line[member].is_null());
        self.unread = others;
        told.into_iter().map(|mut line| line[member].take()).collect()
    }

    /// Waits for the end of a call that was begun.
    #[track_caller]
    pub(crate) fn finish(&mut self, id: u32) -> CallOutcome {
        self.outcome(&json!(id), &format!("call {id}"))
    }

    /// Waits until a call that was begun makes progress.
    #[track_caller]
    pub(crate) fn hear_progress(&mut self, id: u32) -> Value {
        let what = format!("progress of call {id}");
        self.wait_for(&what, |line| line["id"] == id && !line["progress"].is_null())
    }

    /// What its person was asked.
    #[track_caller]
    pub(crate) fn hear_question(&mut self) -> Value {
        self.wait_for("a question", |line| !line["elicitation"].is_null())["elicitation"].take()
    }

    /// Calls off a call that was begun.
    #[track_caller]
    pub(crate) fn cancel(&mut self, id: u32) {
        self.say(&json!({ "cancel": id }));
        self.wait_for("the call is called off", |line| line["id"] == id && line["cancelled"] == true);
    }

    /// Waits until it is told that the tools have changed.
    #[track_caller]
    pub(crate) fn hear_of_change(&mut self) {
        self.wait_for("tools/list_changed", |line| line["notification"] == "tools/list_changed");
    }

    /// Takes what it was told so far as known.
    pub(crate) fn forget_changes(&mut self) {
        while let Some(line) = self.process.line_now() {
            self.unread.push_back(serde_json::from_str(&line).unwrap());
        }
        self.unread.retain(|line| line["notification"].is_null());
    }

    /// Closes its stdin; it must leave by itself, content.
    #[track_caller]
    pub(crate) fn leave(mut self) {
        self.process.hang_up();
        assert!(self.process.end().success(), "{}", self.process.stderr());
    }

    fn say(&mut self, command: &Value) {
        self.process.say(command.to_string().as_bytes());
    }

    #[track_caller]
    fn outcome(&mut self, id: &Value, what: &str) -> CallOutcome {
        let is_end =
            |line: &Value| line["id"] == *id && (!line["result"].is_null() || !line["error"].is_null());
        let end = self.wait_for(what, is_end);
        let is_progress = |line: &Value| line["id"] == *id && !line["progress"].is_null();
        let (told, others): (VecDeque<_>, _) = self.unread.drain(..).partition(is_progress);
        self.unread = others;
        CallOutcome::of(end, told.into_iter().map(|mut line| line["progress"].take()).collect())
    }

    /// The first line that is wanted; all others stay for whoever wants them.
    #[track_caller]
    fn wait_for(&mut self, what: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.unread.iter().position(&is_wanted) {
            return self.unread.remove(at).unwrap();
        }
        // A call may take as long as its wall clock, and the wall clock is what some tests wait for.
        let end = Instant::now() + PATIENCE + Duration::from_secs(10);
        loop {
            let Some(line) = self.process.line_by(end) else {
                panic!("the client left instead of this: {what}; unread: {:?}", self.unread);
            };
            let line: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
            if is_wanted(&line) {
                return line;
            }
            assert!(line["protocol"].is_null() || line["error"].is_null(), "{line}");
            self.unread.push_back(line);
        }
    }
}

pub(crate) fn names(tools: &Value) -> Vec<String> {
    tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}
