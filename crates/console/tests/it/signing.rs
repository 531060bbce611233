//! Signing in: a token shown once, a cookie from then on, and nothing that another page can make a browser do.

use rialto_model::clock::{Clock, SystemClock};
use rialto_testkit::peer::ScriptedPeer;

use crate::house::{ANN, House};

const HTML: (&str, &str) = ("accept", "text/html");
const OURS: (&str, &str) = ("origin", "http://localhost");

#[tokio::test]
async fn whoever_is_not_in_is_led_to_sign_in_and_back() {
    let house = House::new(ScriptedPeer::echo()).await;
    let led = house.send("GET", "/factory/agents?q=x&health=healthy", &[HTML], "").await;
    assert_eq!(led.status, 303);
    assert_eq!(
        led.header("location"),
        "/factory/sign-in?next=%2Ffactory%2Fagents%3Fq%3Dx%26health%3Dhealthy"
    );
    let page = house.send("GET", led.header("location"), &[HTML], "").await;
    assert_eq!(page.status, 200);
    assert!(page.body.contains("value=\"/factory/agents?q=x&amp;health=healthy\""), "{}", page.body);
    let greeted = house.send("GET", "/", &[HTML], "").await;
    assert_eq!((greeted.status, greeted.header("location")), (303, "/factory"));
    let program = house.send("GET", "/factory", &[("accept", "application/json")], "").await;
    assert_eq!(program.status, 401, "a program is told, not led");
    assert_eq!(house.send("GET", "/", &[], "").await.status, 401, "so it is at the root");
}

#[tokio::test]
async fn a_token_is_shown_once_and_revoked_with_the_next_request() {
    let house = House::new(ScriptedPeer::echo()).await;
    let wrong = house.send("POST", "/factory/sign-in", &[OURS], "token=wrong").await;
    assert!(wrong.status == 401 && wrong.body.contains("not known"), "{wrong:?}");
    let form = format!("token={}&next=https://evil.example/factory", ANN.replace(' ', "+"));
    let answer = house.send("POST", "/factory/sign-in", &[OURS], &form).await;
    assert_eq!(answer.header("location"), "/factory", "nobody is led elsewhere");
    let cookie = answer.header("set-cookie");
    assert!(cookie.ends_with("; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let page = house.send("GET", "/factory", &[HTML, ("cookie", &cookie)], "").await;
    assert!(page.status == 200 && page.body.contains("Signed in as"), "{page:?}");
    assert!(!page.body.contains(ANN), "no page repeats a token");
    assert_eq!(house.send("GET", "/api/v1/tokens", &[("cookie", &cookie)], "").await.status, 200);
    assert_eq!(
        house.send("GET", "/mcp", &[("cookie", &cookie)], "").await.status,
        401,
        "programs' doors do not look at it"
    );
    house.store.revoke_token("tok_ann", SystemClock.now()).await.unwrap();
    let revoked = house.send("GET", "/factory", &[HTML, ("cookie", &cookie)], "").await;
    assert_eq!(revoked.status, 303, "{revoked:?}");
}

#[tokio::test]
async fn a_form_must_come_from_a_page_of_ours_and_repeat_its_code() {
    let house = House::new(ScriptedPeer::echo()).await;
    let cookie = house.cookie(ANN).await;
    let signed = ("cookie", cookie.as_str());
    let csrf = house.send("GET", "/factory", &[HTML, signed], "").await.csrf();
    let form = format!("csrf={csrf}&caller=carl&scope=call");
    let made = house.send("POST", "/factory/tokens", &[HTML, signed, OURS], &form).await;
    assert!(made.status == 201 && made.body.contains("rialto_fresh"), "{made:?}");
    for (headers, form) in [
        (vec![HTML, signed, OURS], "csrf=guess&caller=carl"),
        (vec![HTML, signed, OURS], "caller=carl"),
        (vec![HTML, signed, ("origin", "http://localhost:3000")], form.as_str()),
        (vec![HTML, signed, ("origin", "http://localhost"), ("sec-fetch-site", "cross-site")], form.as_str()),
        (vec![HTML, signed], form.as_str()),
    ] {
        let refused = house.send("POST", "/factory/tokens", &headers, form).await;
        assert_eq!(refused.status, 403, "{headers:?} {form} {refused:?}");
    }
    let api = |proof| {
        let headers = [signed, OURS, ("x-csrf-token", proof)];
        let body = r#"{"caller":"dora"}"#;
        let house = &house;
        async move { house.send("POST", "/api/v1/tokens", &headers, body).await.status }
    };
    assert_eq!((api(csrf.as_str()).await, api("guess").await), (201, 403));
    let unproven = house.send("POST", "/api/v1/tokens", &[signed, OURS], "{}").await;
    assert_eq!(unproven.status, 403);
    let login =
        house.send("POST", "/factory/sign-in", &[("origin", "http://localhost:3000")], "token=x").await;
    assert_eq!(login.status, 403, "nobody is signed in by another page");
}

#[tokio::test]
async fn where_nobody_signs_in_forms_still_prove_themselves() {
    let house = House::open().await;
    let page = house.send("GET", "/factory", &[HTML], "").await;
    assert_eq!(page.status, 200);
    assert_eq!(house.send("GET", "/factory/sign-in", &[HTML], "").await.header("location"), "/factory");
    let csrf = page.csrf();
    let form = format!("csrf={csrf}&caller=carl&scope=call");
    assert_eq!(house.send("POST", "/factory/tokens", &[HTML, OURS], &form).await.status, 201);
    assert_eq!(house.send("POST", "/factory/tokens", &[HTML, OURS], "caller=carl").await.status, 403);
    let near = house
        .send("POST", "/api/v1/tokens", &[("origin", "http://localhost:3000")], r#"{"caller":"x"}"#)
        .await;
    assert_eq!(near.status, 403, "a page of another server of this machine");
    let program = house.send("POST", "/api/v1/tokens", &[], r#"{"caller":"x"}"#).await;
    assert_eq!(program.status, 201);
}
