//! Workflows and pipelines on every endpoint: the command line, MCP, A2A, plain HTTP.

use serde_json::{Value, json};

use crate::harness::{agent::SampleAgent, http, rialto::Rialto, server::ServerProcess, until};

const PIPELINE: &str = r#"
name: summarize-and-translate
description: Summarises a text and translates the summary.
status: active
input_schema:
  type: object
  properties: { text: { type: string }, language: { type: string } }
  required: [text, language]
steps:
  - { id: summarize, tool: desk.echo, input_mapping: { summary: $input.text } }
  - { id: translate, tool: desk.echo, input_mapping: { text: $steps.summarize.summary, to: $input.language } }
"#;

const ASKING: &str = r#"
name: choose
status: active
triggers: [skill, { type: http, path: in/choose }]
nodes:
  ask: { type: tool, tool: desk.ask }
  done: { type: set, value: { chose: "{{ nodes.ask.output }}", by: "{{ $input.who }}" } }
"#;

struct WorkflowFixture {
    rialto: Rialto,
    _agent: SampleAgent,
}

fn stage() -> WorkflowFixture {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    WorkflowFixture { rialto, _agent: agent }
}

impl WorkflowFixture {
    fn write(&self, name: &str, text: &str) -> String {
        let file = self.rialto.folder().join(name);
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    }

    fn add(&self, name: &str, text: &str) -> Value {
        self.rialto.json(&["workflow", "add", &self.write(name, text), "--json"])
    }
}

#[test]
fn a_workflow_is_kept_run_and_shown_on_the_command_line() {
    let stage = stage();
    let rialto = &stage.rialto;
    let text = "nodes: { one: { type: tool, tool: desk.echo, args: { n: \"{{ $input.n }}\" } } }\n";
    let added = stage.add("twice.yaml", text);
    assert_eq!(
        (&added["name"], &added["status"], &added["version"]),
        (&json!("twice"), &json!("draft"), &json!(1))
    );
    let refused = rialto.cli(&["workflow", "run", "twice", "{\"n\":1}"]);
    assert!(
        refused.status != 0 && refused.err.contains("rialto workflow status twice active"),
        "{refused:?}"
    );
    let tried = rialto.cli(&["workflow", "run", "twice", "{\"n\":1.50}", "--draft"]).ok();
    assert!(tried.out.contains("1.50"), "{tried:?}");
    assert!(tried.err.contains("one: completed (1 of 1)"), "{tried:?}");
    rialto.cli(&["workflow", "status", "twice", "active"]).ok();
    let ran = rialto.json(&["workflow", "run", "twice", "{\"n\":2}", "--json"]);
    assert_eq!(ran["artifacts"][0]["parts"][0]["content"]["data"], json!({ "n": 2 }), "{ran}");
    let run = rialto.json(&["workflow", "runs", ran["taskId"].as_str().unwrap(), "--json"]);
    assert_eq!((&run["run"]["state"], &run["steps"][0]["state"]), (&json!("completed"), &json!("completed")));
    let runs = rialto.json(&["workflow", "runs", "--name", "twice", "--json"]);
    assert_eq!(runs.as_array().unwrap().len(), 2);
    assert!(rialto.cli(&["workflow", "show", "twice"]).ok().out.contains("desk.echo"));
    rialto.cli(&["workflow", "remove", "twice"]).ok();
    assert_eq!(rialto.json(&["workflow", "list", "--json"]), json!([]));
}

#[test]
fn a_file_that_is_wrong_is_refused_with_its_place() {
    let stage = stage();
    let file = stage.write("bad.yaml", "nodes:\n  a: { type: tool, tool: x, depends_on: [b] }\n");
    let said = stage.rialto.cli(&["workflow", "add", &file]);
    assert!(said.status != 0 && said.err.contains("bad.yaml:2:"), "{said:?}");
}

#[test]
fn a_run_that_asks_goes_on_with_an_answer() {
    let stage = stage();
    stage.add("choose.yaml", ASKING);
    let waits = stage.rialto.json(&["workflow", "run", "choose", "{\"who\":\"ann\"}", "--json"]);
    assert_eq!(waits["state"], "input-required", "{waits}");
    let run = waits["taskId"].as_str().unwrap();
    let done = stage.rialto.json(&["workflow", "resume", run, "red", "--json"]);
    let expected = json!({ "chose": "you chose red", "by": "ann" });
    assert_eq!(done["artifacts"][0]["parts"][0]["content"]["data"], expected, "{done}");
    let canceled = stage.rialto.json(&["workflow", "run", "choose", "{}", "--json"]);
    let canceled = stage.rialto.json(&["workflow", "cancel", canceled["taskId"].as_str().unwrap(), "--json"]);
    assert_eq!(canceled["state"], "canceled");
}

#[test]
fn an_active_pipeline_is_a_tool_and_a_skill_and_an_address() {
    let stage = stage();
    let rialto = &stage.rialto;
    let file = stage.write("pipeline.yaml", PIPELINE);
    let added = rialto.json(&["pipeline", "add", &file, "--json"]);
    assert_eq!(
        (&added["kind"], &added["skill"]),
        (&json!("pipeline"), &json!("pipeline:summarize-and-translate"))
    );
    let server = rialto.serve(&["--allow-no-auth"]);
    let (args, made) = (json!({ "text": "long", "language": "fr" }), json!({ "text": "long", "to": "fr" }));
    let tool = "pipeline_summarize-and-translate";
    assert!(server.list().iter().any(|name| name == tool), "{:?}", server.list());
    assert_eq!(server.call(tool, &args).data(), &made);
    assert_eq!(
        server
            .call("orchestrate_workflow", &json!({ "workflow": "summarize-and-translate", "input": args }))
            .data(),
        &made
    );
    let plain =
        http::post(&format!("{}/call/pipeline:summarize-and-translate", server.url), &[], &args.to_string());
    assert_eq!(serde_json::from_str::<Value>(&plain.body).unwrap(), made, "{plain:?}");
    let card = http::get(&format!("{}/.well-known/agent-card.json", server.url)).unwrap();
    assert!(card.body.contains("\"pipeline:summarize-and-translate\""), "{card:?}");
    let message = json!({ "messageId": "m-1", "role": "ROLE_USER", "parts": [{ "data": args }] });
    let params = json!({ "message": message, "metadata": { "skillId": "pipeline:summarize-and-translate" } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params }).to_string();
    let answer = http::post(&format!("{}/a2a", server.url), &[], &body);
    let answer: Value = serde_json::from_str(&answer.body).unwrap();
    let task = &answer["result"]["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{answer}");
    assert_eq!(task["artifacts"][0]["parts"][0]["data"], made, "{answer}");
    rialto.cli(&["pipeline", "status", "summarize-and-translate", "archived"]).ok();
    until("it is a tool no more", || (!server.list().iter().any(|name| name == tool)).then_some(()));
    let refused =
        server.call("orchestrate_workflow", &json!({ "workflow": "summarize-and-translate", "input": args }));
    assert!(refused.complaint().contains("is archived"), "{refused:?}");
}

#[test]
fn mcp_clients_run_graphs_of_their_own_and_go_on_with_questions() {
    let stage = stage();
    let server = stage.rialto.serve(&["--allow-no-auth"]);
    let nodes = json!([
        { "id": "a", "type": "tool", "tool": "desk.echo", "args": { "n": "{{ $input.n }}" } },
        { "id": "b", "type": "tool", "tool": "desk.greet", "args": { "name": "Ann" } },
        { "id": "both", "depends_on": ["a", "b"], "type": "set", "value": { "n": "{{ nodes.a.n }}", "said": "{{ nodes.b.output }}" } },
    ]);
    let ran = server.call("execute_dag", &json!({ "nodes": nodes, "input": { "n": 7 } }));
    assert_eq!(ran.data(), &json!({ "n": 7, "said": "hello Ann" }));
    let wrong = server.call(
        "execute_dag",
        &json!({ "nodes": [{ "id": "a", "type": "tool", "tool": "x", "depends_on": ["a"] }] }),
    );
    assert!(wrong.answer.is_err() || wrong.text().contains('a'), "{wrong:?}");
    let asks =
        server.call("execute_dag", &json!({ "nodes": [{ "id": "q", "type": "tool", "tool": "desk.ask" }] }));
    let told = format!("{:?}", asks.answer);
    assert!(told.contains("which colour?"), "{told}");
    let run = stage.rialto.json(&["workflow", "runs", "--state", "waiting", "--json"]);
    let run = run[0]["id"].as_str().unwrap().to_owned();
    let done = server.call("execute_dag", &json!({ "task_id": run, "message": "blue" }));
    assert_eq!(done.text(), "you chose blue");
}

#[test]
fn workflows_are_managed_and_run_over_plain_http() {
    let rialto = Rialto::fresh().with("RIALTO_TOKEN", "owners-token-of-at-least-32-characters");
    let agent = SampleAgent::named("Desk");
    rialto.trust(&agent.url);
    // Whoever may read the audit log could see and answer another's run.
    rialto.cli(&["policy", "remove", "allow-admin-all"]).ok();
    rialto.cli(&["policy", "add", "allow-admin", "admin_agents", "--caller", "owner"]).ok();
    let caller = rialto.json(&["tokens", "create", "ann", "--json"])["token"].as_str().unwrap().to_owned();
    let server = rialto.serve(&[]);
    let post = |path: &str, token: &str, body: &str| {
        http::post(&format!("{}{path}", server.url), &[("Authorization", &format!("Bearer {token}"))], body)
    };
    assert_eq!(post("/api/v1/workflows", &caller, ASKING).status, 403, "it lacks the scope");
    let added = post("/api/v1/workflows", "owners-token-of-at-least-32-characters", ASKING);
    assert_eq!(added.status, 200, "{added:?}");
    let wrong = post("/api/v1/workflows", "owners-token-of-at-least-32-characters", "nodes: 7");
    assert_eq!(wrong.status, 400, "{wrong:?}");
    let ran = post("/api/v1/workflows/choose/runs", &caller, r#"{"who": "ann"}"#);
    let ran: Value = serde_json::from_str(&ran.body).unwrap();
    assert_eq!(ran["state"], "input-required", "{ran}");
    let run = ran["taskId"].as_str().unwrap().to_owned();
    assert_eq!(
        post(
            &format!("/api/v1/runs/{run}"),
            "owners-token-of-at-least-32-characters",
            r#"{"message":"red"}"#
        )
        .status,
        404,
        "another's run"
    );
    let done = post(&format!("/api/v1/runs/{run}"), &caller, r#"{"message":"red"}"#);
    assert!(done.body.contains("you chose red"), "{done:?}");
    assert_eq!(http::post(&format!("{}/hooks/in/choose", server.url), &[], "{}").status, 401);
    let hooked = post("/hooks/in/choose", &caller, r#"{"who": "hook"}"#);
    assert_eq!(hooked.status, 202, "{hooked:?}");
    let id = serde_json::from_str::<Value>(&hooked.body).unwrap()["runId"].as_str().unwrap().to_owned();
    let look = || {
        let headers = [("Authorization", format!("Bearer {caller}"))];
        let headers = [(headers[0].0, headers[0].1.as_str())];
        let shown = http::get_with(&format!("{}/api/v1/runs/{id}", server.url), None, &headers);
        let shown: Value = serde_json::from_str(&shown.body).ok()?;
        (shown["run"]["state"] == "waiting").then_some(shown)
    };
    assert_eq!(until("the hook's run waits", look)["run"]["input"], json!({ "who": "hook" }));
    assert_eq!(post("/hooks/no/such", &caller, "{}").status, 404);
}

#[test]
fn what_the_configuration_names_is_there_at_the_start() {
    let stage = stage();
    let folder = stage.rialto.folder().join("flows");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("p.yaml"), PIPELINE).unwrap();
    let config = stage.rialto.folder().join("rialto.toml");
    std::fs::write(&config, "[flows]\nfolder = \"flows\"\ntools = true\n").unwrap();
    let server = stage.rialto.serve(&["--allow-no-auth"]);
    let listed = server.list();
    for name in ["pipeline_summarize-and-translate", "orchestrate_workflow", "execute_dag"] {
        assert!(listed.iter().any(|known| known == name), "{listed:?}");
    }
    let refused = stage.rialto.cli(&["pipeline", "remove", "summarize-and-translate"]);
    assert!(refused.status != 0 && refused.err.contains("comes from the configuration"), "{refused:?}");
    drop(server);
    std::fs::write(&config, "").unwrap();
    let server: ServerProcess = stage.rialto.serve(&["--allow-no-auth"]);
    assert!(!server.list().iter().any(|name| name.starts_with("pipeline_")));
    std::fs::write(folder.join("p.yaml"), "steps: 7\n").unwrap();
    std::fs::write(&config, "[flows]\nfolder = \"flows\"\n").unwrap();
    let refused = stage.rialto.cli(&["workflow", "list"]);
    assert!(refused.status != 0 && refused.err.contains("p.yaml"), "{refused:?}");
}

#[test]
fn a_workflow_that_is_no_skill_goes_on_once_its_run_is_approved() {
    let stage = stage();
    let rialto = &stage.rialto;
    let text =
        "status: active\nnodes: { one: { type: tool, tool: desk.echo, args: { n: \"{{ $input.n }}\" } } }\n";
    stage.add("twice.yaml", text);
    rialto.cli(&["policy", "add", "require-approval", "flows", "--by", "the ops team"]).ok();
    let server = rialto.serve(&["--allow-no-auth"]);
    let ran = http::post(&format!("{}/api/v1/workflows/twice/runs", server.url), &[], r#"{"n": 7}"#);
    let ran: Value = serde_json::from_str(&ran.body).unwrap();
    let task = ran["taskId"].as_str().unwrap_or_else(|| panic!("{ran}")).to_owned();
    let waiting = rialto.json(&["approvals", "list", "--json"]);
    assert_eq!(waiting[0]["task"], json!(task), "{waiting}");
    rialto.cli(&["approvals", "approve", waiting[0]["id"].as_str().unwrap()]).ok();
    let state = || rialto.json(&["tasks", "show", &task, "--json"])["state"].clone();
    until("the run is over", || (state() == "completed").then_some(()));
    assert!(rialto.cli(&["tasks", "show", &task, "--json"]).ok().out.contains("\"n\": 7"));
}
