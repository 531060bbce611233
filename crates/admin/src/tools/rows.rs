//! API representation of deployments. It contains the sources of secrets, never the secrets.

use std::collections::BTreeMap;

use rialto_api_types::tools::{DeploymentRow, ToolRow};
use rialto_engine::{Registry, directory::Entry};
use rialto_model::{
    agent::{Agent, Health, RowStorage},
    backing::{BackingTransport, TransportSetting},
    card::Skill,
    name,
};

use crate::agents;

/// Row of a deployment.
pub fn deployment_row(registry: &Registry, row: &Agent) -> DeploymentRow {
    let via = row.backing.via();
    let (url, command) = match via {
        Some(BackingTransport::Http(_)) => (via.map(BackingTransport::described), None),
        Some(BackingTransport::Command(command)) => (None, Some(command.argv.clone())),
        None => (None, None),
    };
    let settings = via.map(BackingTransport::settings).into_iter().flatten();
    let names = names_by_id(registry, row);
    DeploymentRow {
        id: row.id.clone(),
        name: row.backing.name().unwrap_or(&row.slug).to_owned(),
        slug: row.slug.clone(),
        kind: row.backing.kind().to_owned(),
        org: row.scope.org.clone(),
        project: row.scope.project.clone(),
        url,
        command,
        settings: settings
            .map(|(name, setting)| (name.clone(), TransportSetting::described(setting)))
            .collect(),
        configured: row.keep == RowStorage::Configured,
        trust: row.trust,
        change_held: row.pending.is_some(),
        pending: agents::pending_changes(row).map(agents::card_changes),
        health: row.health,
        available: is_available(row),
        last_error: row.last_error.clone(),
        timeout_ms: row.timeout_ms,
        tools: row.card.skills.iter().map(|skill| tool_row(row, skill, &names)).collect(),
    }
}

fn tool_row(row: &Agent, skill: &Skill, names: &BTreeMap<String, String>) -> ToolRow {
    let full_name = name::canonical(&row.slug, skill.id.as_str());
    ToolRow {
        name: names.get(skill.id.as_str()).cloned().unwrap_or_else(|| full_name.clone()),
        full_name,
        description: skill.description.clone(),
        available: is_available(row),
        repeatable: skill.is_repeatable(),
        input_schema: skill.input_schema.clone(),
        output_schema: skill.extra.get("outputSchema").cloned(),
        annotations: skill.extra.get("annotations").cloned(),
    }
}

/// Whether its tools can be called, by its last probe.
pub fn is_available(row: &Agent) -> bool {
    matches!(row.health, Health::Healthy | Health::Degraded)
}

/// Names of the tools of a deployment.
pub fn tool_names(registry: &Registry, row: &Agent) -> Vec<String> {
    names_by_id(registry, row).into_values().collect()
}

fn names_by_id(registry: &Registry, row: &Agent) -> BTreeMap<String, String> {
    let directory = registry.directory(&row.scope);
    let own = |entry: &&Entry| entry.agent.id == row.id;
    let entries = directory.entries().iter().filter(own);
    entries.map(|entry| (entry.skill.id.to_string(), entry.canonical.clone())).collect()
}
