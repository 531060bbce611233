//! Protocol extensions: their URIs are in a header, whose name changed with 1.0.

use std::sync::OnceLock;

use http::{HeaderMap, HeaderName, HeaderValue};
use rialto_a2a_codec::wire::Wire;
use rialto_model::card::{Card, Dialect};

/// Extensions of one call: requested by the caller, and activated by the agent.
#[derive(Default)]
pub(crate) struct Extensions {
    wanted: Option<HeaderValue>,
    activated: OnceLock<Vec<String>>,
}

const HEADER_NAME: HeaderName = HeaderName::from_static("a2a-extensions");
const OLD_HEADER_NAME: HeaderName = HeaderName::from_static("x-a2a-extensions");

/// Maximum number of URIs read from one message.
const MAX_URIS: usize = 64;

/// URIs in the headers, under either name.
pub(crate) fn named(headers: &HeaderMap) -> Vec<String> {
    if !headers.contains_key(HEADER_NAME) && !headers.contains_key(OLD_HEADER_NAME) {
        return Vec::new();
    }
    let values = headers.get_all(HEADER_NAME).iter().chain(headers.get_all(OLD_HEADER_NAME));
    let uris = values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let mut named: Vec<String> = Vec::new();
    for uri in uris.map(str::trim).filter(|uri| !uri.is_empty()).take(MAX_URIS) {
        if named.iter().all(|known| known != uri) {
            named.push(uri.to_owned());
        }
    }
    named
}

/// Reports the active extensions to a caller, if there are any and its dialect has a header for them.
pub(crate) fn tell(wire: Wire, activated: &[String], headers: &mut HeaderMap) {
    if let Some((name, value)) = told(wire, activated) {
        headers.insert(name, value);
    }
}

fn told(wire: Wire, activated: &[String]) -> Option<(HeaderName, HeaderValue)> {
    let name = name(wire.dialect())?;
    Some((name, written(activated)?))
}

/// Extensions that an agent's card requires.
pub(crate) fn required(card: &Card) -> Vec<String> {
    if !card.raw.get().contains("\"extensions\"") {
        return Vec::new();
    }
    let card = card.raw.value();
    let all = card["capabilities"]["extensions"].as_array().into_iter().flatten();
    let required = all.filter(|extension| extension["required"] == true);
    required.filter_map(|extension| extension["uri"].as_str().map(str::to_owned)).collect()
}

const fn name(dialect: Dialect) -> Option<HeaderName> {
    match dialect {
        Dialect::V10 => Some(HEADER_NAME),
        Dialect::V03 | Dialect::V02 => Some(OLD_HEADER_NAME),
        Dialect::V01 => None,
    }
}

fn written(uris: &[String]) -> Option<HeaderValue> {
    if uris.is_empty() {
        return None;
    }
    HeaderValue::try_from(uris.join(", ")).ok()
}

// === impl Extensions ===

impl Extensions {
    /// Extensions that a caller requests.
    pub(crate) fn wanted(uris: &[String]) -> Self {
        Self { wanted: written(uris), activated: OnceLock::new() }
    }

    /// Adds them to a request, in the header of the dialect.
    pub(crate) fn ask(&self, dialect: Dialect, headers: &mut HeaderMap) {
        if let (Some(wanted), Some(name)) = (&self.wanted, name(dialect)) {
            headers.insert(name, wanted.clone());
        }
    }

    /// Records the active extensions. The first response counts: it is the one to the message.
    pub(crate) fn hear(&self, headers: &HeaderMap) {
        if self.wanted.is_some() {
            let _ = self.activated.set(named(headers));
        }
    }

    /// Active extensions, as far as the agent has reported them.
    pub(crate) fn activated(&self) -> &[String] {
        self.activated.get().map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_read_under_both_names_and_written_under_one() {
        let mut headers = HeaderMap::new();
        headers.append(HEADER_NAME, HeaderValue::from_static("https://a, https://b"));
        headers.append(HEADER_NAME, HeaderValue::from_static(",https://a,"));
        headers.append(OLD_HEADER_NAME, HeaderValue::from_static("https://c"));
        let all = named(&headers);
        assert_eq!(all, ["https://a", "https://b", "https://c"]);
        let (name, value) = told(Wire::V10, &all).unwrap();
        assert_eq!(
            (name.as_str(), value.as_bytes()),
            ("a2a-extensions", &b"https://a, https://b, https://c"[..])
        );
        assert_eq!(told(Wire::V03, &all).unwrap().0.as_str(), "x-a2a-extensions");
        assert_eq!(told(Wire::V01, &all), None);
        assert_eq!(told(Wire::V10, &[]), None);
    }
}
