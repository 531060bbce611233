//! Policy editor: concurrent changes, the lockout warning and templates.

use rialto_model::agent::AgentTrust;
use rialto_testkit::{agents, peer::ScriptedPeer};

use crate::fixture::{ANN, Fixture, TestResponse};

async fn fixture() -> Fixture {
    let fixture = Fixture::new(ScriptedPeer::echo()).await;
    let card = agents::card("Desk", vec![agents::skill("ask")]);
    fixture.register("https://desk.example.com", card, AgentTrust::Trusted).await;
    fixture
}

/// Hash of the text that a page edits.
#[track_caller]
fn was(page: &TestResponse) -> String {
    let (_, rest) = page.body.split_once("name=\"was\" value=\"").unwrap_or_else(|| panic!("{page:?}"));
    rest.split_once('"').unwrap().0.to_owned()
}

const FORBID: &str = "@id(%22mine%22)forbid(principal==User::%22bob%22,action,resource);";

#[tokio::test]
async fn a_concurrent_change_of_a_policy_is_not_overwritten() {
    let fixture = fixture().await;
    let fresh = was(&fixture.page("/factory/policies/new").await);
    let form = |was: &str| format!("name=mine&was={was}&text={FORBID}");
    assert_eq!(fixture.submit(ANN, "/factory/policies", &form(&fresh)).await.status, 303);
    let again = fixture.submit(ANN, "/factory/policies", &form(&fresh)).await;
    assert!(
        again.status == 422 && again.body.contains("the policy &quot;mine&quot; exists already"),
        "{again:?}"
    );
    let old = was(&fixture.page("/factory/policies/mine.cedar").await);
    let other = format!("name=mine.cedar&was={old}&text=//+better%0A{FORBID}");
    assert_eq!(fixture.submit(ANN, "/factory/policies", &other).await.status, 303);
    let late = fixture.submit(ANN, "/factory/policies", &other.replace("better", "later")).await;
    assert!(late.status == 422 && late.body.contains("was changed since you opened it"), "{late:?}");
    assert!(late.body.contains("// later"), "what was written is still there: {late:?}");
}

#[tokio::test]
async fn the_editor_warns_before_a_caller_locks_itself_out() {
    let fixture = fixture().await;
    let forbids = "name=mine&text=@id(%22mine%22)forbid(principal,action,resource==Org::%22default%22);";
    let checked = fixture.submit(ANN, "/factory/check-policy", forbids).await.body;
    assert!(
        checked.contains("You would lock yourself out") && checked.contains("admin_policies"),
        "{checked}"
    );
    let checked =
        fixture.submit(ANN, "/factory/check-policy", &format!("name=mine&text={FORBID}")).await.body;
    assert!(checked.contains("desk.ask") && !checked.contains("lock yourself out"), "{checked}");
}

#[tokio::test]
async fn a_template_takes_a_caller_kind_and_an_approver() {
    let fixture = fixture().await;
    let form = "kind=require-approval&target=desk.ask&caller=s-1&caller_kind=session&by=the+ops+team";
    let kept = fixture.submit(ANN, "/factory/policies/templates", form).await;
    assert_eq!(kept.status, 303, "{kept:?}");
    let page = fixture.page(kept.header("location")).await.body;
    assert!(page.contains("the ops team") && page.contains("Session::&quot;s-1&quot;"), "{page}");
}
