//! Arguments that continue a conversation: `a2a_context_id` and `a2a_task_id`.
//!
//! Each result has the ids of its conversation and task in `_meta`. With `a2a_context_id` the next call begins a new task in the same
//! conversation; with `a2a_task_id` it answers the waiting task. Both are removed before the agent sees the arguments; a skill whose own
//! schema has a member of that name keeps it.

use rialto_model::{
    call::CallTarget,
    failure::{Failure, FailureKind},
    json::{Extra, Json},
};

/// Common prefix of both names. Arguments without it are not parsed.
const ARG_PREFIX: &str = "\"a2a_";

const CONTEXT_ARG: &str = "a2a_context_id";
const TASK_ARG: &str = "a2a_task_id";

/// Conversation and task that a call continues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Continued {
    /// The agent's id of the conversation.
    pub(crate) context: Option<String>,
    /// The task: Rialto's id or the agent's.
    pub(crate) task: Option<String>,
}

/// Splits the arguments into those of the skill and the continuation.
pub(crate) fn split(target: &CallTarget, args: Json) -> Result<(Json, Continued), Failure> {
    if !args.get().contains(ARG_PREFIX) || !target.agent.backing.keeps_conversations() {
        return Ok((args, Continued::default()));
    }
    let Ok(mut members) = args.read::<Extra>() else { return Ok((args, Continued::default())) };
    let mut take = |name: &str| {
        if is_own(target, name) {
            return Ok(None);
        }
        let text = members.take(name).map(|value| value.read::<String>());
        text.transpose()
            .map_err(|_| Failure::new(FailureKind::Invalid, format!("arguments/{name}: it must be a text")))
    };
    let continued = Continued { context: take(CONTEXT_ARG)?, task: take(TASK_ARG)? };
    if continued == Continued::default() {
        return Ok((args, continued));
    }
    Ok((Json::encode(&members), continued))
}

/// True when the skill's own schema has a member of that name.
fn is_own(target: &CallTarget, name: &str) -> bool {
    let schema = target.skill.as_ref().and_then(|skill| skill.input_schema.as_ref());
    schema.is_some_and(|schema| {
        schema.value().get("properties").is_some_and(|properties| properties.get(name).is_some())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rialto_testkit::agents::{agent, skill, skill_with_schema};
    use serde_json::json;

    use super::*;

    fn of(schema: Option<serde_json::Value>) -> CallTarget {
        let skill = schema.map_or_else(|| skill("ask"), |schema| skill_with_schema("ask", schema));
        let agent = Arc::new(agent("Desk", vec![skill]));
        let skill = agent.card.skills.first().cloned();
        CallTarget { agent, skill }
    }

    fn told(target: &CallTarget, args: &str) -> (String, Continued) {
        let (args, continued) = split(target, Json::parse(args).unwrap()).unwrap();
        (args.get().to_owned(), continued)
    }

    #[test]
    fn what_is_ours_is_taken_out_and_the_rest_stays_to_the_digit() {
        let args = r#"{"n":12345678901234567890.10,"a2a_context_id":"c","a2a_task_id":"t"}"#;
        let continued = Continued { context: Some("c".into()), task: Some("t".into()) };
        assert_eq!(told(&of(None), args), (r#"{"n":12345678901234567890.10}"#.to_owned(), continued));
        let untouched = r#"{ "context_id": "c", "a2a_other": 1 }"#;
        assert_eq!(told(&of(None), untouched), (untouched.to_owned(), Continued::default()));
    }

    #[test]
    fn a_skill_keeps_what_its_own_schema_names() {
        let target =
            of(Some(json!({ "type": "object", "properties": { "a2a_task_id": { "type": "integer" } } })));
        let args = r#"{"a2a_task_id":5}"#;
        assert_eq!(told(&target, args), (args.to_owned(), Continued::default()));
        let both = r#"{"a2a_task_id":5,"a2a_context_id":"c"}"#;
        let continued = Continued { context: Some("c".into()), task: None };
        assert_eq!(told(&target, both), (args.to_owned(), continued));
    }

    #[test]
    fn what_is_no_text_is_refused() {
        let refused = split(&of(None), Json::parse(r#"{"a2a_task_id":5}"#).unwrap()).unwrap_err();
        assert_eq!(refused.message, "arguments/a2a_task_id: it must be a text");
    }
}
