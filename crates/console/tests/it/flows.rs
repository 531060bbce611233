//! Workflows and their runs, as a person sees them.

use futures::{StreamExt, stream};
use rialto_flow::run::Given;
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

use crate::house::{ANN, Answer, BOB, House};

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

async fn house(peer: std::sync::Arc<ScriptedPeer>) -> House {
    let house = House::new(peer).await;
    house
        .register(
            "https://desk.example.com",
            agents::card("Desk", vec![agents::skill("ask")]),
            AgentTrust::Trusted,
        )
        .await;
    house.keep_approvals();
    house
}

async fn add(house: &House, text: &str, status: FlowStatus) {
    let given = Given {
        scope: Scope::default(),
        text: text.to_owned(),
        name: "unnamed".to_owned(),
        kind: None,
        by: "ann".into(),
        token: None,
        status: Some(status),
        configured: false,
    };
    house.flows.book().add(&house.engine, given).await.unwrap();
}

/// Runs a workflow from its form; answers where the run is.
async fn run(house: &House, token: &str, name: &str, form: &str) -> String {
    let begun = house.submit(token, &format!("/factory/workflows/{name}/run"), form).await;
    assert_eq!(begun.status, 303, "{begun:?}");
    begun.header("location").split('?').next().unwrap().to_owned()
}

/// How a node is drawn.
fn node<'a>(page: &'a Answer, id: &str) -> &'a str {
    let (_, rest) =
        page.body.split_once(&format!("data-node=\"{id}\"")).unwrap_or_else(|| panic!("{page:?}"));
    rest.split("data-node").next().unwrap().split("</svg>").next().unwrap()
}

#[tokio::test]
async fn a_workflow_is_listed_drawn_and_can_be_run_from_its_schema() {
    let house = house(ScriptedPeer::telling(finished_with(vec![Part::text("seen")]))).await;
    assert!(house.page("/factory/workflows").await.body.contains("No workflows yet"));
    add(&house, DEPLOY, FlowStatus::Active).await;
    let list = house.page("/factory/workflows").await.body;
    for shown in ["deploy", "workflow", "active", "POST /hooks/in/deploy", "0 9 * * MON", "&lt;b&gt;deploys"]
    {
        assert!(list.contains(shown), "{shown}: {list}");
    }
    let page = house.page("/factory/workflows/deploy").await;
    for shown in ["<svg ", "name=\"arg.what\"", "What", "Definition, version 1", "No runs yet"] {
        assert!(page.body.contains(shown), "{shown}: {page:?}");
    }
    assert!(!page.body.contains("<b>deploys") && !page.body.contains(" style="), "{page:?}");
    let refused = house.submit(ANN, "/factory/workflows/deploy/run", "whole=%7B").await;
    assert!(refused.status == 422 && refused.body.contains("not JSON"), "{refused:?}");
    assert_eq!(house.page("/factory/workflows/nothing").await.status, 404);
    assert_eq!(house.page("/factory/runs/nothing").await.status, 404);
}

#[tokio::test]
async fn nodes_light_up_as_a_run_goes_on_and_a_person_lets_it_go_on() {
    let house = house(ScriptedPeer::telling(finished_with(vec![Part::text("seen <i>")]))).await;
    add(&house, DEPLOY, FlowStatus::Active).await;
    let at = run(&house, ANN, "deploy", "arg.what=shop").await;
    let page = house.until(&at, "held").await;
    assert!(node(&page, "look").contains("completed") && node(&page, "may").contains("held"), "{page:?}");
    assert!(!node(&page, "deploy").contains("completed"));
    for shown in ["id=\"node-look\"", "seen &lt;i&gt;", "Its task", "Deploy shop?", "data-live"] {
        assert!(page.body.contains(shown), "{shown}: {page:?}");
    }
    assert!(!page.body.contains(" data-over") && !page.body.contains("<i>"));
    assert_eq!(house.submit(ANN, &page.approve_at(), "").await.status, 303);
    let over = house.until(&at, " data-over").await;
    assert!(node(&over, "deploy").contains("completed"), "{over:?}");
    assert!(over.body.contains("&quot;deployed&quot;: &quot;shop&quot;"), "{over:?}");
    let list = house.page("/factory/workflows").await.body;
    assert!(list.contains(&at) && list.contains("completed"), "{list}");
    assert!(house.page("/factory/workflows/deploy").await.body.contains(&at));
    let task = at.replace("/runs/", "/tasks/");
    assert!(house.page(&task).await.body.contains("As a run"));
}

#[tokio::test]
async fn a_question_of_a_step_is_answered_and_another_run_called_off() {
    let question = Message::new("m", Role::Agent, vec![Part::text("which <b>colour?")]);
    let asks = vec![
        accepted("t-1", "c-1"),
        Event::Asked { ask: QuestionKind::Input, message: Some(question), aside: EventAside::default() },
    ];
    let peer = ScriptedPeer::with(move |call| {
        let done = || finished_with(vec![Part::text("red")]);
        stream::iter(if call.continues.task_id.is_some() { done() } else { asks.clone() }).boxed()
    });
    let house = house(peer).await;
    add(&house, ASKING, FlowStatus::Draft).await;
    assert!(house.page("/factory/workflows/choose").await.body.contains("It is a draft"));
    let at = run(&house, ANN, "choose", "").await;
    let page = house.until(&at, "Your answer").await;
    assert!(
        page.body.contains("which &lt;b&gt;colour?") && page.body.contains("name=\"step\" value=\"ask\"")
    );
    let said = house.submit(ANN, &format!("{at}/messages"), "step=ask&text=red").await;
    assert_eq!((said.status, said.header("location")), (303, &*format!("{at}?done=said")));
    let over = house.until(&at, " data-over").await;
    assert!(over.body.contains("chosen") && !over.body.contains("Your answer"), "{over:?}");
    let second = run(&house, ANN, "choose", "").await;
    house.until(&second, "Your answer").await;
    assert!(house.page(&format!("{second}/cancel")).await.body.contains("Cancel this run?"));
    assert_eq!(house.submit(ANN, &format!("{second}/cancel"), "").await.status, 303);
    let off = house.until(&second, " data-over").await;
    assert!(node(&off, "ask").contains("canceled"), "{off:?}");
}

#[tokio::test]
async fn earlier_versions_are_shown_and_runs_are_their_callers_own() {
    let house = house(ScriptedPeer::telling(finished_with(vec![Part::text("seen")]))).await;
    add(&house, DEPLOY, FlowStatus::Active).await;
    add(&house, &DEPLOY.replace("look:", "see:").replace("[look]", "[see]"), FlowStatus::Active).await;
    let now = house.page("/factory/workflows/deploy").await;
    assert!(now.body.contains("data-node=\"see\"") && now.body.contains("?version=1"), "{now:?}");
    let before = house.page("/factory/workflows/deploy?version=1").await;
    assert!(before.body.contains("data-node=\"look\"") && before.body.contains("version 1"), "{before:?}");
    assert_eq!(house.page("/factory/workflows/deploy?version=9").await.status, 404);
    let at = run(&house, ANN, "deploy", "arg.what=shop").await;
    house.until(&at, "held").await;
    let look = async |path: &str| {
        let bearer = format!("Bearer {BOB}");
        house.send("GET", path, &[("accept", "text/html"), ("authorization", &bearer)], "").await
    };
    assert_eq!(look(&at).await.status, 404);
    assert!(!look("/factory/workflows/deploy").await.body.contains(&at));
    let own = run(&house, BOB, "deploy", "arg.what=shed").await;
    assert_eq!(look(&own).await.status, 200);
    assert!(house.until(&own, "held").await.body.contains("/approve"), "ann may read the trail and decide");
}

#[tokio::test]
async fn a_run_that_needs_approval_itself_is_a_task_until_it_has_it() {
    let asks = r#"@id("ask-ops") @approval("the ops team")
        forbid (principal, action == Action::"a2a_invoke", resource) unless { context.approved };"#;
    let house = House::with_policies(ScriptedPeer::echo(), asks).await;
    house.keep_approvals();
    add(
        &house,
        "name: simple\ntriggers: [skill]\nnodes: { one: { type: set, value: well done } }\n",
        FlowStatus::Active,
    )
    .await;
    let task = run(&house, BOB, "simple", "").await;
    assert!(task.starts_with("/factory/tasks/"), "{task}");
    let page = house.until(&task, "/approve\"").await;
    assert_eq!(house.submit(ANN, &page.approve_at(), "").await.status, 303);
    let over = house.until(&task, " data-over").await;
    let shown = house.page(&task.replace("/tasks/", "/runs/")).await;
    assert!(shown.body.contains("well done"), "{shown:?} {over:?}");
}

/// A text as a form sends it.
fn sent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[tokio::test]
async fn a_workflow_is_looked_over_as_it_is_written_and_kept_when_it_holds_up() {
    let house = house(ScriptedPeer::echo()).await;
    assert!(house.page("/factory/workflows").await.body.contains("Write the first one"));
    let new = house.page("/factory/new-workflow").await;
    assert!(new.body.contains("It holds up") && new.body.contains("data-node=\"may\""), "{new:?}");
    let wrong =
        sent("name: mine\nnodes:\n  one: { tool: <b>, depends_on: [two] }\n  bad: { type: nothing }\n");
    let checked = house.submit(ANN, "/factory/check-workflow", &format!("text={wrong}")).await;
    assert_eq!(checked.status, 200, "{checked:?}");
    for shown in ["data-goto=\"3:", "line 3, column", "line 4, column", "&quot;two&quot;"] {
        assert!(checked.body.contains(shown), "{shown}: {checked:?}");
    }
    assert!(!checked.body.contains("<svg xmlns") && house.flows.book().all().await.unwrap().is_empty());
    let refused = house.submit(ANN, "/factory/workflows", &format!("text={wrong}")).await;
    assert!(refused.status == 422 && refused.body.contains("nothing was kept"), "{refused:?}");
    assert!(refused.body.contains("name: mine"), "what was written is not lost");
    let form = format!("text={}&name=other&status=active", sent("nodes: { a: { type: set, value: 1 } }"));
    let kept = house.submit(ANN, "/factory/workflows", &form).await;
    assert_eq!((kept.status, kept.header("location")), (303, "/factory/workflows/other?done=kept"));
    assert!(house.page("/factory/workflows/other").await.body.contains("state good\">active"));
}

#[tokio::test]
async fn a_workflow_is_edited_archived_and_removed_by_whoever_may() {
    let house = house(ScriptedPeer::echo()).await;
    add(&house, ASKING, FlowStatus::Active).await;
    let editor = house.page("/factory/workflows/choose/edit").await;
    assert!(editor.body.contains("name=\"version\" value=\"1\"") && editor.body.contains("name: choose"));
    let changed = sent("name: choose\nnodes: { end: { type: set, value: other } }\n");
    let form = format!("from=choose&version=1&status=active&text={changed}");
    assert_eq!(house.submit(ANN, "/factory/workflows", &form).await.status, 303);
    let late = house.submit(ANN, "/factory/workflows", &form.replace("other", "third")).await;
    assert!(late.status == 422 && late.body.contains("was changed meanwhile"), "{late:?}");
    let renamed = form.replace("version=1", "version=2").replace(&sent("choose"), &sent("choice"));
    let told = house.submit(ANN, "/factory/check-workflow", &renamed).await;
    assert!(told.body.contains("it becomes another workflow"), "{told:?}");
    let old = house.page("/factory/workflows/choose?version=1").await.body;
    assert!(
        old.contains("/workflows/choose/edit?version=1") && old.contains("Edit from this version"),
        "{old}"
    );
    let bob = house.ask(BOB, "GET", "/factory/workflows/choose", "").await.body;
    assert!(!bob.contains("/edit") && bob.contains("You can run it, but not change it"), "{bob}");
    for (path, form) in [("", &*form), ("/choose/status", "status=archived"), ("/choose/remove", "")] {
        let refused = house.submit(BOB, &format!("/factory/workflows{path}"), form).await;
        assert_eq!(refused.status, 403, "{path} {refused:?}");
    }
    let archived = house.submit(ANN, "/factory/workflows/choose/status", "status=archived").await;
    assert_eq!(archived.header("location"), "/factory/workflows/choose?done=archived");
    assert!(house.page("/factory/workflows/choose").await.body.contains("runs no more"));
    assert!(house.page("/factory/workflows/choose/remove").await.body.contains("Remove <bdi>choose</bdi>?"));
    assert_eq!(house.submit(ANN, "/factory/workflows/choose/remove", "").await.status, 303);
    assert_eq!(house.page("/factory/workflows/choose").await.status, 404);
}

#[tokio::test]
async fn what_the_configuration_owns_is_changed_there() {
    let house = house(ScriptedPeer::echo()).await;
    let given = Given {
        scope: Scope::default(),
        text: ASKING.to_owned(),
        name: String::new(),
        kind: None,
        by: "local".into(),
        token: None,
        status: Some(FlowStatus::Active),
        configured: true,
    };
    house.flows.book().add(&house.engine, given).await.unwrap();
    let page = house.page("/factory/workflows/choose").await.body;
    assert!(page.contains("change its file there") && !page.contains("/choose/edit"), "{page}");
    let refused = house.submit(ANN, "/factory/workflows/choose/status", "status=draft").await;
    assert!(refused.status == 409 && refused.body.contains("change its file there"), "{refused:?}");
}

#[tokio::test]
async fn a_run_that_is_over_is_not_resumed() {
    let house = house(ScriptedPeer::echo()).await;
    add(&house, "name: short\nnodes: { end: { type: set, value: 1 } }\n", FlowStatus::Active).await;
    let at = run(&house, ANN, "short", "").await;
    let over = house.until(&at, " data-over").await;
    assert!(!over.body.contains("/resume"), "{over:?}");
    let refused = house.submit(ANN, &format!("{at}/resume"), "").await;
    assert!(refused.status == 409 && refused.body.contains("nothing to resume"), "{refused:?}");
}
