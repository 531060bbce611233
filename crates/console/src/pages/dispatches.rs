//! Pages of routing decisions: their candidates, factors and learned success rates.

use axum::response::Response;
use maud::{Markup, html};
use rialto_admin::{
    agent_scores::{self, WorkTypeScores},
    dispatches::{self, DispatchQuery},
};
use rialto_http_server::session::API;
use rialto_model::{
    failure::Failure,
    ids::DispatchId,
    routing::{CandidateVerdict, Dispatch, DispatchCandidate},
};

use super::{
    layout::{PageContent, PageFrame},
    request::{PageRequest, encode_segment},
};
use crate::{chart, text};

const PAGE_PATH: &str = "/dispatches";

/// Maximum number of candidates on the page of a decision.
const MAX_CANDIDATES: usize = 12;

pub(super) async fn list(request: PageRequest) -> Result<Response, Failure> {
    let work = request.query("work");
    let filter = DispatchQuery {
        work_type: work.map(str::to_owned),
        cursor: request.query("cursor").map(DispatchId::from),
        ..DispatchQuery::default()
    };
    let (found, next) = dispatches::list(&request.admin, &request.caller, &filter).await?;
    let scores = agent_scores::scores_of_candidates(&request.admin, &request.caller, &found).await?;
    let (frame, now) = (request.frame(), request.admin.engine().now());
    let body = html! {
        div.top { div { h1 { "Routing" } p.sub { "Routing decisions" } } }
        form.filters method="get" action=(frame.url(PAGE_PATH)) data-filter role="search" {
            div { label.vh for="work" { "Type of work" } input #work type="search" name="work" value=[work] placeholder="Type of work" autocomplete="off"; }
            button type="submit" { "Search" }
        }
        div.panel.flush data-region="choices" {
            @if found.is_empty() && (work.is_some() || filter.cursor.is_some()) {
                div.empty { p { "No decisions match. " a href=(frame.url(PAGE_PATH)) { "Show all" } } }
            } @else if found.is_empty() {
                div.empty {
                    h2 { "No routing decisions yet" }
                    p { "Route work to the best agent with the tool " code { "dispatch" } " or POST /api/v1/dispatch." }
                }
            } @else {
                table.cards {
                    thead { tr { th { "Work" } th { "Agent" } th { "Outcome" } th.num { "Candidates" } th { "Caller" } th { "Time" } } }
                    tbody { @for dispatch in &found { (row(&frame, dispatch, now)) } }
                }
            }
            div.pages {
                span data-count { (text::count_noun(found.len(), "decision", "decisions")) " on this page" }
                @if let Some(next) = &next { a.button rel="next" href=(frame.url(&next_page_path(work, next))) { "Older" } }
            }
        }
        (success_rates(&scores))
    };
    let live = Some(format!("{}{API}/events", frame.base));
    Ok(frame.respond_ok(&PageContent { title: "Routing", at: PAGE_PATH, live, is_over: false, body }))
}

pub(super) async fn show(request: PageRequest) -> Result<Response, Failure> {
    let found = dispatches::show(&request.admin, &request.caller, request.path_param("id")).await?;
    let frame = request.frame();
    let body = html! {
        div.top { div { h1 { "Routing decision" } p.sub { code { (found.id) } } } }
        section.panel data-region="wanted" {
            h2 { "Work" }
            dl.facts {
                dt { "Type" } dd { (text::render_line(&found.work.work_type, 120)) }
                dt { "Description" } dd { (text::render_line(&found.work.description, 800)) }
                @if !found.work.required_skills.is_empty() { dt { "Required skills" } dd { (text::render_line(&found.work.required_skills.join(", "), 400)) } }
                dt { "Caller" } dd { (text::render_line(found.caller.as_str(), 80)) }
                dt { "Time" } dd { (found.at.strftime("%F %T UTC")) }
                dt { "Seed" } dd { code { (found.seed) } }
            }
            @for attempt in &found.attempts {
                p {
                    "Agent " a href=(frame.url(&format!("/agents/{}", encode_segment(attempt.agent_id.as_str())))) { (text::render_line(&attempt.agent, 80)) }
                    ", " a href=(frame.url(&format!("/tasks/{}", encode_segment(attempt.task_id.as_str())))) { "task" } ": "
                    (attempt.outcome.map_or("active", |outcome| outcome.as_str()))
                    @if let Some(why) = &attempt.why_left { ", replaced because " (text::render_message_line(why, 200)) }
                }
            }
        }
        @for candidate in found.candidates.iter().take(MAX_CANDIDATES) { (candidate_panel(candidate)) }
        @if found.candidates.len() > MAX_CANDIDATES || found.more > 0 {
            p.muted { "And " (found.candidates.len().saturating_sub(MAX_CANDIDATES) + found.more) " more." }
        }
    };
    // The outcome is not known until the task has ended.
    let is_over = found.worker().is_none_or(|worker| worker.outcome.is_some());
    let live = Some(format!("{}{API}/events", frame.base));
    Ok(frame.respond_ok(&PageContent { title: "Routing decision", at: PAGE_PATH, live, is_over, body }))
}

/// Learned success rates of the candidates, which change as their tasks end.
fn success_rates(scores: &[WorkTypeScores]) -> Markup {
    html! {
        div data-region="learnt" {
            @for work in scores.iter().filter(|work| !work.agents.is_empty()) {
                section.panel {
                    h2 { "Learned success rates: " (text::render_line(if work.work_type.is_empty() { "work without a type" } else { &work.work_type }, 80)) }
                    div.curves {
                        @for (agent, beta) in &work.agents {
                            figure {
                                figcaption { (text::render_line(agent, 60)) " " span.muted.small { "observed " (observation_count(beta.observed)) } }
                                (chart::beta_curve(beta))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn row(frame: &PageFrame, dispatch: &Dispatch, now: rialto_model::clock::Timestamp) -> Markup {
    let worker = dispatch.worker();
    html! {
        tr {
            td { a href=(frame.url(&format!("{PAGE_PATH}/{}", encode_segment(dispatch.id.as_str())))) { (text::render_line(&dispatch_title(dispatch), 80)) } }
            td data-label="Agent" { (text::render_line(worker.map_or("none", |worker| &worker.agent), 60)) }
            td data-label="Outcome" { (worker.and_then(|worker| worker.outcome).map_or("active", |outcome| outcome.as_str())) }
            td.num data-label="Candidates" { (dispatch.candidates.len() + dispatch.more) }
            td data-label="Caller" { (text::render_line(dispatch.caller.as_str(), 40)) }
            td data-label="Time" { (text::time_ago(dispatch.at, now)) }
        }
    }
}

/// Path of the next page, for the same type of work.
fn next_page_path(work: Option<&str>, next: &DispatchId) -> String {
    let work = work.map(|work| format!("work={}&", encode_segment(work))).unwrap_or_default();
    format!("{PAGE_PATH}?{work}cursor={}", encode_segment(next.as_str()))
}

/// Title of a decision: its type of work, description or skills, or else its id.
fn dispatch_title(dispatch: &Dispatch) -> String {
    let work = &dispatch.work;
    let names = [work.work_type.clone(), work.description.clone(), work.required_skills.join(", ")];
    names.into_iter().find(|name| !name.trim().is_empty()).unwrap_or_else(|| dispatch.id.to_string())
}

fn candidate_panel(candidate: &DispatchCandidate) -> Markup {
    let factors = [
        ("capability", candidate.capability_score),
        ("health", candidate.health_factor),
        ("load", candidate.load_factor),
        ("cost", candidate.cost_factor),
    ];
    html! {
        section.panel {
            div.top {
                h2 { (text::render_line(&candidate.agent, 80)) }
                @match &candidate.verdict {
                    CandidateVerdict::Chosen => span.tag.good { "selected" },
                    CandidateVerdict::Passed => span.tag { "not selected" },
                    CandidateVerdict::Out(why) => span.tag.warn { "excluded: " (text::render_line(why, 120)) },
                }
            }
            div.columns {
                dl.facts {
                    @for (name, value) in factors { dt { (name) " " (format!("{value:.2}")) } dd { (chart::share_bar(value)) } }
                    @if let Some(draw) = candidate.draw { dt { "sample " (format!("{draw:.2}")) } dd { (chart::share_bar(draw)) } }
                    @if let Some(score) = candidate.score { dt { b { "score " (format!("{score:.2}")) } } dd { (chart::share_bar(score)) } }
                }
                div {
                    (chart::beta_curve(&candidate.posterior))
                    p.muted.small { "observed " (observation_count(candidate.posterior.observed)) "; " (text::count_noun(usize::try_from(candidate.active_tasks).unwrap_or(usize::MAX), "task", "tasks")) " active" }
                }
            }
            @for reason in candidate.reasons.iter().take(6) { p.muted.small { (text::render_line(reason, 200)) } }
        }
    }
}

/// Number of observations with its noun.
pub(super) fn observation_count(observed: u64) -> String {
    text::count_noun(usize::try_from(observed).unwrap_or(usize::MAX), "time", "times")
}
