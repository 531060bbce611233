//! What is deployed beside the agents: MCP servers and functions.

use axum::response::Response;
use maud::{Markup, html};
use rialto_model::{
    agent::{Agent, Keep},
    failure::Failure,
};

use super::{
    agents::health,
    layout::{Frame, Page},
    visit::{Visit, encoded},
};
use crate::{admin::tools, text};

const HERE: &str = "/tools";

/// So many tools of one server are named.
const NAMED: usize = 40;

pub(super) async fn list(visit: Visit) -> Result<Response, Failure> {
    let rows = tools::list(&visit.console, &visit.caller).await?;
    let frame = visit.frame();
    let body = html! {
        div.top { div { h1 { "Tools" } p.sub { "MCP servers and functions, offered at every door beside the agents" } } }
        @if rows.is_empty() {
            div.panel.empty {
                h2 { "Nothing is deployed yet" }
                p { "At the server's machine:" }
                p { code { "rialto tools add weather -- npx -y some-mcp-server" } }
                p { code { "rialto tools add shout --function --description \"Shouts\" -- tr a-z A-Z" } }
                p.small { "Over the network: POST /api/v1/tools" }
            }
        }
        @for row in &rows { (server(&frame, row)) }
    };
    Ok(frame.page(&Page { title: "Tools", at: HERE, live: None, is_over: false, body }))
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

fn server(frame: &Frame, row: &Agent) -> Markup {
    html! {
        section.panel {
            div.top {
                div {
                    h2 { (text::line(row.backing.name().unwrap_or(&row.slug), 80)) " " span.tag { (row.backing.kind()) } }
                    p.sub { (text::line(&row.backing.via().map(rialto_model::deployed::Via::described).unwrap_or_default(), 160)) }
                }
                div.actions {
                    (health(row.health, row.last_error.as_deref()))
                    @if row.keep == Keep::Configured {
                        span.muted { "stands in the configuration" }
                    } @else {
                        a.button.danger href=(frame.to(&format!("/tools/{}/remove", encoded(&row.slug)))) data-dialog { "Take back" }
                    }
                }
            }
            @if let Some(why) = &row.last_error { div.said.bad { (text::line(why, 300)) } }
            dl.facts {
                @for skill in row.card.skills.iter().take(NAMED) {
                    dt { code { (text::line(skill.id.as_str(), 80)) } }
                    dd { (text::line(&skill.description, 240)) }
                }
            }
            @if row.card.skills.len() > NAMED { p.muted { "And " (row.card.skills.len() - NAMED) " more." } }
        }
    }
}
