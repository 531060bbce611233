//! Protocol extensions of one call.

use std::sync::OnceLock;

use http::{HeaderMap, HeaderValue};
use rialto_a2a_codec::extension;
use rialto_model::card::Dialect;

/// Extensions of one call: requested by the caller, and activated by the agent.
#[derive(Default)]
pub(crate) struct Extensions {
    wanted: Option<HeaderValue>,
    activated: OnceLock<Vec<String>>,
}

// === impl Extensions ===

impl Extensions {
    /// Extensions that a caller requests.
    pub(crate) fn wanted(uris: &[String]) -> Self {
        Self { wanted: extension::header_value(uris), activated: OnceLock::new() }
    }

    /// Adds them to a request, in the header of the dialect.
    pub(crate) fn ask(&self, dialect: Dialect, headers: &mut HeaderMap) {
        if let (Some(wanted), Some(name)) = (&self.wanted, extension::header_name(dialect)) {
            headers.insert(name, wanted.clone());
        }
    }

    /// Records the active extensions. The first response counts: it is the one to the message.
    pub(crate) fn hear(&self, headers: &HeaderMap) {
        if self.wanted.is_some() {
            let _ = self.activated.set(extension::read(headers));
        }
    }

    /// Active extensions, as far as the agent has reported them.
    pub(crate) fn activated(&self) -> &[String] {
        self.activated.get().map_or(&[], Vec::as_slice)
    }
}
