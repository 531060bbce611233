//! OAuth metadata for clients, and scopes of callers.

use http::{StatusCode, header};
use rialto_http_client::fetch::FetchResponse;
use rialto_http_server::public_url::PublicUrl;
use rialto_model::{
    store::Token,
    token_scopes::{TokenScope, TokenScopes},
};
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, token},
    idp::{Idp, Pen},
    server::{fetch, get, text},
};

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

fn challenge(answer: &FetchResponse) -> String {
    answer.headers[header::WWW_AUTHENTICATE].to_str().unwrap().to_owned()
}

async fn read(answer: FetchResponse) -> Value {
    assert_eq!(answer.status, StatusCode::OK);
    serde_json::from_str(&text(answer).await).unwrap()
}

#[tokio::test]
async fn the_way_in_is_public_and_names_the_issuers() {
    let idp = Idp::with(&[Pen::RSA]).await;
    let fixture = Fixture::trusting(vec![idp.config()], &[]).await;
    let mut expected = json!({
        "resource": "http://localhost:8420",
        "resource_name": "Rialto",
        "scopes_supported": ["call", "discover", "admin"],
        "bearer_methods_supported": ["header"],
        "authorization_servers": [idp.url()],
    });
    assert_eq!(read(fixture.visit("localhost:8420", WELL_KNOWN, None).await).await, expected);
    for path in ["/mcp", "/orgs/acme/mcp", "/acme/web/mcp"] {
        expected["resource"] = json!(format!("http://localhost:8420{path}"));
        let told = fixture.visit("localhost:8420", &format!("{WELL_KNOWN}{path}"), None).await;
        assert_eq!(read(told).await, expected, "{path}");
    }
    assert_eq!(
        fixture.visit("localhost", &format!("{WELL_KNOWN}/else"), None).await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(fixture.visit("evil.example", WELL_KNOWN, None).await.status, StatusCode::MISDIRECTED_REQUEST);
}

#[tokio::test]
async fn without_issuers_none_are_named() {
    let fixture = Fixture::with(&[]).await;
    let told = read(fixture.visit("localhost", WELL_KNOWN, None).await).await;
    assert_eq!(told.get("authorization_servers"), None);
}

#[tokio::test]
async fn a_refusal_says_where_to_read_on() {
    let fixture = Fixture::with(&[]).await;
    for (path, resource) in [
        ("/mcp", "/mcp"),
        ("/mcp/more", "/mcp"),
        ("/orgs/acme/mcp", "/orgs/acme/mcp"),
        ("/acme/web/mcp/more", "/acme/web/mcp"),
        ("/", ""),
        ("/nowhere", ""),
    ] {
        let answer = fixture.visit("localhost:8420", path, None).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        let expected = format!("resource_metadata=\"http://localhost:8420{WELL_KNOWN}{resource}\"");
        assert!(challenge(&answer).contains(&expected), "{path}: {}", challenge(&answer));
    }
    let answer = fixture.visit("localhost", "/mcp", None).await;
    assert!(challenge(&answer).ends_with("scope=\"call discover\""), "{}", challenge(&answer));
}

#[tokio::test]
async fn only_a_proxy_that_is_trusted_says_how_requests_came() {
    for (trust_proxy, scheme) in [(false, "http"), (true, "https")] {
        let fixture = Fixture::at(PublicUrl { trust_proxy, ..PublicUrl::default() }, Vec::new(), &[]).await;
        let request = get(fixture.server.uri(&format!("{WELL_KNOWN}/mcp")))
            .header("x-forwarded-proto".parse().unwrap(), "https".parse().unwrap());
        let told = read(fetch(request).await.unwrap()).await;
        assert_eq!(told["resource"], format!("{scheme}://{}/mcp", fixture.server.address));
    }
    let site =
        PublicUrl { external_url: Some("https://out.example/rialto".to_owned()), ..PublicUrl::default() };
    let fixture = Fixture::at(site, Vec::new(), &[]).await;
    let answer = fixture.visit("localhost", "/mcp", None).await;
    assert!(challenge(&answer).contains(&format!("\"https://out.example/rialto{WELL_KNOWN}/mcp\"")));
}

#[tokio::test]
async fn a_token_in_the_address_is_refused_even_a_good_one() {
    let fixture = Fixture::with(&[token("a", "ann")]).await;
    for query in ["access_token=a", "x=1&access_token=a"] {
        for shown in [None, Some("a")] {
            let answer = fixture.visit("localhost", &format!("/mcp?{query}"), shown).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}");
            assert!(challenge(&answer).contains("error=\"invalid_request\""));
        }
    }
    assert_eq!(fixture.visit("localhost", "/mcp?token=a", None).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_token_is_valid_for_its_scopes_only() {
    let with = |name: &str, rights: TokenScopes| Token { rights, ..token(name, name) };
    let fixture = Fixture::with(&[
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
        for (path, is_valid, scope) in
            [("/mcp", mcp, "call discover"), ("/rules", rules, "admin"), ("/", other, "call discover admin")]
        {
            let answer = fixture.visit("localhost", path, Some(name)).await;
            if is_valid {
                assert_eq!(answer.status, StatusCode::OK, "{name} at {path}");
                continue;
            }
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{name} at {path}");
            let said = challenge(&answer);
            assert!(said.contains("error=\"insufficient_scope\""), "{said}");
            assert!(said.contains(&format!("scope=\"{scope}\"")), "{said}");
        }
    }
    let answer = fixture.visit("localhost", "/default/web/mcp", Some("rule")).await;
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
    let fixture = Fixture::trusting(vec![config], &[]).await;
    for (scope, rules) in [
        (json!("openid call"), StatusCode::FORBIDDEN),
        (json!("call admin"), StatusCode::OK),
        (json!(["admin"]), StatusCode::OK),
        (json!(7), StatusCode::FORBIDDEN),
    ] {
        let token = Pen::RSA.sign(&idp.ann_with("scope", scope.clone()));
        assert_eq!(fixture.visit("localhost", "/rules", Some(&token)).await.status, rules, "{scope}");
    }
    let mut silent = idp.ann();
    silent.as_object_mut().unwrap().remove("scope");
    let token = Pen::RSA.sign(&silent);
    assert_eq!(fixture.visit("localhost", "/rules", Some(&token)).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_path_without_checks_is_open_to_any_host() {
    let fixture = Fixture::with(&[]).await;
    assert_eq!(text(fixture.visit("10.0.0.7", "/open", None).await).await, "open");
    assert_eq!(fixture.visit("10.0.0.7", "/open/more", None).await.status, StatusCode::MISDIRECTED_REQUEST);
}
