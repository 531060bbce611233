//! Policies, as a person writes them: nobody's change is undone unseen, and nobody locks herself out unwarned.

use rialto_model::agent::AgentTrust;
use rialto_testkit::{agents, peer::ScriptedPeer};

use crate::house::{ANN, Answer, House};

async fn house() -> House {
    let house = House::new(ScriptedPeer::echo()).await;
    let card = agents::card("Desk", vec![agents::skill("ask")]);
    house.register("https://desk.example.com", card, AgentTrust::Trusted).await;
    house
}

/// What marks the text that a page edits.
#[track_caller]
fn was(page: &Answer) -> String {
    let (_, rest) = page.body.split_once("name=\"was\" value=\"").unwrap_or_else(|| panic!("{page:?}"));
    rest.split_once('"').unwrap().0.to_owned()
}

const FORBID: &str = "@id(%22mine%22)forbid(principal==User::%22bob%22,action,resource);";

#[tokio::test]
async fn a_text_that_changed_meanwhile_is_not_written_over() {
    let house = house().await;
    let fresh = was(&house.page("/factory/policies/new").await);
    let form = |was: &str| format!("name=mine&was={was}&text={FORBID}");
    assert_eq!(house.submit(ANN, "/factory/policies", &form(&fresh)).await.status, 303);
    let again = house.submit(ANN, "/factory/policies", &form(&fresh)).await;
    assert!(
        again.status == 422 && again.body.contains("there is a policy &quot;mine&quot; already"),
        "{again:?}"
    );
    let old = was(&house.page("/factory/policies/mine.cedar").await);
    let other = format!("name=mine.cedar&was={old}&text=//+better%0A{FORBID}");
    assert_eq!(house.submit(ANN, "/factory/policies", &other).await.status, 303);
    let late = house.submit(ANN, "/factory/policies", &other.replace("better", "later")).await;
    assert!(late.status == 422 && late.body.contains("was changed since you opened it"), "{late:?}");
    assert!(late.body.contains("// later"), "what was written is still there: {late:?}");
}

#[tokio::test]
async fn whoever_would_lock_herself_out_is_warned() {
    let house = house().await;
    let forbids = "name=mine&text=@id(%22mine%22)forbid(principal,action,resource==Org::%22default%22);";
    let checked = house.submit(ANN, "/factory/check-policy", forbids).await.body;
    assert!(
        checked.contains("You would lock yourself out") && checked.contains("admin_policies"),
        "{checked}"
    );
    let checked = house.submit(ANN, "/factory/check-policy", &format!("name=mine&text={FORBID}")).await.body;
    assert!(checked.contains("desk.ask") && !checked.contains("lock yourself out"), "{checked}");
}

#[tokio::test]
async fn a_usual_policy_is_for_a_kind_of_caller_and_says_who_approves() {
    let house = house().await;
    let form = "kind=require-approval&target=desk.ask&caller=s-1&caller_kind=session&by=the+ops+team";
    let kept = house.submit(ANN, "/factory/policies/templates", form).await;
    assert_eq!(kept.status, 303, "{kept:?}");
    let page = house.page(kept.header("location")).await.body;
    assert!(page.contains("the ops team") && page.contains("Session::&quot;s-1&quot;"), "{page}");
}
