//! Work in many steps: what there is, drawn, with a form to run it.

use axum::response::Response;
use http::StatusCode;
use maud::{Markup, PreEscaped, html};
use rialto_edge::session::API;
use rialto_flow::{
    definition::{Trigger, Workflow},
    graph::{self, Format, Marks},
};
use rialto_model::{
    clock::Timestamp,
    failure::{Failure, FailureKind},
    flow::{FlowRun, FlowStatus, RunState},
    ids::TaskId,
    json::Json,
    message::Part,
};
use rialto_policy::Action;

use super::{
    layout::{self, Frame, Page},
    visit::{Visit, encoded},
};
use crate::{
    admin::{
        flows::{self, Listed, Shown},
        runs,
    },
    schema_form, text,
};

pub(super) const HERE: &str = "/workflows";

/// So many earlier versions are named.
const VERSIONS: u64 = 20;

pub(super) async fn list(visit: Visit) -> Result<Response, Failure> {
    let found = flows::list(&visit.console, &visit.caller).await?;
    let may = visit.console.may(&visit.caller, Action::AdminAgents).is_ok();
    let (frame, now) = (visit.frame(), visit.console.engine().now());
    let body = html! {
        div.top {
            div { h1 { "Workflows" } p.sub { "Work in many steps, each a call like any other" } }
            @if may { div.actions { a.button.first href=(frame.to("/new-workflow")) { "New workflow" } } }
        }
        div.panel.flush data-region="workflows" {
            @if found.is_empty() {
                div.empty {
                    h2 { "No workflows yet" }
                    @if may { p { a.button.first href=(frame.to("/new-workflow")) { "Write the first one" } } }
                    @if !may { p { "Whoever may administer agents writes one here." } }
                    p { "Or write one as a file of steps, and add it: " code { "rialto workflow add FILE" } ", or " code { "[[workflows]]" } " in the configuration." }
                }
            } @else {
                table.cards {
                    thead { tr { th { "Name" } th { "Kind" } th { "Status" } th.num { "Version" } th { "Begun by" } th { "Last run" } } }
                    tbody { @for listed in &found { (row(&frame, listed, now)) } }
                }
            }
            div.pages { span data-count { (text::count(found.len(), "workflow", "workflows")) } }
        }
    };
    let live = Some(format!("{}{API}/events", frame.base));
    Ok(frame.page(&Page { title: "Workflows", at: HERE, live, is_over: false, body }))
}

pub(super) async fn show(visit: Visit) -> Result<Response, Failure> {
    page(&visit, &[], None).await
}

pub(super) async fn begin(visit: Visit) -> Result<Response, Failure> {
    let shown = flows::show(&visit.console, &visit.caller, visit.part("name"), None).await?;
    let begun = match input(&shown.workflow, &visit.form) {
        Ok(part) => runs::begin(&visit.console, &visit.caller, &shown.flow, part).await,
        Err(why) => Err(Failure::new(FailureKind::Invalid, why)),
    };
    match begun {
        Ok(begun) if begun.is_run => Ok(visit.go(&format!("/runs/{}", encoded(begun.task.as_str())), "run")),
        Ok(begun) => Ok(visit.go(&format!("/tasks/{}", encoded(begun.task.as_str())), "begun")),
        Err(failure) => page(&visit, &visit.form, Some(&failure)).await,
    }
}

async fn page(
    visit: &Visit,
    given: &[(String, String)],
    failure: Option<&Failure>,
) -> Result<Response, Failure> {
    let version = visit.query("version").and_then(|version| version.parse().ok());
    let shown = flows::show(&visit.console, &visit.caller, visit.part("name"), version).await?;
    let name = &shown.flow.name;
    let filter = runs::Filter {
        name: Some(name.clone()),
        cursor: visit.query("cursor").map(TaskId::from),
        ..runs::Filter::default()
    };
    let (runs, next) = match runs::list(&visit.console, &visit.caller, &filter).await {
        // Whoever may only look sees what there is, and no runs.
        Err(failure) if failure.kind == FailureKind::Denied => (Vec::new(), None),
        found => found?,
    };
    let may = visit.console.may(&visit.caller, Action::AdminAgents);
    let (frame, now) = (visit.frame(), visit.console.engine().now());
    let at = format!("{HERE}/{}", encoded(name));
    let body = html! {
        div.top {
            div { h1 { (text::line(name, 120)) } p.sub { (text::line(&shown.workflow.description, 400)) } }
            div.actions {
                (status(shown.flow.status))
                @if may.is_ok() && !shown.flow.configured {
                    a.button href=(frame.to(&edit(&at, version))) { @if version.is_some() { "Edit from this version" } @else { "Edit" } }
                    a.button.danger href=(frame.to(&format!("{at}/remove"))) data-dialog { "Remove" }
                }
            }
        }
        section.panel { h2 { "Steps" } (drawn(&shown.workflow, &Marks::new())) }
        div.columns {
            div {
                section.panel { h2 { "Run it" } (form(&frame, &shown, given, failure)) }
                section.panel.flush data-region="runs" {
                    @if runs.is_empty() {
                        div.empty { p { "No runs yet that you may see. Run it above, and it stands here at once." } }
                    } @else { (table(&frame, &runs, now)) }
                    @if let Some(next) = &next {
                        div.pages { a.button rel="next" href=(frame.to(&format!("{at}?cursor={}", encoded(next.as_str())))) { "Older ones" } }
                    }
                }
                section.panel {
                    details data-key="text" open[version.is_some()] {
                        summary { "Definition, version " (shown.flow.version) }
                        pre tabindex="0" { code { (text::visible(&shown.flow.text, true)) } }
                    }
                }
            }
            (facts(&frame, &shown, now, &may))
        }
    };
    let live = Some(format!("{}{API}/events", frame.base));
    let page = Page { title: name, at: HERE, live, is_over: false, body };
    let status = if failure.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    Ok(frame.answer(status, &page))
}

/// What a run is given.
fn input(workflow: &Workflow, given: &[(String, String)]) -> Result<Part, String> {
    Ok(match schema_form::read(workflow.input_schema.as_ref(), given)? {
        Some(input) => Part::data(input),
        None => match schema_form::message(given) {
            "" => Part::data(Json::empty_object()),
            text => Part::text(text),
        },
    })
}

fn form(frame: &Frame, shown: &Shown, given: &[(String, String)], failure: Option<&Failure>) -> Markup {
    let action = format!("{HERE}/{}/run", encoded(&shown.flow.name));
    html! {
        (layout::refused(failure))
        @if shown.flow.status == FlowStatus::Archived {
            p.muted { "It is archived and runs no more." }
        } @else {
            form method="post" action=(frame.to(&action)) {
                (frame.proof())
                (schema_form::fields(shown.workflow.input_schema.as_ref(), given))
                div.actions { button.first type="submit" { "Run" } }
            }
            p.hint.muted {
                @if shown.flow.status == FlowStatus::Draft { "It is a draft, and is tried out. " }
                "Its steps are real calls, in your name."
            }
        }
    }
}

fn row(frame: &Frame, listed: &Listed, now: Timestamp) -> Markup {
    let flow = &listed.flow;
    html! {
        tr {
            td {
                a href=(frame.to(&format!("{HERE}/{}", encoded(&flow.name)))) { (text::line(&flow.name, 80)) }
                @if let Some(workflow) = &listed.workflow { span.sub { (text::line(&workflow.description, 160)) } }
                @else { span.sub { "It cannot be read any more; add it again." } }
            }
            td data-label="Kind" { (flow.kind.as_str()) }
            td data-label="Status" { (status(flow.status)) }
            td.num data-label="Version" { (flow.version) }
            td data-label="Begun by" { @if let Some(workflow) = &listed.workflow { (triggers(workflow)) } }
            td data-label="Last run" {
                @if let Some(run) = &listed.last {
                    a href=(frame.to(&format!("/runs/{}", encoded(run.id.as_str())))) { (state(run.state)) } " " (text::moment(run.created_at, now))
                } @else { span.muted { "none" } }
            }
        }
    }
}

fn table(frame: &Frame, runs: &[FlowRun], now: Timestamp) -> Markup {
    html! {
        table.cards {
            thead { tr { th { "Run" } th { "State" } th.num { "Version" } th { "Caller" } th { "Begun" } th { "Took" } } }
            tbody {
                @for run in runs {
                    tr {
                        td { a href=(frame.to(&format!("/runs/{}", encoded(run.id.as_str())))) { code { (text::cut(run.id.as_str(), 48).0) } } }
                        td data-label="State" { (state(run.state)) }
                        td.num data-label="Version" { @if let Some(version) = run.version { (version) } @else { "–" } }
                        td data-label="Caller" { (text::line(run.caller.as_str(), 40)) }
                        td data-label="Begun" { (text::moment(run.created_at, now)) }
                        td data-label="Took" { @if run.state.is_over() { (text::took(run.created_at, run.updated_at)) } @else { "–" } }
                    }
                }
            }
        }
    }
}

/// Where a version of a definition is edited.
fn edit(at: &str, version: Option<u64>) -> String {
    version.map_or_else(|| format!("{at}/edit"), |version| format!("{at}/edit?version={version}"))
}

fn facts(frame: &Frame, shown: &Shown, now: Timestamp, may: &Result<(), Failure>) -> Markup {
    let flow = &shown.flow;
    let at = format!("{HERE}/{}", encoded(&flow.name));
    let oldest = shown.newest.saturating_sub(VERSIONS - 1).max(1);
    html! {
        section.panel {
            h2 { "About it" }
            dl.facts {
                dt { "Kind" } dd { (flow.kind.as_str()) }
                dt { "Status" } dd { (status(flow.status)) }
                dt { "Begun by" } dd { (triggers(&shown.workflow)) }
                dt { "Steps" } dd { (shown.workflow.nodes.len()) }
                dt { "Given by" } dd { (text::line(flow.by.as_str(), 80)) ", " (text::moment(flow.at, now)) }
                @if flow.configured { dt { "Kept in" } dd { "the configuration" } }
                dt { "Versions" } dd {
                    @for version in (oldest..=shown.newest).rev() {
                        @if version == flow.version { b { (version) } " " } @else { a href=(frame.to(&format!("{at}?version={version}"))) { (version) } " " }
                    }
                }
            }
            @match may {
                Ok(()) if flow.configured => p.muted { "It stands in the configuration: change its file there." },
                Ok(()) => (super::definitions::status_form(frame, &flow.name, flow.status)),
                Err(failure) => p.muted { "You can run it, but not change it: " (text::phrase(&failure.message, 400)) },
            }
        }
    }
}

/// A workflow as a drawing. What strangers named is escaped there; what cannot be seen is made visible here.
pub(super) fn drawn(workflow: &Workflow, marks: &Marks) -> Markup {
    let svg = graph::draw(workflow, Format::Svg, marks);
    html! { div.graph tabindex="0" { (PreEscaped(text::visible(&svg, true))) } }
}

fn triggers(workflow: &Workflow) -> Markup {
    let told = |trigger: &Trigger| match trigger {
        Trigger::Manual => "hand".to_owned(),
        Trigger::Skill => "a call of its skill".to_owned(),
        Trigger::Http { path } => format!("POST /hooks/{path}"),
        Trigger::Cron { schedule, .. } => format!("schedule {}", schedule.pattern()),
    };
    html! {
        @if workflow.triggers.is_empty() { "hand" }
        @for trigger in workflow.triggers.iter().take(20) { span.tag { (text::line(&told(trigger), 120)) } " " }
    }
}

fn status(status: FlowStatus) -> Markup {
    let tone = match status {
        FlowStatus::Active => "good",
        FlowStatus::Draft => "warn",
        FlowStatus::Archived => "",
    };
    html! { span class=(format!("state {tone}")) { (status.as_str()) } }
}

/// Where a run stands: a word, and a shape beside it.
pub(super) fn state(state: RunState) -> Markup {
    let tone = match state {
        RunState::Completed => "good",
        RunState::Failed => "bad",
        RunState::Waiting => "warn",
        RunState::Running => "live",
        RunState::Canceled => "",
    };
    html! { span class=(format!("state {tone}")) { (state.as_str()) } }
}
