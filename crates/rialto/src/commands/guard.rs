//! `rialto guard test`: guardrails tried out on a text, here without a store or an agent, or on a server.
//!
//! Matched text is never printed, so that it does not appear on screens or in build logs.

use std::path::Path;

use rialto_admin::guardrails::GuardrailTestRequest;
use rialto_api_types::guardrails::{GuardrailFinding, GuardrailTest, GuardrailTestResult, GuardrailVerdict};
use rialto_guardrails::config::Guardrail;
use rialto_model::{ids::OrgId, json::Json, message::Content};

use crate::{
    api_client::{ApiClient, parse_response},
    cli::{GuardActionName, GuardCommand, GuardTestOptions},
    config::Config,
    output::{self, CommandError},
};

/// Tries them out here, with what is configured.
pub(crate) fn run(command: &GuardCommand, config: &Config, org: &OrgId) -> Result<(), CommandError> {
    let GuardCommand::Test(options) = command;
    let tried = guardrail_request(options)?.run(&config.guardrails, org.as_str())?;
    show(&Json::encode(&GuardrailTestResult::from(tried)), options.listing.json)
}

/// Tests a text on a server, with the active guardrails of the caller's org.
pub(crate) async fn run_there(command: &GuardCommand, api: &ApiClient) -> Result<(), CommandError> {
    let GuardCommand::Test(options) = command;
    let asked = guardrail_request(options)?;
    let (text, data) = match asked.part.content {
        Content::Data(data) => (None, Some(data)),
        Content::Text(text) => (Some(text), None),
        Content::Raw(_) | Content::Url(_) | Content::Unknown(_) => (None, None),
    };
    let test = GuardrailTest {
        text,
        data,
        skill: asked.skill,
        target: Json::encode(&asked.target).read().ok(),
        checks: asked.checks,
        guardrail: asked.guardrail.as_ref().map(Json::encode),
        action: Json::encode(&asked.action).read().ok().flatten(),
        or_usual: true,
    };
    let response: Json = api.post(&["guardrails", "test"]).with_json(&test).read().await?;
    show(&response, options.listing.json)
}

fn show(json: &Json, as_json: bool) -> Result<(), CommandError> {
    let response: GuardrailTestResult = parse_response(json)?;
    if as_json {
        output::print_json(json);
    } else {
        print(&response);
    }
    if response.verdict == GuardrailVerdict::Block {
        let mut found: Vec<String> =
            response.findings.iter().map(|it| format!("{}/{}", it.check, it.kind)).collect();
        found.sort_unstable();
        found.dedup();
        return Err(CommandError {
            status: 3,
            ..CommandError::failed(format!("blocked: {}", found.join(", ")))
        });
    }
    Ok(())
}

fn print(report: &GuardrailTestResult) {
    if let Some(places) = &report.guardrails {
        let applying = if places.is_empty() { "none".to_owned() } else { places.join(", ") };
        output::print_line(format!("Guardrails: {applying}"));
    }
    if report.findings.is_empty() {
        output::print_line("No findings.");
    } else {
        output::print_table(
            &["check", "kind", "bytes", "action"],
            report.findings.iter().map(finding_row).collect(),
        );
        output::print_line("");
        output::print_line(report.redacted.trim_end());
        output::print_line("");
    }
    output::print_line(format!("Verdict: {}", report.verdict.as_str()));
    if report.not_asked > 0 {
        let unasked = report.not_asked;
        output::print_note(format!("{unasked} model server(s) were not called: this test runs locally"));
    }
}

fn finding_row(finding: &GuardrailFinding) -> Vec<String> {
    let place =
        finding.at.as_ref().map_or_else(|| "all".to_owned(), |at| format!("{}..{}", at.start, at.end));
    vec![finding.check.clone(), finding.kind.clone(), place, finding.action.as_str().to_owned()]
}

/// Request from the options.
fn guardrail_request(options: &GuardTestOptions) -> Result<GuardrailTestRequest, CommandError> {
    Ok(GuardrailTestRequest {
        checks: options.checks.clone(),
        guardrail: options.guardrail.as_deref().map(read_guardrail).transpose()?,
        action: options.action.map(GuardActionName::action),
        skill: options.skill.clone(),
        target: options.target.target(),
        or_usual: true,
        ..GuardrailTestRequest::from_text(read_text(options.text.as_deref())?)
    })
}

fn read_guardrail(file: &Path) -> Result<Guardrail, CommandError> {
    let place = file.display();
    let text =
        std::fs::read_to_string(file).map_err(|error| CommandError::usage(format!("{place}: {error}")))?;
    let is_json = text.trim_start().starts_with('{');
    let read = if is_json {
        serde_json::from_str(&text).map_err(|error| error.to_string())
    } else {
        toml::from_str(&text).map_err(|error| error.to_string())
    };
    read.map_err(|why| CommandError::usage(format!("{place}: {why}")))
}

fn read_text(given: Option<&str>) -> Result<String, CommandError> {
    match given {
        None | Some("-") => {
            std::io::read_to_string(std::io::stdin()).map_err(|error| CommandError::usage(error.to_string()))
        }
        Some(text) => Ok(text.to_owned()),
    }
}
