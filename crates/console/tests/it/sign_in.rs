//! Sign-in with a token, session cookies, and protection against requests of other sites.

use rialto_model::clock::{Clock, SystemClock};
use rialto_testkit::peer::ScriptedPeer;

use crate::fixture::{ANN, Fixture};

const HTML: (&str, &str) = ("accept", "text/html");
const OURS: (&str, &str) = ("origin", "http://localhost");

#[tokio::test]
async fn a_browser_without_a_session_is_redirected_to_sign_in_and_back() {
    let fixture = Fixture::new(ScriptedPeer::echo()).await;
    let led = fixture.send("GET", "/factory/agents?q=x&health=healthy", &[HTML], "").await;
    assert_eq!(led.status, 303);
    assert_eq!(
        led.header("location"),
        "/factory/sign-in?next=%2Ffactory%2Fagents%3Fq%3Dx%26health%3Dhealthy"
    );
    let page = fixture.send("GET", led.header("location"), &[HTML], "").await;
    assert_eq!(page.status, 200);
    assert!(page.body.contains("value=\"/factory/agents?q=x&amp;health=healthy\""), "{}", page.body);
    let greeted = fixture.send("GET", "/", &[HTML], "").await;
    assert_eq!((greeted.status, greeted.header("location")), (303, "/factory"));
    let program = fixture.send("GET", "/factory", &[("accept", "application/json")], "").await;
    assert_eq!(program.status, 401, "a program is told, not led");
    assert_eq!(fixture.send("GET", "/", &[], "").await.status, 401, "so it is at the root");
}

#[tokio::test]
async fn a_session_ends_with_the_next_request_after_its_token_is_revoked() {
    let fixture = Fixture::new(ScriptedPeer::echo()).await;
    let wrong = fixture.send("POST", "/factory/sign-in", &[OURS], "token=wrong").await;
    assert!(wrong.status == 401 && wrong.body.contains("not known"), "{wrong:?}");
    let form = format!("token={}&next=https://evil.example/factory", ANN.replace(' ', "+"));
    let answer = fixture.send("POST", "/factory/sign-in", &[OURS], &form).await;
    assert_eq!(answer.header("location"), "/factory", "nobody is led elsewhere");
    let cookie = answer.header("set-cookie");
    assert!(cookie.ends_with("; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let page = fixture.send("GET", "/factory", &[HTML, ("cookie", &cookie)], "").await;
    assert!(page.status == 200 && page.body.contains("Signed in as"), "{page:?}");
    assert!(!page.body.contains(ANN), "no page repeats a token");
    assert_eq!(fixture.send("GET", "/api/v1/tokens", &[("cookie", &cookie)], "").await.status, 200);
    assert_eq!(
        fixture.send("GET", "/mcp", &[("cookie", &cookie)], "").await.status,
        401,
        "programs' doors do not look at it"
    );
    fixture.store.revoke_token("tok_ann", SystemClock.now()).await.unwrap();
    let revoked = fixture.send("GET", "/factory", &[HTML, ("cookie", &cookie)], "").await;
    assert_eq!(revoked.status, 303, "{revoked:?}");
}

#[tokio::test]
async fn a_form_needs_the_same_origin_and_a_csrf_token() {
    let fixture = Fixture::new(ScriptedPeer::echo()).await;
    let cookie = fixture.sign_in(ANN).await;
    let signed = ("cookie", cookie.as_str());
    let csrf = fixture.send("GET", "/factory", &[HTML, signed], "").await.csrf();
    let form = format!("csrf={csrf}&caller=carl&scope=call");
    let made = fixture.send("POST", "/factory/tokens", &[HTML, signed, OURS], &form).await;
    assert!(made.status == 201 && made.body.contains("rialto_fresh"), "{made:?}");
    for (headers, form) in [
        (vec![HTML, signed, OURS], "csrf=guess&caller=carl"),
        (vec![HTML, signed, OURS], "caller=carl"),
        (vec![HTML, signed, ("origin", "http://localhost:3000")], form.as_str()),
        (vec![HTML, signed, ("origin", "http://localhost"), ("sec-fetch-site", "cross-site")], form.as_str()),
        (vec![HTML, signed], form.as_str()),
    ] {
        let refused = fixture.send("POST", "/factory/tokens", &headers, form).await;
        assert_eq!(refused.status, 403, "{headers:?} {form} {refused:?}");
    }
    let api = |proof| {
        let headers = [signed, OURS, ("x-csrf-token", proof)];
        let body = r#"{"caller":"dora"}"#;
        let fixture = &fixture;
        async move { fixture.send("POST", "/api/v1/tokens", &headers, body).await.status }
    };
    assert_eq!((api(csrf.as_str()).await, api("guess").await), (201, 403));
    let unproven = fixture.send("POST", "/api/v1/tokens", &[signed, OURS], "{}").await;
    assert_eq!(unproven.status, 403);
    let login =
        fixture.send("POST", "/factory/sign-in", &[("origin", "http://localhost:3000")], "token=x").await;
    assert_eq!(login.status, 403, "nobody is signed in by another page");
}

#[tokio::test]
async fn a_form_needs_a_csrf_token_without_authentication_too() {
    let fixture = Fixture::open().await;
    let page = fixture.send("GET", "/factory", &[HTML], "").await;
    assert_eq!(page.status, 200);
    assert_eq!(fixture.send("GET", "/factory/sign-in", &[HTML], "").await.header("location"), "/factory");
    let csrf = page.csrf();
    let form = format!("csrf={csrf}&caller=carl&scope=call");
    assert_eq!(fixture.send("POST", "/factory/tokens", &[HTML, OURS], &form).await.status, 201);
    assert_eq!(fixture.send("POST", "/factory/tokens", &[HTML, OURS], "caller=carl").await.status, 403);
    let near = fixture
        .send("POST", "/api/v1/tokens", &[("origin", "http://localhost:3000")], r#"{"caller":"x"}"#)
        .await;
    assert_eq!(near.status, 403, "a page of another server of this machine");
    let program = fixture.send("POST", "/api/v1/tokens", &[], r#"{"caller":"x"}"#).await;
    assert_eq!(program.status, 201);
}
