//! Cards that are made here, of what was said when something was deployed.

use std::sync::Arc;

use super::{CodingAgentBacking, FunctionBacking, PROMPT, WorkflowsBacking};
use crate::{
    card::{Card, Skill},
    flow::FLOWS,
    json::{Extra, Json},
};

// === impl WorkflowsBacking ===

impl WorkflowsBacking {
    /// The card that stands for them.
    pub fn card(&self) -> Card {
        let skills = self.skills.iter().map(|it| Skill {
            input_schema: it.input_schema.clone(),
            ..skill(&it.id, &it.name, &it.description)
        });
        card(FLOWS, "Workflows and pipelines: work in many steps", None, skills.collect())
    }
}

// === impl FunctionBacking ===

impl FunctionBacking {
    /// The card that stands for it.
    pub fn card(&self) -> Card {
        let mut extra = Extra::new();
        if let Some(schema) = &self.output_schema {
            extra.push("outputSchema", schema.clone());
        }
        if self.idempotent {
            extra.push("annotations", Json::encode(&serde_json::json!({ "idempotentHint": true })));
        }
        let skill = Skill {
            input_schema: self.input_schema.clone(),
            extra,
            ..skill(&self.name, &self.name, &self.description)
        };
        card(&self.name, &self.description, None, vec![skill])
    }
}

// === impl CodingAgentBacking ===

impl CodingAgentBacking {
    /// Its card: one skill for free prompts, and the declared ones.
    pub fn card(&self) -> Card {
        let general = format!("Does what it is told: {}", self.description);
        let general = if self.description.is_empty() { "Does what it is told" } else { &general };
        let mut skills = vec![skill(PROMPT, PROMPT, general)];
        skills.extend(
            self.skills
                .iter()
                .map(|own| Skill { tags: own.tags.clone(), ..skill(&own.id, &own.id, &own.description) }),
        );
        Card { streaming: true, ..card(&self.name, &self.description, None, skills) }
    }

    /// Instructions that a skill sends before the caller's message.
    pub fn instructions(&self, id: &str) -> Option<&str> {
        self.skills.iter().find(|skill| skill.id == id)?.instructions.as_deref()
    }
}

/// A skill with nothing but a name and a description.
pub fn skill(id: &str, name: &str, description: &str) -> Skill {
    Skill {
        id: id.into(),
        name: name.to_owned(),
        description: description.to_owned(),
        tags: Vec::new(),
        examples: Vec::new(),
        input_modes: Vec::new(),
        output_modes: Vec::new(),
        input_schema: None,
        cost: None,
        extra: Extra::new(),
        called: None,
    }
}

/// A card that was made here. Its text is what reading it back needs.
pub fn card(name: &str, description: &str, version: Option<&str>, skills: Vec<Skill>) -> Card {
    let mut raw = Extra::new();
    raw.push("name", Json::encode(name));
    raw.push("description", Json::encode(description));
    if let Some(version) = version {
        raw.push("version", Json::encode(version));
    }
    raw.push("skills", Json::encode(&skills.iter().map(written).collect::<Vec<_>>()));
    Card {
        name: name.to_owned(),
        description: description.to_owned(),
        version: version.map(str::to_owned),
        interfaces: Vec::new(),
        skills: skills.into_iter().map(Arc::new).collect(),
        input_modes: Vec::new(),
        output_modes: Vec::new(),
        streaming: false,
        push_notifications: false,
        extended: false,
        signed: false,
        cost: None,
        raw: Json::encode(&raw),
    }
}

fn written(skill: &Skill) -> Extra {
    let mut members = Extra::new();
    members.push("id", Json::encode(&skill.id));
    members.push("name", Json::encode(&skill.name));
    members.push("description", Json::encode(&skill.description));
    if !skill.tags.is_empty() {
        members.push("tags", Json::encode(&skill.tags));
    }
    if let Some(schema) = &skill.input_schema {
        members.push("inputSchema", schema.clone());
    }
    for (name, value) in skill.extra.iter() {
        members.push(name, value.clone());
    }
    members
}
