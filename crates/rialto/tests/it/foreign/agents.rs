//! Agents of every generation, through both doors: each skill is a tool, and what it answers crosses whole.

use serde_json::{Value, json};

use crate::harness::{
    client::{McpClient, McpEra, Sdk},
    foreign_agent::ForeignAgent,
    outcome::CallOutcome,
    rialto::Rialto,
    until,
};

/// What all foreign agents can do.
const SKILLS: [&str; 11] =
    ["ask", "count", "echo", "fail", "files", "heard", "login", "media", "reply", "say", "slow"];

/// The wall clock of these tests, in milliseconds; `slow` is asked to take longer.
const WALL_CLOCK: &str = "3000";
const SLOW_SECONDS: u32 = 5;

/// The call that runs beside all others.
const SLOW: u32 = 1;

/// A foreign agent, and what is special about it.
struct ForeignCall {
    peer: &'static str,
    args: &'static [&'static str],
    slug: &'static str,
    numbers: Numbers,
    login: &'static str,
}

/// What the agent's own SDK does to numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    Exact,
    Doubles,
}

#[test]
fn the_skills_of_an_extended_card_are_offered_once_there_is_a_credential() {
    for (kind, binding) in
        [("py_1_3", "jsonrpc"), ("py_1_3", "rest"), ("py_0_3", "jsonrpc"), ("py_0_3", "rest")]
    {
        let agent = ForeignAgent::start(kind, &["--extended", "--binding", binding]);
        let rialto = Rialto::fresh().with("AGENT_TOKEN", "secret");
        let has_extra = |shown: &Value| {
            let skills = shown["skills"].as_array().unwrap();
            assert!(skills.len() > 5, "{shown}");
            skills.iter().any(|skill| skill["id"] == "extra")
        };
        let public = rialto.json(&["agents", "add", &agent.url, "--json"]);
        assert!(!has_extra(&public), "{kind} {binding}");
        let known = rialto.json(&["agents", "add", &agent.url, "--token-env", "AGENT_TOKEN", "--json"]);
        assert!(has_extra(&known), "{kind} {binding}");
        let slug = known["slug"].as_str().unwrap();
        assert_eq!(rialto.json(&["agents", "refresh", slug, "--json"])["outcome"], "unchanged");
    }
}

#[test]
fn an_agent_of_the_python_sdk_1_3_over_json_rpc_is_a_set_of_tools() {
    ForeignCall::new("py_1_3", &[], "py13_agent").with_doubles().crosses();
}

#[test]
fn an_agent_of_the_python_sdk_1_3_over_rest_is_a_set_of_tools() {
    ForeignCall::new("py_1_3", &["--binding", "rest"], "py13_rest_agent").with_doubles().crosses();
}

#[test]
fn an_agent_of_the_python_sdk_1_3_that_cannot_stream_is_a_set_of_tools() {
    ForeignCall::new("py_1_3", &["--no-streaming"], "py13_agent").with_doubles().crosses();
}

#[test]
fn an_agent_of_the_python_sdk_1_3_over_grpc_is_a_set_of_tools() {
    ForeignCall::new("py_1_3", &["--binding", "grpc"], "py13_grpc_agent").with_doubles().crosses();
}

#[test]
fn an_agent_of_the_python_sdk_1_3_over_grpc_that_cannot_stream_is_a_set_of_tools() {
    ForeignCall::new("py_1_3", &["--binding", "grpc", "--no-streaming"], "py13_grpc_agent")
        .with_doubles()
        .crosses();
}

#[test]
fn an_agent_of_the_javascript_sdk_1_3_over_json_rpc_is_a_set_of_tools() {
    ForeignCall::new("js_1_3", &[], "js13_agent").with_doubles().crosses();
}

#[test]
fn an_agent_of_the_javascript_sdk_1_3_over_rest_is_a_set_of_tools() {
    ForeignCall::new("js_1_3", &["--binding", "rest"], "js13_rest_agent").with_doubles().crosses();
}

#[test]
fn an_agent_of_the_python_sdk_0_3_over_json_rpc_is_a_set_of_tools() {
    ForeignCall::new("py_0_3", &[], "py03_agent").crosses();
}

#[test]
fn an_agent_of_the_python_sdk_0_3_over_rest_is_a_set_of_tools() {
    ForeignCall::new("py_0_3", &["--binding", "rest"], "py03_rest_agent").with_doubles().crosses();
}

#[test]
fn an_agent_of_the_python_sdk_0_3_over_grpc_is_a_set_of_tools() {
    ForeignCall::new("py_0_3", &["--binding", "grpc"], "py03_grpc_agent").with_doubles().crosses();
}

#[test]
fn an_agent_of_the_python_sdk_0_3_over_grpc_that_cannot_stream_is_a_set_of_tools() {
    ForeignCall::new("py_0_3", &["--binding", "grpc", "--no-streaming"], "py03_grpc_agent")
        .with_doubles()
        .crosses();
}

#[test]
fn an_agent_of_the_python_sdk_0_3_over_rest_that_cannot_stream_is_a_set_of_tools() {
    ForeignCall::new("py_0_3", &["--binding", "rest", "--no-streaming"], "py03_rest_agent")
        .with_doubles()
        .crosses();
}

#[test]
fn an_agent_of_the_python_sdk_0_2_is_a_set_of_tools() {
    ForeignCall::new("py_0_2", &[], "py02_agent").crosses();
}

#[test]
fn an_agent_of_the_python_sdk_0_2_that_cannot_stream_is_a_set_of_tools() {
    ForeignCall::new("py_0_2", &["--no-streaming"], "py02_agent").crosses();
}

#[test]
fn an_agent_of_a2a_0_1_is_a_set_of_tools() {
    // 0.1 has no auth-required.
    ForeignCall { login: "input-required", ..ForeignCall::new("plain_0_1", &[], "plain01_agent") }.crosses();
}

// === impl ForeignCall ===

impl ForeignCall {
    const fn new(peer: &'static str, args: &'static [&'static str], slug: &'static str) -> Self {
        Self { peer, args, slug, numbers: Numbers::Exact, login: "auth-required" }
    }

    const fn with_doubles(self) -> Self {
        Self { numbers: Numbers::Doubles, ..self }
    }

    fn can_stream(&self) -> bool {
        !self.args.contains(&"--no-streaming")
    }

    /// The whole examination, through `rialto mcp` and through `/mcp`.
    fn crosses(&self) {
        let agent = ForeignAgent::start(self.peer, self.args);
        let homes = [(); 2].map(|()| Rialto::fresh().with("RIALTO_CALLS__TIMEOUT_MS", WALL_CLOCK));
        let [alone, served] = &homes;
        assert_eq!(served.trust(&agent.url), self.slug);
        let server = served.serve(&["--allow-no-auth"]);
        let doors = [alone.stdio(&["--agent", &agent.url]), server.door()];
        let mut visits = doors.map(|door| AgentVisit {
            stranger: self,
            client: McpClient::start(Sdk::Python, McpEra::Auto, &door),
        });
        // The slow calls run beside everything else.
        for visit in &mut visits {
            visit.client.begin(SLOW, &visit.tool("slow"), &json!({ "seconds": SLOW_SECONDS }));
        }
        for visit in &mut visits {
            visit.every_skill_is_listed_once();
            visit.data_comes_back_as_it_went();
            visit.text_is_text();
            visit.a_stream_is_followed();
            visit.a_failure_is_an_error_with_the_agents_words();
            visit.files_are_content_blocks();
            visit.a_question_is_answered_in_the_same_task();
            visit.a_login_is_asked_for();
            visit.the_arguments_are_checked_where_there_is_a_schema();
        }
        for mut visit in visits {
            visit.what_took_too_long_is_fetched_later();
            visit.client.leave();
        }
    }
}

/// One client's visit to one agent.
struct AgentVisit<'a> {
    stranger: &'a ForeignCall,
    client: McpClient,
}

// === impl AgentVisit ===

impl AgentVisit<'_> {
    fn tool(&self, skill: &str) -> String {
        format!("{}.{skill}", self.stranger.slug)
    }

    #[track_caller]
    fn call(&mut self, skill: &str, arguments: &Value) -> CallOutcome {
        let tool = self.tool(skill);
        self.client.call(&tool, arguments)
    }

    fn every_skill_is_listed_once(&self) {
        let listed = self.client.greeted_with();
        let mut skills: Vec<&str> = listed
            .iter()
            .filter_map(|name| name.strip_prefix(self.stranger.slug)?.strip_prefix('.'))
            .collect();
        skills.sort_unstable();
        assert_eq!(skills, SKILLS);
    }

    fn data_comes_back_as_it_went(&mut self) {
        let mut data = json!({
            "text": "grüße, 世界 🦀 \"quoted\"\n\ttab",
            "nested": { "list": [1, [2, { "three": 3 }], null, true, []], "empty": {} },
            "float": 0.1,
            "negative": -7,
            "a.b/c~d": false,
        });
        if self.stranger.numbers == Numbers::Exact {
            // One more than a double can hold.
            data["big"] = json!(9_007_199_254_740_993_u64);
        }
        let echoed = self.call("echo", &data);
        let as_sent = match self.stranger.numbers {
            Numbers::Exact => *echoed.data() == data,
            Numbers::Doubles => with_doubles(echoed.data()) == with_doubles(&data),
        };
        assert!(as_sent, "{}", echoed.data());
        // A client that reads only text reads the same.
        let text: Value = serde_json::from_str(&echoed.text()).unwrap();
        assert_eq!(text, *echoed.data());
    }

    fn text_is_text(&mut self) {
        let said = self.call("say", &json!({ "name": "Ann ✓" }));
        assert_eq!(said.result()["content"], json!([{ "type": "text", "text": "hello Ann ✓" }]));
        assert_eq!(said.result()["structuredContent"], Value::Null);
        // The legacy alias is the same skill.
        let alias = format!("a2a_{}_say", self.stranger.slug);
        assert_eq!(self.client.call(&alias, &json!({ "name": "Bob" })).text(), "hello Bob");
        assert_eq!(self.call("reply", &json!({})).text(), "just a message");
    }

    fn a_stream_is_followed(&mut self) {
        let counted = self.call("count", &json!({ "steps": 4 }));
        assert_eq!(counted.text(), "1 2 3 4");
        if !self.stranger.can_stream() {
            return;
        }
        let told: Vec<&str> =
            counted.progress.iter().filter_map(|progress| progress["message"].as_str()).collect();
        for step in ["step 1/4", "step 2/4", "step 3/4"] {
            assert!(told.contains(&step), "{step} is not in {told:?}");
        }
        let steps: Vec<f64> =
            counted.progress.iter().map(|told| told["progress"].as_f64().unwrap()).collect();
        assert!(steps.is_sorted_by(|one, next| one < next), "{steps:?}");
    }

    fn a_failure_is_an_error_with_the_agents_words(&mut self) {
        let failed = self.call("fail", &json!({}));
        let error = failed.error(-32204, "RemoteA2ATaskFailedError");
        assert!(error["message"].as_str().unwrap().contains("it broke on purpose"), "{error}");
        assert_eq!(error["data"]["state"], "failed");
        assert!(error["data"]["taskId"].is_string(), "{error}");
    }

    fn files_are_content_blocks(&mut self) {
        let files = self.call("files", &json!({}));
        let [text, image, link, data] = files.result()["content"].as_array().unwrap().as_slice() else {
            panic!("not four blocks: {}", files.result());
        };
        assert_eq!(text["text"], "here are the files");
        assert_eq!((&image["type"], &image["mimeType"]), (&json!("image"), &json!("image/png")));
        assert!(image["data"].as_str().unwrap().starts_with("iVBORw0KGgo"), "{image}");
        assert_eq!(
            (&link["type"], &link["uri"]),
            (&json!("resource_link"), &json!("https://files.example.com/report.pdf"))
        );
        assert_eq!((&link["name"], &link["mimeType"]), (&json!("report.pdf"), &json!("application/pdf")));
        let data: Value = serde_json::from_str(data["text"].as_str().unwrap()).unwrap();
        let expected = json!({ "files": 2, "names": ["pixel.png", "report.pdf"] });
        assert_eq!(with_doubles(&data), with_doubles(&expected));
        assert_eq!(files.data()["artifacts"][0]["parts"].as_array().unwrap().len(), 4);
    }

    fn a_question_is_answered_in_the_same_task(&mut self) {
        let asked = self.call("ask", &json!({}));
        let waiting = asked.data();
        assert_eq!(
            (&waiting["state"], &waiting["question"]),
            (&json!("input-required"), &json!("which colour?"))
        );
        assert!(asked.text().contains("which colour?"));
        let task = waiting["task_id"].clone();
        assert!(asked.text().contains(task.as_str().unwrap()), "the text must say how to go on");
        let chosen = self.client.call("send_message", &json!({ "task_id": task, "message": "blue" }));
        assert_eq!((&chosen.data()["state"], &chosen.data()["task_id"]), (&json!("completed"), &task));
        assert_eq!(chosen.text(), "you chose blue");
        let again = self.client.call("send_message", &json!({ "task_id": task, "message": "red" }));
        again.error(-32206, "ConflictError");
    }

    fn a_login_is_asked_for(&mut self) {
        let asked = self.call("login", &json!({}));
        let waiting = asked.data();
        assert_eq!(waiting["state"], self.stranger.login);
        assert!(
            waiting["question"].as_str().unwrap().contains("https://login.example.com/start"),
            "{waiting}"
        );
        let go_on = json!({ "task_id": waiting["task_id"], "agent": self.stranger.slug, "message": "done" });
        let signed_in = self.client.call("send_message", &go_on);
        assert_eq!(
            (signed_in.text().as_str(), &signed_in.data()["state"]),
            ("signed in", &json!("completed"))
        );
    }

    fn the_arguments_are_checked_where_there_is_a_schema(&mut self) {
        let listed = self.client.greeting["tools"].as_array().unwrap();
        let say = listed.iter().find(|tool| tool["name"] == self.tool("say")).unwrap();
        if say["inputSchema"]["properties"]["name"].is_null() {
            return;
        }
        let wrong = self.call("say", &json!({ "name": 7 }));
        assert_eq!(wrong.error(-32602, "InvalidArgumentsError")["data"]["path"], "/name");
    }

    fn what_took_too_long_is_fetched_later(&mut self) {
        let late = self.client.finish(SLOW);
        let task = late.error(-32201, "RemoteA2ATimeoutError")["data"]["taskId"].clone();
        let done = until("the slow task is done", || {
            let seen = self.client.call("get_task", &json!({ "task_id": task }));
            (seen.data()["state"] == "completed").then_some(seen)
        });
        assert_eq!((done.text().as_str(), &done.data()["task_id"]), ("done at last", &task));
    }
}

/// The same value with every number as the double that it is nearest to.
pub(super) fn with_doubles(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(with_doubles).collect(),
        // Members may change their order.
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.iter().map(|(name, value)| (name.clone(), with_doubles(value))).collect();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(members.into_iter().collect())
        }
        other => other.clone(),
    }
}
