//! A call: who wants what from whom.

use std::{collections::BTreeMap, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap};

use crate::{
    agent::Agent,
    card::Skill,
    cost::Cents,
    credential::CallerProof,
    event::RemoteIds,
    ids::{Scope, TaskId, TokenId},
    json::Json,
    message::{Content, Message, Part},
    name,
    presence::CallerPresence,
    token_scopes::{TokenScope, TokenScopes},
    trace::Trace,
};

/// Header, and member of MCP's `_meta` and of `tracestate` under its own names, that counts the calls which led to a request.
pub const HOPS_HEADER: &str = "rialto-hops";
/// Member of `_meta` that counts the calls which led to a request.
pub const HOPS_META: &str = "rialto/hops";
/// Variable of a started program that counts the calls which led to it. Commands of ours send it on.
pub const HOPS_VARIABLE: &str = "RIALTO_HOPS";

/// Which door a call came in by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Door")]
pub enum EntryProtocol {
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
    /// A form of the console.
    Console,
    /// A program that uses Rialto as a library.
    Library,
}

/// What kind of principal a caller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct CallerId(Arc<str>);

/// Caller of a request. Only authentication makes one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Caller {
    /// Org and project that it can see.
    pub scope: Scope,
    /// Description.
    pub kind: CallerKind,
    /// Its name.
    pub id: CallerId,
    /// Scopes of its token.
    pub rights: TokenScopes,
    /// The token of ours that it came with, by its name: what was begun with it ends when it is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
    /// The signed token it came with, where callers' tokens are exchanged for those of agents. Never sent to an agent, never
    /// written down.
    #[serde(skip)]
    pub proof: Option<CallerProof>,
    /// Number of calls through this installation that led to this one, as the request says: an agent that calls back passes it on.
    #[serde(skip)]
    pub hops: u8,
}

/// Agent and skill that are called.
#[derive(Clone, Debug)]
pub struct CallTarget {
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
    /// The caller.
    pub caller: Caller,
    /// Protocol by which it came in.
    pub door: EntryProtocol,
    /// Agent and skill that are called.
    pub target: CallTarget,
    /// Parts of the request.
    pub parts: Vec<Part>,
    /// The remote task or conversation this goes on with.
    pub continues: RemoteIds,
    /// The id under which both sides can find this call in their logs: `a2a-<agent>-<skill>-<unique>`.
    pub session: Arc<str>,
    /// The trace it is a part of, if it is one.
    pub trace: Option<Arc<Trace>>,
    /// The caller's original message, if it sent one: it has more members than its parts.
    pub spoken: Option<Arc<OriginalMessage>>,
    /// Until when its caller waits, and whether it still does.
    pub presence: CallerPresence,
}

/// A message as its caller said it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginalMessage {
    /// The message.
    pub message: Message,
    /// Metadata of the request; always an object.
    pub metadata: Option<Json>,
    /// URIs of the protocol extensions that the caller wants in use, named in the message or beside it.
    pub extensions: Vec<String>,
    /// Media types that the caller takes; empty when it does not care.
    pub accepts: Vec<String>,
    /// Other tasks that the message speaks of, as the agent calls them.
    pub references: Vec<String>,
}

/// Wants a remote task cancelled.
#[derive(Clone, Debug)]
pub struct CancelRequest {
    /// The caller.
    pub caller: Caller,
    /// Agent and skill.
    pub target: CallTarget,
    /// The agent's ids of the task.
    pub remote: RemoteIds,
}

/// Wants to know how a remote task goes on.
#[derive(Clone, Debug)]
pub struct FollowRequest {
    /// The caller.
    pub caller: Caller,
    /// Agent and skill.
    pub target: CallTarget,
    /// The agent's ids of the task.
    pub remote: RemoteIds,
    /// True if to stay until the task ends or waits, or only to ask once.
    pub to_the_end: bool,
}

// === impl CallerKind ===

impl CallerKind {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Session => "session",
            Self::Agent => "agent",
        }
    }
}

// === impl EntryProtocol ===

impl EntryProtocol {
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
            Self::Console => "console",
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

    /// Text, shared without a copy.
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
            rights: TokenScopes::ALL,
            token: None,
            proof: None,
            hops: 0,
        }
    }

    /// Anonymous caller in the default scope. It may discover what is public.
    pub fn stranger() -> Self {
        Self {
            kind: CallerKind::Session,
            rights: TokenScopes::from_scopes([TokenScope::Discover]),
            ..Self::user("anonymous")
        }
    }

    /// Returns whether this is the anonymous caller.
    pub fn is_stranger(&self) -> bool {
        let stranger = Self::stranger();
        self.kind == stranger.kind && self.id == stranger.id && self.rights == stranger.rights
    }

    /// Caller without its proof, to keep for longer than one call.
    #[must_use]
    pub fn without_proof(self) -> Self {
        Self { proof: None, hops: 0, ..self }
    }
}

// === impl CallTarget ===

impl CallTarget {
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

    /// Cost of one task, if the card states it.
    pub fn cost(&self) -> Option<Cents> {
        self.skill.as_ref().and_then(|skill| skill.cost).or(self.agent.card.cost)
    }

    /// Returns whether plain words are arguments of it: it belongs to an agent, or its schema names a `message`.
    pub fn takes_words(&self) -> bool {
        match self.skill.as_ref().and_then(|skill| skill.input_schema.as_ref()) {
            Some(schema) => schema.value().pointer("/properties/message").is_some(),
            None => self.agent.backing.keeps_conversations(),
        }
    }

    /// Plain words as arguments of a skill.
    pub fn words(text: &str) -> Json {
        Json::encode(&serde_json::json!({ "message": text }))
    }

    /// The skill's id, or the empty text.
    pub fn skill_id(&self) -> &str {
        self.skill.as_ref().map_or("", |skill| skill.id.as_str())
    }
}

// === impl OriginalMessage ===

impl OriginalMessage {
    /// A message with what its caller noted beside it, and nothing that it does not say itself.
    pub fn new(message: Message, metadata: Option<Json>) -> Self {
        let (extensions, references) = (message.extensions.clone(), message.reference_task_ids.clone());
        Self { message, metadata, extensions, accepts: Vec::new(), references }
    }
}

// === impl Call ===

impl Call {
    /// The arguments as one JSON value; see [`args_of`].
    pub fn args(&self) -> Json {
        args_of(&self.parts, self.target.skill.as_deref())
    }
}

/// Parts as the arguments of a skill, one JSON value. The only data part is itself, whatever stands beside it. A text alone is
/// `{"text": …}`, unless it is a JSON object and the skill takes one: clients that can only send text write their arguments so.
/// Anything else is `{"parts": […]}`, in the shape that A2A 1.0 has for parts.
pub fn args_of(parts: &[Part], skill: Option<&Skill>) -> Json {
    let data = |part: &Part| match &part.content {
        Content::Data(data) => Some(data.clone()),
        _ => None,
    };
    let mut all_data = parts.iter().filter_map(data);
    if let (Some(only), None) = (all_data.next(), all_data.next()) {
        return only;
    }
    if let [Part { content: Content::Text(text), .. }] = parts {
        let written = Some(text.trim()).filter(|text| text.starts_with('{') && takes_object(skill));
        return written
            .and_then(|text| Json::parse(text).ok())
            .unwrap_or_else(|| Json::encode(&serde_json::json!({ "text": text })));
    }
    Json::encode(&BTreeMap::from([("parts", parts.iter().map(PartArguments).collect::<Vec<_>>())]))
}

/// Returns whether a skill says that its arguments are an object.
fn takes_object(skill: Option<&Skill>) -> bool {
    let schema = skill.and_then(|skill| skill.input_schema.as_ref());
    schema.and_then(|schema| schema.raw().member("type")).is_some_and(|kind| kind.get() == r#""object""#)
}

/// A part in the shape of A2A 1.0.
struct PartArguments<'a>(&'a Part);

impl Serialize for PartArguments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let part = self.0;
        if let Content::Unknown(part) = &part.content {
            // The whole part, as it came.
            return part.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        match &part.content {
            Content::Unknown(_) => {}
            Content::Text(text) => map.serialize_entry("text", text)?,
            Content::Data(data) => map.serialize_entry("data", data)?,
            Content::Raw(bytes) => map.serialize_entry("raw", bytes)?,
            Content::Url(url) => map.serialize_entry("url", url)?,
        }
        for (name, value) in [("filename", &part.filename), ("mediaType", &part.media_type)] {
            if let Some(value) = value {
                map.serialize_entry(name, value)?;
            }
        }
        if let Some(metadata) = &part.metadata {
            map.serialize_entry("metadata", metadata)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SkillId;

    fn taking(schema: Option<&str>) -> Skill {
        Skill {
            input_schema: schema.map(|schema| Json::parse(schema).unwrap()),
            ..crate::backing::skill(&SkillId::from("s").to_string(), "s", "")
        }
    }

    fn data(text: &str) -> Part {
        Part::data(Json::parse(text).unwrap())
    }

    #[test]
    fn the_only_data_among_parts_is_the_arguments() {
        let parts = [Part::text("please"), data(r#"{"n": 1.0}"#)];
        assert_eq!(args_of(&parts[1..], None).get(), r#"{"n": 1.0}"#);
        assert_eq!(args_of(&parts, None).get(), r#"{"n": 1.0}"#);
    }

    #[test]
    fn a_text_that_is_an_object_is_the_arguments_where_an_object_is_taken() {
        let parts = [Part::text(r#" {"n": 1.0} "#)];
        let object = taking(Some(r#"{"properties":{"type":{}},"type":"object"}"#));
        assert_eq!(args_of(&parts, Some(&object)).get(), r#"{"n": 1.0}"#);
        for other in [taking(None), taking(Some(r#"{"type":"string"}"#))] {
            assert_eq!(args_of(&parts, Some(&other)).value()["text"], r#" {"n": 1.0} "#);
        }
        assert_eq!(args_of(&[Part::text("{no")], Some(&object)).get(), r#"{"text":"{no"}"#);
        assert_eq!(args_of(&[Part::text("[1]")], Some(&object)).get(), r#"{"text":"[1]"}"#);
    }

    #[test]
    fn other_parts_are_told_as_a2a_1_0_tells_them() {
        let file = Part {
            filename: Some("a.png".into()),
            media_type: Some("image/png".into()),
            ..Part::new(Content::Raw("AAAA".into()))
        };
        let new = Part::new(Content::Unknown(Json::parse(r#"{"kind":"scent","s":1}"#).unwrap()));
        let parts = [Part::text("hi"), file, Part::new(Content::Url("https://a".into())), new];
        let told = r#"{"parts":[{"text":"hi"},{"raw":"AAAA","filename":"a.png","mediaType":"image/png"},{"url":"https://a"},{"kind":"scent","s":1}]}"#;
        assert_eq!(args_of(&parts, None).get(), told);
        let two = [data("1.0"), data("2")];
        assert_eq!(args_of(&two, None).get(), r#"{"parts":[{"data":1.0},{"data":2}]}"#);
    }
}
