//! Page of a task, for its caller and for others.

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

use crate::fixture::{ANN, BOB, Fixture};

const DESK: &str = "https://desk.example.com";

/// Denies ann to administer agents.
const AUDITOR: &str =
    r#"@id("no-agents") forbid (principal == User::"ann", action == Action::"admin_agents", resource);"#;

/// Agent that asks a question and completes with the answer.
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

async fn fixture(policies: &str) -> Fixture {
    let fixture = Fixture::with_policies(asking(), policies).await;
    fixture.register(DESK, agents::card("Desk", vec![agents::skill("ask")]), AgentTrust::Trusted).await;
    fixture
}

/// Calls the agent from its form. Returns the path of the task.
async fn ask(fixture: &Fixture, token: &str) -> String {
    let begun = fixture.submit(token, "/factory/agents/desk/try/ask", "message=hello").await;
    assert_eq!(begun.status, 303, "{begun:?}");
    begun.header("location").split('?').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_task_page_shows_the_request_and_the_upstream_call() {
    let fixture = fixture("").await;
    let at = ask(&fixture, ANN).await;
    let page = fixture.wait_for(&at, "requests input: which one?").await.body;
    for shown in [
        "<h2>Request</h2>",
        "<h2>Upstream call</h2>",
        "state good\">allowed",
        "starter-invoke-trusted-skill",
        "<dt>Agent's task ID</dt><dd><bdi>t-1</bdi></dd>",
        "<dt>Address</dt><dd><bdi>https://desk.example.com</bdi></dd>",
        "<td data-label=\"rialto\"><bdi class=\"block\">allowed by starter-invoke-trusted-skill",
        "<td data-label=\"agent\"><bdi class=\"block\">requests input: which one?",
        "Raw event",
        "&quot;phase&quot;: &quot;pre-verb&quot;",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    fixture.submit(ANN, &format!("{at}/messages"), "text=the+red+one").await;
    let page = fixture.wait_for(&at, " data-over").await.body;
    assert!(page.contains("<td data-label=\"caller\"><bdi class=\"block\">answers: the red one"), "{page}");
    // The upstream call lists the messages that were sent: the call and the answer.
    let (_, out) = page.split_once("Upstream call").unwrap();
    let (sent, _) = out.split_once("Timeline").unwrap();
    let (call, answer) = sent.split_once("Answer").unwrap();
    assert!(call.contains("&quot;text&quot;: &quot;hello&quot;"), "{sent}");
    assert!(answer.contains("the red one") && answer.contains("secrets are masked"), "{sent}");
}

#[tokio::test]
async fn a_call_that_waits_for_approval_is_not_sent() {
    let asks = r#"@id("ask-ops") @approval("the ops team")
        forbid (principal, action == Action::"a2a_invoke", resource) unless { context.approved };"#;
    let fixture = fixture(asks).await;
    fixture.keep_approvals();
    let at = ask(&fixture, BOB).await;
    let page = fixture.wait_for(&at, "/approve\"").await;
    assert!(page.body.contains("Not sent yet: the call waits for approval."), "{page:?}");
    let asked = "<td data-label=\"rialto\"><bdi class=\"block\">requests input: May desk.ask be called";
    assert!(page.body.contains(asked) && page.body.contains("<code>rialto approvals approve"), "{page:?}");
    fixture.submit(ANN, &page.approve_path().replace("/approve", "/deny"), "").await;
    let page = fixture.wait_for(&at, " data-over").await.body;
    assert!(page.contains("Not sent to the agent.") && !page.contains("secrets are masked"), "{page}");
}

#[tokio::test]
async fn a_denied_call_has_a_page_with_the_reason() {
    let fixture = fixture("").await;
    let card = agents::card("Other", vec![agents::skill("ask")]);
    fixture.register("https://other.example.com", card, AgentTrust::External).await;
    assert_eq!(fixture.submit(ANN, "/factory/agents/other/try/ask", "message=x").await.status, 422);
    let audit = fixture.page("/factory/audit?outcome=denied").await.body;
    let (_, rest) = audit.split_once("href=\"/factory/tasks/").unwrap();
    let id = rest.split_once('"').unwrap().0;
    let page = fixture.page(&format!("/factory/tasks/{id}")).await;
    assert!(page.status == 200 && page.body.contains("Denied call"), "{page:?}");
    assert!(page.body.contains("Not sent to the agent.") && page.body.contains("state bad\">denied"));
    let bob = fixture.api(BOB, "GET", &format!("/factory/tasks/{id}"), "").await;
    assert_eq!(bob.status, 404, "it was not his: {bob:?}");
}

#[tokio::test]
async fn an_administrator_answers_a_task_of_another_caller_and_that_is_recorded() {
    let fixture = fixture("").await;
    let at = ask(&fixture, BOB).await;
    let page = fixture.wait_for(&at, "Your answer").await;
    assert!(page.body.contains("Sent in the task of <bdi>bob</bdi>"), "{page:?}");
    let said = fixture.submit(ANN, &format!("{at}/messages"), "text=the+red+one").await;
    assert_eq!(said.status, 303, "{said:?}");
    fixture.wait_for(&at, "told Text(&quot;the red one&quot;)").await;
    let own = fixture.api(BOB, "GET", &at, "").await;
    assert!(own.body.contains("the red one"), "the task is still bob's: {own:?}");
    let audit = fixture.page("/factory/audit?caller=ann").await.body;
    assert!(audit.contains("answer_task"), "{audit}");
}

#[tokio::test]
async fn an_administrator_cancels_a_task_of_another_caller_and_that_is_recorded() {
    let fixture = fixture("").await;
    let at = ask(&fixture, BOB).await;
    fixture.wait_for(&at, "Your answer").await;
    let question = fixture.page(&format!("{at}/cancel")).await;
    assert!(question.body.contains("It is a task of <b><bdi>bob</bdi></b>"), "{question:?}");
    assert_eq!(fixture.submit(ANN, &format!("{at}/cancel"), "").await.status, 303);
    fixture.wait_for(&at, "canceled").await;
    assert!(fixture.page("/factory/audit?caller=ann").await.body.contains("cancel_task"));
    let theirs = ask(&fixture, ANN).await;
    assert_eq!(fixture.submit(BOB, &format!("{theirs}/cancel"), "").await.status, 404);
    assert_eq!(fixture.submit(BOB, &format!("{theirs}/messages"), "text=x").await.status, 404);
}

#[tokio::test]
async fn an_auditor_sees_a_task_and_the_missing_permission() {
    let fixture = fixture(AUDITOR).await;
    let at = ask(&fixture, BOB).await;
    let page = fixture.wait_for(&at, "which one?").await.body;
    assert!(page.contains("you cannot cancel or answer it") && page.contains("admin_agents"), "{page}");
    assert!(!page.contains("/cancel\"") && !page.contains("/messages\""), "{page}");
    assert_eq!(fixture.submit(ANN, &format!("{at}/messages"), "text=x").await.status, 403);
    assert_eq!(fixture.submit(ANN, &format!("{at}/cancel"), "").await.status, 403);
}

#[tokio::test]
async fn a_task_that_waits_for_approval_cannot_be_answered() {
    let needs = r#"@id("hold") @approval("the ops team") forbid (principal == User::"bob", action == Action::"a2a_invoke", resource) unless { context.approved };"#;
    let fixture = fixture(needs).await;
    let at = ask(&fixture, BOB).await;
    fixture.wait_for(&at, "Approve").await;
    let refused = fixture.submit(ANN, &format!("{at}/messages"), "text=approve").await;
    assert!(refused.status == 409 && refused.body.contains("waits for approval"), "{refused:?}");
}

#[tokio::test]
async fn a_conversation_continues_after_its_task_has_ended() {
    let fixture = fixture("").await;
    let at = ask(&fixture, ANN).await;
    fixture.wait_for(&at, "Your answer").await;
    fixture.submit(ANN, &format!("{at}/messages"), "text=red").await;
    let over = fixture.wait_for(&at, " data-over").await;
    assert!(over.body.contains("Continue the conversation"), "{over:?}");
    let begun = fixture.submit(ANN, &format!("{at}/continue"), "text=and+blue").await;
    assert_eq!(begun.status, 303, "{begun:?}");
    let next = begun.header("location").split('?').next().unwrap().to_owned();
    assert_ne!(next, at);
    let page = fixture.wait_for(&next, "which one?").await.body;
    assert!(page.contains("<dt>Agent's context ID</dt><dd><bdi>c") && page.contains("and blue"), "{page}");
    assert_eq!(fixture.submit(BOB, &format!("{at}/continue"), "text=x").await.status, 404);
}
