//! Guardrails, tried out on a text: those in force, or any of the usual checks. Nothing is kept, and what was found is told by its
//! kind and place.

use rialto_guard::{
    Finding, Findings, Guards,
    config::{Action as Then, Check, Guardrail, Target},
    setting::Called,
};
use rialto_model::{
    call::Caller,
    failure::{Failure, Kind},
    json::Json,
    message::{Content, Part},
};
use rialto_policy::Action;
use serde::Deserialize;

use crate::Console;

/// The checks that need no settings, and what they look for.
pub const CHECKS: [(&str, &str); 4] = [
    ("pii", "Personal data"),
    ("secrets", "Secrets"),
    ("prompt-injection", "Orders to models"),
    ("max-tokens", "More text than a model should get"),
];

/// A text to be looked through.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Asked {
    /// The text; a JSON object is looked through in its strings.
    pub text: String,
    /// What is looked for; without any, what the guardrails in force look for.
    pub checks: Vec<String>,
    /// Whose guardrails: `<agent>.<skill>`. Without it, those for everything.
    pub skill: String,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Tried {
    /// What was found.
    pub findings: Findings,
    /// What is left when everything is replaced that can be.
    pub left: String,
}

/// Looks through a text.
pub async fn test(console: &Console, caller: &Caller, asked: Asked) -> Result<Tried, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    let invalid = |message: String| Failure::new(Kind::Invalid, message);
    let named = |name: &String| {
        Check::plain(name).ok_or_else(|| {
            let all = CHECKS.map(|(name, _)| name).join(", ");
            invalid(format!("\"{name}\" is no check that needs no settings: {all} are"))
        })
    };
    let checks = asked.checks.iter().map(named).collect::<Result<Vec<_>, _>>()?;
    if checks.is_empty() {
        return Ok(in_force(console, caller, &asked));
    }
    let guardrail = Guardrail { checks, action: Then::Redact, ..Guardrail::default() };
    // Patterns are compiled, and a text may be long: others must not wait for it.
    let tried = tokio::task::spawn_blocking(move || look(&guardrail, asked.text)).await;
    let cut_off = |_| Failure::new(Kind::Internal, "it was cut off; try again");
    tried.map_err(cut_off)?.map_err(invalid)
}

/// What the guardrails in force find on the way to whoever is named.
fn in_force(console: &Console, caller: &Caller, asked: &Asked) -> Tried {
    let name = asked.skill.trim();
    let agent = name.split_once('.').map_or(name, |(agent, _)| agent);
    let called = Called { org: caller.scope.org.as_str(), agent, skill: name, canonical: name };
    let guards = console.engine().guarding().and_then(|guarding| guarding.guards(&called));
    let text = asked.text.clone();
    match guards {
        Some(guards) => through(&guards, text),
        None => Tried { findings: Findings::default(), left: text },
    }
}

fn look(guardrail: &Guardrail, text: String) -> Result<Tried, String> {
    let guards = Guards::compile([guardrail]).map_err(|error| error.to_string())?;
    let guards = guards.ok_or_else(|| "there is nothing to look for".to_owned())?;
    Ok(through(&guards, text))
}

fn through(guards: &Guards, text: String) -> Tried {
    let part = match Json::parse(text.trim()) {
        Ok(data) if data.is_object() => Part::data(data),
        _ => Part::text(text),
    };
    let parts = [part];
    let findings = guards.check(&parts, Target::Both);
    let redacting = |finding: &Finding| Finding { action: Then::Redact, ..finding.clone() };
    let found = findings.found.iter().map(redacting).collect();
    let parts = guards.redact(&parts, &Findings { found, is_cut: findings.is_cut });
    let shown = |part: &Part| match &part.content {
        Content::Text(text) => text.clone(),
        Content::Data(json) => json.get().to_owned(),
        Content::Raw(_) | Content::Url(_) | Content::Unknown(_) => String::new(),
    };
    Tried { left: parts.iter().map(shown).collect(), findings }
}
