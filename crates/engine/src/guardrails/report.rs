//! Findings of guardrails in one message, reported by kind, never by text.

use std::collections::BTreeMap;

use rialto_guardrails::{ContentFinding, FindingVerdict, Findings};
use rialto_model::{
    audit_event::{AuditPhase, SkillInvocation},
    failure::{Failure, FailureKind},
    guardrail::GuardrailNotice,
    json::Json,
};
use serde::Serialize;

use crate::journal::TaskJournal;

/// Direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GuardDirection {
    /// From the caller to the backend.
    Input,
    /// From the backend to the caller.
    Output,
}

/// Findings, each kind with its count.
#[derive(Debug, Default)]
pub(crate) struct GuardrailReport(BTreeMap<(&'static str, String, FindingVerdict), u32>);

/// Findings as they are recorded.
#[derive(Serialize)]
struct ReportFacts<'a> {
    direction: GuardDirection,
    action: FindingVerdict,
    checks: Vec<&'a str>,
    kinds: Vec<&'a str>,
    findings: Vec<KindCount<'a>>,
}

#[derive(Serialize)]
struct KindCount<'a> {
    check: &'a str,
    kind: &'a str,
    action: FindingVerdict,
    count: u32,
}

// === impl GuardrailReport ===

impl GuardrailReport {
    /// Adds findings.
    pub(crate) fn add(&mut self, findings: &Findings) {
        for finding in &findings.found {
            self.add_one(finding, findings.is_cut);
        }
    }

    pub(crate) fn add_one(&mut self, finding: &ContentFinding, is_cut: bool) {
        let key = (finding.check, finding.kind.to_string(), finding.verdict(is_cut));
        *self.0.entry(key).or_default() += 1;
    }

    /// True without findings.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The strictest verdict.
    pub(crate) fn verdict(&self) -> FindingVerdict {
        self.0.keys().map(|(_, _, verdict)| *verdict).max().unwrap_or(FindingVerdict::Pass)
    }

    /// Warnings for the caller.
    pub(crate) fn notice(&self) -> Option<GuardrailNotice> {
        let mut notice = GuardrailNotice::default();
        for (check, kind, _) in self.0.keys().filter(|(.., verdict)| *verdict == FindingVerdict::Warn) {
            notice.add(check, kind);
        }
        (!notice.checks.is_empty()).then_some(notice)
    }

    /// Failure for a caller whose request or response was blocked.
    pub(crate) fn failure(&self, way: GuardDirection) -> Failure {
        let found = self.named();
        let message = match way {
            GuardDirection::Input => {
                format!(
                    "a guardrail blocked this: it holds {found}; nothing was sent, take it out and try again"
                )
            }
            GuardDirection::Output => format!("a guardrail blocked the answer: it holds {found}"),
        };
        Failure::new(FailureKind::Blocked, message).with_data(self.facts(way))
    }

    /// Writes the findings to the audit log and to the log, once.
    pub(crate) async fn tell(&self, journal: &TaskJournal, verb: SkillInvocation, way: GuardDirection) {
        if self.is_empty() {
            return;
        }
        self.log(&verb, way);
        journal.note(SkillInvocation { args: self.facts(way), ..verb }, AuditPhase::Guardrail).await;
    }

    fn log(&self, verb: &SkillInvocation, way: GuardDirection) {
        let (task, agent, caller, name) = (&*verb.task_id, &*verb.agent_card_id, &*verb.caller, &verb.verb);
        let (found, done) = (self.named(), word(self.verdict()));
        let what = match way {
            GuardDirection::Input => "what was said to",
            GuardDirection::Output => "the answer of",
        };
        tracing::warn!(
            task.id = task,
            agent.id = agent,
            caller.id = caller,
            "guardrail: {found} in {what} {name}: {done}"
        );
    }

    /// Names of the findings that caused the verdict: `pii/email, secrets/jwt`.
    fn named(&self) -> String {
        let verdict = self.verdict();
        let strictest = self.0.keys().filter(|(.., of)| *of == verdict);
        let named: Vec<String> = strictest.map(|(check, kind, _)| format!("{check}/{kind}")).collect();
        named.join(", ")
    }

    fn facts(&self, way: GuardDirection) -> Json {
        let mut checks: Vec<&str> = self.0.keys().map(|(check, ..)| *check).collect();
        checks.dedup();
        let mut kinds: Vec<&str> = self.0.keys().map(|(_, kind, _)| kind.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let findings = self.0.iter().map(|((check, kind, action), count)| KindCount {
            check,
            kind,
            action: *action,
            count: *count,
        });
        let findings = findings.collect();
        Json::encode(&ReportFacts { direction: way, action: self.verdict(), checks, kinds, findings })
    }
}

const fn word(verdict: FindingVerdict) -> &'static str {
    match verdict {
        FindingVerdict::Pass => "passed",
        FindingVerdict::Log => "noted",
        FindingVerdict::Warn => "warned",
        FindingVerdict::Redact => "replaced",
        FindingVerdict::Block => "blocked",
    }
}
