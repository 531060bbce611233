//! `rialto audit …`: search and verification of the audit log.

mod follow;

use rialto_api_types::audit::{AuditRecord, AuditVerification};
use rialto_model::{
    audit_event::{AuditEvent, AuditPhase, InvocationOutcome},
    json::Json,
};

use crate::{
    api_client::{ApiClient, parse_response},
    cli::{AuditCommand, AuditOptions, AuditSearchOptions, CallOutcomeName},
    output::{self, CommandError, ProgressSpinner},
};

pub(crate) async fn run(api: &ApiClient, audit: AuditOptions) -> Result<(), CommandError> {
    match audit.command {
        Some(AuditCommand::Verify(listing)) => verify(api, listing.json).await,
        None if audit.search.follow => follow::follow(api, &audit.search).await,
        None => search(api, &audit.search).await,
    }
}

async fn search(api: &ApiClient, search: &AuditSearchOptions) -> Result<(), CommandError> {
    let question = api.get(&["audit"]).with_optional_query("since", search.since.as_ref());
    let question = question
        .with_optional_query("until", search.until.as_ref())
        .with_optional_query("agent", search.agent.as_ref());
    let question = question
        .with_optional_query("caller", search.caller.as_ref())
        .with_optional_query("task", search.task.as_ref());
    let question = question
        .with_optional_query("outcome", search.outcome.map(outcome_word))
        .with_optional_query("cursor", search.before);
    let question = question.with_optional_query("admin", search.admin.then_some(true));
    let records: Vec<Json> = question.fetch_rows("records", Some(search.limit)).await?;
    if search.listing.json {
        output::print_json(&records);
    } else if records.is_empty() {
        output::print_line("No records.");
    } else {
        let records = records.iter().map(parse_response::<AuditRecord>).collect::<Result<Vec<_>, _>>()?;
        if search.admin {
            let rows = records.iter().map(|response| admin_row(response.record, &response.event)).collect();
            output::print_table(&["record", "time (utc)", "operation", "object", "caller", "outcome"], rows);
        } else {
            let rows = records.iter().map(|response| audit_row(response.record, &response.event)).collect();
            output::print_table(
                &["record", "time (utc)", "phase", "skill", "caller", "outcome", "task"],
                rows,
            );
        }
    }
    Ok(())
}

async fn verify(api: &ApiClient, as_json: bool) -> Result<(), CommandError> {
    let spinner = ProgressSpinner::new("reading the audit trail");
    let response: Json = api.get(&["audit", "verify"]).with_long_timeout().read().await?;
    drop(spinner);
    if as_json {
        output::print_json(&response);
    }
    let AuditVerification { sound, records, last, seal, record, why } = parse_response(&response)?;
    if !sound {
        let (why, record) = (why.unwrap_or_default(), record.unwrap_or_default());
        let message =
            format!("the audit trail is not as it was written: {why}; compare record {record} with a backup");
        return Err(CommandError::failed(message));
    }
    if !as_json {
        let (records, last) = (records.unwrap_or_default(), last.unwrap_or_default());
        let seal = seal.unwrap_or_default();
        output::print_line(format!("{records} records, all unchanged"));
        output::print_note(format!(
            "The seal of record {last} is {seal}; a copy of it, stored elsewhere, proves later that this log is unchanged."
        ));
    }
    Ok(())
}

const fn outcome_word(outcome: CallOutcomeName) -> &'static str {
    match outcome {
        CallOutcomeName::Completed => "completed",
        CallOutcomeName::Failed => "failed",
        CallOutcomeName::Denied => "denied",
    }
}

fn audit_row(record: u64, event: &AuditEvent) -> Vec<String> {
    vec![
        record.to_string(),
        event.emitted_at.strftime("%F %T").to_string(),
        event.phase.as_str().to_owned(),
        event.verb.verb.clone(),
        event.verb.caller.to_string(),
        outcome_text(event),
        event.verb.task_id.to_string(),
    ]
}

/// An administrative operation. `--json` shows what it changed.
fn admin_row(record: u64, event: &AuditEvent) -> Vec<String> {
    let object = event.verb.args.value()["object"].as_str().unwrap_or_default().to_owned();
    let [number, at, _, verb, caller, outcome, _] =
        <[String; 7]>::try_from(audit_row(record, event)).unwrap_or_default();
    vec![number, at, verb, object, caller, outcome]
}

fn outcome_text(event: &AuditEvent) -> String {
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
