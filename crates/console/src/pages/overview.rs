//! The first page: how things go, and what to do next.

use axum::response::Response;
use maud::{Markup, html};
use rialto_edge::session::API;
use rialto_model::failure::Failure;
use rialto_policy::Action;

use super::{
    agents::health,
    layout::{Frame, Page},
    visit::{Visit, encoded},
};
use crate::{
    admin::overview::{Calls, Overview, overview},
    chart, text,
};

pub(super) async fn show(visit: Visit) -> Result<Response, Failure> {
    let seen = overview(&visit.console, &visit.caller).await?;
    let frame = visit.frame();
    let body = html! {
        div.top { div { h1 { "Overview" } p.sub { "What crosses the bridge" } } }
        div data-region="numbers" {
            (tiles(&frame, &seen))
            @match &seen.calls {
                Some(calls) => (hour(calls)),
                None => div.said.warn { p {
                    "How calls go is shown to whoever may read the audit trail: "
                    code { "rialto policy add allow-admin admin_audit --caller " (text::line(visit.caller.id.as_str(), 60)) }
                } },
            }
            (unwell(&frame, &seen))
        }
        (first_steps(&visit, &frame, &seen))
    };
    let live = Some(format!("{}{API}/events", frame.base));
    Ok(frame.page(&Page { title: "Overview", at: "", live, is_over: false, body }))
}

fn tiles(frame: &Frame, seen: &Overview) -> Markup {
    let some = |value: Option<u64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value} ms"));
    html! {
        div.tiles {
            a.tile href=(frame.to("/agents")) { b { (seen.agents.all) } span { "agents, " (seen.agents.healthy) " healthy" } }
            a.tile href=(frame.to("/agents?trust=external")) { b { (seen.agents.external) } span { "external: need a permit" } }
            a.tile href=(frame.to("/tools")) { b { (seen.skills) } span { "skills, with " (text::count(seen.tools, "tool server", "tool servers")) } }
            a.tile href=(frame.to("/tasks?state=input-required&own=yes")) { b { (seen.waiting) } span { "of your tasks wait for an answer" } }
            @if let Some(calls) = &seen.calls {
                div.tile { b { (calls.ended) @if calls.is_cut { "+" } } span { "calls in the last hour" } }
                div.tile { b { (calls.failed) } span { "failed, " (calls.denied) " refused" } }
                div.tile { b { (some(calls.p50_ms)) } span { "half of them were faster" } }
                div.tile { b { (some(calls.p99_ms)) } span { "99 of 100 were faster" } }
            }
        }
    }
}

fn hour(calls: &Calls) -> Markup {
    let says =
        format!("{} calls in the last hour, {} of them failed", calls.ended, calls.failed + calls.denied);
    html! {
        section.panel {
            h2 { "Calls in the last hour" }
            @if calls.ended == 0 {
                p.muted { "None yet. This moves by itself as soon as somebody calls." }
            } @else {
                (chart::bars(&calls.per_minute, &calls.failed_per_minute, &says))
                p.muted.small { "One bar for each minute; in front of it, in red, those that failed or were refused." }
            }
        }
    }
}

fn unwell(frame: &Frame, seen: &Overview) -> Markup {
    html! {
        @if !seen.unwell.is_empty() {
            section.panel {
                h2 { "Not well" }
                @for agent in &seen.unwell {
                    p {
                        (health(agent.health, None)) " "
                        a href=(frame.to(&format!("/agents/{}", encoded(&agent.slug)))) { (text::line(&agent.card.name, 80)) }
                        @if let Some(why) = &agent.last_error { " " span.muted { (text::line(why, 200)) } }
                    }
                }
                @if seen.agents.unwell > seen.unwell.len() { p.muted { "And " (seen.agents.unwell - seen.unwell.len()) " more." } }
            }
        }
    }
}

fn first_steps(visit: &Visit, frame: &Frame, seen: &Overview) -> Markup {
    let address = visit.console.parts().site.address(&visit.uri, &visit.headers, &visit.caller.scope);
    let mcp = format!("{address}/mcp");
    let header = if visit.console.parts().needs_token {
        " --header \"Authorization: Bearer $RIALTO_TOKEN\""
    } else {
        ""
    };
    let who = visit.caller.id.as_str();
    let may = visit.console.may(&visit.caller, Action::AdminAgents).is_ok();
    let json = format!(
        "{{\n  \"mcpServers\": {{\n    \"rialto\": {{ \"type\": \"http\", \"url\": \"{mcp}\" }}\n  }}\n}}"
    );
    html! {
        section.panel {
            h2 { "First steps" }
            ol.steps {
                li {
                    span { (mark(may)) " Let yourself administer from here" }
                    @if !may { (snippet(&format!("rialto policy add allow-admin admin_agents --caller {who}"))) }
                }
                li {
                    span { (mark(seen.agents.all > 0)) " Register an agent" }
                    @if seen.agents.all == 0 {
                        p { a href=(frame.to("/agents")) { "Do it here" } ", or at the server's machine:" }
                        (snippet("rialto agents add https://agents.example.com/reviewer --allow"))
                    }
                }
                li { span { "Claude Code" } (snippet(&format!("claude mcp add --transport http rialto {mcp}{header}"))) }
                li { span { "Gemini CLI" } (snippet(&format!("gemini mcp add --transport http{header} rialto {mcp}"))) }
                li { span { "Any client with a configuration file" } (snippet(&json)) }
                li { span { "From another A2A agent: the card is at" } (snippet(&format!("{address}/.well-known/agent-card.json"))) }
            }
        }
    }
}

fn mark(is_done: bool) -> Markup {
    html! { @if is_done { span.tag.good { "done" } } @else { span.tag.warn { "to do" } } }
}

fn snippet(text: &str) -> Markup {
    html! {
        div.copy {
            pre tabindex="0" { code { (text::visible(text, true)) } }
            button.needs-script type="button" data-copy { "Copy" }
        }
    }
}
