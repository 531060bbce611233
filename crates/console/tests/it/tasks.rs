//! One task, as its caller and others see it.

use std::sync::Arc;

use futures::{StreamExt, stream};
use rialto_model::{
    agent::AgentTrust,
    event::{Event, EventAside, QuestionKind},
    message::{Message, Part, Role},
};
use rialto_testkit::{
    agents,
    peer::{ScriptedPeer, accepted, finished_with},
};

use crate::house::{ANN, BOB, House};

const DESK: &str = "https://desk.example.com";

/// Lets ann see what everybody does, and change nothing.
const AUDITOR: &str =
    r#"@id("no-agents") forbid (principal == User::"ann", action == Action::"admin_agents", resource);"#;

/// An agent that asks which one, and is done when it is told.
fn asking() -> Arc<ScriptedPeer> {
    ScriptedPeer::with(move |call| {
        let asked = Event::Asked {
            ask: QuestionKind::Input,
            message: Some(Message::new("m", Role::Agent, vec![Part::text("which one?")])),
            aside: EventAside::default(),
        };
        let goes_on = call.continues.task_id.is_some();
        let said = call.parts.iter().map(|part| format!("{:?}", part.content)).collect::<String>();
        let events = if goes_on {
            finished_with(vec![Part::text(format!("told {said}"))])
        } else {
            vec![accepted("t-1", "c-1"), asked]
        };
        stream::iter(events).boxed()
    })
}

async fn house(policies: &str) -> House {
    let house = House::with_policies(asking(), policies).await;
    house.register(DESK, agents::card("Desk", vec![agents::skill("ask")]), AgentTrust::Trusted).await;
    house
}

/// Has somebody ask the desk; answers where the task is.
async fn ask(house: &House, token: &str) -> String {
    let begun = house.submit(token, "/factory/agents/desk/try/ask", "message=hello").await;
    assert_eq!(begun.status, 303, "{begun:?}");
    begun.header("location").split('?').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_task_is_shown_from_both_sides() {
    let house = house("").await;
    let at = ask(&house, ANN).await;
    let page = house.until(&at, "asks: which one?").await.body;
    for shown in [
        "Came in",
        "Went out",
        "state good\">permitted",
        "starter-invoke-trusted-skill",
        "<dt>Its task</dt><dd><bdi>t-1</bdi></dd>",
        "<dt>Address</dt><dd><bdi>https://desk.example.com</bdi></dd>",
        "<td data-label=\"rialto\"><bdi class=\"block\">permitted by starter-invoke-trusted-skill",
        "<td data-label=\"agent\"><bdi class=\"block\">asks: which one?",
        "as it is on record",
        "&quot;phase&quot;: &quot;pre-verb&quot;",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    house.submit(ANN, &format!("{at}/messages"), "text=the+red+one").await;
    let page = house.until(&at, " data-over").await.body;
    assert!(page.contains("<td data-label=\"caller\"><bdi class=\"block\">says: the red one"), "{page}");
    // What the agent was sent stands on its side: the call, and then the answer.
    let (_, out) = page.split_once("Went out").unwrap();
    let (sent, _) = out.split_once("What happened").unwrap();
    let (call, answer) = sent.split_once("Then").unwrap();
    assert!(call.contains("&quot;text&quot;: &quot;hello&quot;"), "{sent}");
    assert!(answer.contains("the red one") && answer.contains("secrets are masked"), "{sent}");
}

#[tokio::test]
async fn what_waits_for_approval_was_sent_to_nobody() {
    let asks = r#"@id("ask-ops") @approval("the ops team")
        forbid (principal, action == Action::"a2a_invoke", resource) unless { context.approved };"#;
    let house = house(asks).await;
    house.keep_approvals();
    let at = ask(&house, BOB).await;
    let page = house.until(&at, "/approve\"").await;
    assert!(page.body.contains("it goes out when it is approved"), "{page:?}");
    let asked = "<td data-label=\"rialto\"><bdi class=\"block\">asks: May desk.ask be called";
    assert!(page.body.contains(asked) && page.body.contains("<code>rialto approvals approve"), "{page:?}");
    house.submit(ANN, &page.approve_at().replace("/approve", "/deny"), "").await;
    let page = house.until(&at, " data-over").await.body;
    assert!(page.contains("the agent never heard of it") && !page.contains("secrets are masked"), "{page}");
}

#[tokio::test]
async fn a_call_that_was_refused_is_shown_with_the_reason() {
    let house = house("").await;
    let card = agents::card("Other", vec![agents::skill("ask")]);
    house.register("https://other.example.com", card, AgentTrust::External).await;
    assert_eq!(house.submit(ANN, "/factory/agents/other/try/ask", "message=x").await.status, 422);
    let audit = house.page("/factory/audit?outcome=denied").await.body;
    let (_, rest) = audit.split_once("href=\"/factory/tasks/").unwrap();
    let id = rest.split_once('"').unwrap().0;
    let page = house.page(&format!("/factory/tasks/{id}")).await;
    assert!(page.status == 200 && page.body.contains("Refused call"), "{page:?}");
    assert!(page.body.contains("the agent never heard of it") && page.body.contains("state bad\">refused"));
    let bob = house.ask(BOB, "GET", &format!("/factory/tasks/{id}"), "").await;
    assert_eq!(bob.status, 404, "it was not his: {bob:?}");
}

#[tokio::test]
async fn somebody_elses_task_is_answered_by_whoever_may_and_that_is_on_record() {
    let house = house("").await;
    let at = ask(&house, BOB).await;
    let page = house.until(&at, "Your answer").await;
    assert!(page.body.contains("It is said in the task of <bdi>bob</bdi>"), "{page:?}");
    let said = house.submit(ANN, &format!("{at}/messages"), "text=the+red+one").await;
    assert_eq!(said.status, 303, "{said:?}");
    house.until(&at, "told Text(&quot;the red one&quot;)").await;
    let own = house.ask(BOB, "GET", &at, "").await;
    assert!(own.body.contains("the red one"), "the task is still bob's: {own:?}");
    let audit = house.page("/factory/audit?caller=ann").await.body;
    assert!(audit.contains("answer_task"), "{audit}");
}

#[tokio::test]
async fn somebody_elses_task_is_called_off_by_whoever_may_and_that_is_on_record() {
    let house = house("").await;
    let at = ask(&house, BOB).await;
    house.until(&at, "Your answer").await;
    let question = house.page(&format!("{at}/cancel")).await;
    assert!(question.body.contains("It is a task of <b><bdi>bob</bdi></b>"), "{question:?}");
    assert_eq!(house.submit(ANN, &format!("{at}/cancel"), "").await.status, 303);
    house.until(&at, "canceled").await;
    assert!(house.page("/factory/audit?caller=ann").await.body.contains("cancel_task"));
    let theirs = ask(&house, ANN).await;
    assert_eq!(house.submit(BOB, &format!("{theirs}/cancel"), "").await.status, 404);
    assert_eq!(house.submit(BOB, &format!("{theirs}/messages"), "text=x").await.status, 404);
}

#[tokio::test]
async fn an_auditor_sees_it_and_is_told_which_policy_is_missing() {
    let house = house(AUDITOR).await;
    let at = ask(&house, BOB).await;
    let page = house.until(&at, "which one?").await.body;
    assert!(page.contains("you cannot call it off or answer it") && page.contains("admin_agents"), "{page}");
    assert!(!page.contains("/cancel\"") && !page.contains("/messages\""), "{page}");
    assert_eq!(house.submit(ANN, &format!("{at}/messages"), "text=x").await.status, 403);
    assert_eq!(house.submit(ANN, &format!("{at}/cancel"), "").await.status, 403);
}

#[tokio::test]
async fn what_waits_for_approval_is_not_answered_in_its_callers_name() {
    let needs = r#"@id("hold") @approval("the ops team") forbid (principal == User::"bob", action == Action::"a2a_invoke", resource) unless { context.approved };"#;
    let house = house(needs).await;
    let at = ask(&house, BOB).await;
    house.until(&at, "Approve").await;
    let refused = house.submit(ANN, &format!("{at}/messages"), "text=approve").await;
    assert!(refused.status == 409 && refused.body.contains("waits for approval"), "{refused:?}");
}

#[tokio::test]
async fn more_is_said_in_the_same_conversation_after_a_task_is_over() {
    let house = house("").await;
    let at = ask(&house, ANN).await;
    house.until(&at, "Your answer").await;
    house.submit(ANN, &format!("{at}/messages"), "text=red").await;
    let over = house.until(&at, " data-over").await;
    assert!(over.body.contains("Say more in the same conversation"), "{over:?}");
    let begun = house.submit(ANN, &format!("{at}/continue"), "text=and+blue").await;
    assert_eq!(begun.status, 303, "{begun:?}");
    let next = begun.header("location").split('?').next().unwrap().to_owned();
    assert_ne!(next, at);
    let page = house.until(&next, "which one?").await.body;
    assert!(page.contains("<dt>Its context</dt><dd><bdi>c") && page.contains("and blue"), "{page}");
    assert_eq!(house.submit(BOB, &format!("{at}/continue"), "text=x").await.status, 404);
}
