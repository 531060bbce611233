//! One run: the graph as it lights up, and each step with what it was given and what it made.

use axum::response::Response;
use maud::{Markup, html};
use rialto_edge::session::API;
use rialto_flow::{
    definition::Workflow,
    graph::{NodeMarker, NodeMarkers},
};
use rialto_model::{
    approval::Approval,
    clock::Timestamp,
    failure::Failure,
    flow::{FlowStep, RunState, StepState},
    json::Json,
    message::Part,
};

use super::{
    flows::{self as flow_pages, HERE},
    layout::{Frame, Page},
    visit::{Visit, encoded},
};
use crate::{
    admin::{
        approvals,
        runs::{self, How, Run},
        tasks,
    },
    laid_out::pretty,
    text,
};

/// So many steps are shown; the rest are in the API.
const STEPS: usize = 300;

pub(super) async fn show(visit: Visit) -> Result<Response, Failure> {
    let run = runs::show(&visit.console, &visit.caller, visit.part("id")).await?;
    let record = &run.record.run;
    let asked = if record.state == RunState::Waiting {
        approvals::of_task(&visit.console, &visit.caller, &record.id).await?
    } else {
        Vec::new()
    };
    let (frame, now) = (visit.frame(), visit.console.engine().now());
    let at = format!("/runs/{}", encoded(record.id.as_str()));
    let is_over = record.state.is_over() && run.task.head.state.is_terminal();
    let may = tasks::may_act(&visit.console, &visit.caller, &run.task.head);
    let body = html! {
        div.top {
            div {
                h1 { "Run of " a href=(frame.to(&format!("{HERE}/{}", encoded(&record.name)))) { (text::line(&record.name, 100)) } }
                p.sub { code { (record.id) } }
            }
            div.actions data-region="stand" {
                (flow_pages::state(record.state))
                @if !is_over && may.is_ok() {
                    @if asked.is_empty() && !asks(&run.record.steps) && runs::can_resume(&visit.console, &visit.caller, &run) {
                        form.inline method="post" action=(frame.to(&format!("{at}/resume"))) {
                            (frame.proof()) button type="submit" title="Takes up a run that nobody here works on" { "Resume" }
                        }
                    }
                    a.button.danger href=(frame.to(&format!("{at}/cancel"))) data-dialog { "Cancel" }
                }
            }
        }
        @if let Some(workflow) = &run.workflow {
            section.panel data-region="graph" { (flow_pages::drawn(workflow, &marks(workflow, &run.record.steps))) }
        }
        div.columns {
            div {
                (answers(&visit, &frame, &run, &asked, now))
                section.panel data-region="steps" { h2 { "Steps" } (steps(&frame, &run.record.steps, now)) }
            }
            div { (result(&run)) (facts(&frame, &run, now)) }
        }
    };
    let version = run.task.head.version;
    let live = format!("{}{API}/tasks/{}/events?after={version}", frame.base, encoded(record.id.as_str()));
    Ok(frame.page(&Page { title: "Run", at: HERE, live: Some(live), is_over, body }))
}

pub(super) async fn ask_cancel(visit: Visit) -> Result<Response, Failure> {
    let run = runs::show(&visit.console, &visit.caller, visit.part("id")).await?;
    let (frame, at) = (visit.frame(), format!("/runs/{}", encoded(run.record.run.id.as_str())));
    let body = html! {
        div data-dialog-body {
            h1 { "Cancel this run?" }
            p { "Steps that are at work are asked to stop, and no more begin. What was done stays done." }
            @if !tasks::is_own(&visit.caller, &run.task.head) {
                p { "It is a run of " b { (text::line(run.task.head.caller.as_str(), 80)) } ". That you called it off is kept on record under your name." }
            }
            form method="post" action=(frame.to(&format!("{at}/cancel"))) {
                (frame.proof())
                div.actions { button.danger type="submit" autofocus { "Cancel the run" } a.button href=(frame.to(&at)) { "Let it run" } }
            }
        }
    };
    Ok(frame.page(&Page { title: "Cancel a run", at: HERE, live: None, is_over: false, body }))
}

pub(super) async fn cancel(visit: Visit) -> Result<Response, Failure> {
    let task = tasks::cancel(&visit.console, &visit.caller, visit.part("id")).await?;
    Ok(visit.go(&format!("/runs/{}", encoded(task.head.id.as_str())), "stopped"))
}

pub(super) async fn answer(visit: Visit) -> Result<Response, Failure> {
    let id = visit.part("id");
    let step = visit.field("step").filter(|step| !step.is_empty());
    let said = visit.field("text").unwrap_or_default();
    let part = runs::meant_for(step, Part::text(said));
    runs::tell(&visit.console, &visit.caller, id, part, How::default()).await?;
    Ok(visit.go(&format!("/runs/{}", encoded(id)), "said"))
}

pub(super) async fn resume(visit: Visit) -> Result<Response, Failure> {
    let id = visit.part("id");
    // It goes on by itself when it is let go of.
    drop(runs::resume(&visit.console, &visit.caller, id).await?);
    Ok(visit.go(&format!("/runs/{}", encoded(id)), "resumed"))
}

/// Whether a step waits for a word.
fn asks(steps: &[FlowStep]) -> bool {
    steps.iter().any(|step| step.state == StepState::Waiting && step.question.is_some())
}

/// How the nodes stand: by the last attempt of each. What has not begun waits.
fn marks(workflow: &Workflow, steps: &[FlowStep]) -> NodeMarkers {
    let mark = |id: &str| {
        let own = steps.iter().filter(|step| step.node == id && step.item.is_none());
        own.max_by_key(|step| step.attempt).map_or(NodeMarker::Waiting, |step| mark_of(step.state))
    };
    workflow.nodes.iter().map(|node| (node.id.clone(), mark(node.id.as_str()))).collect()
}

const fn mark_of(state: StepState) -> NodeMarker {
    match state {
        StepState::Running | StepState::Retrying => NodeMarker::Running,
        StepState::Waiting => NodeMarker::Held,
        StepState::Completed => NodeMarker::Completed,
        StepState::Failed => NodeMarker::Failed,
        StepState::Skipped => NodeMarker::Skipped,
        StepState::Canceled => NodeMarker::Canceled,
    }
}

/// What the run waits for: a person's word, or an answer to a step.
fn answers(visit: &Visit, frame: &Frame, run: &Run, asked: &[Approval], now: Timestamp) -> Markup {
    let head = &run.task.head;
    let can_be_told = asked.is_empty() && tasks::may_act(&visit.console, &visit.caller, head).is_ok();
    let held = run.record.steps.iter().filter(|step| step.state == StepState::Waiting);
    let action = frame.to(&format!("/runs/{}/messages", encoded(run.record.run.id.as_str())));
    html! {
        div data-region="answers" {
            @for approval in asked { (super::approvals::ask(frame, approval, now)) }
            @if can_be_told && run.record.run.state == RunState::Waiting {
                @for (at, step) in held.take(20).enumerate() {
                    section.panel {
                        h2 { (text::line(&step.node, 80)) " asks" }
                        @if let Some(message) = step.question.as_ref().and_then(|question| question.message.as_ref()) {
                            p { (text::block(&message.text(), 4_000)) }
                        }
                        form method="post" action=(action) {
                            (frame.proof())
                            input type="hidden" name="step" value=(step.node);
                            div.field {
                                label for=(format!("answer-{at}")) { "Your answer" }
                                textarea id=(format!("answer-{at}")) name="text" required {}
                                @if !tasks::is_own(&visit.caller, head) {
                                    p.hint { "It is said in the run of " (text::line(head.caller.as_str(), 80)) "; that it was you is kept on record." }
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

fn steps(frame: &Frame, steps: &[FlowStep], now: Timestamp) -> Markup {
    html! {
        @if steps.is_empty() { p.muted { "Nothing has begun yet." } }
        @for (at, step) in steps.iter().take(STEPS).enumerate() {
            @let is_first = !steps.iter().take(at).any(|before| before.node == step.node);
            @let key = format!("{}.{}.{}", step.node, step.item.map_or_else(String::new, |item| item.to_string()), step.attempt);
            details.step id=[is_first.then(|| format!("node-{}", step.node))] data-key=(key) {
                summary {
                    b { (text::line(&step.node, 80)) @if let Some(item) = step.item { "[" (item) "]" } } " "
                    (state(step.state)) " "
                    span.muted.small {
                        @if step.attempt > 1 { "attempt " (step.attempt) ", " }
                        @match step.ended_at {
                            Some(ended) => (text::took(step.begun_at, ended)),
                            None => { "since " (text::moment(step.begun_at, now)) },
                        }
                    }
                }
                @if let Some(failure) = &step.failure { div.said.bad { (text::told(&failure.message, 2_000)) } }
                (piece("Given", step.input.as_ref()))
                (piece("Made", step.output.as_ref()))
                @if step.input.is_none() && step.output.is_none() && step.failure.is_none() { p.muted { "Nothing was given, and nothing made so far." } }
                @if let Some(task) = &step.task { p { a href=(frame.to(&format!("/tasks/{}", encoded(task.as_str())))) { "Its task" } } }
            }
        }
        @if steps.len() > STEPS { p.muted { "Only the first " (STEPS) " are shown." } }
    }
}

fn state(state: StepState) -> Markup {
    let tone = match state {
        StepState::Completed => "good",
        StepState::Failed => "bad",
        StepState::Waiting => "warn",
        StepState::Running | StepState::Retrying => "live",
        StepState::Skipped | StepState::Canceled => "",
    };
    html! { span class=(format!("state {tone}")) { (state.as_str()) } }
}

fn result(run: &Run) -> Markup {
    let record = &run.record.run;
    html! {
        section.panel data-region="result" aria-live="polite" {
            h2 { "Result" }
            @if let Some(failure) = &record.failure { div.said.bad { (text::told(&failure.message, 2_000)) } }
            @if let Some(output) = &record.output { pre tabindex="0" { code { (pretty(output)) } } }
            @if record.failure.is_none() && record.output.is_none() {
                p.muted { @if record.state.is_over() { "It ended without a result." } @else { "Nothing yet: it is shown here when the run is over." } }
            }
        }
    }
}

fn facts(frame: &Frame, run: &Run, now: Timestamp) -> Markup {
    let record = &run.record.run;
    html! {
        section.panel data-region="facts" {
            h2 { "About it" }
            dl.facts {
                dt { "Version" } dd { @if let Some(version) = record.version { (version) } @else { "given with the call" } }
                dt { "Caller" } dd { (text::line(record.caller.as_str(), 80)) }
                dt { "Begun" } dd { (text::moment(record.created_at, now)) }
                @if record.state.is_over() { dt { "Took" } dd { (text::took(record.created_at, record.updated_at)) } }
                @if let Some(wakes) = record.wakes_at { dt { "Goes on" } dd { (text::ahead_of(wakes, now)) } }
            }
            (piece("Given", Some(&record.input)))
            p { a href=(frame.to(&format!("/tasks/{}", encoded(record.id.as_str())))) { "As a task" } }
        }
    }
}

fn piece(name: &str, json: Option<&Json>) -> Markup {
    html! { @if let Some(json) = json { h3 { (name) } pre tabindex="0" { code { (pretty(json)) } } } }
}
