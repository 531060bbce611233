//! Open responses end with their token.

use std::time::Duration;

use http::StatusCode;
use rialto_model::store::{Token, TokenStore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{
    fixture::{Fixture, noon, token},
    idp::{Idp, Pen},
    server::text,
};

async fn fixture(tokens: &[Token]) -> Fixture {
    let fixture = Fixture::with(tokens).await;
    let bearers = fixture.bearers.clone();
    tokio::spawn(async move { bearers.follow_revocations(CancellationToken::new()).await });
    fixture
}

#[tokio::test]
async fn an_open_stream_ends_when_its_token_is_revoked() {
    let fixture = fixture(&[token("a", "ann"), token("b", "bob")]).await;
    let stream = fixture.visit("localhost", "/mcp/endless", Some("a")).await;
    assert_eq!(stream.status, StatusCode::OK);
    fixture.store.revoke_token("ann", noon()).await.unwrap();
    let read = timeout(Duration::from_secs(5), text(stream)).await;
    assert_eq!(read.expect("the stream ends within 5 s"), "first ");
    let others = fixture.visit("localhost", "/mcp/endless", Some("b")).await;
    assert!(timeout(Duration::from_secs(2), text(others)).await.is_err(), "bob's goes on");
}

#[tokio::test]
async fn an_open_stream_ends_when_its_token_expires() {
    let end = noon() + Duration::from_secs(60);
    let fixture = fixture(&[Token { expires_at: Some(end), ..token("a", "ann") }]).await;
    let pass = async { fixture.clock.advance(61) };
    let stream = fixture.visit("localhost", "/mcp/endless", Some("a")).await;
    let (read, ()) = tokio::join!(timeout(Duration::from_secs(5), text(stream)), pass);
    assert_eq!(read.expect("the stream ends within 5 s"), "first ");
}

#[tokio::test]
async fn an_open_stream_ends_with_the_signed_token_it_was_opened_with() {
    let idp = Idp::with(&[Pen::RSA]).await;
    let fixture = Fixture::trusting(vec![idp.config()], &[]).await;
    let bearers = fixture.bearers.clone();
    tokio::spawn(async move { bearers.follow_revocations(CancellationToken::new()).await });
    let now = noon().as_second();
    let (short, long) = (idp.ann_with("exp", now + 10), idp.ann_with("exp", now + 600));
    let open = async |claims| fixture.visit("localhost", "/mcp/endless", Some(&Pen::RSA.sign(claims))).await;
    let (ends, stays) = (open(&short).await, open(&long).await);
    assert_eq!((ends.status, stays.status), (StatusCode::OK, StatusCode::OK));
    // Clocks may differ by a minute, as for requests.
    fixture.clock.advance(69);
    let mut ends = Box::pin(text(ends));
    assert!(timeout(Duration::from_secs(2), &mut ends).await.is_err(), "it is good for one more second");
    fixture.clock.advance(1);
    let read = timeout(Duration::from_secs(5), ends).await;
    assert_eq!(read.expect("the stream ends within 5 s"), "first ");
    assert!(timeout(Duration::from_secs(1), text(stays)).await.is_err(), "the other goes on");
}

#[tokio::test]
async fn a_request_under_way_is_refused_when_its_token_is_revoked_meanwhile() {
    let fixture = fixture(&[token("a", "ann"), token("b", "bob")]).await;
    let revoke = async {
        fixture.store.revoke_token("ann", noon()).await.unwrap();
    };
    let (ann, bob, ()) = tokio::join!(
        fixture.visit("localhost", "/mcp/slow", Some("a")),
        fixture.visit("localhost", "/mcp/slow", Some("b")),
        async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            revoke.await;
        }
    );
    assert_eq!((ann.status, bob.status), (StatusCode::UNAUTHORIZED, StatusCode::OK));
    assert_eq!(text(bob).await, "late");
}
