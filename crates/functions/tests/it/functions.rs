//! Functions at an address: what is sent, and what becomes of what comes back.

use std::time::Duration;

use http::StatusCode;
use rialto_http_client::{
    address::Reach,
    fetch::{FetchError, FetchResponse},
};
use rialto_model::{
    backing::{BackingEndpoint, BackingTransport, FunctionBacking, TransportSetting},
    failure::FailureKind,
    message::Content,
};
use rialto_testkit::peer::ScriptedPeer;

use crate::fixture::{Fixture, Reply, function};

async fn fixture(reply: Reply) -> Fixture {
    let fixture = Fixture::new(reply, ScriptedPeer::echo()).await;
    fixture.deploy(vec![function("run")], false).await;
    fixture
}

fn answers(status: u16, body: &'static str) -> Reply {
    Box::new(move || Ok(FetchResponse::fixed(StatusCode::from_u16(status).unwrap(), body)))
}

#[tokio::test]
async fn arguments_are_posted_and_the_body_is_the_result() {
    let fixture = fixture(answers(200, r#"{"n": 12345678901234567890.10}"#)).await;
    let task = fixture.call("run", r#"{"a": 1.50}"#).await.unwrap();
    let [artifact] = task.artifacts.as_slice() else { panic!("{task:?}") };
    assert_eq!(artifact.name.as_deref(), Some("run-result"));
    let Content::Data(data) = &artifact.parts[0].content else { panic!("{artifact:?}") };
    assert_eq!(data.get(), r#"{"n": 12345678901234567890.10}"#, "every digit is kept");
    let sent = fixture.sent.lock().unwrap();
    assert_eq!((sent[0].method.as_str(), &sent[0].body[..]), ("POST", &br#"{"a": 1.50}"#[..]));
    assert_eq!(sent[0].headers["x-key"], "key hunter2");
    assert_eq!(sent[0].headers["idempotency-key"], task.head.id.as_str());
    assert_eq!(sent[0].reach, Reach::Public);
}

#[tokio::test]
async fn a_bad_status_is_a_failure_with_an_excerpt() {
    let fixture = fixture(answers(503, "come back later")).await;
    let failure = fixture.call("run", "{}").await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::PeerFailed);
    assert_eq!(failure.message, "run answered with HTTP status 503: come back later");
    assert_eq!(failure.data.unwrap().value()["httpStatus"], 503);
}

#[tokio::test]
async fn trouble_on_the_way_says_whose_it_is() {
    for (error, kind) in [
        (FetchError::NotSent("nobody is there".into()), FailureKind::PeerUnreachable),
        (FetchError::Timeout(Duration::from_secs(1)), FailureKind::PeerTimeout),
        (FetchError::TooLarge(5), FailureKind::PeerGarbled),
    ] {
        let fixture = fixture(Box::new(move || Err(error.clone()))).await;
        assert_eq!(fixture.call("run", "{}").await.unwrap_err().kind, kind);
    }
}

#[tokio::test]
async fn a_function_whose_secret_is_missing_is_not_called() {
    let fixture = fixture(answers(200, "1")).await;
    let headers = [("X-Key".to_owned(), TransportSetting::Text("${OTHER}".into()))].into();
    let via = BackingTransport::Http(BackingEndpoint { url: "https://f.example.com".into(), headers });
    fixture.deploy(vec![FunctionBacking { via, ..function("run") }], false).await;
    let failure = fixture.call("run", "{}").await.unwrap_err();
    assert_eq!(
        failure.message,
        "run was not called: the header X-Key cannot be sent: env:OTHER is not there or empty"
    );
    assert!(fixture.sent.lock().unwrap().is_empty());
}

#[tokio::test]
async fn private_addresses_are_for_those_who_may() {
    let fixture = fixture(answers(200, "1")).await;
    fixture.deploy(vec![function("run")], true).await;
    fixture.call("run", "{}").await.unwrap();
    assert_eq!(fixture.sent.lock().unwrap()[0].reach, Reach::Private);
}
