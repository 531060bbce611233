//! What kinds of content a skill takes.
//!
//! Text and JSON go everywhere: they are what skills are called with. Anything else goes to whom it suits, as far as a message
//! says what it is.

use rialto_a2a_wire::error::Code;
use rialto_model::{
    agent::Agent,
    call::Target,
    card::Skill,
    json::Extra,
    message::{Content, Part},
};

use super::trouble::Trouble;

/// What tools take and give.
pub(crate) const JSON: &str = "application/json";

/// What can be told in words.
pub(crate) const TEXT: &str = "text/plain";

/// Refuses content that whoever is called does not take.
pub(crate) fn check(target: &Target, parts: &[Part]) -> Result<(), Trouble> {
    if parts.iter().all(goes_everywhere) {
        return Ok(());
    }
    let taken = taken(&target.agent, target.skill.as_deref());
    let refused = parts.iter().enumerate().find(|(_, part)| !goes_everywhere(part) && !suits(part, &taken));
    let Some((place, part)) = refused else { return Ok(()) };
    let kind = part.media_type.as_deref().unwrap_or_default();
    let message =
        format!("message.parts[{place}]: {kind} is not taken here; send one of {}", taken.join(", "));
    Err(Trouble::new(Code::ContentTypeNotSupported, message))
}

/// What a skill takes: what it says itself, else what its agent says for all of them. None says nothing.
pub(crate) fn taken(agent: &Agent, skill: Option<&Skill>) -> Vec<String> {
    of(agent, skill.map(|skill| skill.input_modes.as_slice()), "defaultInputModes")
}

/// What it gives, likewise.
pub(crate) fn given(agent: &Agent, skill: Option<&Skill>) -> Vec<String> {
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

fn goes_everywhere(part: &Part) -> bool {
    let Some(kind) = part.media_type.as_deref().map(bare) else { return true };
    match &part.content {
        Content::Text(_) => kind.starts_with("text/"),
        Content::Data(_) | Content::Unknown(_) => is_json(&kind),
        Content::Raw(_) | Content::Url(_) => false,
    }
}

/// Whether a part's kind is among those that are taken. Who says nothing takes everything.
fn suits(part: &Part, taken: &[String]) -> bool {
    let Some(kind) = part.media_type.as_deref().map(bare) else { return true };
    taken.is_empty() || taken.iter().any(|taken| covers(&bare(taken), &kind))
}

/// Whether `taken` means `kind`: itself, all of a family (`image/*`, or just `image`, as old cards say), or everything.
fn covers(taken: &str, kind: &str) -> bool {
    let family = taken.strip_suffix("/*").unwrap_or(taken);
    taken == kind
        || matches!(taken, "*/*" | "*" | "file")
        || !family.contains('/') && kind.strip_prefix(family).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a media type is JSON under whatever name.
pub(crate) fn is_json(kind: &str) -> bool {
    let kind = bare(kind);
    kind == JSON || kind.starts_with("application/") && kind.ends_with("+json")
}

/// A media type without its parameters, in small letters.
fn bare(kind: &str) -> String {
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
}
