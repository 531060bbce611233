//! What guardrails have found in one thing that was said, and how it is told: by kinds, never by the text.

use std::collections::BTreeMap;

use rialto_guard::{Finding, Findings, Verdict};
use rialto_model::{
    audit_event::{AuditPhase, SkillInvocation},
    failure::{Failure, FailureKind},
    guardrail::GuardrailNotice,
    json::Json,
};
use serde::Serialize;

use crate::journal::TaskJournal;

/// Which way something went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GuardDirection {
    /// From a caller to whoever does the work.
    Input,
    /// Back.
    Output,
}

/// What was found, each kind with how often.
#[derive(Debug, Default)]
pub(crate) struct GuardrailReport(BTreeMap<(&'static str, String, Verdict), u32>);

/// The same as it stands on record.
#[derive(Serialize)]
struct ReportFacts<'a> {
    direction: GuardDirection,
    action: Verdict,
    checks: Vec<&'a str>,
    kinds: Vec<&'a str>,
    findings: Vec<KindCount<'a>>,
}

#[derive(Serialize)]
struct KindCount<'a> {
    check: &'a str,
    kind: &'a str,
    action: Verdict,
    count: u32,
}

// === impl Report ===

impl GuardrailReport {
    /// Takes in what was found.
    pub(crate) fn add(&mut self, findings: &Findings) {
        for finding in &findings.found {
            self.add_one(finding, findings.is_cut);
        }
    }

    pub(crate) fn add_one(&mut self, finding: &Finding, is_cut: bool) {
        let key = (finding.check, finding.kind.to_string(), finding.verdict(is_cut));
        *self.0.entry(key).or_default() += 1;
    }

    /// Whether nothing was found.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What becomes of it all.
    pub(crate) fn verdict(&self) -> Verdict {
        self.0.keys().map(|(_, _, verdict)| *verdict).max().unwrap_or(Verdict::Pass)
    }

    /// What a caller is warned of.
    pub(crate) fn notice(&self) -> Option<GuardrailNotice> {
        let mut notice = GuardrailNotice::default();
        for (check, kind, _) in self.0.keys().filter(|(.., verdict)| *verdict == Verdict::Warn) {
            notice.add(check, kind);
        }
        (!notice.checks.is_empty()).then_some(notice)
    }

    /// What a caller is told whose words, or whose answer, were blocked.
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

    /// Puts it on record and into the log, once.
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

    /// `pii/email, secrets/jwt`: those that made it what it is.
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

const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "passed",
        Verdict::Log => "noted",
        Verdict::Warn => "warned",
        Verdict::Redact => "replaced",
        Verdict::Block => "blocked",
    }
}
