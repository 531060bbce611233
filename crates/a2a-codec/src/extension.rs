//! Protocol extensions: their URIs are in a header, whose name changed with 1.0.

use http::{HeaderMap, HeaderName, HeaderValue};
use rialto_model::card::{Card, Dialect};

use crate::wire::Wire;

const HEADER_NAME: HeaderName = HeaderName::from_static("a2a-extensions");
const OLD_HEADER_NAME: HeaderName = HeaderName::from_static("x-a2a-extensions");

/// Maximum number of URIs read from one message.
const MAX_URIS: usize = 64;

/// URIs in the headers, under either name.
pub fn read(headers: &HeaderMap) -> Vec<String> {
    if !headers.contains_key(HEADER_NAME) && !headers.contains_key(OLD_HEADER_NAME) {
        return Vec::new();
    }
    let values = headers.get_all(HEADER_NAME).iter().chain(headers.get_all(OLD_HEADER_NAME));
    let uris = values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let mut read: Vec<String> = Vec::new();
    for uri in uris.map(str::trim).filter(|uri| !uri.is_empty()).take(MAX_URIS) {
        if read.iter().all(|known| known != uri) {
            read.push(uri.to_owned());
        }
    }
    read
}

/// Adds the active extensions to a response, if there are any and the dialect of the caller has a header for them.
pub fn insert(wire: Wire, activated: &[String], headers: &mut HeaderMap) {
    if let Some((name, value)) = header(wire, activated) {
        headers.insert(name, value);
    }
}

fn header(wire: Wire, activated: &[String]) -> Option<(HeaderName, HeaderValue)> {
    Some((header_name(wire.dialect())?, header_value(activated)?))
}

/// Extensions that an agent's card requires.
pub fn required(card: &Card) -> Vec<String> {
    if !card.raw.get().contains("\"extensions\"") {
        return Vec::new();
    }
    let card = card.raw.value();
    let all = card["capabilities"]["extensions"].as_array().into_iter().flatten();
    let required = all.filter(|extension| extension["required"] == true);
    required.filter_map(|extension| extension["uri"].as_str().map(str::to_owned)).collect()
}

/// Header of the dialect. 0.1 has none.
pub const fn header_name(dialect: Dialect) -> Option<HeaderName> {
    match dialect {
        Dialect::V10 => Some(HEADER_NAME),
        Dialect::V03 | Dialect::V02 => Some(OLD_HEADER_NAME),
        Dialect::V01 => None,
    }
}

/// Header with these URIs. None when there are none, or one cannot be in a header.
pub fn header_value(uris: &[String]) -> Option<HeaderValue> {
    if uris.is_empty() {
        return None;
    }
    HeaderValue::try_from(uris.join(", ")).ok()
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
        let all = read(&headers);
        assert_eq!(all, ["https://a", "https://b", "https://c"]);
        let (name, value) = header(Wire::V10, &all).unwrap();
        assert_eq!(
            (name.as_str(), value.as_bytes()),
            ("a2a-extensions", &b"https://a, https://b, https://c"[..])
        );
        assert_eq!(header(Wire::V03, &all).unwrap().0.as_str(), "x-a2a-extensions");
        assert_eq!(header(Wire::V01, &all), None);
        assert_eq!(header(Wire::V10, &[]), None);
    }
}
