//! Audit log: search and verification.

use jiff::{Span, Timestamp, tz::TimeZone};
use rialto_model::{
    audit_event::{AuditEvent, AuditPhase, InvocationOutcome},
    call::{Caller, CallerId},
    failure::{Failure, FailureKind},
    ids::{AgentId, TaskId},
    store::{AuditFilter, AuditOutcome, ChainVerification, StoredAuditEvent},
};
use rialto_policy::Action;

use super::{page_size, truncate_page};
use crate::{Administration, administration::store_failure};

/// Filter and page of a search of the audit log, newest first.
#[derive(Clone, Debug, Default)]
pub struct AuditQuery {
    /// Earliest time: a timestamp, or how long ago (`2h`).
    pub since: Option<String>,
    /// Time before which records must be.
    pub until: Option<String>,
    /// Agent to filter by.
    pub agent: Option<String>,
    /// Caller to filter by.
    pub caller: Option<String>,
    /// Task to filter by.
    pub task: Option<String>,
    /// `completed`, `failed` or `denied`.
    pub outcome: Option<String>,
    /// `true` for administrative operations only.
    pub admin: Option<String>,
    /// Maximum number of rows.
    pub limit: Option<usize>,
    /// Last record of the previous page.
    pub cursor: Option<u64>,
}

/// Page of audit records.
#[derive(Clone, Debug)]
pub struct AuditResults {
    /// Records of this page.
    pub records: Vec<StoredAuditEvent>,
    /// Cursor of the next page.
    pub next: Option<u64>,
}

// === impl AuditQuery ===

impl AuditQuery {
    /// Names of the filters.
    pub const NAMES: [&str; 7] = ["since", "until", "agent", "caller", "task", "outcome", "admin"];

    /// Filters by their names.
    pub fn from_params<'a>(given: impl Fn(&str) -> Option<&'a str>) -> Self {
        let [since, until, agent, caller, task, outcome, admin] =
            Self::NAMES.map(|name| given(name).map(str::to_owned));
        Self { since, until, agent, caller, task, outcome, admin, limit: None, cursor: None }
    }
}

/// Searches the audit log of the caller's org.
pub async fn search(
    admin: &Administration,
    caller: &Caller,
    filter: &AuditQuery,
) -> Result<AuditResults, Failure> {
    admin.authorize_admin(caller, Action::AdminAudit).await?;
    let now = admin.engine().now();
    let time = |text: &Option<String>| non_blank(text).map(|text| parse_time(&text, now)).transpose();
    let limit = page_size(filter.limit);
    let audit_filter = AuditFilter {
        since: time(&filter.since)?,
        until: time(&filter.until)?,
        agent: non_blank(&filter.agent).map(|key| find_agent_id(admin, caller, key)),
        caller: non_blank(&filter.caller).map(CallerId::from),
        task: non_blank(&filter.task).map(TaskId::from),
        outcome: non_blank(&filter.outcome).map(|name| parse_outcome(&name)).transpose()?,
        admin: parse_flag("admin", &filter.admin)?,
        before: filter.cursor,
        limit: limit + 1,
    };
    let mut records =
        admin.store().audit_records(&caller.scope, &audit_filter).await.map_err(store_failure)?;
    let next = truncate_page(&mut records, limit, |last| last.record);
    Ok(AuditResults { records, next })
}

/// Verifies the whole audit log against its seals.
pub async fn verify(admin: &Administration, caller: &Caller) -> Result<ChainVerification, Failure> {
    admin.authorize_admin(caller, Action::AdminAudit).await?;
    admin.store().verify_audit().await.map_err(store_failure)
}

/// Outcome of an audit event as a word.
pub fn outcome_word(event: &AuditEvent) -> String {
    match (&event.error, event.outcome) {
        _ if event.phase == AuditPhase::Admin && event.context.denied => "denied".to_owned(),
        (Some(error), _) => format!("error {}", error.code),
        _ if event.context.denied => "denied".to_owned(),
        (None, Some(InvocationOutcome::Completed)) => "completed".to_owned(),
        (None, Some(InvocationOutcome::Waiting)) => "waiting".to_owned(),
        (None, Some(InvocationOutcome::Failed)) => "failed".to_owned(),
        (None, None) => "started".to_owned(),
    }
}

/// Text, unless it is missing or blank.
pub(crate) fn non_blank(text: &Option<String>) -> Option<String> {
    text.clone().filter(|text| !text.trim().is_empty())
}

/// Id of an agent. A removed agent can still be searched for by its id.
pub(crate) fn find_agent_id(admin: &Administration, caller: &Caller, key: String) -> AgentId {
    let found = admin.engine().registry().find(&caller.scope, &key);
    found.map_or_else(|_| AgentId::from(key), |agent| agent.id.clone())
}

/// Boolean filter from `true` or `false`.
fn parse_flag(name: &str, text: &Option<String>) -> Result<bool, Failure> {
    match non_blank(text).as_deref() {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => {
            Err(Failure::new(FailureKind::Invalid, format!("{name}: \"{other}\" is neither true nor false")))
        }
    }
}

fn parse_outcome(name: &str) -> Result<AuditOutcome, Failure> {
    match name {
        "completed" => Ok(AuditOutcome::Completed),
        "failed" => Ok(AuditOutcome::Failed),
        "denied" => Ok(AuditOutcome::Denied),
        _ => {
            let message = format!("\"{name}\" is not an outcome; use completed, failed or denied");
            Err(Failure::new(FailureKind::Invalid, message))
        }
    }
}

/// Timestamp, or a span before `now`.
pub(crate) fn parse_time(text: &str, now: Timestamp) -> Result<Timestamp, Failure> {
    if let Ok(moment) = text.trim().parse() {
        return Ok(moment);
    }
    let now = now.to_zoned(TimeZone::UTC);
    let ago = text.trim().parse::<Span>().ok().and_then(|span| now.checked_sub(span.abs()).ok());
    ago.map(|moment| moment.timestamp()).ok_or_else(|| {
        let message =
            format!("\"{text}\" is not a time; use 2026-11-15T08:00:00Z, or 90m, 2h or 7d for how long ago");
        Failure::new(FailureKind::Invalid, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_timestamp_or_a_span_before_now() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        assert_eq!(parse_time("2h", now).unwrap(), "2026-11-15T10:00:00Z".parse().unwrap());
        assert_eq!(parse_time("7d", now).unwrap(), "2026-11-08T12:00:00Z".parse().unwrap());
        assert_eq!(parse_time("2026-11-01T00:00:00Z", now).unwrap(), "2026-11-01T00:00:00Z".parse().unwrap());
        assert!(parse_time("soon", now).unwrap_err().message.contains("90m"));
    }
}
