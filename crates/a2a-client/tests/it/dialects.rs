//! Agents that do not speak what their cards say.

use std::sync::Arc;

use rialto_model::{
    agent::Agent,
    card::{Binding, Dialect, Interface},
    failure::FailureKind,
};

use crate::{
    rows::{Desk, agent, call, failure, minimal, row, told},
    script::{Answer, Script, error, error_body, http, json, result},
};

const DONE_V03: &str = r#"{"kind":"task","id":"t","contextId":"c","status":{"state":"completed"}}"#;
const DONE_V10: &str = r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}"#;
const DONE_V01: &str = r#"{"id":"t","sessionId":"c","status":{"state":"completed"}}"#;

/// Calls twice with one peer: what the agent was asked, and what was learned.
async fn twice(
    agent_of: impl FnOnce(&Script) -> Arc<Agent>,
    answers: Vec<Answer>,
) -> (Vec<String>, Vec<Dialect>) {
    let script = Script::start(answers).await;
    let agent = agent_of(&script);
    let desk = Desk::new();
    for _ in 0..2 {
        assert_eq!(told(&desk.send(call(&agent)).await).last().unwrap(), "finished");
    }
    (script.asked(), desk.notes.dialects())
}

#[tokio::test]
async fn an_agent_that_says_1_0_but_speaks_0_3_is_understood_and_remembered() {
    // Q12: litellm, genui.
    let (asked, learned) = twice(
        |script| agent(script, Dialect::V10, Binding::JsonRpc),
        vec![error(-32601, "Method not found"), result(DONE_V03), result(DONE_V03)],
    )
    .await;
    assert_eq!(asked, ["SendMessage", "message/send", "message/send"]);
    assert_eq!(learned, [Dialect::V03]);
}

#[tokio::test]
async fn an_agent_that_says_0_3_but_speaks_1_0_is_understood() {
    let (asked, learned) = twice(
        |script| agent(script, Dialect::V03, Binding::JsonRpc),
        vec![error(-32009, "version not supported"), result(DONE_V10), result(DONE_V10)],
    )
    .await;
    assert_eq!(asked, ["message/send", "SendMessage", "SendMessage"]);
    assert_eq!(learned, [Dialect::V10]);
}

#[tokio::test]
async fn a_version_error_under_the_internal_code_is_taken_for_what_it_is() {
    // Q7: a2a-sdk 1.3 knows no other code to tell a 0.3 client.
    let said = "A2A version '0.3' is not supported by this handler. Expected version '1.0'.";
    let (asked, _) = twice(
        |script| agent(script, Dialect::V03, Binding::JsonRpc),
        vec![error(-32603, said), result(DONE_V10), result(DONE_V10)],
    )
    .await;
    assert_eq!(asked, ["message/send", "SendMessage", "SendMessage"]);
}

#[tokio::test]
async fn the_version_header_goes_with_1_0_and_with_nothing_else() {
    let script = Script::start([error(-32601, "no"), result(DONE_V03)]).await;
    Desk::new().send(call(&agent(&script, Dialect::V10, Binding::JsonRpc))).await;
    let versions: Vec<_> =
        script.heard().iter().map(|heard| heard.header("a2a-version").to_owned()).collect();
    assert_eq!(versions, ["1.0", ""]);
}

#[tokio::test]
async fn an_unversioned_agent_of_the_first_generation_is_found_out() {
    let (asked, learned) =
        twice(minimal, vec![error(-32601, "no"), result(DONE_V01), result(DONE_V01)]).await;
    assert_eq!(asked, ["message/send", "tasks/send", "tasks/send"]);
    assert_eq!(learned, [Dialect::V01]);
}

#[tokio::test]
async fn a_first_generation_server_that_answers_unknown_methods_with_http_400_is_found_out() {
    // Q11, with either code that such servers use.
    for code in [-32601, -32600] {
        let refusal = http(400, &error_body(code, "Request payload validation error"));
        let (asked, _) = twice(minimal, vec![refusal, result(DONE_V01), result(DONE_V01)]).await;
        assert_eq!(asked, ["message/send", "tasks/send", "tasks/send"]);
    }
}

#[tokio::test]
async fn a_rest_agent_of_the_other_generation_is_found_by_its_paths() {
    let not_found = || Answer::Whole { status: 404, media_type: "text/plain", body: "Not Found".into() };
    for (status, body) in [(404, r#"{"detail":"Not Found"}"#), (405, r#"{"detail":"Method Not Allowed"}"#)] {
        let done = r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}"#;
        let (asked, learned) = twice(
            |script| agent(script, Dialect::V10, Binding::HttpJson),
            vec![http(status, body), json(done), json(done)],
        )
        .await;
        assert_eq!(asked, ["POST /message:send", "POST /v1/message:send", "POST /v1/message:send"]);
        assert_eq!(learned, [Dialect::V03]);
    }
    let (asked, _) = twice(
        |script| agent(script, Dialect::V03, Binding::HttpJson),
        vec![not_found(), json(DONE_V10), json(DONE_V10)],
    )
    .await;
    assert_eq!(asked, ["POST /v1/message:send", "POST /message:send", "POST /message:send"]);
}

#[tokio::test]
async fn an_unknown_task_over_rest_is_not_taken_for_an_unknown_path() {
    let body = r#"{"error":{"code":404,"status":"NOT_FOUND","message":"no task t","details":[{"@type":
        "type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org"}]}}"#;
    let script = Script::start([http(404, body)]).await;
    let failure = failure(&Desk::new().send(call(&agent(&script, Dialect::V10, Binding::HttpJson))).await);
    assert_eq!(failure.kind, FailureKind::PeerFailed);
    assert_eq!(script.asked(), ["POST /message:send"]);
}

#[tokio::test]
async fn an_agent_that_understands_nothing_is_reported_in_its_own_dialect() {
    let no = |name: &str| error(-32601, &format!("no {name}"));
    let script = Script::start([no("SendMessage"), no("message/send"), no("tasks/send")]).await;
    let desk = Desk::new();
    let failure = failure(&desk.send(call(&agent(&script, Dialect::V10, Binding::JsonRpc))).await);
    assert_eq!(failure.message, "the agent answered with error -32601: no SendMessage");
    assert_eq!(script.asked(), ["SendMessage", "message/send", "tasks/send"]);
    assert!(desk.notes.dialects().is_empty());
}

#[tokio::test]
async fn what_the_registry_remembers_counts_from_the_first_call() {
    let script = Script::start([result(DONE_V03)]).await;
    let mut agent = Agent::clone(&agent(&script, Dialect::V10, Binding::JsonRpc));
    agent.speaks = Some(Dialect::V03);
    let desk = Desk::new();
    desk.send(call(&Arc::new(agent))).await;
    assert_eq!(script.asked(), ["message/send"]);
    assert!(desk.notes.dialects().is_empty());
}

#[tokio::test]
async fn a_new_card_makes_us_forget_what_the_old_one_taught() {
    let script =
        Script::start([error(-32601, "no"), result(DONE_V03), result(DONE_V10), result(DONE_V10)]).await;
    let desk = Desk::new();
    let old = agent(&script, Dialect::V10, Binding::JsonRpc);
    desk.send(call(&old)).await;
    let mut new = Agent::clone(&old);
    let mut card = (*new.card).clone();
    card.version = Some("2".into());
    new.card = Arc::new(card);
    desk.send(call(&Arc::new(new.clone()))).await;
    // The same card in another allocation, as after a restart of the registry, changes nothing.
    new.card = Arc::new((*new.card).clone());
    desk.send(call(&Arc::new(new))).await;
    assert_eq!(script.asked(), ["SendMessage", "message/send", "SendMessage", "SendMessage"]);
}

#[tokio::test]
async fn the_first_interface_we_speak_is_taken_in_the_cards_order() {
    let at = |binding: Binding, dialect: Dialect, path: &'static str| {
        move |script: &Script| Interface {
            url: format!("{}{path}", script.url()),
            binding: binding.clone(),
            dialect,
            tenant: None,
        }
    };
    let grpc = at(Binding::Grpc, Dialect::V10, "/grpc");
    let rest10 = at(Binding::HttpJson, Dialect::V10, "/rest");
    let rpc10 = at(Binding::JsonRpc, Dialect::V10, "/rpc");
    let rest03 = at(Binding::HttpJson, Dialect::V03, "/old");
    let rpc03 = at(Binding::JsonRpc, Dialect::V03, "/old-rpc");
    type Maker<'a> = &'a dyn Fn(&Script) -> Interface;
    let cases: [(&[Maker<'_>], &str); 6] = [
        (&[&grpc, &rpc10, &rest10], "/rpc"),
        (&[&rest10, &rpc10], "/rest/message:send"),
        // File bytes over 0.3 REST mean different things to different SDKs.
        (&[&rest03, &rpc03], "/old-rpc"),
        (&[&rest03], "/old/v1/message:send"),
        // Protobuf holds less than JSON does.
        (&[&grpc, &rest03], "/old/v1/message:send"),
        (&[&grpc], "/grpc/lf.a2a.v1.A2AService/SendMessage"),
    ];
    for (offered, path) in cases {
        let script = Script::start([]).await;
        let interfaces = offered.iter().map(|make| make(&script)).collect();
        Desk::new().send(call(&Arc::new(row(&script.url(), interfaces, false)))).await;
        assert_eq!(script.heard()[0].path, path);
    }
}
