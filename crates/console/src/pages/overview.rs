//! Overview page: agents, traffic of the last hour and first steps.

use axum::response::Response;
use maud::{Markup, html};
use rialto_admin::overview::{Overview, overview};
use rialto_api_types::overview::RecentCalls;
use rialto_http_server::session::API;
use rialto_model::failure::Failure;

use super::{
    agents::health_badge,
    first_steps,
    layout::{PageContent, PageFrame},
    request::{PageRequest, encode_segment},
};
use crate::{chart, text};

pub(super) async fn show(request: PageRequest) -> Result<Response, Failure> {
    let seen = overview(&request.admin, &request.caller).await?;
    let frame = request.frame();
    let body = html! {
        div.top { div { h1 { "Overview" } p.sub { "Traffic in the last hour" } } }
        div data-region="numbers" {
            (tiles(&frame, &seen))
            @match &seen.calls {
                Some(calls) => (call_chart(calls)),
                None => div.notice.warn { p {
                    "Call statistics need permission to read the audit log: "
                    code { "rialto policy add allow-admin admin_audit --caller " (text::render_line(request.caller.id.as_str(), 60)) }
                } },
            }
            (unhealthy_agents(&frame, &seen))
        }
        (first_steps::panels(&request, &frame, &seen))
    };
    let live = Some(format!("{}{API}/events", frame.base));
    Ok(frame.respond_ok(&PageContent { title: "Overview", at: "", live, is_over: false, body }))
}

fn tiles(frame: &PageFrame, seen: &Overview) -> Markup {
    let latency = |value: Option<u64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value} ms"));
    html! {
        div.tiles {
            a.tile href=(frame.url("/agents")) { b { (seen.agents.all) } span { "agents, " (seen.agents.healthy) " healthy" } }
            a.tile href=(frame.url("/agents?trust=external")) { b { (seen.agents.external) } span { "external, callable by policy" } }
            a.tile href=(frame.url("/tools")) { b { (seen.skills) } span { "skills, with " (text::count_noun(seen.tools, "tool server", "tool servers")) } }
            a.tile href=(frame.url("/tasks?state=input-required&own=yes")) { b { (seen.waiting) } span { "of your tasks need input" } }
            @if let Some(calls) = &seen.calls {
                div.tile { b { @if calls.is_estimated { "≈ " } (calls.ended) @if calls.is_cut { "+" } } span { (if calls.ended == 1 { "call" } else { "calls" }) " in the last hour" } }
                div.tile { b { (calls.failed) } span { "failed, " (calls.denied) " denied" } }
                div.tile { b { (latency(calls.p50_ms)) } span { "p50 latency" } }
                div.tile { b { (latency(calls.p99_ms)) } span { "p99 latency" } }
            }
        }
    }
}

fn call_chart(calls: &RecentCalls) -> Markup {
    let ended = text::count_noun(usize::try_from(calls.ended).unwrap_or(usize::MAX), "call", "calls");
    let says = format!("{ended} in the last hour, {} failed", calls.failed + calls.denied);
    html! {
        section.panel {
            h2 { "Calls in the last hour" }
            @if calls.ended == 0 {
                p.muted { "No calls yet. Call a skill of an agent to see its traffic here." }
            } @else {
                (chart::bar_chart(&calls.per_minute, &calls.failed_per_minute, &says))
                p.muted.small {
                    "Calls per minute; failed and denied calls in red."
                    @if calls.is_estimated { " The numbers are estimated from a sample: the newest 20,000 records and about 100 records of each earlier minute." }
                    @if calls.is_cut { " The beginning of the hour is left out, because there are too many records." }
                }
            }
        }
    }
}

fn unhealthy_agents(frame: &PageFrame, seen: &Overview) -> Markup {
    html! {
        @if !seen.unwell.is_empty() {
            section.panel {
                h2 { "Unhealthy agents" }
                @for agent in &seen.unwell {
                    p {
                        (health_badge(agent.health, None)) " "
                        a href=(frame.url(&format!("/agents/{}", encode_segment(&agent.slug)))) { (text::render_line(&agent.card.name, 80)) }
                        @if let Some(why) = &agent.last_error { " " span.muted { (text::render_message_line(why, 200)) } }
                    }
                }
                @if seen.agents.unwell > seen.unwell.len() { p.muted { "And " (seen.agents.unwell - seen.unwell.len()) " more." } }
            }
        }
    }
}
