//! Warnings of guardrails to the caller about content that was let through.

use serde::{Deserialize, Serialize, Serializer, ser::SerializeStruct};

use crate::{
    json::{Extra, Json},
    task::Task,
};

/// The header of an answer that tells of it.
pub const GUARDRAIL_HEADER: &str = "x-rialto-guardrail";

/// The member of a task's metadata that tells of it.
pub const GUARDRAIL_MEMBER: &str = "rialto/guardrail";

/// A warning: which checks have found which kinds. Never the text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct GuardrailNotice {
    /// The types of the checks, in order, each once.
    pub checks: Vec<String>,
    /// Kinds that were found, in order, each once.
    pub kinds: Vec<String>,
}

// === impl GuardrailNotice ===

impl GuardrailNotice {
    /// Takes in one more finding.
    pub fn add(&mut self, check: &str, kind: &str) {
        insert(&mut self.checks, check);
        insert(&mut self.kinds, kind);
    }

    /// Takes in another one.
    pub fn join(&mut self, other: &Self) {
        other.checks.iter().for_each(|check| insert(&mut self.checks, check));
        other.kinds.iter().for_each(|kind| insert(&mut self.kinds, kind));
    }

    /// The value of the header: `warn; checks=pii; kinds=email`.
    pub fn header(&self) -> String {
        format!("warn; checks={}; kinds={}", tokens(&self.checks), tokens(&self.kinds))
    }

    /// The notice that metadata tells of, if it does.
    pub fn read(metadata: Option<&Json>) -> Option<Self> {
        let metadata = metadata.filter(|metadata| metadata.get().contains(GUARDRAIL_MEMBER))?;
        serde_json::from_value(metadata.value().get(GUARDRAIL_MEMBER)?.clone()).ok()
    }

    /// Metadata with this notice added.
    #[must_use]
    pub fn put(&self, metadata: Option<&Json>) -> Json {
        let mut all = self.clone();
        if let Some(known) = Self::read(metadata) {
            all.join(&known);
        }
        let mut members = metadata.and_then(|metadata| metadata.read::<Extra>().ok()).unwrap_or_default();
        members.take(GUARDRAIL_MEMBER);
        members.push(GUARDRAIL_MEMBER, Json::encode(&all));
        Json::encode(&members)
    }
}

impl Serialize for GuardrailNotice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut told = serializer.serialize_struct("Notice", 3)?;
        told.serialize_field("action", "warn")?;
        told.serialize_field("checks", &self.checks)?;
        told.serialize_field("kinds", &self.kinds)?;
        told.end()
    }
}

// === impl Task ===

impl Task {
    /// Guardrail warnings about the task's messages and artifacts.
    pub fn guardrail(&self) -> Option<GuardrailNotice> {
        GuardrailNotice::read(self.metadata.as_ref())
    }
}

fn insert(names: &mut Vec<String>, name: &str) {
    if let Err(at) = names.binary_search_by(|known| known.as_str().cmp(name)) {
        names.insert(at, name.to_owned());
    }
}

/// Names as a header can have them.
fn tokens(names: &[String]) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let names: Vec<String> = names.iter().map(|name| name.chars().map(plain).collect()).collect();
    names.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_keeps_what_was_there_and_adds_what_is_new() {
        let mut notice = GuardrailNotice::default();
        notice.add("pii", "phone");
        notice.add("pii", "email");
        let first = notice.put(Some(&Json::parse(r#"{"n":1.50}"#).unwrap()));
        let mut more = GuardrailNotice::default();
        more.add("regex", "a ticket");
        let both = more.put(Some(&first));
        assert!(both.get().starts_with(r#"{"n":1.50,"#), "{both}");
        let read = GuardrailNotice::read(Some(&both)).unwrap();
        assert_eq!(read.header(), "warn; checks=pii,regex; kinds=a-ticket,email,phone");
        assert_eq!(GuardrailNotice::read(Some(&Json::empty_object())), None);
        assert_eq!(GuardrailNotice::read(None), None);
    }
}
