use super::*;

fn wrong(text: &str) -> String {
    let error = ReferenceExpression::parse(text).unwrap_err();
    format!("{}: {}", error.at, error.problem)
}

#[test]
fn a_reference_is_a_root_and_a_path() {
    let expression = ReferenceExpression::parse(" nodes.a-1.output.x[2][\"y z\"] ?? $trigger ").unwrap();
    let [first, second] = expression.references() else { panic!("{expression:?}") };
    assert_eq!(first.root, ReferenceRoot::Output(NodeId::from("a-1")));
    assert_eq!(first.path, [PathStep::Field("x".into()), PathStep::Index(2), PathStep::Field("y z".into())]);
    assert_eq!((first.to_string().as_str(), first.at), ("nodes.a-1.output.x[2][\"y z\"]", 1));
    assert_eq!((&second.root, second.path.len()), (&ReferenceRoot::Trigger, 0));
}

#[test]
fn what_nobody_knows_is_told_with_what_may_be_meant() {
    let known = "is unknown; references begin with nodes, $trigger, $input, item or index";
    assert_eq!(wrong("node.a"), format!("0: \"node\" {known}; did you mean nodes?"));
    assert_eq!(wrong("trigger.a"), format!("0: \"trigger\" {known}; did you mean $trigger?"));
    assert_eq!(wrong("$triger.a"), format!("0: \"$triger\" {known}; did you mean $trigger?"));
    assert_eq!(wrong("colour"), format!("0: \"colour\" {known}"));
}

#[test]
fn what_cannot_be_read_says_what_was_expected_and_where() {
    assert_eq!(wrong("nodes"), "5: write which one is meant, as in nodes.fetch.output");
    assert_eq!(wrong("nodes.a."), "8: expected a name behind the dot, but the text ends");
    assert_eq!(wrong("nodes.a[x]"), "8: expected a number or a name in quotes, found \"x\"");
    assert_eq!(wrong("nodes.a[1"), "9: expected \"]\", but the text ends");
    assert_eq!(wrong("$input.a | upper"), "9: expected the end, found \"|\"");
    assert_eq!(
        wrong("$input.a ?? "),
        "12: expected a reference, as in nodes.fetch.output, but the text ends"
    );
    assert_eq!(wrong("$input.a ?? \"x"), "12: the string has no closing \"");
    assert_eq!(wrong("$input.a ?? 1.x"), "12: \"1.x\" is no number");
    assert_eq!(wrong(""), "0: expected a reference, as in nodes.fetch.output, but the text ends");
}
