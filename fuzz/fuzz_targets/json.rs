//! Any text: members and items hold the document that serde reads in it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rialto_model::json::{RawJson, is_too_deep};
use serde_json::Value;

fuzz_target!(|text: &str| {
    if is_too_deep(text.as_bytes()) {
        return;
    }
    match RawJson::parse(text) {
        // A string may have half of a pair of surrogates: valid to pass on, and nothing that Rust can hold.
        Ok(raw) => {
            if let Ok(value) = serde_json::from_str::<Value>(text) {
                assert_eq!(rebuilt(raw), value);
            }
        }
        Err(_) => assert!(serde_json::from_str::<Value>(text).is_err()),
    }
});

fn rebuilt(raw: RawJson<'_>) -> Value {
    if let Some(members) = raw.members() {
        return Value::Object(
            members.into_iter().map(|(name, raw)| (name.into_owned(), rebuilt(raw))).collect(),
        );
    }
    match raw.items() {
        Some(items) => Value::Array(items.into_iter().map(rebuilt).collect()),
        None => serde_json::from_str(raw.get()).expect("a part of a valid document"),
    }
}
