use super::*;
use crate::reference::ReferenceRoot;

fn known(root: &ReferenceRoot) -> Option<Json> {
    let text = match root {
        ReferenceRoot::Trigger => {
            r#"{"n":12345678901234567890,"s":"a\"b","t":true,"z":null,"l":[1,2.0],"o":{"k":1},"e":""}"#
        }
        ReferenceRoot::State(_) => "\"skipped\"",
        _ => return None,
    };
    Json::parse(text).ok()
}

fn compare_values(text: &str) -> bool {
    Condition::parse(text).unwrap_or_else(|error| panic!("{text}: {error} at {}", error.at)).is_true(&known)
}

#[test]
fn values_are_compared_by_what_they_mean() {
    let right = [
        "{{ $input.n }} == 12345678901234567890.0",
        "{{ $input.n }} < 12345678901234567891",
        "{{ $input.n }} >= 1e3 and {{ $input.n }} > -1 and {{ $input.n }} <= 2e19",
        r#"{{ $input.s }} == "a\"b" and {{ $input.s }} == 'a"b'"#,
        r#"{{ $input.s }} < "b" and "a" in {{ $input.s }}"#,
        "{{ $input.l }} == [1.0, 2] and {{ $input.o }} != {{ $input.l }}",
        r#"2 in {{ $input.l }} and "k" in {{ $input.o }} and 3 not in {{ $input.l }}"#,
        "{{ $input.t }}",
        "{{ nodes.a.state }} in ['skipped', \"failed\"]",
        "{{ $input.s }} in [{{ $input.n }}, {{ $input.s }}]",
    ];
    for text in right {
        assert!(compare_values(text), "{text}");
    }
    let wrong = [
        "{{ $input.n }} == 12345678901234567891",
        "{{ $input.s }} == 1",
        "{{ $input.s }} < 1",
        "{{ $input.s }} > 1",
        "{{ $input.n }}",
        "{{ $input.s }}",
        "{{ $input.l }} == [1, 2, 3]",
        "1 in 1",
    ];
    for text in wrong {
        assert!(!compare_values(text), "{text}");
    }
}

#[test]
fn what_is_not_there_counts_as_null_and_fails_nothing() {
    for text in [
        "{{ nodes.a.output }} == null",
        "not {{ nodes.a.output.x[3] }} exists",
        "not exists {{ $input.z }}",
        "{{ $input.e }} exists",
        "{{ $input.z ?? 'd' }} == 'd'",
        "not {{ $input.none }} < 1",
    ] {
        assert!(compare_values(text), "{text}");
    }
}

#[test]
fn and_binds_more_than_or_and_parentheses_most() {
    assert!(compare_values("true or false and false"));
    assert!(!compare_values("(true or false) and false"));
    assert!(compare_values("not false and true"));
    assert!(!compare_values("not (false or true)"));
    assert!(Condition::constant(true).is_true(&known) && !Condition::constant(false).is_true(&known));
}

#[test]
fn what_is_no_condition_says_what_was_expected_and_where() {
    let wrong = |text: &str| {
        let error = Condition::parse(text).unwrap_err();
        format!("{}: {}", error.at, error.problem)
    };
    assert_eq!(wrong("{{ $input.a }} = 1"), "15: expected \"and\", \"or\" or the end, found \"=\"");
    assert!(wrong("nodes.a.x == 1").starts_with("0: expected {{ a reference }}, a string"));
    assert_eq!(wrong("{{ $input.a }} =="), format!("17: {}", &wrong("")[3..]));
    assert_eq!(wrong("(true"), "5: expected \")\", but the text ends");
    assert!(wrong("exists 1").contains("only a reference can be tested with exists"));
    assert!(wrong(&"(".repeat(10_000)).contains("too deep"));
    assert!(wrong(&"not ".repeat(10_000)).contains("too deep"));
    assert!(Condition::parse(&"[".repeat(10_000)).is_err());
}

#[test]
fn it_tells_what_it_looks_at() {
    let condition =
        Condition::parse("{{ nodes.a.x ?? nodes.b.x }} in [{{ item }}] or not {{ index }} exists").unwrap();
    let found: Vec<_> = condition.references().iter().map(ToString::to_string).collect();
    assert_eq!(found, ["nodes.a.x", "nodes.b.x", "item", "index"]);
}
