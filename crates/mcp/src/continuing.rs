//! Calls of a skill that go on with a conversation: two arguments that belong to no skill say so.
//!
//! Every result says in its `_meta` which conversation and which task it is of. With `a2a_context_id` the next call begins a new task in
//! the same conversation, with `a2a_task_id` it answers the task that waits. They are taken out before the agent sees the
//! arguments; a skill whose own schema has a member of that name keeps it.

use rialto_model::{
    call::Target,
    failure::{Failure, Kind},
    json::{Extra, Json},
};

/// What both begin with. Arguments without it need not be looked into.
const OURS: &str = "\"a2a_";

const CONTEXT: &str = "a2a_context_id";
const TASK: &str = "a2a_task_id";

/// What a call goes on with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Continued {
    /// The conversation, as the agent calls it.
    pub(crate) context: Option<String>,
    /// The task: our id for it, or the agent's.
    pub(crate) task: Option<String>,
}

/// The arguments that are the skill's, and what the call goes on with.
pub(crate) fn split(target: &Target, args: Json) -> Result<(Json, Continued), Failure> {
    if !args.get().contains(OURS) || !target.agent.backing.keeps_conversations() {
        return Ok((args, Continued::default()));
    }
    let Ok(mut members) = args.read::<Extra>() else { return Ok((args, Continued::default())) };
    let mut take = |name: &str| {
        if is_own(target, name) {
            return Ok(None);
        }
        let text = members.take(name).map(|value| value.read::<String>());
        text.transpose()
            .map_err(|_| Failure::new(Kind::Invalid, format!("arguments/{name}: it must be a text")))
    };
    let continued = Continued { context: take(CONTEXT)?, task: take(TASK)? };
    if continued == Continued::default() {
        return Ok((args, continued));
    }
    Ok((Json::of(&members), continued))
}

/// Whether a skill's own schema has a member of that name.
fn is_own(target: &Target, name: &str) -> bool {
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

    fn of(schema: Option<serde_json::Value>) -> Target {
        let skill = schema.map_or_else(|| skill("ask"), |schema| skill_with_schema("ask", schema));
        let agent = Arc::new(agent("Desk", vec![skill]));
        let skill = agent.card.skills.first().cloned();
        Target { agent, skill }
    }

    fn told(target: &Target, args: &str) -> (String, Continued) {
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
