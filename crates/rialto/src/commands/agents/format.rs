//! Agents in words.

use std::borrow::Cow;

use rialto_api_types::agents::{AgentFacts, AgentRow, CardChanges, CircuitBreakerRow, CircuitState};
use rialto_engine::diff::{CardDiff, Change};
use rialto_model::agent::Probe;

use crate::output;

/// State of a circuit breaker in words; nothing for one that has seen no failure.
fn describe_breaker(breaker: &CircuitBreakerRow) -> String {
    let mut text = match breaker.state {
        CircuitState::Closed if breaker.recent_failures == 0 && breaker.opened == 0 => return String::new(),
        CircuitState::Closed => "closed".to_owned(),
        CircuitState::Open => "open".to_owned(),
        CircuitState::HalfOpen => "half-open".to_owned(),
    };
    if let Some(until) = breaker.until {
        text.push_str(&format!(" until {}", until.strftime("%F %T%.3f")));
    }
    if breaker.recent_failures > 0 {
        text.push_str(&format!(", {} recent failures", breaker.recent_failures));
    }
    if breaker.opened > 0 {
        text.push_str(&format!(", opened {} times", breaker.opened));
    }
    match &breaker.reason {
        Some(reason) => format!("{text}: {reason}"),
        None => text,
    }
}

/// The changes of a card as the engine prints them.
pub(crate) fn card_diff(changes: CardChanges) -> CardDiff {
    let changed = changes.changed.into_iter().map(|change| Change {
        of: change.of,
        member: Cow::Owned(change.member),
        before: change.before,
        after: change.after,
    });
    CardDiff { added: changes.added, removed: changes.removed, changed: changed.collect() }
}

/// Number of skills, in words.
pub(super) fn describe_skill_count(agent: &AgentRow) -> String {
    match agent.skills.len() {
        1 => "1 skill".to_owned(),
        n => format!("{n} skills"),
    }
}

/// Prints an agent, line by line.
pub(super) fn print_agent(agent: &AgentRow, facts: &AgentFacts) {
    let facts = [
        ("name", agent.name.clone()),
        ("slug", agent.slug.clone()),
        ("id", agent.id.to_string()),
        ("url", agent.url.clone()),
        ("trust", agent.trust.to_string()),
        ("health", agent.health.to_string()),
        ("signature", format!("{:?}", agent.signature).to_lowercase()),
        ("credential", facts.shown_as.clone().unwrap_or_default()),
        ("breaker", facts.breaker.as_ref().map(describe_breaker).unwrap_or_default()),
        ("error", agent.last_error.clone().unwrap_or_default()),
    ];
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        output::print_line(format!("{name:<10} {}", output::sanitize(value)));
    }
    for face in &agent.interfaces {
        output::print_line(format!(
            "{:<10} {} (A2A {})",
            "speaks",
            output::sanitize(&face.url),
            face.dialect
        ));
    }
    for warning in &agent.warnings {
        output::print_line(format!("{:<10} {}", "warning", output::sanitize(warning)));
    }
    output::print_line("");
    let rows = agent.skills.iter().map(|skill| {
        let has_schema = skill.input_schema.as_ref().is_some_and(|schema| !schema.is_null());
        vec![skill.name.clone(), if has_schema { "yes" } else { "" }.to_owned(), skill.description.clone()]
    });
    output::print_table(&["skill", "schema", "description"], rows.collect());
}

/// Prints recent probes of an agent.
pub(super) fn print_probes(probes: &[Probe]) {
    if probes.is_empty() {
        return;
    }
    output::print_line("");
    let rows = probes.iter().map(|probe| {
        vec![
            probe.at.strftime("%F %T").to_string(),
            probe.health.to_string(),
            format!("{} ms", probe.elapsed_ms),
            probe.error.clone().unwrap_or_default(),
        ]
    });
    output::print_table(&["probed (utc)", "health", "took", "error"], rows.collect());
}
