//! What is deployed beside the agents: MCP servers and functions, with a form to deploy one.

use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};
use rialto_edge::session::API;
use rialto_model::{
    agent::{Agent, AgentTrust, RowStorage},
    backing::BackingTransport,
    clock::Timestamp,
    failure::{Failure, FailureKind},
    json::Json,
};
use rialto_policy::Action;
use serde_json::{Map, Value, json};

use super::{
    agent::changed,
    agents::health,
    layout::{self, Frame, Page},
    visit::{Visit, encoded},
};
use crate::{
    admin::{
        agents,
        tools::{self, is_available},
    },
    laid_out::pretty,
    text,
};

const HERE: &str = "/tools";

/// So many tools of one server are shown.
const NAMED: usize = 60;

pub(super) async fn list(visit: Visit) -> Result<Response, Failure> {
    let rows = tools::seen(&visit.console, &visit.caller).await?;
    let may = visit.console.may(&visit.caller, Action::AdminAgents);
    let (frame, now) = (visit.frame(), visit.console.engine().now());
    let body = html! {
        div.top {
            div { h1 { "Tools" } p.sub { "MCP servers and functions, offered at every door beside the agents" } }
            @if may.is_ok() { div.actions { a.button.first href=(frame.to("/deploy")) { "Deploy" } } }
        }
        (layout::barred(&may))
        div data-region="tools" data-watch="tools agents approvals" data-often="10000" {
            @if rows.is_empty() { (nothing(&frame, may.is_ok())) }
            @for row in &rows { (server(&frame, row, may.is_ok(), now)) }
        }
    };
    let live = Some(format!("{}{API}/events", frame.base));
    Ok(frame.page(&Page { title: "Tools", at: HERE, live, is_over: false, body }))
}

pub(super) async fn new(visit: Visit) -> Result<Response, Failure> {
    visit.console.admit(&visit.caller, Action::AdminAgents).await?;
    Ok(form(&visit, StatusCode::OK, None))
}

pub(super) async fn deploy(visit: Visit) -> Result<Response, Failure> {
    let deployed = match described(&visit) {
        Ok(described) => tools::deploy(&visit.console, &visit.caller, &described.to_string()).await,
        Err(why) => Err(Failure::new(FailureKind::Invalid, why)),
    };
    match deployed {
        Ok(_) => Ok(visit.go(HERE, "deployed")),
        Err(failure) => Ok(form(&visit, StatusCode::UNPROCESSABLE_ENTITY, Some(&failure))),
    }
}

pub(super) async fn refresh(visit: Visit) -> Result<Response, Failure> {
    let asked = agents::refresh(&visit.console, &visit.caller, visit.part("key")).await;
    match asked {
        Ok(_) => Ok(visit.go(HERE, "asked")),
        // What keeps it from answering stands beside its name.
        Err(failure) if failure.kind != FailureKind::Denied && failure.kind != FailureKind::NotFound => {
            Ok(visit.go(HERE, "silent"))
        }
        Err(failure) => Err(failure),
    }
}

pub(super) async fn approve(visit: Visit) -> Result<Response, Failure> {
    agents::approve(&visit.console, &visit.caller, visit.part("key")).await?;
    Ok(visit.go(HERE, "approved"))
}

pub(super) async fn ask_remove(visit: Visit) -> Result<Response, Failure> {
    let key = visit.part("key").to_owned();
    let frame = visit.frame();
    let body = html! {
        div data-dialog-body {
            h1 { "Take " (text::line(&key, 80)) " back?" }
            p { "Its tools can no longer be called, and policies that are about nothing else are forgotten." }
            form method="post" action=(frame.to(&format!("/tools/{}/remove", encoded(&key)))) {
                (frame.proof())
                div.actions { button.danger type="submit" autofocus { "Take it back" } a.button href=(frame.to(HERE)) { "Keep it" } }
            }
        }
    };
    Ok(frame.page(&Page { title: "Take back", at: HERE, live: None, is_over: false, body }))
}

pub(super) async fn remove(visit: Visit) -> Result<Response, Failure> {
    tools::remove(&visit.console, &visit.caller, visit.part("key")).await?;
    Ok(visit.go(HERE, "removed"))
}

fn nothing(frame: &Frame, may: bool) -> Markup {
    html! {
        div.panel.empty {
            h2 { "Nothing is deployed yet" }
            @if may { p { a.button.first href=(frame.to("/deploy")) { "Deploy the first one" } } }
            p { "At the server's machine:" }
            p { code { "rialto tools add weather -- npx -y some-mcp-server" } }
            p { code { "rialto tools add shout --function --description \"Shouts\" -- tr a-z A-Z" } }
            p.small { "Over the network: POST /api/v1/tools" }
        }
    }
}

fn server(frame: &Frame, row: &Agent, may: bool, now: Timestamp) -> Markup {
    let at = format!("/tools/{}", encoded(&row.slug));
    html! {
        section.panel {
            div.top {
                div {
                    h2 {
                        (text::line(row.backing.name().unwrap_or(&row.slug), 80)) " " span.tag { (row.backing.kind()) }
                        @if row.trust == AgentTrust::External { " " span.tag { (row.trust.as_str()) } }
                    }
                    // Where it is tells much about the server's machine.
                    @if may { p.sub { (text::line(&row.backing.via().map(BackingTransport::described).unwrap_or_default(), 160)) } }
                }
                div.actions {
                    (health(row.health, row.last_error.as_deref()))
                    @if let Some(seen) = row.last_seen_at { span.muted.small { "seen " (text::moment(seen, now)) } }
                    @if may {
                        form.inline method="post" action=(frame.to(&format!("{at}/refresh"))) {
                            (frame.proof())
                            button type="submit" aria-label=(format!("Refresh {}", row.slug)) title="Asks it again what it offers; one that has ended is started anew" { "Refresh" }
                        }
                        @if row.keep == RowStorage::Configured {
                            span.muted { "stands in the configuration" }
                        } @else {
                            a.button.danger href=(frame.to(&format!("{at}/remove"))) data-dialog aria-label=(format!("Take back {}", row.slug)) { "Take back" }
                        }
                    }
                }
            }
            @if let Some(why) = &row.last_error { div.said.bad { p { "It does not answer, so its tools are not offered: " (text::phrase(why, 300)) } } }
            (held(frame, row, may))
            @if row.card.skills.is_empty() { p.muted { "It offers no tools so far." } }
            @for (at, skill) in row.card.skills.iter().take(NAMED).enumerate() { (tool(frame, row, skill, at)) }
            @if row.card.skills.len() > NAMED { p.muted { "And " (row.card.skills.len() - NAMED) " more." } }
        }
    }
}

/// What an external server has changed, and nobody has approved yet.
fn held(frame: &Frame, row: &Agent, may: bool) -> Markup {
    let diff = agents::pending(row);
    html! {
        @if let Some(diff) = &diff {
            div.said.warn {
                p { "Its tools have changed, and the change waits for approval. Read it: descriptions and schemas reach models as they are." }
                (changed(diff))
                @if may {
                    form method="post" action=(frame.to(&format!("/tools/{}/approve", encoded(&row.slug)))) {
                        (frame.proof()) button.first type="submit" aria-label=(format!("Approve the change of {}", row.slug)) { "Approve the change" }
                    }
                }
            }
        }
    }
}

fn tool(frame: &Frame, row: &Agent, skill: &rialto_model::card::Skill, at: usize) -> Markup {
    let id = skill.id.as_str();
    let attempt = format!("/agents/{}/try/{}", encoded(&row.slug), encoded(id));
    html! {
        article.skill {
            header {
                div {
                    h3 { (text::line(id, 120)) }
                    @if !skill.description.is_empty() { p.muted { (text::line(&skill.description, 400)) } }
                }
                @if is_available(row) {
                    a.button href=(frame.to(&attempt)) data-dialog aria-label=(format!("Try {}", text::visible(&text::cut(id, 60).0, false))) { "Try" }
                } @else { span.tag.warn { "unavailable" } }
            }
            @if let Some(schema) = &skill.input_schema {
                details data-key=(format!("{}-{at}", row.slug)) { summary { "What it takes" } pre tabindex="0" { code { (pretty(schema)) } } }
            }
        }
    }
}

/// What the form says, as the API is told it.
fn described(visit: &Visit) -> Result<Value, String> {
    let given = |name: &str| visit.field(name).map(str::trim).filter(|text| !text.is_empty());
    let mut wanted = Map::new();
    let is_function = given("kind") == Some("function");
    wanted.insert("kind".to_owned(), json!(if is_function { "function" } else { "mcp" }));
    wanted.insert("name".to_owned(), json!(given("name").unwrap_or_default()));
    if let Some(url) = given("url") {
        wanted.insert("url".to_owned(), json!(url));
    }
    if let Some(command) = given("command") {
        let words: Vec<&str> = command.lines().map(str::trim).filter(|word| !word.is_empty()).collect();
        wanted.insert("command".to_owned(), json!(words));
    }
    for (name, between) in [("headers", ':'), ("env", '=')] {
        if let Some(lines) = given(name) {
            wanted.insert(name.to_owned(), settings(name, lines, between)?);
        }
    }
    if let Some(trust) = given("trust").filter(|_| !is_function) {
        wanted.insert("trust".to_owned(), json!(trust));
    }
    if let Some(timeout) = given("timeout") {
        let seconds: f64 =
            timeout.parse().map_err(|_| format!("timeout: \"{timeout}\" is not a number of seconds"))?;
        wanted.insert("timeout".to_owned(), json!(seconds));
    }
    if is_function {
        wanted.insert("description".to_owned(), json!(given("description").unwrap_or_default()));
        wanted.insert("idempotent".to_owned(), json!(visit.field("idempotent").is_some()));
        for name in ["input_schema", "output_schema"] {
            if let Some(schema) = given(name) {
                let schema =
                    Json::parse(schema).map_err(|error| format!("{name}: this is not JSON: {error}"))?;
                wanted.insert(name.to_owned(), schema.value());
            }
        }
    }
    Ok(Value::Object(wanted))
}

/// Names and values, one on each line.
fn settings(what: &str, lines: &str, between: char) -> Result<Value, String> {
    let read = |line: &str| {
        let (name, value) = line.split_once(between)?;
        Some((name.trim().to_owned(), json!(value.trim())))
    };
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    let read = lines.map(|line| {
        read(line).ok_or_else(|| {
            format!("{what}: write one on each line, as `NAME{between} value`: \"{}\"", text::cut(line, 60).0)
        })
    });
    read.collect::<Result<Map<_, _>, _>>().map(Value::Object)
}

fn form(visit: &Visit, status: StatusCode, failure: Option<&Failure>) -> Response {
    let frame = visit.frame();
    let given = |name| visit.field(name).unwrap_or_default();
    let is_function = given("kind") == "function";
    let body = html! {
        div.top { div { h1 { "Deploy a server or a function" } p.sub { "Its tools are offered at every door as soon as it answers" } } }
        (layout::refused(failure))
        form.panel method="post" action=(frame.to(HERE)) {
            (frame.proof())
            div.field {
                label for="kind" { "What it is" }
                select #kind name="kind" {
                    option value="mcp" { "an MCP server: it says itself which tools it has" }
                    option value="function" selected[is_function] { "a function: arguments in, result out" }
                }
            }
            (line("name", "Name", given("name"), "weather", "Letters, digits, - and _. Its tools are called by it."))
            (line("url", "Address", given("url"), "https://tools.example.com/mcp", "Of an MCP server, or where a function's arguments are posted to as JSON."))
            (lines("headers", "Headers", given("headers"), "One on each line: Name: value. A secret is named, never written: ${VARIABLE}."))
            @if visit.console.may_use_machine(&visit.caller) {
                (lines("command", "Or a command of the server's machine", given("command"), "The program and its arguments, each on a line of its own."))
                (lines("env", "Its variables", given("env"), "One on each line: NAME=value."))
            } @else {
                p.hint.muted { "Commands of the server's machine are deployed there, with " code { "rialto tools add" } ", or here where " code { "[server] allow_commands_over_api" } " is set." }
            }
            div.field {
                label for="tool-trust" { "Trust" }
                select #tool-trust name="trust" {
                    option value="" { "as usual" }
                    option value="external" selected[given("trust") == "external"] { "external: its tools need a permit, and what it changes in them is held" }
                    option value="trusted" selected[given("trust") == "trusted"] { "trusted: for those who may write policies" }
                }
                p.hint { "For an MCP server. Who may not write policies deploys external ones." }
            }
            (line("timeout", "Timeout in seconds", given("timeout"), "30", ""))
            details data-key="function" open[is_function] {
                summary { "For a function" }
                (line("description", "What it does", given("description"), "", "For whoever decides whether to call it."))
                (lines("input_schema", "JSON Schema of its arguments", given("input_schema"), "Arguments that do not fit are refused, and its form is made of it."))
                (lines("output_schema", "JSON Schema of its result", given("output_schema"), "A result that does not fit is a failure."))
                label.check { input type="checkbox" name="idempotent" value="yes" checked[visit.field("idempotent").is_some()]; "Calling it twice does no more than calling it once" }
            }
            div.actions { button.first type="submit" { "Deploy" } a.button href=(frame.to(HERE)) { "Cancel" } }
        }
    };
    frame.answer(status, &Page { title: "Deploy", at: HERE, live: None, is_over: false, body })
}

fn line(name: &str, label: &str, value: &str, sample: &str, hint: &str) -> Markup {
    let is_required = name == "name";
    html! {
        div.field {
            label for=(format!("tool-{name}")) { (label) }
            input id=(format!("tool-{name}")) type="text" name=(name) value=(value) placeholder=(sample) required[is_required] spellcheck="false" autocomplete="off";
            @if !hint.is_empty() { p.hint { (hint) } }
        }
    }
}

fn lines(name: &str, label: &str, value: &str, hint: &str) -> Markup {
    html! {
        div.field {
            label for=(format!("tool-{name}")) { (label) }
            textarea.mono id=(format!("tool-{name}")) name=(name) spellcheck="false" { "\n" (value) }
            p.hint { (hint) }
        }
    }
}
