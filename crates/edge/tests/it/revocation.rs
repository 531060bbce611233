//! What is open for a token ends with it.

use std::time::Duration;

use http::StatusCode;
use rialto_model::store::{Token, TokenStore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{
    house::{House, noon, token},
    idp::{Idp, Pen},
    server::text,
};

async fn house(tokens: &[Token]) -> House {
    let house = House::with(tokens).await;
    let bearers = house.bearers.clone();
    tokio::spawn(async move { bearers.follow_revocations(CancellationToken::new()).await });
    house
}

#[tokio::test]
async fn an_open_stream_ends_when_its_token_is_revoked() {
    let house = house(&[token("a", "ann"), token("b", "bob")]).await;
    let stream = house.visit("localhost", "/mcp/endless", Some("a")).await;
    assert_eq!(stream.status, StatusCode::OK);
    house.store.revoke_token("ann", noon()).await.unwrap();
    let read = timeout(Duration::from_secs(5), text(stream)).await;
    assert_eq!(read.expect("the stream ends within 5 s"), "first ");
    let others = house.visit("localhost", "/mcp/endless", Some("b")).await;
    assert!(timeout(Duration::from_secs(2), text(others)).await.is_err(), "bob's goes on");
}

#[tokio::test]
async fn an_open_stream_ends_when_its_token_expires() {
    let end = noon() + Duration::from_secs(60);
    let house = house(&[Token { expires_at: Some(end), ..token("a", "ann") }]).await;
    let pass = async { house.clock.pass(61) };
    let stream = house.visit("localhost", "/mcp/endless", Some("a")).await;
    let (read, ()) = tokio::join!(timeout(Duration::from_secs(5), text(stream)), pass);
    assert_eq!(read.expect("the stream ends within 5 s"), "first ");
}

#[tokio::test]
async fn an_open_stream_ends_with_the_signed_token_it_was_opened_with() {
    let idp = Idp::with(&[Pen::RSA]).await;
    let house = House::trusting(vec![idp.config()], &[]).await;
    let bearers = house.bearers.clone();
    tokio::spawn(async move { bearers.follow_revocations(CancellationToken::new()).await });
    let now = noon().as_second();
    let (short, long) = (idp.ann_with("exp", now + 10), idp.ann_with("exp", now + 600));
    let open = async |claims| house.visit("localhost", "/mcp/endless", Some(&Pen::RSA.sign(claims))).await;
    let (ends, stays) = (open(&short).await, open(&long).await);
    assert_eq!((ends.status, stays.status), (StatusCode::OK, StatusCode::OK));
    // Clocks may differ by a minute, as for requests.
    house.clock.pass(69);
    let mut ends = Box::pin(text(ends));
    assert!(timeout(Duration::from_secs(2), &mut ends).await.is_err(), "it is good for one more second");
    house.clock.pass(1);
    let read = timeout(Duration::from_secs(5), ends).await;
    assert_eq!(read.expect("the stream ends within 5 s"), "first ");
    assert!(timeout(Duration::from_secs(1), text(stays)).await.is_err(), "the other goes on");
}

#[tokio::test]
async fn a_request_under_way_is_refused_when_its_token_is_revoked_meanwhile() {
    let house = house(&[token("a", "ann"), token("b", "bob")]).await;
    let revoke = async {
        house.store.revoke_token("ann", noon()).await.unwrap();
    };
    let (ann, bob, ()) = tokio::join!(
        house.visit("localhost", "/mcp/slow", Some("a")),
        house.visit("localhost", "/mcp/slow", Some("b")),
        async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            revoke.await;
        }
    );
    assert_eq!((ann.status, bob.status), (StatusCode::UNAUTHORIZED, StatusCode::OK));
    assert_eq!(text(bob).await, "late");
}
