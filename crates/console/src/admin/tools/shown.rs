//! What is deployed, as lists and programs see it: where secrets come from, never what they are.

use std::collections::BTreeMap;

use rialto_engine::{Registry, diff::CardDiff, directory::Entry};
use rialto_model::{
    agent::{Agent, Health, Keep, Trust},
    deployed::{Setting, Via},
    ids::{AgentId, Scope},
    json::Json,
    name,
};
use serde::Serialize;

use crate::admin::agents;

/// A server or a function.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown<'a> {
    id: &'a AgentId,
    name: &'a str,
    slug: &'a str,
    kind: &'static str,
    #[serde(flatten)]
    scope: &'a Scope,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a [String]>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    settings: BTreeMap<&'a str, String>,
    configured: bool,
    trust: Trust,
    /// Whether what it changed waits for approval.
    change_held: bool,
    /// What would change then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pending: Option<CardDiff>,
    health: Health,
    available: bool,
    last_error: Option<&'a str>,
    timeout_ms: Option<u64>,
    /// Its tools.
    pub tools: Vec<ShownTool<'a>>,
}

/// One of its tools.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownTool<'a> {
    /// What it is called everywhere.
    pub name: String,
    /// What it is called where two have that name.
    full_name: String,
    /// What it does.
    pub description: &'a str,
    available: bool,
    repeatable: bool,
    input_schema: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<&'a Json>,
}

// === impl Shown ===

impl<'a> Shown<'a> {
    /// One of them.
    pub fn of(registry: &Registry, row: &'a Agent) -> Self {
        let via = row.backing.via();
        let (url, command) = match via {
            Some(Via::Http(_)) => (via.map(Via::described), None),
            Some(Via::Command(command)) => (None, Some(command.argv.as_slice())),
            None => (None, None),
        };
        let settings = via.map(Via::settings).into_iter().flatten();
        let names = called(registry, row);
        let tools = row.card.skills.iter().map(|skill| {
            let full_name = name::canonical(&row.slug, skill.id.as_str());
            ShownTool {
                name: names.get(skill.id.as_str()).cloned().unwrap_or_else(|| full_name.clone()),
                full_name,
                description: &skill.description,
                available: is_available(row),
                repeatable: skill.is_repeatable(),
                input_schema: skill.input_schema.as_ref(),
                output_schema: skill.extra.get("outputSchema"),
                annotations: skill.extra.get("annotations"),
            }
        });
        Self {
            id: &row.id,
            name: row.backing.name().unwrap_or(&row.slug),
            slug: &row.slug,
            kind: row.backing.kind(),
            scope: &row.scope,
            url,
            command,
            settings: settings.map(|(name, setting)| (name.as_str(), Setting::described(setting))).collect(),
            configured: row.keep == Keep::Configured,
            trust: row.trust,
            change_held: row.pending.is_some(),
            pending: agents::pending(row),
            health: row.health,
            available: is_available(row),
            last_error: row.last_error.as_deref(),
            timeout_ms: row.timeout_ms,
            tools: tools.collect(),
        }
    }

    /// Its headers or variables, and where each comes from.
    pub const fn settings(&self) -> &BTreeMap<&'a str, String> {
        &self.settings
    }
}

/// Whether it answered when it was last asked, or need not be asked.
pub fn is_available(row: &Agent) -> bool {
    matches!(row.health, Health::Healthy | Health::Degraded)
}

/// What the tools of a row are called.
pub fn names(registry: &Registry, row: &Agent) -> Vec<String> {
    called(registry, row).into_values().collect()
}

fn called(registry: &Registry, row: &Agent) -> BTreeMap<String, String> {
    let directory = registry.directory(&row.scope);
    let own = |entry: &&Entry| entry.agent.id == row.id;
    let entries = directory.entries().iter().filter(own);
    entries.map(|entry| (entry.skill.id.to_string(), entry.canonical.clone())).collect()
}
