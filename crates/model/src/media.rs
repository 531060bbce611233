//! Media types that skills accept and return.
//!
//! Text and JSON go everywhere: they are what skills are called with. Anything else goes to whom it suits, as far as a message
//! says what it is.

use std::borrow::Cow;

use crate::{
    agent::Agent,
    card::Skill,
    message::{Content, Part},
};

/// Media type of tool arguments and results.
pub const JSON: &str = "application/json";

/// Media types that a skill accepts: its own, else those of its agent. Empty if neither declares any.
pub fn accepted_types(agent: &Agent, skill: Option<&Skill>) -> Vec<String> {
    declared(agent, skill.map(|skill| skill.input_modes.as_slice()), &agent.card.input_modes).into_owned()
}

/// Media types that a skill returns, likewise.
pub fn returned_types(agent: &Agent, skill: Option<&Skill>) -> Vec<String> {
    declared(agent, skill.map(|skill| skill.output_modes.as_slice()), &agent.card.output_modes).into_owned()
}

/// Media types that an agent takes in any form: those of the skill and those of its card. Empty takes everything.
pub fn types_accepted_by_agent(agent: &Agent, skill: Option<&Skill>) -> Vec<String> {
    let mut taken = accepted_types(agent, skill);
    if !taken.is_empty() {
        taken.extend(
            agent.card.input_modes.iter().filter(|mode| !taken.contains(mode)).cloned().collect::<Vec<_>>(),
        );
    }
    taken
}

/// Returns whether a skill takes JSON and whether it takes text. One that declares nothing takes both.
pub fn argument_forms(agent: &Agent, skill: Option<&Skill>) -> ArgumentForms {
    if !agent.backing.keeps_conversations() {
        return ArgumentForms { json: true, text: false };
    }
    let own = skill.map(|skill| skill.input_modes.as_slice()).filter(|own| !own.is_empty());
    let modes = own.unwrap_or(&agent.card.input_modes);
    ArgumentForms {
        json: modes.is_empty() || modes.iter().any(|mode| accepts_json(mode)),
        text: modes.is_empty() || modes.iter().any(|mode| accepts_text(mode)),
    }
}

/// Forms of arguments that a skill takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgumentForms {
    /// JSON, in a data part.
    pub json: bool,
    /// Words, in a text part.
    pub text: bool,
}

fn accepts_json(mode: &str) -> bool {
    let mode = bare(mode);
    is_json(&mode) || matches!(mode.as_str(), "*/*" | "*" | "application/*" | "application" | "data" | "json")
}

fn accepts_text(mode: &str) -> bool {
    let mode = bare(mode);
    mode.starts_with("text/") || matches!(mode.as_str(), "*/*" | "*" | "text")
}

fn declared<'a>(agent: &'a Agent, own: Option<&'a [String]>, card: &'a [String]) -> Cow<'a, [String]> {
    if let Some(own) = own.filter(|own| !own.is_empty()) {
        return Cow::Borrowed(own);
    }
    if !agent.backing.keeps_conversations() {
        return Cow::Owned(vec![JSON.to_owned()]);
    }
    Cow::Borrowed(card)
}

/// The media type of a part that not everybody takes; none for text, JSON, and what does not say what it is.
pub fn special(part: &Part) -> Option<String> {
    let kind = bare(part.media_type.as_deref()?);
    let goes_everywhere = match &part.content {
        Content::Text(_) => kind.starts_with("text/"),
        Content::Data(_) | Content::Unknown(_) => is_json(&kind),
        Content::Raw(_) | Content::Url(_) => false,
    };
    (!goes_everywhere).then_some(kind)
}

/// Returns whether a media type is among those that are taken. Who says nothing takes everything.
pub fn is_accepted(kind: &str, taken: &[String]) -> bool {
    taken.is_empty() || taken.iter().any(|taken| includes_type(&bare(taken), kind))
}

/// Returns whether `taken` means `kind`: itself, all of a family (`image/*`, or just `image`, as old cards say), or everything.
pub fn includes_type(taken: &str, kind: &str) -> bool {
    let family = taken.strip_suffix("/*").unwrap_or(taken);
    taken == kind
        || matches!(taken, "*/*" | "*" | "file")
        || !family.contains('/') && kind.strip_prefix(family).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns whether a media type is JSON under whatever name.
pub fn is_json(kind: &str) -> bool {
    let kind = bare(kind);
    kind == JSON || kind.starts_with("application/") && kind.ends_with("+json")
}

/// A media type without its parameters, in small letters.
pub fn bare(kind: &str) -> String {
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_taken_by_name_by_family_or_by_all() {
        let takes = |taken: &str, kind: &str| includes_type(taken, kind);
        assert!(takes("image/png", "image/png") && !takes("image/png", "image/jpeg"));
        assert!(takes("image/*", "image/png") && !takes("image/*", "imagery/png"));
        assert!(takes("image", "image/png") && !takes("text", "image/png"));
        assert!(takes("*/*", "video/mp4") && takes("file", "application/pdf"));
    }

    #[test]
    fn json_has_many_names() {
        assert!(is_json("application/json; charset=utf-8") && is_json("Application/A2A+JSON"));
        assert!(!is_json("text/plain") && !is_json("application/jsonp") && !is_json("image/x+json"));
    }

    #[test]
    fn text_and_json_are_nothing_special() {
        let part = |content, kind: &str| Part { media_type: Some(kind.to_owned()), ..Part::new(content) };
        assert_eq!(special(&Part::text("hello")), None);
        assert_eq!(special(&part(Content::Text("# hello".into()), "text/markdown")), None);
        let picture = part(Content::Raw("iVBORw0KGgo=".into()), "Image/PNG; q=1");
        assert_eq!(special(&picture).as_deref(), Some("image/png"));
    }
}
