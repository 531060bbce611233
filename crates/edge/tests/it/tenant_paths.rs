//! Orgs and projects, by path and by name.

use http::{StatusCode, header};
use rialto_http_server::{auth::Authentication, public_url::PublicUrl};
use rialto_model::{
    call::Caller,
    ids::{OrgId, ProjectId, Scope},
    store::Token,
};

use crate::{
    fixture::{Fixture, serve_at, token, visit},
    server::text,
};

fn site() -> PublicUrl {
    PublicUrl { domain: Some("bridge.example".to_owned()), ..PublicUrl::default() }
}

fn of(org: &str, project: &str, secret: &str) -> Token {
    let scope = Scope { org: OrgId::from(org), project: ProjectId::from(project) };
    Token { scope, ..token(secret, secret) }
}

async fn fixture() -> Fixture {
    Fixture::at(site(), Vec::new(), &[of("acme", "web", "ann"), of("other", "main", "bob")]).await
}

#[tokio::test]
async fn a_caller_goes_where_the_address_says_inside_its_own_org() {
    let fixture = fixture().await;
    for (host, path, expected) in [
        ("localhost", "/mcp", "ann of acme/web"),
        ("localhost", "/orgs/acme/mcp", "ann of acme/web"),
        ("localhost", "/acme/shop/mcp", "ann of acme/shop"),
        ("localhost", "/acme/shop/mcp?names=both", "ann of acme/shop"),
        ("acme.bridge.example", "/mcp", "ann of acme/web"),
        ("acme.bridge.example", "/acme/shop/mcp", "ann of acme/shop"),
    ] {
        assert_eq!(text(fixture.visit(host, path, Some("ann")).await).await, expected, "{host}{path}");
    }
}

#[tokio::test]
async fn another_org_is_not_there_whether_it_exists_or_not() {
    let fixture = fixture().await;
    let mut told = Vec::new();
    for (host, path) in [
        ("localhost", "/orgs/other/mcp"),
        ("localhost", "/other/main/mcp"),
        ("localhost", "/orgs/nobody/mcp"),
        ("localhost", "/orgs/../mcp"),
        ("other.bridge.example", "/mcp"),
        ("acme.bridge.example", "/orgs/other/mcp"),
        ("other.bridge.example", "/orgs/acme/mcp"),
        ("nobody.bridge.example", "/mcp"),
    ] {
        let answer = fixture.visit(host, path, Some("ann")).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{host}{path}");
        assert!(!answer.headers.contains_key(header::WWW_AUTHENTICATE));
        told.push(text(answer).await);
        assert_eq!(fixture.visit(host, path, None).await.status, StatusCode::UNAUTHORIZED, "{host}{path}");
    }
    told.dedup();
    assert_eq!(told.len(), 1, "{told:?}");
}

#[tokio::test]
async fn without_auth_the_address_selects_freely() {
    let server = serve_at(site(), Authentication::Open(Caller::user("me"))).await;
    for (host, path, expected) in [
        ("localhost", "/mcp", "me"),
        ("localhost", "/orgs/acme/mcp", "me of acme/main"),
        ("localhost", "/acme/shop/mcp", "me of acme/shop"),
        ("acme.bridge.example", "/mcp", "me of acme/main"),
    ] {
        assert_eq!(text(visit(&server, host, path, None).await).await, expected, "{host}{path}");
    }
    let two = visit(&server, "acme.bridge.example", "/orgs/other/mcp", None).await;
    assert_eq!(two.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_path_without_an_endpoint_selects_no_tenant() {
    let fixture = fixture().await;
    for path in ["/acme/web/else", "/acme/mcp", "/acme/web", "/orgs/acme", "/orgs/acme/else"] {
        assert_eq!(
            fixture.visit("localhost", path, Some("ann")).await.status,
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
}
