//! What waits for a person's word: who sees it, who decides, and what becomes of it.

use rialto_model::{agent::AgentTrust, message::Part};
use rialto_testkit::{
    agents,
    peer::{ScriptedPeer, finished_with},
};
use serde_json::json;

use crate::house::{ANN, BOB, House};

const ASKS: &str = r#"@id("ask-ops") @approval("the ops team")
    forbid (principal, action == Action::"a2a_invoke", resource) unless { context.approved };"#;
const NOTHING: &str = "Nothing waits";

async fn house() -> House {
    let peer = ScriptedPeer::telling(finished_with(vec![Part::text("well done")]));
    let house = House::with_policies(peer, ASKS).await;
    let schema = json!({ "type": "object", "properties": { "to": { "type": "string" } } });
    let card = agents::card("Desk", vec![agents::skill_with_schema("ask", schema)]);
    house.register("https://desk.example.com", card, AgentTrust::Trusted).await;
    house.keep_approvals();
    house
}

/// Has somebody try the skill; answers where its task is.
async fn try_as(house: &House, token: &str) -> String {
    let begun = house.submit(token, "/factory/agents/desk/try/ask", "arg.to=%3Cb%3Ecarl").await;
    assert_eq!(begun.status, 303, "{begun:?}");
    let task = begun.header("location").split('?').next().unwrap().to_owned();
    house.until(&task, "input-required").await;
    task
}

#[tokio::test]
async fn what_waits_is_shown_with_who_asks_and_why_and_goes_on_when_it_is_approved() {
    let house = house().await;
    assert!(!house.page("/factory").await.body.contains("class=\"badge\""));
    let task = try_as(&house, BOB).await;
    let page = house.page("/factory/approvals").await;
    for shown in ["ask", "&lt;b&gt;carl", "bob", "the ops team", "ask-ops", "expires", &task] {
        assert!(page.body.contains(shown), "{shown}: {page:?}");
    }
    assert!(!page.body.contains("<b>carl") && !page.body.contains(NOTHING));
    let overview = house.page("/factory").await.body;
    assert!(overview.contains("<span class=\"badge\">1<span class=\"vh\"> waiting"), "{overview}");
    let done = house.submit(ANN, &page.approve_at(), "reason=it+is+fine").await;
    assert_eq!((done.status, done.header("location")), (303, "/factory/approvals?done=allowed"));
    house.until(&task, "well done").await;
    let page = house.page("/factory/approvals?done=allowed").await;
    for shown in [NOTHING, "It is approved", "approved</span>", "it is fine", "ann"] {
        assert!(page.body.contains(shown), "{shown}: {page:?}");
    }
    assert!(!page.body.contains("class=\"badge\""), "{page:?}");
}

#[tokio::test]
async fn the_page_of_a_task_that_waits_has_the_same_buttons() {
    let house = house().await;
    let task = try_as(&house, BOB).await;
    let page = house.page(&task).await;
    assert!(!page.body.contains("Your answer"), "{page:?}");
    let deny = page.approve_at().replace("/approve", "/deny");
    let from = format!("http://localhost{task}");
    let headers =
        [("accept", "text/html"), ("authorization", &*format!("Bearer {ANN}")), ("referer", from.as_str())];
    let done = house.send("POST", &deny, &headers, "reason=no+need").await;
    assert_eq!((done.status, done.header("location")), (303, &*format!("{task}?done=denied")), "{done:?}");
    let over = house.until(&task, "data-over").await;
    assert!(over.body.contains("no need") && !over.body.contains("/deny\""), "{over:?}");
    let again = house.submit(ANN, &deny, "").await;
    assert_eq!(again.status, 409, "{again:?}");
    assert!(again.body.contains("was decided before"), "{again:?}");
}

#[tokio::test]
async fn nobody_decides_who_may_not() {
    let house = house().await;
    let task = try_as(&house, ANN).await;
    let page = house.page("/factory/approvals").await;
    let own = house.submit(ANN, &page.approve_at(), "").await;
    assert_eq!(own.status, 403, "{own:?}");
    assert!(own.body.contains("asked for ask itself") || own.body.contains("needs approval by"), "{own:?}");
    let bearer = format!("Bearer {BOB}");
    let headers = [("accept", "text/html"), ("authorization", bearer.as_str())];
    let looked = house.send("GET", "/factory/approvals", &headers, "").await;
    assert_eq!(looked.status, 403, "{looked:?}");
    assert!(!looked.body.contains("carl"));
    assert_eq!(house.submit(BOB, &page.approve_at(), "").await.status, 403);
    assert_eq!(house.submit(ANN, "/factory/approvals/nothing/approve", "").await.status, 404);
    assert!(house.page(&task).await.body.contains("input-required"), "it waits still");
}
