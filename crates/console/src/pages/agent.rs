//! Page of an agent: skills, health, card history, trust, policies and learned success rates.

use std::sync::Arc;

use axum::response::Response;
use maud::{Markup, html};
use rialto_admin::{
    agent_scores::{self, WorkTypeScores},
    agents, policies,
};
use rialto_engine::diff::CardDiff;
use rialto_http_server::session::API;
use rialto_model::{
    agent::{Agent, AgentTrust, Probe},
    failure::Failure,
    name,
};
use rialto_policy::{Action, PolicyExplanation};

use super::{
    agents::{health_badge, trust_badge},
    dispatches::observation_count,
    layout::{self, PageContent, PageFrame},
    request::{PageRequest, encode_segment},
};
use crate::{chart, pretty_json::pretty_json, text};

/// Maximum number of probes, skills and card changes on the page.
const MAX_PROBES: usize = 120;
const MAX_SKILLS: usize = 100;
const MAX_CHANGES: usize = 20;

pub(super) async fn show(request: PageRequest) -> Result<Response, Failure> {
    let agent = agents::find(&request.admin, &request.caller, request.path_param("key")).await?;
    let mut probes = agents::probes(&request.admin, &agent, MAX_PROBES).await?;
    probes.reverse();
    let history = agents::history(&request.admin, &agent).await?;
    let scores = agent_scores::scores_of_agent(&request.admin, &request.caller, &agent).await?;
    let findings = policies::policies_for_agent(&request.admin, &request.caller, &agent);
    let may = request.admin.check_admin(&request.caller, Action::AdminAgents);
    let frame = request.frame();
    let body = html! {
        (agent_header(&frame, &agent, may.is_ok()))
        (layout::read_only_notice(&may))
        (pending_card(&frame, &agent, may.is_ok()))
        div.columns {
            div {
                (skills(&frame, &agent))
                (probe_charts(&probes))
                (card_history(&history))
                section.panel {
                    details data-key="card" { summary { "Card as JSON" } pre tabindex="0" { code { (pretty_json(&agent.card.raw)) } } }
                }
            }
            div {
                (details(&request, &frame, &agent, may.is_ok()))
                (applicable_policies(&findings))
                (success_rates(&scores))
            }
        }
    };
    let title = text::escape_invisible(&agent.card.name, false);
    let live = Some(format!("{}{API}/events", frame.base));
    Ok(frame.respond_ok(&PageContent { title: &title, at: "/agents", live, is_over: false, body }))
}

pub(super) async fn trust(request: PageRequest) -> Result<Response, Failure> {
    let level = request.field("trust").unwrap_or_default();
    let agent = agents::set_trust(&request.admin, &request.caller, request.path_param("key"), level).await?;
    Ok(request.redirect(&format!("/agents/{}", encode_segment(&agent.slug)), "trusted"))
}

pub(super) async fn approve(request: PageRequest) -> Result<Response, Failure> {
    let agent = agents::approve(&request.admin, &request.caller, request.path_param("key")).await?;
    Ok(request.redirect(&format!("/agents/{}", encode_segment(&agent.slug)), "approved"))
}

fn agent_header(frame: &PageFrame, agent: &Agent, may: bool) -> Markup {
    let at = format!("/agents/{}", encode_segment(&agent.slug));
    html! {
        div.top {
            div {
                h1 { (text::render_line(&agent.card.name, 120)) }
                p.sub { (text::render_line(&agent.url, 200)) }
            }
            div.actions {
                span.actions data-region="stand" { (health_badge(agent.health, agent.last_error.as_deref())) (trust_badge(agent.trust)) }
                @if may {
                    form.inline method="post" action=(frame.url(&format!("{at}/refresh"))) {
                        (frame.csrf_field()) button type="submit" { "Refresh" }
                    }
                    a.button.danger href=(frame.url(&format!("{at}/remove"))) data-dialog { "Remove" }
                }
            }
        }
        div data-region="error" {
            @if let Some(why) = agent.last_error.as_deref() {
                div.notice.bad { p { "Last probe failed: " (text::render_message_line(why, 400)) } }
            }
        }
        div data-region="warnings" {
            @for warning in agent.card.warnings() {
                div.notice.warn { p { "Card was corrected: " (text::render_message_line(&warning, 400)) } }
            }
        }
    }
}

fn pending_card(frame: &PageFrame, agent: &Agent, may: bool) -> Markup {
    let diff = agents::pending_changes(agent);
    html! {
        div data-region="pending" {
            @if let Some(diff) = &diff {
                section.panel {
                    h2 { "Card change waiting for approval" }
                    p { "The previous card stays in use until the new one is approved. Review the changes: descriptions and schemas are passed to models unchanged." }
                    (card_diff(diff))
                    @if may {
                        form method="post" action=(frame.url(&format!("/agents/{}/approve", encode_segment(&agent.slug)))) {
                            (frame.csrf_field()) button.first type="submit" { "Approve the new card" }
                        }
                    }
                }
            }
        }
    }
}

fn skills(frame: &PageFrame, agent: &Agent) -> Markup {
    html! {
        section.panel data-region="skills" {
            h2 { "Skills" }
            @if agent.card.skills.is_empty() { p.muted { "The card lists no skills. The agent can still receive messages." } }
            @for (at, skill) in agent.card.skills.iter().take(MAX_SKILLS).enumerate() {
                article.skill {
                    header {
                        div {
                            h3 { (text::render_line(&skill.name, 120)) " " code.small.muted { (text::render_line(&name::canonical(&agent.slug, skill.id.as_str()), 160)) } }
                            @if !skill.description.is_empty() { p.muted { (text::render_line(&skill.description, 600)) } }
                            @if !skill.tags.is_empty() {
                                div.tags { @for tag in skill.tags.iter().take(12) { span.tag { (text::render_line(tag, 40)) } } }
                            }
                        }
                        a.button href=(frame.url(&format!("/agents/{}/try/{}", encode_segment(&agent.slug), encode_segment(skill.id.as_str())))) data-dialog
                            aria-label=(format!("Try {}", text::escape_invisible(&text::truncate(&skill.name, 60).0, false))) { "Try" }
                    }
                    @if let Some(schema) = &skill.input_schema {
                        details data-key=(format!("schema-{at}")) { summary { "Input schema" } pre tabindex="0" { code { (pretty_json(schema)) } } }
                    }
                }
            }
            @if agent.card.skills.len() > MAX_SKILLS { p.muted { "And " (agent.card.skills.len() - MAX_SKILLS) " more." } }
        }
    }
}

fn probe_charts(probes: &[Probe]) -> Markup {
    html! {
        section.panel data-region="probes" data-watch="agents policies approvals" data-often="5000" {
            h2 { "Health and latency" }
            @if probes.is_empty() {
                p.muted { "Not probed yet. Servers probe agents regularly; use Refresh to probe it now." }
            } @else {
                p.muted.small {
                    @if probes.len() == 1 { "1 probe" } @else { "Last " (probes.len()) " probes, newest on the right" }
                }
                (chart::health_timeline(probes))
                (chart::latency_chart(probes))
            }
        }
    }
}

fn card_history(history: &[agents::CardHistoryEntry]) -> Markup {
    html! {
        section.panel data-region="changes" {
            h2 { "Card history" }
            @if history.is_empty() { p.muted { "The card has not changed since the agent was registered." } }
            @for (at, old) in history.iter().take(MAX_CHANGES).enumerate() {
                details data-key=(format!("change-{at}")) open[at == 0] {
                    summary { "Changed " time datetime=(old.at.strftime("%FT%TZ")) { (old.at.strftime("%F %T UTC")) } }
                    (card_diff(&old.diff))
                }
            }
        }
    }
}

pub(super) fn card_diff(diff: &CardDiff) -> Markup {
    html! {
        div.diff {
            @if diff.is_empty() { p.muted { "No changes that callers see." } }
            @for id in &diff.added { ins { "skill " (text::render_line(id, 120)) } }
            @for id in &diff.removed { del { "skill " (text::render_line(id, 120)) } }
            @for change in &diff.changed {
                p { (change.member) " of " (text::render_line(&change.of, 120)) }
                del { (text::render_line(&change.before, 2_000)) }
                ins { (text::render_line(&change.after, 2_000)) }
            }
        }
    }
}

fn details(request: &PageRequest, frame: &PageFrame, agent: &Arc<Agent>, may: bool) -> Markup {
    let now = request.admin.engine().now();
    html! {
        section.panel data-region="facts" {
            h2 { "Details" }
            @if !agent.card.description.is_empty() { p { (text::render_line(&agent.card.description, 600)) } }
            dl.facts {
                dt { "Slug" } dd { code { (agent.slug) } }
                dt { "Id" } dd { code { (agent.id) } }
                @if let Some(version) = &agent.card.version { dt { "Version" } dd { (text::render_line(version, 60)) } }
                @for face in agent.card.interfaces.iter().take(6) {
                    dt { "Protocol" } dd { "A2A " (face.dialect) " at " (text::render_line(&face.url, 120)) }
                }
                dt { "Signature" } dd { (format!("{:?}", agent.signature).to_lowercase()) }
                @if may { dt { "Credential" } dd { (text::render_line(&agents::describe_credential(&request.admin, &request.caller, agent).unwrap_or_else(|| "none".to_owned()), 300)) } }
                dt { "Registered" } dd { (text::time_ago(agent.registered_at, now)) }
                dt { "Card fetched" } dd { (text::time_ago(agent.last_fetched_at, now)) }
                dt { "Last seen" } dd { @match agent.last_seen_at { Some(at) => (text::time_ago(at, now)), None => "never" } }
            }
            @if may { (trust_form(frame, agent)) }
            p { a href=(frame.url(&format!("/tasks?agent={}", encode_segment(&agent.slug)))) { "Tasks of this agent" } " · "
                a href=(frame.url(&format!("/audit?agent={}", encode_segment(&agent.slug)))) { "Audit log" } }
        }
    }
}

fn trust_form(frame: &PageFrame, agent: &Agent) -> Markup {
    html! {
        form.field method="post" action=(frame.url(&format!("/agents/{}/trust", encode_segment(&agent.slug)))) {
            (frame.csrf_field())
            label for="level" { "Trust" }
            div.actions {
                select #level name="trust" {
                    @for trust in [AgentTrust::External, AgentTrust::Trusted] {
                        option value=(trust) selected[agent.trust == trust] { (trust) }
                    }
                }
                button type="submit" { "Change" }
            }
            p.hint { "Takes effect immediately." }
        }
    }
}

fn applicable_policies(findings: &[PolicyExplanation]) -> Markup {
    html! {
        section.panel data-region="applies" {
            h2 { "Policies for your calls" }
            @if findings.is_empty() {
                p.muted { "No policy applies, so you cannot call its skills. Set its trust level to trusted, or create a policy." }
            }
            @for finding in findings.iter().take(12) {
                p { b { (text::render_line(&finding.rule.name, 80)) } " " span.muted { (finding.outcome.to_string()) } br; (text::render_line(&finding.rule.summary, 200)) }
            }
        }
    }
}

fn success_rates(scores: &[WorkTypeScores]) -> Markup {
    html! {
        section.panel data-region="curves" {
            h2 { "Learned success rates" }
            @if scores.is_empty() {
                p.muted { "No observations yet. Rates are learned from dispatched work (" code { "dispatch" } ")." }
            }
            @for work in scores {
                @for beta in work.agents.values() {
                    h3 { (text::render_line(if work.work_type.is_empty() { "(no type)" } else { &work.work_type }, 60)) }
                    (chart::beta_curve(beta))
                    p.muted.small { "observed " (observation_count(beta.observed)) }
                }
            }
        }
    }
}
