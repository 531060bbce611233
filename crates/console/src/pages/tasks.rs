//! What became of calls: a list that moves, and one task from its beginning on.

use axum::response::Response;
use maud::{Markup, html};
use rialto_edge::session::API;
use rialto_model::{
    approval::Approval,
    clock::Timestamp,
    deployed::Backing,
    event::{Event, Recorded},
    failure::{Failure, Kind},
    ids::TaskId,
    message::{Content, Message, Part},
    task::{Task, TaskHead, TaskState},
};

use super::{
    agent::pretty,
    layout::{Frame, Page},
    visit::{Visit, encoded},
};
use crate::{
    admin::{
        approvals,
        tasks::{self, Filter},
    },
    text,
};

const HERE: &str = "/tasks";

/// So many characters of one event are shown.
const LONGEST: usize = 20_000;

pub(super) async fn list(visit: Visit) -> Result<Response, Failure> {
    let filter = Filter {
        agent: visit.query("agent").map(str::to_owned),
        state: visit.query("state").and_then(TaskState::parse),
        open: visit.query("open").is_some(),
        own: visit.query("own").is_some(),
        limit: None,
        cursor: visit.query("cursor").map(TaskId::from),
    };
    let page = tasks::list(&visit.console, &visit.caller, &filter).await;
    let (page, trouble) = match page {
        Ok(page) => (page, None),
        Err(failure) if failure.kind == Kind::NotFound => {
            (tasks::Page { tasks: Vec::new(), next: None }, Some(failure))
        }
        Err(failure) => return Err(failure),
    };
    let (frame, now) = (visit.frame(), visit.console.engine().now());
    let sees_all = visit.console.sees_all(&visit.caller);
    let body = html! {
        div.top {
            div { h1 { "Tasks" } p.sub { @if sees_all { "Everybody's, as they come" } @else { "Yours, as they come" } } }
        }
        (filters(&frame, &filter, sees_all))
        (super::layout::refused(trouble.as_ref()))
        div.panel.flush data-region="tasks" {
            @if page.tasks.is_empty() {
                div.empty {
                    h2 { "No tasks here" }
                    p { "Every call becomes one. Try a skill of an " a href=(frame.to("/agents")) { "agent" } ", or call one from your client." }
                }
            } @else { (table(&visit, &frame, &page.tasks, now)) }
            div.pages {
                span data-count { (text::count(page.tasks.len(), "task", "tasks")) " on this page" }
                @if let Some(next) = &page.next { a.button rel="next" href=(frame.to(&link(&filter, next))) { "Older ones" } }
            }
        }
    };
    let live = filter.cursor.is_none().then(|| format!("{}{API}/events", frame.base));
    Ok(frame.page(&Page { title: "Tasks", at: HERE, live, is_over: false, body }))
}

pub(super) async fn show(visit: Visit) -> Result<Response, Failure> {
    let (task, events) = tasks::show(&visit.console, &visit.caller, visit.part("id")).await?;
    let frame = visit.frame();
    let is_over = task.head.state.is_terminal();
    let asked = if task.head.state.is_waiting() {
        approvals::of_task(&visit.console, &visit.caller, &task.head.id).await?
    } else {
        Vec::new()
    };
    let body = html! {
        div.top {
            div { h1 { "Task" } p.sub { code { (task.head.id) } } }
            div.actions data-region="stand" {
                (state(task.head.state))
                @if !is_over && tasks::is_own(&visit.caller, &task.head) {
                    a.button.danger href=(frame.to(&format!("/tasks/{}/cancel", encoded(task.head.id.as_str())))) data-dialog { "Cancel" }
                }
            }
        }
        div.columns {
            div {
                section.panel data-region="result" aria-live="polite" { (result(&task)) }
                (answer(&visit, &frame, &task, &asked))
                section.panel data-region="events" { h2 { "What happened" } (timeline(&task, &events)) }
            }
            (facts(&visit, &frame, &task))
        }
    };
    let live = format!(
        "{}{API}/tasks/{}/events?after={}",
        frame.base,
        encoded(task.head.id.as_str()),
        task.head.version
    );
    Ok(frame.page(&Page { title: "Task", at: HERE, live: Some(live), is_over, body }))
}

pub(super) async fn ask_cancel(visit: Visit) -> Result<Response, Failure> {
    let (task, _) = tasks::show(&visit.console, &visit.caller, visit.part("id")).await?;
    let (frame, at) = (visit.frame(), format!("/tasks/{}", encoded(task.head.id.as_str())));
    let body = html! {
        div data-dialog-body {
            h1 { "Cancel this task?" }
            p { "The agent is asked to stop. What it has made so far stays; the task takes no more messages." }
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
    let part = Part::text(visit.field("text").unwrap_or_default());
    tasks::say(&visit.console, &visit.caller, id, part).await?;
    Ok(visit.go(&format!("/tasks/{}", encoded(id)), "said"))
}

fn filters(frame: &Frame, filter: &Filter, sees_all: bool) -> Markup {
    html! {
        form.filters method="get" action=(frame.to(HERE)) data-filter role="search" {
            div {
                label.vh for="agent" { "Agent" }
                input #agent type="search" name="agent" value=[filter.agent.as_ref()] placeholder="Agent" autocomplete="off";
            }
            div {
                label.vh for="state" { "State" }
                select #state name="state" {
                    option value="" { "Any state" }
                    @for state in TaskState::ALL { option value=(state) selected[filter.state == Some(state)] { (state) } }
                }
            }
            label.check { input type="checkbox" name="open" value="yes" checked[filter.open]; "Not over" }
            @if sees_all { label.check { input type="checkbox" name="own" value="yes" checked[filter.own]; "Mine" } }
            button type="submit" { "Search" }
        }
    }
}

fn table(visit: &Visit, frame: &Frame, heads: &[TaskHead], now: Timestamp) -> Markup {
    let registry = visit.console.engine().registry();
    html! {
        table.cards {
            thead { tr { th { "Task" } th { "State" } th { "Agent" } th { "Caller" } th { "Door" } th { "Changed" } } }
            tbody {
                @for head in heads {
                    @let agent = registry.get(&head.agent);
                    tr {
                        td {
                            a href=(frame.to(&format!("/tasks/{}", encoded(head.id.as_str())))) {
                                (text::line(head.skill.as_ref().map_or("(message)", |skill| skill.as_str()), 60))
                            }
                            span.sub { code { (text::cut(head.id.as_str(), 48).0) } }
                        }
                        td data-label="State" { (state(head.state)) }
                        td data-label="Agent" { (text::line(agent.as_ref().map_or(head.agent_url.as_str(), |agent| &agent.slug), 60)) }
                        td data-label="Caller" { (text::line(head.caller.as_str(), 40)) }
                        td data-label="Door" { (head.door.as_str()) }
                        td data-label="Changed" { (text::moment(head.updated_at, now)) }
                    }
                }
            }
        }
    }
}

/// Where a task stands: a word, and a shape beside it.
pub(super) fn state(state: TaskState) -> Markup {
    let tone = match state {
        TaskState::Completed => "good",
        TaskState::Failed | TaskState::Rejected => "bad",
        TaskState::InputRequired | TaskState::AuthRequired => "warn",
        TaskState::Working | TaskState::Submitted => "live",
        TaskState::Canceled => "",
    };
    html! { span class=(format!("state {tone}")) { (state) } }
}

fn result(task: &Task) -> Markup {
    html! {
        h2 { "Result" }
        @if let Some(failure) = &task.failure { div.said.bad { (text::block(&failure.message, 2_000)) } }
        @for artifact in task.artifacts.iter().take(20) {
            @if let Some(name) = &artifact.name { h3 { (text::line(name, 120)) } }
            (parts(&artifact.parts))
        }
        @if let Some(message) = &task.message { (said(message)) }
        @if task.failure.is_none() && task.artifacts.is_empty() && task.message.is_none() {
            p.muted { @if task.head.state.is_terminal() { "It ended without a result." } @else { "Nothing yet: it is shown here as it comes." } }
        }
    }
}

/// What can be said to it. What waits for approval takes a decision and no words.
fn answer(visit: &Visit, frame: &Frame, task: &Task, asked: &[Approval]) -> Markup {
    let head = &task.head;
    let can_be_told = asked.is_empty() && !head.state.is_terminal() && tasks::is_own(&visit.caller, head);
    let now = visit.console.engine().now();
    html! {
        div data-region="answer" {
            @for approval in asked { (super::approvals::ask(frame, approval, now)) }
            @if can_be_told && head.state == TaskState::AuthRequired {
                div.said.warn { p { "The agent waits for a login that is done elsewhere. When it is done, it goes on by itself." } }
            }
            @if can_be_told && (head.state == TaskState::InputRequired || head.remote.task_id.is_some()) {
                section.panel {
                    form method="post" action=(frame.to(&format!("/tasks/{}/messages", encoded(head.id.as_str())))) {
                        (frame.proof())
                        div.field {
                            label for="text" { @if head.state.is_waiting() { "Your answer" } @else { "Say something more" } }
                            textarea #text name="text" required {}
                        }
                        button.first type="submit" { "Send" }
                    }
                }
            }
        }
    }
}

fn timeline(task: &Task, events: &[Recorded]) -> Markup {
    let begun = task.head.created_at;
    html! {
        ol.line {
            li {
                b { "asked" } " " span.muted.small { (begun.strftime("%F %T UTC")) }
                pre tabindex="0" { code { (pretty(&task.head.args)) } }
            }
            @for recorded in events {
                li class=(tone(&recorded.event)) {
                    b { (recorded.event.name()) } " "
                    span.muted.small { "+" (recorded.at.as_millisecond() - begun.as_millisecond()) " ms" }
                    (told(&recorded.event))
                }
            }
        }
    }
}

const fn tone(event: &Event) -> &'static str {
    match event {
        Event::Finished { .. } | Event::Replied { .. } => "good",
        Event::Failed { .. } | Event::Rejected { .. } => "bad",
        Event::Asked { .. } => "warn",
        _ => "",
    }
}

fn told(event: &Event) -> Markup {
    html! {
        @match event {
            Event::Accepted { remote, .. } => {
                p.muted.small { "the agent calls it " code { (text::line(remote.task_id.as_deref().unwrap_or("nothing"), 120)) } }
            }
            Event::Artifact { artifact, .. } => (parts(&artifact.parts)),
            Event::Answered { message } | Event::Replied { message } => (said(message)),
            Event::Failed { failure, message, .. } => {
                p { (text::line(&failure.message, 1_000)) }
                @if let Some(message) = message { (said(message)) }
            }
            Event::Progress { message, .. } | Event::Asked { message, .. } | Event::Finished { message, .. }
            | Event::Rejected { message, .. } | Event::Canceled { message, .. } => {
                @if let Some(message) = message { (said(message)) }
            }
        }
    }
}

fn said(message: &Message) -> Markup {
    parts(&message.parts)
}

fn parts(parts: &[Part]) -> Markup {
    html! {
        @for part in parts.iter().take(100) {
            @match &part.content {
                Content::Text(words) => p { (text::block(words, LONGEST)) },
                Content::Data(data) | Content::Unknown(data) => pre tabindex="0" { code { (pretty(data)) } },
                Content::Url(url) => p { "a file at " code { (text::line(url, 300)) } },
                Content::Raw(bytes) => p.muted {
                    (text::line(part.media_type.as_deref().unwrap_or("file"), 60)) " "
                    (text::line(part.filename.as_deref().unwrap_or("without a name"), 80)) ", " (bytes.len()) " characters of base64"
                },
            }
        }
    }
}

fn facts(visit: &Visit, frame: &Frame, task: &Task) -> Markup {
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
            p { a href=(frame.to(&format!("/audit?task={}", encoded(head.id.as_str())))) { "Its records" } " · "
                a href=(frame.to(&format!("/dispatches/{}", encoded(head.id.as_str())))) { "Why this agent" }
                @if is_run { " · " a href=(frame.to(&format!("/runs/{}", encoded(head.id.as_str())))) { "As a run" } } }
        }
    }
}

fn link(filter: &Filter, next: &TaskId) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    let given = [
        ("agent", filter.agent.as_deref()),
        ("state", filter.state.map(TaskState::as_str)),
        ("open", filter.open.then_some("yes")),
        ("own", filter.own.then_some("yes")),
        ("cursor", Some(next.as_str())),
    ];
    for (name, value) in given.iter().filter_map(|(name, value)| Some((name, (*value)?))) {
        query.append_pair(name, value);
    }
    format!("{HERE}?{}", query.finish())
}
