//! An agent as it is told by whoever knows it, and how it is shown.

use rialto_model::{
    agent::{Health, Probe, Signature, Trust},
    card::Interface,
    clock::Timestamp,
    credential::Credential,
    json::{Extra, Json},
};
use serde::Deserialize;

use crate::{
    desk::read,
    output::{self, Trouble},
};

/// What is shown of an agent.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Agent {
    pub(super) id: String,
    name: String,
    pub(super) slug: String,
    pub(super) url: String,
    pub(super) trust: Trust,
    pub(super) health: Health,
    signature: Signature,
    pub(super) skills: Vec<Skill>,
    interfaces: Vec<Interface>,
    pub(super) credential: Option<Credential>,
    pub(super) last_seen_at: Option<Timestamp>,
    last_error: Option<String>,
    /// Whether a changed card waits until somebody takes it. Servers before that do not say so.
    #[serde(default)]
    pub(super) change_held: bool,
    #[serde(default)]
    warnings: Vec<String>,
    /// Circuit breaker of the server that was asked. Lists and older servers do not say.
    breaker: Option<AgentBreaker>,
}

/// Circuit breaker of an agent.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AgentBreaker {
    state: String,
    until: Option<Timestamp>,
    recent_failures: u32,
    opened: u64,
    reason: Option<String>,
}

/// What is shown of a skill.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Skill {
    pub(super) name: String,
    description: String,
    input_schema: Option<Json>,
}

// === impl Agent ===

impl Agent {
    pub(super) fn read(row: &Extra) -> Result<Self, Trouble> {
        read(&Json::of(row))
    }
}

// === impl AgentBreaker ===

impl AgentBreaker {
    /// Its state in words; nothing for one that has seen no failure.
    fn describe(&self) -> String {
        if self.state == "closed" && self.recent_failures == 0 && self.opened == 0 {
            return String::new();
        }
        let mut text = self.state.clone();
        if let Some(until) = self.until {
            text.push_str(&format!(" until {}", until.strftime("%F %T%.3f")));
        }
        if self.recent_failures > 0 {
            text.push_str(&format!(", {} recent failures", self.recent_failures));
        }
        if self.opened > 0 {
            text.push_str(&format!(", opened {} times", self.opened));
        }
        match &self.reason {
            Some(reason) => format!("{text}: {reason}"),
            None => text,
        }
    }
}

/// How many skills an agent has, in words.
pub(super) fn skills(agent: &Agent) -> String {
    match agent.skills.len() {
        1 => "1 skill".to_owned(),
        n => format!("{n} skills"),
    }
}

/// What an agent is, line by line.
pub(super) fn describe(agent: &Agent, credential: String) {
    let facts = [
        ("name", agent.name.clone()),
        ("slug", agent.slug.clone()),
        ("id", agent.id.clone()),
        ("url", agent.url.clone()),
        ("trust", agent.trust.to_string()),
        ("health", agent.health.to_string()),
        ("signature", format!("{:?}", agent.signature).to_lowercase()),
        ("credential", credential),
        ("breaker", agent.breaker.as_ref().map(AgentBreaker::describe).unwrap_or_default()),
        ("error", agent.last_error.clone().unwrap_or_default()),
    ];
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        output::line(format!("{name:<10} {}", output::printable(value)));
    }
    for face in &agent.interfaces {
        output::line(format!("{:<10} {} (A2A {})", "speaks", output::printable(&face.url), face.dialect));
    }
    for warning in &agent.warnings {
        output::line(format!("{:<10} {}", "warning", output::printable(warning)));
    }
    output::line("");
    let rows = agent.skills.iter().map(|skill| {
        let has_schema = skill.input_schema.as_ref().is_some_and(|schema| !schema.is_null());
        vec![skill.name.clone(), if has_schema { "yes" } else { "" }.to_owned(), skill.description.clone()]
    });
    output::table(&["skill", "schema", "description"], rows.collect());
}

/// How an agent did lately.
pub(super) fn list_probes(probes: &[Probe]) {
    if probes.is_empty() {
        return;
    }
    output::line("");
    let rows = probes.iter().map(|probe| {
        vec![
            probe.at.strftime("%F %T").to_string(),
            probe.health.to_string(),
            format!("{} ms", probe.elapsed_ms),
            probe.error.clone().unwrap_or_default(),
        ]
    });
    output::table(&["probed (utc)", "health", "took", "error"], rows.collect());
}
