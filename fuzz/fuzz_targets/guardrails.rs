//! Any text as the settings of a guardrail, and as what one that looks for everything looks through: what is found can be taken out,
//! and JSON stays JSON.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rialto_guardrails::{
    GuardrailRuleset,
    config::{CheckDirection, Guardrail, GuardrailCheck},
};
use rialto_model::{
    json::Json,
    message::{Content, Part},
};

/// Putting it into shape takes longer than looking through many texts.
static ALL: LazyLock<GuardrailRuleset> = LazyLock::new(|| {
    let checks: Vec<_> =
        ["pii", "prompt-injection", "secrets"].into_iter().filter_map(GuardrailCheck::plain).collect();
    let guardrail = serde_json::from_value(serde_json::json!({ "checks": checks, "action": "redact" }));
    GuardrailRuleset::compile([&guardrail.expect("a guardrail")])
        .expect("our own patterns")
        .expect("something to look for")
});

fuzz_target!(|text: &str| {
    if let Ok(guardrail) = serde_json::from_str::<Guardrail>(text) {
        let _ = GuardrailRuleset::compile([&guardrail]);
    }
    let mut parts = vec![Part::text(text)];
    parts.extend(Json::parse(text).map(Part::data));
    let cut = ALL.redact(&parts, &ALL.check(&parts, CheckDirection::Input));
    assert_eq!(cut.len(), parts.len());
    for part in &cut {
        if let Content::Data(json) = &part.content {
            Json::parse(json.get()).expect("JSON");
        }
    }
});
