//! Input requests of a 2026-07-28 server, in the result of a call or of a task poll.

use rialto_model::{
    call::Caller,
    event::Event,
    failure::{Failure, FailureKind},
};
use serde_json::{Value, json};

use crate::{
    question::{ElicitationAnswers, ServerQuestion},
    server_link::ServerLink,
};

/// Questions for the caller, and the answers that need no person; or a request that cannot be answered.
pub(crate) async fn read(
    requests: &Value,
    line: &ServerLink,
    caller: &Caller,
) -> Result<(Vec<ServerQuestion>, ElicitationAnswers), String> {
    let (mut questions, mut given) = (Vec::new(), ElicitationAnswers::new());
    for (key, request) in requests.as_object().into_iter().flatten() {
        let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
        match method {
            "elicitation/create" => {
                let params = request.get("params").unwrap_or(&Value::Null);
                questions.push(
                    ServerQuestion::read(key, params)
                        .ok_or_else(|| "an elicitation without a form".to_owned())?,
                );
            }
            "roots/list" => drop(given.insert(key.clone(), json!({ "roots": [] }))),
            "sampling/createMessage" if line.key.server.sampling.is_some() => {
                let params = request.get("params").cloned().unwrap_or_default();
                let said = line.sample(caller, params).await;
                given.insert(key.clone(), said.map_err(|why| format!("what a model would say ({why})"))?);
            }
            other => return Err(other.to_owned()),
        }
    }
    Ok((questions, given))
}

/// Failure of a call whose server requests unsupported input.
pub(crate) fn refused(server: &str, tool: &str, what: &str) -> Event {
    let message = format!("MCP server {server} wants {what} for {tool}, which is not offered here");
    Event::failed(Failure::new(FailureKind::Unsupported, message))
}
