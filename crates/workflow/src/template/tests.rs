use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::reference::ReferenceRoot;

fn known(root: &ReferenceRoot) -> Option<Json> {
    let text = match root {
        ReferenceRoot::Trigger => {
            r#"{"n":12345678901234567890.10,"s":"say \"hi\"","l":[{"t":1},{"t":null}],"odd name":true}"#
        }
        ReferenceRoot::Output(id) if id.as_str() == "fetch-it" => {
            r#"{"output":"inner","state":"theirs","items":["a","b"]}"#
        }
        ReferenceRoot::State(id) if id.as_str() == "fetch-it" => "\"completed\"",
        ReferenceRoot::State(id) if id.as_str() == "gone" => "\"skipped\"",
        ReferenceRoot::Item => r#"{ "spaced" : [ 1 ] }"#,
        ReferenceRoot::Index => "3",
        _ => return None,
    };
    Json::parse(text).ok()
}

fn rendered(text: &str) -> String {
    JsonTemplate::parse(text).unwrap().render(&known).unwrap().get().to_owned()
}

fn missing(text: &str) -> String {
    JsonTemplate::parse(text).unwrap().render(&known).unwrap_err().to_string()
}

#[test]
fn a_string_that_is_one_reference_keeps_the_type_and_every_digit() {
    assert_eq!(rendered("{{ $trigger.n }}"), "12345678901234567890.10");
    assert_eq!(rendered("{{$input.l[0].t}}"), "1");
    assert_eq!(rendered("{{ $input.l.0 }}"), r#"{"t":1}"#);
    assert_eq!(rendered("{{ $input[\"odd name\"] }}"), "true");
    assert_eq!(rendered("{{ $input['odd name'] }}"), "true");
    assert_eq!(rendered("{{ item }}"), r#"{ "spaced" : [ 1 ] }"#);
    assert_eq!(rendered("{{ index }}"), "3");
}

#[test]
fn inside_a_longer_string_it_becomes_text() {
    assert_eq!(rendered("no. {{ index }}: {{ $input.s }}!"), r#""no. 3: say \"hi\"!""#);
    assert_eq!(rendered("{{ $input.n }}{{ item.spaced }}"), r#""12345678901234567890.10[ 1 ]""#);
    assert_eq!(rendered(" {{ index }}"), "\" 3\"");
    assert_eq!(rendered("{{ \"{{\" }} stays"), "\"{{ stays\"");
    assert_eq!(rendered("plain } text {"), "\"plain } text {\"");
    assert_eq!(rendered(""), "\"\"");
}

#[test]
fn a_nodes_output_may_be_named_or_not() {
    assert_eq!(rendered("{{ nodes.fetch-it.items[1] }}"), "\"b\"");
    assert_eq!(rendered("{{ nodes.fetch-it.output.items[1] }}"), "\"b\"");
    assert_eq!(rendered("{{ nodes.fetch-it.output.output }}"), "\"inner\"");
    assert_eq!(rendered("{{ nodes.fetch-it.state }}"), "\"completed\"");
    assert_eq!(rendered("{{ nodes.fetch-it.output.state }}"), "\"theirs\"");
    assert_eq!(rendered("{{ nodes[\"fetch-it\"].items.0 }}"), "\"a\"");
}

#[test]
fn what_is_missing_is_named_with_what_there_was_instead() {
    assert_eq!(
        missing("{{ $input.l[0].title }}"),
        "{{ $input.l[0].title }} cannot be filled in: $input.l[0] has no member \"title\", it has t"
    );
    assert!(missing("{{ $input.l[7] }}").ends_with("$input.l has 2 items, so there is no [7]"));
    assert!(missing("{{ $input.s.x }}").ends_with("$input.s is a string, so there is no .x"));
    assert!(missing("{{ nodes.gone.x }}").ends_with("node \"gone\" has no output, it is skipped"));
    assert!(missing("{{ nodes.never }}").ends_with("node \"never\" has no output"));
    assert!(!missing("{{ $input.s.x }}").contains("hi"), "values are not told");
}

#[test]
fn a_default_stands_in_for_what_is_missing_or_null() {
    assert_eq!(rendered("{{ $input.none ?? 1.50 }}"), "1.50");
    assert_eq!(rendered("{{ $input.l[1].t ?? 'none' }}"), "\"none\"");
    assert_eq!(rendered("{{ nodes.gone.x ?? nodes.fetch-it.items[0] ?? null }}"), "\"a\"");
    assert_eq!(rendered("{{ nodes.gone ?? [1, [true]] }}"), "[1,[true]]");
    assert_eq!(rendered("{{ nodes.gone ?? $input.l[1].t }}"), "null");
    assert!(missing("{{ nodes.gone.x ?? nodes.never.y }}").starts_with("{{ nodes.gone.x }}"));
}

#[test]
fn what_is_fixed_is_known_beforehand() {
    let number = Json::parse("1.00").unwrap();
    let members =
        [("a".to_owned(), JsonTemplate::fixed(number)), ("b".to_owned(), JsonTemplate::parse("x").unwrap())];
    let template = JsonTemplate::object(members.clone());
    assert_eq!(template.as_fixed().map(Json::get), Some(r#"{"a":1.00,"b":"x"}"#));
    let open = JsonTemplate::object(
        members.into_iter().chain([("c".to_owned(), JsonTemplate::parse("{{ index }}").unwrap())]),
    );
    assert_eq!(open.as_fixed(), None);
    assert_eq!(open.render(&known).unwrap().get(), r#"{"a":1.00,"b":"x","c":3}"#);
}

#[test]
fn nodes_that_double_each_other_are_stopped() {
    let large = Json::encode(&"x".repeat(MAX_RENDERED_BYTES / 2));
    let lookup = |_: &ReferenceRoot| Some(large.clone());
    let twice = JsonTemplate::list([
        JsonTemplate::parse("{{ item }}").unwrap(),
        JsonTemplate::parse("{{ item }}").unwrap(),
    ]);
    assert_eq!(twice.render(&lookup), Err(RenderError::TooLarge));
    let text = JsonTemplate::parse("{{ item }}{{ item }}{{ item }}").unwrap();
    assert_eq!(text.render(&lookup), Err(RenderError::TooLarge));
    let deep = Json::parse("[".repeat(100) + &"]".repeat(100)).unwrap();
    let lookup = |_: &ReferenceRoot| Some(deep.clone());
    let deeper = JsonTemplate::list([JsonTemplate::parse("{{ item }}").unwrap()]);
    assert_eq!(deeper.render(&lookup), Err(RenderError::TooDeep));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(".*", inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_is_found_arrives_as_it_was(value in any_json(), digits in "-?[1-9][0-9]{0,60}\\.[0-9]{1,60}") {
        let value = Json::encode(&value);
        let number = Json::parse(&digits).unwrap();
        let lookup = |root: &ReferenceRoot| Some(if *root == ReferenceRoot::Item { value.clone() } else { number.clone() });
        let one = JsonTemplate::parse("{{ item }}").unwrap();
        prop_assert_eq!(one.render(&lookup).unwrap(), value.clone());
        let many = JsonTemplate::object([
            ("v".to_owned(), one),
            ("n".to_owned(), JsonTemplate::list([JsonTemplate::parse("{{ index }}").unwrap()])),
        ]);
        let expected = Json::parse(format!("{{\"v\":{value},\"n\":[{digits}]}}")).unwrap();
        prop_assert_eq!(many.render(&lookup).unwrap(), expected);
    }

    #[test]
    fn any_member_is_found_by_its_name(name in ".*", value in any_json(), other in ".*") {
        let object = Json::encode(&json!({ other: 1, name.clone(): value.clone() }));
        let lookup = |_: &ReferenceRoot| Some(object.clone());
        let text = format!("{{{{ item[{}] }}}}", Json::encode(&name));
        prop_assert_eq!(JsonTemplate::parse(&text).unwrap().render(&lookup).unwrap(), Json::encode(&value));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(\\PC|[{}\\[\\]\"'?$. ]|nodes|item|\\{\\{|\\}\\})*") {
        if let Ok(template) = JsonTemplate::parse(&text) {
            let _ = template.render(&known);
        }
        let _ = crate::condition::Condition::parse(&text).map(|condition| condition.is_true(&known));
    }
}
