//! Many agents with many skills, to be looked through.

use std::sync::Arc;

use rialto_model::{
    agent::{Agent, AgentTrust, Health},
    backing,
    card::Skill,
    clock::Timestamp,
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
    let skills = (0..skills).map(|place| skill(number, place)).collect();
    let card = backing::card(&format!("Agent {number}"), "One of many", None, skills);
    let (slug, url) = (format!("agent_{number}"), format!("https://agent-{number}.example.com"));
    let id = format!("agt_{number}").into();
    let row = Agent::new(id, slug, url, Arc::new(card), Timestamp::UNIX_EPOCH);
    Agent { trust: AgentTrust::Trusted, health: Health::Healthy, ..row }
}

fn skill(agent: usize, place: usize) -> Skill {
    let word =
        |step: usize| WORDS[(agent.wrapping_mul(7) + place.wrapping_mul(13) + step * 11) % WORDS.len()];
    let description: Vec<&str> = (0..12).map(word).collect();
    let (id, name) = (format!("{}_{place}", word(3)), format!("{} {}", word(1), word(2)));
    Skill {
        tags: vec![format!("tag{}", (agent + place) % 50), format!("tag{}", (agent * 3 + place) % 200)],
        examples: vec![format!("{} the {}", word(4), word(5))],
        ..backing::skill(&id, &name, &description.join(" "))
    }
}
