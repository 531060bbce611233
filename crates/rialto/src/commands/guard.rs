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
    cli::{ActionName, Guard, GuardTest},
    config::Config,
    guarding::api::{called, shown},
    output::{self, Trouble},
};

/// What is looked for when nobody says what.
const USUAL: [&str; 3] = ["pii", "prompt-injection", "secrets"];

/// What a text is tried against, and where that is written, if it is configured.
struct Tried {
    guards: Option<Guards>,
    places: Option<Vec<String>>,
}

pub(crate) fn run(command: Guard, config: &Config) -> Result<(), Trouble> {
    match command {
        Guard::Test(options) => test(&options, config),
    }
}

fn test(options: &GuardTest, config: &Config) -> Result<(), Trouble> {
    let Tried { guards, places } = tried(options, config)?;
    let parts = [part(options.text.as_deref())?];
    let target = options.target.target();
    let findings = guards.as_ref().map(|guards| guards.check(&parts, target)).unwrap_or_default();
    let left = guards.as_ref().map(|guards| redacted(guards, &parts, &findings)).unwrap_or_default();
    let unasked = guards.as_ref().map_or(0, |guards| guards.classifiers(target).count());
    if options.listing.json {
        let mut told = json!({
            "verdict": findings.verdict(),
            "findings": findings.found,
            "redacted": left,
            "notAsked": unasked,
        });
        if let Some(places) = places {
            told["guardrails"] = json!(places);
        }
        output::json(&told);
    } else {
        if let Some(places) = &places {
            let applying = if places.is_empty() { "none".to_owned() } else { places.join(", ") };
            output::line(format!("Guardrails: {applying}"));
        }
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

/// The guardrails that were named, else those that are configured, else the usual ones.
fn tried(options: &GuardTest, config: &Config) -> Result<Tried, Trouble> {
    let wrong = |error: rialto_guard::CompileError| Trouble::usage(error.to_string());
    let placed = config.guardrails.placed();
    let is_named = options.checks.is_some() || options.guardrail.is_some() || options.action.is_some();
    if !is_named && (options.skill.is_some() || !placed.is_empty()) {
        let called = called(&options.org, options.skill.as_deref().unwrap_or_default());
        let applying: Vec<_> = placed.iter().filter(|placed| placed.whose.is_for(&called)).collect();
        let guards = Guards::compile(applying.iter().map(|placed| &placed.guardrail)).map_err(wrong)?;
        return Ok(Tried {
            guards,
            places: Some(applying.iter().map(|placed| shown(&placed.place)).collect()),
        });
    }
    let guards = Guards::compile([&guardrail(options)?]).map_err(wrong)?;
    let guards = guards.ok_or_else(|| Trouble::usage("the guardrail is switched off or has no checks"))?;
    Ok(Tried { guards: Some(guards), places: None })
}

fn guardrail(options: &GuardTest) -> Result<Guardrail, Trouble> {
    if let Some(file) = &options.guardrail {
        return read(file);
    }
    let unknown = |name: &str| {
        Trouble::usage(format!(
            "\"{name}\" is no check that needs no settings: pii, prompt-injection, secrets and max-tokens are; \
             others are set in a file (--guardrail)"
        ))
    };
    let check = |name: &str| Check::plain(name.trim()).ok_or_else(|| unknown(name));
    let checks = match &options.checks {
        Some(names) => names.iter().map(|name| check(name)).collect::<Result<_, _>>()?,
        None => USUAL.iter().map(|name| check(name)).collect::<Result<_, _>>()?,
    };
    let action = options.action.map_or_else(Action::default, ActionName::action);
    Ok(Guardrail { checks, action, ..Guardrail::default() })
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
