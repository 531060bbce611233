//! Requests that are sent again, and those that never are.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use http::{StatusCode, header};
use rialto_a2a::backend::Config;
use rialto_http_client::fetch::{FetchError, FetchRequest, FetchResponse};
use rialto_model::{
    agent::Agent,
    call::Call,
    card::{Binding, Dialect, Interface, Skill},
    event::Event,
    failure::FailureKind,
    json::Json,
    presence::CallerPresence,
};

use crate::{
    rows::{Desk, agent, call, failure, quick, row},
    script::{Answer, Script, result},
};

const DONE: &str = r#"{"kind":"task","id":"task-1","contextId":"c","status":{"state":"completed"}}"#;

fn weather() -> Arc<Agent> {
    let url = "http://127.0.0.1:9/".to_owned();
    let interface =
        Interface { url: url.clone(), binding: Binding::JsonRpc, dialect: Dialect::V03, tenant: None };
    Arc::new(row(&url, vec![interface], false))
}

/// The same call of a skill that may be run twice.
fn repeatable(mut call: Call) -> Call {
    let mut skill = Skill::clone(call.target.skill.as_ref().unwrap());
    skill.extra.push("annotations", Json::parse(r#"{"idempotentHint":true}"#).unwrap());
    call.target.skill = Some(Arc::new(skill));
    call
}

/// Makes a call whose first requests end like this, and counts the requests. Those after them are answered.
async fn count(
    call: Call,
    failing: usize,
    ends: fn() -> Result<FetchResponse, FetchError>,
) -> (Vec<Event>, usize) {
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let fetch = move |request: FetchRequest| {
        if counted.fetch_add(1, Ordering::SeqCst) < failing {
            return ends();
        }
        let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        let body = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{DONE}}}"#, body["id"]);
        let json = http::HeaderValue::from_static("application/json");
        Ok(FetchResponse::fixed(StatusCode::OK, body).header(header::CONTENT_TYPE, json))
    };
    let events = Desk::over(quick(), Arc::new(fetch)).send(call).await;
    (events, requests.load(Ordering::SeqCst))
}

fn refused() -> Result<FetchResponse, FetchError> {
    Err(FetchError::NotSent("connection refused".into()))
}

fn broken() -> Result<FetchResponse, FetchError> {
    Err(FetchError::Broken("hung up".into()))
}

fn unavailable() -> Result<FetchResponse, FetchError> {
    Ok(FetchResponse::fixed(StatusCode::SERVICE_UNAVAILABLE, ""))
}

#[tokio::test]
async fn a_request_that_was_never_sent_is_sent_again_and_its_caller_sees_no_error() {
    let (events, requests) = count(call(&weather()), 3, refused).await;
    assert_eq!((events.last().unwrap().name(), requests), ("finished", 4));
    let (events, requests) =
        count(call(&weather()), 2, || Ok(FetchResponse::fixed(StatusCode::TOO_MANY_REQUESTS, ""))).await;
    assert_eq!((events.last().unwrap().name(), requests), ("finished", 3), "429 is not accepted either");
}

#[tokio::test]
async fn attempts_are_bounded() {
    let (events, requests) = count(call(&weather()), usize::MAX, refused).await;
    assert!(failure(&events).is_not_sent());
    assert_eq!(requests, 5);
}

#[tokio::test]
async fn nothing_is_sent_again_after_the_callers_deadline() {
    let late = Call { presence: CallerPresence::until(Instant::now()), ..call(&weather()) };
    let (events, requests) = count(late, usize::MAX, refused).await;
    assert_eq!((failure(&events).kind, requests), (FailureKind::PeerUnreachable, 1));
}

#[tokio::test]
async fn a_request_that_may_have_arrived_is_sent_again_only_if_its_skill_may_run_twice() {
    for ends in [broken, unavailable] {
        let (events, requests) = count(call(&weather()), 1, ends).await;
        assert_eq!((failure(&events).kind, requests), (FailureKind::PeerUnreachable, 1));
        let (events, requests) = count(repeatable(call(&weather())), 1, ends).await;
        assert_eq!((events.last().unwrap().name(), requests), ("finished", 2));
    }
}

#[tokio::test]
async fn an_address_that_may_not_be_called_is_not_tried_again() {
    let (_, requests) = count(call(&weather()), usize::MAX, || Err(FetchError::Forbidden("no".into()))).await;
    assert_eq!(requests, 1);
}

#[tokio::test]
async fn a_fault_of_this_machine_is_not_blamed_on_the_agent() {
    let ours = || Err(FetchError::Local("this server has no file descriptors left; raise ulimit -n".into()));
    let (events, _) = count(call(&weather()), usize::MAX, ours).await;
    let failure = failure(&events);
    assert_eq!(failure.kind, FailureKind::Internal);
    assert_eq!(
        failure.message,
        "the agent was not called: this server has no file descriptors left; raise ulimit -n"
    );
}

#[tokio::test]
async fn a_call_takes_the_turn_of_one_whose_caller_has_left() {
    let script = Script::start([Answer::Silence, result(DONE)]).await;
    let agent = agent(&script, Dialect::V03, Binding::JsonRpc);
    let desk = Desk::with(Config { max_in_flight: 1, ..quick() });
    let presence = CallerPresence::default();
    let hung = Call { presence: presence.clone(), ..call(&agent) };
    let first = desk.send(hung);
    let second = async {
        script.is_asked().await;
        presence.leave();
        desk.send(call(&agent)).await
    };
    let events = tokio::select! {
        _ = first => panic!("the first call is never answered"),
        events = second => events,
        () = tokio::time::sleep(Duration::from_secs(30)) => panic!("the second call got no turn"),
    };
    assert_eq!(events.last().unwrap().name(), "finished");
}
