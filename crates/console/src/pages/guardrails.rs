//! Page of guardrails: a test on a text, and the active guardrails.

use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};
use rialto_admin::guardrails::{self, CHECKS, GuardrailTestOutcome, GuardrailTestRequest};
use rialto_guardrails::{
    config::{CheckAction as GuardAction, CheckDirection},
    scoped_rules::{GuardrailScope, ScopedGuardrail},
};
use rialto_model::{failure::Failure, json::Json};
use serde::Serialize;

use super::{
    layout::{self, PageContent},
    request::PageRequest,
};
use crate::text;

const PAGE_PATH: &str = "/guardrails";

/// Maximum number of listed findings.
const MAX_FINDINGS: usize = 100;

/// Fields of the form.
#[derive(Clone, Default)]
struct GuardrailForm {
    text: String,
    checks: Vec<String>,
    skill: String,
}

pub(super) async fn show_form(request: PageRequest) -> Result<Response, Failure> {
    show(&request, StatusCode::OK, &GuardrailForm::default(), &html! {}).await
}

pub(super) async fn test(request: PageRequest) -> Result<Response, Failure> {
    let form = GuardrailForm {
        text: request.field("text").unwrap_or_default().to_owned(),
        checks: request.fields("check"),
        skill: request.field("skill").unwrap_or_default().to_owned(),
    };
    match guardrails::test(&request.admin, &request.caller, form.test_request()).await {
        Ok(outcome) => show(&request, StatusCode::OK, &form, &result(&outcome)).await,
        Err(failure) => {
            let message = layout::error_message(Some(&failure));
            show(&request, StatusCode::UNPROCESSABLE_ENTITY, &form, &message).await
        }
    }
}

// === impl GuardrailForm ===

impl GuardrailForm {
    /// Test of the selected checks, which redact their findings, or else of the active guardrails.
    fn test_request(&self) -> GuardrailTestRequest {
        let is_picked = !self.checks.is_empty();
        GuardrailTestRequest {
            checks: is_picked.then(|| self.checks.clone()),
            action: is_picked.then_some(GuardAction::Redact),
            skill: Some(self.skill.clone()).filter(|skill| !skill.trim().is_empty()),
            target: CheckDirection::Both,
            ..GuardrailTestRequest::from_text(self.text.clone())
        }
    }
}

async fn show(
    request: &PageRequest,
    status: StatusCode,
    form: &GuardrailForm,
    result: &Markup,
) -> Result<Response, Failure> {
    let in_force = guardrails::show(&request.admin, &request.caller).await?.enabled();
    let frame = request.frame();
    let is_set = |name: &str| form.checks.iter().any(|check| check == name);
    let body = html! {
        div.top { div { h1 { "Guardrails" } p.sub { "Test guardrails on a text" } } }
        form.panel method="post" action=(frame.url(PAGE_PATH)) {
            (frame.csrf_field())
            div.field {
                label for="guarded" { "Text, or arguments as JSON" }
                textarea #guarded name="text" spellcheck="false" placeholder="Call Ann at +49 151 23456789" { "\n" (form.text) }
                p.hint { "The text is checked on this server, and neither sent nor stored." }
            }
            div.field {
                label for="skill" { "Skill" }
                input #skill type="text" name="skill" value=(form.skill) autocomplete="off" placeholder="agent.skill";
                p.hint { "Its active guardrails are tested. Select checks to test those instead:" }
            }
            div.filters {
                @for (name, does) in CHECKS { label.check { input type="checkbox" name="check" value=(name) checked[is_set(name)]; (does) } }
                button.first type="submit" { "Test" }
            }
        }
        div data-region="findings" aria-live="polite" { (result) }
        (active_table(&in_force))
    };
    Ok(frame.respond(
        status,
        &PageContent { title: "Guardrails", at: PAGE_PATH, live: None, is_over: false, body },
    ))
}

/// Table of the active guardrails.
fn active_table(all: &[ScopedGuardrail]) -> Markup {
    let whose = |placed: &ScopedGuardrail| match &placed.scope {
        GuardrailScope::All => "all callers".to_owned(),
        GuardrailScope::Org(org) => format!("the org {org}"),
        GuardrailScope::Skill(skill) => skill.clone(),
        GuardrailScope::Agent(agent) => format!("all skills of {agent}"),
    };
    html! {
        div.panel.flush {
            @if all.is_empty() {
                div.empty {
                    h2 { "No active guardrails" }
                    p { "Messages are not checked. Configure guardrails in the section " code { "[guardrails]" } " of rialto.toml; changes take effect when the file is saved." }
                }
            } @else {
                table.cards {
                    caption { "Active guardrails" }
                    thead { tr { th { "Scope" } th { "Checks" } th { "Action" } } }
                    tbody { @for placed in all {
                        tr {
                            td { (text::render_line(&whose(placed), 120)) }
                            td data-label="Checks" { @for check in &placed.guardrail.checks { span.tag { (text::render_line(&config_word(check, "type"), 60)) } " " } }
                            td data-label="Action" { (config_word(&placed.guardrail.action, "")) }
                        }
                    } }
                }
            }
        }
    }
}

/// Word for a value in the configuration, or for one of its members.
fn config_word<T: Serialize>(value: &T, member: &str) -> String {
    let value = Json::encode(value).value();
    let found = if member.is_empty() { &value } else { &value[member] };
    found.as_str().unwrap_or_default().to_owned()
}

fn result(outcome: &GuardrailTestOutcome) -> Markup {
    let found = &outcome.findings.found;
    html! {
        @if found.is_empty() {
            div.notice.good tabindex="-1" { p { "No findings: the text would pass." } }
        } @else {
            div.notice.warn tabindex="-1" { p { (text::count_noun(found.len(), "finding", "findings")) "; verdict: " b { (format!("{:?}", outcome.findings.verdict()).to_lowercase()) } "." } }
            section.panel { h2 { "Redacted text" } pre tabindex="0" { code { (text::escape_invisible(&text::truncate(&outcome.redacted, 20_000).0, true)) } } }
            div.panel.flush {
                table.cards {
                    thead { tr { th { "Check" } th { "Kind" } th { "Bytes" } } }
                    tbody { @for finding in found.iter().take(MAX_FINDINGS) {
                        tr {
                            td { (finding.check) }
                            td data-label="Kind" { (text::render_line(&finding.kind, 80)) }
                            td data-label="Bytes" { @match &finding.at { Some(at) => { (at.start) " to " (at.end) } None => "all" } }
                        }
                    } }
                }
            }
        }
    }
}
