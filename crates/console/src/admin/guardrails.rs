//! Guardrails: which are in force, and what they or any others find in a text. Nothing is kept, and what was found is told by its kind
//! and place.

use rialto_api_types::guardrails::{
    ByteRange, GuardrailAction, GuardrailField, GuardrailFinding, GuardrailReport, GuardrailVerdict,
};
use rialto_guard::{
    Field, Finding, Findings, Guards, Verdict,
    config::{Action as Then, Check, Guardrail, Target},
    setting::{Called, Guardrails},
};
use rialto_model::{
    call::Caller,
    failure::{Failure, FailureKind},
    json::Json,
    message::{Content, Part},
};
use rialto_policy::Action;

use crate::Console;

/// The checks that need no settings, and what they look for.
pub const CHECKS: [(&str, &str); 4] = [
    ("pii", "Personal data"),
    ("secrets", "Secrets"),
    ("prompt-injection", "Orders to models"),
    ("max-tokens", "More text than a model should get"),
];

/// What is looked for when nobody says what.
const USUAL: [&str; 3] = ["pii", "prompt-injection", "secrets"];

/// Something to be looked through, and what for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// A text, or data, which is looked through in its strings.
    pub part: Part,
    /// What is looked for, by the names of checks that need no settings.
    pub checks: Option<Vec<String>>,
    /// A guardrail of the caller's own, in place of that.
    pub guardrail: Option<Guardrail>,
    /// What is done when something of `checks` is found.
    pub action: Option<Then>,
    /// Whose guardrails in force, where none are named: `<agent>.<skill>`. Without it, those for everything.
    pub skill: Option<String>,
    /// Which way it goes.
    pub target: Target,
    /// Whether the usual checks are tried where none are named and nothing is in force.
    pub or_usual: bool,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Tried {
    /// What would become of it.
    pub verdict: Verdict,
    /// What was found.
    pub findings: Findings,
    /// What is left when everything is replaced that can be.
    pub left: String,
    /// How many model servers would be asked too.
    pub not_asked: usize,
    /// Where the guardrails that were tried are written, where they are those in force.
    pub places: Option<Vec<String>>,
}

// === impl Tried ===

impl From<Tried> for GuardrailReport {
    fn from(tried: Tried) -> Self {
        Self {
            verdict: match tried.verdict {
                Verdict::Pass => GuardrailVerdict::Pass,
                Verdict::Log => GuardrailVerdict::Log,
                Verdict::Warn => GuardrailVerdict::Warn,
                Verdict::Redact => GuardrailVerdict::Redact,
                Verdict::Block => GuardrailVerdict::Block,
            },
            findings: tried.findings.found.into_iter().map(guardrail_finding).collect(),
            redacted: tried.left,
            not_asked: tried.not_asked,
            guardrails: tried.places,
        }
    }
}

fn guardrail_finding(finding: Finding) -> GuardrailFinding {
    GuardrailFinding {
        check: finding.check.to_owned(),
        kind: finding.kind.into_owned(),
        part: finding.part,
        field: match finding.field {
            Field::Content => GuardrailField::Content,
            Field::Metadata => GuardrailField::Metadata,
            Field::Filename => GuardrailField::Filename,
            Field::Extra => GuardrailField::Extra,
            Field::Message => GuardrailField::Message,
        },
        at: finding.at.map(|at| ByteRange { start: at.start, end: at.end }),
        action: match finding.action {
            Then::Log => GuardrailAction::Log,
            Then::Warn => GuardrailAction::Warn,
            Then::Redact => GuardrailAction::Redact,
            Then::Block => GuardrailAction::Block,
        },
    }
}

// === impl Asked ===

impl Asked {
    /// This, and nothing more is said.
    pub const fn about(part: Part) -> Self {
        Self {
            part,
            checks: None,
            guardrail: None,
            action: None,
            skill: None,
            target: Target::Input,
            or_usual: false,
        }
    }

    /// A text; a JSON object is looked through in its strings.
    pub fn text(text: String) -> Self {
        Self::about(match Json::parse(text.trim()) {
            Ok(data) if data.is_object() => Part::data(data),
            _ => Part::text(text),
        })
    }

    /// Looks through it, with these guardrails in force in an org. Patterns are compiled, and a text may be long: this takes a while.
    pub fn look(&self, setting: &Guardrails, org: &str) -> Result<Tried, Failure> {
        let (guards, places) = self.tried(setting, org)?;
        let parts = std::slice::from_ref(&self.part);
        let findings = guards.as_ref().map(|guards| guards.check(parts, self.target)).unwrap_or_default();
        let left = guards.as_ref().map(|guards| redacted(guards, parts, &findings)).unwrap_or_default();
        let not_asked = guards.as_ref().map_or(0, |guards| guards.classifiers(self.target).count());
        Ok(Tried { verdict: findings.verdict(), findings, left, not_asked, places })
    }

    /// The guardrails that were named, else those in force, else perhaps the usual ones.
    fn tried(
        &self,
        setting: &Guardrails,
        org: &str,
    ) -> Result<(Option<Guards>, Option<Vec<String>>), Failure> {
        let is_named = self.checks.is_some() || self.guardrail.is_some() || self.action.is_some();
        let placed = setting.placed();
        if !is_named && (self.skill.is_some() || !placed.is_empty() || !self.or_usual) {
            let name = self.skill.as_deref().unwrap_or_default().trim();
            let agent = name.split_once('.').map_or(name, |(agent, _)| agent);
            let called = Called { org, agent, skill: name, canonical: name };
            let applying: Vec<_> = placed.iter().filter(|placed| placed.whose.is_for(&called)).collect();
            let guards = Guards::compile(applying.iter().map(|placed| &placed.guardrail));
            let places = applying.iter().map(|placed| shown(&placed.place)).collect();
            return Ok((guards.map_err(|error| invalid(error.to_string()))?, Some(places)));
        }
        let guards = Guards::compile([&self.named()?]).map_err(|error| invalid(error.to_string()))?;
        let none = || invalid("the guardrail is switched off or has no checks".to_owned());
        Ok((Some(guards.ok_or_else(none)?), None))
    }

    fn named(&self) -> Result<Guardrail, Failure> {
        if let Some(guardrail) = &self.guardrail {
            return Ok(guardrail.clone());
        }
        let check = |name: &str| {
            Check::plain(name.trim()).ok_or_else(|| {
                invalid(format!(
                    "\"{name}\" is no check that needs no settings: pii, prompt-injection, secrets and max-tokens are; \
                     others are set in a file (--guardrail)"
                ))
            })
        };
        let checks: Vec<Check> = match &self.checks {
            Some(names) => names.iter().map(|name| check(name)).collect::<Result<_, _>>()?,
            None => USUAL.iter().map(|name| check(name)).collect::<Result<_, _>>()?,
        };
        Ok(Guardrail { checks, action: self.action.unwrap_or_default(), ..Guardrail::default() })
    }
}

/// Those in force. What is looked for in other orgs is theirs to know.
pub async fn show(console: &Console, caller: &Caller) -> Result<Guardrails, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    let mut setting = in_force(console);
    setting.orgs.retain(|org, _| org == caller.scope.org.as_str());
    Ok(setting)
}

/// Looks through something.
pub async fn test(console: &Console, caller: &Caller, asked: Asked) -> Result<Tried, Failure> {
    let setting = show(console, caller).await?;
    let org = caller.scope.org.clone();
    // Others must not wait for it.
    let tried = tokio::task::spawn_blocking(move || asked.look(&setting, org.as_str())).await;
    tried.map_err(|_| Failure::new(FailureKind::Internal, "it was cut off; try again"))?
}

fn in_force(console: &Console) -> Guardrails {
    console.engine().guarding().map_or_else(Guardrails::default, |all| all.setting().clone())
}

/// Where a guardrail stands in the configuration.
fn shown(place: &str) -> String {
    if place.is_empty() { "guardrails".to_owned() } else { format!("guardrails.{place}") }
}

/// What is left when everything is replaced that can be, whatever is done about it.
fn redacted(guards: &Guards, parts: &[Part], findings: &Findings) -> String {
    let redacting = |finding: &Finding| Finding { action: Then::Redact, ..finding.clone() };
    let found = findings.found.iter().map(redacting).collect();
    let parts = guards.redact(parts, &Findings { found, is_cut: findings.is_cut });
    let text = |part: &Part| match &part.content {
        Content::Text(text) => text.clone(),
        Content::Data(json) => json.get().to_owned(),
        Content::Raw(_) | Content::Url(_) | Content::Unknown(_) => String::new(),
    };
    parts.iter().map(text).collect()
}

fn invalid(message: String) -> Failure {
    Failure::new(FailureKind::Invalid, message)
}
