//! Any text: read level by level it says what serde reads in it, or both refuse it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rialto_model::json::{Document, Raw, Unsound};
use serde_json::Value;

fuzz_target!(|text: &str| {
    match Document::parse(text) {
        // A text in it may have half of a pair of surrogates: sound to pass on, and nothing that Rust could hold.
        Ok(document) => {
            if let Ok(value) = serde_json::from_str::<Value>(text) {
                assert_eq!(rebuilt(document.raw()), value);
            }
        }
        Err(Unsound::TooDeep) => {}
        Err(Unsound::NotJson(_)) => assert!(serde_json::from_str::<Value>(text).is_err()),
    }
});

fn rebuilt(raw: Raw<'_>) -> Value {
    if let Some(members) = raw.members() {
        return Value::Object(members.map(|(name, raw)| (name.into_owned(), rebuilt(raw))).collect());
    }
    match raw.items() {
        Some(items) => Value::Array(items.map(rebuilt).collect()),
        None => serde_json::from_str(raw.get()).expect("a part of what is sound"),
    }
}
