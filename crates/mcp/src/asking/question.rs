//! What a waiting task asks, as questions for a person.
//!
//! An agent's question is words. When it says in which shape it wants the answer (a JSON schema, as a data part or in the
//! metadata), the person gets a form of that shape; several schemas are several forms. A shape that forms cannot have is shown
//! to the person as text. Who waits for a login names an address for it, and the person is sent there.

use std::collections::HashSet;

use rialto_model::{
    json::Json,
    message::{Content, Message, Part},
    task::{Task, TaskState},
};
use rmcp::model::{ElicitRequestParams, ElicitationSchema};
use serde_json::{Value, json};

use super::{Responses, form};
use crate::{
    client::{Abilities, Fluency},
    render,
};

/// Where a schema may stand in a data part or in metadata.
const SCHEMAS: [&str; 6] =
    ["requestedSchema", "schema", "inputSchema", "input_schema", "jsonSchema", "json_schema"];

/// Where an address for a login may stand in a data part or in metadata.
const ADDRESSES: [&str; 6] =
    ["url", "authUrl", "auth_url", "authorizationUrl", "authorization_url", "verification_uri"];

/// Where a question says that it is about an approval.
const APPROVAL: &str = "rialto/approval";

/// How long a key may be that an agent gives to a question.
const LONGEST_KEY: usize = 64;

/// What is asked, and what was answered already.
#[derive(Clone, Debug)]
pub(crate) struct Inquiry {
    /// The task that waits.
    pub(crate) task: Task,
    /// In the order they were asked.
    pub(crate) questions: Vec<Question>,
    /// The answers that are there.
    pub(crate) given: Responses,
}

/// One thing to ask a person.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// What the agent calls it.
    pub(crate) name: String,
    /// What the client calls it.
    pub(crate) key: String,
    /// What the client is told.
    pub(crate) params: ElicitRequestParams,
    /// What the agent is told of the answer.
    pub(crate) wants: Wants,
}

/// What an agent wants to have.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wants {
    /// Words.
    Words,
    /// Whatever the person writes: JSON as data, anything else as words.
    Anything,
    /// Data of this shape.
    Data(ElicitationSchema),
    /// A decision of this shape; who declines to make it denies.
    Decision(ElicitationSchema),
    /// That somebody logs in.
    Login,
}

/// A question that says in which shape it wants its answer.
struct Shaped {
    key: Option<String>,
    words: Option<String>,
    schema: Value,
}

// === impl Inquiry ===

impl Inquiry {
    /// What a waiting task asks, if its client can ask a person in a way that does.
    pub(crate) fn of(task: &Task, abilities: Abilities, fluency: Fluency) -> Option<Self> {
        let questions = match task.head.state {
            TaskState::AuthRequired => vec![login(task, abilities.url, abilities.form)?],
            // What somebody else is to decide is not asked here.
            TaskState::InputRequired if abilities.form && !is_for_others(task) => {
                asked(task, fluency.choices)
            }
            _ => return None,
        };
        Some(Self { task: task.clone(), questions, given: Responses::new() })
    }

    /// The same under keys that are never used again in the same task.
    pub(crate) fn in_task(mut self) -> Self {
        for question in &mut self.questions {
            question.key = format!("{}-{}", question.name, self.task.head.version);
        }
        self
    }

    /// The questions that have no answer yet.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Question> {
        self.questions.iter().filter(|question| !self.given.contains_key(&question.key))
    }
}

// === impl Question ===

impl Question {
    fn new(name: String, params: ElicitRequestParams, wants: Wants) -> Self {
        Self { key: name.clone(), name, params, wants }
    }
}

/// Sends a person to log in, or asks whether it has.
fn login(task: &Task, can_open: bool, can_fill: bool) -> Option<Question> {
    let words = render::words(task);
    let address = task.message.as_ref().and_then(address);
    let key = "login".to_owned();
    match address {
        Some(url) if can_open => {
            let elicitation_id = format!("{}.{}", task.head.id, task.head.version);
            let params =
                ElicitRequestParams::UrlElicitationParams { meta: None, message: words, url, elicitation_id };
            Some(Question::new(key, params, Wants::Login))
        }
        address if can_fill => {
            // A form is no place for a password, so it asks for none.
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
            Some(Question::new(key, form(message, read(schema)?), Wants::Login))
        }
        _ => None,
    }
}

/// What an agent wants to know.
fn asked(task: &Task, choices: bool) -> Vec<Question> {
    let shaped = task.message.as_ref().map(shaped).unwrap_or_default();
    let spoken = task.message.as_ref().map(Message::text).filter(|text| !text.is_empty());
    let mut taken = HashSet::new();
    let is_decision = approval(task).is_some();
    if shaped.is_empty() {
        return plain("answer".to_owned(), render::words(task), Wants::Words).into_iter().collect();
    }
    let questions = shaped.into_iter().filter_map(|Shaped { key, words, schema }| {
        let key = distinct(key.unwrap_or_else(|| "answer".to_owned()), &mut taken);
        let said = |name: &str| schema.get(name).and_then(Value::as_str).map(str::to_owned);
        let words =
            words.or_else(|| spoken.clone()).or_else(|| said("description")).or_else(|| said("title"));
        let words = words.unwrap_or_else(|| "The agent needs to know more.".to_owned());
        match form::of(&schema, choices) {
            Some(shape) => {
                let params = form(words, shape.clone());
                let wants = if is_decision { Wants::Decision(shape) } else { Wants::Data(shape) };
                Some(Question::new(key, params, wants))
            }
            None => {
                let message = format!("{words}\n\nThe answer is to be JSON that fits this schema:\n{schema}");
                plain(key, message, Wants::Anything)
            }
        }
    });
    questions.collect()
}

/// What a task that waits for approval says about that.
fn approval(task: &Task) -> Option<Value> {
    let metadata = task.message.as_ref()?.metadata.as_ref()?;
    metadata.get().contains(APPROVAL).then(|| metadata.value().get(APPROVAL).cloned()).flatten()
}

/// Whether it waits for a decision that its caller may not make.
fn is_for_others(task: &Task) -> bool {
    approval(task).is_some_and(|facts| facts.get("answerable") == Some(&Value::Bool(false)))
}

/// A question that is answered in one line.
fn plain(key: String, message: String, wants: Wants) -> Option<Question> {
    let schema = json!({
        "type": "object",
        "properties": { "answer": { "type": "string", "title": "Answer" } },
        "required": ["answer"],
    });
    Some(Question::new(key, form(message, read(schema)?), wants))
}

fn read(schema: Value) -> Option<ElicitationSchema> {
    serde_json::from_value(schema).ok()
}

fn form(message: String, requested_schema: ElicitationSchema) -> ElicitRequestParams {
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema }
}

/// The key, or the next one like it that is not taken.
fn distinct(key: String, taken: &mut HashSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{key}_{number}"));
    let free = std::iter::once(key.clone()).chain(numbered).find(|key| !taken.contains(key));
    let free = free.unwrap_or(key);
    taken.insert(free.clone());
    free
}

/// The shapes that a message asks for.
fn shaped(message: &Message) -> Vec<Shaped> {
    let parts = message.parts.iter().filter_map(|part| match &part.content {
        Content::Data(data) | Content::Unknown(data) => shape(data, true),
        Content::Text(text) => {
            let shaped = shape(part.metadata.as_ref()?, false)?;
            Some(Shaped { words: shaped.words.or_else(|| Some(text.clone())), ..shaped })
        }
        Content::Raw(_) | Content::Url(_) => None,
    });
    let shaped: Vec<_> = parts.collect();
    if shaped.is_empty() {
        return message.metadata.as_ref().and_then(|metadata| shape(metadata, false)).into_iter().collect();
    }
    shaped
}

/// The shape in a piece of JSON: a member of it, or itself.
fn shape(json: &Json, may_be_itself: bool) -> Option<Shaped> {
    let Value::Object(members) = json.value() else { return None };
    let text = |names: &[&str]| {
        let found = names.iter().find_map(|name| members.get(*name).and_then(Value::as_str));
        found.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let named = SCHEMAS.iter().find_map(|name| members.get(*name)).filter(|schema| schema.is_object());
    if let Some(schema) = named {
        let key = text(&["key", "name", "id"]).filter(|key| key.len() <= LONGEST_KEY);
        return Some(Shaped { key, words: text(&["message", "question"]), schema: schema.clone() });
    }
    let is_schema = members.get("type") == Some(&json!("object"))
        && members.get("properties").is_some_and(Value::is_object);
    (may_be_itself && is_schema).then(|| Shaped { key: None, words: None, schema: Value::Object(members) })
}

/// The address that a message names.
fn address(message: &Message) -> Option<String> {
    let is_web = |text: &&str| text.starts_with("https://") || text.starts_with("http://");
    let in_json = |json: &Json| {
        let value = json.value();
        let mut found = ADDRESSES.iter().filter_map(|name| value.get(*name).and_then(Value::as_str));
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
