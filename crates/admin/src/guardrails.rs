//! Guardrails: the active ones, and tests on a text. Nothing is stored, and findings contain kinds and positions only.

use rialto_api_types::guardrails::{
    ByteRange, GuardrailAction, GuardrailField, GuardrailFinding, GuardrailTestResult, GuardrailVerdict,
};
use rialto_guardrails::{
    ContentFinding, FindingVerdict, Findings, GuardrailRuleset, PartField,
    config::{CheckAction as GuardAction, CheckDirection, Guardrail, GuardrailCheck},
    scoped_rules::{CalledSkill, Guardrails},
};
use rialto_model::{
    call::Caller,
    failure::{Failure, FailureKind},
    json::Json,
    message::{Content, Part},
};
use rialto_policy::Action;

use crate::Administration;

/// Checks without settings, with their labels.
pub const CHECKS: [(&str, &str); 4] = [
    ("pii", "Personal data"),
    ("secrets", "Secrets"),
    ("prompt-injection", "Prompt injection"),
    ("max-tokens", "Token limit"),
];

/// Checks of a test that names none.
const DEFAULT_CHECKS: [&str; 3] = ["pii", "prompt-injection", "secrets"];

/// Content to test guardrails on, and the guardrails to test.
#[derive(Clone, Debug)]
pub struct GuardrailTestRequest {
    /// Text, or data whose strings are checked.
    pub part: Part,
    /// Names of checks without settings to test.
    pub checks: Option<Vec<String>>,
    /// Guardrail to test in place of `checks`.
    pub guardrail: Option<Guardrail>,
    /// Action when one of `checks` finds something.
    pub action: Option<GuardAction>,
    /// Skill whose active guardrails are tested, `<agent>.<skill>`; by default those for all skills.
    pub skill: Option<String>,
    /// Direction of the message.
    pub target: CheckDirection,
    /// Whether the default checks are tested if none are named and no guardrail is active.
    pub or_usual: bool,
}

/// Result of a guardrail test.
#[derive(Clone, Debug)]
pub struct GuardrailTestOutcome {
    /// Action that would be taken on the message.
    pub verdict: FindingVerdict,
    /// Findings.
    pub findings: Findings,
    /// Content with every finding replaced that can be.
    pub redacted: String,
    /// Number of model servers that would be called too.
    pub not_asked: usize,
    /// Configuration paths of the tested guardrails, if the active ones were tested.
    pub config_paths: Option<Vec<String>>,
}

// === impl GuardrailTestOutcome ===

impl From<GuardrailTestOutcome> for GuardrailTestResult {
    fn from(outcome: GuardrailTestOutcome) -> Self {
        Self {
            verdict: match outcome.verdict {
                FindingVerdict::Pass => GuardrailVerdict::Pass,
                FindingVerdict::Log => GuardrailVerdict::Log,
                FindingVerdict::Warn => GuardrailVerdict::Warn,
                FindingVerdict::Redact => GuardrailVerdict::Redact,
                FindingVerdict::Block => GuardrailVerdict::Block,
            },
            findings: outcome.findings.found.into_iter().map(guardrail_finding).collect(),
            redacted: outcome.redacted,
            not_asked: outcome.not_asked,
            guardrails: outcome.config_paths,
        }
    }
}

fn guardrail_finding(finding: ContentFinding) -> GuardrailFinding {
    GuardrailFinding {
        check: finding.check.to_owned(),
        kind: finding.kind.into_owned(),
        part: finding.part,
        field: match finding.field {
            PartField::Content => GuardrailField::Content,
            PartField::Metadata => GuardrailField::Metadata,
            PartField::Filename => GuardrailField::Filename,
            PartField::Extra => GuardrailField::Extra,
            PartField::Message => GuardrailField::Message,
        },
        at: finding.at.map(|at| ByteRange { start: at.start, end: at.end }),
        action: match finding.action {
            GuardAction::Log => GuardrailAction::Log,
            GuardAction::Warn => GuardrailAction::Warn,
            GuardAction::Redact => GuardrailAction::Redact,
            GuardAction::Block => GuardrailAction::Block,
        },
    }
}

// === impl GuardrailTestRequest ===

impl GuardrailTestRequest {
    /// Test of a part, with the defaults.
    pub const fn new(part: Part) -> Self {
        Self {
            part,
            checks: None,
            guardrail: None,
            action: None,
            skill: None,
            target: CheckDirection::Input,
            or_usual: false,
        }
    }

    /// Test of a text; the strings of a JSON object are checked.
    pub fn from_text(text: String) -> Self {
        Self::new(match Json::parse(text.trim()) {
            Ok(data) if data.is_object() => Part::data(data),
            _ => Part::text(text),
        })
    }

    /// Runs the test with these active guardrails of an org. It compiles patterns and may take long for a long text.
    pub fn run(&self, setting: &Guardrails, org: &str) -> Result<GuardrailTestOutcome, Failure> {
        let (guards, config_paths) = self.select_guards(setting, org)?;
        let parts = std::slice::from_ref(&self.part);
        let findings = guards.as_ref().map(|guards| guards.check(parts, self.target)).unwrap_or_default();
        let redacted = guards.as_ref().map(|guards| redact_all(guards, parts, &findings)).unwrap_or_default();
        let not_asked = guards.as_ref().map_or(0, |guards| guards.classifiers(self.target).count());
        Ok(GuardrailTestOutcome { verdict: findings.verdict(), findings, redacted, not_asked, config_paths })
    }

    /// Guardrails of the test: the named ones, or else the active ones, or else the default checks if requested.
    fn select_guards(
        &self,
        setting: &Guardrails,
        org: &str,
    ) -> Result<(Option<GuardrailRuleset>, Option<Vec<String>>), Failure> {
        let is_named = self.checks.is_some() || self.guardrail.is_some() || self.action.is_some();
        let placed = setting.enabled();
        if !is_named && (self.skill.is_some() || !placed.is_empty() || !self.or_usual) {
            let name = self.skill.as_deref().unwrap_or_default().trim();
            let agent = name.split_once('.').map_or(name, |(agent, _)| agent);
            let called = CalledSkill { org, agent, skill: name, canonical: name };
            let applying: Vec<_> = placed.iter().filter(|placed| placed.scope.applies_to(&called)).collect();
            let guards = GuardrailRuleset::compile(applying.iter().map(|placed| &placed.guardrail));
            let config_paths = applying.iter().map(|placed| config_path(&placed.place)).collect();
            return Ok((guards.map_err(|error| invalid(error.to_string()))?, Some(config_paths)));
        }
        let guards = GuardrailRuleset::compile([&self.named_guardrail()?])
            .map_err(|error| invalid(error.to_string()))?;
        let none = || invalid("the guardrail is switched off or has no checks".to_owned());
        Ok((Some(guards.ok_or_else(none)?), None))
    }

    fn named_guardrail(&self) -> Result<Guardrail, Failure> {
        if let Some(guardrail) = &self.guardrail {
            return Ok(guardrail.clone());
        }
        let check = |name: &str| {
            GuardrailCheck::plain(name.trim()).ok_or_else(|| {
                invalid(format!(
                    "\"{name}\" is not a check without settings: use pii, prompt-injection, secrets or max-tokens; \
                     configure other checks in a file (--guardrail)"
                ))
            })
        };
        let checks: Vec<GuardrailCheck> = match &self.checks {
            Some(names) => names.iter().map(|name| check(name)).collect::<Result<_, _>>()?,
            None => DEFAULT_CHECKS.iter().map(|name| check(name)).collect::<Result<_, _>>()?,
        };
        Ok(Guardrail { checks, action: self.action.unwrap_or_default(), ..Guardrail::default() })
    }
}

/// Active guardrails, without those of other orgs.
pub async fn show(admin: &Administration, caller: &Caller) -> Result<Guardrails, Failure> {
    admin.authorize_admin(caller, Action::AdminPolicies).await?;
    let mut setting = active_guardrails(admin);
    setting.orgs.retain(|org, _| org == caller.scope.org.as_str());
    Ok(setting)
}

/// Runs a guardrail test.
pub async fn test(
    admin: &Administration,
    caller: &Caller,
    test: GuardrailTestRequest,
) -> Result<GuardrailTestOutcome, Failure> {
    let setting = show(admin, caller).await?;
    let org = caller.scope.org.clone();
    // The test may take long, so it must not block other requests.
    let outcome = tokio::task::spawn_blocking(move || test.run(&setting, org.as_str())).await;
    outcome.map_err(|_| Failure::new(FailureKind::Internal, "the test was interrupted; try again"))?
}

fn active_guardrails(admin: &Administration) -> Guardrails {
    admin.engine().guardrails().active().map_or_else(Guardrails::default, |all| all.setting().clone())
}

/// Path of a guardrail in the configuration.
fn config_path(place: &str) -> String {
    if place.is_empty() { "guardrails".to_owned() } else { format!("guardrails.{place}") }
}

/// Content with every finding redacted, whatever its action.
fn redact_all(guards: &GuardrailRuleset, parts: &[Part], findings: &Findings) -> String {
    let redacting =
        |finding: &ContentFinding| ContentFinding { action: GuardAction::Redact, ..finding.clone() };
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
