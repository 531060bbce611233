//! Profiles of the sample agents: cards and skills.

use serde_json::{Map, Value, json};

use super::{dialects::SampleDialect, tasks::SkillOutput};

/// Profile of a sample agent.
pub(super) struct SampleProfile {
    pub(super) name: &'static str,
    pub(super) generation: ProtocolGeneration,
    description: &'static str,
    streams: bool,
    skills: &'static [SampleSkill],
}

/// A2A version of an agent.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProtocolGeneration {
    V10,
    V03,
    V02,
    V01,
    /// A card with a name and skills and nothing else.
    Bare,
}

/// Skill of a sample agent.
pub(super) struct SampleSkill {
    id: &'static str,
    name: &'static str,
    description: &'static str,
    tags: &'static [&'static str],
    /// The one argument it takes.
    argument: Option<SkillArgument>,
    pub(super) work: fn(&Map<String, Value>) -> SkillOutput,
}

/// A string that a skill is given.
struct SkillArgument {
    name: &'static str,
    description: &'static str,
    is_required: bool,
}

/// All sample agents, in the order of the demo.
pub(super) const SAMPLE_PROFILES: &[SampleProfile] = &[
    SampleProfile {
        name: "Weather Desk",
        generation: ProtocolGeneration::V10,
        description: "Knows tomorrow's weather for every city.",
        streams: false,
        skills: &[SampleSkill {
            id: "forecast",
            name: "Forecast",
            description: "Tomorrow's weather in a city.",
            tags: &["weather"],
            argument: Some(SkillArgument { name: "city", description: "Where.", is_required: true }),
            work: forecast,
        }],
    },
    SampleProfile {
        name: "Night Porter",
        generation: ProtocolGeneration::V03,
        description: "Greets late guests and tells them stories.",
        streams: true,
        skills: &[
            SampleSkill {
                id: "story",
                name: "Story",
                description: "Tells a short story, piece by piece.",
                tags: &["text", "streaming"],
                argument: Some(SkillArgument {
                    name: "about",
                    description: "Who the story is about.",
                    is_required: false,
                }),
                work: story,
            },
            SampleSkill {
                id: "greet",
                name: "Greet",
                description: "Greets a guest.",
                tags: &["text"],
                argument: Some(SkillArgument { name: "name", description: "The guest.", is_required: false }),
                work: greet,
            },
        ],
    },
    SampleProfile {
        name: "Old Scribe",
        generation: ProtocolGeneration::V01,
        description: "Copies what it is given, as it always has.",
        streams: false,
        skills: &[SampleSkill {
            id: "copy",
            name: "Copy",
            description: "Copies a text in a fair hand.",
            tags: &["text"],
            argument: Some(SkillArgument { name: "text", description: "What to copy.", is_required: true }),
            work: copy,
        }],
    },
    SampleProfile {
        name: "Broken Clock",
        generation: ProtocolGeneration::V02,
        description: "Would tell the time if it could.",
        streams: false,
        skills: &[SampleSkill {
            id: "tell",
            name: "Tell",
            description: "Tells the time.",
            tags: &["time"],
            argument: None,
            work: tell,
        }],
    },
    SampleProfile {
        name: "Stranger",
        generation: ProtocolGeneration::Bare,
        description: "",
        streams: false,
        skills: &[SampleSkill {
            id: "gossip",
            name: "Gossip",
            description: "What people say.",
            tags: &["rumour"],
            argument: None,
            work: gossip,
        }],
    },
];

// === impl SampleProfile ===

impl SampleProfile {
    /// The skill of that id; without one, the only skill there is.
    pub(super) fn skill(&self, id: Option<&str>) -> Option<&SampleSkill> {
        match (id, self.skills) {
            (None, [only]) => Some(only),
            (id, skills) => skills.iter().find(|skill| Some(skill.id) == id),
        }
    }

    /// The ids of all skills, for an error's text.
    pub(super) fn skill_ids(&self) -> String {
        self.skills.iter().map(|skill| skill.id).collect::<Vec<_>>().join(", ")
    }

    /// The card, as an agent of this generation writes it.
    pub(super) fn card(&self, url: &str) -> Value {
        let skills: Vec<_> = self.skills.iter().map(SampleSkill::card).collect();
        let address = match self.generation {
            ProtocolGeneration::Bare => return json!({"name": self.name, "skills": skills}),
            ProtocolGeneration::V10 => json!({"supportedInterfaces": [
                {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            ]}),
            ProtocolGeneration::V03 => {
                json!({"protocolVersion": "0.3.0", "url": url, "preferredTransport": "JSONRPC"})
            }
            ProtocolGeneration::V02 => json!({"protocolVersion": "0.2.5", "url": url}),
            ProtocolGeneration::V01 => json!({"url": url}),
        };
        let mut card = json!({
            "name": self.name,
            "description": self.description,
            "version": "1.0.0",
            "capabilities": {"streaming": self.streams, "pushNotifications": false},
            "defaultInputModes": ["application/json", "text/plain"],
            "defaultOutputModes": ["application/json", "text/plain"],
            "skills": skills,
        });
        if let (Value::Object(card), Value::Object(address)) = (&mut card, address) {
            card.extend(address);
        }
        card
    }
}

// === impl ProtocolGeneration ===

impl ProtocolGeneration {
    /// For people.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::V10 => "1.0",
            Self::V03 => "0.3",
            Self::V02 => "0.2",
            Self::V01 => "0.1",
            Self::Bare => "minimal card",
        }
    }

    /// Path of the card.
    pub(super) const fn card_path(self) -> &'static str {
        match self {
            Self::V10 | Self::V03 | Self::Bare => "/.well-known/agent-card.json",
            Self::V02 | Self::V01 => "/.well-known/agent.json",
        }
    }

    pub(super) const fn spelling(self) -> SampleDialect {
        match self {
            Self::V10 => SampleDialect::V10,
            Self::V03 | Self::V02 | Self::Bare => SampleDialect::V03,
            Self::V01 => SampleDialect::V01,
        }
    }
}

// === impl SampleSkill ===

impl SampleSkill {
    fn card(&self) -> Value {
        let Self { id, name, description, tags, argument, .. } = self;
        let mut card = json!({"id": id, "name": name, "description": description, "tags": tags});
        if let (Some(members), Some(argument)) = (card.as_object_mut(), argument) {
            members.insert("inputSchema".to_owned(), argument.schema());
        }
        card
    }
}

// === impl SkillArgument ===

impl SkillArgument {
    fn schema(&self) -> Value {
        let required: &[&str] = if self.is_required { &[self.name] } else { &[] };
        json!({
            "type": "object",
            "properties": {self.name: {"type": "string", "description": self.description}},
            "required": required,
        })
    }
}

fn forecast(arguments: &Map<String, Value>) -> SkillOutput {
    let city = word(arguments, "city").unwrap_or("nowhere");
    let luck = city.bytes().map(i32::from).sum::<i32>();
    let sky = match luck % 4 {
        0 => "sunny",
        1 => "cloudy",
        2 => "rainy",
        _ => "foggy",
    };
    let high = 8 + luck % 20;
    SkillOutput::Data(
        json!({"city": city, "sky": sky, "high_c": high, "low_c": high - 6, "wind_kmh": luck % 30}),
    )
}

fn story(arguments: &Map<String, Value>) -> SkillOutput {
    let who = word(arguments, "about").unwrap_or("a gondolier");
    SkillOutput::Story(vec![
        format!("Late one night {who} came to the bridge. "),
        "On this side everyone spoke in tools, on the other in tasks. ".to_owned(),
        "The porter listened to both and carried every word across. ".to_owned(),
        "By morning nobody could say any more which side was theirs.".to_owned(),
    ])
}

fn greet(arguments: &Map<String, Value>) -> SkillOutput {
    SkillOutput::Text(format!(
        "Good evening, {}. Your key, please.",
        word(arguments, "name").unwrap_or("guest")
    ))
}

fn copy(arguments: &Map<String, Value>) -> SkillOutput {
    SkillOutput::Text(word(arguments, "text").unwrap_or_default().to_owned())
}

fn tell(_: &Map<String, Value>) -> SkillOutput {
    SkillOutput::Failure("the clock has stopped")
}

fn gossip(arguments: &Map<String, Value>) -> SkillOutput {
    let what = word(arguments, "about").unwrap_or("the bridge");
    SkillOutput::Data(
        json!({"rumour": format!("they say {what} was built in one night"), "heard_from": "a friend"}),
    )
}

fn word<'a>(arguments: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    let given = arguments.get(name).or_else(|| arguments.get("text"))?;
    given.as_str().filter(|word| !word.trim().is_empty())
}
