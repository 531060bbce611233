//! What kinds of content a skill takes.
//!
//! Text and JSON go everywhere: they are what skills are called with. Anything else goes to whom it suits, as far as a message
//! says what it is.

use crate::{
    agent::Agent,
    card::Skill,
    json::Extra,
    message::{Content, Part},
};

/// What tools take and give.
pub const JSON: &str = "application/json";

/// What a skill takes: what it says itself, else what its agent says for all of them. None says nothing.
pub fn taken(agent: &Agent, skill: Option<&Skill>) -> Vec<String> {
    of(agent, skill.map(|skill| skill.input_modes.as_slice()), "defaultInputModes")
}

/// What it gives, likewise.
pub fn given(agent: &Agent, skill: Option<&Skill>) -> Vec<String> {
    of(agent, skill.map(|skill| skill.output_modes.as_slice()), "defaultOutputModes")
}

fn of(agent: &Agent, own: Option<&[String]>, usual: &str) -> Vec<String> {
    if let Some(own) = own.filter(|own| !own.is_empty()) {
        return own.to_vec();
    }
    if !agent.backing.keeps_conversations() {
        return vec![JSON.to_owned()];
    }
    let said: Option<Extra> = agent.card.raw.read().ok();
    said.and_then(|said| said.get(usual)?.read().ok()).unwrap_or_default()
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

/// Whether a media type is among those that are taken. Who says nothing takes everything.
pub fn suits(kind: &str, taken: &[String]) -> bool {
    taken.is_empty() || taken.iter().any(|taken| covers(&bare(taken), kind))
}

/// Whether `taken` means `kind`: itself, all of a family (`image/*`, or just `image`, as old cards say), or everything.
pub fn covers(taken: &str, kind: &str) -> bool {
    let family = taken.strip_suffix("/*").unwrap_or(taken);
    taken == kind
        || matches!(taken, "*/*" | "*" | "file")
        || !family.contains('/') && kind.strip_prefix(family).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a media type is JSON under whatever name.
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
        let takes = |taken: &str, kind: &str| covers(taken, kind);
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
