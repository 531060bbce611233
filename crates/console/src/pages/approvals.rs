//! What waits for a person's word: what it is, who asks, and two buttons.

use axum::response::Response;
use maud::{Markup, html};
use rialto_edge::session::API;
use rialto_model::{
    approval::{Approval, ApprovalTarget},
    clock::Timestamp,
    failure::Failure,
    json::Json,
};

use super::{
    layout::{Frame, Page},
    visit::{Visit, base_of, encoded},
};
use crate::{admin::approvals, laid_out::pretty, text};

const HERE: &str = "/approvals";

pub(super) async fn list(visit: Visit) -> Result<Response, Failure> {
    let found = approvals::list(&visit.console, &visit.caller).await?;
    let (frame, now) = (visit.frame(), visit.console.engine().now());
    let body = html! {
        div.top { div { h1 { "Approvals" } p.sub { "What waits until somebody has said that it may be done" } } }
        // What an agent asks in the middle of its work comes on record only when it is decided: that it is asked is a change.
        div data-region="waiting" data-watch="approvals" {
            @if found.waiting.is_empty() {
                div.panel.empty {
                    h2 { "Nothing waits" }
                    p { "Calls wait here where a policy says so: " code { "rialto policy add require-approval AGENT.SKILL" } ", or the form at "
                        a href=(frame.to("/policies")) { "Policies" } "." }
                }
            }
            @for approval in &found.waiting { (ask(&frame, approval, now)) }
        }
        section.panel.flush data-region="decided" {
            @if found.decided.is_empty() {
                div.empty { p { "Nothing was decided yet. Who decided what and why stands here, and in the audit trail." } }
            } @else { (decided(&found.decided, now)) }
        }
    };
    let live = Some(format!("{}{API}/events", frame.base));
    Ok(frame.page(&Page { title: "Approvals", at: HERE, live, is_over: false, body }))
}

pub(super) async fn approve(visit: Visit) -> Result<Response, Failure> {
    decide(&visit, true).await
}

pub(super) async fn deny(visit: Visit) -> Result<Response, Failure> {
    decide(&visit, false).await
}

async fn decide(visit: &Visit, approved: bool) -> Result<Response, Failure> {
    let reason = visit.field("reason").map(str::trim).filter(|reason| !reason.is_empty());
    let reason = reason.map(str::to_owned);
    approvals::decide(&visit.console, &visit.caller, visit.part("id"), approved, reason).await?;
    Ok(visit.back(HERE, if approved { "allowed" } else { "denied" }))
}

/// One question, with its buttons.
pub(super) fn ask(frame: &Frame, approval: &Approval, now: Timestamp) -> Markup {
    let at = format!("{HERE}/{}", encoded(approval.id.as_str()));
    let reason = format!("reason-{}", approval.id);
    html! {
        section.panel.ask {
            div.top {
                h2 { (text::line(&approval.tool, 120)) }
                span.state.warn { "waits, expires " (text::ahead_of(approval.expires_at, now)) }
            }
            (wanted(approval))
            dl.facts {
                dt { "Asked by" } dd { (text::line(approval.caller.as_str(), 80)) ", " (text::moment(approval.asked_at, now)) }
                @if !approval.by.is_empty() { dt { "To be decided by" } dd { (text::line(&approval.by.join(" and by "), 300)) } }
                @if !approval.policies.is_empty() { dt { "Because of" } dd { (text::line(&approval.policies.join(", "), 300)) } }
                dt { "Task" } dd { (task(approval)) }
            }
            form method="post" action=(frame.to(&format!("{at}/approve"))) {
                (frame.proof())
                div.field {
                    label for=(reason) { "Reason " span.muted { "(kept on record)" } }
                    input type="text" id=(reason) name="reason" autocomplete="off";
                }
                div.actions {
                    button.first type="submit" { "Approve" }
                    button.danger type="submit" formaction=(frame.to(&format!("{at}/deny"))) { "Deny" }
                }
            }
        }
    }
}

/// What is to be done: the words of a step that asks, with what it shows; else the arguments of a call.
fn wanted(approval: &Approval) -> Markup {
    let args = approval.args.value();
    let question = args["question"].as_str().filter(|_| approval.waits == ApprovalTarget::Work);
    let details =
        if question.is_some() { args.get("details").map(Json::encode) } else { Some(approval.args.clone()) };
    html! {
        @if let Some(question) = question { p { (text::block(question, 4_000)) } }
        @if let Some(details) = details { pre tabindex="0" { code { (pretty(&details)) } } }
    }
}

fn decided(approvals: &[Approval], now: Timestamp) -> Markup {
    html! {
        table.cards {
            caption { "Decided lately" }
            thead { tr { th { "What" } th { "Decision" } th { "By" } th { "Why" } th { "Asked by" } th { "When" } th { "Task" } } }
            tbody {
                @for approval in approvals {
                    @let decision = approval.decided.as_ref();
                    tr {
                        td { (text::line(&approval.tool, 80)) }
                        td data-label="Decision" { (state(approval)) }
                        td data-label="By" { (text::line(decision.map_or("", |decided| decided.by.as_str()), 60)) }
                        td data-label="Why" { (text::line(decision.and_then(|decided| decided.reason.as_deref()).unwrap_or_default(), 200)) }
                        td data-label="Asked by" { (text::line(approval.caller.as_str(), 60)) }
                        td data-label="When" { (text::moment(decision.map_or(approval.asked_at, |decided| decided.at), now)) }
                        td data-label="Task" { (task(approval)) }
                    }
                }
            }
        }
    }
}

fn state(approval: &Approval) -> Markup {
    let tone = match &approval.decided {
        Some(decided) if decided.approved => "good",
        Some(_) => "bad",
        None => "",
    };
    html! { span class=(format!("state {tone}")) { (approval.state()) } }
}

/// The task that waits, in its own project.
fn task(approval: &Approval) -> Markup {
    let (base, id) = (base_of(&approval.scope), encoded(approval.task.as_str()));
    html! { a href=(format!("{base}/factory/tasks/{id}")) { code { (text::cut(approval.task.as_str(), 48).0) } } }
}
