use proptest::prelude::*;
use serde_json::{Value, value::RawValue};

use super::*;
use crate::json::raw::tests::{any_json, rebuilt};

/// What serde says of a text, as far as we take it.
fn expected(text: &str) -> Option<&str> {
    let is_sound = !is_too_deep(text.as_bytes());
    serde_json::from_str::<&RawValue>(text).ok().filter(|_| is_sound).map(RawValue::get)
}

/// What we say of it without asking anybody.
fn found(text: &str) -> Option<&str> {
    Document::known(text).map(|document| document.text)
}

/// JSON with some of its bytes replaced by others that mean something.
fn bent_json() -> impl Strategy<Value = String> {
    let bends = prop::collection::vec(
        (any::<prop::sample::Index>(), "[]\\[{}\":,\\\\u0-9eE.+\\- tfn\u{1}\u{e9}]"),
        0..4,
    );
    (any_json(), any::<bool>(), bends).prop_map(|(value, is_pretty, bends)| {
        let text =
            if is_pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let mut chars: Vec<char> = text.unwrap().chars().collect();
        for (at, with) in bends {
            let at = at.index(chars.len());
            chars.splice(at..=at, with.chars());
        }
        chars.into_iter().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_is_json_and_what_is_not_is_what_serde_says(text in bent_json()) {
        prop_assert_eq!(found(&text), expected(&text));
    }

    #[test]
    fn so_it_is_for_a_few_bytes_in_any_order(text in "[]\\[{}\":,\\\\u0-2eE.+\\- a]{0,12}") {
        prop_assert_eq!(found(&text), expected(&text));
    }

    #[test]
    fn what_is_taken_apart_is_all_there(value in any_json(), is_pretty: bool) {
        let text = if is_pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let text = text.unwrap();
        let document = Document::known(&text).unwrap();
        prop_assert_eq!(rebuilt(document.raw()), serde_json::from_str::<Value>(&text).unwrap());
    }
}

const SOUND: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-0",
    "-12.5e+3",
    "1E9",
    "\"\"",
    "[]",
    "{}",
    " [ ] ",
    "[1,2]",
    "{\"a\":{}}",
    "\"\\u00e9\\ud800\\/\"",
    "[[],{},\"\"]",
    "\t{\"a\" : [ 1 , null ] }\r\n",
];

const WRONG: &[&str] = &[
    "",
    " ",
    "nul",
    "tru e",
    "01",
    "-",
    "+1",
    "1.",
    ".5",
    "1e",
    "1e+",
    "\"",
    "\"\\\"",
    "\"\\x\"",
    "\"\\u12g4\"",
    "\"\\u123",
    "\"\n\"",
    "[",
    "]",
    "[1",
    "[1,",
    "[1,]",
    "[,1]",
    "[1 2]",
    "{",
    "{\"a\"",
    "{\"a\":",
    "{\"a\":1",
    "{\"a\":1,",
    "{\"a\":1,}",
    "{a:1}",
    "{\"a\" 1}",
    "{\"a\":}",
    "{1:1}",
    "[}",
    "{]",
    "1 1",
    "[] []",
    "nullx",
];

#[test]
fn each_rule_of_the_grammar_is_kept() {
    for text in SOUND {
        assert_eq!(found(text), Some(text.trim()), "{text}");
        assert_eq!(found(text), expected(text), "{text}");
    }
    for text in WRONG {
        assert_eq!(found(text), None, "{text}");
        assert!(Document::parse(text).is_err(), "{text}");
    }
}

#[test]
fn what_is_too_deep_is_told_from_what_is_wrong() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(Document::parse(&nested(DEEPEST)).unwrap().parts.len(), DEEPEST);
    assert!(matches!(Document::parse(&nested(DEEPEST + 1)), Err(Unsound::TooDeep)));
    assert!(matches!(Document::parse("[1"), Err(Unsound::NotJson(_))));
}

#[test]
fn a_document_of_nothing_but_brackets_takes_no_room_and_is_read_all_the_same() {
    let text = format!("[{}]", vec!["{}"; MOST].join(","));
    let document = Document::parse(&text).unwrap();
    assert!(document.parts.is_empty());
    assert_eq!(document.raw().items().unwrap().count(), MOST);
}
