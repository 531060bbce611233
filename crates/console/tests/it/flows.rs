//! Workflows and their runs, as a person sees them.

use futures::{StreamExt, stream};
use rialto_flow::run::Given;
use rialto_model::{
    agent::Trust,
    event::{Aside, Ask, Event},
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
            Trust::Trusted,
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
        Event::Asked { ask: Ask::Input, message: Some(question), aside: Aside::default() },
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
