//! One task: its result, what can be done about it, and everything that happened, from both sides.

use axum::response::Response;
use maud::{Markup, html};
use rialto_api_types::tasks::{
    CallInspection, RecordedDecision, TimelineActor, TimelineEntry, UpstreamMessage,
};
use rialto_edge::session::API;
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
    files,
    layout::{Frame, Page},
    tasks::{HERE, state},
    visit::{Visit, encoded},
};
use crate::{
    admin::{approvals, dispatches, inspect, tasks},
    laid_out::pretty,
    text,
};

/// So many characters of one event are shown.
const LONGEST: usize = 20_000;

/// So much of what was sent is shown beside it.
const SENT: usize = 20;

/// So many things that happened are shown; the rest is in the audit trail and the API.
const SHOWN: usize = 300;

pub(super) async fn show(visit: Visit) -> Result<Response, Failure> {
    let task = tasks::show(&visit.console, &visit.caller, visit.part("id")).await;
    let inspected = inspect::inspect(&visit.console, &visit.caller, visit.part("id")).await?;
    let task = match task {
        Ok((task, _)) => task,
        // A call that was refused has left records, and no task.
        Err(failure) if failure.kind == FailureKind::NotFound => return Ok(refused(&visit, &inspected)),
        Err(failure) => return Err(failure),
    };
    let frame = visit.frame();
    let is_over = task.head.state.is_terminal();
    let asked = if task.head.state.is_waiting() {
        approvals::of_task(&visit.console, &visit.caller, &task.head.id).await?
    } else {
        Vec::new()
    };
    let may = tasks::may_act(&visit.console, &visit.caller, &task.head);
    let was_chosen = dispatches::is_choice(&visit.console, &visit.caller, &task.head.id).await;
    let at = format!("{HERE}/{}", encoded(task.head.id.as_str()));
    let body = html! {
        div.top {
            div { h1 { "Task" } p.sub { code { (task.head.id) } } }
            div.actions data-region="stand" {
                (state(task.head.state))
                @if !is_over && may.is_ok() { a.button.danger href=(frame.to(&format!("{at}/cancel"))) data-dialog { "Cancel" } }
            }
        }
        div.columns {
            div {
                section.panel data-region="result" aria-live="polite" { (result(&frame, &task, !asked.is_empty())) }
                (answer(&visit, &frame, &task, &asked, &may))
            }
            (facts(&visit, &frame, &task, was_chosen))
        }
        (sides(&inspected))
        section.panel.flush data-region="events" { (timeline(&inspected.timeline)) }
    };
    let live = format!("{}{API}{at}/events?after={}", frame.base, task.head.version);
    Ok(frame.page(&Page { title: "Task", at: HERE, live: Some(live), is_over, body }))
}

/// A call that was refused before there was a task.
fn refused(visit: &Visit, inspected: &CallInspection) -> Response {
    let frame = visit.frame();
    let body = html! {
        div.top {
            div { h1 { "Refused call" } p.sub { code { (text::line(inspected.task_id.as_str(), 80)) } } }
            div.actions { span.state.bad { "refused" } }
        }
        (sides(inspected))
        section.panel.flush { (timeline(&inspected.timeline)) }
    };
    frame.page(&Page { title: "Refused call", at: HERE, live: None, is_over: true, body })
}

pub(super) async fn ask_cancel(visit: Visit) -> Result<Response, Failure> {
    let (task, _) = tasks::show(&visit.console, &visit.caller, visit.part("id")).await?;
    let (frame, at) = (visit.frame(), format!("/tasks/{}", encoded(task.head.id.as_str())));
    let body = html! {
        div data-dialog-body {
            h1 { "Cancel this task?" }
            p { "The agent is asked to stop. What it has made so far stays; the task takes no more messages." }
            @if !tasks::is_own(&visit.caller, &task.head) {
                p { "It is a task of " b { (text::line(task.head.caller.as_str(), 80)) } ". That you called it off is kept on record under your name." }
            }
            form method="post" action=(frame.to(&format!("{at}/cancel"))) {
                (frame.proof())
                div.actions { button.danger type="submit" autofocus { "Cancel the task" } a.button href=(frame.to(&at)) { "Let it run" } }
            }
        }
    };
    Ok(frame.page(&Page { title: "Cancel a task", at: HERE, live: None, is_over: false, body }))
}

pub(super) async fn cancel(visit: Visit) -> Result<Response, Failure> {
    let task = tasks::cancel(&visit.console, &visit.caller, visit.part("id")).await?;
    Ok(visit.go(&format!("/tasks/{}", encoded(task.head.id.as_str())), "canceled"))
}

pub(super) async fn say(visit: Visit) -> Result<Response, Failure> {
    let id = visit.part("id");
    let part = told(&visit)?;
    tasks::say(&visit.console, &visit.caller, id, part).await?;
    Ok(visit.go(&format!("/tasks/{}", encoded(id)), "said"))
}

/// What was written: words, or JSON for an agent that asks for that.
fn told(visit: &Visit) -> Result<Part, Failure> {
    let invalid = |message: String| Failure::new(FailureKind::Invalid, message);
    match (visit.field("data").unwrap_or_default().trim(), visit.field("text").unwrap_or_default()) {
        ("", text) if text.trim().is_empty() => Err(invalid("write something before you send it".to_owned())),
        ("", text) => Ok(Part::text(text)),
        (data, _) => {
            Json::parse(data).map(Part::data).map_err(|error| invalid(format!("this is not JSON: {error}")))
        }
    }
}

/// A new task in the conversation of one that is over.
pub(super) async fn go_on(visit: Visit) -> Result<Response, Failure> {
    let part = told(&visit)?;
    let task = tasks::go_on(&visit.console, &visit.caller, visit.part("id"), part).await?;
    Ok(visit.go(&format!("{HERE}/{}", encoded(task.as_str())), "begun"))
}

fn result(frame: &Frame, task: &Task, is_held: bool) -> Markup {
    // What is asked then stands with its buttons.
    let message = task.message.as_ref().filter(|_| !is_held);
    html! {
        h2 { "Result" }
        @if let Some(failure) = &task.failure { div.said.bad { (text::told(&failure.message, 2_000)) } }
        @for artifact in task.artifacts.iter().take(20) {
            @if let Some(name) = &artifact.name { h3 { (text::line(name, 120)) } }
            (parts(frame, task, &artifact.parts))
        }
        @if let Some(message) = message { (parts(frame, task, &message.parts)) }
        @if task.failure.is_none() && task.artifacts.is_empty() && message.is_none() {
            p.muted {
                @if task.head.state.is_terminal() { "It ended without a result." }
                @else if is_held { "Nothing yet: it waits until somebody has said that it may be done." }
                @else { "Nothing yet: it is shown here as it comes." }
            }
        }
    }
}

/// What can be said to it. What waits for approval takes a decision and no words.
fn answer(
    visit: &Visit,
    frame: &Frame,
    task: &Task,
    asked: &[Approval],
    may: &Result<(), Failure>,
) -> Markup {
    let head = &task.head;
    let is_own = tasks::is_own(&visit.caller, head);
    let takes_words = head.state == TaskState::InputRequired || head.remote.task_id.is_some();
    let can_be_told = asked.is_empty() && !head.state.is_terminal() && takes_words;
    let agent = visit.console.engine().registry().get(&head.agent);
    let is_agent = agent.is_some_and(|agent| agent.backing.is_agent());
    let goes_on = head.state.is_terminal() && is_own && is_agent && head.remote.context_id.is_some();
    let now = visit.console.engine().now();
    html! {
        div data-region="answer" {
            @for approval in asked { (super::approvals::ask(frame, approval, now)) }
            @if asked.is_empty() && head.state == TaskState::AuthRequired {
                div.said.warn { p { "The agent waits for a login that is done elsewhere. When it is done, it goes on by itself." } }
            }
            @match may {
                Ok(()) if can_be_told => (words(frame, task, "messages", if head.state.is_waiting() { "Your answer" } else { "Say something more" }, is_own)),
                Ok(()) if goes_on => (words(frame, task, "continue", "Say more in the same conversation", is_own)),
                Err(failure) if !head.state.is_terminal() => {
                    div.said.warn { p { "It is a task of " b { (text::line(head.caller.as_str(), 80)) } ", and you cannot call it off or answer it: " (text::phrase(&failure.message, 400)) } }
                }
                _ => {}
            }
        }
    }
}

fn words(frame: &Frame, task: &Task, to: &str, label: &str, is_own: bool) -> Markup {
    let at = format!("{HERE}/{}/{to}", encoded(task.head.id.as_str()));
    html! {
        section.panel {
            form method="post" action=(frame.to(&at)) {
                (frame.proof())
                div.field {
                    label for="text" { (label) }
                    textarea #text name="text" {}
                    @if !is_own {
                        p.hint { "It is said in the task of " (text::line(task.head.caller.as_str(), 80)) "; that it was you is kept on record." }
                    }
                    details data-key="data" {
                        summary { "As JSON instead" }
                        label.vh for="data" { "JSON" }
                        textarea.mono #data name="data" spellcheck="false" placeholder="{ }" {}
                    }
                    @if to == "continue" { p.hint { "This task is over: what you say begins another, and the agent knows what was said before." } }
                }
                button.first type="submit" { "Send" }
            }
        }
    }
}

/// What came in at the door, what was decided, and what went out to the agent.
fn sides(inspected: &CallInspection) -> Markup {
    let (came, out) = (&inspected.came_in, &inspected.went_out);
    html! {
        div.sides data-region="sides" {
            section.panel {
                h2 { "Came in" }
                dl.facts {
                    (fact("Caller", came.caller.as_deref())) (fact("Door", came.door.map(EntryProtocol::as_str))) (fact("Called", came.called.as_deref()))
                    (fact("Context", came.context_id.as_deref())) (fact("Message", came.message_id.as_deref()))
                }
                @if let Some(args) = &came.arguments { pre tabindex="0" { code { (pretty(args)) } } }
            }
            section.panel {
                h2 { "Rialto" }
                (decided(inspected.decision.as_ref()))
                dl.facts { (fact("Session", out.session_id.as_deref())) }
            }
            section.panel {
                h2 { "Went out" }
                @match inspected.state {
                    Some(state) if out.sent.is_empty() && !state.is_terminal() => p.muted { "Nothing so far: it goes out when it is approved." },
                    _ if out.sent.is_empty() => p.muted { "Nothing: the agent never heard of it." },
                    _ => {}
                }
                dl.facts {
                    (fact("Agent", out.agent.as_deref())) (fact("Speaks", out.protocol.as_deref())) (fact("Address", out.url.as_deref()))
                    (fact("Skill", out.skill_id.as_ref().map(SkillId::as_str)))
                    (fact("Its task", out.remote_task_id.as_deref())) (fact("Its context", out.remote_context_id.as_deref()))
                }
                (sent(&out.sent))
            }
        }
    }
}

/// What the agent was sent: the call, and each answer to a question of its.
fn sent(sent: &[UpstreamMessage]) -> Markup {
    html! {
        @for (at, sent) in sent.iter().take(SENT).enumerate() {
            h3 { @if at == 0 { "The call" } @else { "Then" } " " span.muted.small { (sent.at.strftime("%T%.3f UTC")) } }
            pre tabindex="0" { code { (pretty(&sent.content)) } }
        }
        @if sent.len() > SENT { p.muted { "And " (sent.len() - SENT) " more; they are among what happened." } }
        @if !sent.is_empty() { p.hint.muted { "As it is on record: secrets are masked." } }
    }
}

fn decided(decision: Option<&RecordedDecision>) -> Markup {
    html! {
        @match decision {
            None => p.muted { "What policy said to it is no longer on record." },
            Some(decision) if decision.allowed => {
                p { span.state.good { "permitted" } @if !decision.policies.is_empty() { " by " (text::line(&decision.policies.join(", "), 300)) } }
            }
            Some(decision) => p { span.state.bad { "refused" } " " (text::phrase(decision.reason.as_deref().unwrap_or_default(), 600)) },
        }
    }
}

fn fact(name: &str, value: Option<&str>) -> Markup {
    html! { @if let Some(value) = value { dt { (name) } dd { (text::line(value, 300)) } } }
}

/// Everything that happened, each in the column of whoever did it.
fn timeline(entries: &[TimelineEntry]) -> Markup {
    html! {
        table.lanes.cards {
            caption { "What happened" }
            thead { tr { th.num { "After" } th { "Caller" } th { "Rialto" } th { "Agent" } } }
            tbody {
                @for (at, entry) in entries.iter().take(SHOWN).enumerate() {
                    tr {
                        td.num data-label="After" title=(entry.at.strftime("%F %T%.3f UTC")) { (entry.after_ms) " ms" }
                        @for who in [TimelineActor::Caller, TimelineActor::Rialto, TimelineActor::Agent] {
                            @if entry.who == who {
                                td data-label=(who.as_str()) {
                                    @if who == TimelineActor::Rialto { (text::told(&entry.what, LONGEST)) } @else { (text::block(&entry.what, LONGEST)) }
                                    details data-key=(format!("entry-{at}")) { summary.small.muted { "as it is on record" } pre tabindex="0" { code { (pretty(&entry.record)) } } }
                                }
                            } @else { td.other {} }
                        }
                    }
                }
            }
        }
        @if entries.len() > SHOWN { div.pages { "And " (entries.len() - SHOWN) " more; they are in the audit trail and the API." } }
    }
}

fn parts(frame: &Frame, task: &Task, parts: &[Part]) -> Markup {
    html! {
        @for part in parts.iter().take(100) {
            @match &part.content {
                Content::Text(words) => p { (text::block(words, LONGEST)) },
                Content::Data(data) | Content::Unknown(data) => pre tabindex="0" { code { (pretty(data)) } },
                Content::Url(url) => p { "a file at " code { (text::line(url, 300)) } },
                Content::Raw(bytes) => p {
                    @if let Some(at) = files::place(task, part) {
                        a.button href=(frame.to(&format!("{HERE}/{}/files/{at}", encoded(task.head.id.as_str())))) download { "Download" } " "
                    }
                    (text::line(part.filename.as_deref().unwrap_or("a file without a name"), 80))
                    span.muted { " " (text::line(part.media_type.as_deref().unwrap_or("of no kind"), 60)) ", " (bytes.len() / 4 * 3) " bytes" }
                },
            }
        }
    }
}

fn facts(visit: &Visit, frame: &Frame, task: &Task, was_chosen: bool) -> Markup {
    let (head, now) = (&task.head, visit.console.engine().now());
    let agent = visit.console.engine().registry().get(&head.agent);
    let is_run = agent.as_ref().is_some_and(|agent| matches!(agent.backing, Backing::Flow(_)));
    html! {
        section.panel data-region="facts" {
            h2 { "About it" }
            dl.facts {
                dt { "Agent" } dd {
                    @match &agent {
                        Some(agent) => a href=(frame.to(&format!("/agents/{}", encoded(&agent.slug)))) { (text::line(&agent.card.name, 80)) },
                        None => (text::line(&head.agent_url, 160)),
                    }
                }
                dt { "Skill" } dd { (text::line(head.skill.as_ref().map_or("none: a plain message", |skill| skill.as_str()), 120)) }
                dt { "Caller" } dd { (text::line(head.caller.as_str(), 80)) }
                dt { "Door" } dd { (head.door.as_str()) }
                dt { "Begun" } dd { (text::moment(head.created_at, now)) }
                dt { "Changed" } dd { (text::moment(head.updated_at, now)) }
                @if let Some(id) = &head.remote.task_id { dt { "Agent's id" } dd { code { (text::line(id, 160)) } } }
                @if let Some(id) = &head.remote.context_id { dt { "Context" } dd { code { (text::line(id, 160)) } } }
                dt { "In both logs" } dd { code { (text::line(&head.session, 200)) } }
            }
            p { a href=(frame.to(&format!("/audit?task={}", encoded(head.id.as_str())))) { "Its records" }
                @if was_chosen { " · " a href=(frame.to(&format!("/dispatches/{}", encoded(head.id.as_str())))) { "Why this agent" } }
                @if is_run { " · " a href=(frame.to(&format!("/runs/{}", encoded(head.id.as_str())))) { "As a run" } } }
        }
    }
}
