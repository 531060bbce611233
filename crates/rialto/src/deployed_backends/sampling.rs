//! Answers sampling requests of MCP servers by calling an agent.
//!
//! The agent is called in the name of the tool's caller, so policy, limits, journal and audit apply.

use std::sync::{Arc, OnceLock};

use futures::FutureExt;
use rialto_engine::{CallRequest, CallStart, Engine, WeakEngine};
use rialto_mcp_client::Sampler;
use rialto_model::{
    call::{CallTarget, Caller, EntryProtocol},
    message::{Content, Part},
};
use serde_json::{Value, json};

/// The engine, once there is one: it is made with what calls servers, and so holds this.
pub(super) type LateEngine = Arc<OnceLock<WeakEngine>>;

pub(super) fn sampler(engine: &LateEngine) -> Sampler {
    let engine = Arc::clone(engine);
    Arc::new(move |caller, name, params| {
        let engine = engine.get().and_then(WeakEngine::upgrade);
        async move {
            let engine = engine.ok_or_else(|| "the engine has not started yet".to_owned())?;
            answer_sampling(&engine, caller, &name, &params).await
        }
        .boxed()
    })
}

async fn answer_sampling(
    engine: &Engine,
    caller: Caller,
    name: &str,
    params: &Value,
) -> Result<Value, String> {
    let target = engine.calls().resolve(&caller, name).or_else(|| {
        let agent = engine.registry().find(&caller.scope, name).ok()?;
        let target = CallTarget { agent, skill: None };
        engine.policies().may_discover(&caller, &target).then_some(target)
    });
    let target = target.ok_or_else(|| format!("there is no agent or skill \"{name}\""))?;
    let model = target.verb();
    let request = CallRequest::message(
        caller,
        EntryProtocol::Library,
        target,
        vec![Part::text(conversation_text(params))],
    );
    let running = engine
        .calls()
        .start(request)
        .await
        .and_then(CallStart::into_handle)
        .map_err(|failure| failure.message)?;
    let task = running.finish().await.map_err(|failure| failure.message)?;
    if !task.head.state.is_terminal() {
        return Err(format!("{model} asks something itself"));
    }
    let made = task.artifacts.iter().flat_map(|artifact| artifact.parts.iter());
    let said = task.message.iter().flat_map(|message| message.parts.iter());
    let made: Vec<&str> = made.filter_map(text_in).collect();
    let text = if made.is_empty() { said.filter_map(text_in).collect() } else { made }.join("\n");
    let content = json!({ "type": "text", "text": text });
    Ok(json!({ "role": "assistant", "content": content, "model": model, "stopReason": "endTurn" }))
}

/// Text of a part: words, or JSON.
fn text_in(part: &Part) -> Option<&str> {
    match &part.content {
        Content::Text(text) => Some(text),
        Content::Data(data) => Some(data.get()),
        Content::Raw(_) | Content::Url(_) | Content::Unknown(_) => None,
    }
}

/// The conversation as one text. A single message has no headings.
fn conversation_text(params: &Value) -> String {
    let system = params.get("systemPrompt").and_then(Value::as_str);
    let messages = params.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let said: Vec<(&str, String)> = messages
        .iter()
        .map(|message| {
            let role = message.get("role").and_then(Value::as_str).unwrap_or("user");
            let content = message.get("content").unwrap_or(&Value::Null);
            let blocks = content.as_array().map_or_else(|| std::slice::from_ref(content), Vec::as_slice);
            let texts = blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str));
            (role, texts.collect::<Vec<_>>().join("\n"))
        })
        .collect();
    let conversation = match said.as_slice() {
        [(_, only)] => only.clone(),
        several => {
            several.iter().map(|(role, text)| format!("{role}: {text}")).collect::<Vec<_>>().join("\n\n")
        }
    };
    match system {
        Some(system) => format!("{system}\n\n{conversation}"),
        None => conversation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_told_as_one_text() {
        let one = json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "Hi" } }] });
        assert_eq!(conversation_text(&one), "Hi");
        let several = json!({ "systemPrompt": "Be brief.", "messages": [
            { "role": "user", "content": { "type": "text", "text": "Hi" } },
            { "role": "assistant", "content": [{ "type": "text", "text": "Yes?" }] },
        ] });
        assert_eq!(conversation_text(&several), "Be brief.\n\nuser: Hi\n\nassistant: Yes?");
    }
}
