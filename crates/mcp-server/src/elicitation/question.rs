//! Converts the request for input of a waiting task to questions for a person.
//!
//! An agent asks in text. When it also names the shape of the answer (a JSON schema, as a data part or in the metadata), the person gets
//! a form of that shape; several schemas become several forms. A shape that forms cannot express is shown as text. A task that waits for
//! a login names a URL, which the person is sent to.
use std::collections::HashSet;

use rialto_model::{
    json::Json,
    message::{Content, Message, Part},
    task::{Task, TaskState},
};
use rmcp::model::{ElicitRequestParams, ElicitationSchema};
use serde_json::{Value, json};

use super::{ElicitationResponses, form};
use crate::{
    client_profile::{DeclaredCapabilities, ProtocolFeatures},
    render,
};

/// Names under which a schema may be in a data part or in metadata.
const SCHEMA_KEYS: [&str; 6] =
    ["requestedSchema", "schema", "inputSchema", "input_schema", "jsonSchema", "json_schema"];

/// Names under which a login URL may be in a data part or in metadata.
const LOGIN_URL_KEYS: [&str; 6] =
    ["url", "authUrl", "auth_url", "authorizationUrl", "authorization_url", "verification_uri"];

/// Metadata key of a question about an approval.
const APPROVAL_KEY: &str = "rialto/approval";

/// Maximum length of an agent's key for a question, in bytes.
const MAX_KEY_LENGTH: usize = 64;

/// Questions of one waiting task, with the answers received so far.
#[derive(Clone, Debug)]
pub(crate) struct QuestionSet {
    /// The waiting task.
    pub(crate) task: Task,
    /// In the agent's order.
    pub(crate) questions: Vec<ElicitationQuestion>,
    /// Answers received so far.
    pub(crate) given: ElicitationResponses,
}

/// One question for a person.
#[derive(Clone, Debug)]
pub(crate) struct ElicitationQuestion {
    /// The agent's name for the question.
    pub(crate) name: String,
    /// The client's key for the question.
    pub(crate) key: String,
    /// Elicitation parameters sent to the client.
    pub(crate) params: ElicitRequestParams,
    /// Form of the answer that the agent expects.
    pub(crate) wants: ExpectedAnswer,
}

/// Form of the answer that an agent expects.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ExpectedAnswer {
    /// Free text.
    Words,
    /// Any text: JSON becomes data, anything else text.
    Anything,
    /// Data that matches this schema.
    Data(ElicitationSchema),
    /// Approval decision that matches this schema; declining denies it.
    Decision(ElicitationSchema),
    /// Completed login.
    Login,
}

/// A question with the schema of its answer.
struct SchemaQuestion {
    key: Option<String>,
    words: Option<String>,
    schema: Value,
}

// === impl QuestionSet ===

impl QuestionSet {
    /// Reads the questions of a waiting task, if its client supports a form of elicitation that fits.
    pub(crate) fn of(
        task: &Task,
        abilities: DeclaredCapabilities,
        fluency: ProtocolFeatures,
    ) -> Option<Self> {
        let questions = match task.head.state {
            TaskState::AuthRequired => vec![login(task, abilities.url, abilities.form)?],
            // An approval that another person must decide is not asked here.
            TaskState::InputRequired if abilities.form && !is_for_others(task) => {
                asked(task, fluency.choices)
            }
            _ => return None,
        };
        Some(Self { task: task.clone(), questions, given: ElicitationResponses::new() })
    }

    /// Renames the keys so that none is used twice in the same task.
    pub(crate) fn in_task(mut self) -> Self {
        for question in &mut self.questions {
            question.key = format!("{}-{}", question.name, self.task.head.version);
        }
        self
    }

    /// Questions without an answer.
    pub(crate) fn open(&self) -> impl Iterator<Item = &ElicitationQuestion> {
        self.questions.iter().filter(|question| !self.given.contains_key(&question.key))
    }
}

// === impl ElicitationQuestion ===

impl ElicitationQuestion {
    fn new(name: String, params: ElicitRequestParams, wants: ExpectedAnswer) -> Self {
        Self { key: name.clone(), name, params, wants }
    }
}

/// Asks a person to log in at a URL, or to confirm that they have.
fn login(task: &Task, can_open: bool, can_fill: bool) -> Option<ElicitationQuestion> {
    let words = render::words(task);
    let address = task.message.as_ref().and_then(address);
    let key = "login".to_owned();
    match address {
        Some(url) if can_open => {
            let elicitation_id = format!("{}.{}", task.head.id, task.head.version);
            let params =
                ElicitRequestParams::UrlElicitationParams { meta: None, message: words, url, elicitation_id };
            Some(ElicitationQuestion::new(key, params, ExpectedAnswer::Login))
        }
        address if can_fill => {
            // A form must not ask for a password, so this one has no field for it.
            let schema = json!({
                "type": "object",
                "properties": {
                    "done": { "type": "boolean", "title": "Done", "description": "Whether the login is done." },
                },
                "required": ["done"],
            });
            let message = match address {
                Some(url) if !words.contains(&url) => format!("{words}\n\n{url}"),
                _ => words,
            };
            Some(ElicitationQuestion::new(key, form(message, read(schema)?), ExpectedAnswer::Login))
        }
        _ => None,
    }
}

/// Questions in the status message of a task.
fn asked(task: &Task, choices: bool) -> Vec<ElicitationQuestion> {
    let shaped = task.message.as_ref().map(shaped).unwrap_or_default();
    let spoken = task.message.as_ref().map(Message::text).filter(|text| !text.is_empty());
    let mut taken = HashSet::new();
    let is_decision = approval(task).is_some();
    if shaped.is_empty() {
        return plain("answer".to_owned(), render::words(task), ExpectedAnswer::Words).into_iter().collect();
    }
    let questions = shaped.into_iter().filter_map(|SchemaQuestion { key, words, schema }| {
        let key = distinct(key.unwrap_or_else(|| "answer".to_owned()), &mut taken);
        let said = |name: &str| schema.get(name).and_then(Value::as_str).map(str::to_owned);
        let words =
            words.or_else(|| spoken.clone()).or_else(|| said("description")).or_else(|| said("title"));
        let words = words.unwrap_or_else(|| "The agent needs to know more.".to_owned());
        match form::of(&schema, choices) {
            Some(shape) => {
                let params = form(words, shape.clone());
                let wants =
                    if is_decision { ExpectedAnswer::Decision(shape) } else { ExpectedAnswer::Data(shape) };
                Some(ElicitationQuestion::new(key, params, wants))
            }
            None => {
                let message = format!("{words}\n\nThe answer is to be JSON that fits this schema:\n{schema}");
                plain(key, message, ExpectedAnswer::Anything)
            }
        }
    });
    questions.collect()
}

/// Approval metadata of a task that waits for approval.
fn approval(task: &Task) -> Option<Value> {
    let metadata = task.message.as_ref()?.metadata.as_ref()?;
    metadata.get().contains(APPROVAL_KEY).then(|| metadata.value().get(APPROVAL_KEY).cloned()).flatten()
}

/// True for an approval that the caller may not decide itself.
fn is_for_others(task: &Task) -> bool {
    approval(task).is_some_and(|facts| facts.get("answerable") == Some(&Value::Bool(false)))
}

/// A question with a one-line text answer.
fn plain(key: String, message: String, wants: ExpectedAnswer) -> Option<ElicitationQuestion> {
    let schema = json!({
        "type": "object",
        "properties": { "answer": { "type": "string", "title": "Answer" } },
        "required": ["answer"],
    });
    Some(ElicitationQuestion::new(key, form(message, read(schema)?), wants))
}

fn read(schema: Value) -> Option<ElicitationSchema> {
    serde_json::from_value(schema).ok()
}

fn form(message: String, requested_schema: ElicitationSchema) -> ElicitRequestParams {
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema }
}

/// The key, with a number appended if it is taken.
fn distinct(key: String, taken: &mut HashSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{key}_{number}"));
    let free = std::iter::once(key.clone()).chain(numbered).find(|key| !taken.contains(key));
    let free = free.unwrap_or(key);
    taken.insert(free.clone());
    free
}

/// Schemas in a message.
fn shaped(message: &Message) -> Vec<SchemaQuestion> {
    let parts = message.parts.iter().filter_map(|part| match &part.content {
        Content::Data(data) | Content::Unknown(data) => shape(data, true),
        Content::Text(text) => {
            let shaped = shape(part.metadata.as_ref()?, false)?;
            Some(SchemaQuestion { words: shaped.words.or_else(|| Some(text.clone())), ..shaped })
        }
        Content::Raw(_) | Content::Url(_) => None,
    });
    let shaped: Vec<_> = parts.collect();
    if shaped.is_empty() {
        return message.metadata.as_ref().and_then(|metadata| shape(metadata, false)).into_iter().collect();
    }
    shaped
}

/// Schema in a JSON value: one of its members or the value itself.
fn shape(json: &Json, may_be_itself: bool) -> Option<SchemaQuestion> {
    let Value::Object(members) = json.value() else { return None };
    let text = |names: &[&str]| {
        let found = names.iter().find_map(|name| members.get(*name).and_then(Value::as_str));
        found.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let named = SCHEMA_KEYS.iter().find_map(|name| members.get(*name)).filter(|schema| schema.is_object());
    if let Some(schema) = named {
        let key = text(&["key", "name", "id"]).filter(|key| key.len() <= MAX_KEY_LENGTH);
        return Some(SchemaQuestion { key, words: text(&["message", "question"]), schema: schema.clone() });
    }
    let is_schema = members.get("type") == Some(&json!("object"))
        && members.get("properties").is_some_and(Value::is_object);
    (may_be_itself && is_schema).then(|| SchemaQuestion {
        key: None,
        words: None,
        schema: Value::Object(members),
    })
}

/// Login URL in a message.
fn address(message: &Message) -> Option<String> {
    let is_web = |text: &&str| text.starts_with("https://") || text.starts_with("http://");
    let in_json = |json: &Json| {
        let value = json.value();
        let mut found = LOGIN_URL_KEYS.iter().filter_map(|name| value.get(*name).and_then(Value::as_str));
        found.find(is_web).map(str::to_owned)
    };
    let in_part = |part: &Part| match &part.content {
        Content::Url(url) => Some(url.as_str()).filter(is_web).map(str::to_owned),
        Content::Data(data) | Content::Unknown(data) => in_json(data),
        Content::Text(_) | Content::Raw(_) => part.metadata.as_ref().and_then(in_json),
    };
    let in_words = |text: &str| {
        let start = ["https://", "http://"].iter().filter_map(|scheme| text.find(scheme)).min()?;
        let url = text.get(start..)?.split(|c: char| c.is_whitespace() || "<>\"'`".contains(c)).next()?;
        Some(url.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '}']).to_owned())
    };
    let mut parts = message.parts.iter().filter_map(in_part);
    let beside = || message.metadata.as_ref().and_then(in_json);
    parts.next().or_else(beside).or_else(|| in_words(&message.text()))
}

#[cfg(test)]
mod tests;
