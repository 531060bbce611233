//! Page of tokens.

use rialto_testkit::peer::ScriptedPeer;

use crate::fixture::{ANN, Fixture};

#[tokio::test]
async fn an_invalid_expiry_creates_no_token_and_the_form_keeps_its_values() {
    let fixture = Fixture::new(ScriptedPeer::echo()).await;
    for days in ["soon", "0", "-1", "1.5"] {
        let form = format!("caller=carl&days={days}&scope=admin");
        let refused = fixture.submit(ANN, "/factory/tokens", &form).await;
        assert!(refused.status == 422 && refused.body.contains("days: enter a number of days, 1 or more"));
        assert!(
            refused.body.contains("value=\"carl\"") && refused.body.contains(&format!("value=\"{days}\""))
        );
        assert!(refused.body.contains("value=\"admin\" checked"), "{refused:?}");
        assert!(!refused.body.contains("value=\"call\" checked"), "{refused:?}");
    }
    let body = r#"{"caller":"carl","expiresDays":0}"#;
    assert_eq!(fixture.api(ANN, "POST", "/api/v1/tokens", body).await.status, 400);
    assert_eq!(fixture.store.tokens().await.unwrap().len(), 2, "those of ann and bob");
}

#[tokio::test]
async fn a_token_has_only_the_selected_scopes() {
    let fixture = Fixture::new(ScriptedPeer::echo()).await;
    let refused = fixture.submit(ANN, "/factory/tokens", "caller=carl").await;
    assert!(refused.status == 422 && refused.body.contains("scopes: select at least one"), "{refused:?}");
    let made = fixture.submit(ANN, "/factory/tokens", "caller=carl&days=7&scope=discover").await;
    assert!(made.status == 201 && made.body.contains("rialto_fresh"), "{made:?}");
    assert!(made.body.contains("value=\"call\" checked"), "the form is for the next one: {made:?}");
    assert_eq!(fixture.api("rialto_fresh", "GET", "/api/v1/agents", "").await.status, 200);
    assert_eq!(fixture.api("rialto_fresh", "GET", "/api/v1/tasks", "").await.status, 403);
}
