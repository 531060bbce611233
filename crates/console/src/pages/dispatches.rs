//! Why this agent: choices that were made, and what each factor counted.

use axum::response::Response;
use maud::{Markup, html};
use rialto_edge::session::API;
use rialto_model::{
    failure::Failure,
    ids::DispatchId,
    routing::{CandidateVerdict, Dispatch, DispatchCandidate},
};

use super::{
    layout::{Frame, Page},
    visit::{Visit, encoded},
};
use crate::{
    admin::{
        dispatches::{self, Filter},
        standings::{self, Known},
    },
    chart, text,
};

const HERE: &str = "/dispatches";

/// So many candidates are drawn.
const DRAWN: usize = 12;

pub(super) async fn list(visit: Visit) -> Result<Response, Failure> {
    let work = visit.query("work");
    let filter = Filter {
        work_type: work.map(str::to_owned),
        cursor: visit.query("cursor").map(DispatchId::from),
        ..Filter::default()
    };
    let (found, next) = dispatches::list(&visit.console, &visit.caller, &filter).await?;
    let known = standings::of(&visit.console, &visit.caller, &found).await?;
    let (frame, now) = (visit.frame(), visit.console.engine().now());
    let body = html! {
        div.top { div { h1 { "Routing" } p.sub { "Work that named nobody, and who got it" } } }
        form.filters method="get" action=(frame.to(HERE)) data-filter role="search" {
            div { label.vh for="work" { "Type of work" } input #work type="search" name="work" value=[work] placeholder="Type of work" autocomplete="off"; }
            button type="submit" { "Search" }
        }
        div.panel.flush data-region="choices" {
            @if found.is_empty() && (work.is_some() || filter.cursor.is_some()) {
                div.empty { p { "No choice fits. " a href=(frame.to(HERE)) { "Show all of them" } } }
            } @else if found.is_empty() {
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
                @if let Some(next) = &next { a.button rel="next" href=(frame.to(&older(work, next))) { "Older ones" } }
            }
        }
        (learnt(&known))
    };
    let live = Some(format!("{}{API}/events", frame.base));
    Ok(frame.page(&Page { title: "Routing", at: HERE, live, is_over: false, body }))
}

pub(super) async fn show(visit: Visit) -> Result<Response, Failure> {
    let found = dispatches::show(&visit.console, &visit.caller, visit.part("id")).await?;
    let frame = visit.frame();
    let body = html! {
        div.top { div { h1 { "Why this agent" } p.sub { code { (found.id) } } } }
        section.panel data-region="wanted" {
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
                    @if let Some(why) = &attempt.why_left { ", left because " (text::phrase(why, 200)) }
                }
            }
        }
        @for candidate in found.candidates.iter().take(DRAWN) { (considered(candidate)) }
        @if found.candidates.len() > DRAWN || found.more > 0 {
            p.muted { "And " (found.candidates.len().saturating_sub(DRAWN) + found.more) " more." }
        }
    };
    // How it ends is not known at first.
    let is_over = found.worker().is_none_or(|worker| worker.outcome.is_some());
    let live = Some(format!("{}{API}/events", frame.base));
    Ok(frame.page(&Page { title: "Why this agent", at: HERE, live, is_over, body }))
}

/// What is known now about those who were considered: the curves move as their work ends.
fn learnt(known: &[Known]) -> Markup {
    html! {
        div data-region="learnt" {
            @for known in known.iter().filter(|known| !known.agents.is_empty()) {
                section.panel {
                    h2 { "How well they do " (text::line(if known.work_type.is_empty() { "work without a type" } else { &known.work_type }, 80)) }
                    div.curves {
                        @for (agent, beta) in &known.agents {
                            figure {
                                figcaption { (text::line(agent, 60)) " " span.muted.small { "observed " (times(beta.observed)) } }
                                (chart::curve(beta))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn row(frame: &Frame, dispatch: &Dispatch, now: rialto_model::clock::Timestamp) -> Markup {
    let worker = dispatch.worker();
    html! {
        tr {
            td { a href=(frame.to(&format!("{HERE}/{}", encoded(dispatch.id.as_str())))) { (text::line(&called(dispatch), 80)) } }
            td data-label="Given to" { (text::line(worker.map_or("nobody", |worker| &worker.agent), 60)) }
            td data-label="Outcome" { (worker.and_then(|worker| worker.outcome).map_or("not over", |outcome| outcome.as_str())) }
            td.num data-label="Considered" { (dispatch.candidates.len() + dispatch.more) }
            td data-label="Caller" { (text::line(dispatch.caller.as_str(), 40)) }
            td data-label="When" { (text::moment(dispatch.at, now)) }
        }
    }
}

/// Where those are that are older, of the same type of work.
fn older(work: Option<&str>, next: &DispatchId) -> String {
    let work = work.map(|work| format!("work={}&", encoded(work))).unwrap_or_default();
    format!("{HERE}?{work}cursor={}", encoded(next.as_str()))
}

/// What a choice is called: by whatever was said of the work, and by its id where nothing was.
fn called(dispatch: &Dispatch) -> String {
    let work = &dispatch.work;
    let said = [work.work_type.clone(), work.description.clone(), work.required_skills.join(", ")];
    said.into_iter().find(|said| !said.trim().is_empty()).unwrap_or_else(|| dispatch.id.to_string())
}

fn considered(candidate: &DispatchCandidate) -> Markup {
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
                    CandidateVerdict::Chosen => span.tag.good { "chosen" },
                    CandidateVerdict::Passed => span.tag { "another was better" },
                    CandidateVerdict::Out(why) => span.tag.warn { "out: " (text::line(why, 120)) },
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
                    p.muted.small { "observed " (times(candidate.posterior.observed)) "; " (text::count(usize::try_from(candidate.active_tasks).unwrap_or(usize::MAX), "task", "tasks")) " now" }
                }
            }
            @for reason in candidate.reasons.iter().take(6) { p.muted.small { (text::line(reason, 200)) } }
        }
    }
}

/// How often.
pub(super) fn times(observed: u64) -> String {
    text::count(usize::try_from(observed).unwrap_or(usize::MAX), "time", "times")
}
