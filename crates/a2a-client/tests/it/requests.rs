//! Every request we put on a wire.

use std::sync::Arc;

use rialto_model::{
    agent::Agent,
    card::{Binding, Dialect, Interface},
    event::RemoteIds,
    message::Part,
};

use crate::{
    rows::{Desk, agent, call, minimal, row, send, streaming, target, with_token},
    script::{Script, result},
};

/// Sends one call and shows what arrived: request line, the headers that matter, the body.
async fn shown(agent_of: impl FnOnce(&Script) -> Arc<Agent>) -> String {
    let script = Script::start([]).await;
    send(&agent_of(&script)).await;
    show(&script, 0)
}

fn show(script: &Script, at: usize) -> String {
    let heard = script.heard().swap_remove(at);
    let headers: String = ["a2a-version", "accept", "authorization", "content-type"]
        .into_iter()
        .filter(|name| !heard.header(name).is_empty())
        .map(|name| format!("{name}: {}\n", heard.header(name)))
        .collect();
    format!("{} {}\n{headers}\n{}", heard.method, heard.path, heard.body)
}

#[tokio::test]
async fn a_skill_is_called_in_1_0_with_its_name_in_the_metadata() {
    insta::assert_snapshot!(shown(|script| agent(script, Dialect::V10, Binding::JsonRpc)).await, @r#"
    POST /
    a2a-version: 1.0
    accept: application/json
    content-type: application/json

    {"jsonrpc":"2.0","id":1700000000001,"method":"SendMessage","params":{"message":{"messageId":"a2a-agt_1-forecast-1-1700000000000","role":"ROLE_USER","parts":[{"data":{"city":"Venice"}}],"metadata":{"skillId":"forecast"}},"metadata":{"skillId":"forecast","correlationId":"a2a-agt_1-forecast-1"}}}
    "#);
}

#[tokio::test]
async fn a_skill_is_called_in_0_3_in_the_shape_of_the_first_bridge() {
    insta::assert_snapshot!(shown(|script| agent(script, Dialect::V03, Binding::JsonRpc)).await, @r#"
    POST /
    accept: application/json
    content-type: application/json

    {"jsonrpc":"2.0","id":1700000000001,"method":"message/send","params":{"message":{"messageId":"a2a-agt_1-forecast-1-1700000000000","role":"user","kind":"message","skill":{"skillId":"forecast"},"parts":[{"kind":"data","data":{"city":"Venice"}}],"metadata":{"skillId":"forecast"}},"correlationId":"a2a-agt_1-forecast-1","taskId":"a2a-agt_1-forecast-1","metadata":{"skillId":"forecast","correlationId":"a2a-agt_1-forecast-1"}}}
    "#);
}

#[tokio::test]
async fn an_agent_without_interfaces_is_called_at_its_base_url() {
    insta::assert_snapshot!(shown(minimal).await, @r#"
    POST /
    accept: application/json
    content-type: application/json

    {"jsonrpc":"2.0","id":1700000000001,"method":"message/send","params":{"message":{"messageId":"a2a-agt_1-forecast-1-1700000000000","role":"user","kind":"message","skill":{"skillId":"forecast"},"parts":[{"kind":"data","data":{"city":"Venice"}}],"metadata":{"skillId":"forecast"}},"correlationId":"a2a-agt_1-forecast-1","taskId":"a2a-agt_1-forecast-1","metadata":{"skillId":"forecast","correlationId":"a2a-agt_1-forecast-1"}}}
    "#);
}

#[tokio::test]
async fn a_skill_is_called_in_0_1_under_a_task_id_of_ours() {
    insta::assert_snapshot!(shown(|script| agent(script, Dialect::V01, Binding::JsonRpc)).await, @r#"
    POST /
    accept: application/json
    content-type: application/json

    {"jsonrpc":"2.0","id":1700000000001,"method":"tasks/send","params":{"id":"a2a-agt_1-forecast-1","message":{"role":"user","parts":[{"type":"data","data":{"city":"Venice"}}],"metadata":{"skillId":"forecast"}},"metadata":{"skillId":"forecast","correlationId":"a2a-agt_1-forecast-1"}}}
    "#);
}

#[tokio::test]
async fn a_skill_is_called_over_rest_in_1_0() {
    insta::assert_snapshot!(shown(|script| agent(script, Dialect::V10, Binding::HttpJson)).await, @r#"
    POST /message:send
    a2a-version: 1.0
    accept: application/json
    content-type: application/json

    {"message":{"messageId":"a2a-agt_1-forecast-1-1700000000000","role":"ROLE_USER","parts":[{"data":{"city":"Venice"}}],"metadata":{"skillId":"forecast"}},"metadata":{"skillId":"forecast","correlationId":"a2a-agt_1-forecast-1"}}
    "#);
}

#[tokio::test]
async fn a_skill_is_called_over_rest_in_0_3() {
    insta::assert_snapshot!(shown(|script| agent(script, Dialect::V03, Binding::HttpJson)).await, @r#"
    POST /v1/message:send
    accept: application/json
    content-type: application/json

    {"message":{"messageId":"a2a-agt_1-forecast-1-1700000000000","role":"ROLE_USER","content":[{"data":{"data":{"city":"Venice"}}}],"metadata":{"skillId":"forecast"}},"configuration":{"blocking":true},"metadata":{"skillId":"forecast","correlationId":"a2a-agt_1-forecast-1"}}
    "#);
}

#[tokio::test]
async fn an_agent_that_streams_is_asked_to_in_1_0() {
    insta::assert_snapshot!(shown(|script| streaming(script, Dialect::V10, Binding::JsonRpc)).await, @r#"
    POST /
    a2a-version: 1.0
    accept: text/event-stream, application/json
    content-type: application/json

    {"jsonrpc":"2.0","id":1700000000001,"method":"SendStreamingMessage","params":{"message":{"messageId":"a2a-agt_1-forecast-1-1700000000000","role":"ROLE_USER","parts":[{"data":{"city":"Venice"}}],"metadata":{"skillId":"forecast"}},"metadata":{"skillId":"forecast","correlationId":"a2a-agt_1-forecast-1"}}}
    "#);
}

#[tokio::test]
async fn an_agent_that_streams_is_asked_to_over_rest() {
    insta::assert_snapshot!(shown(|script| streaming(script, Dialect::V10, Binding::HttpJson)).await, @r#"
    POST /message:stream
    a2a-version: 1.0
    accept: text/event-stream, application/json
    content-type: application/json

    {"message":{"messageId":"a2a-agt_1-forecast-1-1700000000000","role":"ROLE_USER","parts":[{"data":{"city":"Venice"}}],"metadata":{"skillId":"forecast"}},"metadata":{"skillId":"forecast","correlationId":"a2a-agt_1-forecast-1"}}
    "#);
}

#[tokio::test]
async fn an_agent_that_streams_is_asked_to_in_0_1() {
    insta::assert_snapshot!(shown(|script| streaming(script, Dialect::V01, Binding::JsonRpc)).await, @r#"
    POST /
    accept: text/event-stream, application/json
    content-type: application/json

    {"jsonrpc":"2.0","id":1700000000001,"method":"tasks/sendSubscribe","params":{"id":"a2a-agt_1-forecast-1","message":{"role":"user","parts":[{"type":"data","data":{"city":"Venice"}}],"metadata":{"skillId":"forecast"}},"metadata":{"skillId":"forecast","correlationId":"a2a-agt_1-forecast-1"}}}
    "#);
}

#[tokio::test]
async fn a_token_is_shown_to_the_agent_it_belongs_to() {
    insta::assert_snapshot!(
        shown(|script| with_token(&agent(script, Dialect::V10, Binding::JsonRpc), "TOKEN")).await, @r#"
        POST /
        a2a-version: 1.0
        accept: application/json
        authorization: Bearer hunter2
        content-type: application/json

        {"jsonrpc":"2.0","id":1700000000001,"method":"SendMessage","params":{"message":{"messageId":"a2a-agt_1-forecast-1-1700000000000","role":"ROLE_USER","parts":[{"data":{"city":"Venice"}}],"metadata":{"skillId":"forecast"}},"metadata":{"skillId":"forecast","correlationId":"a2a-agt_1-forecast-1"}}}
        "#
    );
}

#[tokio::test]
async fn the_tenant_of_an_interface_is_repeated() {
    let tenant = |script: &Script, binding| {
        let interface =
            Interface { url: script.url(), binding, dialect: Dialect::V10, tenant: Some("acme".into()) };
        Arc::new(row(&script.url(), vec![interface], false))
    };
    let rpc = shown(|script| tenant(script, Binding::JsonRpc)).await;
    assert!(rpc.contains(r#""tenant":"acme""#), "{rpc}");
    let rest = shown(|script| tenant(script, Binding::HttpJson)).await;
    assert!(rest.starts_with("POST /acme/message:send\n"), "{rest}");
}

#[tokio::test]
async fn a_call_that_goes_on_names_the_agents_task_and_conversation() {
    for (dialect, wanted) in [
        (Dialect::V10, r#""contextId":"ctx-1","taskId":"task-1""#),
        (Dialect::V03, r#""contextId":"ctx-1","taskId":"task-1""#),
        (Dialect::V01, r#"{"id":"task-1","sessionId":"ctx-1","#),
    ] {
        let script = Script::start([]).await;
        let mut call = call(&agent(&script, dialect, Binding::JsonRpc));
        call.continues = RemoteIds { task_id: Some("task-1".into()), context_id: Some("ctx-1".into()) };
        call.parts = vec![Part::text("blue")];
        Desk::new().send(call).await;
        assert!(script.heard()[0].body.contains(wanted), "{}", script.heard()[0].body);
    }
}

#[tokio::test]
async fn a_plain_message_names_no_skill() {
    let script = Script::start([]).await;
    let agent = agent(&script, Dialect::V03, Binding::JsonRpc);
    let mut call = call(&agent);
    call.target.skill = None;
    call.parts = vec![Part::text("hello")];
    Desk::new().send(call).await;
    assert!(!script.heard()[0].body.contains("skill"), "{}", script.heard()[0].body);
    assert!(target(&agent).skill.is_some());
}

#[tokio::test]
async fn request_numbers_are_unique_and_begin_with_the_time() {
    let script = Script::start([result("{}"), result("{}")]).await;
    let agent = agent(&script, Dialect::V03, Binding::JsonRpc);
    let desk = Desk::new();
    desk.send(call(&agent)).await;
    desk.send(call(&agent)).await;
    let ids: Vec<_> = script.heard().iter().map(|heard| heard.json()["id"].as_u64().unwrap()).collect();
    assert!(ids[0] >= 1_700_000_000_000 && ids[0] < ids[1], "{ids:?}");
    let messages: Vec<_> = script
        .heard()
        .iter()
        .map(|heard| heard.json()["params"]["message"]["messageId"].to_string())
        .collect();
    assert_ne!(messages[0], messages[1]);
}
