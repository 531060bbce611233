//! What is deployed beside agents: MCP servers, functions, workflows, and coding agents on this machine.
//!
//! Each is a row of the registry like an agent, so names, policies, health, limits and the record of calls hold for it
//! without a second word. The row's backing says how its work is done; its card is made from what its tools say.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    card::{Card, Skill},
    credential::Source,
    flow::FLOWS,
    json::{Extra, Json},
};

/// What stands behind a row of the registry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backing {
    /// A remote A2A agent.
    #[default]
    A2a,
    /// An MCP server; each of its tools is a skill.
    Mcp(Arc<McpServer>),
    /// A function, which is the one skill.
    Function(Arc<Function>),
    /// The workflows and pipelines of a project; each that is published is a skill.
    Flow(Arc<Flows>),
    /// A coding agent that is started on this machine.
    Acp(Arc<LocalAgent>),
}

/// An MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpServer {
    /// Its name, unique in its project.
    pub name: String,
    /// How it is reached.
    pub via: Via,
    /// Which agent or skill says what the server would have a model say; none declines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<String>,
}

/// A function: arguments in, result out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Function {
    /// Its name, unique in its project.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// How it is reached.
    pub via: Via,
    /// JSON Schema of its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Json>,
    /// JSON Schema that its result must fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Json>,
    /// Whether calling it twice does no more than calling it once.
    #[serde(default)]
    pub idempotent: bool,
    /// How long it may take, in milliseconds; then it is ended.
    pub timeout_ms: u64,
}

/// What is published of a project's workflows and pipelines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Flows {
    /// The skills.
    pub skills: Vec<FlowSkill>,
}

/// One workflow or pipeline, as a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FlowSkill {
    /// `orchestration:<name>` or `pipeline:<name>`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it is good for.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of what it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Json>,
}

/// A coding agent on this machine, which speaks the Agent Client Protocol on stdin and stdout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LocalAgent {
    /// Its name, unique in its project.
    pub name: String,
    /// What it is.
    #[serde(default)]
    pub description: String,
    /// How it is started.
    pub via: Via,
    /// What it is good at, beside doing whatever it is told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<LocalSkill>,
    /// What becomes of its wish to use a tool.
    #[serde(default)]
    pub permission: Permission,
    /// Which files below its folder it may have from us.
    #[serde(default)]
    pub files: Files,
}

/// Something a coding agent on this machine is good at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LocalSkill {
    /// Its id.
    pub id: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// What the agent is told before what the caller says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// What becomes of an agent's wish to use a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Permission {
    /// The task waits until somebody has approved it.
    #[default]
    Ask,
    /// It may.
    Allow,
    /// It may not.
    Deny,
}

/// Which files an agent may have from us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Files {
    /// None: it uses its own means.
    #[default]
    None,
    /// It may read them.
    Read,
    /// It may read and write them.
    Write,
}

/// The skill that every coding agent has.
pub const PROMPT: &str = "prompt";

/// How something deployed is reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Via {
    /// A program on this machine.
    Command(Command),
    /// An address.
    Http(Endpoint),
}

/// A program and what it is started with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Command {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Its environment, beside the few variables that every program gets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Setting>,
    /// The folder it is started in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// An address and what is sent there with each request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// Where.
    pub url: String,
    /// Headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Setting>,
}

/// A header or an environment variable. It may lead to a secret, so it is never shown: only where it comes from.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    /// A text. `${NAME}` in it stands for an environment variable of this process, `${store:NAME}` for a secret.
    Text(String),
    /// Whatever is found there.
    From(Source),
}

/// A piece of a [`Setting`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// This very text.
    Text(String),
    /// Whatever is found there.
    From(Source),
}

/// Words that make a name suspicious, in lower case, without separators.
const SECRETS: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "authorization",
    "credential",
    "privatekey",
    "cookie",
];

// === impl Backing ===

impl Backing {
    /// Its address in the registry; none for an agent, which has one of its own.
    pub fn url(&self) -> Option<String> {
        match self {
            Self::A2a => None,
            Self::Mcp(server) => Some(format!("mcp:{}", server.name)),
            Self::Function(function) => Some(format!("function:{}", function.name)),
            Self::Flow(_) => Some(format!("flow:{FLOWS}")),
            Self::Acp(agent) => Some(format!("acp:{}", agent.name)),
        }
    }

    /// The name it was given; none for an agent, whose card has one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::A2a => None,
            Self::Mcp(server) => Some(&server.name),
            Self::Function(function) => Some(&function.name),
            Self::Flow(_) => Some(FLOWS),
            Self::Acp(agent) => Some(&agent.name),
        }
    }

    /// How it is reached; none for an agent, whose card says it, and for workflows, which are run here.
    pub fn via(&self) -> Option<&Via> {
        match self {
            Self::A2a | Self::Flow(_) => None,
            Self::Mcp(server) => Some(&server.via),
            Self::Function(function) => Some(&function.via),
            Self::Acp(agent) => Some(&agent.via),
        }
    }

    /// Whether it is a remote agent.
    pub const fn is_agent(&self) -> bool {
        matches!(self, Self::A2a)
    }

    /// Whether it remembers what was said before in the same conversation.
    pub const fn keeps_conversations(&self) -> bool {
        matches!(self, Self::A2a | Self::Acp(_))
    }

    /// Whether it gives its tasks names by which it can be asked about them later.
    pub const fn names_tasks(&self) -> bool {
        matches!(self, Self::A2a | Self::Flow(_))
    }

    /// Whether the same call again, under the same task, begins nothing new.
    pub const fn begins_once(&self) -> bool {
        matches!(self, Self::Flow(_))
    }

    /// What it can do, if that was said when it was deployed: then nobody has to be asked.
    pub fn own_card(&self) -> Option<Card> {
        match self {
            Self::A2a | Self::Mcp(_) => None,
            Self::Function(function) => Some(function.card()),
            Self::Flow(flows) => Some(flows.card()),
            Self::Acp(agent) => Some(agent.card()),
        }
    }

    /// Its kind, for listings.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::A2a => "agent",
            Self::Mcp(_) => "mcp",
            Self::Function(_) => "function",
            Self::Flow(_) => "flow",
            Self::Acp(_) => "acp",
        }
    }

    /// What it is known as before anybody has answered.
    pub fn first_card(&self) -> Option<Card> {
        match self {
            Self::A2a => None,
            Self::Mcp(server) => Some(card(&server.name, "", None, Vec::new())),
            Self::Function(_) | Self::Flow(_) | Self::Acp(_) => self.own_card(),
        }
    }
}

// === impl Flows ===

impl Flows {
    /// The card that stands for them.
    pub fn card(&self) -> Card {
        let skills = self.skills.iter().map(|it| Skill {
            input_schema: it.input_schema.clone(),
            ..skill(&it.id, &it.name, &it.description)
        });
        card(FLOWS, "Workflows and pipelines: work in many steps", None, skills.collect())
    }
}

// === impl Function ===

impl Function {
    /// The card that stands for it.
    pub fn card(&self) -> Card {
        let mut extra = Extra::new();
        if let Some(schema) = &self.output_schema {
            extra.push("outputSchema", schema.clone());
        }
        if self.idempotent {
            extra.push("annotations", Json::of(&serde_json::json!({ "idempotentHint": true })));
        }
        let skill = Skill {
            input_schema: self.input_schema.clone(),
            extra,
            ..skill(&self.name, &self.name, &self.description)
        };
        card(&self.name, &self.description, None, vec![skill])
    }
}

// === impl LocalAgent ===

impl LocalAgent {
    /// The card that stands for it: one skill for whatever it is told, and those it was given.
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

    /// What it is told before what the caller says, for a skill.
    pub fn instructions(&self, id: &str) -> Option<&str> {
        self.skills.iter().find(|skill| skill.id == id)?.instructions.as_deref()
    }
}

// === impl Via ===

impl Via {
    /// Where it leads, in one line, without anything that could be a secret.
    pub fn described(&self) -> String {
        match self {
            Self::Command(command) => command.argv.first().cloned().unwrap_or_default(),
            Self::Http(endpoint) => endpoint.url.split(['?', '#']).next().unwrap_or(&endpoint.url).to_owned(),
        }
    }

    /// Its headers or variables.
    pub const fn settings(&self) -> &BTreeMap<String, Setting> {
        match self {
            Self::Command(command) => &command.env,
            Self::Http(endpoint) => &endpoint.headers,
        }
    }
}

// === impl Setting ===

impl Setting {
    /// What it is put together from. An `${` without its `}` is what it looks like.
    pub fn pieces(&self) -> Vec<Piece> {
        let text = match self {
            Self::From(source) => return vec![Piece::From(source.clone())],
            Self::Text(text) => text,
        };
        let mut pieces = Vec::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, behind)) = after.split_once('}') else { break };
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            let source = Source::parse(name).unwrap_or_else(|| Source::Env(name.to_owned()));
            pieces.push(Piece::From(source));
            rest = behind;
        }
        if !rest.is_empty() || pieces.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        pieces
    }

    /// Where it comes from, for listings.
    pub fn described(&self) -> String {
        let described = self.pieces().into_iter().map(|piece| match piece {
            Piece::Text(_) => "given".to_owned(),
            Piece::From(source) => source.to_string(),
        });
        described.filter(|word| word != "given").reduce(|a, b| format!("{a}, {b}")).unwrap_or("given".into())
    }

    /// Whether it is a secret that was written where it would be kept: its name says so, and nothing in it leads
    /// elsewhere.
    pub fn is_bare_secret(&self, name: &str) -> bool {
        let plain: String =
            name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
        let is_suspicious = SECRETS.iter().any(|word| plain.contains(word)) || plain.ends_with("key");
        is_suspicious && self.pieces().iter().all(|piece| matches!(piece, Piece::Text(_)))
    }
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.described())
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
    raw.push("name", Json::of(name));
    raw.push("description", Json::of(description));
    if let Some(version) = version {
        raw.push("version", Json::of(version));
    }
    raw.push("skills", Json::of(&skills.iter().map(written).collect::<Vec<_>>()));
    Card {
        name: name.to_owned(),
        description: description.to_owned(),
        version: version.map(str::to_owned),
        interfaces: Vec::new(),
        skills: skills.into_iter().map(Arc::new).collect(),
        streaming: false,
        push_notifications: false,
        extended: false,
        signed: false,
        cost: None,
        raw: Json::of(&raw),
    }
}

fn written(skill: &Skill) -> Extra {
    let mut members = Extra::new();
    members.push("id", Json::of(&skill.id));
    members.push("name", Json::of(&skill.name));
    members.push("description", Json::of(&skill.description));
    if !skill.tags.is_empty() {
        members.push("tags", Json::of(&skill.tags));
    }
    if let Some(schema) = &skill.input_schema {
        members.push("inputSchema", schema.clone());
    }
    for (name, value) in skill.extra.iter() {
        members.push(name, value.clone());
    }
    members
}

/// Whether something deployed can be called this: it stands in addresses and in lists of tools as it is.
pub fn is_name(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    name.len() <= 64 && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Setting {
        Setting::Text(text.to_owned())
    }

    #[test]
    fn a_setting_is_put_together_from_texts_and_places() {
        let env = |name: &str| Piece::From(Source::Env(name.to_owned()));
        assert_eq!(text("plain").pieces(), [Piece::Text("plain".into())]);
        assert_eq!(text("").pieces(), [Piece::Text(String::new())]);
        assert_eq!(text("Bearer ${TOKEN}").pieces(), [Piece::Text("Bearer ".into()), env("TOKEN")]);
        assert_eq!(text("${A}-${B}").pieces(), [env("A"), Piece::Text("-".into()), env("B")]);
        assert_eq!(text("${store:desk}").pieces(), [Piece::From(Source::Store("desk".into()))]);
        assert_eq!(text("${open").pieces(), [Piece::Text("${open".into())]);
    }

    #[test]
    fn a_setting_is_never_shown() {
        let shown = format!("{:?} {}", text("hunter2 ${TOKEN}"), text("hunter2").described());
        assert_eq!(shown, "env:TOKEN given");
    }

    #[test]
    fn a_secret_is_named_and_not_written() {
        for name in ["Authorization", "X-API-Key", "GITHUB_TOKEN", "db_password", "OPENAI_API_KEY"] {
            assert!(text("hunter2").is_bare_secret(name), "{name}");
            assert!(!text("Bearer ${TOKEN}").is_bare_secret(name), "{name}");
        }
        for name in ["Accept", "LANG", "MONKEYS", "X-Tenant"] {
            assert!(!text("hunter2").is_bare_secret(name), "{name}");
        }
    }

    #[test]
    fn a_row_comes_back_as_it_was() {
        let source = r#"{"mcp":{"name":"w","via":{"http":{"url":"https://w.example/mcp","headers":{"A":{"env":"T"},"B":"x"}}}}}"#;
        let backing: Backing = serde_json::from_str(source).unwrap();
        assert_eq!(serde_json::to_string(&backing).unwrap(), source);
        assert_eq!(backing.url().as_deref(), Some("mcp:w"));
    }

    #[test]
    fn an_idempotent_function_says_so_on_its_skill() {
        let function = Function {
            name: "add".into(),
            description: "Adds".into(),
            via: Via::Command(Command::default()),
            input_schema: Some(Json::parse(r#"{"type":"object"}"#).unwrap()),
            output_schema: Some(Json::parse(r#"{"type":"number"}"#).unwrap()),
            idempotent: true,
            timeout_ms: 1,
        };
        let card = function.card();
        assert!(card.skills[0].is_repeatable());
        let other = Function { idempotent: false, ..function };
        assert!(!other.card().skills[0].is_repeatable());
    }

    #[test]
    fn a_name_stands_anywhere_as_it_is() {
        for good in ["weather-lookup", "a", "A_1"] {
            assert!(is_name(good), "{good}");
        }
        for wrong in ["", "-a", "a.b", "a/b", "a b", &"a".repeat(65)] {
            assert!(!is_name(wrong), "{wrong}");
        }
    }
}
