//! What a message goes through.

use rialto_guard::{
    Field, Guards, Verdict,
    config::{Guardrail, Target},
};
use rialto_model::{
    json::Json,
    message::{Content, Part},
};
use serde_json::{Value, json};

fn guards(guardrails: &[Value]) -> Guards {
    let read = |value: &Value| serde_json::from_value::<Guardrail>(value.clone()).unwrap();
    let guardrails: Vec<Guardrail> = guardrails.iter().map(read).collect();
    Guards::compile(&guardrails).unwrap().unwrap()
}

fn redacting(check: &str) -> Guards {
    guards(&[json!({ "checks": [{ "type": check }], "action": "redact" })])
}

fn data(value: &Value) -> Part {
    Part::data(Json::parse(value.to_string()).unwrap())
}

#[test]
fn what_was_found_is_replaced_by_its_kind_in_texts_data_metadata_and_names() {
    let guards = redacting("pii");
    let parts = [
        Part {
            filename: Some("ann@example.org.txt".to_owned()),
            metadata: Some(Json::parse(r#"{"by":"bob@example.org"}"#).unwrap()),
            ..Part::text("mail ann@example.org, or call +44 20 7946 0958")
        },
        data(&json!({ "a": ["x\n\"ann@example.org\"", 4_111_111_111_111_111_u64], "n": 1 })),
    ];
    let findings = guards.check(&parts, Target::Input);
    assert_eq!(findings.verdict(), Verdict::Redact);
    assert_eq!(findings.to_string(), "pii/email, pii/payment-card, pii/phone");
    let cut = guards.redact(&parts, &findings);
    assert_eq!(cut[0].content, Content::Text("mail [email], or call [phone]".to_owned()));
    assert_eq!(cut[0].filename.as_deref(), Some("[email]"));
    assert_eq!(cut[0].metadata.as_ref().unwrap().get(), r#"{"by":"[email]"}"#);
    let Content::Data(json) = &cut[1].content else { panic!() };
    assert_eq!(json.get(), r#"{"a":["x\n\"[email]\"","[payment-card]"],"n":1}"#);
    assert!(guards.check(&cut, Target::Input).is_empty());
}

#[test]
fn places_are_told_and_texts_are_not() {
    let findings = redacting("secrets").check_text("password: hunter2-is-mine", Target::Input);
    assert_eq!(findings.found.len(), 1);
    assert_eq!((findings.found[0].field, findings.found[0].at.clone()), (Field::Content, Some(10..25)));
    for shown in [format!("{findings:?}"), findings.to_string(), serde_json::to_string(&findings).unwrap()] {
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn a_value_is_a_secret_when_its_member_is_called_one() {
    let found = |value: &Value| redacting("secrets").check(&[data(value)], Target::Input).to_string();
    assert_eq!(found(&json!({ "db": { "password": "tr0ub4dor" } })), "secrets/assigned-secret");
    assert_eq!(found(&json!({ "max_tokens": 12_345_678_901_u64, "tokenizer": "cl100k base one" })), "");
    assert_eq!(found(&json!({ "note": "tr0ub4dor" })), "");
}

#[test]
fn a_check_looks_the_way_it_was_told_to() {
    let guards = guards(&[json!({ "checks": [{ "type": "pii", "target": "output" }] })]);
    assert_eq!(guards.check_text("ann@example.org", Target::Input).verdict(), Verdict::Pass);
    assert_eq!(guards.check_text("ann@example.org", Target::Output).verdict(), Verdict::Block);
}

#[test]
fn of_two_guardrails_the_strictest_counts() {
    let mild = json!({ "checks": [{ "type": "pii" }], "action": "log" });
    let strict =
        json!({ "checks": [{ "type": "pii", "config": { "kinds": ["email"] } }], "action": "block" });
    for both in [[mild.clone(), strict.clone()], [strict, mild]] {
        let guards = guards(&both);
        assert_eq!(guards.check_text("ann@example.org", Target::Input).verdict(), Verdict::Block);
        assert_eq!(guards.check_text("123-45-6789", Target::Input).verdict(), Verdict::Log);
    }
}

#[test]
fn what_cannot_be_cut_out_is_blocked() {
    let guards = guards(&[json!({
        "checks": [{ "type": "max-tokens", "config": { "limit": 3 } }, { "type": "json-schema", "config": { "schema": { "type": "object" } } }],
        "action": "redact",
    })]);
    let long = guards.check(&[data(&json!({ "k": "a longer text" }))], Target::Input);
    assert_eq!((long.to_string().as_str(), long.verdict()), ("max-tokens/too-long", Verdict::Block));
    let misfit = guards.check(&[data(&json!([1]))], Target::Input);
    assert_eq!((misfit.to_string().as_str(), misfit.verdict()), ("json-schema/type", Verdict::Block));
    let many = "ann@example.org ".repeat(1_001);
    let cut = redacting("pii").check_text(&many, Target::Input);
    assert!(cut.is_cut);
    assert_eq!(cut.verdict(), Verdict::Block);
}

#[test]
fn patterns_of_one_s_own_are_found_and_replaced_under_their_name() {
    let patterns = json!([{ "name": "ticket", "pattern": r"\bT-\d{3,}" }]);
    let guards = guards(&[json!({
        "checks": [{ "type": "regex", "config": { "patterns": patterns } }],
        "action": "redact",
    })]);
    let parts = [Part::text("see T-123 and T-1"), data(&json!({ "T-456": 1 }))];
    let findings = guards.check(&parts, Target::Output);
    let cut = guards.redact(&parts, &findings);
    assert_eq!(cut[0], Part::text("see [ticket] and T-1"));
    assert_eq!(cut[1], data(&json!({ "[ticket]": 1 })));
}

#[test]
fn what_is_switched_off_or_empty_is_no_guardrail() {
    let compiled = |value: Value| Guards::compile(&[serde_json::from_value(value).unwrap()]).unwrap();
    assert!(compiled(json!({ "enabled": false, "checks": [{ "type": "pii" }] })).is_none());
    assert!(compiled(json!({ "checks": [] })).is_none());
}

#[test]
fn a_classifier_needs_an_address_and_is_left_to_whoever_may_call_out() {
    let without: Guardrail = serde_json::from_value(json!({ "checks": [{ "type": "toxicity" }] })).unwrap();
    assert!(
        Guards::compile(&[without])
            .unwrap_err()
            .to_string()
            .contains("url: expected the address of a model server")
    );
    let guards = guards(&[json!({
        "checks": [{ "type": "classifier", "target": "output", "config": { "url": "http://models.example/classify" } }],
        "action": "warn",
    })]);
    assert_eq!(guards.classifiers(Target::Input).count(), 0);
    assert_eq!(guards.classifiers(Target::Output).count(), 1);
}
