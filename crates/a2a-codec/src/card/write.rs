//! Encoder of a card that clients of 1.0 and of 0.3 both decode.

use rialto_model::{
    card::{Card, Dialect, Interface, Skill},
    json::{Extra, Json},
};
use serde::{Serialize, Serializer};

use crate::object::{ObjectWriter, text_of};

/// Encodes one document with 1.0's members and 0.3's. Members that the card has no field for are taken from its raw text: modes,
/// provider and security. Signatures are dropped, because they would be invalid.
pub fn encode(card: &Card) -> String {
    let raw: Extra = card.raw.read().unwrap_or_default();
    let written = CardWriter { card, raw: &raw };
    text_of(&written)
}

struct CardWriter<'a> {
    card: &'a Card,
    raw: &'a Extra,
}

struct InterfaceWriter<'a>(&'a Interface);

struct OldInterfaceWriter<'a>(&'a Interface);

struct SkillWriter<'a>(&'a Skill);

struct CapabilitiesWriter<'a>(&'a Card);

struct ListWriter<I>(I);

/// Members that are encoded here, and never taken from the raw text.
const OWN_MEMBERS: &[&str] = &[
    "signatures",
    "url",
    "preferredTransport",
    "additionalInterfaces",
    "protocolVersion",
    "supportsAuthenticatedExtendedCard",
];

impl Serialize for CardWriter<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { card, raw } = *self;
        let mut object = ObjectWriter::open(serializer)?;
        object.put("name", &card.name)?;
        object.put("description", &card.description)?;
        object.put("version", card.version.as_deref().unwrap_or("0.0.0"))?;
        object.put("supportedInterfaces", &ListWriter(card.interfaces.iter().map(InterfaceWriter)))?;
        let mut older = card.interfaces.iter().filter(|it| matches!(it.dialect, Dialect::V03 | Dialect::V02));
        if let Some(first) = older.next() {
            object.put("protocolVersion", "0.3.0")?;
            object.put("url", &first.url)?;
            object.put("preferredTransport", &first.binding)?;
            object.put("additionalInterfaces", &ListWriter(older.map(OldInterfaceWriter)))?;
        }
        object.put("capabilities", &CapabilitiesWriter(card))?;
        object.put_flag("supportsAuthenticatedExtendedCard", card.extended)?;
        for name in ["defaultInputModes", "defaultOutputModes"] {
            if raw.get(name).is_none() {
                object.put(name, &["application/json"])?;
            }
        }
        object.put("skills", &ListWriter(card.skills.iter().map(|skill| SkillWriter(skill))))?;
        object.close(raw, OWN_MEMBERS)
    }
}

impl Serialize for InterfaceWriter<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = ObjectWriter::open(serializer)?;
        object.put("url", &self.0.url)?;
        object.put("protocolBinding", &self.0.binding)?;
        object.put("protocolVersion", self.0.dialect.as_str())?;
        object.put_some("tenant", self.0.tenant.as_ref())?;
        object.end()
    }
}

impl Serialize for OldInterfaceWriter<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = ObjectWriter::open(serializer)?;
        object.put("url", &self.0.url)?;
        object.put("transport", &self.0.binding)?;
        object.end()
    }
}

impl Serialize for CapabilitiesWriter<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let told = self.0.raw.read::<Extra>().ok().and_then(|mut raw| raw.take("capabilities"));
        let told: Extra = told.as_ref().map(Json::read).and_then(Result::ok).unwrap_or_default();
        let mut object = ObjectWriter::open(serializer)?;
        object.put("streaming", &self.0.streaming)?;
        object.put("pushNotifications", &self.0.push_notifications)?;
        object.put("extendedAgentCard", &self.0.extended)?;
        // A member of 0.3, about a history that is not kept here.
        object.close(&told, &["stateTransitionHistory"])
    }
}

impl Serialize for SkillWriter<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let skill = self.0;
        let mut object = ObjectWriter::open(serializer)?;
        object.put("id", &skill.id)?;
        object.put("name", &skill.name)?;
        object.put("description", &skill.description)?;
        object.put("tags", &skill.tags)?;
        object.put_texts("examples", &skill.examples)?;
        object.put_texts("inputModes", &skill.input_modes)?;
        object.put_texts("outputModes", &skill.output_modes)?;
        object.put_some("inputSchema", skill.input_schema.as_ref())?;
        object.close(&skill.extra, &[])
    }
}

impl<I: Iterator + Clone> Serialize for ListWriter<I>
where
    I::Item: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone())
    }
}
