//! What a server of 2026-07-28 wants before it goes on, as the result of a call or of a look at a task.

use rialto_model::{
    call::Caller,
    event::Event,
    failure::{Failure, Kind},
};
use serde_json::{Value, json};

use super::{
    line::Line,
    question::{Answers, Question},
};

/// The questions for whoever made the call, and the answers that need nobody; or what cannot be answered at all.
pub(super) async fn read(
    requests: &Value,
    line: &Line,
    caller: &Caller,
) -> Result<(Vec<Question>, Answers), String> {
    let (mut questions, mut given) = (Vec::new(), Answers::new());
    for (key, request) in requests.as_object().into_iter().flatten() {
        let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
        match method {
            "elicitation/create" => {
                let params = request.get("params").unwrap_or(&Value::Null);
                questions.push(
                    Question::read(key, params).ok_or_else(|| "an elicitation without a form".to_owned())?,
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

/// The end of a call whose server wants what nobody here can give.
pub(super) fn refused(server: &str, tool: &str, what: &str) -> Event {
    let message = format!("MCP server {server} wants {what} for {tool}, which is not offered here");
    Event::failed(Failure::new(Kind::Unsupported, message))
}
