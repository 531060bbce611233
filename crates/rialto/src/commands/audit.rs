//! `rialto audit …`: what was done, by whom, and whether the record of it is whole.

use std::sync::Arc;

use jiff::{Span, Timestamp, tz::TimeZone};
use rialto_console::admin::audit::Record;
use rialto_hooks::live::{Live, News};
use rialto_model::{
    call::CallerId,
    clock::{Clock, SystemClock},
    ids::{AgentId, Scope, TaskId},
    store::{AuditFilter, AuditOutcome, Audited, StoreError, Verdict},
    verb::{Outcome, VerbEvent},
};
use serde_json::json;

use crate::{
    cli::{Audit, AuditCommand, AuditSearch, OutcomeName},
    output::{self, Spinner, Trouble},
    program::Program,
};

pub(crate) async fn run(program: &Program, audit: Audit) -> Result<(), Trouble> {
    match audit.command {
        Some(AuditCommand::Verify(listing)) => verify(program, listing.json).await,
        None if audit.search.follow => follow(program, &audit.search).await,
        None => search(program, &audit.search).await,
    }
}

async fn search(program: &Program, search: &AuditSearch) -> Result<(), Trouble> {
    let filter = filter(program, search)?;
    let records =
        program.store.audit_trail(&Scope::default(), &filter).await.map_err(|error| unavailable(&error))?;
    if search.listing.json {
        output::json(&records.iter().map(Record::of).collect::<Vec<_>>());
    } else if records.is_empty() {
        output::line("No records.");
    } else {
        let header = ["record", "time (utc)", "phase", "skill", "caller", "outcome", "task"];
        output::table(&header, records.iter().map(row).collect());
    }
    Ok(())
}

/// Shows what comes on record, whichever process does it, until nobody reads it any more.
async fn follow(program: &Program, search: &AuditSearch) -> Result<(), Trouble> {
    let filter = filter(program, search)?;
    let live = Live::new(Arc::clone(&program.store));
    let mut watch = live.watch(Scope::default().org, None).await?;
    output::note("Shows what comes on record from now on; Ctrl-C ends it.");
    loop {
        let written = match watch.next().await? {
            News::Record(record) if !filter.fits(&record.event) => Ok(()),
            News::Record(record) if search.listing.json => {
                let text = serde_json::to_string(&Record::of(&record));
                output::try_line(text.unwrap_or_default())
            }
            News::Record(record) => output::try_line(output::printable(&row(&record).join("  "))),
            News::Missed(missed) => {
                output::note(format!(
                    "{missed} records came too fast and are not shown here; `rialto audit` has them"
                ));
                Ok(())
            }
        };
        if written.is_err() {
            return Ok(());
        }
    }
}

async fn verify(program: &Program, as_json: bool) -> Result<(), Trouble> {
    let spinner = Spinner::new("reading the audit trail");
    let verdict = program.store.verify_audit().await.map_err(|error| unavailable(&error))?;
    drop(spinner);
    match verdict {
        Verdict::Sound { records, last, seal } => {
            if as_json {
                output::json(&json!({ "sound": true, "records": records, "last": last, "seal": seal }));
            } else {
                output::line(format!("{records} records, all as they were written"));
                output::note(format!(
                    "The seal of record {last} is {seal}; a copy of it, kept elsewhere, shows later that this trail is still the same."
                ));
            }
            Ok(())
        }
        Verdict::Broken { record, why } => {
            if as_json {
                output::json(&json!({ "sound": false, "record": record, "why": why }));
            }
            let message = format!(
                "the audit trail is not as it was written: {why}; compare record {record} with a backup"
            );
            Err(Trouble::other(message))
        }
    }
}

fn filter(program: &Program, search: &AuditSearch) -> Result<AuditFilter, Trouble> {
    let moment = |text: &Option<String>| text.as_deref().map(moment).transpose();
    Ok(AuditFilter {
        since: moment(&search.since)?,
        until: moment(&search.until)?,
        agent: search.agent.as_deref().map(|agent| agent_id(program, agent)),
        caller: search.caller.as_deref().map(CallerId::from),
        task: search.task.as_deref().map(TaskId::from),
        outcome: search.outcome.map(|outcome| match outcome {
            OutcomeName::Completed => AuditOutcome::Completed,
            OutcomeName::Failed => AuditOutcome::Failed,
            OutcomeName::Denied => AuditOutcome::Denied,
        }),
        before: search.before,
        limit: search.limit,
    })
}

/// The agent's id. One that is no longer registered can still be asked for by its id.
pub(crate) fn agent_id(program: &Program, agent: &str) -> AgentId {
    let found = program.engine.registry().find(&Scope::default(), agent);
    found.map_or_else(|_| AgentId::from(agent), |agent| agent.id.clone())
}

/// A moment, or how long ago it was.
pub(crate) fn moment(text: &str) -> Result<Timestamp, Trouble> {
    if let Ok(moment) = text.parse() {
        return Ok(moment);
    }
    let now = SystemClock.now().to_zoned(TimeZone::UTC);
    let ago = text.parse::<Span>().ok().and_then(|span| now.checked_sub(span.abs()).ok());
    ago.map(|moment| moment.timestamp()).ok_or_else(|| {
        Trouble::usage(format!(
            "\"{text}\" is no time; write 2026-11-15T08:00:00Z, or 90m, 2h or 7d for how long ago"
        ))
    })
}

fn row(audited: &Audited) -> Vec<String> {
    let event = &audited.event;
    vec![
        audited.record.to_string(),
        event.emitted_at.strftime("%F %T").to_string(),
        event.phase.as_str().to_owned(),
        event.verb.verb.clone(),
        event.verb.caller.to_string(),
        outcome(event),
        event.verb.task_id.to_string(),
    ]
}

fn outcome(event: &VerbEvent) -> String {
    match (&event.error, event.outcome) {
        _ if event.context.denied => "denied".to_owned(),
        (Some(error), _) => error.code.to_string(),
        (None, Some(Outcome::Completed)) => "completed".to_owned(),
        (None, Some(Outcome::Failed)) => "failed".to_owned(),
        (None, None) => String::new(),
    }
}

fn unavailable(error: &StoreError) -> Trouble {
    Trouble::other(error.to_string())
}
