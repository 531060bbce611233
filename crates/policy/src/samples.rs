//! Rows to ask about in tests.

use std::sync::Arc;

use rialto_model::{
    agent::{Agent, Health, Keep, Signature, Trust},
    card::{Card, Skill},
    deployed::Backing,
    ids::Scope,
    json::{Extra, Json},
};

pub(crate) fn skill(id: &str, tags: &[&str]) -> Skill {
    Skill {
        id: id.into(),
        name: id.into(),
        description: String::new(),
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        examples: Vec::new(),
        input_modes: Vec::new(),
        output_modes: Vec::new(),
        input_schema: None,
        cost: None,
        extra: Extra::new(),
        called: None,
    }
}

/// `Vercel Ops`, `agt_1`, with the skill `deploy`, which is tagged `ops`.
pub(crate) fn agent(trust: Trust) -> Agent {
    let card = Card {
        name: "Vercel Ops".into(),
        description: String::new(),
        version: None,
        interfaces: Vec::new(),
        skills: vec![Arc::new(skill("deploy", &["ops"]))],
        streaming: false,
        push_notifications: false,
        extended: false,
        signed: false,
        cost: None,
        raw: Json::empty_object(),
    };
    Agent {
        id: "agt_1".into(),
        scope: Scope::default(),
        url: "https://agents.example.com".into(),
        slug: "vercel_ops".into(),
        card: Arc::new(card),
        pending: None,
        trust,
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
        registered_at: "2026-01-01T00:00:00Z".parse().unwrap(),
        last_fetched_at: "2026-01-01T00:00:00Z".parse().unwrap(),
        last_seen_at: None,
        last_error: None,
        version: 1,
    }
}
