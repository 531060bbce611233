//! From MCP to A2A: real servers of every version of MCP, real clients of every generation and binding of A2A.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use super::{Half, Row, Verdict};
use crate::{
    foreign::{
        agents::with_doubles,
        operations::{last_state, streamed, task_of, text},
        servers::fresh,
    },
    harness::{
        a2a_client::{A2aClient, ClientVariant, Dialect, KINDS},
        interop,
        rialto::Rialto,
        seen,
        server::ServerProcess,
        until,
    },
};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// The version of a server, how it is started, and what its tools' names begin with.
const SERVERS: [(&str, &str, &str); 5] = [
    ("2026-07-28", "mcp_server_py_2", "v2026"),
    ("2025-11-25", "mcp_server_py_1_30", "v202511"),
    ("2025-06-18", "mcp_server_py_1_12", "v202506"),
    ("2025-03-26", "mcp_server_py_1_9", "v202503"),
    ("2024-11-05", "mcp_server_py_1_7", "v2024"),
];

/// What is looked at, in the page's order.
const ROWS: [(&str, &str, Look); 9] = [
    ("Long call", "A tool that works for a while; it is followed as a task.", |visit| visit.long_call()),
    (
        "MCP task",
        "A tool that answers with a task of the Tasks extension, which asks before it is done.",
        |visit| visit.task(),
    ),
    ("Elicitation, form", "A tool that asks its caller for a colour; the next message answers.", |visit| {
        visit.question()
    }),
    ("Elicitation, address", "A tool that wants its caller to open an address.", |visit| visit.login()),
    ("Progress", "A tool that tells how far it is, three times.", |visit| visit.progress()),
    (
        "Structured content",
        "An object with nested members, lists, numbers, a null and letters beyond ASCII.",
        |visit| visit.data(),
    ),
    (
        "Content",
        "A picture, a sound and a text file inline, and a link to a file; each with its media type.",
        |visit| visit.content(),
    ),
    (
        "Trace",
        "The trace of the caller's message (`metadata.traceparent`) is the one that the tool's call has (`_meta`).",
        |visit| visit.trace(),
    ),
    ("Cancel", "A task that its caller cancels while the tool works; the server must hear of it.", |visit| {
        visit.cancel()
    }),
];

type Look = fn(&mut Visit<'_>) -> Result<Verdict, String>;

/// One client with one server's tools.
struct Visit<'a> {
    client: &'a mut A2aClient,
    rialto: &'a Rialto,
    version: &'static str,
    prefix: &'static str,
}

pub(super) fn half() -> Half {
    let rialto = fresh().with("A2A_DISCOVERY_TIMEOUT_MS", "30000");
    let server = rialto.serve(&["--allow-no-auth"]);
    // One after the other: a program that starts too slowly is taken for one that does not speak the newest version.
    for (_, peer, prefix) in SERVERS {
        deploy(&rialto, peer, prefix);
        let first = format!("{prefix}_data");
        until("the server's tools are there", || server.list().contains(&first).then_some(()));
    }
    let rows = ROWS.iter().map(|&(title, how, _)| Row { title, how, lines: Vec::new() });
    let mut rows: Vec<Row> = rows.collect();
    for &kind in KINDS {
        for (row, verdicts) in rows.iter_mut().zip(verdicts(kind, &rialto, &server)) {
            row.lines.push(verdicts);
        }
    }
    Half {
        name: "from MCP to A2A",
        lines: KINDS.iter().map(|kind| kind.name).collect(),
        columns: SERVERS.iter().map(|&(version, ..)| version).collect(),
        rows,
    }
}

/// The file that a server tells what it heard.
fn heard_by(rialto: &Rialto, prefix: &str) -> PathBuf {
    rialto.folder().join(format!("{prefix}.json"))
}

fn deploy(rialto: &Rialto, peer: &str, prefix: &str) {
    let run = interop().display().to_string();
    let home = "RIALTO_INTEROP_HOME=${INTEROP}";
    let heard = heard_by(rialto, prefix).display().to_string();
    rialto.cli(&["tools", "add", prefix, "--env", home, "--", &run, peer, prefix, &heard]).ok();
}

/// All rows of one client: a verdict for each server.
fn verdicts(kind: ClientVariant, rialto: &Rialto, server: &ServerProcess) -> Vec<Vec<Verdict>> {
    let mut client = A2aClient::start(kind, &server.url, None).unwrap();
    let mut rows = Vec::new();
    for (.., look) in ROWS {
        let mut verdicts = Vec::new();
        for (version, _, prefix) in SERVERS {
            let mut visit = Visit { client: &mut client, rialto, version, prefix };
            verdicts.push(look(&mut visit).unwrap_or_else(Verdict::Lost));
        }
        rows.push(verdicts);
    }
    rows
}

// === impl Visit ===

impl Visit<'_> {
    fn long_call(&mut self) -> Result<Verdict, String> {
        let events = self.client.events("stream", self.asking("slow", &json!({ "seconds": 0.5 })))?;
        if last_state(&events) == "completed"
            && streamed(&events).contains("done at last")
            && events.len() > 1
        {
            Ok(Verdict::Exact("a task, followed to its end"))
        } else {
            Err(format!("{events:?}"))
        }
    }

    fn task(&mut self) -> Result<Verdict, String> {
        if self.version != "2026-07-28" {
            return Ok(Verdict::Impossible("this version has no such tasks"));
        }
        self.asked("later", "which colour?", "red", "chose red")?;
        Ok(Verdict::Exact("a task that waits, and goes on with the answer"))
    }

    fn question(&mut self) -> Result<Verdict, String> {
        if self.version < "2025-06-18" {
            return Ok(Verdict::Impossible("servers of this version cannot ask"));
        }
        match self.asked("ask", "which colour?", "red", "chose red")?.as_str() {
            "input-required" => Ok(Verdict::Exact("`input-required`, the next message answers")),
            state => Err(format!("it is {state}")),
        }
    }

    fn login(&mut self) -> Result<Verdict, String> {
        if self.version < "2025-11-25" {
            return Ok(Verdict::Impossible("servers of this version cannot name an address to open"));
        }
        let state = self.asked("login", "https://login.example.com/start", "I did", "signed in")?;
        match (state.as_str(), self.client.kind.dialect) {
            ("auth-required", _) => Ok(Verdict::Exact("`auth-required` with the address")),
            ("input-required", Dialect::V01) => {
                Ok(Verdict::Degraded("`input-required` with the address: 0.1 has no `auth-required`"))
            }
            _ => Err(format!("it is {state}")),
        }
    }

    /// A tool that asks: the state it waits in, once it was answered and is done.
    fn asked(&mut self, tool: &str, question: &str, answer: &str, end: &str) -> Result<String, String> {
        let asked = self.client.call("send", self.asking(tool, &json!({})))?;
        let asked = &asked["task"];
        if !asked["text"].as_str().is_some_and(|text| text.contains(question)) {
            return Err(format!("no question: {asked}"));
        }
        let answer = json!({ "text": answer, "task": asked["id"], "context": asked["context"] });
        let done = self.client.call("send", answer)?;
        if text(&done["task"]).contains(end) {
            Ok(asked["state"].as_str().unwrap_or_default().to_owned())
        } else {
            Err(format!("no end: {done}"))
        }
    }

    fn progress(&mut self) -> Result<Verdict, String> {
        let events = self.client.events("stream", self.asking("steps", &json!({})))?;
        let words: Vec<&str> = events.iter().filter_map(|event| event["status"]["text"].as_str()).collect();
        let tells = |step: &str| words.iter().any(|words| words.contains(step));
        if last_state(&events) != "completed" {
            return Err(format!("{events:?}"));
        }
        if tells("step 1/3") && tells("step 2/3") && tells("step 3/3") {
            return Ok(Verdict::Exact("a status for each"));
        }
        if self.version == "2024-11-05" && ["1", "2", "3"].iter().all(|step| tells(step)) {
            return Ok(Verdict::Exact(
                "a status for each, with its number: this version has no words for it",
            ));
        }
        Err(format!("{events:?}"))
    }

    fn cancel(&mut self) -> Result<Verdict, String> {
        let before = self.heard()["cancelled"].as_u64();
        let stream = self.client.begin("stream", self.asking("slow", &json!({ "seconds": 60 })));
        let task = task_of(&self.client.event(stream)?)?;
        let canceled = self.client.call("cancel", json!({ "task": task }))?;
        if canceled["state"] != "canceled" {
            return Err(format!("{canceled}"));
        }
        self.client.rest_of(stream)?;
        seen(|| (self.heard()["cancelled"].as_u64() > before).then_some(()))
            .ok_or("it does not hear of it")?;
        Ok(Verdict::Exact("`notifications/cancelled`"))
    }

    fn data(&mut self) -> Result<Verdict, String> {
        let sent = json!({
            "text": "Grüße 👋", "whole": 42, "part": 2.5, "yes": true, "none": null,
            "list": [1, "two", [3]], "nested": { "a": { "b": "c" } },
        });
        let parts = self.parts("data", &json!({ "value": sent }))?;
        let whole = with_doubles(&sent);
        if parts.iter().any(|part| with_doubles(&part["data"]) == whole) {
            return Ok(Verdict::Exact("a data part"));
        }
        let is_json = |part: &Value| {
            let said = part["text"].as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
            said.is_some_and(|said| with_doubles(&said) == whole)
        };
        if self.version < "2025-06-18" && parts.iter().any(is_json) {
            return Ok(Verdict::Impossible(
                "servers of this version say their data in words, and these arrive",
            ));
        }
        Err(format!("{parts:?}"))
    }

    fn content(&mut self) -> Result<Verdict, String> {
        let parts = self.parts("media", &json!({}))?;
        let has = |mime: &str, member: &str, begin: &str| {
            parts.iter().map(|part| &part["file"]).any(|file| {
                file["mime"] == mime && file[member].as_str().is_some_and(|text| text.starts_with(begin))
            })
        };
        let is_text = parts.iter().any(|part| part["text"] == "here are the files");
        let is_picture = has("image/png", "bytes", "iVBORw0KGgo");
        let is_note = parts.iter().any(|part| part["text"] == "a note");
        let is_sound = self.version < "2025-03-26" || has("audio/wav", "bytes", "UklGR");
        let is_link = self.version < "2025-06-18"
            || has("application/pdf", "uri", "https://files.example.com/report.pdf");
        if is_text && is_picture && is_note && is_sound && is_link {
            Ok(Verdict::Exact(match self.version {
                "2024-11-05" => "file parts, a text file as text (this version has no sounds and links)",
                "2025-03-26" => "file parts, a text file as text (this version has no links)",
                _ => "file parts, a text file as text",
            }))
        } else {
            Err(format!("{parts:?}"))
        }
    }

    fn trace(&mut self) -> Result<Verdict, String> {
        let mut asking = self.asking("data", &json!({ "value": {} }));
        asking["metadata"] = json!({ "traceparent": format!("00-{TRACE}-b7ad6b7169203331-01") });
        self.client.call("send", asking)?;
        let heard = self.heard()["trace"].clone();
        let is_ours = heard.as_str().is_some_and(|heard| heard.starts_with(&format!("00-{TRACE}-")));
        if is_ours {
            Ok(Verdict::Exact("the same trace, a span of its own"))
        } else {
            Err(format!("{heard}"))
        }
    }

    /// All parts that a tool's completed task has.
    fn parts(&mut self, tool: &str, arguments: &Value) -> Result<Vec<Value>, String> {
        let done = self.client.call("send", self.asking(tool, arguments))?;
        let task = &done["task"];
        if task["state"] != "completed" {
            return Err(format!("{done}"));
        }
        let artifacts = task["artifacts"].as_array().into_iter().flatten();
        Ok(artifacts.flat_map(|parts| parts.as_array().cloned().unwrap_or_default()).collect())
    }

    /// What the server says that it heard.
    fn heard(&self) -> Value {
        let text = fs::read_to_string(heard_by(self.rialto, self.prefix)).unwrap_or_default();
        // It may just be written.
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn asking(&self, tool: &str, arguments: &Value) -> Value {
        json!({ "skill": format!("{}_{tool}", self.prefix), "data": arguments })
    }
}
