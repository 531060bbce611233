//! Agents that do not answer, or not in their protocol.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rialto_a2a::backend::Config;
use rialto_http_client::{self as client};
use rialto_model::{
    agent::Agent,
    card::{Binding, Dialect, Interface},
    credential::{Credential, SecretSource},
    failure::{Failure, FailureKind},
};

use crate::{
    rows::{Desk, agent, call, failure, quick, row, send, streaming, with_token},
    script::{Answer, Script, data, envelope, http, json, result},
};

async fn trouble(answer: Answer) -> Failure {
    let script = Script::start([answer]).await;
    failure(&send(&agent(&script, Dialect::V03, Binding::JsonRpc)).await)
}

#[tokio::test]
async fn a_dead_agent_is_unreachable() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut script = Script::start([]).await;
    script.address = free;
    let failure = failure(&send(&agent(&script, Dialect::V10, Binding::JsonRpc)).await);
    assert_eq!(failure.kind, FailureKind::PeerUnreachable);
    assert_eq!(failure.message, format!("the agent could not be reached: connection refused by {free}"));
}

#[tokio::test]
async fn an_http_error_without_the_protocol_is_unreachable_with_the_status() {
    let failure = trouble(Answer::Whole {
        status: 502,
        media_type: "text/html",
        body: "<html>\n  <h1>Bad Gateway</h1></html>".into(),
    })
    .await;
    assert_eq!(failure.kind, FailureKind::PeerUnreachable);
    assert_eq!(failure.message, "the agent answered with HTTP status 502");
    insta::assert_snapshot!(failure.data.unwrap(), @r#"{"status":502,"body":"<html> <h1>Bad Gateway</h1></html>"}"#);
}

#[tokio::test]
async fn json_of_a_framework_is_not_taken_for_the_protocol() {
    let failure = trouble(http(500, r#"{"status":500,"error":"Internal Server Error"}"#)).await;
    assert_eq!(failure.kind, FailureKind::PeerUnreachable);
    let failure = trouble(http(401, &crate::script::error_body(-32000, "who are you"))).await;
    assert_eq!(failure.kind, FailureKind::PeerUnreachable);
}

#[tokio::test]
async fn an_agent_that_has_moved_is_said_to() {
    let failure = trouble(http(307, "")).await;
    assert_eq!(
        failure.message,
        "the agent answered with HTTP status 307: it sends us to another address, which its card should name instead"
    );
}

#[tokio::test]
async fn nonsense_is_garbled_and_shown() {
    let failure = trouble(json("certainly! here is your forecast")).await;
    assert_eq!(failure.kind, FailureKind::PeerGarbled);
    insta::assert_snapshot!(failure.message, @"the agent's answer is not A2A: expected JSON, found text that is not JSON at line 1 column 1");
    insta::assert_snapshot!(failure.data.unwrap(), @r#"{"body":"certainly! here is your forecast"}"#);
}

#[tokio::test]
async fn json_without_an_envelope_is_garbled() {
    let failure = trouble(json(r#"{"sky":"clear"}"#)).await;
    assert_eq!(failure.kind, FailureKind::PeerGarbled);
    insta::assert_snapshot!(failure.message, @"the agent's answer is not A2A: expected a JSON-RPC answer, found an object with neither result nor error");
}

#[tokio::test]
async fn a_result_that_is_no_task_is_garbled() {
    let failure = trouble(result(r#"{"kind":"task"}"#)).await;
    assert_eq!(failure.kind, FailureKind::PeerGarbled);
    insta::assert_snapshot!(failure.message, @"the agent's answer is not A2A: id: expected a string, found nothing");
}

#[tokio::test]
async fn an_answer_that_is_too_large_says_how_to_raise_the_limit() {
    let script = Script::start([json(&" ".repeat(101))]).await;
    let desk = Desk::on(quick(), &client::Config { max_response_bytes: 100, ..client::Config::default() });
    let failure = failure(&desk.send(call(&agent(&script, Dialect::V03, Binding::JsonRpc))).await);
    assert_eq!(failure.kind, FailureKind::PeerGarbled);
    assert_eq!(
        failure.message,
        "the agent's answer is larger than the limit of 100 bytes; raise outbound.max_response_bytes to take it"
    );
}

#[tokio::test]
async fn an_agent_that_falls_silent_times_out() {
    let script = Script::start([Answer::Silence]).await;
    let desk = Desk::with(Config { patience_ms: 50, ..quick() });
    let failure = failure(&desk.send(call(&agent(&script, Dialect::V03, Binding::JsonRpc))).await);
    assert_eq!(failure.kind, FailureKind::PeerTimeout);
    assert_eq!(failure.message, "the agent took longer than 50 ms to answer");
}

#[tokio::test]
async fn a_request_that_may_have_arrived_is_not_repeated() {
    let script = Script::start([http(503, ""), result("{}")]).await;
    send(&agent(&script, Dialect::V03, Binding::JsonRpc)).await;
    assert_eq!(script.asked(), ["message/send"]);
}

#[tokio::test]
async fn a_refusal_for_now_is_repeated_after_the_pause_that_the_agent_asks_for() {
    let done = r#"{"kind":"task","id":"task-1","contextId":"c","status":{"state":"completed"}}"#;
    for status in [429, 503] {
        let script = Script::start([Answer::NotNow(status, "1"), result(done)]).await;
        let begun = Instant::now();
        let events = send(&agent(&script, Dialect::V03, Binding::JsonRpc)).await;
        assert_eq!(events.last().unwrap().name(), "finished");
        assert!(begun.elapsed() >= Duration::from_secs(1));
        assert_eq!(script.asked(), ["message/send", "message/send"]);
    }
}

#[tokio::test]
async fn a_pause_that_is_too_long_is_passed_on() {
    for (answers, asked) in [
        (vec![Answer::NotNow(429, "3600"), result("{}")], 1),
        (vec![Answer::NotNow(503, "0"), Answer::NotNow(503, "3600"), result("{}")], 2),
    ] {
        let script = Script::start(answers).await;
        let failure = failure(&send(&agent(&script, Dialect::V03, Binding::JsonRpc)).await);
        assert_eq!(failure.kind, FailureKind::PeerUnreachable);
        assert_eq!(failure.data.unwrap().value()["retryAfter"], 3600);
        assert_eq!(script.asked().len(), asked);
    }
}

#[tokio::test]
async fn an_answer_to_another_request_is_refused() {
    let task = r#"{"kind":"task","id":"task-1","contextId":"c","status":{"state":"completed"}}"#;
    let with = |id: &str| json(&format!(r#"{{"jsonrpc":"2.0", "id":{id},"result":{task}}}"#));
    let script = Script::start([with("7")]).await;
    let failure = failure(&send(&agent(&script, Dialect::V03, Binding::JsonRpc)).await);
    assert_eq!(failure.kind, FailureKind::PeerGarbled);
    assert!(failure.message.contains("one to request 7"), "{}", failure.message);
    // Requests are numbered by the clock, which stands still here; the number of the message comes first.
    for id in ["1700000000001", "\"1700000000001\"", "1700000000001.0", "null"] {
        let script = Script::start([with(id)]).await;
        let events = send(&agent(&script, Dialect::V03, Binding::JsonRpc)).await;
        assert_eq!(events.last().unwrap().name(), "finished", "{id}");
    }
}

#[tokio::test]
async fn an_event_of_another_task_or_to_another_request_is_refused() {
    let task = |id: &str| {
        format!(r#"{{"task":{{"id":"{id}","contextId":"c","status":{{"state":"TASK_STATE_WORKING"}}}}}}"#)
    };
    let other_request = format!(r#"{{"jsonrpc":"2.0", "id":7,"result":{}}}"#, task("task-1"));
    for second in [data(&envelope(&task("task-2"))), data(&other_request)] {
        let script = Script::start([Answer::Open(vec![data(&envelope(&task("task-1"))), second])]).await;
        let failure = failure(&send(&streaming(&script, Dialect::V10, Binding::JsonRpc)).await);
        assert_eq!(failure.kind, FailureKind::PeerGarbled, "{}", failure.message);
    }
    let script = Script::start([
        result(&task("task-1")),
        result(r#"{"id":"task-2","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}"#),
    ])
    .await;
    let failure = failure(&send(&agent(&script, Dialect::V10, Binding::JsonRpc)).await);
    assert_eq!(failure.message, "the agent's answer is about another task: task-2, not task-1");
}

#[tokio::test]
async fn a_missing_token_is_named_and_nothing_is_sent() {
    let script = Script::start([]).await;
    let agent = with_token(&agent(&script, Dialect::V03, Binding::JsonRpc), "WEATHER_TOKEN");
    let failure = failure(&send(&agent).await);
    assert_eq!(failure.message, "the agent's token is missing: set the environment variable WEATHER_TOKEN");
    assert!(script.heard().is_empty());
}

#[tokio::test]
async fn an_agent_that_wants_a_login_is_said_to() {
    let script = Script::start([http(401, "{}"), http(403, "you sent hunter2")]).await;
    let open = agent(&script, Dialect::V03, Binding::JsonRpc);
    insta::assert_snapshot!(failure(&send(&open).await).message, @"the agent answered with HTTP status 401: it requires authentication; register it with `rialto agents add URL --secret env:NAME`, or load it again with the `token` of load_agent");
    let refused = failure(&send(&with_token(&open, "TOKEN")).await);
    insta::assert_snapshot!(refused.message, @"the agent answered with HTTP status 403: it does not accept the token it was registered with");
    assert!(!refused.data.unwrap().get().contains("hunter2"));
}

#[tokio::test]
async fn a_token_that_the_agent_repeats_is_not_passed_on() {
    let echo = crate::script::error_body(-32000, "bad token hunter2");
    for (agent_of, answer) in [
        (agent as fn(&Script, Dialect, Binding) -> Arc<Agent>, json(&echo)),
        (streaming, Answer::Events(vec![crate::script::data(&echo)])),
        (streaming, Answer::Events(vec![crate::script::data("hunter2?")])),
    ] {
        let script = Script::start([answer]).await;
        let agent = with_token(&agent_of(&script, Dialect::V03, Binding::JsonRpc), "TOKEN");
        let failure = failure(&send(&agent).await);
        let all = format!("{failure:?}");
        assert!(all.contains("[secret]") && !all.contains("hunter2"), "{all}");
    }
}

#[tokio::test]
async fn a_token_is_not_shown_to_another_host_that_the_card_names() {
    let script = Script::start([http(401, "")]).await;
    let interface = Interface {
        url: format!("http://localhost:{}", script.address.port()),
        binding: Binding::JsonRpc,
        dialect: Dialect::V03,
        tenant: None,
    };
    let mut agent = row("https://weather.example", vec![interface], false);
    agent.credential = Some(Credential::new(SecretSource::Env("TOKEN".into())));
    let failure = failure(&send(&Arc::new(agent)).await);
    assert_eq!(script.heard()[0].header("authorization"), "");
    assert!(failure.message.contains("its token is not shown there"), "{}", failure.message);
}

#[tokio::test]
async fn a_private_address_is_not_called_without_leave() {
    let script = Script::start([]).await;
    let mut agent = Agent::clone(&agent(&script, Dialect::V03, Binding::JsonRpc));
    agent.allow_private = false;
    let failure = failure(&send(&Arc::new(agent)).await);
    assert_eq!(failure.kind, FailureKind::PeerUnreachable);
    assert!(failure.message.contains("127.0.0.1 is a loopback address"), "{}", failure.message);
    assert!(script.heard().is_empty());
}

#[tokio::test]
async fn a_card_with_an_odd_address_is_said_to_be_wrong() {
    for url in ["/rpc", "weather.example", "ftp://weather.example", "http://me:pw@weather.example"] {
        let interface =
            Interface { url: url.into(), binding: Binding::JsonRpc, dialect: Dialect::V10, tenant: None };
        let failure = failure(&send(&Arc::new(row("http://weather.example", vec![interface], false))).await);
        assert!(failure.message.starts_with(&format!("the card's address \"{url}\" is not")), "{failure}");
    }
}

#[tokio::test]
async fn a_card_that_offers_nothing_we_speak_is_said_so() {
    let interface = Interface {
        url: "http://weather.example".into(),
        binding: Binding::Other("carrier-pigeon".into()),
        dialect: Dialect::V10,
        tenant: None,
    };
    let failure = failure(&send(&Arc::new(row("http://weather.example", vec![interface], false))).await);
    assert_eq!(failure.message, "the card offers carrier-pigeon in A2A 1.0, which is not spoken here");
}

#[tokio::test]
async fn a_slow_answer_is_still_an_answer() {
    let task = result(r#"{"kind":"task","id":"t","contextId":"c","status":{"state":"completed"}}"#);
    let script = Script::start([Answer::Later(Duration::from_millis(100), Box::new(task))]).await;
    let events = send(&agent(&script, Dialect::V03, Binding::JsonRpc)).await;
    assert_eq!(events.last().unwrap().name(), "finished");
}
