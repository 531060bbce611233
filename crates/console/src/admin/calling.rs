//! Calls that are made by name, and what is meant by the name.

use std::time::Duration;

use rialto_api_types::tasks::{NewCall, StartedCall};
use rialto_engine::Request;
use rialto_model::{
    call::{CallTarget, Caller, EntryProtocol},
    failure::{Failure, FailureKind},
    json::Json,
    message::Part,
    token_scopes::TokenScope,
};

use super::agents::may_see;
use crate::{Console, console::store_failure};

/// So many names that are like an unknown one are told.
const NEAR: usize = 3;

/// What is said with a call.
#[derive(Clone, Debug)]
pub enum Said {
    /// Nothing.
    Nothing,
    /// A text, which may be JSON.
    Text(String),
    /// JSON.
    Data(Json),
}

/// Begins a call, which goes on by itself.
pub async fn begin(console: &Console, caller: &Caller, wanted: &NewCall) -> Result<StartedCall, Failure> {
    if !caller.rights.have(TokenScope::Call) {
        return Err(TokenScope::Call.lacking());
    }
    console.engine().sync().await?;
    let said = match (&wanted.text, &wanted.arguments) {
        (None, None) => Said::Nothing,
        (Some(text), None) => Said::Text(text.clone()),
        (None, Some(data)) => Said::Data(data.clone()),
        (Some(_), Some(_)) => return Err(invalid("say one thing: `text`, or `arguments`")),
    };
    let (target, parts) = meant(console, caller, &wanted.name, said)?;
    let usual = console.engine().config().wall_clock(&caller.scope.org, &target.agent);
    let wall_clock = wanted.timeout_ms.map_or(usual, Duration::from_millis);
    let after = match &wanted.task {
        Some(id) => console.store().task(&caller.scope, id).await.map_err(store_failure)?,
        None => None,
    };
    let called = target.verb();
    let request = Request {
        task: wanted.task.clone(),
        context: wanted.context.clone(),
        wall_clock: Some(wall_clock),
        ..Request::message(caller.clone(), EntryProtocol::Http, target, parts)
    };
    let running = console.engine().call(request).await?;
    Ok(StartedCall {
        task_id: running.task().clone(),
        called,
        after: after.map_or(0, |head| head.version),
        timeout_ms: u64::try_from(wall_clock.as_millis()).unwrap_or(u64::MAX),
    })
}

/// Whom a name means, and what it is told.
pub fn meant(
    console: &Console,
    caller: &Caller,
    name: &str,
    said: Said,
) -> Result<(CallTarget, Vec<Part>), Failure> {
    if let Some(target) = console.engine().resolve(caller, name) {
        let args = match said {
            Said::Nothing => Json::empty_object(),
            Said::Data(data) => data,
            Said::Text(text) => arguments(&target, &text)?,
        };
        return Ok((target, vec![Part::data(args)]));
    }
    let Ok(agent) = console.engine().registry().find(&caller.scope, name) else {
        return Err(unknown(console, caller, name));
    };
    let part = match said {
        Said::Nothing => {
            return Err(invalid(&format!(
                "{} is an agent: say what to tell it, or name one of its skills",
                agent.slug
            )));
        }
        Said::Data(data) => Part::data(data),
        Said::Text(text) => match Json::parse(text.trim()) {
            Ok(data) if data.is_object() => Part::data(data),
            _ => Part::text(text),
        },
    };
    Ok((CallTarget { agent, skill: None }, vec![part]))
}

/// Arguments of a skill from a text: JSON, or plain words where a skill takes words.
fn arguments(target: &CallTarget, text: &str) -> Result<Json, Failure> {
    let parsed = Json::parse(text.trim());
    // Words that begin like an object were meant to be one, so a mistake in them is an error.
    let is_object = text.trim_start().starts_with('{');
    if !is_object && target.takes_words() {
        return Ok(CallTarget::words(text));
    }
    parsed.map_err(|error| invalid(&format!("the arguments are not JSON: {error}")))
}

/// What is told of a name that means nobody: names that are like it, of those that the caller may see.
fn unknown(console: &Console, caller: &Caller, name: &str) -> Failure {
    let directory = console.engine().registry().directory(&caller.scope);
    let is_near = |known: &str| {
        known.contains(name) || name.split('.').any(|word| word.len() > 2 && known.contains(word))
    };
    let near = directory.listed().filter(|entry| is_near(&entry.canonical));
    let near = near.filter(|entry| may_see(console, caller, &entry.agent));
    let near: Vec<&str> = near.take(NEAR).map(|entry| entry.canonical.as_str()).collect();
    let hint = if near.is_empty() {
        "`rialto agents list` shows what there is".to_owned()
    } else {
        format!("did you mean {}?", near.join(", "))
    };
    Failure::new(FailureKind::NotFound, format!("there is no skill or agent \"{name}\"; {hint}"))
}

fn invalid(message: &str) -> Failure {
    Failure::new(FailureKind::Invalid, message)
}
