//! Agent cards of every generation.
//!
//! A card is decoded as far as the bridge needs (name, addresses, skills, capabilities) and kept as raw JSON beside it. Required members
//! must be valid, and the error names the invalid one; optional ones may be missing.
//!
//! Addresses: 1.0 lists its interfaces in order of preference; older cards have one `url` and, since 0.2.4, others beside
//! it. A card that has both is read newest first, and an old address is dropped when the new list already has that URL
//! with that binding. An old card that does not name its version is taken for 0.2. Versions we do not speak are left out.

use std::sync::Arc;

use rialto_model::{
    card::{Binding, Card, Dialect, Interface, Skill},
    cost::Cents,
    ids::SkillId,
    json::{Json, RawJson},
};

use crate::{
    invalid::InvalidDocument,
    members::{ObjectMembers, parse, text},
};

mod schema;
pub mod security;
pub mod signature;
mod write;

pub use write::encode;

/// Error of an invalid card.
pub type CardError = InvalidDocument;

/// Maximum number of skills of a card.
pub const MAX_SKILLS: usize = 10_000;

/// Reads a card.
pub fn decode(card: &str) -> Result<Card, CardError> {
    let raw = parse(card.as_bytes())?;
    let mut members = ObjectMembers::read(raw)?;
    let name = members.need("name", "a string", filled)?;
    let skills = members.need("skills", "a list", skills)?;
    let mut interfaces = members.list("supportedInterfaces", interface)?.into_iter().flatten().collect();
    older_interfaces(&mut members, &mut interfaces)?;
    let abilities = members.take_as("capabilities", abilities)?.unwrap_or_default();
    let old_extended = members.flag("supportsAuthenticatedExtendedCard")?.unwrap_or_default();
    Ok(Card {
        name,
        description: members.text("description")?.unwrap_or_default(),
        version: members.id("version")?,
        interfaces,
        skills,
        // Invalid optional members do not invalidate a card.
        input_modes: members.texts("defaultInputModes").unwrap_or_default(),
        output_modes: members.texts("defaultOutputModes").unwrap_or_default(),
        streaming: abilities.streaming,
        push_notifications: abilities.push_notifications,
        extended: abilities.extended || old_extended,
        signed: members.take("signatures").is_some_and(|raw| raw.get().len() > "[]".len()),
        cost: Cents::among(|name| members.peek(name)),
        raw: raw.into(),
    })
}

/// Dialect of a protocol version, or none when it is unsupported.
pub fn dialect(version: &str) -> Option<Dialect> {
    match version.trim().trim_start_matches('v').split('.').take(2).collect::<Vec<_>>().as_slice() {
        ["0", "1"] => Some(Dialect::V01),
        ["0", "2"] => Some(Dialect::V02),
        ["0", "3"] => Some(Dialect::V03),
        ["1", ..] => Some(Dialect::V10),
        _ => None,
    }
}

#[derive(Default)]
struct CardCapabilities {
    streaming: bool,
    push_notifications: bool,
    extended: bool,
}

fn abilities(raw: RawJson<'_>) -> Result<CardCapabilities, InvalidDocument> {
    let mut members = ObjectMembers::read(raw)?;
    Ok(CardCapabilities {
        streaming: members.flag("streaming")?.unwrap_or_default(),
        push_notifications: members.flag("pushNotifications")?.unwrap_or_default(),
        extended: members.flag("extendedAgentCard")?.unwrap_or_default(),
    })
}

fn skills(raw: RawJson<'_>) -> Result<Vec<Arc<Skill>>, InvalidDocument> {
    let skills = crate::members::list(raw, Ok)?;
    if skills.len() > MAX_SKILLS {
        return Err(InvalidDocument::new(format!("at most {MAX_SKILLS} skills"), skills.len().to_string()));
    }
    let read = |(at, raw): (usize, RawJson<'_>)| skill(raw).map(Arc::new).map_err(|e| e.at_index(at));
    skills.into_iter().enumerate().map(read).collect()
}

fn skill(raw: RawJson<'_>) -> Result<Skill, InvalidDocument> {
    let mut members = ObjectMembers::read(raw)?;
    let id = members.need("id", "a string", filled)?;
    Ok(Skill {
        name: members.id("name")?.unwrap_or_else(|| id.clone()),
        id: SkillId::from(id),
        description: members.text("description")?.unwrap_or_default(),
        tags: members.texts("tags")?,
        examples: members.texts("examples")?,
        input_modes: members.texts("inputModes")?,
        output_modes: members.texts("outputModes")?,
        input_schema: members.take("inputSchema").map(Json::from),
        cost: Cents::among(|name| members.peek(name)),
        extra: members.rest(),
        called: None,
    })
}

/// Interface of 1.0, or none when its version is unsupported.
fn interface(raw: RawJson<'_>) -> Result<Option<Interface>, InvalidDocument> {
    let mut members = ObjectMembers::read(raw)?;
    let url = members.need("url", "a string", filled)?;
    let binding = members.id("protocolBinding")?.map_or(Binding::JsonRpc, |name| binding(&name));
    let tenant = members.id("tenant")?;
    let version = members.id("protocolVersion")?;
    let dialect = version.as_deref().map_or(Some(Dialect::V10), dialect);
    Ok(dialect.map(|dialect| Interface { url, binding, dialect, tenant }))
}

/// Adds the addresses of an older card that are not there yet.
fn older_interfaces(
    members: &mut ObjectMembers<'_>,
    interfaces: &mut Vec<Interface>,
) -> Result<(), InvalidDocument> {
    let version = members.id("protocolVersion")?;
    let preferred = members.id("preferredTransport")?.map_or(Binding::JsonRpc, |name| binding(&name));
    let mut addresses: Vec<(String, Binding)> = Vec::new();
    addresses.extend(members.id("url")?.map(|url| (url, preferred)));
    addresses.extend(members.list("additionalInterfaces", address)?);
    let Some(dialect) = version.as_deref().map_or(Some(Dialect::V02), dialect) else { return Ok(()) };
    for (url, binding) in addresses {
        if !interfaces.iter().any(|known| known.url == url && known.binding == binding) {
            interfaces.push(Interface { url, binding, dialect, tenant: None });
        }
    }
    Ok(())
}

fn address(raw: RawJson<'_>) -> Result<(String, Binding), InvalidDocument> {
    let mut members = ObjectMembers::read(raw)?;
    let url = members.need("url", "a string", filled)?;
    Ok((url, members.id("transport")?.map_or(Binding::JsonRpc, |name| binding(&name))))
}

fn binding(name: &str) -> Binding {
    if name.eq_ignore_ascii_case("JSONRPC") {
        Binding::JsonRpc
    } else if name.eq_ignore_ascii_case("HTTP+JSON") {
        Binding::HttpJson
    } else if name.eq_ignore_ascii_case("GRPC") {
        Binding::Grpc
    } else {
        Binding::Other(name.to_owned())
    }
}

fn filled(raw: RawJson<'_>) -> Result<String, InvalidDocument> {
    let text = text(raw)?;
    if text.is_empty() { Err(InvalidDocument::new("a string", "an empty string")) } else { Ok(text) }
}
