//! Gemini CLI as a coding agent on this machine, driven over A2A; its model is a script of ours.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{
    foreign_agent::ForeignAgent, http, interop, rialto::Rialto, server::ServerProcess, until,
};

/// A server with Gemini CLI behind it.
struct CodingFixture {
    rialto: Rialto,
    server: ServerProcess,
    _model: ForeignAgent,
}

impl CodingFixture {
    fn new() -> Self {
        let model = ForeignAgent::start("acp_model", &[]);
        let path = std::env::var_os("PATH").unwrap_or_default().to_string_lossy().into_owned();
        let home = std::env::var_os("RIALTO_INTEROP_HOME").map(|home| home.to_string_lossy().into_owned());
        let cache = std::env::var_os("HOME").unwrap_or_default().to_string_lossy().into_owned();
        let home = home.unwrap_or_else(|| format!("{cache}/.cache/rialto/interop"));
        let rialto = Rialto::fresh().with("PATH", &path).with("GEMINI_API_KEY", "none-needed");
        let work = rialto.folder().join("work");
        let settings = rialto.folder().join("gemini/.gemini");
        fs::create_dir_all(&work).unwrap();
        fs::create_dir_all(&settings).unwrap();
        let chosen = json!({
            "security": { "auth": { "selectedType": "gemini-api-key" } },
            "privacy": { "usageStatisticsEnabled": false },
            "general": { "enableAutoUpdate": false, "enableAutoUpdateNotification": false },
        });
        fs::write(settings.join("settings.json"), chosen.to_string()).unwrap();
        let (run, url) = (interop(), &model.url);
        let own = rialto.folder().join("gemini");
        let config = format!(
            "[[agents.local]]\nname = \"gemini\"\ncommand = {run:?}\n\
             args = [\"gemini_acp\", \"--skip-trust\", \"-m\", \"gemini-2.5-flash\"]\ncwd = {work:?}\n\
             env = {{ HOME = {own:?}, RIALTO_INTEROP_HOME = {home:?}, GOOGLE_GEMINI_BASE_URL = {url:?}, \
             GEMINI_API_KEY = \"${{GEMINI_API_KEY}}\" }}\n\n[a2a]\ndefault_skill = \"gemini.prompt\"\n"
        );
        fs::write(rialto.folder().join("rialto.toml"), config).unwrap();
        let server = rialto.serve(&["--allow-no-auth"]);
        Self { rialto, server, _model: model }
    }

    fn a2a(&self, method: &str, params: &Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let answer = http::post(&format!("{}/a2a", self.server.url), &[], &body.to_string());
        let answer: Value = serde_json::from_str(&answer.body).unwrap();
        assert!(answer.get("error").is_none(), "{answer}\n{}", self.server.log());
        answer["result"].clone()
    }

    fn say(&self, place: &Value, parts: &Value, blocking: bool) -> Value {
        let id = rialto_model::ids::fresh();
        let mut message = json!({ "messageId": id, "role": "user", "kind": "message", "parts": parts });
        message.as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
        self.a2a("message/send", &json!({ "message": message, "configuration": { "blocking": blocking } }))
    }

    fn over(&self, task: &Value) -> Value {
        until("the task is over", || {
            let task = self.a2a("tasks/get", &json!({ "id": task["id"] }));
            let state = task["status"]["state"].as_str().unwrap().to_owned();
            (!["working", "submitted"].contains(&state.as_str())).then_some(task)
        })
    }
}

fn text(text: &str) -> Value {
    json!([{ "kind": "text", "text": text }])
}

fn answer(task: &Value) -> &str {
    task["artifacts"][0]["parts"][0]["text"].as_str().unwrap_or_else(|| panic!("{task}"))
}

#[test]
fn gemini_cli_keeps_a_session_per_context_and_sees_attachments() {
    let house = CodingFixture::new();
    let context = json!({ "contextId": "ctx-1" });
    assert_eq!(answer(&house.say(&context, &text("please count"), true)), "counted 1");
    assert_eq!(answer(&house.say(&context, &text("please count"), true)), "counted 2");
    let waits = house.say(&context, &text("please wait"), false);
    let beside = house.say(&context, &text("please count"), true);
    assert_eq!(answer(&beside), "counted 1", "a concurrent task has a session of its own");
    assert_eq!(answer(&house.over(&waits)), "waited");
    let file =
        json!({ "name": "notes.txt", "mimeType": "text/plain", "bytes": "aGVsbG8gZnJvbSB0aGUgZmlsZQ==" });
    let parts = json!([{ "kind": "text", "text": "please look" }, { "kind": "file", "file": file }]);
    assert_eq!(answer(&house.say(&json!({}), &parts, true)), "seen");
}

#[test]
fn gemini_cli_waits_for_approval_of_a_command() {
    let house = CodingFixture::new();
    let made = house.rialto.folder().join("work/made.txt");
    for (word, is_made) in [("deny", false), ("approve", true)] {
        let asked = house.say(&json!({}), &text("please touch"), true);
        assert_eq!(asked["status"]["state"], "input-required", "{asked}");
        let question = &asked["status"]["message"]["parts"][1]["data"];
        assert!(question.to_string().contains("touch made.txt"), "{question}");
        assert!(!made.exists());
        house.say(&json!({ "taskId": asked["id"] }), &text(word), true);
        let over = house.over(&asked);
        assert!(["completed", "canceled"].contains(&over["status"]["state"].as_str().unwrap()), "{over}");
        assert_eq!(made.exists(), is_made, "{over}");
    }
}
