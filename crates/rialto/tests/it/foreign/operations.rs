//! What an A2A client can do, each as an examination: what must be seen through Rialto, whoever asks and whoever answers.

use serde_json::{Value, json};

use super::agents::with_doubles;
use crate::harness::{
    a2a_client::{A2aClient, Dialect},
    seen,
    webhook_receiver::{ReceivedRequest, WebhookReceiver},
};

/// One thing that clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Send,
    Stream,
    Get,
    List,
    Cancel,
    Resubscribe,
    Push,
    Question,
    Failure,
    Files,
    Login,
    Reply,
}

/// How well it went.
pub(super) enum Seen {
    /// As it should be.
    Whole,
    /// As well as one of the two generations can: what is lost.
    Less(&'static str),
}

/// One client in front of one agent.
pub(super) struct Visit<'a> {
    pub(super) client: &'a mut A2aClient,
    /// What stands before the ids of the agent's skills.
    pub(super) prefix: &'a str,
    /// Whether the agent tells of its steps.
    pub(super) tells_steps: bool,
    pub(super) receiver: &'a WebhookReceiver,
}

type Checked = Result<Seen, String>;

macro_rules! check {
    ($holds:expr, $($seen:tt)*) => {
        if !$holds {
            return Err(format!($($seen)*));
        }
    };
}

// === impl Operation ===

impl Operation {
    pub(super) const ALL: [Self; 12] = [
        Self::Send,
        Self::Stream,
        Self::Get,
        Self::List,
        Self::Cancel,
        Self::Resubscribe,
        Self::Push,
        Self::Question,
        Self::Failure,
        Self::Files,
        Self::Login,
        Self::Reply,
    ];

    /// What a command can do that just reads, works and writes.
    pub(super) const OF_A_FUNCTION: [Self; 8] = [
        Self::Send,
        Self::Stream,
        Self::Get,
        Self::List,
        Self::Cancel,
        Self::Resubscribe,
        Self::Push,
        Self::Failure,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Stream => "stream",
            Self::Get => "get",
            Self::List => "list",
            Self::Cancel => "cancel",
            Self::Resubscribe => "resubscribe",
            Self::Push => "push",
            Self::Question => "input-required",
            Self::Failure => "failure",
            Self::Files => "files",
            Self::Login => "auth-required",
            Self::Reply => "message",
        }
    }

    /// Whether the client's generation has it.
    pub(super) fn is_known_to(self, client: &A2aClient) -> bool {
        match self {
            Self::List => client.can("list"),
            Self::Resubscribe => client.can("resubscribe"),
            _ => true,
        }
    }
}

// === impl Visit ===

impl Visit<'_> {
    pub(super) fn perform(&mut self, operation: Operation) -> Checked {
        match operation {
            Operation::Send => self.send(),
            Operation::Stream => self.stream(),
            Operation::Get => self.get(),
            Operation::List => self.list(),
            Operation::Cancel => self.cancel(),
            Operation::Resubscribe => self.resubscribe(),
            Operation::Push => self.push(),
            Operation::Question => self.question(),
            Operation::Failure => self.failure(),
            Operation::Files => self.files(),
            Operation::Login => self.login(),
            Operation::Reply => self.reply(),
        }
    }

    fn send(&mut self) -> Checked {
        let task = self.said("Ann ✓")?;
        check!(text(&task) == "hello Ann ✓", "send: {task}");
        if self.tells_steps {
            let data = json!({
                "text": "grüße, 世界 🦀 \"quoted\"\n\ttab",
                "nested": { "list": [1, [2, { "three": 3 }], null, true, []], "empty": {} },
                "float": 0.5,
            });
            let echoed = self.done("echo", &data)?;
            check!(with_doubles(&echoed["artifacts"][0][0]["data"]) == with_doubles(&data), "echo: {echoed}");
        }
        Ok(Seen::Whole)
    }

    fn stream(&mut self) -> Checked {
        let events = self.client.events("stream", self.asking("count", &json!({ "steps": 3 })))?;
        check!(streamed(&events) == "1 2 3", "stream: {}", json!(events));
        check!(last_state(&events) == "completed", "stream: {}", json!(events));
        if self.tells_steps {
            for step in ["step 1/3", "step 2/3", "step 3/3"] {
                let is_told = events.iter().any(|event| event["status"]["text"] == step);
                check!(is_told, "stream: {step} is not in {}", json!(events));
            }
        }
        // Who begins a stream is told which task it is, at once or with its first event.
        task_of(events.first().unwrap_or(&Value::Null))?;
        Ok(Seen::Whole)
    }

    fn get(&mut self) -> Checked {
        let task = self.said("Ann")?;
        let got = self.client.call("get", json!({ "task": task["id"] }))?;
        check!(got == task, "get: {got} is not {task}");
        Ok(Seen::Whole)
    }

    fn list(&mut self) -> Checked {
        let task = self.said("Ann")?;
        let listed = self.client.call("list", json!({ "context": task["context"] }))?;
        check!(listed == json!([task]), "list: {listed} is not only {task}");
        Ok(Seen::Whole)
    }

    fn cancel(&mut self) -> Checked {
        let (stream, task) = self.begin_slow(30)?;
        let canceled = self.client.call("cancel", json!({ "task": task }))?;
        check!(canceled["state"] == "canceled", "cancel: {canceled}");
        let rest = self.client.rest_of(stream)?;
        check!(last_state(&rest) == "canceled", "cancel: the stream went on with {}", json!(rest));
        let again = self.client.try_call("cancel", json!({ "task": task }))?;
        let Err(refused) = again else { return Err(format!("cancel: twice, {again:?}")) };
        check!(is_refused(&refused, -32002, 409, "UNIMPLEMENTED"), "cancel: {refused}");
        Ok(Seen::Whole)
    }

    fn resubscribe(&mut self) -> Checked {
        let (stream, task) = self.begin_slow(1)?;
        self.client.hang_up(stream)?;
        let events = self.client.events("resubscribe", json!({ "task": task }))?;
        check!(streamed(&events) == "done at last", "resubscribe: {}", json!(events));
        check!(last_state(&events) == "completed", "resubscribe: {}", json!(events));
        Ok(Seen::Whole)
    }

    fn push(&mut self) -> Checked {
        let mut asking = self.asking("say", &json!({ "name": "Ann" }));
        asking["push"] = json!({ "url": self.receiver.url, "token": "with-the-message" });
        let sent = self.client.call("send", asking)?;
        self.is_told(sent["task"]["id"].as_str().unwrap_or_default(), "with-the-message")?;
        let (stream, task) = self.begin_slow(1)?;
        let wanted = json!({ "url": self.receiver.url, "token": "afterwards" });
        let made = self.client.call("push_set", json!({ "task": task, "push": wanted }))?;
        check!(made["url"] == wanted["url"] && made["task"] == task.as_str(), "push_set: {made}");
        let named = json!({ "task": task, "config": made["config"] });
        let got = self.client.call("push_get", named.clone())?;
        check!(got == made, "push_get: {got} is not {made}");
        if self.client.can("push_list") {
            let listed = self.client.call("push_list", json!({ "task": task }))?;
            check!(listed == json!([made]), "push_list: {listed} is not only {made}");
        }
        self.client.rest_of(stream)?;
        self.is_told(&task, "afterwards")?;
        if self.client.can("push_delete") {
            self.client.call("push_delete", named)?;
            let left = self.client.call("push_list", json!({ "task": task }))?;
            check!(left == json!([]), "push_delete: {left}");
        }
        Ok(Seen::Whole)
    }

    /// The receiver heard of the task's end, in the client's dialect and with the token.
    fn is_told(&self, task: &str, token: &str) -> Result<(), String> {
        let is_v10 = self.client.kind.dialect == Dialect::V10;
        let is_end = |told: &&ReceivedRequest| {
            let body = told.json();
            let shown = if body["statusUpdate"].is_null() { &body } else { &body["statusUpdate"] };
            let state = shown["status"]["state"].as_str().unwrap_or_default();
            let id = if is_v10 { &shown["taskId"] } else { &shown["id"] };
            id == task && state == if is_v10 { "TASK_STATE_COMPLETED" } else { "completed" }
        };
        let told = seen(|| self.receiver.told().iter().find(is_end).cloned());
        let Some(told) = told else { return Err(format!("push: nobody was told of the end of {task}")) };
        check!(told.token == token, "push: {told:?}");
        Ok(())
    }

    fn question(&mut self) -> Checked {
        let asked = self.client.call("send", self.asking("ask", &json!({})))?;
        let asked = &asked["task"];
        check!(asked["state"] == "input-required" && asked["text"] == "which colour?", "ask: {asked}");
        let answer = json!({ "text": "blue", "task": asked["id"], "context": asked["context"] });
        let chosen = self.client.call("send", answer)?;
        let chosen = &chosen["task"];
        check!(chosen["id"] == asked["id"] && chosen["state"] == "completed", "answer: {chosen}");
        check!(text(chosen) == "you chose blue", "answer: {chosen}");
        let events = self.client.events("stream", self.asking("ask", &json!({})))?;
        check!(last_state(&events) == "input-required", "asked in a stream: {}", json!(events));
        let task = task_of(events.last().unwrap_or(&Value::Null))?;
        let events = self.client.events("stream", json!({ "text": "red", "task": task }))?;
        check!(last_state(&events) == "completed", "answered in a stream: {}", json!(events));
        check!(streamed(&events) == "you chose red", "answered in a stream: {}", json!(events));
        Ok(Seen::Whole)
    }

    fn failure(&mut self) -> Checked {
        let failed = self.client.call("send", self.asking("fail", &json!({})))?;
        let failed = &failed["task"];
        let words = failed["text"].as_str().unwrap_or_default();
        check!(failed["state"] == "failed" && words.contains("it broke on purpose"), "fail: {failed}");
        let events = self.client.events("stream", self.asking("fail", &json!({})))?;
        check!(last_state(&events) == "failed", "fail in a stream: {}", json!(events));
        let unknown = self.client.try_call("get", json!({ "task": "no-such-task" }))?;
        let Err(refused) = unknown else { return Err(format!("get of nothing: {unknown:?}")) };
        check!(is_refused(&refused, -32001, 404, "NOT_FOUND"), "get of nothing: {refused}");
        let unknown = self.client.try_call("send", self.asking("no-such-skill", &json!({})))?;
        let Err(refused) = unknown else { return Err(format!("no such skill: {unknown:?}")) };
        check!(is_refused(&refused, -32602, 422, "INVALID_ARGUMENT"), "no such skill: {refused}");
        Ok(Seen::Whole)
    }

    fn files(&mut self) -> Checked {
        let task = self.done("files", &json!({}))?;
        let parts = &task["artifacts"][0];
        check!(parts[0]["text"] == "here are the files", "files: {parts}");
        let (image, link) = (&parts[1]["file"], &parts[2]["file"]);
        check!(image["name"] == "pixel.png" && image["mime"] == "image/png", "files: {parts}");
        check!(link["name"] == "report.pdf" && link["mime"] == "application/pdf", "files: {parts}");
        check!(link["uri"] == "https://files.example.com/report.pdf", "files: {parts}");
        check!(with_doubles(&parts[3]["data"]["files"]) == json!(2.0), "files: {parts}");
        let bytes = image["bytes"].as_str().unwrap_or_default();
        check!(bytes.starts_with("iVBORw0KGgo"), "files: {parts}");
        Ok(Seen::Whole)
    }

    fn login(&mut self) -> Checked {
        let asked = self.client.call("send", self.asking("login", &json!({})))?;
        let asked = &asked["task"];
        let words = asked["text"].as_str().unwrap_or_default();
        check!(words.contains("https://login.example.com/start"), "login: {asked}");
        let answer = json!({ "text": "I did", "task": asked["id"], "context": asked["context"] });
        let done = self.client.call("send", answer)?;
        check!(text(&done["task"]) == "signed in", "login: {done}");
        match asked["state"].as_str() {
            Some("auth-required") => Ok(Seen::Whole),
            Some("input-required") => Ok(Seen::Less("0.1 has no auth-required: it is input-required")),
            _ => Err(format!("login: {asked}")),
        }
    }

    fn reply(&mut self) -> Checked {
        let answer = self.client.call("send", self.asking("reply", &json!({})))?;
        let events = self.client.events("stream", self.asking("reply", &json!({})))?;
        let is_ended = last_state(&events) == "completed" && last_words(&events) == "just a message";
        if answer["message"]["text"] != "just a message" {
            let task = &answer["task"];
            check!(task["state"] == "completed" && task["text"] == "just a message", "message: {answer}");
            check!(is_ended, "message in a stream: {}", json!(events));
            return Ok(Seen::Less("0.1 has no answers without a task: the message is the status of one"));
        }
        if events == [answer] {
            return Ok(Seen::Whole);
        }
        check!(is_ended, "message in a stream: {}", json!(events));
        Ok(Seen::Less("the agent was slow to say that it makes no task, so the stream began with one"))
    }

    /// A greeting, from its completed task.
    fn said(&mut self, name: &str) -> Result<Value, String> {
        self.done("say", &json!({ "name": name }))
    }

    /// A skill's completed task.
    fn done(&mut self, skill: &str, data: &Value) -> Result<Value, String> {
        let mut answer = self.client.call("send", self.asking(skill, data))?;
        let task = answer["task"].take();
        check!(task["state"] == "completed", "{skill}: {task}");
        Ok(task)
    }

    /// A stream of a task that takes a while, and the task's id.
    fn begin_slow(&mut self, seconds: u32) -> Result<(u32, String), String> {
        let stream = self.client.begin("stream", self.asking("slow", &json!({ "seconds": seconds })));
        let first = self.client.event(stream)?;
        Ok((stream, task_of(&first)?))
    }

    fn asking(&self, skill: &str, data: &Value) -> Value {
        json!({ "skill": format!("{}{skill}", self.prefix), "data": data })
    }
}

/// Whether it is this error. Over HTTP+JSON and gRPC the SDK of 0.3 hands on the status alone.
fn is_refused(error: &Value, code: i64, http: u16, grpc: &str) -> bool {
    error["code"] == code || error["http"] == http || error["grpc"] == grpc
}

pub(super) fn task_of(event: &Value) -> Result<String, String> {
    let id = event["task"]["id"].as_str().or(event["task_id"].as_str());
    id.map(str::to_owned).ok_or_else(|| format!("this does not name its task: {event}"))
}

/// All that a task's artifacts say.
pub(super) fn text(task: &Value) -> String {
    let artifacts = task["artifacts"].as_array().into_iter().flatten();
    artifacts.map(texts).collect()
}

/// All that a stream's artifacts say; a task that comes whole has them, too.
pub(super) fn streamed(events: &[Value]) -> String {
    events.iter().map(|event| text(&event["task"]) + &texts(&event["artifact"]["parts"])).collect()
}

fn texts(parts: &Value) -> String {
    parts.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect()
}

/// The state that a stream ended in.
pub(super) fn last_state(events: &[Value]) -> &str {
    let has_state = |event: &Value| event["status"]["state"].as_str().is_some() || event["task"].is_object();
    let last = events.iter().rev().find(|event| has_state(event)).unwrap_or(&Value::Null);
    last["status"]["state"].as_str().or(last["task"]["state"].as_str()).unwrap_or_default()
}

/// What the last status of a stream says.
fn last_words(events: &[Value]) -> &str {
    let words = events.iter().rev().find_map(|event| event["status"]["text"].as_str());
    words.unwrap_or_default()
}
