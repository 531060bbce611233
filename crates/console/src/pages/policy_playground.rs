//! Policy playground: a test of single requests, and the permission matrix.

use axum::response::Response;
use maud::{Markup, html};
use rialto_admin::{
    policies::{self, PolicyTestResult},
    policy_preview,
};
use rialto_api_types::policies::PolicyQuestion;
use rialto_model::{call::CallerKind, failure::Failure};
use rialto_policy::{Action, ExplanationOutcome};

use super::{
    layout::{self, PageContent, PageFrame},
    request::PageRequest,
};
use crate::text;

const PAGE_PATH: &str = "/policies";

pub(super) async fn test(request: PageRequest) -> Result<Response, Failure> {
    let text = |name| request.query(name).unwrap_or_default().to_owned();
    let question = PolicyQuestion {
        caller: text("caller"),
        kind: request.query("kind").and_then(parse_caller_kind),
        action: request.query("action").unwrap_or(Action::Invoke.as_str()).to_owned(),
        target: text("target"),
    };
    request.admin.authorize_admin(&request.caller, Action::AdminPolicies).await?;
    let is_asked = request.query("action").is_some();
    let result = if is_asked {
        Some(policies::test_decision(&request.admin, &request.caller, &question).await)
    } else {
        None
    };
    let frame = request.frame();
    let body = html! {
        div.top { div { h1 { "Policy test" } p.sub { "Test whether a request is allowed, and why" } } }
        (question_form(&frame, &question))
        div data-region="answer" aria-live="polite" {
            @match &result {
                None => p.muted { "Enter a request to test. Nothing is called." },
                Some(Err(failure)) => (layout::error_message(Some(failure))),
                Some(Ok(result)) => (test_result(result)),
            }
        }
    };
    Ok(frame.respond_ok(&PageContent {
        title: "Policy test",
        at: PAGE_PATH,
        live: None,
        is_over: false,
        body,
    }))
}

pub(super) async fn matrix(request: PageRequest) -> Result<Response, Failure> {
    let names = match request.query("callers") {
        Some(names) => names.to_owned(),
        None => policy_preview::default_callers(&request.admin, &request.caller).await?.join(", "),
    };
    let callers: Vec<String> =
        names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let matrix = policy_preview::matrix(&request.admin, &request.caller, &callers).await?;
    let frame = request.frame();
    let body = html! {
        div.top { div { h1 { "Permission matrix" } p.sub { "Permissions by the active policies" } } }
        form.filters method="get" action=(frame.url("/policies/matrix")) data-filter {
            div { label.vh for="callers" { "Callers, separated by commas" } input #callers type="search" name="callers" value=(names) placeholder="ann, bob"; }
            button type="submit" { "Show" }
        }
        div.panel.flush.scroll data-region="matrix" tabindex="0" role="region" aria-label="Permission matrix" {
            table.matrix {
                thead { tr { th { "Skill" } @for caller in &matrix.callers { th { (text::render_line(caller, 30)) } } } }
                tbody {
                    @for row in &matrix.rows {
                        tr { td { (text::render_line(&row.target, 80)) } @for may in &row.may { td { @if *may { span.tag.good { "Allowed" } } @else { span.tag { "Denied" } } } } }
                    }
                }
            }
            @if matrix.rows.is_empty() {
                div.empty { p { "No skills yet. Register an " a href=(frame.url("/agents")) { "agent" } ", or add a " a href=(frame.url("/tools")) { "tool" } "." } }
            }
            @if matrix.more > 0 { div.pages { "And " (matrix.more) " more skills." } }
        }
    };
    Ok(frame.respond_ok(&PageContent {
        title: "Permission matrix",
        at: PAGE_PATH,
        live: None,
        is_over: false,
        body,
    }))
}

fn question_form(frame: &PageFrame, question: &PolicyQuestion) -> Markup {
    html! {
        form.panel method="get" action=(frame.url("/policies/test")) data-filter {
            div.filters {
                div { label for="who" { "Caller" } input #who type="text" name="caller" value=(question.caller) placeholder="you" autocomplete="off"; }
                div {
                    label for="kind" { "Kind" }
                    select #kind name="kind" {
                        @for (kind, name) in [(CallerKind::User, "user"), (CallerKind::Session, "session"), (CallerKind::Agent, "agent")] {
                            option value=(name) selected[question.kind == Some(kind)] { (name) }
                        }
                    }
                }
                div {
                    label for="action" { "Action" }
                    select #action name="action" { @for action in Action::ALL { option value=(action.as_str()) selected[question.action == action.as_str()] { (action.as_str()) } } }
                }
                div { label for="target" { "Target" } input #target type="search" name="target" value=(question.target) placeholder="agent or agent.skill" autocomplete="off"; }
                button.first type="submit" { "Test" }
            }
        }
    }
}

fn test_result(result: &PolicyTestResult) -> Markup {
    html! {
        div class=(if result.decision.allowed { "notice good" } else { "notice bad" }) {
            p { b { @if result.decision.allowed { "Allowed: " } @else { "Denied: " } } (text::render_line(&result.target, 120)) }
            @if let Some(why) = &result.why_not { p { (text::render_message_line(why, 400)) } }
        }
        div.panel.flush {
            table.cards {
                thead { tr { th { "Policy" } th { "Effect" } th { "Result" } th { "Summary" } } }
                tbody { @for finding in &result.findings {
                    tr {
                        td { (text::render_line(&finding.rule.name, 80)) }
                        td data-label="Effect" { (finding.rule.effect.as_str()) }
                        td data-label="Result" { (text::render_line(&outcome_label(&finding.outcome), 200)) }
                        td data-label="Summary" { (text::render_line(&finding.rule.summary, 200)) }
                    }
                } }
            }
        }
    }
}

pub(super) fn parse_caller_kind(name: &str) -> Option<CallerKind> {
    match name {
        "user" => Some(CallerKind::User),
        "session" => Some(CallerKind::Session),
        "agent" => Some(CallerKind::Agent),
        _ => None,
    }
}

/// Label for the effect of a policy on a decision.
fn outcome_label(outcome: &ExplanationOutcome) -> String {
    let label = match outcome {
        ExplanationOutcome::Decides => "Determining policy",
        ExplanationOutcome::Overruled => "Matches, but overruled by a forbid policy",
        ExplanationOutcome::OtherAction => "Applies to other actions",
        ExplanationOutcome::OtherCaller => "Applies to other callers",
        ExplanationOutcome::OtherTarget => "Applies to other agents or skills",
        ExplanationOutcome::Unmet => "Applies, but its conditions are not met",
        ExplanationOutcome::Failed(error) => {
            return format!("Ignored because of an evaluation error: {error}");
        }
    };
    label.to_owned()
}
