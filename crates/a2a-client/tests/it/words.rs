//! What a caller says besides the parts of its message, as an agent hears it: extensions, references, modes.

use std::sync::Arc;

use rialto_model::{
    call::{Call, OriginalMessage},
    card::{Binding, Dialect},
    event::{ACTIVATED, Event},
    message::{Message, Role},
};

use crate::{
    rows::{Desk, agent, call, streaming},
    script::{Heard, Script, events, json, result},
};

/// A call of somebody who speaks A2A.
fn spoken(mut call: Call) -> Call {
    let mut message = Message::new("m-1", Role::User, call.parts.clone());
    message.extensions = vec!["https://a.example/v1".into()];
    let mut spoken = OriginalMessage::new(message, None);
    spoken.extensions.push("https://b.example/v1".into());
    spoken.references = vec!["their-task".into()];
    spoken.accepts = vec!["text/plain".into()];
    call.spoken = Some(Arc::new(spoken));
    call
}

async fn heard(dialect: Dialect, binding: Binding) -> Heard {
    let script = Script::start([]).await;
    Desk::new().send(spoken(call(&agent(&script, dialect, binding)))).await;
    script.heard().swap_remove(0)
}

#[tokio::test]
async fn extensions_references_and_modes_are_told_in_the_words_of_each_dialect() {
    let mut told = Vec::new();
    for (dialect, binding) in [
        (Dialect::V10, Binding::JsonRpc),
        (Dialect::V10, Binding::HttpJson),
        (Dialect::V03, Binding::JsonRpc),
        (Dialect::V03, Binding::HttpJson),
        (Dialect::V02, Binding::JsonRpc),
        (Dialect::V01, Binding::JsonRpc),
    ] {
        let heard = heard(dialect, binding).await;
        let (new, old) = (heard.header("a2a-extensions"), heard.header("x-a2a-extensions"));
        told.push(format!(
            "{dialect} {}\na2a-extensions: {new}\nx-a2a-extensions: {old}\n{}",
            heard.path, heard.body
        ));
    }
    insta::assert_snapshot!(told.join("\n\n"));
}

#[tokio::test]
async fn over_grpc_extensions_are_metadata() {
    let script = Script::start([]).await;
    Desk::new().send(spoken(call(&agent(&script, Dialect::V10, Binding::Grpc)))).await;
    assert_eq!(script.heard()[0].header("a2a-extensions"), "https://a.example/v1, https://b.example/v1");
}

#[tokio::test]
async fn who_names_no_extension_names_none() {
    let script = Script::start([]).await;
    Desk::new().send(call(&agent(&script, Dialect::V10, Binding::JsonRpc))).await;
    assert_eq!(script.heard()[0].header("a2a-extensions"), "");
}

#[tokio::test]
async fn what_an_agent_says_is_in_use_is_told_once() {
    let task = r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}"#;
    let activated = |told: &[Event]| {
        let lists = told.iter().filter_map(|event| match event {
            Event::Accepted { aside, .. } => aside.extra.get(ACTIVATED).map(|list| list.get().to_owned()),
            _ => None,
        });
        lists.collect::<Vec<_>>()
    };
    let wanted = [r#"["https://a.example/v1","https://b.example/v1"]"#];
    let script = Script::start([result(task)]).await;
    let told = Desk::new().send(spoken(call(&agent(&script, Dialect::V10, Binding::JsonRpc)))).await;
    assert_eq!(activated(&told), wanted);
    let working = r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}"#;
    let script = Script::start([events(&[working, task])]).await;
    let told = Desk::new().send(spoken(call(&streaming(&script, Dialect::V10, Binding::JsonRpc)))).await;
    assert_eq!(activated(&told), wanted);
    let reply = r#"{"message":{"messageId":"r","role":"ROLE_AGENT","parts":[{"text":"hi"}]}}"#;
    let script = Script::start([json(reply)]).await;
    let told = Desk::new().send(spoken(call(&agent(&script, Dialect::V10, Binding::HttpJson)))).await;
    assert_eq!(activated(&told), wanted);
}
