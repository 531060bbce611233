//! What was done, by whom, and whether the record of it is whole.

use axum::response::Response;
use maud::{Markup, html};
use rialto_edge::session::API;
use rialto_model::{
    audit_event::AuditPhase,
    clock::Timestamp,
    failure::{Failure, FailureKind},
    store::{ChainVerification, StoredAuditEvent},
};

use super::{
    layout::{self, Frame, Page},
    visit::{Visit, encoded},
};
use crate::{
    admin::{
        audit::{self, Filter, ended},
        verifying::{self, Verification},
    },
    laid_out::pretty,
    text,
};

const HERE: &str = "/audit";

/// Where it is shown how far the trail is compared.
const VERIFY: &str = "/audit/verify";

pub(super) async fn verify(visit: Visit) -> Result<Response, Failure> {
    verifying::begin(&visit.console, &visit.caller).await?;
    Ok(visit.go(VERIFY, ""))
}

/// How far the trail is compared, and what came of it.
pub(super) async fn progress(visit: Visit) -> Result<Response, Failure> {
    let last = verifying::last(&visit.console, &visit.caller).await?;
    let (frame, now) = (visit.frame(), visit.console.engine().now());
    let is_over = last.as_ref().is_none_or(|last| last.verdict().is_some());
    let body = html! {
        div.top { div { h1 { "Verifying the trail" } p.sub { "It goes on whether you stay here or not" } } }
        div data-region="progress" data-often="1000" aria-live="polite" {
            @match &last {
                None => div.panel.empty { p { "The trail was not compared with its seals since the server started." } },
                Some(last) => (how_far(last, now)),
            }
        }
        div.actions data-region="actions" {
            a.button href=(frame.to(HERE)) { "Audit" }
            @if is_over { (verify_form(&frame)) } @else { a.button href=(frame.to(VERIFY)) { "Look again" } }
        }
    };
    Ok(frame.page(&Page { title: "Verifying the trail", at: HERE, live: None, is_over, body }))
}

fn how_far(last: &Verification, now: Timestamp) -> Markup {
    // Records may have come on before it was begun in earnest.
    let (reached, end) = (last.reached(), last.end.max(last.reached()).max(1));
    html! {
        @match last.verdict() {
            None => section.panel {
                label for="far" { "Record " (reached) " of " (end) }
                progress #far max=(end) value=(reached) {}
                p { "Each record is compared with its seal; begun " (text::moment(last.begun, now)) "." }
            },
            Some(Ok(ChainVerification::Sound { records, last: at, seal })) => div.said.good role="status" {
                p { (records) " records, all as they were written when it was begun " (text::moment(last.begun, now)) "." }
                p { "The seal of record " (at) ", to be kept elsewhere and compared later:" }
                pre tabindex="0" { code { (seal) } }
            },
            Some(Ok(ChainVerification::Broken { record, why })) => div.said.bad role="alert" {
                p { "The trail is not as it was written: " (text::line(why, 300)) "; compare record " (record) " with a backup." }
            },
            Some(Err(failure)) => (layout::refused(Some(failure))),
        }
    }
}

fn verify_form(frame: &Frame) -> Markup {
    html! { form.inline method="post" action=(frame.to(VERIFY)) { (frame.proof()) button type="submit" { "Verify the trail" } } }
}

pub(super) async fn list(visit: Visit) -> Result<Response, Failure> {
    let cursor = visit.query("cursor").and_then(|cursor| cursor.parse().ok());
    let filter = Filter { cursor, ..Filter::read(|name| visit.query(name)) };
    let frame = visit.frame();
    let (page, trouble) = match audit::search(&visit.console, &visit.caller, &filter).await {
        Ok(page) => (page, None),
        Err(failure) if failure.kind == FailureKind::Invalid => {
            (audit::Page { records: Vec::new(), next: None }, Some(failure))
        }
        Err(failure) => return Err(failure),
    };
    let is_filtered = filter.cursor.is_some() || Filter::NAMES.iter().any(|name| visit.query(name).is_some());
    let body = html! {
        div.top {
            div { h1 { "Audit" } p.sub { "Every call and every administrative operation, sealed so that a change shows" } }
            div.actions { (verify_form(&frame)) }
        }
        (filters(&frame, &filter))
        div data-region="records" {
            (layout::refused(trouble.as_ref()))
            div.panel.flush {
                @if page.records.is_empty() { (nothing(&frame, is_filtered)) } @else { (table(&frame, &page.records)) }
                div.pages {
                    span data-count { (text::count(page.records.len(), "record", "records")) " on this page" }
                    @if let Some(next) = page.next { a.button rel="next" href=(frame.to(&link(&filter, next))) { "Older ones" } }
                }
            }
        }
    };
    let live = filter.cursor.is_none().then(|| format!("{}{API}/events", frame.base));
    Ok(frame.page(&Page { title: "Audit", at: HERE, live, is_over: false, body }))
}

fn nothing(frame: &Frame, is_filtered: bool) -> Markup {
    html! {
        div.empty {
            @if is_filtered { p { "No record fits. " a href=(frame.to(HERE)) { "Show the newest" } } } @else {
                h2 { "Nothing is on record yet" }
                p { "Every call is written down here, before and after. Call a skill of an " a href=(frame.to("/agents")) { "agent" } ", and it stands here at once." }
            }
        }
    }
}

fn filters(frame: &Frame, filter: &Filter) -> Markup {
    let fields = [
        ("caller", "Caller", filter.caller.as_deref()),
        ("agent", "Agent", filter.agent.as_deref()),
        ("task", "Task", filter.task.as_deref()),
        ("since", "Since: 2h, or a time", filter.since.as_deref()),
    ];
    html! {
        form.filters method="get" action=(frame.to(HERE)) data-filter role="search" {
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

fn table(frame: &Frame, records: &[StoredAuditEvent]) -> Markup {
    html! {
        table.cards {
            thead { tr { th.num { "Record" } th { "Time (UTC)" } th { "Phase" } th { "Skill" } th { "Caller" } th { "Outcome" } th { "Task" } } }
            tbody {
                @for record in records {
                    @let event = &record.event;
                    @let word = ended(event);
                    tr {
                        td.num data-label="Record" { (record.record) }
                        td.short data-label="Time" { (event.emitted_at.strftime("%F %T")) }
                        td.short data-label="Phase" { (event.phase.as_str()) }
                        td data-label="Skill" {
                            (text::line(&event.verb.verb, 80))
                            @if let Some(reason) = &event.context.reason { span.sub { (text::phrase(reason, 300)) } }
                            @if let Some(error) = &event.error { span.sub { (text::phrase(&error.message, 300)) } }
                            @if event.phase == AuditPhase::Admin {
                                details data-key=(format!("change-{}", record.record)) { summary.small.muted { "change" } pre tabindex="0" { code { (pretty(&event.verb.args)) } } }
                            }
                            @if event.phase == AuditPhase::PreVerb && event.verb.args.get() != "{}" && !event.verb.args.is_null() {
                                details data-key=(format!("args-{}", record.record)) { summary.small.muted { "arguments" } pre tabindex="0" { code { (pretty(&event.verb.args)) } } }
                            }
                        }
                        td.name data-label="Caller" { (text::line(&event.verb.caller, 40)) }
                        td data-label="Outcome" { span class=(format!("state {}", tone(&word))) { (word) } }
                        td.short data-label="Task" { @if !event.verb.task_id.is_empty() { a href=(frame.to(&format!("/tasks/{}", encoded(&event.verb.task_id)))) { (text::cut(&event.verb.task_id, 18).0) } } }
                    }
                }
            }
        }
    }
}

fn tone(word: &str) -> &'static str {
    match word {
        "completed" => "good",
        "begun" => "live",
        "denied" => "warn",
        _ => "bad",
    }
}

fn link(filter: &Filter, next: u64) -> String {
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
    format!("{HERE}?{}", query.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_trail_shows_how_far_it_is() {
        let now = Timestamp::UNIX_EPOCH;
        let html = how_far(&Verification::new(now, 54_000), now).into_string();
        assert!(html.contains("Record 0 of 54000"), "{html}");
        assert!(html.contains("<progress id=\"far\" max=\"54000\" value=\"0\">"), "{html}");
    }
}
