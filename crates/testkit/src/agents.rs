//! Cards, skills and agent rows with as little ceremony as a test wants.

use std::sync::Arc;

use rialto_model::{
    agent::{Agent, AgentTrust, Health},
    backing,
    card::{Card, Skill},
    clock::Timestamp,
    json::Json,
    name,
};

/// A skill without a schema.
pub fn skill(id: &str) -> Skill {
    backing::skill(id, id, &format!("Does {id}"))
}

/// A skill with a schema.
pub fn skill_with_schema(id: &str, schema: serde_json::Value) -> Skill {
    Skill { input_schema: Some(Json::from(schema)), ..skill(id) }
}

/// A skill that is found by these words.
pub fn tagged_skill(id: &str, tags: &[&str]) -> Skill {
    Skill { tags: tags.iter().map(|tag| (*tag).to_owned()).collect(), ..skill(id) }
}

/// A skill that says that it may be run twice.
pub fn repeatable_skill(id: &str) -> Skill {
    let mut skill = skill(id);
    let hints = Json::encode(&serde_json::json!({ "idempotentHint": true }));
    skill.extra.push("annotations", hints);
    skill
}

/// A minimal card.
pub fn card(name: &str, skills: Vec<Skill>) -> Card {
    let told = |skill: &Skill| {
        let mut told = serde_json::json!({ "id": skill.id, "name": skill.name });
        if let Some(hints) = skill.extra.get("annotations") {
            told["annotations"] = hints.value();
        }
        if !skill.tags.is_empty() {
            told["tags"] = serde_json::json!(skill.tags);
        }
        told
    };
    let ids: Vec<_> = skills.iter().map(told).collect();
    let raw = Json::from(serde_json::json!({ "name": name, "skills": ids }));
    Card { raw, ..backing::card(name, "", None, skills) }
}

/// A trusted, healthy agent with these skills. Its id and address are made from its name.
pub fn agent(name: &str, skills: Vec<Skill>) -> Agent {
    let slug = name::agent_slug(name);
    let (id, url) = (format!("agt_{slug}").into(), format!("https://{}.example.com", slug.replace('_', "-")));
    let row = Agent::new(id, slug, url, Arc::new(card(name, skills)), Timestamp::UNIX_EPOCH);
    Agent { trust: AgentTrust::Trusted, health: Health::Healthy, ..row }
}

/// Reads back a card that [`card`] made, for stores that keep only the text.
pub fn parse_card(text: &str) -> Result<Card, String> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let name = value["name"].as_str().ok_or("name: expected a text")?;
    let read = |told: &serde_json::Value| {
        let mut skill = skill(told["id"].as_str()?);
        if let Some(hints) = told.get("annotations") {
            skill.extra.push("annotations", Json::encode(hints));
        }
        let tags = told["tags"].as_array().into_iter().flatten();
        skill.tags = tags.filter_map(|tag| tag.as_str().map(str::to_owned)).collect();
        Some(skill)
    };
    let skills = value["skills"].as_array().into_iter().flatten().filter_map(read).collect();
    let raw = Json::parse(text).map_err(|error| error.to_string())?;
    Ok(Card { raw, ..card(name, skills) })
}
