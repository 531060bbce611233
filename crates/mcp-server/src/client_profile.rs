//! Profile of the client that sent a request: protocol features, capabilities and options.

use rialto_model::{
    backing::Backing,
    call::{Caller, EntryProtocol},
    trace::Trace,
};
use rmcp::model::{ClientCapabilities, ProtocolVersion};

use crate::{
    config::{ToolErrors, ToolList, ToolNames},
    names::Naming,
};

/// Client profile, as far as one request shows it.
#[derive(Clone, Debug)]
pub(crate) struct ClientProfile {
    /// Authenticated caller.
    pub(crate) caller: Caller,
    /// Transport that the request used.
    pub(crate) door: EntryProtocol,
    /// Features of the protocol version.
    pub(crate) fluency: ProtocolFeatures,
    /// Declared client capabilities.
    pub(crate) abilities: DeclaredCapabilities,
    /// Naming rule of its tool lists.
    pub(crate) naming: Naming,
    /// Maximum bytes of a result in the client's context; 0 is unlimited.
    pub(crate) inline: usize,
    /// Form of failed calls.
    pub(crate) errors: ToolErrors,
    /// Tool list that the client asks for, if any.
    pub(crate) list: Option<ToolList>,
    /// Trace of the request.
    pub(crate) trace: Option<Box<Trace>>,
}

/// Options for rendering a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResultOptions {
    /// Features of the protocol version.
    pub(crate) fluency: ProtocolFeatures,
    /// Maximum bytes of a result in the client's context; 0 is unlimited.
    pub(crate) inline: usize,
    /// Form of failed calls.
    pub(crate) errors: ToolErrors,
    /// True for the result of an upstream MCP server, which is passed on unchanged.
    pub(crate) is_upstream: bool,
    /// True when the tool declares an output schema: the client then rejects any other shape except an error.
    pub(crate) is_promised: bool,
    /// True for clients that show their model structured content in place of content blocks.
    pub(crate) structured_first: bool,
}

/// Declared client capabilities that this request may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeclaredCapabilities {
    /// Form elicitation.
    pub(crate) form: bool,
    /// URL elicitation.
    pub(crate) url: bool,
    /// Tasks extension: fetches long calls as tasks.
    pub(crate) tasks: bool,
}

/// Features of an MCP protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a word that a version has or has not")]
pub(crate) struct ProtocolFeatures {
    /// 2026-07-28 and later: any JSON as structured content, `resultType`, no sessions.
    pub(crate) modern: bool,
    /// Multiple choice and titled choices in forms; URL elicitation (2025-11-25).
    pub(crate) choices: bool,
    /// Resource links in results (2025-06-18).
    pub(crate) links: bool,
    /// Audio in results (2025-03-26).
    pub(crate) audio: bool,
}

// === impl ClientProfile ===

impl ClientProfile {
    /// Collects the profile from a request. `name` is the client's own name.
    pub(crate) fn new(
        caller: Caller,
        door: EntryProtocol,
        version: Option<&str>,
        name: &str,
        mode: ToolNames,
    ) -> Self {
        let (fluency, naming) = (ProtocolFeatures::of(version), Naming::of(name, mode));
        let abilities = DeclaredCapabilities::default();
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

    /// Options for rendering results to this client.
    pub(crate) fn reader(&self) -> ResultOptions {
        ResultOptions {
            fluency: self.fluency,
            inline: self.inline,
            errors: self.errors,
            is_upstream: false,
            is_promised: false,
            structured_first: self.naming.rule.reads_structured_first(),
        }
    }
}

// === impl ResultOptions ===

impl ResultOptions {
    /// Removes the size limit.
    #[must_use]
    pub(crate) const fn unbounded(self) -> Self {
        Self { inline: 0, ..self }
    }

    /// Options for the result of this kind of backend.
    #[must_use]
    pub(crate) const fn of_backing(self, backing: &Backing) -> Self {
        Self { is_upstream: matches!(backing, Backing::Mcp(_)), ..self }
    }

    /// Options for a result with a declared output schema.
    #[must_use]
    pub(crate) const fn promised(self) -> Self {
        Self { inline: 0, is_promised: true, ..self }
    }
}

// === impl DeclaredCapabilities ===

impl DeclaredCapabilities {
    /// Capabilities that a client declared, for its protocol version.
    pub(crate) fn of(declared: &ClientCapabilities, fluency: ProtocolFeatures) -> Self {
        let tasks = fluency.modern && declared.supports_tasks();
        // Forms came with the same version as resource links.
        let Some(asks) = declared.elicitation.as_ref().filter(|_| fluency.links) else {
            return Self { tasks, ..Self::default() };
        };
        // A client that names no mode supports forms: there was nothing else at first.
        let form = asks.form.is_some() || asks.url.is_none();
        Self { form, url: asks.url.is_some() && fluency.choices, tasks }
    }
}

// === impl ProtocolFeatures ===

impl ProtocolFeatures {
    /// All features: the newest version.
    #[cfg(test)]
    pub(crate) const NEWEST: Self = Self { modern: true, choices: true, links: true, audio: true };

    /// Features of a version. Versions are dates, so they sort by age as text. A client without a version is an old one.
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
        let plain = ProtocolFeatures { modern: false, choices: false, links: false, audio: false };
        assert_eq!(ProtocolFeatures::of(Some("2024-11-05")), plain);
        assert_eq!(ProtocolFeatures::of(None), ProtocolFeatures { audio: true, ..plain });
        let linked = ProtocolFeatures { audio: true, links: true, ..plain };
        assert_eq!(ProtocolFeatures::of(Some("2025-06-18")), linked);
        assert_eq!(ProtocolFeatures::of(Some("2025-11-25")), ProtocolFeatures { choices: true, ..linked });
        assert_eq!(ProtocolFeatures::of(Some("2026-07-28")), ProtocolFeatures::NEWEST);
    }

    #[test]
    fn a_client_is_asked_only_in_ways_that_it_and_its_version_have() {
        let of = |declared: serde_json::Value, version| {
            let declared = serde_json::from_value(declared).unwrap();
            let DeclaredCapabilities { form, url, .. } =
                DeclaredCapabilities::of(&declared, ProtocolFeatures::of(Some(version)));
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
