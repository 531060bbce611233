//! Pages of the audit log: search and verification.

use axum::response::Response;
use maud::{Markup, html};
use rialto_admin::{
    audit::{self, AuditQuery, outcome_word},
    verify_job::{self, VerifyJob},
};
use rialto_http_server::session::API;
use rialto_model::{
    audit_event::AuditPhase,
    clock::Timestamp,
    failure::{Failure, FailureKind},
    store::{ChainVerification, StoredAuditEvent},
};

use super::{
    layout::{self, PageContent, PageFrame},
    request::{PageRequest, encode_segment},
};
use crate::{pretty_json::pretty_json, text};

const PAGE_PATH: &str = "/audit";

/// Path of the page with the progress of a verification.
const VERIFY_PATH: &str = "/audit/verify";

pub(super) async fn verify(request: PageRequest) -> Result<Response, Failure> {
    verify_job::start(&request.admin, &request.caller).await?;
    Ok(request.redirect(VERIFY_PATH, ""))
}

/// Page with the progress and the result of the last verification.
pub(super) async fn progress(request: PageRequest) -> Result<Response, Failure> {
    let job = verify_job::latest(&request.admin, &request.caller).await?;
    let (frame, now) = (request.frame(), request.admin.engine().now());
    let is_over = job.as_ref().is_none_or(|job| job.verdict().is_some());
    let body = html! {
        div.top { div { h1 { "Audit log verification" } p.sub { "Runs in the background" } } }
        div data-region="progress" data-often="1000" aria-live="polite" {
            @match &job {
                None => div.panel.empty { p { "The audit log was not verified since the server started. Start a verification below." } },
                Some(job) => (verify_progress(job, now)),
            }
        }
        div.actions data-region="actions" {
            a.button href=(frame.url(PAGE_PATH)) { "Audit log" }
            @if is_over { (verify_form(&frame)) } @else { a.button href=(frame.url(VERIFY_PATH)) { "Reload" } }
        }
    };
    Ok(frame.respond_ok(&PageContent {
        title: "Audit log verification",
        at: PAGE_PATH,
        live: None,
        is_over,
        body,
    }))
}

fn verify_progress(job: &VerifyJob, now: Timestamp) -> Markup {
    // Records may be added between the request and the start of the verification.
    let (reached, end) = (job.reached(), job.end.max(job.reached()).max(1));
    html! {
        @match job.verdict() {
            None => section.panel {
                label for="far" { "Record " (reached) " of " (end) }
                progress #far max=(end) value=(reached) {}
                p { "Each record is compared with its seal; started " (text::time_ago(job.started_at, now)) "." }
            },
            Some(Ok(ChainVerification::Sound { records, last: at, seal })) => div.notice.good role="status" {
                p { (records) " records, all valid; verification started " (text::time_ago(job.started_at, now)) "." }
                p { "Seal of record " (at) ". Store it elsewhere to compare it later:" }
                pre tabindex="0" { code { (seal) } }
            },
            Some(Ok(ChainVerification::Broken { record, why })) => div.notice.bad role="alert" {
                p { "The audit log was changed: " (text::render_line(why, 300)) ". Compare record " (record) " with a backup." }
            },
            Some(Err(failure)) => (layout::error_message(Some(failure))),
        }
    }
}

fn verify_form(frame: &PageFrame) -> Markup {
    html! { form.inline method="post" action=(frame.url(VERIFY_PATH)) { (frame.csrf_field()) button type="submit" { "Verify audit log" } } }
}

pub(super) async fn list(request: PageRequest) -> Result<Response, Failure> {
    let cursor = request.query("cursor").and_then(|cursor| cursor.parse().ok());
    let filter = AuditQuery { cursor, ..AuditQuery::from_params(|name| request.query(name)) };
    let frame = request.frame();
    let (page, failure) = match audit::search(&request.admin, &request.caller, &filter).await {
        Ok(page) => (page, None),
        Err(failure) if failure.kind == FailureKind::Invalid => {
            (audit::AuditResults { records: Vec::new(), next: None }, Some(failure))
        }
        Err(failure) => return Err(failure),
    };
    let is_filtered =
        filter.cursor.is_some() || AuditQuery::NAMES.iter().any(|name| request.query(name).is_some());
    let body = html! {
        div.top {
            div { h1 { "Audit log" } p.sub { "Calls and administrative operations, sealed against changes" } }
            div.actions { (verify_form(&frame)) }
        }
        (filters(&frame, &filter))
        div data-region="records" {
            (layout::error_message(failure.as_ref()))
            div.panel.flush {
                @if page.records.is_empty() { (empty_list(&frame, is_filtered)) } @else { (table(&frame, &page.records)) }
                div.pages {
                    span data-count { (text::count_noun(page.records.len(), "record", "records")) " on this page" }
                    @if let Some(next) = page.next { a.button rel="next" href=(frame.url(&link(&filter, next))) { "Older" } }
                }
            }
        }
    };
    let live = filter.cursor.is_none().then(|| format!("{}{API}/events", frame.base));
    Ok(frame.respond_ok(&PageContent { title: "Audit log", at: PAGE_PATH, live, is_over: false, body }))
}

fn empty_list(frame: &PageFrame, is_filtered: bool) -> Markup {
    html! {
        div.empty {
            @if is_filtered { p { "No records match. " a href=(frame.url(PAGE_PATH)) { "Show all" } } } @else {
                h2 { "No records yet" }
                p { "Every call is recorded when it starts and when it ends. Call a skill of an " a href=(frame.url("/agents")) { "agent" } " to see its records." }
            }
        }
    }
}

fn filters(frame: &PageFrame, filter: &AuditQuery) -> Markup {
    let fields = [
        ("caller", "Caller", filter.caller.as_deref()),
        ("agent", "Agent", filter.agent.as_deref()),
        ("task", "Task", filter.task.as_deref()),
        ("since", "Since (2h or a time)", filter.since.as_deref()),
    ];
    html! {
        form.filters method="get" action=(frame.url(PAGE_PATH)) data-filter role="search" {
            @for (name, label, value) in fields {
                div {
                    label.vh for=(format!("find-{name}")) { (label) }
                    input id=(format!("find-{name}")) type=(if name == "caller" { "search" } else { "text" }) name=(name) value=[value] placeholder=(label) autocomplete="off";
                }
            }
            div {
                label.vh for="outcome" { "Outcome" }
                select #outcome name="outcome" {
                    option value="" { "Any outcome" }
                    @for outcome in ["completed", "failed", "denied"] {
                        option value=(outcome) selected[filter.outcome.as_deref() == Some(outcome)] { (outcome) }
                    }
                }
            }
            div {
                label.vh for="admin" { "Records" }
                select #admin name="admin" {
                    option value="" { "Calls and administration" }
                    option value="true" selected[filter.admin.as_deref() == Some("true")] { "Administration" }
                }
            }
            button type="submit" { "Search" }
        }
    }
}

fn table(frame: &PageFrame, records: &[StoredAuditEvent]) -> Markup {
    html! {
        table.cards {
            thead { tr { th.num { "Record" } th { "Time (UTC)" } th { "Phase" } th { "Skill" } th { "Caller" } th { "Outcome" } th { "Task" } } }
            tbody {
                @for record in records {
                    @let event = &record.event;
                    @let word = outcome_word(event);
                    tr {
                        td.num data-label="Record" { (record.record) }
                        td.short data-label="Time" { (event.emitted_at.strftime("%F %T")) }
                        td.short data-label="Phase" { (event.phase.as_str()) }
                        td data-label="Skill" {
                            (text::render_line(&event.verb.verb, 80))
                            @if let Some(reason) = &event.context.reason { span.sub { (text::render_message_line(reason, 300)) } }
                            @if let Some(error) = &event.error { span.sub { (text::render_message_line(&error.message, 300)) } }
                            @if event.phase == AuditPhase::Admin {
                                details data-key=(format!("change-{}", record.record)) { summary.small.muted { "change" } pre tabindex="0" { code { (pretty_json(&event.verb.args)) } } }
                            }
                            @if event.phase == AuditPhase::PreVerb && event.verb.args.get() != "{}" && !event.verb.args.is_null() {
                                details data-key=(format!("args-{}", record.record)) { summary.small.muted { "arguments" } pre tabindex="0" { code { (pretty_json(&event.verb.args)) } } }
                            }
                        }
                        td.name data-label="Caller" { (text::render_line(&event.verb.caller, 40)) }
                        td data-label="Outcome" { span class=(format!("state {}", outcome_class(&word))) { (word) } }
                        td.short data-label="Task" { @if !event.verb.task_id.is_empty() { a href=(frame.url(&format!("/tasks/{}", encode_segment(&event.verb.task_id)))) { (text::truncate(&event.verb.task_id, 18).0) } } }
                    }
                }
            }
        }
    }
}

fn outcome_class(word: &str) -> &'static str {
    match word {
        "completed" => "good",
        "started" => "live",
        "denied" => "warn",
        _ => "bad",
    }
}

fn link(filter: &AuditQuery, next: u64) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    let next = next.to_string();
    let given = [
        ("since", filter.since.as_deref()),
        ("until", filter.until.as_deref()),
        ("agent", filter.agent.as_deref()),
        ("caller", filter.caller.as_deref()),
        ("task", filter.task.as_deref()),
        ("outcome", filter.outcome.as_deref()),
        ("admin", filter.admin.as_deref()),
        ("cursor", Some(next.as_str())),
    ];
    for (name, value) in given.iter().filter_map(|(name, value)| Some((name, (*value)?))) {
        query.append_pair(name, value);
    }
    format!("{PAGE_PATH}?{}", query.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_verification_shows_its_progress() {
        let now = Timestamp::UNIX_EPOCH;
        let html = verify_progress(&VerifyJob::new(now, 54_000), now).into_string();
        assert!(html.contains("Record 0 of 54000"), "{html}");
        assert!(html.contains("<progress id=\"far\" max=\"54000\" value=\"0\">"), "{html}");
    }
}
