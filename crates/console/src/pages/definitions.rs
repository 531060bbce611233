//! Workflows, written: an editor that looks them over and draws them as one types, and what becomes of them afterwards.

use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};
use rialto_flow::{graph::Marks, problem::Problem};
use rialto_model::{
    failure::{Failure, FailureKind},
    flow::FlowStatus,
};
use rialto_policy::Action;

use super::{
    flows::{self as flow_pages, HERE},
    layout::{self, Frame, Page},
    visit::{Visit, encoded},
};
use crate::{
    admin::{
        definitions::{self, Checked, Wanted},
        flows,
    },
    text,
};

/// What an empty editor begins with.
const SAMPLE: &str = "name: my-workflow
description: Say what it is good for.
input_schema: { type: object, required: [what], properties: { what: { type: string } } }
nodes:
  first: { tool: agent.skill, args: { what: \"{{ $input.what }}\" } }
  may: { type: approval, question: \"Go on with {{ nodes.first }}?\" }
  last: { type: set, value: { done: \"{{ nodes.first }}\" }, depends_on: [may] }
";

const STATUSES: [FlowStatus; 3] = [FlowStatus::Draft, FlowStatus::Active, FlowStatus::Archived];

/// What an editor is about.
struct Editor<'a> {
    wanted: &'a Wanted,
    checked: Option<&'a Checked>,
    failure: Option<&'a Failure>,
}

pub(super) async fn new(visit: Visit) -> Result<Response, Failure> {
    let wanted = Wanted { text: SAMPLE.to_owned(), ..Wanted::default() };
    let checked = definitions::check(&visit.console, &visit.caller, &wanted).await?;
    Ok(page(&visit, StatusCode::OK, &Editor { wanted: &wanted, checked: Some(&checked), failure: None }))
}

pub(super) async fn edit(visit: Visit) -> Result<Response, Failure> {
    visit.console.admit(&visit.caller, Action::AdminAgents).await?;
    let version = visit.query("version").and_then(|version| version.parse().ok());
    let shown = flows::show(&visit.console, &visit.caller, visit.part("name"), version).await?;
    let in_force = flows::show(&visit.console, &visit.caller, visit.part("name"), None).await?;
    let wanted = Wanted {
        name: shown.flow.name.clone(),
        text: shown.flow.text.clone(),
        status: Some(in_force.flow.status),
        made_from: Some((shown.flow.name.clone(), shown.newest)),
    };
    let checked = definitions::check(&visit.console, &visit.caller, &wanted).await?;
    Ok(page(&visit, StatusCode::OK, &Editor { wanted: &wanted, checked: Some(&checked), failure: None }))
}

pub(super) async fn check(visit: Visit) -> Result<Response, Failure> {
    let wanted = read(&visit);
    let checked = definitions::check(&visit.console, &visit.caller, &wanted).await?;
    Ok(page(&visit, StatusCode::OK, &Editor { wanted: &wanted, checked: Some(&checked), failure: None }))
}

pub(super) async fn keep(visit: Visit) -> Result<Response, Failure> {
    let wanted = read(&visit);
    let checked = definitions::check(&visit.console, &visit.caller, &wanted).await?;
    let kept = definitions::keep(&visit.console, &visit.caller, &wanted).await;
    match kept {
        Ok(flow) => Ok(visit.go(&format!("{HERE}/{}", encoded(&flow.name)), "kept")),
        Err(failure) => {
            // What is wrong with the text stands below it, place by place.
            let is_told = failure.kind == FailureKind::Invalid && !checked.problems.is_empty();
            let told = Failure::new(
                FailureKind::Invalid,
                "it does not hold up, so nothing was kept: see below the text",
            );
            let failure = if is_told { &told } else { &failure };
            let editor = Editor { wanted: &wanted, checked: Some(&checked), failure: Some(failure) };
            Ok(page(&visit, StatusCode::UNPROCESSABLE_ENTITY, &editor))
        }
    }
}

pub(super) async fn set_status(visit: Visit) -> Result<Response, Failure> {
    let Some(status) = status_of(visit.field("status")) else {
        return Err(Failure::new(FailureKind::Invalid, "a workflow is draft, active or archived"));
    };
    let flow = flows::set_status(&visit.console, &visit.caller, visit.part("name"), status).await?;
    Ok(visit.go(&format!("{HERE}/{}", encoded(&flow.name)), flow.status.as_str()))
}

pub(super) async fn ask_remove(visit: Visit) -> Result<Response, Failure> {
    let shown = flows::show(&visit.console, &visit.caller, visit.part("name"), None).await?;
    let (frame, at) = (visit.frame(), format!("{HERE}/{}", encoded(&shown.flow.name)));
    let body = html! {
        div data-dialog-body {
            h1 { "Remove " (text::line(&shown.flow.name, 80)) "?" }
            p { "It can no longer be run, nor begins by itself. Runs of it go on, and what they did stays on record. To keep it for later, archive it instead." }
            form method="post" action=(frame.to(&format!("{at}/remove"))) {
                (frame.proof())
                div.actions { button.danger type="submit" autofocus { "Remove" } a.button href=(frame.to(&at)) { "Keep it" } }
            }
        }
    };
    Ok(frame.page(&Page { title: "Remove a workflow", at: HERE, live: None, is_over: false, body }))
}

pub(super) async fn remove(visit: Visit) -> Result<Response, Failure> {
    flows::remove(&visit.console, &visit.caller, visit.part("name")).await?;
    Ok(visit.go(HERE, "removed"))
}

/// Another status for a definition, where somebody may give it one.
pub(super) fn status_form(frame: &Frame, name: &str, now: FlowStatus) -> Markup {
    html! {
        form.field method="post" action=(frame.to(&format!("{HERE}/{}/status", encoded(name)))) {
            (frame.proof())
            label for="status" { "Status" }
            div.actions {
                select #status name="status" {
                    @for status in STATUSES { option value=(status.as_str()) selected[status == now] { (told(status)) } }
                }
                button type="submit" { "Change" }
            }
        }
    }
}

const fn told(status: FlowStatus) -> &'static str {
    match status {
        FlowStatus::Draft => "draft: runs only to be tried out",
        FlowStatus::Active => "active: in use",
        FlowStatus::Archived => "archived: runs no more",
    }
}

/// The definition as it was filled in.
fn read(visit: &Visit) -> Wanted {
    let from = visit.field("from").filter(|name| !name.is_empty()).map(str::to_owned);
    let version = visit.field("version").and_then(|version| version.parse().ok());
    Wanted {
        name: visit.field("name").unwrap_or_default().trim().to_owned(),
        // Browsers end lines in forms with both.
        text: visit.field("text").unwrap_or_default().replace("\r\n", "\n"),
        status: status_of(visit.field("status")),
        made_from: from.zip(version),
    }
}

fn status_of(name: Option<&str>) -> Option<FlowStatus> {
    STATUSES.into_iter().find(|status| Some(status.as_str()) == name)
}

fn page(visit: &Visit, status: StatusCode, editor: &Editor<'_>) -> Response {
    let frame = visit.frame();
    let from = editor.wanted.made_from.as_ref();
    let title = from.map_or("New workflow", |(name, _)| name);
    let back = from.map_or_else(|| HERE.to_owned(), |(name, _)| format!("{HERE}/{}", encoded(name)));
    let body = html! {
        div.top { div {
            h1 { (text::line(title, 100)) }
            p.sub { "Looked over and drawn as you type; nothing is kept before you save it" }
        } }
        (layout::refused(editor.failure))
        form.panel method="post" action=(frame.to(HERE)) {
            (frame.proof())
            (fields(&frame, editor.wanted))
            div.actions {
                button.first type="submit" { "Save" }
                button type="submit" formaction=(frame.to("/check-workflow")) { "Check" }
                a.button href=(frame.to(&back)) { "Back" }
            }
        }
        div data-region="checked" aria-live="polite" {
            @if let Some(checked) = editor.checked { (thought(editor.wanted, checked)) }
        }
    };
    frame.answer(status, &Page { title, at: HERE, live: None, is_over: false, body })
}

fn fields(frame: &Frame, wanted: &Wanted) -> Markup {
    let check = frame.to("/check-workflow");
    html! {
        @if let Some((name, version)) = &wanted.made_from {
            input type="hidden" name="from" value=(name);
            input type="hidden" name="version" value=(version);
        }
        div.filters {
            div {
                label for="flow-name" { "Name, if the text says none" }
                input #flow-name type="text" name="name" value=(wanted.name) spellcheck="false" autocomplete="off" placeholder="my-workflow" data-check=(check);
            }
            div {
                label for="flow-status" { "Status" }
                select #flow-status name="status" {
                    option value="" { "as the text says" }
                    @for status in STATUSES { option value=(status.as_str()) selected[wanted.status == Some(status)] { (told(status)) } }
                }
            }
        }
        div.field {
            label for="flow-text" { "Definition, as YAML or JSON" }
            textarea.code #flow-text name="text" required spellcheck="false" data-check=(check) { "\n" (wanted.text) }
        }
    }
}

/// What is wrong with a text, or how it will be drawn.
fn thought(wanted: &Wanted, checked: &Checked) -> Markup {
    html! {
        @match &checked.workflow {
            Some(workflow) => {
                div #problems.said.good { p { "It holds up: " b { (text::line(&workflow.name, 80)) } ", " (text::count(workflow.nodes.len(), "node", "nodes")) "." } }
                @if let Some((name, _)) = wanted.made_from.as_ref().filter(|(name, _)| *name != workflow.name) {
                    div.said.warn { p { "It is called " b { (text::line(&workflow.name, 80)) } " now, so it becomes another workflow; " b { (text::line(name, 80)) } " stays as it is." } }
                }
                section.panel { h2 { "As it will be drawn" } (flow_pages::drawn(workflow, &Marks::new())) }
            }
            None => div #problems.said.bad {
                @for problem in &checked.problems { (wrong(problem)) }
                @if checked.more > 0 { p { "And " (checked.more) " more." } }
            },
        }
    }
}

/// One thing that is wrong. Whoever picks it is led to the place in the text.
fn wrong(problem: &Problem) -> Markup {
    let place = format!("{}:{}", problem.place.line, problem.place.column);
    html! {
        p {
            a href="#flow-text" data-goto=(place) { "line " (problem.place.line) ", column " (problem.place.column) }
            ": " (text::phrase(&problem.message, 600))
        }
    }
}
