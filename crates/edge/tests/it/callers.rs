//! Authentication with our own tokens.

use http::{StatusCode, header};
use rialto_http_server::auth::Authentication;
use rialto_model::{
    call::Caller,
    clock::Clock,
    store::{Token, TokenStore},
};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::{
    fixture::{Fixture, serve, token},
    server::{fetch, get, read_head, text},
};

/// Head of the response to a raw request.
async fn head_of(fixture: &Fixture, request: &str) -> String {
    let mut stream = TcpStream::connect(fixture.server.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    read_head(&mut stream).await.unwrap()
}

#[tokio::test]
async fn a_known_token_is_its_caller() {
    let fixture = Fixture::with(&[token("a", "ann"), token("b", "bob")]).await;
    assert_eq!(text(fixture.ask("Bearer b").await).await, "bob");
    assert_eq!(text(fixture.ask("bearer a").await).await, "ann");
}

#[tokio::test]
async fn a_caller_without_a_token_receives_what_to_send() {
    let fixture = Fixture::with(&[]).await;
    let answer = fetch(get(fixture.server.uri("/"))).await.unwrap();
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    let challenge = answer.headers[header::WWW_AUTHENTICATE].to_str().unwrap();
    assert!(challenge.starts_with("Bearer realm=\"rialto\", resource_metadata=\"http://"), "{challenge}");
    assert!(!challenge.contains("error"), "{challenge}");
    assert!(text(answer).await.contains("Authorization: Bearer"));
}

#[tokio::test]
async fn an_unknown_token_is_refused_and_not_repeated() {
    let fixture = Fixture::with(&[token("a", "ann")]).await;
    for shown in ["Bearer guess", "Bearer ", "Basic a", "a", "Bearer a b", "Bearer"] {
        let answer = fixture.ask(shown).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{shown}");
        assert!(answer.headers[header::WWW_AUTHENTICATE].to_str().unwrap().contains("invalid_token"));
        assert!(!text(answer).await.contains("guess"));
    }
}

#[tokio::test]
async fn two_tokens_are_none() {
    let fixture = Fixture::with(&[token("a", "ann"), token("b", "bob")]).await;
    let twice =
        "GET / HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer a\r\nauthorization: Bearer b\r\n\r\n";
    assert!(head_of(&fixture, twice).await.starts_with("HTTP/1.1 400"));
}

#[tokio::test]
async fn an_expired_token_is_refused_and_says_since_when() {
    let end = "2026-08-01T12:01:00Z".parse().unwrap();
    let fixture = Fixture::with(&[Token { expires_at: Some(end), ..token("a", "ann") }]).await;
    fixture.clock.advance(59);
    assert_eq!(fixture.status("Bearer a").await, StatusCode::OK);
    fixture.clock.advance(1);
    let answer = fixture.ask("Bearer a").await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    let challenge = answer.headers[header::WWW_AUTHENTICATE].to_str().unwrap();
    let expected = "error=\"invalid_token\", error_description=\"this token expired at 2026-08-01 12:01:00 UTC; \
                    make a new one with `rialto tokens create NAME`\"";
    assert!(challenge.contains(expected), "{challenge}");
}

#[tokio::test]
async fn a_revoked_token_is_refused_at_the_very_next_request() {
    let fixture = Fixture::with(&[token("a", "ann"), token("b", "bob")]).await;
    assert_eq!(fixture.status("Bearer a").await, StatusCode::OK);
    fixture.store.revoke_token("ann", fixture.clock.now()).await.unwrap();
    let answer = fixture.ask("Bearer a").await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert!(text(answer).await.contains("revoked"));
    assert_eq!(fixture.status("Bearer b").await, StatusCode::OK);
}

#[tokio::test]
async fn a_new_token_counts_for_the_very_next_request() {
    let fixture = Fixture::with(&[]).await;
    assert_eq!(fixture.status("Bearer a").await, StatusCode::UNAUTHORIZED);
    fixture.store.put_token(&token("a", "ann")).await.unwrap();
    assert_eq!(fixture.status("Bearer a").await, StatusCode::OK);
}

#[tokio::test]
async fn without_authentication_there_is_one_caller() {
    let server = serve(Authentication::Open(Caller::user("me"))).await;
    assert_eq!(text(fetch(get(server.uri("/"))).await.unwrap()).await, "me");
}

#[tokio::test]
async fn a_request_for_another_host_learns_nothing_about_tokens() {
    let fixture = Fixture::with(&[]).await;
    for path in ["/", "/nowhere"] {
        let stranger = format!("GET {path} HTTP/1.1\r\nhost: evil.example\r\n\r\n");
        assert!(head_of(&fixture, &stranger).await.starts_with("HTTP/1.1 421"));
        let unknown = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        assert!(head_of(&fixture, &unknown).await.starts_with("HTTP/1.1 401"));
    }
}

#[tokio::test]
async fn without_its_store_no_token_is_accepted() {
    let fixture = Fixture::with(&[token("a", "ann")]).await;
    fixture.store.put_token(&token("b", "bob")).await.unwrap();
    fixture.store.close().await;
    assert_eq!(fixture.status("Bearer a").await, StatusCode::SERVICE_UNAVAILABLE);
}
