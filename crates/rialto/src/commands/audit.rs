//! `rialto audit …`: what was done, by whom, and whether the record of it is whole.

mod follow;

use rialto_api_types::audit::{AuditRecord, AuditVerification};
use rialto_model::{
    audit_event::{AuditEvent, AuditPhase, InvocationOutcome},
    json::Json,
};

use crate::{
    cli::{Audit, AuditCommand, AuditSearch, OutcomeName},
    desk::{Desk, read},
    output::{self, Spinner, Trouble},
};

pub(crate) async fn run(desk: &Desk, audit: Audit) -> Result<(), Trouble> {
    match audit.command {
        Some(AuditCommand::Verify(listing)) => verify(desk, listing.json).await,
        None if audit.search.follow => follow::follow(desk, &audit.search).await,
        None => search(desk, &audit.search).await,
    }
}

async fn search(desk: &Desk, search: &AuditSearch) -> Result<(), Trouble> {
    let question = desk.get(&["audit"]).with_given("since", search.since.as_ref());
    let question =
        question.with_given("until", search.until.as_ref()).with_given("agent", search.agent.as_ref());
    let question =
        question.with_given("caller", search.caller.as_ref()).with_given("task", search.task.as_ref());
    let question =
        question.with_given("outcome", search.outcome.map(name)).with_given("cursor", search.before);
    let question = question.with_given("admin", search.admin.then_some(true));
    let records: Vec<Json> = question.rows("records", Some(search.limit)).await?;
    if search.listing.json {
        output::json(&records);
    } else if records.is_empty() {
        output::line("No records.");
    } else {
        let records = records.iter().map(read::<AuditRecord>).collect::<Result<Vec<_>, _>>()?;
        if search.admin {
            let rows = records.iter().map(|told| admin_row(told.record, &told.event)).collect();
            output::table(&["record", "time (utc)", "operation", "object", "caller", "outcome"], rows);
        } else {
            let rows = records.iter().map(|told| row(told.record, &told.event)).collect();
            output::table(&["record", "time (utc)", "phase", "skill", "caller", "outcome", "task"], rows);
        }
    }
    Ok(())
}

async fn verify(desk: &Desk, as_json: bool) -> Result<(), Trouble> {
    let spinner = Spinner::new("reading the audit trail");
    let told: Json = desk.get(&["audit", "verify"]).patiently().read().await?;
    drop(spinner);
    if as_json {
        output::json(&told);
    }
    let AuditVerification { sound, records, last, seal, record, why } = read(&told)?;
    if !sound {
        let (why, record) = (why.unwrap_or_default(), record.unwrap_or_default());
        let message =
            format!("the audit trail is not as it was written: {why}; compare record {record} with a backup");
        return Err(Trouble::other(message));
    }
    if !as_json {
        let (records, last) = (records.unwrap_or_default(), last.unwrap_or_default());
        let seal = seal.unwrap_or_default();
        output::line(format!("{records} records, all as they were written"));
        output::note(format!(
            "The seal of record {last} is {seal}; a copy of it, kept elsewhere, shows later that this trail is still the same."
        ));
    }
    Ok(())
}

const fn name(outcome: OutcomeName) -> &'static str {
    match outcome {
        OutcomeName::Completed => "completed",
        OutcomeName::Failed => "failed",
        OutcomeName::Denied => "denied",
    }
}

fn row(record: u64, event: &AuditEvent) -> Vec<String> {
    vec![
        record.to_string(),
        event.emitted_at.strftime("%F %T").to_string(),
        event.phase.as_str().to_owned(),
        event.verb.verb.clone(),
        event.verb.caller.to_string(),
        outcome(event),
        event.verb.task_id.to_string(),
    ]
}

/// An administrative operation. `--json` shows what it changed.
fn admin_row(record: u64, event: &AuditEvent) -> Vec<String> {
    let object = event.verb.args.value()["object"].as_str().unwrap_or_default().to_owned();
    let [number, at, _, verb, caller, outcome, _] =
        <[String; 7]>::try_from(row(record, event)).unwrap_or_default();
    vec![number, at, verb, object, caller, outcome]
}

fn outcome(event: &AuditEvent) -> String {
    match (&event.error, event.outcome) {
        _ if event.phase == AuditPhase::Admin && event.context.denied => "denied".to_owned(),
        (Some(error), _) => error.code.to_string(),
        _ if event.context.denied => "denied".to_owned(),
        (None, Some(InvocationOutcome::Completed)) => "completed".to_owned(),
        (None, Some(InvocationOutcome::Waiting)) => "waiting".to_owned(),
        (None, Some(InvocationOutcome::Failed)) => "failed".to_owned(),
        (None, None) => String::new(),
    }
}
