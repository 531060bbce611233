//! Page of a task: result, reply form, details, request, upstream call and timeline.

use axum::response::Response;
use maud::{Markup, html};
use rialto_admin::{approvals, dispatches, inspection, tasks};
use rialto_api_types::tasks::{
    CallInspection, RecordedDecision, TimelineActor, TimelineEntry, UpstreamMessage,
};
use rialto_http_server::session::API;
use rialto_model::{
    approval::Approval,
    backing::Backing,
    call::EntryProtocol,
    failure::{Failure, FailureKind},
    ids::SkillId,
    json::Json,
    message::{Content, Part},
    task::{Task, TaskState},
};

use super::{
    downloads,
    layout::{PageContent, PageFrame},
    request::{PageRequest, encode_segment},
    tasks::{PAGE_PATH, state_badge},
};
use crate::{pretty_json::pretty_json, text};

/// Maximum number of characters of an event.
const MAX_EVENT_CHARS: usize = 20_000;

/// Maximum number of messages of the upstream call.
const MAX_SENT_MESSAGES: usize = 20;

/// Maximum number of timeline entries; the audit log and the API have all of them.
const MAX_TIMELINE_ENTRIES: usize = 300;

pub(super) async fn show(request: PageRequest) -> Result<Response, Failure> {
    let task = tasks::show(&request.admin, &request.caller, request.path_param("id")).await;
    let inspected = inspection::inspect(&request.admin, &request.caller, request.path_param("id")).await?;
    let task = match task {
        Ok((task, _)) => task,
        // A denied call has audit records, but no task.
        Err(failure) if failure.kind == FailureKind::NotFound => {
            return Ok(denied_call(&request, &inspected));
        }
        Err(failure) => return Err(failure),
    };
    let frame = request.frame();
    let is_over = task.head.state.is_terminal();
    let pending = if task.head.state.is_waiting() {
        approvals::list_for_task(&request.admin, &request.caller, &task.head.id).await?
    } else {
        Vec::new()
    };
    let may = tasks::may_act(&request.admin, &request.caller, &task.head);
    let was_dispatched =
        dispatches::is_visible_dispatch(&request.admin, &request.caller, &task.head.id).await;
    let at = format!("{PAGE_PATH}/{}", encode_segment(task.head.id.as_str()));
    let body = html! {
        div.top {
            div { h1 { "Task" } p.sub { code { (task.head.id) } } }
            div.actions data-region="stand" {
                (state_badge(task.head.state))
                @if !is_over && may.is_ok() { a.button.danger href=(frame.url(&format!("{at}/cancel"))) data-dialog { "Cancel" } }
            }
        }
        div.columns {
            div {
                section.panel data-region="result" aria-live="polite" { (result(&frame, &task, !pending.is_empty())) }
                (reply_panel(&request, &frame, &task, &pending, &may))
            }
            (details(&request, &frame, &task, was_dispatched))
        }
        (sides(&inspected))
        section.panel.flush data-region="events" { (timeline(&inspected.timeline)) }
    };
    let live = format!("{}{API}{at}/events?after={}", frame.base, task.head.version);
    Ok(frame.respond_ok(&PageContent { title: "Task", at: PAGE_PATH, live: Some(live), is_over, body }))
}

/// Page of a call that was denied before a task was created.
fn denied_call(request: &PageRequest, inspected: &CallInspection) -> Response {
    let frame = request.frame();
    let body = html! {
        div.top {
            div { h1 { "Denied call" } p.sub { code { (text::render_line(inspected.task_id.as_str(), 80)) } } }
            div.actions { span.state.bad { "denied" } }
        }
        (sides(inspected))
        section.panel.flush { (timeline(&inspected.timeline)) }
    };
    frame.respond_ok(&PageContent { title: "Denied call", at: PAGE_PATH, live: None, is_over: true, body })
}

pub(super) async fn confirm_cancel(request: PageRequest) -> Result<Response, Failure> {
    let (task, _) = tasks::show(&request.admin, &request.caller, request.path_param("id")).await?;
    let (frame, at) = (request.frame(), format!("/tasks/{}", encode_segment(task.head.id.as_str())));
    let body = html! {
        div data-dialog-body {
            h1 { "Cancel this task?" }
            p { "The agent is asked to stop. Results so far are kept, and the task accepts no more messages." }
            @if !tasks::is_own(&request.caller, &task.head) {
                p { "It is a task of " b { (text::render_line(task.head.caller.as_str(), 80)) } ". The cancellation is recorded in the audit log under your name." }
            }
            form method="post" action=(frame.url(&format!("{at}/cancel"))) {
                (frame.csrf_field())
                div.actions { button.danger type="submit" autofocus { "Cancel the task" } a.button href=(frame.url(&at)) { "Keep running" } }
            }
        }
    };
    Ok(frame.respond_ok(&PageContent {
        title: "Cancel a task",
        at: PAGE_PATH,
        live: None,
        is_over: false,
        body,
    }))
}

pub(super) async fn cancel(request: PageRequest) -> Result<Response, Failure> {
    let task = tasks::cancel(&request.admin, &request.caller, request.path_param("id")).await?;
    Ok(request.redirect(&format!("/tasks/{}", encode_segment(task.head.id.as_str())), "canceled"))
}

pub(super) async fn send_message(request: PageRequest) -> Result<Response, Failure> {
    let id = request.path_param("id");
    let part = read_message(&request)?;
    tasks::send_message(&request.admin, &request.caller, id, part).await?;
    Ok(request.redirect(&format!("/tasks/{}", encode_segment(id)), "said"))
}

/// Message from the form: text or JSON.
fn read_message(request: &PageRequest) -> Result<Part, Failure> {
    let invalid = |message: String| Failure::new(FailureKind::Invalid, message);
    match (request.field("data").unwrap_or_default().trim(), request.field("text").unwrap_or_default()) {
        ("", text) if text.trim().is_empty() => Err(invalid("enter a message before you send it".to_owned())),
        ("", text) => Ok(Part::text(text)),
        (data, _) => {
            Json::parse(data).map(Part::data).map_err(|error| invalid(format!("this is not JSON: {error}")))
        }
    }
}

/// Starts a new task in the conversation of an ended one.
pub(super) async fn continue_conversation(request: PageRequest) -> Result<Response, Failure> {
    let part = read_message(&request)?;
    let task =
        tasks::continue_conversation(&request.admin, &request.caller, request.path_param("id"), part).await?;
    Ok(request.redirect(&format!("{PAGE_PATH}/{}", encode_segment(task.as_str())), "begun"))
}

fn result(frame: &PageFrame, task: &Task, is_held: bool) -> Markup {
    // The question is shown with the approval form instead.
    let message = task.message.as_ref().filter(|_| !is_held);
    html! {
        h2 { "Result" }
        @if let Some(failure) = &task.failure { div.notice.bad { (text::render_message(&failure.message, 2_000)) } }
        @for artifact in task.artifacts.iter().take(20) {
            @if let Some(name) = &artifact.name { h3 { (text::render_line(name, 120)) } }
            (parts(frame, task, &artifact.parts))
        }
        @if let Some(message) = message { (parts(frame, task, &message.parts)) }
        @if task.failure.is_none() && task.artifacts.is_empty() && message.is_none() {
            p.muted {
                @if task.head.state.is_terminal() { "The task ended without a result." }
                @else if is_held { "No result yet: the call waits for approval." }
                @else { "No result yet. It appears here as it arrives." }
            }
        }
    }
}

/// Panel to reply to a task. A task that waits for approval has the approval form instead.
fn reply_panel(
    request: &PageRequest,
    frame: &PageFrame,
    task: &Task,
    approvals: &[Approval],
    may: &Result<(), Failure>,
) -> Markup {
    let head = &task.head;
    let is_own = tasks::is_own(&request.caller, head);
    let takes_messages = head.state == TaskState::InputRequired || head.remote.task_id.is_some();
    let can_reply = approvals.is_empty() && !head.state.is_terminal() && takes_messages;
    let agent = request.admin.engine().registry().get(&head.agent);
    let is_agent = agent.is_some_and(|agent| agent.backing.is_agent());
    let can_continue = head.state.is_terminal() && is_own && is_agent && head.remote.context_id.is_some();
    let now = request.admin.engine().now();
    html! {
        div data-region="answer" {
            @for approval in approvals { (super::approvals::approval_panel(frame, approval, now)) }
            @if approvals.is_empty() && head.state == TaskState::AuthRequired {
                div.notice.warn { p { "The agent waits for authentication outside of Rialto, and continues when it is complete." } }
            }
            @match may {
                Ok(()) if can_reply => (message_form(frame, task, "messages", if head.state.is_waiting() { "Your answer" } else { "Send a message" }, is_own)),
                Ok(()) if can_continue => (message_form(frame, task, "continue", "Continue the conversation", is_own)),
                Err(failure) if !head.state.is_terminal() => {
                    div.notice.warn { p { "It is a task of " b { (text::render_line(head.caller.as_str(), 80)) } ", and you cannot cancel or answer it: " (text::render_message_line(&failure.message, 400)) } }
                }
                _ => {}
            }
        }
    }
}

fn message_form(frame: &PageFrame, task: &Task, to: &str, label: &str, is_own: bool) -> Markup {
    let at = format!("{PAGE_PATH}/{}/{to}", encode_segment(task.head.id.as_str()));
    html! {
        section.panel {
            form method="post" action=(frame.url(&at)) {
                (frame.csrf_field())
                div.field {
                    label for="text" { (label) }
                    textarea #text name="text" {}
                    @if !is_own {
                        p.hint { "Sent in the task of " (text::render_line(task.head.caller.as_str(), 80)) "; recorded in the audit log under your name." }
                    }
                    details data-key="data" {
                        summary { "Send JSON instead" }
                        label.vh for="data" { "JSON" }
                        textarea.mono #data name="data" spellcheck="false" placeholder="{ }" {}
                    }
                    @if to == "continue" { p.hint { "This task has ended. Your message starts a new task in the same conversation." } }
                }
                button.first type="submit" { "Send" }
            }
        }
    }
}

/// Request, policy decision and upstream call, side by side.
fn sides(inspected: &CallInspection) -> Markup {
    let (caller_request, upstream) = (&inspected.came_in, &inspected.went_out);
    html! {
        div.sides data-region="sides" {
            section.panel {
                h2 { "Request" }
                dl.facts {
                    (detail_row("Caller", caller_request.caller.as_deref())) (detail_row("Protocol", caller_request.door.map(EntryProtocol::as_str))) (detail_row("Target", caller_request.called.as_deref()))
                    (detail_row("Context ID", caller_request.context_id.as_deref())) (detail_row("Message ID", caller_request.message_id.as_deref()))
                }
                @if let Some(args) = &caller_request.arguments { pre tabindex="0" { code { (pretty_json(args)) } } }
            }
            section.panel {
                h2 { "Rialto" }
                (decision_line(inspected.decision.as_ref()))
                dl.facts { (detail_row("Correlation ID", upstream.session_id.as_deref())) }
            }
            section.panel {
                h2 { "Upstream call" }
                @match inspected.state {
                    Some(state) if upstream.sent.is_empty() && !state.is_terminal() => p.muted { "Not sent yet: the call waits for approval." },
                    _ if upstream.sent.is_empty() => p.muted { "Not sent to the agent." },
                    _ => {}
                }
                dl.facts {
                    (detail_row("Agent", upstream.agent.as_deref())) (detail_row("Protocol", upstream.protocol.as_deref())) (detail_row("Address", upstream.url.as_deref()))
                    (detail_row("Skill", upstream.skill_id.as_ref().map(SkillId::as_str)))
                    (detail_row("Agent's task ID", upstream.remote_task_id.as_deref())) (detail_row("Agent's context ID", upstream.remote_context_id.as_deref()))
                }
                (sent_messages(&upstream.sent))
            }
        }
    }
}

/// Messages that were sent to the agent: the call, and each answer to its questions.
fn sent_messages(sent: &[UpstreamMessage]) -> Markup {
    html! {
        @for (at, sent) in sent.iter().take(MAX_SENT_MESSAGES).enumerate() {
            h3 { @if at == 0 { "Call" } @else { "Answer" } " " span.muted.small { (sent.at.strftime("%T%.3f UTC")) } }
            pre tabindex="0" { code { (pretty_json(&sent.content)) } }
        }
        @if sent.len() > MAX_SENT_MESSAGES { p.muted { "And " (sent.len() - MAX_SENT_MESSAGES) " more; see the timeline." } }
        @if !sent.is_empty() { p.hint.muted { "As recorded; secrets are masked." } }
    }
}

fn decision_line(decision: Option<&RecordedDecision>) -> Markup {
    html! {
        @match decision {
            None => p.muted { "The policy decision is no longer recorded." },
            Some(decision) if decision.allowed => {
                p { span.state.good { "allowed" } @if !decision.policies.is_empty() { " by " (text::render_line(&decision.policies.join(", "), 300)) } }
            }
            Some(decision) => p { span.state.bad { "denied" } " " (text::render_message_line(decision.reason.as_deref().unwrap_or_default(), 600)) },
        }
    }
}

fn detail_row(name: &str, value: Option<&str>) -> Markup {
    html! { @if let Some(value) = value { dt { (name) } dd { (text::render_line(value, 300)) } } }
}

/// Timeline of the call, with a column for each side.
fn timeline(entries: &[TimelineEntry]) -> Markup {
    html! {
        table.timeline.cards {
            caption { "Timeline" }
            thead { tr { th.num { "Elapsed" } th { "Caller" } th { "Rialto" } th { "Agent" } } }
            tbody {
                @for (at, entry) in entries.iter().take(MAX_TIMELINE_ENTRIES).enumerate() {
                    tr {
                        td.num data-label="Elapsed" title=(entry.at.strftime("%F %T%.3f UTC")) { (entry.after_ms) " ms" }
                        @for who in [TimelineActor::Caller, TimelineActor::Rialto, TimelineActor::Agent] {
                            @if entry.who == who {
                                td data-label=(who.as_str()) {
                                    @if who == TimelineActor::Rialto { (text::render_message(&entry.what, MAX_EVENT_CHARS)) } @else { (text::render_block(&entry.what, MAX_EVENT_CHARS)) }
                                    details data-key=(format!("entry-{at}")) { summary.small.muted { "Raw event" } pre tabindex="0" { code { (pretty_json(&entry.record)) } } }
                                }
                            } @else { td.other {} }
                        }
                    }
                }
            }
        }
        @if entries.len() > MAX_TIMELINE_ENTRIES { div.pages { "And " (entries.len() - MAX_TIMELINE_ENTRIES) " more; see the audit log or the API." } }
    }
}

fn parts(frame: &PageFrame, task: &Task, parts: &[Part]) -> Markup {
    html! {
        @for part in parts.iter().take(100) {
            @match &part.content {
                Content::Text(words) => p { (text::render_block(words, MAX_EVENT_CHARS)) },
                Content::Data(data) | Content::Unknown(data) => pre tabindex="0" { code { (pretty_json(data)) } },
                Content::Url(url) => p { "File at " code { (text::render_line(url, 300)) } },
                Content::Raw(bytes) => p {
                    @if let Some(at) = downloads::file_index(task, part) {
                        a.button href=(frame.url(&format!("{PAGE_PATH}/{}/files/{at}", encode_segment(task.head.id.as_str())))) download { "Download" } " "
                    }
                    (text::render_line(part.filename.as_deref().unwrap_or("unnamed file"), 80))
                    span.muted { " " (text::render_line(part.media_type.as_deref().unwrap_or("unknown type"), 60)) ", " (bytes.len() / 4 * 3) " bytes" }
                },
            }
        }
    }
}

fn details(request: &PageRequest, frame: &PageFrame, task: &Task, was_dispatched: bool) -> Markup {
    let (head, now) = (&task.head, request.admin.engine().now());
    let agent = request.admin.engine().registry().get(&head.agent);
    let is_run = agent.as_ref().is_some_and(|agent| matches!(agent.backing, Backing::Flow(_)));
    html! {
        section.panel data-region="facts" {
            h2 { "Details" }
            dl.facts {
                dt { "Agent" } dd {
                    @match &agent {
                        Some(agent) => a href=(frame.url(&format!("/agents/{}", encode_segment(&agent.slug)))) { (text::render_line(&agent.card.name, 80)) },
                        None => (text::render_line(&head.agent_url, 160)),
                    }
                }
                dt { "Skill" } dd { (text::render_line(head.skill.as_ref().map_or("none (message)", |skill| skill.as_str()), 120)) }
                dt { "Caller" } dd { (text::render_line(head.caller.as_str(), 80)) }
                dt { "Protocol" } dd { (head.door.as_str()) }
                dt { "Started" } dd { (text::time_ago(head.created_at, now)) }
                dt { "Updated" } dd { (text::time_ago(head.updated_at, now)) }
                @if let Some(id) = &head.remote.task_id { dt { "Agent's task ID" } dd { code { (text::render_line(id, 160)) } } }
                @if let Some(id) = &head.remote.context_id { dt { "Agent's context ID" } dd { code { (text::render_line(id, 160)) } } }
                dt { "Correlation ID" } dd { code { (text::render_line(&head.session, 200)) } }
            }
            p { a href=(frame.url(&format!("/audit?task={}", encode_segment(head.id.as_str())))) { "Audit log" }
                @if was_dispatched { " · " a href=(frame.url(&format!("/dispatches/{}", encode_segment(head.id.as_str())))) { "Routing decision" } }
                @if is_run { " · " a href=(frame.url(&format!("/runs/{}", encode_segment(head.id.as_str())))) { "View as run" } } }
        }
    }
}
