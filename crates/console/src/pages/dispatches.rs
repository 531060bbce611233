//! Why this agent: choices that were made, and what each factor counted.

use axum::response::Response;
use maud::{Markup, html};
use rialto_model::{
    failure::Failure,
    routing::{Candidate, Dispatch, Verdict},
};

use super::{
    layout::{Frame, Page},
    visit::{Visit, encoded},
};
use crate::{admin::dispatches, chart, text};

const HERE: &str = "/dispatches";

/// So many candidates are drawn.
const DRAWN: usize = 12;

pub(super) async fn list(visit: Visit) -> Result<Response, Failure> {
    let work = visit.query("work");
    let (found, next) = dispatches::list(&visit.console, &visit.caller, work, visit.query("cursor")).await?;
    let (frame, now) = (visit.frame(), visit.console.engine().now());
    let body = html! {
        div.top { div { h1 { "Routing" } p.sub { "Work that named nobody, and who got it" } } }
        form.filters method="get" action=(frame.to(HERE)) data-filter role="search" {
            div { label.vh for="work" { "Type of work" } input #work type="search" name="work" value=[work] placeholder="Type of work" autocomplete="off"; }
            button type="submit" { "Search" }
        }
        div.panel.flush data-region="choices" {
            @if found.is_empty() {
                div.empty {
                    h2 { "No choices yet" }
                    p { "Work can be given to whoever does it best, with the tool " code { "dispatch" } " or POST /api/v1/dispatch." }
                }
            } @else {
                table.cards {
                    thead { tr { th { "Work" } th { "Given to" } th { "Outcome" } th.num { "Considered" } th { "Caller" } th { "When" } } }
                    tbody { @for dispatch in &found { (row(&frame, dispatch, now)) } }
                }
            }
            div.pages {
                span data-count { (text::count(found.len(), "choice", "choices")) " on this page" }
                @if let Some(next) = &next { a.button rel="next" href=(frame.to(&format!("{HERE}?cursor={}", encoded(next.as_str())))) { "Older ones" } }
            }
        }
    };
    Ok(frame.page(&Page { title: "Routing", at: HERE, live: None, is_over: false, body }))
}

pub(super) async fn show(visit: Visit) -> Result<Response, Failure> {
    let found = dispatches::show(&visit.console, &visit.caller, visit.part("id")).await?;
    let frame = visit.frame();
    let body = html! {
        div.top { div { h1 { "Why this agent" } p.sub { code { (found.id) } } } }
        section.panel {
            h2 { "What was wanted" }
            dl.facts {
                dt { "Type" } dd { (text::line(&found.work.work_type, 120)) }
                dt { "Description" } dd { (text::line(&found.work.description, 800)) }
                @if !found.work.required_skills.is_empty() { dt { "Must have" } dd { (text::line(&found.work.required_skills.join(", "), 400)) } }
                dt { "Caller" } dd { (text::line(found.caller.as_str(), 80)) }
                dt { "When" } dd { (found.at.strftime("%F %T UTC")) }
                dt { "Seed" } dd { code { (found.seed) } }
            }
            @for attempt in &found.attempts {
                p {
                    "Given to " a href=(frame.to(&format!("/agents/{}", encoded(attempt.agent_id.as_str())))) { (text::line(&attempt.agent, 80)) }
                    ", " a href=(frame.to(&format!("/tasks/{}", encoded(attempt.task_id.as_str())))) { "its task" } ": "
                    (attempt.outcome.map_or("not over", |outcome| outcome.as_str()))
                    @if let Some(why) = &attempt.why_left { ", left because " (text::line(why, 200)) }
                }
            }
        }
        @for candidate in found.candidates.iter().take(DRAWN) { (considered(candidate)) }
        @if found.candidates.len() > DRAWN || found.more > 0 {
            p.muted { "And " (found.candidates.len().saturating_sub(DRAWN) + found.more) " more." }
        }
    };
    Ok(frame.page(&Page { title: "Why this agent", at: HERE, live: None, is_over: false, body }))
}

fn row(frame: &Frame, dispatch: &Dispatch, now: rialto_model::clock::Timestamp) -> Markup {
    let worker = dispatch.worker();
    let work = if dispatch.work.work_type.is_empty() {
        &dispatch.work.description
    } else {
        &dispatch.work.work_type
    };
    html! {
        tr {
            td { a href=(frame.to(&format!("{HERE}/{}", encoded(dispatch.id.as_str())))) { (text::line(work, 80)) } }
            td data-label="Given to" { (text::line(worker.map_or("nobody", |worker| &worker.agent), 60)) }
            td data-label="Outcome" { (worker.and_then(|worker| worker.outcome).map_or("not over", |outcome| outcome.as_str())) }
            td.num data-label="Considered" { (dispatch.candidates.len() + dispatch.more) }
            td data-label="Caller" { (text::line(dispatch.caller.as_str(), 40)) }
            td data-label="When" { (text::moment(dispatch.at, now)) }
        }
    }
}

fn considered(candidate: &Candidate) -> Markup {
    let factors = [
        ("fits", candidate.capability_score),
        ("health", candidate.health_factor),
        ("load", candidate.load_factor),
        ("cost", candidate.cost_factor),
    ];
    html! {
        section.panel {
            div.top {
                h2 { (text::line(&candidate.agent, 80)) }
                @match &candidate.verdict {
                    Verdict::Chosen => span.tag.good { "chosen" },
                    Verdict::Passed => span.tag { "another was better" },
                    Verdict::Out(why) => span.tag.warn { "out: " (text::line(why, 120)) },
                }
            }
            div.columns {
                dl.facts {
                    @for (name, value) in factors { dt { (name) " " (format!("{value:.2}")) } dd { (chart::share(value)) } }
                    @if let Some(draw) = candidate.draw { dt { "draw " (format!("{draw:.2}")) } dd { (chart::share(draw)) } }
                    @if let Some(score) = candidate.score { dt { b { "score " (format!("{score:.2}")) } } dd { (chart::share(score)) } }
                }
                div {
                    (chart::curve(&candidate.posterior))
                    p.muted.small { "observed " (candidate.posterior.observed) " times; " (candidate.active_tasks) " tasks now" }
                }
            }
            @for reason in candidate.reasons.iter().take(6) { p.muted.small { (text::line(reason, 200)) } }
        }
    }
}
