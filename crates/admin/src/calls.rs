//! Calls by the name of a skill or an agent.

use std::time::Duration;

use rialto_api_types::tasks::{NewCall, StartedCall};
use rialto_engine::CallRequest;
use rialto_model::{
    call::{CallTarget, Caller, EntryProtocol},
    failure::{Failure, FailureKind},
    json::Json,
    message::Part,
    token_scopes::TokenScope,
};

use super::agents::may_see;
use crate::{Administration, administration::store_failure};

/// Maximum number of similar names in the error for an unknown one.
const MAX_SUGGESTIONS: usize = 3;

/// Input of a call.
#[derive(Clone, Debug)]
pub enum CallInput {
    /// No input.
    Empty,
    /// Text, which may be JSON.
    Text(String),
    /// JSON.
    Data(Json),
}

/// Starts a call, which continues in the background.
pub async fn start_call(
    admin: &Administration,
    caller: &Caller,
    new_call: &NewCall,
) -> Result<StartedCall, Failure> {
    if !caller.rights.have(TokenScope::Call) {
        return Err(TokenScope::Call.lacking());
    }
    let synced = admin.engine().policies().sync().await?;
    let input = match (&new_call.text, &new_call.arguments) {
        (None, None) => CallInput::Empty,
        (Some(text), None) => CallInput::Text(text.clone()),
        (None, Some(data)) => CallInput::Data(data.clone()),
        (Some(_), Some(_)) => return Err(invalid("set either `text` or `arguments`, not both")),
    };
    let (target, parts) = resolve_call(admin, caller, &new_call.name, input)?;
    let default_timeout = admin.engine().config().call_timeout(&caller.scope.org, &target.agent);
    let wall_clock = new_call.timeout_ms.map_or(default_timeout, Duration::from_millis);
    let after = match &new_call.task {
        Some(id) => admin.store().task(&caller.scope, id).await.map_err(store_failure)?,
        None => None,
    };
    let called = target.verb();
    let request = CallRequest {
        task: new_call.task.clone(),
        context: new_call.context.clone(),
        timeout: Some(wall_clock),
        synced: Some(synced),
        ..CallRequest::message(caller.clone(), EntryProtocol::Http, target, parts)
    };
    let running = admin.engine().calls().start(request).await?.into_handle()?;
    Ok(StartedCall {
        task_id: running.task().clone(),
        called,
        after: after.map_or(0, |head| head.version),
        timeout_ms: u64::try_from(wall_clock.as_millis()).unwrap_or(u64::MAX),
    })
}

/// Target of a name, and the message parts for it.
pub fn resolve_call(
    admin: &Administration,
    caller: &Caller,
    name: &str,
    input: CallInput,
) -> Result<(CallTarget, Vec<Part>), Failure> {
    if let Some(target) = admin.engine().calls().resolve(caller, name) {
        let args = match input {
            CallInput::Empty => Json::empty_object(),
            CallInput::Data(data) => data,
            CallInput::Text(text) => parse_arguments(&target, &text)?,
        };
        return Ok((target, vec![Part::data(args)]));
    }
    let Ok(agent) = admin.engine().registry().find(&caller.scope, name) else {
        return Err(unknown_target(admin, caller, name));
    };
    let part = match input {
        CallInput::Empty => {
            return Err(invalid(&format!(
                "{} is an agent: pass a message for it, or use the name of one of its skills",
                agent.slug
            )));
        }
        CallInput::Data(data) => Part::data(data),
        CallInput::Text(text) => match Json::parse(text.trim()) {
            Ok(data) if data.is_object() => Part::data(data),
            _ => Part::text(text),
        },
    };
    Ok((CallTarget { agent, skill: None }, vec![part]))
}

/// Arguments of a skill from a text: JSON, or plain text if the skill takes text.
fn parse_arguments(target: &CallTarget, text: &str) -> Result<Json, Failure> {
    let parsed = Json::parse(text.trim());
    // Text that begins like a JSON object must be one.
    let is_object = text.trim_start().starts_with('{');
    if !is_object && target.takes_words() {
        return Ok(CallTarget::words(text));
    }
    parsed.map_err(|error| invalid(&format!("the arguments are not JSON: {error}")))
}

/// Error for an unknown name, with similar names that the caller is allowed to see.
fn unknown_target(admin: &Administration, caller: &Caller, name: &str) -> Failure {
    let directory = admin.engine().registry().directory(&caller.scope);
    let is_similar = |known: &str| {
        known.contains(name) || name.split('.').any(|word| word.len() > 2 && known.contains(word))
    };
    let similar = directory.listed().filter(|entry| is_similar(&entry.canonical));
    let similar = similar.filter(|entry| may_see(admin, caller, &entry.agent));
    let similar: Vec<&str> = similar.take(MAX_SUGGESTIONS).map(|entry| entry.canonical.as_str()).collect();
    let hint = if similar.is_empty() {
        "see `rialto agents list`".to_owned()
    } else {
        format!("did you mean {}?", similar.join(", "))
    };
    Failure::new(FailureKind::NotFound, format!("there is no skill or agent \"{name}\"; {hint}"))
}

fn invalid(message: &str) -> Failure {
    Failure::new(FailureKind::Invalid, message)
}
