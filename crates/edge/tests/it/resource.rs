//! What clients are told that look for a way in, and what callers may do who have found it.

use http::{StatusCode, header};
use rialto_edge::{fetch::Response, site::Site};
use rialto_model::{
    store::Token,
    token_scopes::{TokenScope, TokenScopes},
};
use serde_json::{Value, json};

use crate::{
    house::{House, token},
    idp::{Idp, Pen},
    server::{fetch, get, text},
};

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

fn challenge(answer: &Response) -> String {
    answer.headers[header::WWW_AUTHENTICATE].to_str().unwrap().to_owned()
}

async fn read(answer: Response) -> Value {
    assert_eq!(answer.status, StatusCode::OK);
    serde_json::from_str(&text(answer).await).unwrap()
}

#[tokio::test]
async fn the_way_in_is_public_and_names_the_issuers() {
    let idp = Idp::with(&[Pen::RSA]).await;
    let house = House::trusting(vec![idp.config()], &[]).await;
    let mut expected = json!({
        "resource": "http://localhost:8420",
        "resource_name": "Rialto",
        "scopes_supported": ["call", "discover", "admin"],
        "bearer_methods_supported": ["header"],
        "authorization_servers": [idp.url()],
    });
    assert_eq!(read(house.visit("localhost:8420", WELL_KNOWN, None).await).await, expected);
    for path in ["/mcp", "/orgs/acme/mcp", "/acme/web/mcp"] {
        expected["resource"] = json!(format!("http://localhost:8420{path}"));
        let told = house.visit("localhost:8420", &format!("{WELL_KNOWN}{path}"), None).await;
        assert_eq!(read(told).await, expected, "{path}");
    }
    assert_eq!(
        house.visit("localhost", &format!("{WELL_KNOWN}/else"), None).await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(house.visit("evil.example", WELL_KNOWN, None).await.status, StatusCode::MISDIRECTED_REQUEST);
}

#[tokio::test]
async fn without_issuers_none_are_named() {
    let house = House::with(&[]).await;
    let told = read(house.visit("localhost", WELL_KNOWN, None).await).await;
    assert_eq!(told.get("authorization_servers"), None);
}

#[tokio::test]
async fn a_refusal_says_where_to_read_on() {
    let house = House::with(&[]).await;
    for (path, resource) in [
        ("/mcp", "/mcp"),
        ("/mcp/more", "/mcp"),
        ("/orgs/acme/mcp", "/orgs/acme/mcp"),
        ("/acme/web/mcp/more", "/acme/web/mcp"),
        ("/", ""),
        ("/nowhere", ""),
    ] {
        let answer = house.visit("localhost:8420", path, None).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        let expected = format!("resource_metadata=\"http://localhost:8420{WELL_KNOWN}{resource}\"");
        assert!(challenge(&answer).contains(&expected), "{path}: {}", challenge(&answer));
    }
    let answer = house.visit("localhost", "/mcp", None).await;
    assert!(challenge(&answer).ends_with("scope=\"call discover\""), "{}", challenge(&answer));
}

#[tokio::test]
async fn only_a_proxy_that_is_trusted_says_how_requests_came() {
    for (trust_proxy, scheme) in [(false, "http"), (true, "https")] {
        let house = House::at(Site { trust_proxy, ..Site::default() }, Vec::new(), &[]).await;
        let request = get(house.server.uri(&format!("{WELL_KNOWN}/mcp")))
            .header("x-forwarded-proto".parse().unwrap(), "https".parse().unwrap());
        let told = read(fetch(request).await.unwrap()).await;
        assert_eq!(told["resource"], format!("{scheme}://{}/mcp", house.server.address));
    }
    let site = Site { public_url: Some("https://out.example/rialto".to_owned()), ..Site::default() };
    let house = House::at(site, Vec::new(), &[]).await;
    let answer = house.visit("localhost", "/mcp", None).await;
    assert!(challenge(&answer).contains(&format!("\"https://out.example/rialto{WELL_KNOWN}/mcp\"")));
}

#[tokio::test]
async fn a_token_in_the_address_is_refused_even_a_good_one() {
    let house = House::with(&[token("a", "ann")]).await;
    for query in ["access_token=a", "x=1&access_token=a"] {
        for shown in [None, Some("a")] {
            let answer = house.visit("localhost", &format!("/mcp?{query}"), shown).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}");
            assert!(challenge(&answer).contains("error=\"invalid_request\""));
        }
    }
    assert_eq!(house.visit("localhost", "/mcp?token=a", None).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_token_is_good_for_its_scopes_only() {
    let with = |name: &str, rights: TokenScopes| Token { rights, ..token(name, name) };
    let house = House::with(&[
        with("nothing", TokenScopes::NONE),
        with("look", TokenScopes::from_scopes([TokenScope::Discover])),
        with("call", TokenScopes::from_scopes([TokenScope::Call])),
        with("rule", TokenScopes::from_scopes([TokenScope::Admin])),
        with("all", TokenScopes::ALL),
    ])
    .await;
    for (name, mcp, rules, other) in [
        ("nothing", false, false, false),
        ("look", true, false, true),
        ("call", true, false, true),
        ("rule", false, true, true),
        ("all", true, true, true),
    ] {
        for (path, is_good, scope) in
            [("/mcp", mcp, "call discover"), ("/rules", rules, "admin"), ("/", other, "call discover admin")]
        {
            let answer = house.visit("localhost", path, Some(name)).await;
            if is_good {
                assert_eq!(answer.status, StatusCode::OK, "{name} at {path}");
                continue;
            }
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{name} at {path}");
            let said = challenge(&answer);
            assert!(said.contains("error=\"insufficient_scope\""), "{said}");
            assert!(said.contains(&format!("scope=\"{scope}\"")), "{said}");
        }
    }
    let answer = house.visit("localhost", "/default/web/mcp", Some("rule")).await;
    assert!(
        challenge(&answer).contains(&format!("{WELL_KNOWN}/default/web/mcp\"")),
        "{}",
        challenge(&answer)
    );
}

#[tokio::test]
async fn the_scopes_of_a_signed_token_are_those_its_issuer_names() {
    let idp = Idp::with(&[Pen::RSA]).await;
    let mut config = idp.config();
    config.default_scope = "admin".to_owned();
    let house = House::trusting(vec![config], &[]).await;
    for (scope, rules) in [
        (json!("openid call"), StatusCode::FORBIDDEN),
        (json!("call admin"), StatusCode::OK),
        (json!(["admin"]), StatusCode::OK),
        (json!(7), StatusCode::FORBIDDEN),
    ] {
        let token = Pen::RSA.sign(&idp.ann_with("scope", scope.clone()));
        assert_eq!(house.visit("localhost", "/rules", Some(&token)).await.status, rules, "{scope}");
    }
    let mut silent = idp.ann();
    silent.as_object_mut().unwrap().remove("scope");
    let token = Pen::RSA.sign(&silent);
    assert_eq!(house.visit("localhost", "/rules", Some(&token)).await.status, StatusCode::OK);
}

#[tokio::test]
async fn what_is_open_to_all_is_open_to_any_host() {
    let house = House::with(&[]).await;
    assert_eq!(text(house.visit("10.0.0.7", "/open", None).await).await, "open");
    assert_eq!(house.visit("10.0.0.7", "/open/more", None).await.status, StatusCode::MISDIRECTED_REQUEST);
}
