//! Rows to ask about in tests.

use std::sync::Arc;

use rialto_model::{
    agent::{Agent, AgentTrust, Health},
    backing,
    card::Skill,
};

pub(crate) fn skill(id: &str, tags: &[&str]) -> Skill {
    Skill { tags: tags.iter().map(|tag| (*tag).to_owned()).collect(), ..backing::skill(id, id, "") }
}

/// `Vercel Ops`, `agt_1`, with the skill `deploy`, which is tagged `ops`.
pub(crate) fn agent(trust: AgentTrust) -> Agent {
    let card = backing::card("Vercel Ops", "", None, vec![skill("deploy", &["ops"])]);
    let url = "https://agents.example.com".to_owned();
    let at = "2026-01-01T00:00:00Z".parse().unwrap();
    let row = Agent::new("agt_1".into(), "vercel_ops".to_owned(), url, Arc::new(card), at);
    Agent { trust, health: Health::Healthy, ..row }
}
