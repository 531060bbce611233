//! `rialto guard test`: what is found, what is left, and how it exits.

use serde_json::json;

use crate::harness::rialto::Rialto;

#[test]
fn what_is_found_is_told_by_kind_and_place_and_never_shown() {
    let rialto = Rialto::fresh();
    let blocked = rialto.cli(&["guard", "test", "write to ann@example.org"]).exit(3);
    assert!(blocked.out.contains("write to [email]"), "{}", blocked.out);
    assert!(blocked.out.contains("9..24") && blocked.out.contains("Verdict: block"), "{}", blocked.out);
    assert!(blocked.err.contains("blocked: pii/email"), "{}", blocked.err);
    assert!(!blocked.out.contains("ann@") && !blocked.err.contains("ann@"));
    let clean = rialto.cli(&["guard", "test", "nice weather today"]).ok();
    assert_eq!(clean.out, "No findings.\nVerdict: pass\n");
}

#[test]
fn programs_get_json_and_data_is_looked_through_in_its_strings() {
    let rialto = Rialto::fresh();
    let arguments =
        ["guard", "test", "--action", "redact", "--json", r#"{"n":1.50,"who":"ann@example.org"}"#];
    let expected = json!({
        "verdict": "redact",
        "findings": [{ "check": "pii", "kind": "email", "part": 0, "field": "content", "at": { "start": 17, "end": 32 }, "action": "redact" }],
        "redacted": r#"{"n":1.50,"who":"[email]"}"#,
        "notAsked": 0,
    });
    assert_eq!(rialto.json(&arguments), expected);
}

#[test]
fn a_guardrail_can_be_tried_out_from_a_file() {
    let rialto = Rialto::fresh();
    let good = file(
        &rialto,
        "guardrail.toml",
        "action = \"warn\"\n[[checks]]\ntype = \"regex\"\ntarget = \"output\"\n\
         config.patterns = [{ name = \"ticket\", pattern = 'T-\\d+' }]\n",
    );
    let warned = rialto.cli(&["guard", "test", "--guardrail", &good, "--target", "output", "see T-12"]).ok();
    assert!(warned.out.contains("see [ticket]") && warned.out.contains("Verdict: warn"), "{}", warned.out);
    let unseen = rialto.cli(&["guard", "test", "--guardrail", &good, "see T-12"]).ok();
    assert!(unseen.out.contains("No findings."), "{}", unseen.out);
    let wrong = file(&rialto, "wrong.toml", "actions = \"warn\"\n");
    assert!(rialto.cli(&["guard", "test", "--guardrail", &wrong, "x"]).exit(2).err.contains("actions"));
    assert!(rialto.cli(&["guard", "test", "--checks", "regex", "x"]).exit(2).err.contains("--guardrail"));
}

fn file(rialto: &Rialto, name: &str, text: &str) -> String {
    let path = rialto.folder().join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}
