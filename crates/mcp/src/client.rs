//! Who is at the other end of a request, and what it can bear.

use rialto_model::{
    call::{Caller, Door},
    trace::Trace,
};
use rmcp::model::ProtocolVersion;

use crate::{
    config::ToolNames,
    names::{Naming, Rule},
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
    /// How tools are called in its lists.
    pub(crate) naming: Naming,
    /// The trace that this request is a part of.
    pub(crate) trace: Option<Box<Trace>>,
}

/// What a protocol version has words for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fluency {
    /// 2026-07-28 and later: any JSON as structured content, `resultType`, no sessions.
    pub(crate) modern: bool,
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
        let (fluency, naming) = (Fluency::of(version), Naming { mode, rule: Rule::of(name) });
        Self { caller, door, fluency, naming, trace: None }
    }
}

// === impl Fluency ===

impl Fluency {
    /// The newest version has words for everything.
    #[cfg(test)]
    pub(crate) const NEWEST: Self = Self { modern: true, links: true, audio: true };

    /// Versions are dates, so their text sorts by age. A client that names none is an old one.
    pub(crate) fn of(version: Option<&str>) -> Self {
        let version = version.unwrap_or(ProtocolVersion::V_2025_03_26.as_str());
        let since = |first: ProtocolVersion| version >= first.as_str();
        Self {
            modern: since(ProtocolVersion::V_2026_07_28),
            links: since(ProtocolVersion::V_2025_06_18),
            audio: since(ProtocolVersion::V_2025_03_26),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_version_has_more_words() {
        let plain = Fluency { modern: false, links: false, audio: false };
        assert_eq!(Fluency::of(Some("2024-11-05")), plain);
        assert_eq!(Fluency::of(None), Fluency { audio: true, ..plain });
        assert_eq!(Fluency::of(Some("2025-11-25")), Fluency { audio: true, links: true, ..plain });
        assert_eq!(Fluency::of(Some("2026-07-28")), Fluency::NEWEST);
    }
}
