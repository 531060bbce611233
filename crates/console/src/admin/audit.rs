//! What was done, by whom, and whether the record of it is whole.

use jiff::{Span, Timestamp, tz::TimeZone};
use rialto_model::{
    audit_event::{AuditEvent, AuditPhase, InvocationOutcome},
    call::{Caller, CallerId},
    failure::{Failure, FailureKind},
    ids::{AgentId, TaskId},
    store::{AuditFilter, AuditOutcome, ChainVerification, StoredAuditEvent},
};
use rialto_policy::Action;

use super::{cut, page_size};
use crate::{Console, console::store_failure};

/// Which records to search for, newest first.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only those at or after this moment: a time, or how long ago (`2h`).
    pub since: Option<String>,
    /// Only those before it.
    pub until: Option<String>,
    /// Only about this agent.
    pub agent: Option<String>,
    /// Only this caller's.
    pub caller: Option<String>,
    /// Only about this task.
    pub task: Option<String>,
    /// `completed`, `failed` or `denied`.
    pub outcome: Option<String>,
    /// Only administrative operations, if it is `true`.
    pub admin: Option<String>,
    /// At most so many.
    pub limit: Option<usize>,
    /// Only those older than this record.
    pub cursor: Option<u64>,
}

/// One page of records.
#[derive(Clone, Debug)]
pub struct Page {
    /// Those of this page.
    pub records: Vec<StoredAuditEvent>,
    /// Where the next page begins.
    pub next: Option<u64>,
}

// === impl Filter ===

impl Filter {
    /// The names of what can be asked for, but for the page.
    pub const NAMES: [&str; 7] = ["since", "until", "agent", "caller", "task", "outcome", "admin"];

    /// What is asked for by these names.
    pub(crate) fn read<'a>(given: impl Fn(&str) -> Option<&'a str>) -> Self {
        let [since, until, agent, caller, task, outcome, admin] =
            Self::NAMES.map(|name| given(name).map(str::to_owned));
        Self { since, until, agent, caller, task, outcome, admin, limit: None, cursor: None }
    }
}

/// Searches the trail of the caller's org.
pub async fn search(console: &Console, caller: &Caller, filter: &Filter) -> Result<Page, Failure> {
    console.admit(caller, Action::AdminAudit).await?;
    let now = console.engine().now();
    let moment = |text: &Option<String>| given(text).map(|text| moment(&text, now)).transpose();
    let limit = page_size(filter.limit);
    let wanted = AuditFilter {
        since: moment(&filter.since)?,
        until: moment(&filter.until)?,
        agent: given(&filter.agent).map(|key| agent_id(console, caller, key)),
        caller: given(&filter.caller).map(CallerId::from),
        task: given(&filter.task).map(TaskId::from),
        outcome: given(&filter.outcome).map(|name| outcome(&name)).transpose()?,
        admin: flag("admin", &filter.admin)?,
        before: filter.cursor,
        limit: limit + 1,
    };
    let mut records = console.store().audit_records(&caller.scope, &wanted).await.map_err(store_failure)?;
    let next = cut(&mut records, limit, |last| last.record);
    Ok(Page { records, next })
}

/// Reads the whole trail and compares it with its seals.
pub async fn verify(console: &Console, caller: &Caller) -> Result<ChainVerification, Failure> {
    console.admit(caller, Action::AdminAudit).await?;
    console.store().verify_audit().await.map_err(store_failure)
}

/// How an announcement came out, in one word.
pub fn ended(event: &AuditEvent) -> String {
    match (&event.error, event.outcome) {
        _ if event.phase == AuditPhase::Admin && event.context.denied => "denied".to_owned(),
        (Some(error), _) => format!("error {}", error.code),
        _ if event.context.denied => "denied".to_owned(),
        (None, Some(InvocationOutcome::Completed)) => "completed".to_owned(),
        (None, Some(InvocationOutcome::Waiting)) => "waiting".to_owned(),
        (None, Some(InvocationOutcome::Failed)) => "failed".to_owned(),
        (None, None) => "begun".to_owned(),
    }
}

/// What was said, unless that is nothing.
pub(crate) fn given(text: &Option<String>) -> Option<String> {
    text.clone().filter(|text| !text.trim().is_empty())
}

/// The agent's id. One that is no longer registered can still be asked for by its id.
pub(crate) fn agent_id(console: &Console, caller: &Caller, key: String) -> AgentId {
    let found = console.engine().registry().find(&caller.scope, &key);
    found.map_or_else(|_| AgentId::from(key), |agent| agent.id.clone())
}

/// Whether something was asked for that is asked for with `true`.
fn flag(name: &str, text: &Option<String>) -> Result<bool, Failure> {
    match given(text).as_deref() {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => {
            Err(Failure::new(FailureKind::Invalid, format!("{name}: \"{other}\" is neither true nor false")))
        }
    }
}

fn outcome(name: &str) -> Result<AuditOutcome, Failure> {
    match name {
        "completed" => Ok(AuditOutcome::Completed),
        "failed" => Ok(AuditOutcome::Failed),
        "denied" => Ok(AuditOutcome::Denied),
        _ => {
            let message = format!("\"{name}\" is no outcome; use completed, failed or denied");
            Err(Failure::new(FailureKind::Invalid, message))
        }
    }
}

/// A moment, or how long before `now` it was.
pub(crate) fn moment(text: &str, now: Timestamp) -> Result<Timestamp, Failure> {
    if let Ok(moment) = text.trim().parse() {
        return Ok(moment);
    }
    let now = now.to_zoned(TimeZone::UTC);
    let ago = text.trim().parse::<Span>().ok().and_then(|span| now.checked_sub(span.abs()).ok());
    ago.map(|moment| moment.timestamp()).ok_or_else(|| {
        let message =
            format!("\"{text}\" is no time; write 2026-11-15T08:00:00Z, or 90m, 2h or 7d for how long ago");
        Failure::new(FailureKind::Invalid, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_time_or_how_long_ago_it_was() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        assert_eq!(moment("2h", now).unwrap(), "2026-11-15T10:00:00Z".parse().unwrap());
        assert_eq!(moment("7d", now).unwrap(), "2026-11-08T12:00:00Z".parse().unwrap());
        assert_eq!(moment("2026-11-01T00:00:00Z", now).unwrap(), "2026-11-01T00:00:00Z".parse().unwrap());
        assert!(moment("soon", now).unwrap_err().message.contains("90m"));
    }
}
