//! Page of a run: its graph with the state of each node, its steps, open questions and result.

use axum::response::Response;
use maud::{Markup, html};
use rialto_admin::{
    approvals,
    runs::{self, RunOptions, RunView},
    tasks,
};
use rialto_http_server::session::API;
use rialto_model::{
    approval::Approval,
    clock::Timestamp,
    failure::Failure,
    flow::{FlowStep, RunState, StepState},
    json::Json,
    message::Part,
};
use rialto_workflow::{
    definition::Workflow,
    graph::{NodeMarker, NodeMarkers},
};

use super::{
    layout::{PageContent, PageFrame},
    request::{PageRequest, encode_segment},
    workflows::{self as workflow_pages, PAGE_PATH},
};
use crate::{pretty_json::pretty_json, text};

/// Maximum number of steps on the page; the API has all of them.
const MAX_STEPS: usize = 300;

pub(super) async fn show(request: PageRequest) -> Result<Response, Failure> {
    let run = runs::show(&request.admin, &request.caller, request.path_param("id")).await?;
    let record = &run.record.run;
    let asked = if record.state == RunState::Waiting {
        approvals::list_for_task(&request.admin, &request.caller, &record.id).await?
    } else {
        Vec::new()
    };
    let (frame, now) = (request.frame(), request.admin.engine().now());
    let at = format!("/runs/{}", encode_segment(record.id.as_str()));
    let is_over = record.state.is_over() && run.task.head.state.is_terminal();
    let may = tasks::may_act(&request.admin, &request.caller, &run.task.head);
    let body = html! {
        div.top {
            div {
                h1 { "Run of " a href=(frame.url(&format!("{PAGE_PATH}/{}", encode_segment(&record.name)))) { (text::render_line(&record.name, 100)) } }
                p.sub { code { (record.id) } }
            }
            div.actions data-region="stand" {
                (workflow_pages::state_badge(record.state))
                @if !is_over && may.is_ok() {
                    @if asked.is_empty() && !has_question(&run.record.steps) && runs::can_resume(&request.admin, &request.caller, &run) {
                        form.inline method="post" action=(frame.url(&format!("{at}/resume"))) {
                            (frame.csrf_field()) button type="submit" title="Resumes a run that no server works on" { "Resume" }
                        }
                    }
                    a.button.danger href=(frame.url(&format!("{at}/cancel"))) data-dialog { "Cancel" }
                }
            }
        }
        @if let Some(workflow) = &run.workflow {
            section.panel data-region="graph" { (workflow_pages::graph_svg(workflow, &node_states(workflow, &run.record.steps))) }
        }
        div.columns {
            div {
                (open_questions(&request, &frame, &run, &asked, now))
                section.panel data-region="steps" { h2 { "Steps" } (steps(&frame, &run.record.steps, now)) }
            }
            div { (result(&run)) (details(&frame, &run, now)) }
        }
    };
    let version = run.task.head.version;
    let live =
        format!("{}{API}/tasks/{}/events?after={version}", frame.base, encode_segment(record.id.as_str()));
    Ok(frame.respond_ok(&PageContent { title: "Run", at: PAGE_PATH, live: Some(live), is_over, body }))
}

pub(super) async fn confirm_cancel(request: PageRequest) -> Result<Response, Failure> {
    let run = runs::show(&request.admin, &request.caller, request.path_param("id")).await?;
    let (frame, at) = (request.frame(), format!("/runs/{}", encode_segment(run.record.run.id.as_str())));
    let body = html! {
        div data-dialog-body {
            h1 { "Cancel this run?" }
            p { "Running steps are asked to stop, and no further steps start. Completed steps are not undone." }
            @if !tasks::is_own(&request.caller, &run.task.head) {
                p { "It is a run of " b { (text::render_line(run.task.head.caller.as_str(), 80)) } ". The cancellation is recorded in the audit log under your name." }
            }
            form method="post" action=(frame.url(&format!("{at}/cancel"))) {
                (frame.csrf_field())
                div.actions { button.danger type="submit" autofocus { "Cancel the run" } a.button href=(frame.url(&at)) { "Keep running" } }
            }
        }
    };
    Ok(frame.respond_ok(&PageContent {
        title: "Cancel a run",
        at: PAGE_PATH,
        live: None,
        is_over: false,
        body,
    }))
}

pub(super) async fn cancel(request: PageRequest) -> Result<Response, Failure> {
    let task = tasks::cancel(&request.admin, &request.caller, request.path_param("id")).await?;
    Ok(request.redirect(&format!("/runs/{}", encode_segment(task.head.id.as_str())), "stopped"))
}

pub(super) async fn answer(request: PageRequest) -> Result<Response, Failure> {
    let id = request.path_param("id");
    let step = request.field("step").filter(|step| !step.is_empty());
    let text = request.field("text").unwrap_or_default();
    let part = runs::address_step(step, Part::text(text));
    runs::answer(&request.admin, &request.caller, id, part, RunOptions::default()).await?;
    Ok(request.redirect(&format!("/runs/{}", encode_segment(id)), "said"))
}

pub(super) async fn resume(request: PageRequest) -> Result<Response, Failure> {
    let id = request.path_param("id");
    // The run continues without its handle.
    drop(runs::resume(&request.admin, &request.caller, id).await?);
    Ok(request.redirect(&format!("/runs/{}", encode_segment(id)), "resumed"))
}

/// Whether a step waits for an answer.
fn has_question(steps: &[FlowStep]) -> bool {
    steps.iter().any(|step| step.state == StepState::Waiting && step.question.is_some())
}

/// State of each node by its last attempt. A node without attempts is waiting.
fn node_states(workflow: &Workflow, steps: &[FlowStep]) -> NodeMarkers {
    let mark = |id: &str| {
        let own = steps.iter().filter(|step| step.node == id && step.item.is_none());
        own.max_by_key(|step| step.attempt).map_or(NodeMarker::Waiting, |step| node_state(step.state))
    };
    workflow.nodes.iter().map(|node| (node.id.clone(), mark(node.id.as_str()))).collect()
}

const fn node_state(state: StepState) -> NodeMarker {
    match state {
        StepState::Running | StepState::Retrying => NodeMarker::Running,
        StepState::Waiting => NodeMarker::Held,
        StepState::Completed => NodeMarker::Completed,
        StepState::Failed => NodeMarker::Failed,
        StepState::Skipped => NodeMarker::Skipped,
        StepState::Canceled => NodeMarker::Canceled,
    }
}

/// Open questions of the run: approvals, and steps that wait for an answer.
fn open_questions(
    request: &PageRequest,
    frame: &PageFrame,
    run: &RunView,
    asked: &[Approval],
    now: Timestamp,
) -> Markup {
    let head = &run.task.head;
    let can_answer = asked.is_empty() && tasks::may_act(&request.admin, &request.caller, head).is_ok();
    let waiting = run.record.steps.iter().filter(|step| step.state == StepState::Waiting);
    let action = frame.url(&format!("/runs/{}/messages", encode_segment(run.record.run.id.as_str())));
    html! {
        div data-region="answers" {
            @for approval in asked { (super::approvals::approval_panel(frame, approval, now)) }
            @if can_answer && run.record.run.state == RunState::Waiting {
                @for (at, step) in waiting.take(20).enumerate() {
                    section.panel {
                        h2 { (text::render_line(&step.node, 80)) " needs input" }
                        @if let Some(message) = step.question.as_ref().and_then(|question| question.message.as_ref()) {
                            p { (text::render_block(&message.text(), 4_000)) }
                        }
                        form method="post" action=(action) {
                            (frame.csrf_field())
                            input type="hidden" name="step" value=(step.node);
                            div.field {
                                label for=(format!("answer-{at}")) { "Your answer" }
                                textarea id=(format!("answer-{at}")) name="text" required {}
                                @if !tasks::is_own(&request.caller, head) {
                                    p.hint { "Sent in the run of " (text::render_line(head.caller.as_str(), 80)) "; recorded in the audit log under your name." }
                                }
                            }
                            button.first type="submit" { "Send" }
                        }
                    }
                }
            }
        }
    }
}

fn steps(frame: &PageFrame, steps: &[FlowStep], now: Timestamp) -> Markup {
    html! {
        @if steps.is_empty() { p.muted { "No steps have started yet." } }
        @for (at, step) in steps.iter().take(MAX_STEPS).enumerate() {
            @let is_first = !steps.iter().take(at).any(|before| before.node == step.node);
            @let key = format!("{}.{}.{}", step.node, step.item.map_or_else(String::new, |item| item.to_string()), step.attempt);
            details.step id=[is_first.then(|| format!("node-{}", step.node))] data-key=(key) {
                summary {
                    b { (text::render_line(&step.node, 80)) @if let Some(item) = step.item { "[" (item) "]" } } " "
                    (state_badge(step.state)) " "
                    span.muted.small {
                        @if step.attempt > 1 { "attempt " (step.attempt) ", " }
                        @match step.ended_at {
                            Some(ended) => (text::format_duration(step.begun_at, ended)),
                            None => { "since " (text::time_ago(step.begun_at, now)) },
                        }
                    }
                }
                @if let Some(failure) = &step.failure { div.notice.bad { (text::render_message(&failure.message, 2_000)) } }
                (json_section("Input", step.input.as_ref()))
                (json_section("Output", step.output.as_ref()))
                @if step.input.is_none() && step.output.is_none() && step.failure.is_none() { p.muted { "No input and no output so far." } }
                @if let Some(task) = &step.task { p { a href=(frame.url(&format!("/tasks/{}", encode_segment(task.as_str())))) { "Task of this step" } } }
            }
        }
        @if steps.len() > MAX_STEPS { p.muted { "Only the first " (MAX_STEPS) " steps are shown." } }
    }
}

fn state_badge(state: StepState) -> Markup {
    let tone = match state {
        StepState::Completed => "good",
        StepState::Failed => "bad",
        StepState::Waiting => "warn",
        StepState::Running | StepState::Retrying => "live",
        StepState::Skipped | StepState::Canceled => "",
    };
    html! { span class=(format!("state {tone}")) { (state.as_str()) } }
}

fn result(run: &RunView) -> Markup {
    let record = &run.record.run;
    html! {
        section.panel data-region="result" aria-live="polite" {
            h2 { "Result" }
            @if let Some(failure) = &record.failure { div.notice.bad { (text::render_message(&failure.message, 2_000)) } }
            @if let Some(output) = &record.output { pre tabindex="0" { code { (pretty_json(output)) } } }
            @if record.failure.is_none() && record.output.is_none() {
                p.muted { @if record.state.is_over() { "The run ended without a result." } @else { "No result yet. It appears here when the run ends." } }
            }
        }
    }
}

fn details(frame: &PageFrame, run: &RunView, now: Timestamp) -> Markup {
    let record = &run.record.run;
    html! {
        section.panel data-region="facts" {
            h2 { "Details" }
            dl.facts {
                dt { "Version" } dd { @if let Some(version) = record.version { (version) } @else { "none (inline definition)" } }
                dt { "Caller" } dd { (text::render_line(record.caller.as_str(), 80)) }
                dt { "Started" } dd { (text::time_ago(record.created_at, now)) }
                @if record.state.is_over() { dt { "Duration" } dd { (text::format_duration(record.created_at, record.updated_at)) } }
                @if let Some(wakes) = record.wakes_at { dt { "Resumes" } dd { (text::time_until(wakes, now)) } }
            }
            (json_section("Input", Some(&record.input)))
            p { a href=(frame.url(&format!("/tasks/{}", encode_segment(record.id.as_str())))) { "View as task" } }
        }
    }
}

fn json_section(name: &str, json: Option<&Json>) -> Markup {
    html! { @if let Some(json) = json { h3 { (name) } pre tabindex="0" { code { (pretty_json(json)) } } } }
}
