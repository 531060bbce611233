//! From A2A to MCP: real agents of every generation and binding, real clients of every version of MCP.

use serde_json::{Value, json};

use super::{Half, Row, Verdict};
use crate::{
    foreign::{agents::with_doubles, relay::AGENTS},
    harness::{
        client::{McpClient, McpEra, McpTransport, Sdk},
        foreign_agent::ForeignAgent,
        outcome::CallOutcome,
        rialto::Rialto,
        seen, until,
    },
};

/// What the person at the client says to every question.
const ANSWER: &str = r#"{"action":"accept","content":{"answer":"red"}}"#;
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const LOGIN: &str = "https://login.example.com/start";
const REPORT: &str = "https://files.example.com/report.pdf";

/// A kind of client.
#[derive(Clone, Copy)]
struct Column {
    name: &'static str,
    sdk: Sdk,
    words: &'static [&'static str],
    /// Whether it goes to a server; else it starts one.
    is_http: bool,
}

const COLUMNS: [Column; 7] = [
    Column {
        name: "2026-07-28 with Tasks",
        sdk: Sdk::Python,
        words: &["--elicit", ANSWER, "--tasks"],
        is_http: true,
    },
    Column { name: "2026-07-28", sdk: Sdk::Python, words: &["--elicit", ANSWER], is_http: true },
    Column {
        name: "2025-11-25",
        sdk: Sdk::Aged("mcp_py_1_30", "2025-11-25"),
        words: &["--elicit", ANSWER],
        is_http: true,
    },
    Column {
        name: "2025-06-18",
        sdk: Sdk::Aged("mcp_py_1_12", "2025-06-18"),
        words: &["--elicit", ANSWER],
        is_http: true,
    },
    Column { name: "2025-03-26", sdk: Sdk::Aged("mcp_py_1_9", "2025-03-26"), words: &[], is_http: true },
    Column { name: "2024-11-05", sdk: Sdk::Aged("mcp_py_1_7", "2024-11-05"), words: &[], is_http: false },
    Column {
        name: "nothing declared",
        sdk: Sdk::Aged("mcp_py_1_30", "2025-11-25"),
        words: &[],
        is_http: true,
    },
];

/// What is looked at, in the page's order.
const ROWS: [(&str, &str); 9] = [
    ("Long task", "A skill that works for longer than a call may last without becoming a task."),
    (
        "Task that outlives the call",
        "A skill that works for longer than the wall clock of a call (`[calls] timeout_ms`).",
    ),
    ("`input-required`", "A skill that asks for a colour; the answer is what its result says."),
    ("`auth-required`", "A skill that wants a login at an address."),
    (
        "Status and artifact events",
        "A skill that tells of three steps, and gives its result in three pieces.",
    ),
    ("Cancel", "A call that the client calls off while the agent works; the agent's task must be canceled."),
    (
        "Data part",
        "An object with nested members, lists, numbers, a null and letters beyond ASCII, there and back.",
    ),
    (
        "File part",
        "A picture, a sound and a text file inline, and a file by its address; each with its media type.",
    ),
    (
        "Trace",
        "The trace of the client's request (`_meta.traceparent`) is the one that the agent's request has (its header).",
    ),
];

/// One client, with all agents.
struct Visit<'a> {
    client: McpClient,
    column: Column,
    agents: &'a [String],
    rialto: &'a Rialto,
    next: u32,
}

pub(super) fn half() -> Half {
    let peers: Vec<ForeignAgent> =
        AGENTS.iter().map(|&(_, peer, args)| ForeignAgent::start(peer, args)).collect();
    let urls: Vec<&str> = peers.iter().map(|peer| peer.url.as_str()).collect();
    let installed = |clock| {
        let rialto =
            Rialto::fresh().with("RIALTO_MCP__TASK_AFTER_MS", "400").with("RIALTO_CALLS__TIMEOUT_MS", clock);
        let slugs: Vec<String> = urls.iter().map(|url| rialto.trust(url)).collect();
        (rialto, slugs)
    };
    let (patient, slugs) = installed("60000");
    let (hasty, _) = installed("1000");
    let (server, hasty_server) = (patient.serve(&["--allow-no-auth"]), hasty.serve(&["--allow-no-auth"]));
    let mut rows: Vec<Row> =
        ROWS.iter().map(|&(title, how)| Row { title, how, lines: vec![Vec::new(); AGENTS.len()] }).collect();
    for column in COLUMNS {
        let doors = if column.is_http {
            [(&patient, server.door()), (&hasty, hasty_server.door())]
        } else {
            [(&patient, patient.stdio(&[])), (&hasty, hasty.stdio(&[]))]
        };
        for (row, verdicts) in rows.iter_mut().zip(verdicts(column, &slugs, doors)) {
            row.lines.iter_mut().zip(verdicts).for_each(|(line, verdict)| line.push(verdict));
        }
    }
    Half {
        name: "from A2A to MCP",
        lines: AGENTS.iter().map(|&(name, ..)| name).collect(),
        columns: COLUMNS.iter().map(|column| column.name).collect(),
        rows,
    }
}

/// All rows of one client, in their order: a verdict for each agent.
fn verdicts(column: Column, agents: &[String], doors: [(&Rialto, McpTransport); 2]) -> Vec<Vec<Verdict>> {
    let [(rialto, door), (hasty, hasty_door)] = doors;
    let mut visit = Visit::start(column, agents, rialto, &door);
    let mut hurried = Visit::start(column, agents, hasty, &hasty_door);
    let rows = vec![
        visit.long_task(),
        hurried.outliving(),
        visit.question(),
        visit.login(),
        visit.events(),
        visit.cancel(),
        visit.data(),
        visit.files(),
        visit.trace(),
    ];
    visit.client.leave();
    hurried.client.leave();
    rows
}

// === impl Visit ===

impl<'a> Visit<'a> {
    fn start(column: Column, agents: &'a [String], rialto: &'a Rialto, door: &McpTransport) -> Self {
        let client = McpClient::start_with(column.sdk, McpEra::Auto, door, column.words);
        Self { client, column, agents, rialto, next: 0 }
    }

    fn has_tasks(&self) -> bool {
        self.column.words.contains(&"--tasks")
    }

    /// Begins a call of this skill at every agent; the calls' ids.
    fn begin(&mut self, skill: &str, arguments: &Value) -> Vec<u32> {
        let meta = json!({ "traceparent": format!("00-{TRACE}-b7ad6b7169203331-01") });
        self.agents
            .iter()
            .map(|agent| {
                self.next += 1;
                self.client.begin_with(self.next, &format!("{agent}.{skill}"), arguments, &meta);
                self.next
            })
            .collect()
    }

    /// Calls a skill at every agent at once.
    fn call(&mut self, skill: &str, arguments: &Value) -> Vec<CallOutcome> {
        let calls = self.begin(skill, arguments);
        calls.into_iter().map(|call| self.client.finish(call)).collect()
    }

    fn long_task(&mut self) -> Vec<Verdict> {
        self.client.unheard("task");
        let outcomes = self.call("slow", &json!({ "seconds": 1.5 }));
        let handles = self.client.unheard("task").len();
        let has_handles = self.has_tasks() && handles == outcomes.len();
        let verdict = |outcome: &CallOutcome| match said(outcome).as_str() {
            "done at last" if has_handles => Verdict::Exact("a task's handle, then the result"),
            "done at last" if tells(outcome, "this takes a while") => {
                Verdict::Exact("progress, then the result")
            }
            "done at last" => Verdict::Degraded("the result when it is there"),
            _ => Verdict::lost(outcome),
        };
        outcomes.iter().map(verdict).collect()
    }

    fn outliving(&mut self) -> Vec<Verdict> {
        let outcomes = self.call("slow", &json!({ "seconds": 3 }));
        outcomes.iter().map(|outcome| self.fetched(outcome)).collect()
    }

    /// A call that was over before its task was.
    fn fetched(&mut self, outcome: &CallOutcome) -> Verdict {
        let Err(error) = &outcome.answer else {
            return match said(outcome).as_str() {
                "done at last" if self.has_tasks() => Verdict::Exact("a task's handle, then the result"),
                _ => Verdict::lost(outcome),
            };
        };
        if error["code"] != -32201 {
            return Verdict::lost(outcome);
        }
        let arguments = json!({ "task_id": error["data"]["taskId"] });
        until("the task is over", || {
            let seen = self.client.call("get_task", &arguments);
            let text = seen.result().to_string();
            text.contains("done at last").then_some(())
        });
        Verdict::Exact("error -32201 with the task's id, `get_task` has the result")
    }

    fn question(&mut self) -> Vec<Verdict> {
        self.asked("ask", "which colour?", "red", "you chose red")
    }

    fn login(&mut self) -> Vec<Verdict> {
        self.asked("login", LOGIN, "I did", "signed in")
    }

    /// A skill that asks: the person is asked, or else the model has to answer.
    fn asked(&mut self, skill: &str, question: &str, answer: &str, end: &str) -> Vec<Verdict> {
        self.client.unheard("elicitation");
        let outcomes = self.call(skill, &json!({}));
        let questions = self.client.unheard("elicitation");
        if questions.is_empty() {
            return outcomes.iter().map(|outcome| self.answered(outcome, question, answer, end)).collect();
        }
        let are_all_asked = questions.len() == outcomes.len()
            && questions.iter().all(|asked| asked.to_string().contains(question));
        let form = match (skill, self.client.greeting["protocol"].as_str(), &questions[0]["mode"]) {
            ("login", Some("2026-07-28"), mode) if mode == "url" => {
                Verdict::Exact("`input_required` that opens the address")
            }
            ("login", _, mode) if mode == "url" => {
                Verdict::Exact("`elicitation/create` that opens the address")
            }
            ("login", ..) => {
                Verdict::Degraded("`elicitation/create` that tells the address and asks whether it is done")
            }
            (_, Some("2026-07-28"), _) => {
                Verdict::Exact("`input_required`, and the same call again with the answer")
            }
            _ => Verdict::Exact("`elicitation/create` in the middle of the call"),
        };
        let verdict = |outcome: &CallOutcome| {
            if are_all_asked && said(outcome) == end {
                form.clone()
            } else {
                Verdict::lost((outcome, &questions))
            }
        };
        outcomes.iter().map(verdict).collect()
    }

    /// A question that is the result of its call: the model answers it.
    fn answered(&mut self, outcome: &CallOutcome, question: &str, answer: &str, end: &str) -> Verdict {
        let asked = outcome.data().clone();
        if !said(outcome).contains(question) || asked["task_id"].is_null() {
            return Verdict::lost(outcome);
        }
        let message = json!({ "agent": asked["agent"], "task_id": asked["task_id"], "message": answer });
        let done = self.client.call("send_message", &message);
        if said(&done).contains(end) {
            Verdict::Degraded("a result with the question and the task's id, `send_message` answers it")
        } else {
            Verdict::lost(done)
        }
    }

    fn events(&mut self) -> Vec<Verdict> {
        let has_tasks = self.has_tasks();
        let verdict = |outcome: &CallOutcome| {
            let steps = ["step 1/3", "step 2/3"];
            let numbers: String = said(outcome).split_whitespace().collect();
            match numbers.as_str() {
                "123" if steps.iter().all(|step| tells(outcome, step)) => {
                    Verdict::Exact("progress notifications, and the pieces in order")
                }
                "123" if has_tasks => {
                    Verdict::Degraded("the result; a call that may become a task has no progress")
                }
                "123" => Verdict::Degraded("the result"),
                _ => Verdict::lost(outcome),
            }
        };
        self.call("count", &json!({ "steps": 3 })).iter().map(verdict).collect()
    }

    fn cancel(&mut self) -> Vec<Verdict> {
        let calls = self.begin("slow", &json!({ "seconds": 60 }));
        if self.has_tasks() {
            self.client.hear_of_tasks(calls.len());
        } else {
            calls.iter().for_each(|&call| drop(self.client.hear_progress(call)));
        }
        calls.iter().for_each(|&call| self.client.cancel(call));
        let limit = calls.len().to_string();
        let newest = || self.rialto.json(&["tasks", "list", "--limit", &limit, "--json"]);
        let is_off = |task: &Value| task["skill"] == "slow" && task["state"] == "canceled";
        let are_off = |tasks: &Value| {
            let tasks = tasks.as_array().unwrap();
            tasks.len() == calls.len() && tasks.iter().all(is_off)
        };
        let tasks = seen(|| Some(newest()).filter(are_off));
        if tasks.is_none() {
            return vec![Verdict::Lost(newest().to_string()); calls.len()];
        }
        let form = match (self.has_tasks(), self.client.greeting["protocol"].as_str()) {
            (true, _) => "`tasks/cancel`",
            (_, Some("2026-07-28")) => "the request's stream is closed",
            _ => "`notifications/cancelled`",
        };
        vec![Verdict::Exact(form); calls.len()]
    }

    fn data(&mut self) -> Vec<Verdict> {
        let sent = json!({
            "text": "Grüße 👋", "whole": 42, "part": 2.5, "yes": true, "none": null,
            "list": [1, "two", [3]], "nested": { "a": { "b": "c" } },
        });
        let whole = with_doubles(&sent);
        let verdict = |outcome: &CallOutcome| {
            let text = serde_json::from_str::<Value>(&said(outcome)).unwrap_or_default();
            let (data, text) = (with_doubles(outcome.data()), with_doubles(&text));
            match (data == whole, text == whole) {
                (true, true) => Verdict::Exact("`structuredContent`, and its JSON as text"),
                (false, true) => Verdict::Degraded("JSON as text"),
                _ => Verdict::lost(outcome),
            }
        };
        self.call("echo", &sent).iter().map(verdict).collect()
    }

    fn files(&mut self) -> Vec<Verdict> {
        let (files, media) = (self.call("files", &json!({})), self.call("media", &json!({})));
        files.iter().zip(&media).map(|(files, media)| of_files(files, media)).collect()
    }

    fn trace(&mut self) -> Vec<Verdict> {
        let verdict = |outcome: &CallOutcome| {
            let heard = said(outcome);
            let is_ours = heard.starts_with(&format!("00-{TRACE}-")) && !heard.contains("b7ad6b7169203331");
            if is_ours { Verdict::Exact("the same trace, a span of its own") } else { Verdict::lost(outcome) }
        };
        self.call("heard", &json!({})).iter().map(verdict).collect()
    }
}

/// Files, in the blocks that there are for them.
fn of_files(files: &CallOutcome, media: &CallOutcome) -> Verdict {
    let blocks = |outcome: &CallOutcome| outcome.result()["content"].as_array().unwrap().clone();
    let (files, media) = (blocks(files), blocks(media));
    let find = |blocks: &[Value], is_it: &dyn Fn(&Value) -> bool| blocks.iter().any(is_it);
    let is_picture = |block: &Value| {
        block["type"] == "image"
            && block["mimeType"] == "image/png"
            && block["data"].as_str().is_some_and(|data| data.starts_with("iVBORw0KGgo"))
    };
    let is_note = |block: &Value| {
        let resource = &block["resource"];
        resource["text"] == "a note" && resource["mimeType"] == "text/plain"
    };
    let is_sound = |block: &Value| block["type"] == "audio" && block["mimeType"] == "audio/wav";
    let is_blob = |block: &Value| {
        block["resource"]["mimeType"] == "audio/wav"
            && block["resource"]["blob"].as_str().is_some_and(|blob| blob.starts_with("UklGR"))
    };
    let is_link = |block: &Value| {
        block["type"] == "resource_link" && block["uri"] == REPORT && block["mimeType"] == "application/pdf"
    };
    let names_it = |block: &Value| block["text"].as_str().is_some_and(|text| text.contains(REPORT));
    let is_inline = find(&files, &is_picture) && find(&media, &is_note);
    let sound = (find(&media, &is_sound), find(&media, &is_blob));
    let link = (find(&files, &is_link), find(&files, &names_it));
    match (is_inline, sound, link) {
        (true, (true, _), (true, _)) => Verdict::Exact("image, audio, embedded resource, resource link"),
        (true, (true, _), (_, true)) => {
            Verdict::Degraded("image, audio, embedded resource; an address is told in words")
        }
        (true, (_, true), (_, true)) => {
            Verdict::Degraded("image, embedded resources; an address is told in words")
        }
        _ => Verdict::lost((files, media)),
    }
}

/// All that a result says in words.
fn said(outcome: &CallOutcome) -> String {
    if outcome.answer.is_ok() { outcome.text() } else { String::new() }
}

/// Whether a call told of this on its way.
fn tells(outcome: &CallOutcome, what: &str) -> bool {
    outcome.progress.iter().any(|told| told["message"].as_str().is_some_and(|words| words.contains(what)))
}
