//! Pages of tools: MCP servers and functions, with a form to add one.

use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};
use rialto_admin::{
    agents,
    tools::{self, is_available},
};
use rialto_http_server::session::API;
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
    agent::card_diff,
    agents::health_badge,
    layout::{self, PageContent, PageFrame},
    request::{PageRequest, encode_segment},
};
use crate::{pretty_json::pretty_json, text};

const PAGE_PATH: &str = "/tools";

/// Maximum number of tools of one server on the page.
const MAX_TOOLS: usize = 60;

pub(super) async fn list(request: PageRequest) -> Result<Response, Failure> {
    let rows = tools::list_visible(&request.admin, &request.caller).await?;
    let may = request.admin.check_admin(&request.caller, Action::AdminAgents);
    let (frame, now) = (request.frame(), request.admin.engine().now());
    let body = html! {
        div.top {
            div { h1 { "Tools" } p.sub { "MCP servers and functions" } }
            @if may.is_ok() { div.actions { a.button.first href=(frame.url("/deploy")) { "Add server or function" } } }
        }
        (layout::read_only_notice(&may))
        div data-region="tools" data-watch="tools agents approvals" data-often="10000" {
            @if rows.is_empty() { (empty_list(&frame, may.is_ok())) }
            @for row in &rows { (deployment_panel(&frame, row, may.is_ok(), now)) }
        }
    };
    let live = Some(format!("{}{API}/events", frame.base));
    Ok(frame.respond_ok(&PageContent { title: "Tools", at: PAGE_PATH, live, is_over: false, body }))
}

pub(super) async fn new(request: PageRequest) -> Result<Response, Failure> {
    request.admin.authorize_admin(&request.caller, Action::AdminAgents).await?;
    Ok(form(&request, StatusCode::OK, None))
}

pub(super) async fn deploy(request: PageRequest) -> Result<Response, Failure> {
    let deployed = match read_form(&request) {
        Ok(described) => tools::deploy(&request.admin, &request.caller, &described.to_string()).await,
        Err(why) => Err(Failure::new(FailureKind::Invalid, why)),
    };
    match deployed {
        Ok(_) => Ok(request.redirect(PAGE_PATH, "deployed")),
        Err(failure) => Ok(form(&request, StatusCode::UNPROCESSABLE_ENTITY, Some(&failure))),
    }
}

pub(super) async fn refresh(request: PageRequest) -> Result<Response, Failure> {
    let refreshed = agents::refresh(&request.admin, &request.caller, request.path_param("key")).await;
    match refreshed {
        Ok(_) => Ok(request.redirect(PAGE_PATH, "asked")),
        // The error is shown beside its name.
        Err(failure) if failure.kind != FailureKind::Denied && failure.kind != FailureKind::NotFound => {
            Ok(request.redirect(PAGE_PATH, "silent"))
        }
        Err(failure) => Err(failure),
    }
}

pub(super) async fn approve(request: PageRequest) -> Result<Response, Failure> {
    agents::approve(&request.admin, &request.caller, request.path_param("key")).await?;
    Ok(request.redirect(PAGE_PATH, "approved"))
}

pub(super) async fn confirm_remove(request: PageRequest) -> Result<Response, Failure> {
    let key = request.path_param("key").to_owned();
    let frame = request.frame();
    let body = html! {
        div data-dialog-body {
            h1 { "Remove " (text::render_line(&key, 80)) "?" }
            p { "Its tools can no longer be called, and the policies that apply only to it are deleted." }
            form method="post" action=(frame.url(&format!("/tools/{}/remove", encode_segment(&key)))) {
                (frame.csrf_field())
                div.actions { button.danger type="submit" autofocus { "Remove" } a.button href=(frame.url(PAGE_PATH)) { "Cancel" } }
            }
        }
    };
    Ok(frame.respond_ok(&PageContent {
        title: "Remove a tool server",
        at: PAGE_PATH,
        live: None,
        is_over: false,
        body,
    }))
}

pub(super) async fn remove(request: PageRequest) -> Result<Response, Failure> {
    tools::remove(&request.admin, &request.caller, request.path_param("key")).await?;
    Ok(request.redirect(PAGE_PATH, "removed"))
}

fn empty_list(frame: &PageFrame, may: bool) -> Markup {
    html! {
        div.panel.empty {
            h2 { "No tools yet" }
            @if may { p { a.button.first href=(frame.url("/deploy")) { "Add a server or function" } } }
            p { "On the server's machine:" }
            p { code { "rialto tools add weather -- npx -y some-mcp-server" } }
            p { code { "rialto tools add shout --function --description \"Shouts\" -- tr a-z A-Z" } }
            p.small { "Over the network: POST /api/v1/tools" }
        }
    }
}

fn deployment_panel(frame: &PageFrame, row: &Agent, may: bool, now: Timestamp) -> Markup {
    let at = format!("/tools/{}", encode_segment(&row.slug));
    html! {
        section.panel {
            div.top {
                div {
                    h2 {
                        (text::render_line(row.backing.name().unwrap_or(&row.slug), 80)) " " span.tag { (row.backing.kind()) }
                        @if row.trust == AgentTrust::External { " " span.tag { (row.trust.as_str()) } }
                    }
                    // Its address or command says much about the server's machine.
                    @if may { p.sub { (text::render_line(&row.backing.via().map(BackingTransport::described).unwrap_or_default(), 160)) } }
                }
                div.actions {
                    (health_badge(row.health, row.last_error.as_deref()))
                    @if let Some(seen) = row.last_seen_at { span.muted.small { "seen " (text::time_ago(seen, now)) } }
                    @if may {
                        form.inline method="post" action=(frame.url(&format!("{at}/refresh"))) {
                            (frame.csrf_field())
                            button type="submit" aria-label=(format!("Refresh {}", row.slug)) title="Lists its tools again and restarts a stopped program" { "Refresh" }
                        }
                        @if row.keep == RowStorage::Configured {
                            span.muted { "Managed by rialto.toml" }
                        } @else {
                            a.button.danger href=(frame.url(&format!("{at}/remove"))) data-dialog aria-label=(format!("Remove {}", row.slug)) { "Remove" }
                        }
                    }
                }
            }
            @if let Some(why) = &row.last_error { div.notice.bad { p { "Not answering, so its tools are unavailable: " (text::render_message_line(why, 300)) } } }
            (pending_change(frame, row, may))
            @if row.card.skills.is_empty() { p.muted { "No tools. Use Refresh to list them again." } }
            @for (at, skill) in row.card.skills.iter().take(MAX_TOOLS).enumerate() { (tool(frame, row, skill, at)) }
            @if row.card.skills.len() > MAX_TOOLS { p.muted { "And " (row.card.skills.len() - MAX_TOOLS) " more." } }
        }
    }
}

/// Change of an external server that waits for approval.
fn pending_change(frame: &PageFrame, row: &Agent, may: bool) -> Markup {
    let diff = agents::pending_changes(row);
    html! {
        @if let Some(diff) = &diff {
            div.notice.warn {
                p { "Its tools have changed, and the change is waiting for approval. Review it: descriptions and schemas are passed to models unchanged." }
                (card_diff(diff))
                @if may {
                    form method="post" action=(frame.url(&format!("/tools/{}/approve", encode_segment(&row.slug)))) {
                        (frame.csrf_field()) button.first type="submit" aria-label=(format!("Approve the change of {}", row.slug)) { "Approve the change" }
                    }
                }
            }
        }
    }
}

fn tool(frame: &PageFrame, row: &Agent, skill: &rialto_model::card::Skill, at: usize) -> Markup {
    let id = skill.id.as_str();
    let attempt = format!("/agents/{}/try/{}", encode_segment(&row.slug), encode_segment(id));
    html! {
        article.skill {
            header {
                div {
                    h3 { (text::render_line(id, 120)) }
                    @if !skill.description.is_empty() { p.muted { (text::render_line(&skill.description, 400)) } }
                }
                @if is_available(row) {
                    a.button href=(frame.url(&attempt)) data-dialog aria-label=(format!("Try {}", text::escape_invisible(&text::truncate(id, 60).0, false))) { "Try" }
                } @else { span.tag.warn { "unavailable" } }
            }
            @if let Some(schema) = &skill.input_schema {
                details data-key=(format!("{}-{at}", row.slug)) { summary { "Input schema" } pre tabindex="0" { code { (pretty_json(schema)) } } }
            }
        }
    }
}

/// Request body of the API from the fields of the form.
fn read_form(request: &PageRequest) -> Result<Value, String> {
    let given = |name: &str| request.field(name).map(str::trim).filter(|text| !text.is_empty());
    let mut deployment = Map::new();
    let is_function = given("kind") == Some("function");
    deployment.insert("kind".to_owned(), json!(if is_function { "function" } else { "mcp" }));
    deployment.insert("name".to_owned(), json!(given("name").unwrap_or_default()));
    if let Some(url) = given("url") {
        deployment.insert("url".to_owned(), json!(url));
    }
    if let Some(command) = given("command") {
        let words: Vec<&str> = command.lines().map(str::trim).filter(|word| !word.is_empty()).collect();
        deployment.insert("command".to_owned(), json!(words));
    }
    for (name, between) in [("headers", ':'), ("env", '=')] {
        if let Some(lines) = given(name) {
            deployment.insert(name.to_owned(), settings(name, lines, between)?);
        }
    }
    if let Some(trust) = given("trust").filter(|_| !is_function) {
        deployment.insert("trust".to_owned(), json!(trust));
    }
    if let Some(timeout) = given("timeout") {
        let seconds: f64 =
            timeout.parse().map_err(|_| format!("timeout: \"{timeout}\" is not a number of seconds"))?;
        deployment.insert("timeout".to_owned(), json!(seconds));
    }
    if is_function {
        deployment.insert("description".to_owned(), json!(given("description").unwrap_or_default()));
        deployment.insert("idempotent".to_owned(), json!(request.field("idempotent").is_some()));
        for name in ["input_schema", "output_schema"] {
            if let Some(schema) = given(name) {
                let schema =
                    Json::parse(schema).map_err(|error| format!("{name}: this is not JSON: {error}"))?;
                deployment.insert(name.to_owned(), schema.value());
            }
        }
    }
    Ok(Value::Object(deployment))
}

/// Names and values, one per line.
fn settings(what: &str, lines: &str, between: char) -> Result<Value, String> {
    let read = |line: &str| {
        let (name, value) = line.split_once(between)?;
        Some((name.trim().to_owned(), json!(value.trim())))
    };
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    let read = lines.map(|line| {
        read(line).ok_or_else(|| {
            format!(
                "{what}: enter one per line, as `NAME{between} value`: \"{}\"",
                text::truncate(line, 60).0
            )
        })
    });
    read.collect::<Result<Map<_, _>, _>>().map(Value::Object)
}

fn form(request: &PageRequest, status: StatusCode, failure: Option<&Failure>) -> Response {
    let frame = request.frame();
    let given = |name| request.field(name).unwrap_or_default();
    let is_function = given("kind") == "function";
    let body = html! {
        div.top { div { h1 { "Add an MCP server or function" } p.sub { "Its tools are available as soon as it answers" } } }
        (layout::error_message(failure))
        form.panel method="post" action=(frame.url(PAGE_PATH)) {
            (frame.csrf_field())
            div.field {
                label for="kind" { "Type" }
                select #kind name="kind" {
                    option value="mcp" { "MCP server" }
                    option value="function" selected[is_function] { "Function" }
                }
            }
            (text_field("name", "Name", given("name"), "weather", "Letters, digits, - and _. Prefix of the names of its tools."))
            (text_field("url", "Address", given("url"), "https://tools.example.com/mcp", "URL of the MCP server, or URL that the arguments of a function are posted to as JSON."))
            (lines_field("headers", "Headers", given("headers"), "One per line: Name: value. Reference a secret as ${VARIABLE}."))
            @if request.admin.may_use_machine_resources(&request.caller) {
                (lines_field("command", "Or a command on the server's machine", given("command"), "Program and arguments, one per line."))
                (lines_field("env", "Environment variables", given("env"), "One per line: NAME=value."))
            } @else {
                p.hint.muted { "Commands are added on the server's machine with " code { "rialto tools add" } ", or here if " code { "[server] allow_commands_over_api" } " is set." }
            }
            div.field {
                label for="tool-trust" { "Trust" }
                select #tool-trust name="trust" {
                    option value="" { "default" }
                    option value="external" selected[given("trust") == "external"] { "external: tools need a policy, and changes need approval" }
                    option value="trusted" selected[given("trust") == "trusted"] { "trusted: requires permission to write policies" }
                }
                p.hint { "For MCP servers. Without permission to write policies, a new server is external." }
            }
            (text_field("timeout", "Timeout in seconds", given("timeout"), "30", ""))
            details data-key="function" open[is_function] {
                summary { "Function options" }
                (text_field("description", "Description", given("description"), "", "Shown to callers and models."))
                (lines_field("input_schema", "Input schema", given("input_schema"), "JSON Schema of its arguments. Other arguments are rejected."))
                (lines_field("output_schema", "Output schema", given("output_schema"), "JSON Schema of its result. Other results are errors."))
                label.check { input type="checkbox" name="idempotent" value="yes" checked[request.field("idempotent").is_some()]; "Idempotent: calls can be repeated safely" }
            }
            div.actions { button.first type="submit" { "Add" } a.button href=(frame.url(PAGE_PATH)) { "Cancel" } }
        }
    };
    frame.respond(
        status,
        &PageContent {
            title: "Add an MCP server or function",
            at: PAGE_PATH,
            live: None,
            is_over: false,
            body,
        },
    )
}

fn text_field(name: &str, label: &str, value: &str, sample: &str, hint: &str) -> Markup {
    let is_required = name == "name";
    html! {
        div.field {
            label for=(format!("tool-{name}")) { (label) }
            input id=(format!("tool-{name}")) type="text" name=(name) value=(value) placeholder=(sample) required[is_required] spellcheck="false" autocomplete="off";
            @if !hint.is_empty() { p.hint { (hint) } }
        }
    }
}

fn lines_field(name: &str, label: &str, value: &str, hint: &str) -> Markup {
    html! {
        div.field {
            label for=(format!("tool-{name}")) { (label) }
            textarea.mono id=(format!("tool-{name}")) name=(name) spellcheck="false" { "\n" (value) }
            p.hint { (hint) }
        }
    }
}
