//! Page with the list of tasks, which updates itself.

use axum::response::Response;
use maud::{Markup, html};
use rialto_admin::tasks::{self, TaskQuery};
use rialto_http_server::session::API;
use rialto_model::{
    clock::Timestamp,
    failure::{Failure, FailureKind},
    ids::TaskId,
    task::{TaskHead, TaskState},
};

use super::{
    layout::{PageContent, PageFrame},
    request::{PageRequest, encode_segment},
};
use crate::text;

pub(super) const PAGE_PATH: &str = "/tasks";

pub(super) async fn list(request: PageRequest) -> Result<Response, Failure> {
    let filter = TaskQuery {
        agent: request.query("agent").map(str::to_owned),
        state: request.query("state").and_then(TaskState::parse),
        open: request.query("open").is_some(),
        own: request.query("own").is_some(),
        limit: None,
        cursor: request.query("cursor").map(TaskId::from),
    };
    let page = tasks::list(&request.admin, &request.caller, &filter).await;
    let (page, failure) = match page {
        Ok(page) => (page, None),
        Err(failure) if failure.kind == FailureKind::NotFound => {
            (tasks::TaskResults { tasks: Vec::new(), next: None }, Some(failure))
        }
        Err(failure) => return Err(failure),
    };
    let (frame, now) = (request.frame(), request.admin.engine().now());
    let is_filtered = filter.agent.is_some()
        || filter.state.is_some()
        || filter.open
        || filter.own
        || filter.cursor.is_some();
    let sees_all = request.admin.sees_all_callers(&request.caller);
    let body = html! {
        div.top {
            div { h1 { "Tasks" } p.sub { @if sees_all { "Tasks of all callers" } @else { "Your tasks" } } }
        }
        (filters(&frame, &filter, sees_all))
        div data-region="tasks" {
            (super::layout::error_message(failure.as_ref()))
            div.panel.flush {
                @if page.tasks.is_empty() { (empty_list(&frame, is_filtered)) } @else { (table(&request, &frame, &page.tasks, now)) }
                div.pages {
                    span data-count { (text::count_noun(page.tasks.len(), "task", "tasks")) " on this page" }
                    @if let Some(next) = &page.next { a.button rel="next" href=(frame.url(&link(&filter, next))) { "Older" } }
                }
            }
        }
    };
    let live = filter.cursor.is_none().then(|| format!("{}{API}/events", frame.base));
    Ok(frame.respond_ok(&PageContent { title: "Tasks", at: PAGE_PATH, live, is_over: false, body }))
}

fn empty_list(frame: &PageFrame, is_filtered: bool) -> Markup {
    html! {
        div.empty {
            @if is_filtered { p { "No tasks match. " a href=(frame.url(PAGE_PATH)) { "Show all" } } } @else {
                h2 { "No tasks yet" }
                p { "Every call creates a task. Try a skill of an " a href=(frame.url("/agents")) { "agent" } ", or call one from your client." }
            }
        }
    }
}

fn filters(frame: &PageFrame, filter: &TaskQuery, sees_all: bool) -> Markup {
    html! {
        form.filters method="get" action=(frame.url(PAGE_PATH)) data-filter role="search" {
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
            label.check { input type="checkbox" name="open" value="yes" checked[filter.open]; "Active" }
            @if sees_all { label.check { input type="checkbox" name="own" value="yes" checked[filter.own]; "Mine" } }
            button type="submit" { "Search" }
        }
    }
}

fn table(request: &PageRequest, frame: &PageFrame, heads: &[TaskHead], now: Timestamp) -> Markup {
    let registry = request.admin.engine().registry();
    html! {
        table.cards {
            thead { tr { th { "Task" } th { "State" } th { "Agent" } th { "Caller" } th { "Protocol" } th { "Updated" } } }
            tbody {
                @for head in heads {
                    @let agent = registry.get(&head.agent);
                    tr {
                        td {
                            a href=(frame.url(&format!("/tasks/{}", encode_segment(head.id.as_str())))) {
                                (text::render_line(head.skill.as_ref().map_or("(message)", |skill| skill.as_str()), 60))
                            }
                            span.sub { code { (text::truncate(head.id.as_str(), 48).0) } }
                        }
                        td data-label="State" { (state_badge(head.state)) }
                        td data-label="Agent" { (text::render_line(agent.as_ref().map_or(head.agent_url.as_str(), |agent| &agent.slug), 60)) }
                        td data-label="Caller" { (text::render_line(head.caller.as_str(), 40)) }
                        td data-label="Protocol" { (head.door.as_str()) }
                        td data-label="Updated" { (text::time_ago(head.updated_at, now)) }
                    }
                }
            }
        }
    }
}

/// Badge for the state of a task.
pub(super) fn state_badge(state: TaskState) -> Markup {
    let tone = match state {
        TaskState::Completed => "good",
        TaskState::Failed | TaskState::Rejected => "bad",
        TaskState::InputRequired | TaskState::AuthRequired => "warn",
        TaskState::Working | TaskState::Submitted => "live",
        TaskState::Canceled => "",
    };
    html! { span class=(format!("state {tone}")) { (state) } }
}

fn link(filter: &TaskQuery, next: &TaskId) -> String {
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
    format!("{PAGE_PATH}?{}", query.finish())
}
