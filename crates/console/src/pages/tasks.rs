//! What became of calls: a list that moves.

use axum::response::Response;
use maud::{Markup, html};
use rialto_edge::session::API;
use rialto_model::{
    clock::Timestamp,
    failure::{Failure, FailureKind},
    ids::TaskId,
    task::{TaskHead, TaskState},
};

use super::{
    layout::{Frame, Page},
    visit::{Visit, encoded},
};
use crate::{
    admin::tasks::{self, Filter},
    text,
};

pub(super) const HERE: &str = "/tasks";

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
        Err(failure) if failure.kind == FailureKind::NotFound => {
            (tasks::Page { tasks: Vec::new(), next: None }, Some(failure))
        }
        Err(failure) => return Err(failure),
    };
    let (frame, now) = (visit.frame(), visit.console.engine().now());
    let is_filtered = filter.agent.is_some()
        || filter.state.is_some()
        || filter.open
        || filter.own
        || filter.cursor.is_some();
    let sees_all = visit.console.sees_all(&visit.caller);
    let body = html! {
        div.top {
            div { h1 { "Tasks" } p.sub { @if sees_all { "Everybody's, as they come" } @else { "Yours, as they come" } } }
        }
        (filters(&frame, &filter, sees_all))
        div data-region="tasks" {
            (super::layout::refused(trouble.as_ref()))
            div.panel.flush {
                @if page.tasks.is_empty() { (nothing(&frame, is_filtered)) } @else { (table(&visit, &frame, &page.tasks, now)) }
                div.pages {
                    span data-count { (text::count(page.tasks.len(), "task", "tasks")) " on this page" }
                    @if let Some(next) = &page.next { a.button rel="next" href=(frame.to(&link(&filter, next))) { "Older ones" } }
                }
            }
        }
    };
    let live = filter.cursor.is_none().then(|| format!("{}{API}/events", frame.base));
    Ok(frame.page(&Page { title: "Tasks", at: HERE, live, is_over: false, body }))
}

fn nothing(frame: &Frame, is_filtered: bool) -> Markup {
    html! {
        div.empty {
            @if is_filtered { p { "No task fits. " a href=(frame.to(HERE)) { "Show all of them" } } } @else {
                h2 { "No tasks yet" }
                p { "Every call becomes one. Try a skill of an " a href=(frame.to("/agents")) { "agent" } ", or call one from your client." }
            }
        }
    }
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
