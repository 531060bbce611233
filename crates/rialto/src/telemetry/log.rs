//! Logging: format, filter and lines about calls.
//!
//! A line about a call has its ids as fields, which find its arguments and the text of a failure in the journal and the audit log.
//! They are not in the log, because an agent's text may repeat its input.

use std::io::{self, IsTerminal, Write};

use rialto_guardrails::secrets::mask_secrets;
use rialto_model::audit_event::{
    AuditEvent, AuditPhase, Hook, InvocationError, InvocationOutcome, SkillInvocation,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Logs how calls end.
pub(crate) struct CallLog {
    /// True if successful calls are logged at `info`.
    tells_all: bool,
}

/// Libraries that log whole messages or headers when they are asked for details. They are asked by name only.
const VERBOSE_LIBRARIES: [&str; 4] = ["rmcp", "h2", "hyper", "hyper_util"];

/// Logs on stderr from now on. A filter that makes no sense is the default.
pub(crate) fn start(filter: Option<&str>, default: &str, format: LogFormat) {
    let filter = filter.and_then(|filter| EnvFilter::try_new(quiet_filter(filter)).ok());
    let filter = filter.unwrap_or_else(|| EnvFilter::new(quiet_filter(default)));
    let lines =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| MaskedLines(std::io::stderr()));
    match format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).with_target(false).init(),
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).init(),
    }
}

/// Writes lines with the secrets in them masked. Each line comes as a whole.
struct MaskedLines<W>(W);

// === impl MaskedLines ===

impl<W: Write> Write for MaskedLines<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write_all(mask_secrets(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn quiet_filter(filter: &str) -> String {
    let unnamed = VERBOSE_LIBRARIES.iter().filter(|name| !filter.contains(*name));
    let hushed = unnamed.fold(filter.to_owned(), |filter, name| format!("{filter},{name}=error"));
    // Unreachable servers are reported by their callers.
    if filter.contains("rmcp") { hushed } else { format!("{hushed},rmcp::transport::worker=off") }
}

// === impl CallLog ===

impl CallLog {
    /// Successful calls are logged at `info` if `tells_all`, and at `debug` otherwise.
    pub(crate) const fn new(tells_all: bool) -> Self {
        Self { tells_all }
    }

    fn log_success(&self, verb: &SkillInvocation, took_ms: u64) {
        let SkillInvocation { verb: name, org_id, agent_card_id, skill_id, caller, task_id, .. } = verb;
        macro_rules! tell {
            ($level:ident) => {
                tracing::$level!(
                    task.id = &**task_id,
                    agent.id = &**agent_card_id,
                    skill.id = &**skill_id,
                    caller.id = &**caller,
                    org.id = &**org_id,
                    took_ms,
                    "call of {name} by {caller} is done"
                )
            };
        }
        if self.tells_all { tell!(info) } else { tell!(debug) }
    }
}

impl Hook for CallLog {
    fn hear(&self, event: &mut AuditEvent) {
        match (event.phase, &event.error) {
            (AuditPhase::PostVerb, _) if event.outcome != Some(InvocationOutcome::Failed) => {
                self.log_success(&event.verb, event.duration_ms.unwrap_or_default());
            }
            (AuditPhase::VerbError, Some(error)) => {
                let SkillInvocation { verb: name, org_id, agent_card_id, skill_id, caller, task_id, .. } =
                    &*event.verb;
                tracing::warn!(
                    task.id = &**task_id,
                    agent.id = &**agent_card_id,
                    skill.id = &**skill_id,
                    caller.id = &**caller,
                    org.id = &**org_id,
                    code = error.code,
                    "call of {name} by {caller} failed with {}",
                    error.code
                );
            }
            (AuditPhase::Admin, error) => log_admin_event(event, error.as_ref()),
            // Breaker and guardrail events are logged at their source.
            (AuditPhase::Breaker | AuditPhase::Guardrail, _) => {}
            (AuditPhase::PreVerb | AuditPhase::PostVerb | AuditPhase::VerbError, _) => {}
        }
    }
}

/// One line for each administrative operation. Its changes are in the audit log only.
fn log_admin_event(event: &AuditEvent, error: Option<&InvocationError>) {
    let SkillInvocation { verb: name, org_id, agent_card_id, caller, .. } = &*event.verb;
    let object = event.verb.args.value()["object"].as_str().unwrap_or_default().to_owned();
    let (agent, org, ended) = (&**agent_card_id, &**org_id, outcome(event, error));
    tracing::info!(
        admin.verb = name.as_str(),
        admin.object = object.as_str(),
        admin.outcome = ended,
        agent.id = agent,
        caller.id = &**caller,
        org.id = org,
        "{name} of {object:?} by {caller}: {ended}"
    );
}

const fn outcome(event: &AuditEvent, error: Option<&InvocationError>) -> &'static str {
    match error {
        _ if event.context.denied => "refused",
        Some(_) => "failed",
        None => "done",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_get_into_the_log() {
        let mut lines = MaskedLines(Vec::new());
        let line = "WARN cannot open postgres://app:hunter2@db/app with sk_live_4eC39HqLyjWDarjtT1zdp7dc\n";
        lines.write_all(line.as_bytes()).unwrap();
        let written = String::from_utf8(lines.0).unwrap();
        assert_eq!(written, "WARN cannot open postgres://app:[redacted]@db/app with [redacted]\n");
    }

    #[test]
    fn a_library_that_repeats_what_passes_is_heard_only_if_it_is_named() {
        assert_eq!(
            quiet_filter("debug"),
            "debug,rmcp=error,h2=error,hyper=error,hyper_util=error,rmcp::transport::worker=off"
        );
        assert_eq!(
            quiet_filter("info,rmcp=debug,h2=info,hyper_util=warn"),
            "info,rmcp=debug,h2=info,hyper_util=warn"
        );
        assert!(EnvFilter::try_new(quiet_filter("rialto_a2a=debug")).is_ok());
    }
}
