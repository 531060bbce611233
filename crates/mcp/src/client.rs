//! Who is at the other end of a request, and what it can bear.

use rialto_model::{
    call::{Caller, Door},
    deployed::Backing,
    trace::Trace,
};
use rmcp::model::{ClientCapabilities, ProtocolVersion};

use crate::{
    config::{ToolErrors, ToolList, ToolNames},
    names::Naming,
};

/// One client, as far as one request shows it.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// On whose behalf it asks.
    pub(crate) caller: Caller,
    /// The door it came in by.
    pub(crate) door: Door,
    /// What its protocol version has words for.
    pub(crate) fluency: Fluency,
    /// What it says that it can do itself.
    pub(crate) abilities: Abilities,
    /// How tools are called in its lists.
    pub(crate) naming: Naming,
    /// How many bytes of a result are put into its context; 0 is all of them.
    pub(crate) inline: usize,
    /// Form of failed calls.
    pub(crate) errors: ToolErrors,
    /// Which list of tools it asks for, if it does.
    pub(crate) list: Option<ToolList>,
    /// The trace that this request is a part of.
    pub(crate) trace: Option<Box<Trace>>,
}

/// Who reads a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reader {
    /// What its protocol version has words for.
    pub(crate) fluency: Fluency,
    /// How many bytes of a result are put into its context; 0 is all of them.
    pub(crate) inline: usize,
    /// Form of failed calls.
    pub(crate) errors: ToolErrors,
    /// Whether the result is one of an upstream MCP server, which is passed on as it came.
    pub(crate) is_upstream: bool,
    /// Whether it was told in which shape results are, and throws away whatever is neither that nor an error.
    pub(crate) is_promised: bool,
    /// Whether it shows its model structured content in place of the rest.
    pub(crate) structured_first: bool,
}

/// What a client can do when it is asked to, as far as this request may ask for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Abilities {
    /// Has a person fill in a form.
    pub(crate) form: bool,
    /// Sends a person to an address.
    pub(crate) url: bool,
    /// Fetches what takes long as a task.
    pub(crate) tasks: bool,
}

/// What a protocol version has words for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a word that a version has or has not")]
pub(crate) struct Fluency {
    /// 2026-07-28 and later: any JSON as structured content, `resultType`, no sessions.
    pub(crate) modern: bool,
    /// Forms in which several things can be chosen, by titles; addresses to send a person to (2025-11-25).
    pub(crate) choices: bool,
    /// Links to resources in results (2025-06-18).
    pub(crate) links: bool,
    /// Audio in results (2025-03-26).
    pub(crate) audio: bool,
}

// === impl Client ===

impl Client {
    /// Puts together what a request says about its sender. `name` is what the client calls itself.
    pub(crate) fn new(
        caller: Caller,
        door: Door,
        version: Option<&str>,
        name: &str,
        mode: ToolNames,
    ) -> Self {
        let (fluency, naming) = (Fluency::of(version), Naming::of(name, mode));
        let abilities = Abilities::default();
        Self {
            caller,
            door,
            fluency,
            abilities,
            naming,
            inline: 0,
            errors: ToolErrors::default(),
            list: None,
            trace: None,
        }
    }

    /// How results are told to it.
    pub(crate) fn reader(&self) -> Reader {
        Reader {
            fluency: self.fluency,
            inline: self.inline,
            errors: self.errors,
            is_upstream: false,
            is_promised: false,
            structured_first: self.naming.rule.reads_structured_first(),
        }
    }
}

// === impl Reader ===

impl Reader {
    /// The same reader of a result that is told in full.
    #[must_use]
    pub(crate) const fn unbounded(self) -> Self {
        Self { inline: 0, ..self }
    }

    /// The same reader of a result of this kind of backend.
    #[must_use]
    pub(crate) const fn of_backing(self, backing: &Backing) -> Self {
        Self { is_upstream: matches!(backing, Backing::Mcp(_)), ..self }
    }

    /// The same reader of a result that was promised in a certain shape.
    #[must_use]
    pub(crate) const fn promised(self) -> Self {
        Self { inline: 0, is_promised: true, ..self }
    }
}

// === impl Abilities ===

impl Abilities {
    /// What a client has declared, in its version's words.
    pub(crate) fn of(declared: &ClientCapabilities, fluency: Fluency) -> Self {
        let tasks = fluency.modern && declared.supports_tasks();
        // Forms came with the same version as links did.
        let Some(asks) = declared.elicitation.as_ref().filter(|_| fluency.links) else {
            return Self { tasks, ..Self::default() };
        };
        // Who does not say which, means forms: there was nothing else at first.
        let form = asks.form.is_some() || asks.url.is_none();
        Self { form, url: asks.url.is_some() && fluency.choices, tasks }
    }
}

// === impl Fluency ===

impl Fluency {
    /// The newest version has words for everything.
    #[cfg(test)]
    pub(crate) const NEWEST: Self = Self { modern: true, choices: true, links: true, audio: true };

    /// Versions are dates, so their text sorts by age. A client that names none is an old one.
    pub(crate) fn of(version: Option<&str>) -> Self {
        let version = version.unwrap_or(ProtocolVersion::V_2025_03_26.as_str());
        let since = |first: ProtocolVersion| version >= first.as_str();
        Self {
            modern: since(ProtocolVersion::V_2026_07_28),
            choices: since(ProtocolVersion::V_2025_11_25),
            links: since(ProtocolVersion::V_2025_06_18),
            audio: since(ProtocolVersion::V_2025_03_26),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_later_version_has_more_words() {
        let plain = Fluency { modern: false, choices: false, links: false, audio: false };
        assert_eq!(Fluency::of(Some("2024-11-05")), plain);
        assert_eq!(Fluency::of(None), Fluency { audio: true, ..plain });
        let linked = Fluency { audio: true, links: true, ..plain };
        assert_eq!(Fluency::of(Some("2025-06-18")), linked);
        assert_eq!(Fluency::of(Some("2025-11-25")), Fluency { choices: true, ..linked });
        assert_eq!(Fluency::of(Some("2026-07-28")), Fluency::NEWEST);
    }

    #[test]
    fn a_client_is_asked_only_in_ways_that_it_and_its_version_have() {
        let of = |declared: serde_json::Value, version| {
            let declared = serde_json::from_value(declared).unwrap();
            let Abilities { form, url, .. } = Abilities::of(&declared, Fluency::of(Some(version)));
            (form, url)
        };
        let (none, both) = (json!({}), json!({ "elicitation": { "form": {}, "url": {} } }));
        assert_eq!(of(none, "2026-07-28"), (false, false));
        assert_eq!(of(json!({ "elicitation": {} }), "2026-07-28"), (true, false));
        assert_eq!(of(json!({ "elicitation": { "url": {} } }), "2026-07-28"), (false, true));
        assert_eq!(of(both.clone(), "2025-11-25"), (true, true));
        assert_eq!(of(both.clone(), "2025-06-18"), (true, false));
        assert_eq!(of(both, "2025-03-26"), (false, false));
    }
}
