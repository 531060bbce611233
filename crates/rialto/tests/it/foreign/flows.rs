//! Workflows and pipelines among strangers: the printed examples with agents of the official SDKs, called by their clients.

use serde_json::{Value, json};

use crate::harness::{
    a2a_client::{A2aClient, KINDS},
    client::{McpClient, McpEra, Sdk},
    foreign_agent::ForeignAgent,
    rialto::Rialto,
    root,
};

fn example(name: &str) -> String {
    root().join("examples/workflows").join(name).display().to_string()
}

fn text_of(task: &Value) -> &str {
    task["artifacts"][0]["parts"][0]["content"]["text"].as_str().unwrap_or_else(|| panic!("{task:#}"))
}

#[test]
fn the_two_printed_workflows_run_with_agents_of_the_sdk() {
    let rialto = Rialto::fresh();
    let reviewer =
        ForeignAgent::start("worker", &["--name", "Code Reviewer", "--skill", "review", "--tags", "code"]);
    let tester =
        ForeignAgent::start("worker", &["--name", "Tester", "--skill", "test", "--tags", "qa,typescript"]);
    rialto.trust(&reviewer.url);
    rialto.trust(&tester.url);
    let input = json!({ "agent": "code_reviewer", "prUrl": "https://example.com/pr/7" }).to_string();
    let review = rialto.json(&["workflow", "run", &example("code-review.yaml"), &input, "--json"]);
    assert_eq!(text_of(&review), "done by Code Reviewer");
    let dispatched = rialto.json(&["workflow", "run", &example("dispatch-qa.yaml"), "--json"]);
    assert_eq!(text_of(&dispatched), "done by Tester");
}

const FUNCTIONS: &str = r#"
[[functions]]
name = "summarize"
command = ["sh", "-c", "cat >/dev/null; echo '{\"summary\": \"in short\", \"words\": 2}'"]
[[functions]]
name = "translate"
command = ["cat"]
"#;

#[test]
fn the_printed_pipeline_is_a_skill_for_clients_of_every_sdk() {
    let rialto = Rialto::fresh().with("PATH", "/usr/local/bin:/usr/bin:/bin");
    std::fs::write(rialto.folder().join("rialto.toml"), FUNCTIONS).unwrap();
    rialto.cli(&["pipeline", "add", &example("summarize-and-translate.yaml")]).ok();
    let server = rialto.serve(&[]);
    let (args, made) =
        (json!({ "text": "long", "language": "fr" }), json!({ "text": "in short", "to": "fr" }));
    let (skill, tool) = ("pipeline:summarize-and-translate", "pipeline_summarize-and-translate");
    for kind in KINDS {
        let mut client = A2aClient::start(*kind, &server.url, server.token.as_deref()).unwrap();
        let skills = client.card["skills"].as_array().unwrap();
        assert!(skills.contains(&skill.into()), "{}: {skills:?}", kind.name);
        let task = client.call("send", json!({ "skill": skill, "data": args })).unwrap();
        assert!(task.to_string().contains("in short"), "{}: {task:#}", kind.name);
    }
    let door = server.door();
    for sdk in [Sdk::Python, Sdk::TypeScript] {
        let mut client = McpClient::start(sdk, McpEra::Auto, &door);
        assert!(client.list().iter().any(|name| name == tool), "{sdk:?}");
        assert_eq!(client.call(tool, &args).data(), &made, "{sdk:?}");
        client.leave();
    }
}

#[test]
fn a_question_of_an_sdk_agent_holds_the_run_and_its_progress_is_heard_live() {
    let agent = ForeignAgent::start("py_1_3", &[]);
    let rialto = Rialto::fresh();
    rialto.trust(&agent.url);
    let server = rialto.serve(&[]);
    let nodes = json!([
        { "id": "say", "type": "tool", "tool": "py13_agent.say", "args": { "name": "Ann" } },
        { "id": "ask", "type": "tool", "tool": "py13_agent.ask" },
        { "id": "both", "type": "set", "value": "{{ nodes.say.output }} / {{ nodes.ask.output }}" },
    ]);
    let door = server.door();
    let mut client = McpClient::answering(
        Sdk::Python,
        McpEra::Legacy,
        &door,
        &json!({ "action": "accept", "content": { "answer": "red" } }),
    );
    let done = client.call("execute_dag", &json!({ "nodes": nodes }));
    assert!(done.text().contains("you chose red"), "{done:?}");
    let told: Vec<String> = done.progress.iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|note| note.contains("say: completed")), "{told:?}");
    client.leave();
}
