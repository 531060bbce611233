//! A bench to try guardrails on.

use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};
use rialto_guard::{
    config::{Action as Then, Target},
    setting::{Placed, Whose},
};
use rialto_model::{failure::Failure, json::Json};
use serde::Serialize;

use super::{
    layout::{self, Page},
    visit::Visit,
};
use crate::{
    admin::guardrails::{self, Asked, CHECKS, Tried},
    text,
};

const HERE: &str = "/guardrails";

/// So many findings are listed.
const LISTED: usize = 100;

/// What is in the form.
#[derive(Clone, Default)]
struct Given {
    text: String,
    checks: Vec<String>,
    skill: String,
}

pub(super) async fn bench(visit: Visit) -> Result<Response, Failure> {
    show(&visit, StatusCode::OK, &Given::default(), &html! {}).await
}

pub(super) async fn test(visit: Visit) -> Result<Response, Failure> {
    let given = Given {
        text: visit.field("text").unwrap_or_default().to_owned(),
        checks: visit.fields("check"),
        skill: visit.field("skill").unwrap_or_default().to_owned(),
    };
    match guardrails::test(&visit.console, &visit.caller, given.asked()).await {
        Ok(tried) => show(&visit, StatusCode::OK, &given, &answered(&tried)).await,
        Err(failure) => {
            let said = layout::refused(Some(&failure));
            show(&visit, StatusCode::UNPROCESSABLE_ENTITY, &given, &said).await
        }
    }
}

// === impl Given ===

impl Given {
    /// Checks that are picked replace what they find; those in force do what they do.
    fn asked(&self) -> Asked {
        let is_picked = !self.checks.is_empty();
        Asked {
            checks: is_picked.then(|| self.checks.clone()),
            action: is_picked.then_some(Then::Redact),
            skill: Some(self.skill.clone()).filter(|skill| !skill.trim().is_empty()),
            target: Target::Both,
            ..Asked::text(self.text.clone())
        }
    }
}

async fn show(visit: &Visit, status: StatusCode, asked: &Given, said: &Markup) -> Result<Response, Failure> {
    let in_force = guardrails::show(&visit.console, &visit.caller).await?.placed();
    let frame = visit.frame();
    let is_set = |name: &str| asked.checks.iter().any(|check| check == name);
    let body = html! {
        div.top { div { h1 { "Guardrails" } p.sub { "What would be found in a text" } } }
        form.panel method="post" action=(frame.to(HERE)) {
            (frame.proof())
            div.field {
                label for="guarded" { "Text, or arguments as JSON" }
                textarea #guarded name="text" spellcheck="false" placeholder="Call Ann at +49 151 23456789" { "\n" (asked.text) }
                p.hint { "It is looked through here, sent nowhere and not kept." }
            }
            div.field {
                label for="skill" { "On the way to" }
                input #skill type="text" name="skill" value=(asked.skill) autocomplete="off" placeholder="agent.skill";
                p.hint { "The guardrails in force there are asked. Pick checks to try those instead, whatever is in force:" }
            }
            div.filters {
                @for (name, does) in CHECKS { label.check { input type="checkbox" name="check" value=(name) checked[is_set(name)]; (does) } }
                button.first type="submit" { "Look through it" }
            }
        }
        div data-region="findings" aria-live="polite" { (said) }
        (placed(&in_force))
    };
    Ok(frame.answer(status, &Page { title: "Guardrails", at: HERE, live: None, is_over: false, body }))
}

/// Those in force, as the configuration says.
fn placed(all: &[Placed]) -> Markup {
    let whose = |placed: &Placed| match &placed.whose {
        Whose::All => "everybody".to_owned(),
        Whose::Org(org) => format!("the org {org}"),
        Whose::Skill(skill) => skill.clone(),
        Whose::Agent(agent) => format!("all skills of {agent}"),
    };
    html! {
        div.panel.flush {
            @if all.is_empty() {
                div.empty {
                    h2 { "No guardrails are in force" }
                    p { "Nothing that is said is looked through. They are set in the section " code { "[guardrails]" } " of the configuration, and count as soon as it is saved." }
                }
            } @else {
                table.cards {
                    caption { "In force" }
                    thead { tr { th { "For" } th { "Looks for" } th { "Then" } } }
                    tbody { @for placed in all {
                        tr {
                            td { (text::line(&whose(placed), 120)) }
                            td data-label="Looks for" { @for check in &placed.guardrail.checks { span.tag { (text::line(&word(check, "type"), 60)) } " " } }
                            td data-label="Then" { (word(&placed.guardrail.action, "")) }
                        }
                    } }
                }
            }
        }
    }
}

/// What something is called in the configuration: itself, or a member of it.
fn word<T: Serialize>(value: &T, member: &str) -> String {
    let value = Json::encode(value).value();
    let found = if member.is_empty() { &value } else { &value[member] };
    found.as_str().unwrap_or_default().to_owned()
}

fn answered(tried: &Tried) -> Markup {
    let found = &tried.findings.found;
    html! {
        @if found.is_empty() {
            div.said.good tabindex="-1" { p { "Nothing was found: it would pass." } }
        } @else {
            div.said.warn tabindex="-1" { p { (text::count(found.len(), "thing was", "things were")) " found; the verdict is " b { (format!("{:?}", tried.findings.verdict()).to_lowercase()) } "." } }
            section.panel { h2 { "What is left" } pre tabindex="0" { code { (text::visible(&text::cut(&tried.left, 20_000).0, true)) } } }
            div.panel.flush {
                table.cards {
                    thead { tr { th { "Check" } th { "Kind" } th { "Bytes" } } }
                    tbody { @for finding in found.iter().take(LISTED) {
                        tr {
                            td { (finding.check) }
                            td data-label="Kind" { (text::line(&finding.kind, 80)) }
                            td data-label="Bytes" { @match &finding.at { Some(at) => { (at.start) " to " (at.end) } None => "all of it" } }
                        }
                    } }
                }
            }
        }
    }
}
