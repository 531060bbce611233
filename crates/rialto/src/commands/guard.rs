//! `rialto guard test`: guardrails tried out on a text, without a server, a store or an agent.
//!
//! What was found is never printed itself: whoever reads over a shoulder, or a log of a build, is not to see it.

use std::path::Path;

use rialto_guard::{
    Finding, Findings, Guards, Verdict,
    config::{Action, Check, Guardrail},
};
use rialto_model::{
    json::Json,
    message::{Content, Part},
};
use serde_json::json;

use crate::{
    cli::{Guard, GuardTest},
    output::{self, Trouble},
};

pub(crate) fn run(command: Guard) -> Result<(), Trouble> {
    match command {
        Guard::Test(options) => test(&options),
    }
}

fn test(options: &GuardTest) -> Result<(), Trouble> {
    let guardrail = guardrail(options)?;
    let guards = Guards::compile(&[guardrail]).map_err(|error| Trouble::usage(error.to_string()))?;
    let guards = guards.ok_or_else(|| Trouble::usage("the guardrail is switched off or has no checks"))?;
    let parts = [part(options.text.as_deref())?];
    let target = options.target.target();
    let findings = guards.check(&parts, target);
    let left = redacted(&guards, &parts, &findings);
    let unasked = guards.classifiers(target).count();
    if options.listing.json {
        output::json(&json!({
            "verdict": findings.verdict(),
            "findings": findings.found,
            "redacted": left,
            "notAsked": unasked,
        }));
    } else {
        show(&findings, &left);
        if unasked > 0 {
            output::note(format!("{unasked} model server(s) were not asked: this looks only here"));
        }
    }
    if findings.verdict() == Verdict::Block {
        return Err(Trouble { status: 3, ..Trouble::other(format!("blocked: {findings}")) });
    }
    Ok(())
}

fn guardrail(options: &GuardTest) -> Result<Guardrail, Trouble> {
    if let Some(file) = &options.guardrail {
        return read(file);
    }
    let unknown = |name: &String| {
        Trouble::usage(format!(
            "\"{name}\" is no check that needs no settings: pii, prompt-injection, secrets and max-tokens are; \
             others are set in a file (--guardrail)"
        ))
    };
    let check = |name: &String| Check::plain(name.trim()).ok_or_else(|| unknown(name));
    let checks = options.checks.iter().map(check).collect::<Result<_, _>>()?;
    Ok(Guardrail { checks, action: options.action.action(), ..Guardrail::default() })
}

fn read(file: &Path) -> Result<Guardrail, Trouble> {
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

/// A JSON object is looked through in its strings, anything else is a text.
fn part(text: Option<&str>) -> Result<Part, Trouble> {
    let text = match text {
        None | Some("-") => {
            std::io::read_to_string(std::io::stdin()).map_err(|error| Trouble::usage(error.to_string()))?
        }
        Some(text) => text.to_owned(),
    };
    Ok(match Json::parse(text.trim()) {
        Ok(data) if data.is_object() => Part::data(data),
        _ => Part::text(text),
    })
}

/// What is left when everything is replaced that can be, whatever is done about it.
fn redacted(guards: &Guards, parts: &[Part], findings: &Findings) -> String {
    let redacting = |finding: &Finding| Finding { action: Action::Redact, ..finding.clone() };
    let found = findings.found.iter().map(redacting).collect();
    let parts = guards.redact(parts, &Findings { found, is_cut: findings.is_cut });
    let text = |part: &Part| match &part.content {
        Content::Text(text) => text.clone(),
        Content::Data(json) => json.get().to_owned(),
        Content::Raw(_) | Content::Url(_) | Content::Unknown(_) => String::new(),
    };
    parts.iter().map(text).collect()
}

fn show(findings: &Findings, left: &str) {
    if findings.is_empty() {
        output::line("Nothing was found.");
    } else {
        output::table(&["check", "kind", "bytes", "action"], findings.found.iter().map(row).collect());
        output::line("");
        output::line(left.trim_end());
        output::line("");
    }
    output::line(format!("Verdict: {}", word(findings.verdict())));
}

fn row(finding: &Finding) -> Vec<String> {
    let place =
        finding.at.as_ref().map_or_else(|| "all".to_owned(), |at| format!("{}..{}", at.start, at.end));
    let action = json!(finding.action).as_str().unwrap_or_default().to_owned();
    vec![finding.check.to_owned(), finding.kind.to_string(), place, action]
}

const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Log => "log",
        Verdict::Warn => "warn",
        Verdict::Redact => "redact",
        Verdict::Block => "block",
    }
}
