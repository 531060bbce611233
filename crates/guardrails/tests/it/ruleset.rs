//! Checks of messages.

use rialto_guardrails::{
    FindingVerdict, GuardrailRuleset, PartField,
    config::{CheckDirection, Guardrail},
};
use rialto_model::{
    json::Json,
    message::{Content, Part},
};
use serde_json::{Value, json};

fn guards(guardrails: &[Value]) -> GuardrailRuleset {
    let read = |value: &Value| serde_json::from_value::<Guardrail>(value.clone()).unwrap();
    let guardrails: Vec<Guardrail> = guardrails.iter().map(read).collect();
    GuardrailRuleset::compile(&guardrails).unwrap().unwrap()
}

fn redacting(check: &str) -> GuardrailRuleset {
    guards(&[json!({ "checks": [{ "type": check }], "action": "redact" })])
}

fn data(value: &Value) -> Part {
    Part::data(Json::parse(value.to_string()).unwrap())
}

#[test]
fn findings_are_replaced_by_their_kind_in_texts_data_metadata_and_names() {
    let guards = redacting("pii");
    let parts = [
        Part {
            filename: Some("ann@example.org.txt".to_owned()),
            metadata: Some(Json::parse(r#"{"by":"bob@example.org"}"#).unwrap()),
            ..Part::text("mail ann@example.org, or call +44 20 7946 0958")
        },
        data(&json!({ "a": ["x\n\"ann@example.org\"", 4_111_111_111_111_111_u64], "n": 1 })),
    ];
    let findings = guards.check(&parts, CheckDirection::Input);
    assert_eq!(findings.verdict(), FindingVerdict::Redact);
    assert_eq!(findings.to_string(), "pii/email, pii/payment-card, pii/phone");
    let cut = guards.redact(&parts, &findings);
    assert_eq!(cut[0].content, Content::Text("mail [email], or call [phone]".to_owned()));
    assert_eq!(cut[0].filename.as_deref(), Some("[email]"));
    assert_eq!(cut[0].metadata.as_ref().unwrap().get(), r#"{"by":"[email]"}"#);
    let Content::Data(json) = &cut[1].content else { panic!() };
    assert_eq!(json.get(), r#"{"a":["x\n\"[email]\"","[payment-card]"],"n":1}"#);
    assert!(guards.check(&cut, CheckDirection::Input).is_empty());
}

#[test]
fn ranges_are_reported_and_texts_are_not() {
    let findings = redacting("secrets").check_text("password: hunter2-is-mine", CheckDirection::Input);
    assert_eq!(findings.found.len(), 1);
    assert_eq!((findings.found[0].field, findings.found[0].at.clone()), (PartField::Content, Some(10..25)));
    for shown in [format!("{findings:?}"), findings.to_string(), serde_json::to_string(&findings).unwrap()] {
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn a_value_is_a_secret_when_its_member_is_called_one() {
    let found = |value: &Value| redacting("secrets").check(&[data(value)], CheckDirection::Input).to_string();
    assert_eq!(found(&json!({ "db": { "password": "tr0ub4dor" } })), "secrets/assigned-secret");
    assert_eq!(found(&json!({ "max_tokens": 12_345_678_901_u64, "tokenizer": "cl100k base one" })), "");
    assert_eq!(found(&json!({ "note": "tr0ub4dor" })), "");
}

#[test]
fn a_check_applies_to_its_direction() {
    let guards = guards(&[json!({ "checks": [{ "type": "pii", "target": "output" }] })]);
    assert_eq!(guards.check_text("ann@example.org", CheckDirection::Input).verdict(), FindingVerdict::Pass);
    assert_eq!(guards.check_text("ann@example.org", CheckDirection::Output).verdict(), FindingVerdict::Block);
}

#[test]
fn of_two_guardrails_the_strictest_counts() {
    let mild = json!({ "checks": [{ "type": "pii" }], "action": "log" });
    let strict =
        json!({ "checks": [{ "type": "pii", "config": { "kinds": ["email"] } }], "action": "block" });
    for both in [[mild.clone(), strict.clone()], [strict, mild]] {
        let guards = guards(&both);
        assert_eq!(
            guards.check_text("ann@example.org", CheckDirection::Input).verdict(),
            FindingVerdict::Block
        );
        assert_eq!(guards.check_text("123-45-6789", CheckDirection::Input).verdict(), FindingVerdict::Log);
    }
}

#[test]
fn a_finding_that_cannot_be_replaced_is_blocked() {
    let guards = guards(&[json!({
        "checks": [{ "type": "max-tokens", "config": { "limit": 3 } }, { "type": "json-schema", "config": { "schema": { "type": "object" } } }],
        "action": "redact",
    })]);
    let long = guards.check(&[data(&json!({ "k": "a longer text" }))], CheckDirection::Input);
    assert_eq!((long.to_string().as_str(), long.verdict()), ("max-tokens/too-long", FindingVerdict::Block));
    let misfit = guards.check(&[data(&json!([1]))], CheckDirection::Input);
    assert_eq!((misfit.to_string().as_str(), misfit.verdict()), ("json-schema/type", FindingVerdict::Block));
    let many = "ann@example.org ".repeat(1_001);
    let cut = redacting("pii").check_text(&many, CheckDirection::Input);
    assert!(cut.is_cut);
    assert_eq!(cut.verdict(), FindingVerdict::Block);
}

#[test]
fn patterns_of_one_s_own_are_found_and_replaced_under_their_name() {
    let patterns = json!([{ "name": "ticket", "pattern": r"\bT-\d{3,}" }]);
    let guards = guards(&[json!({
        "checks": [{ "type": "regex", "config": { "patterns": patterns } }],
        "action": "redact",
    })]);
    let parts = [Part::text("see T-123 and T-1"), data(&json!({ "T-456": 1 }))];
    let findings = guards.check(&parts, CheckDirection::Output);
    let cut = guards.redact(&parts, &findings);
    assert_eq!(cut[0], Part::text("see [ticket] and T-1"));
    assert_eq!(cut[1], data(&json!({ "[ticket]": 1 })));
}

#[test]
fn a_guardrail_that_is_off_or_empty_is_none() {
    let compiled =
        |value: Value| GuardrailRuleset::compile(&[serde_json::from_value(value).unwrap()]).unwrap();
    assert!(compiled(json!({ "enabled": false, "checks": [{ "type": "pii" }] })).is_none());
    assert!(compiled(json!({ "checks": [] })).is_none());
}

#[test]
fn a_classifier_needs_an_address_and_is_returned_to_the_caller() {
    let without: Guardrail = serde_json::from_value(json!({ "checks": [{ "type": "toxicity" }] })).unwrap();
    assert!(
        GuardrailRuleset::compile(&[without])
            .unwrap_err()
            .to_string()
            .contains("url: expected the address of a model server")
    );
    let guards = guards(&[json!({
        "checks": [{ "type": "classifier", "target": "output", "config": { "url": "http://models.example/classify" } }],
        "action": "warn",
    })]);
    assert_eq!(guards.classifiers(CheckDirection::Input).count(), 0);
    assert_eq!(guards.classifiers(CheckDirection::Output).count(), 1);
}
