//! The first page: how things go, and what to do next.

use axum::response::Response;
use maud::{Markup, html};
use rialto_api_types::overview::RecentCalls;
use rialto_edge::session::API;
use rialto_model::failure::Failure;

use super::{
    agents::health,
    first_steps,
    layout::{Frame, Page},
    visit::{Visit, encoded},
};
use crate::{
    admin::overview::{Overview, overview},
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
        (first_steps::shown(&visit, &frame, &seen))
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
                div.tile { b { @if calls.is_estimated { "≈ " } (calls.ended) @if calls.is_cut { "+" } } span { (if calls.ended == 1 { "call" } else { "calls" }) " in the last hour" } }
                div.tile { b { (calls.failed) } span { "failed, " (calls.denied) " refused" } }
                div.tile { b { (some(calls.p50_ms)) } span { "p50: half of them were faster" } }
                div.tile { b { (some(calls.p99_ms)) } span { "p99: 99 of 100 were faster" } }
            }
        }
    }
}

fn hour(calls: &RecentCalls) -> Markup {
    let ended = text::count(usize::try_from(calls.ended).unwrap_or(usize::MAX), "call", "calls");
    let says = format!("{ended} in the last hour, {} of them failed", calls.failed + calls.denied);
    html! {
        section.panel {
            h2 { "Calls in the last hour" }
            @if calls.ended == 0 {
                p.muted { "None yet. This moves by itself as soon as somebody calls." }
            } @else {
                (chart::bars(&calls.per_minute, &calls.failed_per_minute, &says))
                p.muted.small {
                    "One bar for each minute; in front of it, in red, those that failed or were refused."
                    @if calls.is_estimated { " There are many records, so the numbers are made from some of them: the newest 20,000, and a hundred of about each minute before." }
                    @if calls.is_cut { " There are so many that the beginning of the hour is left out." }
                }
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
                        @if let Some(why) = &agent.last_error { " " span.muted { (text::phrase(why, 200)) } }
                    }
                }
                @if seen.agents.unwell > seen.unwell.len() { p.muted { "And " (seen.agents.unwell - seen.unwell.len()) " more." } }
            }
        }
    }
}
