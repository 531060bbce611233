//! Policies, tried out: questions with their answers, and who may call what.

use axum::response::Response;
use maud::{Markup, html};
use rialto_api_types::policies::PolicyQuestion;
use rialto_model::{call::CallerKind, failure::Failure};
use rialto_policy::Action;

use super::{
    layout::{self, Frame, Page},
    visit::Visit,
};
use crate::{
    admin::{
        policies::{self, Answer},
        what_if,
    },
    text,
};

const HERE: &str = "/policies";

pub(super) async fn test(visit: Visit) -> Result<Response, Failure> {
    let text = |name| visit.query(name).unwrap_or_default().to_owned();
    let asked = PolicyQuestion {
        caller: text("caller"),
        kind: visit.query("kind").and_then(kind),
        action: visit.query("action").unwrap_or(Action::Invoke.as_str()).to_owned(),
        target: text("target"),
    };
    visit.console.admit(&visit.caller, Action::AdminPolicies).await?;
    let is_asked = visit.query("action").is_some();
    let answer =
        if is_asked { Some(policies::test(&visit.console, &visit.caller, &asked).await) } else { None };
    let frame = visit.frame();
    let body = html! {
        div.top { div { h1 { "Test bench" } p.sub { "Would it be allowed, and why?" } } }
        (question(&frame, &asked))
        div data-region="answer" aria-live="polite" {
            @match &answer {
                None => p.muted { "Nothing is called: policies are only asked." },
                Some(Err(failure)) => (layout::refused(Some(failure))),
                Some(Ok(answer)) => (answered(answer)),
            }
        }
    };
    Ok(frame.page(&Page { title: "Test bench", at: HERE, live: None, is_over: false, body }))
}

pub(super) async fn matrix(visit: Visit) -> Result<Response, Failure> {
    let names = match visit.query("callers") {
        Some(names) => names.to_owned(),
        None => what_if::callers(&visit.console, &visit.caller).await?.join(", "),
    };
    let callers: Vec<String> =
        names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let matrix = what_if::matrix(&visit.console, &visit.caller, &callers).await?;
    let frame = visit.frame();
    let body = html! {
        div.top { div { h1 { "Who may call what" } p.sub { "As the policies in force say now" } } }
        form.filters method="get" action=(frame.to("/policies/matrix")) data-filter {
            div { label.vh for="callers" { "Callers, with commas between them" } input #callers type="search" name="callers" value=(names) placeholder="ann, bob"; }
            button type="submit" { "Show" }
        }
        div.panel.flush.scroll data-region="matrix" tabindex="0" role="region" aria-label="Who may call what" {
            table.matrix {
                thead { tr { th { "Skill" } @for caller in &matrix.callers { th { (text::line(caller, 30)) } } } }
                tbody {
                    @for (target, may) in &matrix.rows {
                        tr { td { (text::line(target, 80)) } @for may in may { td { @if *may { span.tag.good { "may" } } @else { span.tag { "no" } } } } }
                    }
                }
            }
            @if matrix.rows.is_empty() {
                div.empty { p { "There is nothing to call yet. Register an " a href=(frame.to("/agents")) { "agent" } ", or deploy a " a href=(frame.to("/tools")) { "tool" } "." } }
            }
            @if matrix.more > 0 { div.pages { "And " (matrix.more) " more skills." } }
        }
    };
    Ok(frame.page(&Page { title: "Who may call what", at: HERE, live: None, is_over: false, body }))
}

fn question(frame: &Frame, asked: &PolicyQuestion) -> Markup {
    html! {
        form.panel method="get" action=(frame.to("/policies/test")) data-filter {
            div.filters {
                div { label for="who" { "Caller" } input #who type="text" name="caller" value=(asked.caller) placeholder="you" autocomplete="off"; }
                div {
                    label for="kind" { "Kind" }
                    select #kind name="kind" {
                        @for (kind, name) in [(CallerKind::User, "user"), (CallerKind::Session, "session"), (CallerKind::Agent, "agent")] {
                            option value=(name) selected[asked.kind == Some(kind)] { (name) }
                        }
                    }
                }
                div {
                    label for="action" { "Action" }
                    select #action name="action" { @for action in Action::ALL { option value=(action.as_str()) selected[asked.action == action.as_str()] { (action.as_str()) } } }
                }
                div { label for="target" { "Target" } input #target type="search" name="target" value=(asked.target) placeholder="agent or agent.skill" autocomplete="off"; }
                button.first type="submit" { "Ask" }
            }
        }
    }
}

fn answered(answer: &Answer) -> Markup {
    html! {
        div class=(if answer.decision.allowed { "said good" } else { "said bad" }) {
            p { b { @if answer.decision.allowed { "Allowed: " } @else { "Refused: " } } (text::line(&answer.target, 120)) }
            @if let Some(why) = &answer.why_not { p { (text::phrase(why, 400)) } }
        }
        div.panel.flush {
            table.cards {
                thead { tr { th { "Policy" } th { "Effect" } th { "Here" } th { "Summary" } } }
                tbody { @for finding in &answer.findings {
                    tr {
                        td { (text::line(&finding.rule.name, 80)) }
                        td data-label="Effect" { (finding.rule.effect.as_str()) }
                        td data-label="Here" { (text::line(&finding.outcome.to_string(), 200)) }
                        td data-label="Summary" { (text::line(&finding.rule.summary, 200)) }
                    }
                } }
            }
        }
    }
}

pub(super) fn kind(name: &str) -> Option<CallerKind> {
    match name {
        "user" => Some(CallerKind::User),
        "session" => Some(CallerKind::Session),
        "agent" => Some(CallerKind::Agent),
        _ => None,
    }
}
