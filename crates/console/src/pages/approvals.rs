//! Pages of approvals: pending calls with their decisions, and recent decisions.

use axum::response::Response;
use maud::{Markup, html};
use rialto_admin::{approvals, tenants::project_path};
use rialto_http_server::session::API;
use rialto_model::{
    approval::{Approval, ApprovalTarget},
    clock::Timestamp,
    failure::Failure,
    json::Json,
};

use super::{
    layout::{PageContent, PageFrame},
    request::{PageRequest, encode_segment},
};
use crate::{pretty_json::pretty_json, text};

const PAGE_PATH: &str = "/approvals";

pub(super) async fn list(request: PageRequest) -> Result<Response, Failure> {
    let found = approvals::list(&request.admin, &request.caller).await?;
    let (frame, now) = (request.frame(), request.admin.engine().now());
    let body = html! {
        div.top { div { h1 { "Approvals" } p.sub { "Pending approvals and recent decisions" } } }
        // An approval that is requested during a task is recorded only when it is decided, so the list follows changes.
        div data-region="waiting" data-watch="approvals" {
            @if found.waiting.is_empty() {
                div.panel.empty {
                    h2 { "No pending approvals" }
                    p { "Calls wait here if a policy requires approval. Create one with " code { "rialto policy add require-approval AGENT.SKILL" } ", or with the form at "
                        a href=(frame.url("/policies")) { "Policies" } "." }
                }
            }
            @for approval in &found.waiting { (approval_panel(&frame, approval, now)) }
        }
        section.panel.flush data-region="decided" {
            @if found.decided.is_empty() {
                div.empty { p { "No decisions yet. Decisions are listed here and in the audit log." } }
            } @else { (decision_table(&found.decided, now)) }
        }
    };
    let live = Some(format!("{}{API}/events", frame.base));
    Ok(frame.respond_ok(&PageContent { title: "Approvals", at: PAGE_PATH, live, is_over: false, body }))
}

pub(super) async fn approve(request: PageRequest) -> Result<Response, Failure> {
    decide(&request, true).await
}

pub(super) async fn deny(request: PageRequest) -> Result<Response, Failure> {
    decide(&request, false).await
}

async fn decide(request: &PageRequest, approved: bool) -> Result<Response, Failure> {
    let reason = request.field("reason").map(str::trim).filter(|reason| !reason.is_empty());
    let reason = reason.map(str::to_owned);
    approvals::decide(&request.admin, &request.caller, request.path_param("id"), approved, reason).await?;
    Ok(request.redirect_back(PAGE_PATH, if approved { "allowed" } else { "denied" }))
}

/// Panel of a pending approval, with the form to decide.
pub(super) fn approval_panel(frame: &PageFrame, approval: &Approval, now: Timestamp) -> Markup {
    let at = format!("{PAGE_PATH}/{}", encode_segment(approval.id.as_str()));
    let reason = format!("reason-{}", approval.id);
    html! {
        section.panel.ask {
            div.top {
                h2 { (text::render_line(&approval.tool, 120)) }
                span.state.warn { "pending, expires " (text::time_until(approval.expires_at, now)) }
            }
            (subject(approval))
            dl.facts {
                dt { "Requested by" } dd { (text::render_line(approval.caller.as_str(), 80)) ", " (text::time_ago(approval.asked_at, now)) }
                @if !approval.by.is_empty() { dt { "Approver" } dd { (text::render_line(&approval.by.join(" and by "), 300)) } }
                @if !approval.policies.is_empty() { dt { "Policy" } dd { (text::render_line(&approval.policies.join(", "), 300)) } }
                dt { "Task" } dd { (task_link(approval)) }
            }
            form method="post" action=(frame.url(&format!("{at}/approve"))) {
                (frame.csrf_field())
                div.field {
                    label for=(reason) { "Reason " span.muted { "(stored in the audit log)" } }
                    input type="text" id=(reason) name="reason" autocomplete="off";
                }
                div.actions {
                    button.first type="submit" { "Approve" }
                    button.danger type="submit" formaction=(frame.url(&format!("{at}/deny"))) { "Deny" }
                }
            }
        }
    }
}

/// Subject of an approval: the question and details of a workflow step, or the arguments of a call.
fn subject(approval: &Approval) -> Markup {
    let args = approval.args.value();
    let question = args["question"].as_str().filter(|_| approval.waits == ApprovalTarget::Work);
    let details =
        if question.is_some() { args.get("details").map(Json::encode) } else { Some(approval.args.clone()) };
    html! {
        @if let Some(question) = question { p { (text::render_block(question, 4_000)) } }
        @if let Some(details) = details { pre tabindex="0" { code { (pretty_json(&details)) } } }
    }
}

fn decision_table(approvals: &[Approval], now: Timestamp) -> Markup {
    html! {
        table.cards {
            caption { "Recent decisions" }
            thead { tr { th { "Call" } th { "Decision" } th { "Decided by" } th { "Reason" } th { "Requested by" } th { "Time" } th { "Task" } } }
            tbody {
                @for approval in approvals {
                    @let decision = approval.decided.as_ref();
                    tr {
                        td { (text::render_line(&approval.tool, 80)) }
                        td data-label="Decision" { (state_badge(approval)) }
                        td data-label="Decided by" { (text::render_line(decision.map_or("", |decided| decided.by.as_str()), 60)) }
                        td data-label="Reason" { (text::render_line(decision.and_then(|decided| decided.reason.as_deref()).unwrap_or_default(), 200)) }
                        td data-label="Requested by" { (text::render_line(approval.caller.as_str(), 60)) }
                        td data-label="Time" { (text::time_ago(decision.map_or(approval.asked_at, |decided| decided.at), now)) }
                        td data-label="Task" { (task_link(approval)) }
                    }
                }
            }
        }
    }
}

fn state_badge(approval: &Approval) -> Markup {
    let tone = match &approval.decided {
        Some(decided) if decided.approved => "good",
        Some(_) => "bad",
        None => "",
    };
    html! { span class=(format!("state {tone}")) { (approval.state()) } }
}

/// Link to the task of an approval, in the project of the task.
fn task_link(approval: &Approval) -> Markup {
    let (base, id) = (project_path(&approval.scope), encode_segment(approval.task.as_str()));
    html! { a href=(format!("{base}/factory/tasks/{id}")) { code { (text::truncate(approval.task.as_str(), 48).0) } } }
}
