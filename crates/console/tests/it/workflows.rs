//! Pages of workflows and runs.

use futures::{StreamExt, stream};
use rialto_model::{
    agent::AgentTrust,
    event::{Event, EventAside, QuestionKind},
    flow::FlowStatus,
    ids::Scope,
    message::{Message, Part, Role},
};
use rialto_testkit::{
    agents,
    peer::{ScriptedPeer, accepted, finished_with},
};
use rialto_workflow::run::NewDefinition;

use crate::fixture::{ANN, BOB, Fixture, TestResponse};

const DEPLOY: &str = r#"
name: deploy
description: Looks, asks and <b>deploys</b>
input_schema: { type: object, required: [what], properties: { what: { type: string, title: What } } }
triggers: [{ type: http, path: in/deploy }, { type: cron, schedule: "0 9 * * MON" }]
nodes:
  look: { type: tool, tool: desk.ask, args: { what: "{{ $input.what }}" } }
  may: { type: approval, question: "Deploy {{ $input.what }}?", depends_on: [look] }
  deploy: { type: set, value: { deployed: "{{ $input.what }}" }, depends_on: [may] }
"#;
const ASKING: &str = "name: choose\nnodes: { ask: { type: tool, tool: desk.ask }, end: { type: set, value: chosen, depends_on: [ask] } }\n";

async fn fixture(peer: std::sync::Arc<ScriptedPeer>) -> Fixture {
    let fixture = Fixture::new(peer).await;
    fixture
        .register(
            "https://desk.example.com",
            agents::card("Desk", vec![agents::skill("ask")]),
            AgentTrust::Trusted,
        )
        .await;
    fixture.keep_approvals();
    fixture
}

async fn add(fixture: &Fixture, text: &str, status: FlowStatus) {
    let given = NewDefinition {
        scope: Scope::default(),
        text: text.to_owned(),
        name: "unnamed".to_owned(),
        kind: None,
        by: "ann".into(),
        token: None,
        status: Some(status),
        configured: false,
    };
    fixture.flows.definitions().add(&fixture.engine, given).await.unwrap();
}

/// Runs a workflow from its form. Returns the path of the run.
async fn run(fixture: &Fixture, token: &str, name: &str, form: &str) -> String {
    let begun = fixture.submit(token, &format!("/factory/workflows/{name}/run"), form).await;
    assert_eq!(begun.status, 303, "{begun:?}");
    begun.header("location").split('?').next().unwrap().to_owned()
}

/// SVG of a node.
fn node<'a>(page: &'a TestResponse, id: &str) -> &'a str {
    let (_, rest) =
        page.body.split_once(&format!("data-node=\"{id}\"")).unwrap_or_else(|| panic!("{page:?}"));
    rest.split("data-node").next().unwrap().split("</svg>").next().unwrap()
}

#[tokio::test]
async fn a_workflow_has_a_row_a_graph_and_a_form_from_its_schema() {
    let fixture = fixture(ScriptedPeer::telling(finished_with(vec![Part::text("seen")]))).await;
    assert!(fixture.page("/factory/workflows").await.body.contains("No workflows yet"));
    add(&fixture, DEPLOY, FlowStatus::Active).await;
    let list = fixture.page("/factory/workflows").await.body;
    for shown in ["deploy", "workflow", "active", "POST /hooks/in/deploy", "0 9 * * MON", "&lt;b&gt;deploys"]
    {
        assert!(list.contains(shown), "{shown}: {list}");
    }
    let page = fixture.page("/factory/workflows/deploy").await;
    for shown in ["<svg ", "name=\"arg.what\"", "What", "Definition, version 1", "No runs yet"] {
        assert!(page.body.contains(shown), "{shown}: {page:?}");
    }
    assert!(!page.body.contains("<b>deploys") && !page.body.contains(" style="), "{page:?}");
    let refused = fixture.submit(ANN, "/factory/workflows/deploy/run", "whole=%7B").await;
    assert!(refused.status == 422 && refused.body.contains("not JSON"), "{refused:?}");
    assert_eq!(fixture.page("/factory/workflows/nothing").await.status, 404);
    assert_eq!(fixture.page("/factory/runs/nothing").await.status, 404);
}

#[tokio::test]
async fn the_graph_shows_the_state_of_each_node_and_a_run_resumes_when_approved() {
    let fixture = fixture(ScriptedPeer::telling(finished_with(vec![Part::text("seen <i>")]))).await;
    add(&fixture, DEPLOY, FlowStatus::Active).await;
    let at = run(&fixture, ANN, "deploy", "arg.what=shop").await;
    // The question is shown once its task takes an answer, a moment after the node is held.
    let page = fixture.wait_for(&at, "Deploy shop?").await;
    assert!(node(&page, "look").contains("completed") && node(&page, "may").contains("held"), "{page:?}");
    assert!(!node(&page, "deploy").contains("completed"));
    for shown in ["id=\"node-look\"", "seen &lt;i&gt;", "Task of this step", "Deploy shop?", "data-live"] {
        assert!(page.body.contains(shown), "{shown}: {page:?}");
    }
    assert!(!page.body.contains(" data-over") && !page.body.contains("<i>"));
    assert_eq!(fixture.submit(ANN, &page.approve_path(), "").await.status, 303);
    let over = fixture.wait_for(&at, " data-over").await;
    assert!(node(&over, "deploy").contains("completed"), "{over:?}");
    assert!(over.body.contains("&quot;deployed&quot;: &quot;shop&quot;"), "{over:?}");
    let list = fixture.page("/factory/workflows").await.body;
    assert!(list.contains(&at) && list.contains("completed"), "{list}");
    assert!(fixture.page("/factory/workflows/deploy").await.body.contains(&at));
    let task = at.replace("/runs/", "/tasks/");
    assert!(fixture.page(&task).await.body.contains("View as run"));
}

#[tokio::test]
async fn a_question_of_a_step_is_answered_and_another_run_is_canceled() {
    let question = Message::new("m", Role::Agent, vec![Part::text("which <b>colour?")]);
    let asks = vec![
        accepted("t-1", "c-1"),
        Event::Asked { ask: QuestionKind::Input, message: Some(question), aside: EventAside::default() },
    ];
    let peer = ScriptedPeer::with(move |call| {
        let done = || finished_with(vec![Part::text("red")]);
        stream::iter(if call.continues.task_id.is_some() { done() } else { asks.clone() }).boxed()
    });
    let fixture = fixture(peer).await;
    add(&fixture, ASKING, FlowStatus::Draft).await;
    assert!(fixture.page("/factory/workflows/choose").await.body.contains("This is a draft"));
    let at = run(&fixture, ANN, "choose", "").await;
    let page = fixture.wait_for(&at, "Your answer").await;
    assert!(
        page.body.contains("which &lt;b&gt;colour?") && page.body.contains("name=\"step\" value=\"ask\"")
    );
    let said = fixture.submit(ANN, &format!("{at}/messages"), "step=ask&text=red").await;
    assert_eq!((said.status, said.header("location")), (303, &*format!("{at}?done=said")));
    let over = fixture.wait_for(&at, " data-over").await;
    assert!(over.body.contains("chosen") && !over.body.contains("Your answer"), "{over:?}");
    let second = run(&fixture, ANN, "choose", "").await;
    fixture.wait_for(&second, "Your answer").await;
    assert!(fixture.page(&format!("{second}/cancel")).await.body.contains("Cancel this run?"));
    assert_eq!(fixture.submit(ANN, &format!("{second}/cancel"), "").await.status, 303);
    let off = fixture.wait_for(&second, " data-over").await;
    assert!(node(&off, "ask").contains("canceled"), "{off:?}");
}

#[tokio::test]
async fn earlier_versions_are_shown_and_runs_are_visible_to_their_caller() {
    let fixture = fixture(ScriptedPeer::telling(finished_with(vec![Part::text("seen")]))).await;
    add(&fixture, DEPLOY, FlowStatus::Active).await;
    add(&fixture, &DEPLOY.replace("look:", "see:").replace("[look]", "[see]"), FlowStatus::Active).await;
    let now = fixture.page("/factory/workflows/deploy").await;
    assert!(now.body.contains("data-node=\"see\"") && now.body.contains("?version=1"), "{now:?}");
    let before = fixture.page("/factory/workflows/deploy?version=1").await;
    assert!(before.body.contains("data-node=\"look\"") && before.body.contains("version 1"), "{before:?}");
    assert_eq!(fixture.page("/factory/workflows/deploy?version=9").await.status, 404);
    let at = run(&fixture, ANN, "deploy", "arg.what=shop").await;
    fixture.wait_for(&at, "held").await;
    let look = async |path: &str| {
        let bearer = format!("Bearer {BOB}");
        fixture.send("GET", path, &[("accept", "text/html"), ("authorization", &bearer)], "").await
    };
    assert_eq!(look(&at).await.status, 404);
    assert!(!look("/factory/workflows/deploy").await.body.contains(&at));
    let own = run(&fixture, BOB, "deploy", "arg.what=shed").await;
    assert_eq!(look(&own).await.status, 200);
    assert!(
        fixture.wait_for(&own, "held").await.body.contains("/approve"),
        "ann may read the trail and decide"
    );
}

#[tokio::test]
async fn a_run_that_waits_for_approval_is_shown_as_a_task() {
    let asks = r#"@id("ask-ops") @approval("the ops team")
        forbid (principal, action == Action::"a2a_invoke", resource) unless { context.approved };"#;
    let fixture = Fixture::with_policies(ScriptedPeer::echo(), asks).await;
    fixture.keep_approvals();
    add(
        &fixture,
        "name: simple\ntriggers: [skill]\nnodes: { one: { type: set, value: well done } }\n",
        FlowStatus::Active,
    )
    .await;
    let task = run(&fixture, BOB, "simple", "").await;
    assert!(task.starts_with("/factory/tasks/"), "{task}");
    let page = fixture.wait_for(&task, "/approve\"").await;
    assert_eq!(fixture.submit(ANN, &page.approve_path(), "").await.status, 303);
    let over = fixture.wait_for(&task, " data-over").await;
    let shown = fixture.page(&task.replace("/tasks/", "/runs/")).await;
    assert!(shown.body.contains("well done"), "{shown:?} {over:?}");
}

/// Text in the encoding of a form.
fn sent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[tokio::test]
async fn a_definition_is_checked_while_edited_and_saved_when_valid() {
    let fixture = fixture(ScriptedPeer::echo()).await;
    assert!(fixture.page("/factory/workflows").await.body.contains("Create a workflow"));
    let new = fixture.page("/factory/new-workflow").await;
    assert!(new.body.contains("Valid: ") && new.body.contains("data-node=\"may\""), "{new:?}");
    let wrong =
        sent("name: mine\nnodes:\n  one: { tool: <b>, depends_on: [two] }\n  bad: { type: nothing }\n");
    let checked = fixture.submit(ANN, "/factory/check-workflow", &format!("text={wrong}")).await;
    assert_eq!(checked.status, 200, "{checked:?}");
    for shown in ["data-goto=\"3:", "line 3, column", "line 4, column", "&quot;two&quot;"] {
        assert!(checked.body.contains(shown), "{shown}: {checked:?}");
    }
    assert!(
        !checked.body.contains("<svg xmlns") && fixture.flows.definitions().all().await.unwrap().is_empty()
    );
    let refused = fixture.submit(ANN, "/factory/workflows", &format!("text={wrong}")).await;
    assert!(refused.status == 422 && refused.body.contains("was not saved"), "{refused:?}");
    assert!(refused.body.contains("name: mine"), "what was written is not lost");
    let form = format!("text={}&name=other&status=active", sent("nodes: { a: { type: set, value: 1 } }"));
    let kept = fixture.submit(ANN, "/factory/workflows", &form).await;
    assert_eq!((kept.status, kept.header("location")), (303, "/factory/workflows/other?done=kept"));
    assert!(fixture.page("/factory/workflows/other").await.body.contains("state good\">active"));
}

#[tokio::test]
async fn a_workflow_is_edited_archived_and_removed_only_with_permission() {
    let fixture = fixture(ScriptedPeer::echo()).await;
    add(&fixture, ASKING, FlowStatus::Active).await;
    let editor = fixture.page("/factory/workflows/choose/edit").await;
    assert!(editor.body.contains("name=\"version\" value=\"1\"") && editor.body.contains("name: choose"));
    let changed = sent("name: choose\nnodes: { end: { type: set, value: other } }\n");
    let form = format!("from=choose&version=1&status=active&text={changed}");
    assert_eq!(fixture.submit(ANN, "/factory/workflows", &form).await.status, 303);
    let late = fixture.submit(ANN, "/factory/workflows", &form.replace("other", "third")).await;
    assert!(late.status == 422 && late.body.contains("was changed meanwhile"), "{late:?}");
    let renamed = form.replace("version=1", "version=2").replace(&sent("choose"), &sent("choice"));
    let told = fixture.submit(ANN, "/factory/check-workflow", &renamed).await;
    assert!(told.body.contains("saving creates another workflow"), "{told:?}");
    let old = fixture.page("/factory/workflows/choose?version=1").await.body;
    assert!(
        old.contains("/workflows/choose/edit?version=1") && old.contains("Edit from this version"),
        "{old}"
    );
    let bob = fixture.api(BOB, "GET", "/factory/workflows/choose", "").await.body;
    assert!(!bob.contains("/edit") && bob.contains("You can run this workflow, but not change it"), "{bob}");
    for (path, form) in [("", &*form), ("/choose/status", "status=archived"), ("/choose/remove", "")] {
        let refused = fixture.submit(BOB, &format!("/factory/workflows{path}"), form).await;
        assert_eq!(refused.status, 403, "{path} {refused:?}");
    }
    let archived = fixture.submit(ANN, "/factory/workflows/choose/status", "status=archived").await;
    assert_eq!(archived.header("location"), "/factory/workflows/choose?done=archived");
    assert!(fixture.page("/factory/workflows/choose").await.body.contains("cannot be run"));
    assert!(
        fixture.page("/factory/workflows/choose/remove").await.body.contains("Remove <bdi>choose</bdi>?")
    );
    assert_eq!(fixture.submit(ANN, "/factory/workflows/choose/remove", "").await.status, 303);
    assert_eq!(fixture.page("/factory/workflows/choose").await.status, 404);
}

#[tokio::test]
async fn a_workflow_of_the_configuration_cannot_be_edited() {
    let fixture = fixture(ScriptedPeer::echo()).await;
    let given = NewDefinition {
        scope: Scope::default(),
        text: ASKING.to_owned(),
        name: String::new(),
        kind: None,
        by: "local".into(),
        token: None,
        status: Some(FlowStatus::Active),
        configured: true,
    };
    fixture.flows.definitions().add(&fixture.engine, given).await.unwrap();
    let page = fixture.page("/factory/workflows/choose").await.body;
    assert!(page.contains("change its file there") && !page.contains("/choose/edit"), "{page}");
    let refused = fixture.submit(ANN, "/factory/workflows/choose/status", "status=draft").await;
    assert!(refused.status == 409 && refused.body.contains("change its file there"), "{refused:?}");
}

#[tokio::test]
async fn an_ended_run_cannot_be_resumed() {
    let fixture = fixture(ScriptedPeer::echo()).await;
    add(&fixture, "name: short\nnodes: { end: { type: set, value: 1 } }\n", FlowStatus::Active).await;
    let at = run(&fixture, ANN, "short", "").await;
    let over = fixture.wait_for(&at, " data-over").await;
    assert!(!over.body.contains("/resume"), "{over:?}");
    let refused = fixture.submit(ANN, &format!("{at}/resume"), "").await;
    assert!(refused.status == 409 && refused.body.contains("nothing to resume"), "{refused:?}");
}
