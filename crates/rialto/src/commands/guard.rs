//! `rialto guard test`: guardrails tried out on a text, here without a store or an agent, or on a server.
//!
//! What was found is never printed itself: whoever reads over a shoulder, or a log of a build, is not to see it.

use std::path::Path;

use rialto_api_types::guardrails::{GuardrailFinding, GuardrailReport, GuardrailTest, GuardrailVerdict};
use rialto_console::admin::guardrails::Asked;
use rialto_guard::config::Guardrail;
use rialto_model::{ids::OrgId, json::Json, message::Content};

use crate::{
    cli::{ActionName, Guard, GuardTest},
    config::Config,
    desk::{Desk, read},
    output::{self, Trouble},
};

/// Tries them out here, with what is configured.
pub(crate) fn run(command: &Guard, config: &Config, org: &OrgId) -> Result<(), Trouble> {
    let Guard::Test(options) = command;
    let tried = asked(options)?.look(&config.guardrails, org.as_str())?;
    show(&Json::encode(&GuardrailReport::from(tried)), options.listing.json)
}

/// Has a server try them out, with those in force there for the caller's org.
pub(crate) async fn run_there(command: &Guard, desk: &Desk) -> Result<(), Trouble> {
    let Guard::Test(options) = command;
    let asked = asked(options)?;
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
    let told: Json = desk.post(&["guardrails", "test"]).saying(&test).read().await?;
    show(&told, options.listing.json)
}

fn show(json: &Json, as_json: bool) -> Result<(), Trouble> {
    let told: GuardrailReport = read(json)?;
    if as_json {
        output::json(json);
    } else {
        print(&told);
    }
    if told.verdict == GuardrailVerdict::Block {
        let mut found: Vec<String> =
            told.findings.iter().map(|it| format!("{}/{}", it.check, it.kind)).collect();
        found.sort_unstable();
        found.dedup();
        return Err(Trouble { status: 3, ..Trouble::other(format!("blocked: {}", found.join(", "))) });
    }
    Ok(())
}

fn print(report: &GuardrailReport) {
    if let Some(places) = &report.guardrails {
        let applying = if places.is_empty() { "none".to_owned() } else { places.join(", ") };
        output::line(format!("Guardrails: {applying}"));
    }
    if report.findings.is_empty() {
        output::line("Nothing was found.");
    } else {
        output::table(&["check", "kind", "bytes", "action"], report.findings.iter().map(row).collect());
        output::line("");
        output::line(report.redacted.trim_end());
        output::line("");
    }
    output::line(format!("Verdict: {}", report.verdict.as_str()));
    if report.not_asked > 0 {
        let unasked = report.not_asked;
        output::note(format!("{unasked} model server(s) were not asked: this looks only here"));
    }
}

fn row(finding: &GuardrailFinding) -> Vec<String> {
    let place =
        finding.at.as_ref().map_or_else(|| "all".to_owned(), |at| format!("{}..{}", at.start, at.end));
    vec![finding.check.clone(), finding.kind.clone(), place, finding.action.as_str().to_owned()]
}

/// What is to be looked through, and what for.
fn asked(options: &GuardTest) -> Result<Asked, Trouble> {
    Ok(Asked {
        checks: options.checks.clone(),
        guardrail: options.guardrail.as_deref().map(guardrail_in).transpose()?,
        action: options.action.map(ActionName::action),
        skill: options.skill.clone(),
        target: options.target.target(),
        or_usual: true,
        ..Asked::text(text(options.text.as_deref())?)
    })
}

fn guardrail_in(file: &Path) -> Result<Guardrail, Trouble> {
    let place = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| Trouble::usage(format!("{place}: {error}")))?;
    let is_json = text.trim_start().starts_with('{');
    let read = if is_json {
        serde_json::from_str(&text).map_err(|error| error.to_string())
    } else {
        toml::from_str(&text).map_err(|error| error.to_string())
    };
    read.map_err(|why| Trouble::usage(format!("{place}: {why}")))
}

fn text(given: Option<&str>) -> Result<String, Trouble> {
    match given {
        None | Some("-") => {
            std::io::read_to_string(std::io::stdin()).map_err(|error| Trouble::usage(error.to_string()))
        }
        Some(text) => Ok(text.to_owned()),
    }
}
