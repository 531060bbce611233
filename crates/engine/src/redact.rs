//! Keeps secrets out of what is recorded.
//!
//! What a secret is, [`rialto_guardrails::secrets`] says. Most arguments hold none, so the text is only searched; it is parsed when the search
//! finds something suspicious, and comes back as it was when that turns out to be nothing.

use rialto_guardrails::secrets::{
    MASK, SecretName, has_random_word, has_secret, mask_secrets, may_hold_secret, secret_name,
};
use rialto_model::{
    json::Json,
    message::{Content, Message},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Stands in place of arguments that were too large to be kept.
const OMITTED: &str = "rialto/omitted";

/// Masks secrets in JSON.
pub fn redact(json: &Json) -> Json {
    if !may_hold_secret(json.get()) {
        return json.clone();
    }
    let mut value = json.value();
    if mask(&mut value) { Json::encode(&value) } else { json.clone() }
}

/// Masks secrets in a text.
pub(crate) fn redact_text(text: &str) -> String {
    mask_secrets(text).into_owned()
}

/// The same message with whatever looks like a secret masked. What is in `clean` was looked through before.
pub(crate) fn redact_message(mut message: Message, clean: Option<&Json>) -> Message {
    for part in &mut message.parts {
        match &mut part.content {
            Content::Data(data) if clean.is_some_and(|clean| clean.shares(data)) => {}
            Content::Data(data) | Content::Unknown(data) => *data = redact(data),
            Content::Text(text) if has_secret(text) => *text = redact_text(text),
            Content::Url(url) if has_secret(url) => *url = redact_text(url),
            Content::Text(_) | Content::Raw(_) | Content::Url(_) => {}
        }
    }
    message.metadata = message.metadata.as_ref().map(redact);
    message
}

/// Arguments as they are kept: without secrets, and only their size and hash when they are larger than `max` bytes (0: any size).
pub(crate) fn kept_args(args: &Json, max: usize) -> Json {
    if max == 0 || args.get().len() <= max {
        return redact(args);
    }
    let hash: String = Sha256::digest(args.get()).iter().map(|byte| format!("{byte:02x}")).collect();
    let why = format!("larger than {max} bytes; calls.max_kept_args_bytes keeps more");
    let omitted = json!({ "bytes": args.get().len(), "sha256": hash, "why": why });
    Json::encode(&json!({ OMITTED: omitted }))
}

/// True if arguments were too large to be stored.
pub(crate) fn is_omitted(args: &Json) -> bool {
    args.get().starts_with(r#"{"rialto/omitted":"#)
}

/// True if something is masked there.
pub fn is_redacted(json: &Json) -> bool {
    json.get().contains(MASK)
}

/// Masks what is secret in a value, and says whether anything was.
fn mask(value: &mut Value) -> bool {
    match value {
        // Each one is checked, not only up to the first.
        Value::Object(members) => {
            members.iter_mut().filter_map(|(name, member)| mask_member(name, member).then_some(())).count()
                > 0
        }
        Value::Array(items) => items.iter_mut().filter_map(|item| mask(item).then_some(())).count() > 0,
        Value::String(text) => mask_string(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn mask_member(name: &str, member: &mut Value) -> bool {
    let is_secret = match (secret_name(name), &*member) {
        (_, Value::Null | Value::Bool(_)) | (SecretName::Harmless, _) => false,
        (SecretName::Text, value) => !value.is_number(),
        (SecretName::TextAndNumbers, _) => true,
    };
    if is_secret {
        *member = Value::String(MASK.to_owned());
        return true;
    }
    mask(member)
}

fn mask_string(text: &mut String) -> bool {
    let masked = mask_secrets(text);
    if masked != *text {
        *text = masked.into_owned();
        return true;
    }
    // A single word that looks like a key; in prose it would be an id that somebody wants to read.
    let is_key = !text.contains(char::is_whitespace) && !text.contains("://") && has_random_word(text);
    if is_key {
        MASK.clone_into(text);
    }
    is_key
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
    fn pins_and_short_passwords_are_masked_also_as_numbers() {
        assert_eq!(
            redacted(r#"{"pwd":"x","pin":1234,"card":{"cvv":"123"},"spinner":"on","pinned":true}"#),
            r#"{"pwd":"[redacted]","pin":"[redacted]","card":{"cvv":"[redacted]"},"spinner":"on","pinned":true}"#
        );
    }

    #[test]
    fn a_text_that_holds_a_key_loses_the_key() {
        assert_eq!(redacted(r#"{"note":"use ghp_abcdef"}"#), r#"{"note":"use [redacted]"}"#);
        assert_eq!(redacted(r#"{"note":"sk_live_51Habc"}"#), r#"{"note":"[redacted]"}"#);
        let url = r#"{"db":"postgres://app:hunter2@db/app"}"#;
        assert_eq!(redacted(url), r#"{"db":"postgres://app:[redacted]@db/app"}"#);
        assert_eq!(redacted(r#"{"note":"ghp\u005fabcdef"}"#), r#"{"note":"[redacted]"}"#, "escaped");
        assert_eq!(redacted(r#"{"note":"Zk9vQ2xR7tLm4Wp8Yb3N"}"#), r#"{"note":"[redacted]"}"#, "random");
    }

    #[test]
    fn what_holds_no_secret_keeps_its_very_text() {
        for text in [
            r#"{"n": 1.000}"#,
            r#"{"n": 1.000, "max_tokens": 5}"#,
            r#"{"n": 1.000, "shipping": "a\nb", "tokenId": "tok_1"}"#,
        ] {
            assert_eq!(redacted(text), text);
        }
    }
}
