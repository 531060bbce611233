//! Approvals: visibility, decisions and their effect on calls.

use rialto_model::{agent::AgentTrust, message::Part};
use rialto_testkit::{
    agents,
    peer::{ScriptedPeer, finished_with},
};
use serde_json::json;

use crate::fixture::{ANN, BOB, Fixture};

const ASKS: &str = r#"@id("ask-ops") @approval("the ops team")
    forbid (principal, action == Action::"a2a_invoke", resource) unless { context.approved };"#;
const NOTHING: &str = "No pending approvals";

async fn fixture() -> Fixture {
    let peer = ScriptedPeer::telling(finished_with(vec![Part::text("well done")]));
    let fixture = Fixture::with_policies(peer, ASKS).await;
    let schema = json!({ "type": "object", "properties": { "to": { "type": "string" } } });
    let card = agents::card("Desk", vec![agents::skill_with_schema("ask", schema)]);
    fixture.register("https://desk.example.com", card, AgentTrust::Trusted).await;
    fixture.keep_approvals();
    fixture
}

/// Calls the skill from its form. Returns the path of the task.
async fn try_as(fixture: &Fixture, token: &str) -> String {
    let begun = fixture.submit(token, "/factory/agents/desk/try/ask", "arg.to=%3Cb%3Ecarl").await;
    assert_eq!(begun.status, 303, "{begun:?}");
    let task = begun.header("location").split('?').next().unwrap().to_owned();
    fixture.wait_for(&task, "input-required").await;
    task
}

#[tokio::test]
async fn a_pending_approval_shows_caller_and_policy_and_its_call_resumes_when_approved() {
    let fixture = fixture().await;
    assert!(!fixture.page("/factory").await.body.contains("class=\"badge\""));
    let task = try_as(&fixture, BOB).await;
    let page = fixture.page("/factory/approvals").await;
    for shown in ["ask", "&lt;b&gt;carl", "bob", "the ops team", "ask-ops", "expires", &task] {
        assert!(page.body.contains(shown), "{shown}: {page:?}");
    }
    assert!(!page.body.contains("<b>carl") && !page.body.contains(NOTHING));
    let overview = fixture.page("/factory").await.body;
    assert!(overview.contains("<span class=\"badge\">1<span class=\"vh\"> waiting"), "{overview}");
    let done = fixture.submit(ANN, &page.approve_path(), "reason=it+is+fine").await;
    assert_eq!((done.status, done.header("location")), (303, "/factory/approvals?done=allowed"));
    fixture.wait_for(&task, "well done").await;
    let page = fixture.page("/factory/approvals?done=allowed").await;
    for shown in [NOTHING, "The call is approved", "approved</span>", "it is fine", "ann"] {
        assert!(page.body.contains(shown), "{shown}: {page:?}");
    }
    assert!(!page.body.contains("class=\"badge\""), "{page:?}");
}

#[tokio::test]
async fn the_page_of_a_waiting_task_has_the_approval_form() {
    let fixture = fixture().await;
    let task = try_as(&fixture, BOB).await;
    let page = fixture.page(&task).await;
    assert!(!page.body.contains("Your answer"), "{page:?}");
    let deny = page.approve_path().replace("/approve", "/deny");
    let from = format!("http://localhost{task}");
    let headers =
        [("accept", "text/html"), ("authorization", &*format!("Bearer {ANN}")), ("referer", from.as_str())];
    let done = fixture.send("POST", &deny, &headers, "reason=no+need").await;
    assert_eq!((done.status, done.header("location")), (303, &*format!("{task}?done=denied")), "{done:?}");
    let over = fixture.wait_for(&task, "data-over").await;
    assert!(over.body.contains("no need") && !over.body.contains("/deny\""), "{over:?}");
    let again = fixture.submit(ANN, &deny, "").await;
    assert_eq!(again.status, 409, "{again:?}");
    assert!(again.body.contains("was decided before"), "{again:?}");
}

#[tokio::test]
async fn an_approval_is_decided_only_with_permission() {
    let fixture = fixture().await;
    let task = try_as(&fixture, ANN).await;
    let page = fixture.page("/factory/approvals").await;
    let own = fixture.submit(ANN, &page.approve_path(), "").await;
    assert_eq!(own.status, 403, "{own:?}");
    assert!(own.body.contains("asked for ask itself") || own.body.contains("needs approval by"), "{own:?}");
    let bearer = format!("Bearer {BOB}");
    let headers = [("accept", "text/html"), ("authorization", bearer.as_str())];
    let looked = fixture.send("GET", "/factory/approvals", &headers, "").await;
    assert_eq!(looked.status, 403, "{looked:?}");
    assert!(!looked.body.contains("carl"));
    assert_eq!(fixture.submit(BOB, &page.approve_path(), "").await.status, 403);
    assert_eq!(fixture.submit(ANN, "/factory/approvals/nothing/approve", "").await.status, 404);
    assert!(fixture.page(&task).await.body.contains("input-required"), "it waits still");
}
