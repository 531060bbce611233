//! Keeps secrets out of what is written down.
//!
//! Most arguments hold none, so the text is only searched; it is parsed when the search finds a suspicious word.

use std::sync::LazyLock;

use aho_corasick::packed::Searcher;
use rialto_model::{
    json::Json,
    message::{Content, Message},
};
use serde_json::Value;

const MASK: &str = "[redacted]";

/// Words that make a member's name suspicious, in lower case, without separators.
const NAMES: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "authorization",
    "credential",
    "privatekey",
    "accesskey",
    "cookie",
    "bearer",
];

/// How well-known kinds of secrets begin.
const PREFIXES: [&str; 9] =
    ["sk-", "ghp_", "github_pat_", "xoxb-", "xoxp-", "AKIA", "eyJhbGci", "-----BEGIN", "Bearer "];

/// The same JSON with whatever looks like a secret masked.
pub fn redact(json: &Json) -> Json {
    if !looks_secret(json.get()) {
        return json.clone();
    }
    let mut value = json.value();
    mask(&mut value);
    Json::of(&value)
}

/// The same text, or nothing of it if a secret stands in it.
pub(crate) fn redact_text(text: &str) -> String {
    let is_secret = looks_secret(text) && PREFIXES.iter().any(|prefix| text.contains(prefix));
    if is_secret { MASK.to_owned() } else { text.to_owned() }
}

/// The same message with whatever looks like a secret masked. What is in `clean` was looked through before.
pub(crate) fn redact_message(mut message: Message, clean: Option<&Json>) -> Message {
    for part in &mut message.parts {
        match &mut part.content {
            Content::Data(data) if clean.is_some_and(|clean| clean.shares(data)) => {}
            Content::Data(data) | Content::Unknown(data) => *data = redact(data),
            Content::Text(text) if looks_secret(text) => *text = redact_text(text),
            Content::Text(_) | Content::Raw(_) | Content::Url(_) => {}
        }
    }
    message.metadata = message.metadata.as_ref().map(redact);
    message
}

/// Whether something was masked there.
pub fn is_redacted(json: &Json) -> bool {
    json.get().contains(MASK)
}

/// Finds any suspicious word in one pass, in lower case. Names are looked for in the ways people write them.
///
/// Every argument of every call goes through this, so it is the kind of search that looks at many bytes at once.
static SUSPICIOUS: LazyLock<Option<Searcher>> = LazyLock::new(|| {
    let spelt = ["api_key", "api-key", "api key", "private_key", "private-key", "access_key", "access-key"];
    let words = NAMES.iter().chain(&PREFIXES).chain(&spelt);
    Searcher::new(words.map(|word| word.to_ascii_lowercase()))
});

fn looks_secret(text: &str) -> bool {
    // Where there is no such search everything is suspicious: slower, never less careful.
    SUSPICIOUS.as_ref().is_none_or(|search| search.find(text.to_ascii_lowercase()).is_some())
}

fn plain(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).map(|c| c.to_ascii_lowercase()).collect()
}

fn mask(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                let plain = plain(name);
                let suspicious = NAMES.iter().any(|word| plain.contains(word));
                if suspicious && !matches!(member, Value::Null | Value::Bool(_) | Value::Number(_)) {
                    *member = Value::String(MASK.to_owned());
                } else {
                    mask(member);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::String(text) if PREFIXES.iter().any(|prefix| text.contains(prefix)) => *text = MASK.to_owned(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(text: &str) -> String {
        redact(&Json::parse(text).unwrap()).to_string()
    }

    #[test]
    fn a_member_that_is_called_a_secret_is_masked_at_any_depth() {
        let text = r#"{"user":"ann","auth":{"API_Key":"k","list":[{"passWord":{"a":1}}]}}"#;
        assert_eq!(
            redacted(text),
            r#"{"user":"ann","auth":{"API_Key":"[redacted]","list":[{"passWord":"[redacted]"}]}}"#
        );
    }

    #[test]
    fn a_text_that_begins_like_a_key_is_masked() {
        assert_eq!(redacted(r#"{"note":"use ghp_abcdef"}"#), r#"{"note":"[redacted]"}"#);
    }

    #[test]
    fn what_holds_no_secret_keeps_its_very_text() {
        let text = r#"{"n": 1.000, "max_tokens": 5}"#;
        assert_eq!(redacted(r#"{"n": 1.000}"#), r#"{"n": 1.000}"#);
        assert!(redacted(text).contains('5'));
    }
}
