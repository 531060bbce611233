//! What was done, by whom, and whether the record of it is whole.

use axum::response::Response;
use maud::{Markup, html};
use rialto_edge::session::API;
use rialto_model::{
    failure::{Failure, Kind},
    store::{Audited, Verdict},
};

use super::{
    layout::{self, Frame, Page},
    visit::{Visit, encoded},
};
use crate::{
    admin::audit::{self, Filter, ended},
    laid_out::pretty,
    text,
};

const HERE: &str = "/audit";

pub(super) async fn list(visit: Visit) -> Result<Response, Failure> {
    show(&visit, &html! {}).await
}

pub(super) async fn verify(visit: Visit) -> Result<Response, Failure> {
    let said = match audit::verify(&visit.console, &visit.caller).await? {
        Verdict::Sound { records, last, seal } => html! {
            div.said.good role="status" tabindex="-1" {
                p { (records) " records, all as they were written. The seal of record " (last) ", to be kept elsewhere and compared later:" }
                pre { code { (seal) } }
            }
        },
        Verdict::Broken { record, why } => html! {
            div.said.bad role="alert" tabindex="-1" {
                p { "The trail is not as it was written: " (text::line(&why, 300)) "; compare record " (record) " with a backup." }
            }
        },
    };
    show(&visit, &said).await
}

async fn show(visit: &Visit, said: &Markup) -> Result<Response, Failure> {
    let cursor = visit.query("cursor").and_then(|cursor| cursor.parse().ok());
    let filter = Filter { cursor, ..Filter::read(|name| visit.query(name)) };
    let frame = visit.frame();
    let (page, trouble) = match audit::search(&visit.console, &visit.caller, &filter).await {
        Ok(page) => (page, None),
        Err(failure) if failure.kind == Kind::Invalid => {
            (audit::Page { records: Vec::new(), next: None }, Some(failure))
        }
        Err(failure) => return Err(failure),
    };
    let is_filtered = filter.cursor.is_some() || Filter::NAMES.iter().any(|name| visit.query(name).is_some());
    let body = html! {
        div.top {
            div { h1 { "Audit" } p.sub { "Every call, before and after, sealed so that a change shows" } }
            form.actions method="post" action=(frame.to(HERE)) {
                (frame.proof()) button type="submit" { "Verify the trail" }
            }
        }
        (said)
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
            button type="submit" { "Search" }
        }
    }
}

fn table(frame: &Frame, records: &[Audited]) -> Markup {
    html! {
        table.cards {
            thead { tr { th.num { "Record" } th { "Time (UTC)" } th { "Phase" } th { "Skill" } th { "Caller" } th { "Outcome" } th { "Task" } } }
            tbody {
                @for record in records {
                    @let event = &record.event;
                    @let word = ended(event);
                    tr {
                        td.num data-label="Record" { (record.record) }
                        td data-label="Time" { (event.emitted_at.strftime("%F %T")) }
                        td data-label="Phase" { (event.phase.as_str()) }
                        td data-label="Skill" {
                            (text::line(&event.verb.verb, 80))
                            @if let Some(reason) = &event.context.reason { span.sub { (text::line(reason, 200)) } }
                            @if let Some(error) = &event.error { span.sub { (text::line(&error.message, 200)) } }
                            @if event.phase == rialto_model::verb::Phase::PreVerb && event.verb.args.get() != "{}" && !event.verb.args.is_null() {
                                details data-key=(format!("args-{}", record.record)) { summary.small.muted { "arguments" } pre tabindex="0" { code { (pretty(&event.verb.args)) } } }
                            }
                        }
                        td data-label="Caller" { (text::line(&event.verb.caller, 40)) }
                        td data-label="Outcome" { span class=(format!("state {}", tone(&word))) { (word) } }
                        td data-label="Task" { a href=(frame.to(&format!("/tasks/{}", encoded(&event.verb.task_id)))) { (text::cut(&event.verb.task_id, 18).0) } }
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
        ("cursor", Some(next.as_str())),
    ];
    for (name, value) in given.iter().filter_map(|(name, value)| Some((name, (*value)?))) {
        query.append_pair(name, value);
    }
    format!("{HERE}?{}", query.finish())
}
