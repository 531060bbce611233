//! Many agents with many skills, to be looked through.

use std::sync::Arc;

use rialto_model::{
    agent::{Agent, Health, Keep, Signature, Trust},
    card::{Card, Skill},
    clock::Timestamp,
    deployed::Backing,
    ids::Scope,
    json::{Extra, Json},
};

const WORDS: [&str; 32] = [
    "review",
    "request",
    "feature",
    "weather",
    "deploy",
    "database",
    "invoice",
    "customer",
    "translate",
    "image",
    "search",
    "schedule",
    "report",
    "monitor",
    "secure",
    "network",
    "design",
    "script",
    "archive",
    "payment",
    "contract",
    "ticket",
    "summary",
    "forecast",
    "inventory",
    "shipping",
    "pull",
    "new",
    "tell",
    "wrong",
    "and",
    "the",
];

/// So many agents with so many skills each.
pub(super) fn agents(count: usize, skills: usize) -> Vec<Arc<Agent>> {
    (0..count).map(|number| Arc::new(agent(number, skills))).collect()
}

fn agent(number: usize, skills: usize) -> Agent {
    let card = Card {
        name: format!("Agent {number}"),
        description: "One of many".to_owned(),
        version: None,
        interfaces: Vec::new(),
        skills: (0..skills).map(|place| Arc::new(skill(number, place))).collect(),
        streaming: false,
        push_notifications: false,
        extended: false,
        signed: false,
        cost: None,
        raw: Json::empty_object(),
    };
    Agent {
        id: format!("agt_{number}").into(),
        scope: Scope::default(),
        url: format!("https://agent-{number}.example.com"),
        slug: format!("agent_{number}"),
        card: Arc::new(card),
        pending: None,
        trust: Trust::Trusted,
        health: Health::Healthy,
        signature: Signature::None,
        backing: Backing::A2a,
        keep: Keep::Stored,
        credential: None,
        allow_private: false,
        card_path: None,
        etag: None,
        speaks: None,
        timeout_ms: None,
        registered_at: Timestamp::UNIX_EPOCH,
        last_fetched_at: Timestamp::UNIX_EPOCH,
        last_seen_at: None,
        last_error: None,
        version: 1,
    }
}

fn skill(agent: usize, place: usize) -> Skill {
    let word =
        |step: usize| WORDS[(agent.wrapping_mul(7) + place.wrapping_mul(13) + step * 11) % WORDS.len()];
    let description: Vec<&str> = (0..12).map(word).collect();
    Skill {
        id: format!("{}_{place}", word(3)).into(),
        name: format!("{} {}", word(1), word(2)),
        description: description.join(" "),
        tags: vec![format!("tag{}", (agent + place) % 50), format!("tag{}", (agent * 3 + place) % 200)],
        examples: vec![format!("{} the {}", word(4), word(5))],
        input_modes: Vec::new(),
        output_modes: Vec::new(),
        input_schema: None,
        cost: None,
        extra: Extra::new(),
        called: None,
    }
}
