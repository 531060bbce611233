//! One agent: what it can do, how it is doing, and what is thought of it.

use std::sync::Arc;

use axum::response::Response;
use maud::{Markup, html};
use rialto_edge::session::API;
use rialto_engine::diff::CardDiff;
use rialto_model::{
    agent::{Agent, AgentTrust, Probe},
    failure::Failure,
    name,
};
use rialto_policy::{Action, Finding};

use super::{
    agents::{health, trust as level},
    dispatches::times,
    layout::{self, Frame, Page},
    visit::{Visit, encoded},
};
use crate::{
    admin::{
        agents, policies,
        standings::{self, Known},
    },
    chart,
    laid_out::pretty,
    text,
};

/// So many probes are drawn, skills listed and changes shown.
const PROBES: usize = 120;
const SKILLS: usize = 100;
const CHANGES: usize = 20;

pub(super) async fn show(visit: Visit) -> Result<Response, Failure> {
    let agent = agents::find(&visit.console, &visit.caller, visit.part("key")).await?;
    let mut probes = agents::probes(&visit.console, &agent, PROBES).await?;
    probes.reverse();
    let history = agents::history(&visit.console, &agent).await?;
    let posteriors = standings::of_agent(&visit.console, &visit.caller, &agent).await?;
    let findings = policies::about(&visit.console, &visit.caller, &agent);
    let may = visit.console.may(&visit.caller, Action::AdminAgents);
    let frame = visit.frame();
    let body = html! {
        (top(&frame, &agent, may.is_ok()))
        (layout::barred(&may))
        (waiting(&frame, &agent, may.is_ok()))
        div.columns {
            div {
                (skills(&frame, &agent))
                (probed(&probes))
                (changes(&history))
                section.panel {
                    details data-key="card" { summary { "Card as JSON" } pre tabindex="0" { code { (pretty(&agent.card.raw)) } } }
                }
            }
            div {
                (facts(&visit, &frame, &agent, may.is_ok()))
                (applies(&findings))
                (curves(&posteriors))
            }
        }
    };
    let title = text::visible(&agent.card.name, false);
    let live = Some(format!("{}{API}/events", frame.base));
    Ok(frame.page(&Page { title: &title, at: "/agents", live, is_over: false, body }))
}

pub(super) async fn trust(visit: Visit) -> Result<Response, Failure> {
    let level = visit.field("trust").unwrap_or_default();
    let agent = agents::trust(&visit.console, &visit.caller, visit.part("key"), level).await?;
    Ok(visit.go(&format!("/agents/{}", encoded(&agent.slug)), "trusted"))
}

pub(super) async fn approve(visit: Visit) -> Result<Response, Failure> {
    let agent = agents::approve(&visit.console, &visit.caller, visit.part("key")).await?;
    Ok(visit.go(&format!("/agents/{}", encoded(&agent.slug)), "approved"))
}

fn top(frame: &Frame, agent: &Agent, may: bool) -> Markup {
    let at = format!("/agents/{}", encoded(&agent.slug));
    html! {
        div.top {
            div {
                h1 { (text::line(&agent.card.name, 120)) }
                p.sub { (text::line(&agent.url, 200)) }
            }
            div.actions {
                span.actions data-region="stand" { (health(agent.health, agent.last_error.as_deref())) (level(agent.trust)) }
                @if may {
                    form.inline method="post" action=(frame.to(&format!("{at}/refresh"))) {
                        (frame.proof()) button type="submit" { "Refresh" }
                    }
                    a.button.danger href=(frame.to(&format!("{at}/remove"))) data-dialog { "Remove" }
                }
            }
        }
        div data-region="error" {
            @if let Some(why) = agent.last_error.as_deref() {
                div.said.bad { p { "It did not answer as it should: " (text::phrase(why, 400)) } }
            }
        }
        div data-region="warnings" {
            @for warning in agent.card.warnings() {
                div.said.warn { p { "Its card was changed here: " (text::phrase(&warning, 400)) } }
            }
        }
    }
}

fn waiting(frame: &Frame, agent: &Agent, may: bool) -> Markup {
    let diff = agents::pending(agent);
    html! {
        div data-region="pending" {
            @if let Some(diff) = &diff {
                section.panel {
                    h2 { "A changed card waits for approval" }
                    p { "The card before stays in use until somebody takes the new one. Read what changes: descriptions and schemas reach models as they are." }
                    (changed(diff))
                    @if may {
                        form method="post" action=(frame.to(&format!("/agents/{}/approve", encoded(&agent.slug)))) {
                            (frame.proof()) button.first type="submit" { "Approve the new card" }
                        }
                    }
                }
            }
        }
    }
}

fn skills(frame: &Frame, agent: &Agent) -> Markup {
    html! {
        section.panel data-region="skills" {
            h2 { "Skills" }
            @if agent.card.skills.is_empty() { p.muted { "Its card names no skills; it can still be sent messages." } }
            @for (at, skill) in agent.card.skills.iter().take(SKILLS).enumerate() {
                article.skill {
                    header {
                        div {
                            h3 { (text::line(&skill.name, 120)) " " code.small.muted { (text::line(&name::canonical(&agent.slug, skill.id.as_str()), 160)) } }
                            @if !skill.description.is_empty() { p.muted { (text::line(&skill.description, 600)) } }
                            @if !skill.tags.is_empty() {
                                div.tags { @for tag in skill.tags.iter().take(12) { span.tag { (text::line(tag, 40)) } } }
                            }
                        }
                        a.button href=(frame.to(&format!("/agents/{}/try/{}", encoded(&agent.slug), encoded(skill.id.as_str())))) data-dialog
                            aria-label=(format!("Try {}", text::visible(&text::cut(&skill.name, 60).0, false))) { "Try" }
                    }
                    @if let Some(schema) = &skill.input_schema {
                        details data-key=(format!("schema-{at}")) { summary { "What it takes" } pre tabindex="0" { code { (pretty(schema)) } } }
                    }
                }
            }
            @if agent.card.skills.len() > SKILLS { p.muted { "And " (agent.card.skills.len() - SKILLS) " more." } }
        }
    }
}

fn probed(probes: &[Probe]) -> Markup {
    html! {
        section.panel data-region="probes" data-watch="agents policies approvals" data-often="5000" {
            h2 { "Health and latency" }
            @if probes.is_empty() {
                p.muted { "It was not probed yet. Servers probe every agent now and then; Refresh asks at once." }
            } @else {
                p.muted.small {
                    @if probes.len() == 1 { "One probe so far" } @else { "The last " (probes.len()) " probes, the newest on the right" }
                }
                (chart::timeline(probes))
                (chart::latency(probes))
            }
        }
    }
}

fn changes(history: &[agents::Replaced]) -> Markup {
    html! {
        section.panel data-region="changes" {
            h2 { "Card history" }
            @if history.is_empty() { p.muted { "The card has not changed since the agent was registered." } }
            @for (at, old) in history.iter().take(CHANGES).enumerate() {
                details data-key=(format!("change-{at}")) open[at == 0] {
                    summary { "Changed " time datetime=(old.at.strftime("%FT%TZ")) { (old.at.strftime("%F %T UTC")) } }
                    (changed(&old.diff))
                }
            }
        }
    }
}

pub(super) fn changed(diff: &CardDiff) -> Markup {
    html! {
        div.diff {
            @if diff.is_empty() { p.muted { "Nothing that is shown to callers." } }
            @for id in &diff.added { ins { "skill " (text::line(id, 120)) } }
            @for id in &diff.removed { del { "skill " (text::line(id, 120)) } }
            @for change in &diff.changed {
                p { (change.member) " of " (text::line(&change.of, 120)) }
                del { (text::line(&change.before, 2_000)) }
                ins { (text::line(&change.after, 2_000)) }
            }
        }
    }
}

fn facts(visit: &Visit, frame: &Frame, agent: &Arc<Agent>, may: bool) -> Markup {
    let now = visit.console.engine().now();
    html! {
        section.panel data-region="facts" {
            h2 { "About it" }
            @if !agent.card.description.is_empty() { p { (text::line(&agent.card.description, 600)) } }
            dl.facts {
                dt { "Slug" } dd { code { (agent.slug) } }
                dt { "Id" } dd { code { (agent.id) } }
                @if let Some(version) = &agent.card.version { dt { "Version" } dd { (text::line(version, 60)) } }
                @for face in agent.card.interfaces.iter().take(6) {
                    dt { "Speaks" } dd { "A2A " (face.dialect) " at " (text::line(&face.url, 120)) }
                }
                dt { "Signature" } dd { (format!("{:?}", agent.signature).to_lowercase()) }
                @if may { dt { "Credential" } dd { (text::line(&agents::credential_of(&visit.console, &visit.caller, agent).unwrap_or_else(|| "none".to_owned()), 300)) } }
                dt { "Registered" } dd { (text::moment(agent.registered_at, now)) }
                dt { "Card fetched" } dd { (text::moment(agent.last_fetched_at, now)) }
                dt { "Last seen" } dd { @match agent.last_seen_at { Some(at) => (text::moment(at, now)), None => "never" } }
            }
            @if may { (trust_form(frame, agent)) }
            p { a href=(frame.to(&format!("/tasks?agent={}", encoded(&agent.slug)))) { "Its tasks" } " · "
                a href=(frame.to(&format!("/audit?agent={}", encoded(&agent.slug)))) { "Its records" } }
        }
    }
}

fn trust_form(frame: &Frame, agent: &Agent) -> Markup {
    html! {
        form.field method="post" action=(frame.to(&format!("/agents/{}/trust", encoded(&agent.slug)))) {
            (frame.proof())
            label for="level" { "Trust" }
            div.actions {
                select #level name="trust" {
                    @for trust in [AgentTrust::External, AgentTrust::Trusted] {
                        option value=(trust) selected[agent.trust == trust] { (trust) }
                    }
                }
                button type="submit" { "Change" }
            }
            p.hint { "The very next call goes by it." }
        }
    }
}

fn applies(findings: &[Finding]) -> Markup {
    html! {
        section.panel data-region="applies" {
            h2 { "Policies about your calls" }
            @if findings.is_empty() {
                p.muted { "No policy is about it, so its skills cannot be called. Trust it, or write a policy." }
            }
            @for finding in findings.iter().take(12) {
                p { b { (text::line(&finding.rule.name, 80)) } " " span.muted { (finding.outcome.to_string()) } br; (text::line(&finding.rule.summary, 200)) }
            }
        }
    }
}

fn curves(posteriors: &[Known]) -> Markup {
    html! {
        section.panel data-region="curves" {
            h2 { "How well it does its work" }
            @if posteriors.is_empty() {
                p.muted { "Nothing is known yet: it learns from work that names nobody (" code { "dispatch" } ")." }
            }
            @for known in posteriors {
                @for beta in known.agents.values() {
                    h3 { (text::line(if known.work_type.is_empty() { "(no type)" } else { &known.work_type }, 60)) }
                    (chart::curve(beta))
                    p.muted.small { "observed " (times(beta.observed)) }
                }
            }
        }
    }
}
