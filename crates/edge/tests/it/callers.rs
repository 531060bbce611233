//! Who is let in with a token of ours.

use http::{StatusCode, header};
use rialto_edge::auth::Authentication;
use rialto_model::{
    call::Caller,
    clock::Clock,
    store::{Token, TokenStore},
};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::{
    house::{House, serve, token},
    server::{fetch, get, heard, text},
};

/// What answers `request`, as it stands, up to the body.
async fn head_of(house: &House, request: &str) -> String {
    let mut stream = TcpStream::connect(house.server.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    heard(&mut stream).await.unwrap()
}

#[tokio::test]
async fn a_known_token_is_its_caller() {
    let house = House::with(&[token("a", "ann"), token("b", "bob")]).await;
    assert_eq!(text(house.ask("Bearer b").await).await, "bob");
    assert_eq!(text(house.ask("bearer a").await).await, "ann");
}

#[tokio::test]
async fn a_caller_without_a_token_is_told_what_to_send() {
    let house = House::with(&[]).await;
    let answer = fetch(get(house.server.uri("/"))).await.unwrap();
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    let challenge = answer.headers[header::WWW_AUTHENTICATE].to_str().unwrap();
    assert!(challenge.starts_with("Bearer realm=\"rialto\", resource_metadata=\"http://"), "{challenge}");
    assert!(!challenge.contains("error"), "{challenge}");
    assert!(text(answer).await.contains("Authorization: Bearer"));
}

#[tokio::test]
async fn an_unknown_token_is_refused_and_not_repeated() {
    let house = House::with(&[token("a", "ann")]).await;
    for shown in ["Bearer guess", "Bearer ", "Basic a", "a", "Bearer a b", "Bearer"] {
        let answer = house.ask(shown).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{shown}");
        assert!(answer.headers[header::WWW_AUTHENTICATE].to_str().unwrap().contains("invalid_token"));
        assert!(!text(answer).await.contains("guess"));
    }
}

#[tokio::test]
async fn two_tokens_are_none() {
    let house = House::with(&[token("a", "ann"), token("b", "bob")]).await;
    let twice =
        "GET / HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer a\r\nauthorization: Bearer b\r\n\r\n";
    assert!(head_of(&house, twice).await.starts_with("HTTP/1.1 400"));
}

#[tokio::test]
async fn an_expired_token_is_refused_and_says_since_when() {
    let end = "2026-08-01T12:01:00Z".parse().unwrap();
    let house = House::with(&[Token { expires_at: Some(end), ..token("a", "ann") }]).await;
    house.clock.pass(59);
    assert_eq!(house.status("Bearer a").await, StatusCode::OK);
    house.clock.pass(1);
    let answer = house.ask("Bearer a").await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    let challenge = answer.headers[header::WWW_AUTHENTICATE].to_str().unwrap();
    let expected = "error=\"invalid_token\", error_description=\"this token expired at 2026-08-01 12:01:00 UTC; \
                    make a new one with `rialto tokens create NAME`\"";
    assert!(challenge.contains(expected), "{challenge}");
}

#[tokio::test]
async fn a_revoked_token_is_refused_at_the_very_next_request() {
    let house = House::with(&[token("a", "ann"), token("b", "bob")]).await;
    assert_eq!(house.status("Bearer a").await, StatusCode::OK);
    house.store.revoke_token("ann", house.clock.now()).await.unwrap();
    let answer = house.ask("Bearer a").await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert!(text(answer).await.contains("revoked"));
    assert_eq!(house.status("Bearer b").await, StatusCode::OK);
}

#[tokio::test]
async fn a_new_token_counts_for_the_very_next_request() {
    let house = House::with(&[]).await;
    assert_eq!(house.status("Bearer a").await, StatusCode::UNAUTHORIZED);
    house.store.put_token(&token("a", "ann")).await.unwrap();
    assert_eq!(house.status("Bearer a").await, StatusCode::OK);
}

#[tokio::test]
async fn an_open_door_knows_one_caller() {
    let server = serve(Authentication::Open(Caller::user("me"))).await;
    assert_eq!(text(fetch(get(server.uri("/"))).await.unwrap()).await, "me");
}

#[tokio::test]
async fn a_request_for_another_host_learns_nothing_about_tokens() {
    let house = House::with(&[]).await;
    for path in ["/", "/nowhere"] {
        let stranger = format!("GET {path} HTTP/1.1\r\nhost: evil.example\r\n\r\n");
        assert!(head_of(&house, &stranger).await.starts_with("HTTP/1.1 421"));
        let unknown = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        assert!(head_of(&house, &unknown).await.starts_with("HTTP/1.1 401"));
    }
}

#[tokio::test]
async fn without_its_store_nobody_comes_in() {
    let house = House::with(&[token("a", "ann")]).await;
    house.store.put_token(&token("b", "bob")).await.unwrap();
    house.store.close().await;
    assert_eq!(house.status("Bearer a").await, StatusCode::SERVICE_UNAVAILABLE);
}
