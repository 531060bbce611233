//! Workflow editor: checks and draws a definition while it is typed, saves it, and changes its status.

use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};
use rialto_admin::{
    workflow_drafts::{self, CheckedDraft, WorkflowDraft},
    workflows,
};
use rialto_model::{
    failure::{Failure, FailureKind},
    flow::FlowStatus,
};
use rialto_policy::Action;
use rialto_workflow::{graph::NodeMarkers, problem::DefinitionProblem};

use super::{
    layout::{self, PageContent, PageFrame},
    request::{PageRequest, encode_segment},
    workflows::{self as workflow_pages, PAGE_PATH},
};
use crate::text;

/// Definition in a new editor.
const SAMPLE: &str = "name: my-workflow
description: Describe its purpose.
input_schema: { type: object, required: [what], properties: { what: { type: string } } }
nodes:
  first: { tool: agent.skill, args: { what: \"{{ $input.what }}\" } }
  may: { type: approval, question: \"Continue with {{ nodes.first }}?\" }
  last: { type: set, value: { done: \"{{ nodes.first }}\" }, depends_on: [may] }
";

const STATUSES: [FlowStatus; 3] = [FlowStatus::Draft, FlowStatus::Active, FlowStatus::Archived];

/// Content of the editor page.
struct WorkflowEditor<'a> {
    draft: &'a WorkflowDraft,
    checked: Option<&'a CheckedDraft>,
    failure: Option<&'a Failure>,
}

pub(super) async fn new(request: PageRequest) -> Result<Response, Failure> {
    let draft = WorkflowDraft { text: SAMPLE.to_owned(), ..WorkflowDraft::default() };
    let checked = workflow_drafts::check_draft(&request.admin, &request.caller, &draft).await?;
    Ok(page(
        &request,
        StatusCode::OK,
        &WorkflowEditor { draft: &draft, checked: Some(&checked), failure: None },
    ))
}

pub(super) async fn edit(request: PageRequest) -> Result<Response, Failure> {
    request.admin.authorize_admin(&request.caller, Action::AdminAgents).await?;
    let version = request.query("version").and_then(|version| version.parse().ok());
    let shown = workflows::show(&request.admin, &request.caller, request.path_param("name"), version).await?;
    let in_force = workflows::show(&request.admin, &request.caller, request.path_param("name"), None).await?;
    let draft = WorkflowDraft {
        name: shown.flow.name.clone(),
        text: shown.flow.text.clone(),
        status: Some(in_force.flow.status),
        made_from: Some((shown.flow.name.clone(), shown.newest)),
    };
    let checked = workflow_drafts::check_draft(&request.admin, &request.caller, &draft).await?;
    Ok(page(
        &request,
        StatusCode::OK,
        &WorkflowEditor { draft: &draft, checked: Some(&checked), failure: None },
    ))
}

pub(super) async fn check(request: PageRequest) -> Result<Response, Failure> {
    let draft = read_form(&request);
    let checked = workflow_drafts::check_draft(&request.admin, &request.caller, &draft).await?;
    Ok(page(
        &request,
        StatusCode::OK,
        &WorkflowEditor { draft: &draft, checked: Some(&checked), failure: None },
    ))
}

pub(super) async fn save(request: PageRequest) -> Result<Response, Failure> {
    let draft = read_form(&request);
    let checked = workflow_drafts::check_draft(&request.admin, &request.caller, &draft).await?;
    let saved = workflow_drafts::save_draft(&request.admin, &request.caller, &draft).await;
    match saved {
        Ok(flow) => Ok(request.redirect(&format!("{PAGE_PATH}/{}", encode_segment(&flow.name)), "kept")),
        Err(failure) => {
            // The problems are listed below the definition.
            let is_listed_below = failure.kind == FailureKind::Invalid && !checked.problems.is_empty();
            let summary = Failure::new(
                FailureKind::Invalid,
                "the definition is invalid and was not saved; see the problems below it",
            );
            let failure = if is_listed_below { &summary } else { &failure };
            let editor = WorkflowEditor { draft: &draft, checked: Some(&checked), failure: Some(failure) };
            Ok(page(&request, StatusCode::UNPROCESSABLE_ENTITY, &editor))
        }
    }
}

pub(super) async fn set_status(request: PageRequest) -> Result<Response, Failure> {
    let Some(status) = parse_status(request.field("status")) else {
        return Err(Failure::new(FailureKind::Invalid, "a workflow is draft, active or archived"));
    };
    let flow =
        workflows::set_status(&request.admin, &request.caller, request.path_param("name"), status).await?;
    Ok(request.redirect(&format!("{PAGE_PATH}/{}", encode_segment(&flow.name)), flow.status.as_str()))
}

pub(super) async fn confirm_remove(request: PageRequest) -> Result<Response, Failure> {
    let shown = workflows::show(&request.admin, &request.caller, request.path_param("name"), None).await?;
    let (frame, at) = (request.frame(), format!("{PAGE_PATH}/{}", encode_segment(&shown.flow.name)));
    let body = html! {
        div data-dialog-body {
            h1 { "Remove " (text::render_line(&shown.flow.name, 80)) "?" }
            p { "It can no longer be run, and its triggers stop. Active runs continue, and their records are kept. To keep the definition, archive it instead." }
            form method="post" action=(frame.url(&format!("{at}/remove"))) {
                (frame.csrf_field())
                div.actions { button.danger type="submit" autofocus { "Remove" } a.button href=(frame.url(&at)) { "Cancel" } }
            }
        }
    };
    Ok(frame.respond_ok(&PageContent {
        title: "Remove a workflow",
        at: PAGE_PATH,
        live: None,
        is_over: false,
        body,
    }))
}

pub(super) async fn remove(request: PageRequest) -> Result<Response, Failure> {
    workflows::remove(&request.admin, &request.caller, request.path_param("name")).await?;
    Ok(request.redirect(PAGE_PATH, "removed"))
}

/// Form that changes the status of a workflow.
pub(super) fn status_form(frame: &PageFrame, name: &str, now: FlowStatus) -> Markup {
    html! {
        form.field method="post" action=(frame.url(&format!("{PAGE_PATH}/{}/status", encode_segment(name)))) {
            (frame.csrf_field())
            label for="status" { "Status" }
            div.actions {
                select #status name="status" {
                    @for status in STATUSES { option value=(status.as_str()) selected[status == now] { (status_label(status)) } }
                }
                button type="submit" { "Change" }
            }
        }
    }
}

const fn status_label(status: FlowStatus) -> &'static str {
    match status {
        FlowStatus::Draft => "draft: test runs only",
        FlowStatus::Active => "active",
        FlowStatus::Archived => "archived: cannot be run",
    }
}

/// Draft from the fields of the form.
fn read_form(request: &PageRequest) -> WorkflowDraft {
    let from = request.field("from").filter(|name| !name.is_empty()).map(str::to_owned);
    let version = request.field("version").and_then(|version| version.parse().ok());
    WorkflowDraft {
        name: request.field("name").unwrap_or_default().trim().to_owned(),
        // Browsers end lines in forms with CR and LF.
        text: request.field("text").unwrap_or_default().replace("\r\n", "\n"),
        status: parse_status(request.field("status")),
        made_from: from.zip(version),
    }
}

fn parse_status(name: Option<&str>) -> Option<FlowStatus> {
    STATUSES.into_iter().find(|status| Some(status.as_str()) == name)
}

fn page(request: &PageRequest, status: StatusCode, editor: &WorkflowEditor<'_>) -> Response {
    let frame = request.frame();
    let from = editor.draft.made_from.as_ref();
    let title = from.map_or("New workflow", |(name, _)| name);
    let back = from
        .map_or_else(|| PAGE_PATH.to_owned(), |(name, _)| format!("{PAGE_PATH}/{}", encode_segment(name)));
    let body = html! {
        div.top { div {
            h1 { (text::render_line(title, 100)) }
            p.sub { "Checked and drawn as you type; saved only with Save" }
        } }
        (layout::error_message(editor.failure))
        form.panel method="post" action=(frame.url(PAGE_PATH)) {
            (frame.csrf_field())
            (fields(&frame, editor.draft))
            div.actions {
                button.first type="submit" { "Save" }
                button type="submit" formaction=(frame.url("/check-workflow")) { "Check" }
                a.button href=(frame.url(&back)) { "Back" }
            }
        }
        div data-region="checked" aria-live="polite" {
            @if let Some(checked) = editor.checked { (check_result(editor.draft, checked)) }
        }
    };
    frame.respond(status, &PageContent { title, at: PAGE_PATH, live: None, is_over: false, body })
}

fn fields(frame: &PageFrame, draft: &WorkflowDraft) -> Markup {
    let check = frame.url("/check-workflow");
    html! {
        @if let Some((name, version)) = &draft.made_from {
            input type="hidden" name="from" value=(name);
            input type="hidden" name="version" value=(version);
        }
        div.filters {
            div {
                label for="flow-name" { "Name, if the definition has none" }
                input #flow-name type="text" name="name" value=(draft.name) spellcheck="false" autocomplete="off" placeholder="my-workflow" data-check=(check);
            }
            div {
                label for="flow-status" { "Status" }
                select #flow-status name="status" {
                    option value="" { "as in the definition" }
                    @for status in STATUSES { option value=(status.as_str()) selected[draft.status == Some(status)] { (status_label(status)) } }
                }
            }
        }
        div.field {
            label for="flow-text" { "Definition, as YAML or JSON" }
            textarea.code #flow-text name="text" required spellcheck="false" data-check=(check) { "\n" (draft.text) }
        }
    }
}

/// Problems of a draft, or its graph if it is valid.
fn check_result(draft: &WorkflowDraft, checked: &CheckedDraft) -> Markup {
    html! {
        @match &checked.workflow {
            Some(workflow) => {
                div #problems.notice.good { p { "Valid: " b { (text::render_line(&workflow.name, 80)) } ", " (text::count_noun(workflow.nodes.len(), "node", "nodes")) "." } }
                @if let Some((name, _)) = draft.made_from.as_ref().filter(|(name, _)| *name != workflow.name) {
                    div.notice.warn { p { "Its name is now " b { (text::render_line(&workflow.name, 80)) } ", so saving creates another workflow; " b { (text::render_line(name, 80)) } " is not changed." } }
                }
                section.panel { h2 { "Preview" } (workflow_pages::graph_svg(workflow, &NodeMarkers::new())) }
            }
            None => div #problems.notice.bad {
                @for problem in &checked.problems { (problem_line(problem)) }
                @if checked.more > 0 { p { "And " (checked.more) " more." } }
            },
        }
    }
}

/// DefinitionProblem with a link to its position in the definition.
fn problem_line(problem: &DefinitionProblem) -> Markup {
    let place = format!("{}:{}", problem.place.line, problem.place.column);
    html! {
        p {
            a href="#flow-text" data-goto=(place) { "line " (problem.place.line) ", column " (problem.place.column) }
            ": " (text::render_message_line(&problem.message, 600))
        }
    }
}
