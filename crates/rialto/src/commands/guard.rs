//! `rialto guard test`: guardrails tried out on a text, here without a store or an agent, or on a server.
//!
//! What was found is never printed itself: whoever reads over a shoulder, or a log of a build, is not to see it.

use std::{ops::Range, path::Path};

use rialto_console::admin::guardrails::Asked;
use rialto_guard::config::Guardrail;
use rialto_model::{ids::OrgId, json::Json, message::Content};
use serde::Deserialize;

use crate::{
    cli::{ActionName, Guard, GuardTest},
    config::Config,
    desk::{Desk, read},
    output::{self, Trouble},
};

/// What came of it, as it is told.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    verdict: String,
    findings: Vec<Finding>,
    redacted: String,
    not_asked: usize,
    /// Where the guardrails are written that were tried, where they are those in force.
    guardrails: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Finding {
    check: String,
    kind: String,
    at: Option<Range<usize>>,
    action: String,
}

/// Tries them out here, with what is configured.
pub(crate) fn run(command: &Guard, config: &Config, org: &OrgId) -> Result<(), Trouble> {
    let Guard::Test(options) = command;
    let tried = asked(options)?.look(&config.guardrails, org.as_str())?;
    show(&Json::of(&tried), options.listing.json)
}

/// Has a server try them out, with those in force there for the caller's org.
pub(crate) async fn run_there(command: &Guard, desk: &Desk) -> Result<(), Trouble> {
    let Guard::Test(options) = command;
    let asked = asked(options)?;
    let (text, data) = match &asked.part.content {
        Content::Data(data) => (None, Some(data)),
        Content::Text(text) => (Some(text), None),
        Content::Raw(_) | Content::Url(_) | Content::Unknown(_) => (None, None),
    };
    let said = [
        ("text", text.map(Json::of)),
        ("data", data.cloned()),
        ("skill", asked.skill.as_ref().map(Json::of)),
        ("target", Some(Json::of(&asked.target))),
        ("checks", asked.checks.as_ref().map(Json::of)),
        ("guardrail", asked.guardrail.as_ref().map(Json::of)),
        ("action", asked.action.as_ref().map(Json::of)),
        ("orUsual", Some(Json::of(&true))),
    ];
    let said = said.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let said: rialto_model::json::Extra = said.collect();
    let told: Json = desk.post(&["guardrails", "test"]).saying(&said).read().await?;
    show(&told, options.listing.json)
}

fn show(json: &Json, as_json: bool) -> Result<(), Trouble> {
    let told: Told = read(json)?;
    if as_json {
        output::json(json);
    } else {
        told.print();
    }
    if told.verdict == "block" {
        let mut found: Vec<String> =
            told.findings.iter().map(|it| format!("{}/{}", it.check, it.kind)).collect();
        found.sort_unstable();
        found.dedup();
        return Err(Trouble { status: 3, ..Trouble::other(format!("blocked: {}", found.join(", "))) });
    }
    Ok(())
}

// === impl Told ===

impl Told {
    fn print(&self) {
        if let Some(places) = &self.guardrails {
            let applying = if places.is_empty() { "none".to_owned() } else { places.join(", ") };
            output::line(format!("Guardrails: {applying}"));
        }
        if self.findings.is_empty() {
            output::line("Nothing was found.");
        } else {
            output::table(&["check", "kind", "bytes", "action"], self.findings.iter().map(row).collect());
            output::line("");
            output::line(self.redacted.trim_end());
            output::line("");
        }
        output::line(format!("Verdict: {}", self.verdict));
        if self.not_asked > 0 {
            let unasked = self.not_asked;
            output::note(format!("{unasked} model server(s) were not asked: this looks only here"));
        }
    }
}

fn row(finding: &Finding) -> Vec<String> {
    let place =
        finding.at.as_ref().map_or_else(|| "all".to_owned(), |at| format!("{}..{}", at.start, at.end));
    vec![finding.check.clone(), finding.kind.clone(), place, finding.action.clone()]
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
