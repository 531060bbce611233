//! Arguments of a skill as message parts, in the form that the agent declares to take.
//!
//! An ordinary SDK agent declares `text/plain` and reads the text of a message; a data part would reach it as an empty string. So
//! JSON goes to agents that take JSON or declare nothing, and text to agents that take only text.

use rialto_model::{
    agent::Agent,
    card::Skill,
    json::{Extra, Json},
    media::{self, ArgumentForms},
    message::{Content, Part},
};
/// Member of the arguments that holds the request in words.
const MESSAGE_ARG: &str = "message";

/// Parts of a call, with arguments in the form that the skill takes. Other parts stay as they are.
pub(crate) fn parts_for(agent: &Agent, skill: Option<&Skill>, parts: Vec<Part>) -> Vec<Part> {
    let takes = media::argument_forms(agent, skill);
    // A skill that declares nothing gets what it always got: data.
    let is_declared =
        skill.is_some_and(|skill| !skill.input_modes.is_empty()) || !agent.card.input_modes.is_empty();
    if !takes.text || !is_declared {
        return parts;
    }
    parts.into_iter().map(|part| convert(part, takes)).collect()
}

fn convert(part: Part, takes: ArgumentForms) -> Part {
    let Content::Data(data) = &part.content else { return part };
    let text = if takes.json { only_message(data) } else { Some(as_text(data)) };
    match text {
        Some(text) => Part { content: Content::Text(text), media_type: None, ..part },
        None => part,
    }
}

/// The request in words, when it is the only argument.
fn only_message(data: &Json) -> Option<String> {
    let members: Extra = data.read().ok()?;
    (members.iter().count() == 1).then(|| members.get(MESSAGE_ARG)?.read().ok())?
}

/// The request in words, followed by any other arguments as JSON.
fn as_text(data: &Json) -> String {
    let whole = || data.get().to_owned();
    let Ok(members) = data.read::<Extra>() else { return whole() };
    let Some(message) = members.get(MESSAGE_ARG).and_then(|message| message.read::<String>().ok()) else {
        return whole();
    };
    let mut others = Extra::new();
    for (name, value) in members.iter().filter(|(name, _)| *name != MESSAGE_ARG) {
        others.push(name, value.clone());
    }
    if others.is_empty() { message } else { format!("{message}\n\n{}", Json::encode(&others).get()) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rialto_testkit::agents::{agent, skill};

    use super::*;

    /// Content sent for these arguments to an agent whose card and skill declare these modes.
    fn sent(card: &[&str], own: &[&str], args: &str) -> Content {
        let modes = |modes: &[&str]| modes.iter().map(|mode| (*mode).to_owned()).collect::<Vec<_>>();
        let skill = Skill { input_modes: modes(own), ..skill("ask") };
        let mut agent = agent("a", vec![skill.clone()]);
        Arc::make_mut(&mut agent.card).input_modes = modes(card);
        let parts = vec![Part::data(Json::parse(args).unwrap())];
        parts_for(&agent, Some(&skill), parts).remove(0).content
    }

    fn text(text: &str) -> Content {
        Content::Text(text.to_owned())
    }

    fn data(text: &str) -> Content {
        Content::Data(Json::parse(text).unwrap())
    }

    #[test]
    fn an_agent_that_takes_only_text_reads_the_message_as_text() {
        for modes in [&["text/plain"][..], &["text"], &["text/*"], &["text/plain", "image/png"]] {
            assert_eq!(sent(modes, &[], r#"{"message":"hello"}"#), text("hello"), "{modes:?}");
        }
        assert_eq!(sent(&["application/json"], &["text/plain"], r#"{"message":"hello"}"#), text("hello"));
    }

    #[test]
    fn other_arguments_of_a_text_agent_are_added_as_json_with_every_digit() {
        let args = r#"{"n":12345678901234567890.10,"message":"hello"}"#;
        assert_eq!(sent(&["text/plain"], &[], args), text("hello\n\n{\"n\":12345678901234567890.10}"));
        assert_eq!(sent(&["text/plain"], &[], r#"{"city":"Oslo"}"#), text(r#"{"city":"Oslo"}"#));
        assert_eq!(sent(&["text/plain"], &[], r#"{"message":1}"#), text(r#"{"message":1}"#));
    }

    #[test]
    fn an_agent_that_takes_both_gets_a_message_as_text_and_anything_else_as_data() {
        let both = &["text/plain", "application/json"];
        assert_eq!(sent(both, &[], r#"{"message":"hello"}"#), text("hello"));
        assert_eq!(sent(both, &[], r#"{"message":"hello","n":1}"#), data(r#"{"message":"hello","n":1}"#));
        assert_eq!(sent(both, &[], r#"{"city":"Oslo"}"#), data(r#"{"city":"Oslo"}"#));
    }

    #[test]
    fn an_agent_that_takes_json_or_declares_nothing_gets_data() {
        for modes in [&["application/json"][..], &[], &["image/png"], &["application/x+json"]] {
            let args = r#"{"message":"hello"}"#;
            assert_eq!(sent(modes, &[], args), data(args), "{modes:?}");
        }
    }
}
