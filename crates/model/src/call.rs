//! A call: who wants what from whom.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    agent::Agent,
    card::Skill,
    cost::Cents,
    credential::Proof,
    event::Remote,
    ids::{Scope, TaskId},
    json::Json,
    message::{Content, Message, Part},
    name,
    rights::{Right, Rights},
    trace::Trace,
};

/// Which door a call came in by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Door {
    /// MCP on stdin and stdout.
    McpStdio,
    /// MCP over HTTP.
    McpHttp,
    /// A2A, JSON-RPC.
    A2aJsonRpc,
    /// A2A, HTTP+JSON.
    A2aRest,
    /// A2A, gRPC.
    A2aGrpc,
    /// A2A 0.1, where the client names the task.
    A2aFirst,
    /// A2A 0.1 with bare arguments in place of a message.
    A2aPlain,
    /// Plain HTTP: arguments in, result out.
    Http,
    /// The command line.
    Cli,
    /// A program that uses Rialto as a library.
    Library,
}

/// What kind of principal a caller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallerKind {
    /// A person, or a program with a person's token.
    User,
    /// One client's session.
    Session,
    /// A registered agent that calls in.
    Agent,
}

/// A caller's name within its org.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallerId(Arc<str>);

/// Who calls. Only authentication makes one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Caller {
    /// Where it may look.
    pub scope: Scope,
    /// What it is.
    pub kind: CallerKind,
    /// Its name.
    pub id: CallerId,
    /// What it may do at all.
    pub rights: Rights,
    /// The signed token it came with, where callers' tokens are exchanged for those of agents. Never sent to an agent, never
    /// written down.
    #[serde(skip)]
    pub proof: Option<Proof>,
}

/// Who shall do the work.
#[derive(Clone, Debug)]
pub struct Target {
    /// The agent, as it was registered when the call was resolved.
    pub agent: Arc<Agent>,
    /// The skill; none for a plain message to the agent.
    pub skill: Option<Arc<Skill>>,
}

/// One call, resolved and ready to be authorized.
#[derive(Clone, Debug)]
pub struct Call {
    /// Our name for the task it becomes.
    pub task: TaskId,
    /// Who calls.
    pub caller: Caller,
    /// The door it came in by.
    pub door: Door,
    /// Who shall do the work.
    pub target: Target,
    /// What is said.
    pub parts: Vec<Part>,
    /// The remote task or conversation this goes on with.
    pub continues: Remote,
    /// The id under which both sides can find this call in their logs: `a2a-<agent>-<skill>-<unique>`.
    pub session: Arc<str>,
    /// The trace it is a part of, if it is one.
    pub trace: Option<Arc<Trace>>,
    /// The caller's own words, where it spoke in messages: an agent hears more of them than their parts.
    pub spoken: Option<Arc<Spoken>>,
}

/// A message as its caller said it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spoken {
    /// The message.
    pub message: Message,
    /// What the caller noted beside it; always an object.
    pub metadata: Option<Json>,
}

/// Wants a remote task called off.
#[derive(Clone, Debug)]
pub struct Cancel {
    /// Who wants it.
    pub caller: Caller,
    /// Who does the work.
    pub target: Target,
    /// What the far side calls the task.
    pub remote: Remote,
}

/// Wants to know how a remote task goes on.
#[derive(Clone, Debug)]
pub struct Follow {
    /// Who wants it.
    pub caller: Caller,
    /// Who does the work.
    pub target: Target,
    /// What the far side calls the task.
    pub remote: Remote,
    /// Whether to stay until the task ends or waits, or only to ask once.
    pub to_the_end: bool,
}

// === impl Door ===

impl Door {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::McpStdio => "mcp-stdio",
            Self::McpHttp => "mcp-http",
            Self::A2aJsonRpc => "a2a-json-rpc",
            Self::A2aRest => "a2a-rest",
            Self::A2aGrpc => "a2a-grpc",
            Self::A2aFirst => "a2a-first",
            Self::A2aPlain => "a2a-plain",
            Self::Http => "http",
            Self::Cli => "cli",
            Self::Library => "library",
        }
    }
}

// === impl CallerId ===

impl CallerId {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same text, shared.
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl<T: AsRef<str>> From<T> for CallerId {
    fn from(text: T) -> Self {
        Self(text.as_ref().into())
    }
}

impl std::fmt::Display for CallerId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl Caller ===

impl Caller {
    /// A person in the default scope who may do everything that policies allow.
    pub fn user(id: impl Into<CallerId>) -> Self {
        Self {
            scope: Scope::default(),
            kind: CallerKind::User,
            id: id.into(),
            rights: Rights::ALL,
            proof: None,
        }
    }

    /// Somebody who has not said who it is, in the default scope. It may look at what is shown to everybody.
    pub fn stranger() -> Self {
        Self { kind: CallerKind::Session, rights: Rights::of([Right::Discover]), ..Self::user("anonymous") }
    }

    /// The same caller for longer than one call.
    #[must_use]
    pub fn without_proof(self) -> Self {
        Self { proof: None, ..self }
    }
}

// === impl Target ===

impl Target {
    /// The canonical name of what is called: what the directory calls it, else `<agentSlug>.<skillId>`, or the slug alone
    /// for a plain message.
    pub fn verb(&self) -> String {
        match &self.skill {
            Some(skill) if let Some(called) = &skill.called => called.to_string(),
            Some(skill) => name::canonical(&self.agent.slug, skill.id.as_str()),
            None => self.agent.slug.clone(),
        }
    }

    /// The name older clients know it by.
    pub fn legacy_alias(&self) -> String {
        if let Some(called) = self.skill.as_ref().and_then(|skill| skill.called.as_ref()) {
            return name::plain(called);
        }
        name::legacy(&self.agent.slug, self.skill.as_ref().map_or("", |skill| skill.id.as_str()))
    }

    /// What one task costs, if the card says so.
    pub fn cost(&self) -> Option<Cents> {
        self.skill.as_ref().and_then(|skill| skill.cost).or(self.agent.card.cost)
    }

    /// The skill's id, or the empty text.
    pub fn skill_id(&self) -> &str {
        self.skill.as_ref().map_or("", |skill| skill.id.as_str())
    }
}

// === impl Call ===

impl Call {
    /// The arguments as one JSON value: a single data part is itself, anything else is an object that names it.
    pub fn args(&self) -> Json {
        args_of(&self.parts)
    }
}

/// Parts as one JSON value: a single data part is itself, anything else is an object that names it.
pub fn args_of(parts: &[Part]) -> Json {
    match parts {
        [Part { content: Content::Data(data), .. }] => data.clone(),
        [Part { content: Content::Text(text), .. }] => Json::of(&serde_json::json!({ "text": text })),
        parts => Json::of(&serde_json::json!({ "parts": parts })),
    }
}
