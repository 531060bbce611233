//! Pages of workflows: list, graph, form to run one, and its runs.

use axum::response::Response;
use http::StatusCode;
use maud::{Markup, PreEscaped, html};
use rialto_admin::{
    runs,
    workflows::{self, WorkflowListItem, WorkflowView},
};
use rialto_http_server::session::API;
use rialto_model::{
    clock::Timestamp,
    failure::{Failure, FailureKind},
    flow::{FlowRun, FlowStatus, RunState},
    ids::TaskId,
    json::Json,
    message::Part,
};
use rialto_policy::Action;
use rialto_workflow::{
    definition::{Workflow, WorkflowTrigger},
    graph::{self, DrawingFormat, NodeMarkers},
};

use super::{
    layout::{self, PageContent, PageFrame},
    request::{PageRequest, encode_segment},
};
use crate::{schema_form, text};

pub(super) const PAGE_PATH: &str = "/workflows";

/// Maximum number of versions with a link.
const MAX_VERSIONS: u64 = 20;

pub(super) async fn list(request: PageRequest) -> Result<Response, Failure> {
    let found = workflows::list_with_runs(&request.admin, &request.caller).await?;
    let may = request.admin.check_admin(&request.caller, Action::AdminAgents).is_ok();
    let (frame, now) = (request.frame(), request.admin.engine().now());
    let body = html! {
        div.top {
            div { h1 { "Workflows" } p.sub { "Workflows and pipelines of calls" } }
            @if may { div.actions { a.button.first href=(frame.url("/new-workflow")) { "New workflow" } } }
        }
        div.panel.flush data-region="workflows" {
            @if found.is_empty() {
                div.empty {
                    h2 { "No workflows yet" }
                    @if may { p { a.button.first href=(frame.url("/new-workflow")) { "Create a workflow" } } }
                    @if !may { p { "Callers with permission to administer agents create them here." } }
                    p { "Or add one from a file: " code { "rialto workflow add FILE" } ", or with " code { "[[workflows]]" } " in rialto.toml." }
                }
            } @else {
                table.cards {
                    thead { tr { th { "Name" } th { "Kind" } th { "Status" } th.num { "Version" } th { "Trigger" } th { "Last run" } } }
                    tbody { @for listed in &found { (row(&frame, listed, now)) } }
                }
            }
            div.pages { span data-count { (text::count_noun(found.len(), "workflow", "workflows")) } }
        }
    };
    let live = Some(format!("{}{API}/events", frame.base));
    Ok(frame.respond_ok(&PageContent { title: "Workflows", at: PAGE_PATH, live, is_over: false, body }))
}

pub(super) async fn show(request: PageRequest) -> Result<Response, Failure> {
    page(&request, &[], None).await
}

pub(super) async fn run(request: PageRequest) -> Result<Response, Failure> {
    let shown = workflows::show(&request.admin, &request.caller, request.path_param("name"), None).await?;
    let started = match read_input(&shown.workflow, &request.form) {
        Ok(part) => runs::start_from_form(&request.admin, &request.caller, &shown.flow, part).await,
        Err(why) => Err(Failure::new(FailureKind::Invalid, why)),
    };
    match started {
        Ok(started) if started.is_run => {
            Ok(request.redirect(&format!("/runs/{}", encode_segment(started.task.as_str())), "run"))
        }
        Ok(started) => {
            Ok(request.redirect(&format!("/tasks/{}", encode_segment(started.task.as_str())), "begun"))
        }
        Err(failure) => page(&request, &request.form, Some(&failure)).await,
    }
}

async fn page(
    request: &PageRequest,
    given: &[(String, String)],
    failure: Option<&Failure>,
) -> Result<Response, Failure> {
    let version = request.query("version").and_then(|version| version.parse().ok());
    let shown = workflows::show(&request.admin, &request.caller, request.path_param("name"), version).await?;
    let name = &shown.flow.name;
    let filter = runs::RunQuery {
        name: Some(name.clone()),
        cursor: request.query("cursor").map(TaskId::from),
        ..runs::RunQuery::default()
    };
    let (runs, next) = match runs::list(&request.admin, &request.caller, &filter).await {
        // A caller without permission to call sees the workflow without its runs.
        Err(failure) if failure.kind == FailureKind::Denied => (Vec::new(), None),
        found => found?,
    };
    let may = request.admin.check_admin(&request.caller, Action::AdminAgents);
    let (frame, now) = (request.frame(), request.admin.engine().now());
    let at = format!("{PAGE_PATH}/{}", encode_segment(name));
    let body = html! {
        div.top {
            div { h1 { (text::render_line(name, 120)) } p.sub { (text::render_line(&shown.workflow.description, 400)) } }
            div.actions {
                (status_badge(shown.flow.status))
                @if may.is_ok() && !shown.flow.configured {
                    a.button href=(frame.url(&edit_path(&at, version))) { @if version.is_some() { "Edit from this version" } @else { "Edit" } }
                    a.button.danger href=(frame.url(&format!("{at}/remove"))) data-dialog { "Remove" }
                }
            }
        }
        section.panel { h2 { "Steps" } (graph_svg(&shown.workflow, &NodeMarkers::new())) }
        div.columns {
            div {
                section.panel { h2 { "Start a run" } (run_form(&frame, &shown, given, failure)) }
                section.panel.flush data-region="runs" {
                    @if runs.is_empty() {
                        div.empty { p { "No runs yet. Start one above." } }
                    } @else { (run_table(&frame, &runs, now)) }
                    @if let Some(next) = &next {
                        div.pages { a.button rel="next" href=(frame.url(&format!("{at}?cursor={}", encode_segment(next.as_str())))) { "Older" } }
                    }
                }
                section.panel {
                    details data-key="text" open[version.is_some()] {
                        summary { "Definition, version " (shown.flow.version) }
                        pre tabindex="0" { code { (text::escape_invisible(&shown.flow.text, true)) } }
                    }
                }
            }
            (details(&frame, &shown, now, &may))
        }
    };
    let live = Some(format!("{}{API}/events", frame.base));
    let page = PageContent { title: name, at: PAGE_PATH, live, is_over: false, body };
    let status = if failure.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    Ok(frame.respond(status, &page))
}

/// Input of a run from the fields of the form.
fn read_input(workflow: &Workflow, given: &[(String, String)]) -> Result<Part, String> {
    Ok(match schema_form::read_arguments(workflow.input_schema.as_ref(), given)? {
        Some(input) => Part::data(input),
        None => match schema_form::read_message(given) {
            "" => Part::data(Json::empty_object()),
            text => Part::text(text),
        },
    })
}

fn run_form(
    frame: &PageFrame,
    shown: &WorkflowView,
    given: &[(String, String)],
    failure: Option<&Failure>,
) -> Markup {
    let action = format!("{PAGE_PATH}/{}/run", encode_segment(&shown.flow.name));
    html! {
        (layout::error_message(failure))
        @if shown.flow.status == FlowStatus::Archived {
            p.muted { "This workflow is archived and cannot be run." }
        } @else {
            form method="post" action=(frame.url(&action)) {
                (frame.csrf_field())
                (schema_form::form_fields(shown.workflow.input_schema.as_ref(), given))
                div.actions { button.first type="submit" { "Run" } }
            }
            p.hint.muted {
                @if shown.flow.status == FlowStatus::Draft { "This is a draft; the run is a test. " }
                "Its steps are real calls made by you."
            }
        }
    }
}

fn row(frame: &PageFrame, listed: &WorkflowListItem, now: Timestamp) -> Markup {
    let flow = &listed.flow;
    html! {
        tr {
            td {
                a href=(frame.url(&format!("{PAGE_PATH}/{}", encode_segment(&flow.name)))) { (text::render_line(&flow.name, 80)) }
                @if let Some(workflow) = &listed.workflow { span.sub { (text::render_line(&workflow.description, 160)) } }
                @else { span.sub { "The definition is invalid; add it again." } }
            }
            td data-label="Kind" { (flow.kind.as_str()) }
            td data-label="Status" { (status_badge(flow.status)) }
            td.num data-label="Version" { (flow.version) }
            td data-label="Trigger" { @if let Some(workflow) = &listed.workflow { (trigger_tags(workflow)) } }
            td data-label="Last run" {
                @if let Some(run) = &listed.last {
                    a href=(frame.url(&format!("/runs/{}", encode_segment(run.id.as_str())))) { (state_badge(run.state)) } " " (text::time_ago(run.created_at, now))
                } @else { span.muted { "none" } }
            }
        }
    }
}

fn run_table(frame: &PageFrame, runs: &[FlowRun], now: Timestamp) -> Markup {
    html! {
        table.cards {
            thead { tr { th { "Run" } th { "State" } th.num { "Version" } th { "Caller" } th { "Started" } th { "Duration" } } }
            tbody {
                @for run in runs {
                    tr {
                        td { a href=(frame.url(&format!("/runs/{}", encode_segment(run.id.as_str())))) { code { (text::truncate(run.id.as_str(), 48).0) } } }
                        td data-label="State" { (state_badge(run.state)) }
                        td.num data-label="Version" { @if let Some(version) = run.version { (version) } @else { "–" } }
                        td data-label="Caller" { (text::render_line(run.caller.as_str(), 40)) }
                        td data-label="Started" { (text::time_ago(run.created_at, now)) }
                        td data-label="Duration" { @if run.state.is_over() { (text::format_duration(run.created_at, run.updated_at)) } @else { "–" } }
                    }
                }
            }
        }
    }
}

/// Path of the editor for a version.
fn edit_path(at: &str, version: Option<u64>) -> String {
    version.map_or_else(|| format!("{at}/edit"), |version| format!("{at}/edit?version={version}"))
}

fn details(frame: &PageFrame, shown: &WorkflowView, now: Timestamp, may: &Result<(), Failure>) -> Markup {
    let flow = &shown.flow;
    let at = format!("{PAGE_PATH}/{}", encode_segment(&flow.name));
    let oldest = shown.newest.saturating_sub(MAX_VERSIONS - 1).max(1);
    html! {
        section.panel {
            h2 { "Details" }
            dl.facts {
                dt { "Kind" } dd { (flow.kind.as_str()) }
                dt { "Status" } dd { (status_badge(flow.status)) }
                dt { "Trigger" } dd { (trigger_tags(&shown.workflow)) }
                dt { "Steps" } dd { (shown.workflow.nodes.len()) }
                dt { "Created by" } dd { (text::render_line(flow.by.as_str(), 80)) ", " (text::time_ago(flow.at, now)) }
                @if flow.configured { dt { "Managed by" } dd { "rialto.toml" } }
                dt { "Versions" } dd {
                    @for version in (oldest..=shown.newest).rev() {
                        @if version == flow.version { b { (version) } " " } @else { a href=(frame.url(&format!("{at}?version={version}"))) { (version) } " " }
                    }
                }
            }
            @match may {
                Ok(()) if flow.configured => p.muted { "Managed by rialto.toml: change its file there." },
                Ok(()) => (super::workflow_editor::status_form(frame, &flow.name, flow.status)),
                Err(failure) => p.muted { "You can run this workflow, but not change it: " (text::render_message_line(&failure.message, 400)) },
            }
        }
    }
}

/// Graph of a workflow as SVG. Names are escaped by the graph; invisible characters are escaped here.
pub(super) fn graph_svg(workflow: &Workflow, marks: &NodeMarkers) -> Markup {
    let svg = graph::draw(workflow, DrawingFormat::Svg, marks);
    html! { div.graph tabindex="0" { (PreEscaped(text::escape_invisible(&svg, true))) } }
}

fn trigger_tags(workflow: &Workflow) -> Markup {
    let label = |trigger: &WorkflowTrigger| match trigger {
        WorkflowTrigger::Manual => "manual".to_owned(),
        WorkflowTrigger::Skill => "call of its skill".to_owned(),
        WorkflowTrigger::Http { path } => format!("POST /hooks/{path}"),
        WorkflowTrigger::Cron { schedule, .. } => format!("schedule {}", schedule.pattern()),
    };
    html! {
        @if workflow.triggers.is_empty() { "manual" }
        @for trigger in workflow.triggers.iter().take(20) { span.tag { (text::render_line(&label(trigger), 120)) } " " }
    }
}

fn status_badge(status: FlowStatus) -> Markup {
    let tone = match status {
        FlowStatus::Active => "good",
        FlowStatus::Draft => "warn",
        FlowStatus::Archived => "",
    };
    html! { span class=(format!("state {tone}")) { (status.as_str()) } }
}

/// Badge for the state of a run.
pub(super) fn state_badge(state: RunState) -> Markup {
    let tone = match state {
        RunState::Completed => "good",
        RunState::Failed => "bad",
        RunState::Waiting => "warn",
        RunState::Running => "live",
        RunState::Canceled => "",
    };
    html! { span class=(format!("state {tone}")) { (state.as_str()) } }
}
