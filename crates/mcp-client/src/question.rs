//! Questions of an MCP server and the parsing of answers: pure functions.
//!
//! A caller that sends messages answers with data that matches the form, with JSON as text, with plain text if the form has one field,
//! or with `decline` or `cancel`. An invalid answer is reported with the reason, and the question is asked again.

use std::collections::BTreeMap;

use rialto_model::{
    event::{Event, EventAside, QuestionKind},
    form_validation,
    ids::fresh,
    json::Json,
    message::{Content, Message, Part, Role, text_of},
};
use serde_json::{Map, Value, json};

/// Texts that decline a question.
const DECLINE_TEXTS: [&str; 4] = ["decline", "declined", "deny", "the person declined to answer."];

/// Texts that cancel the call.
const CANCEL_TEXTS: [&str; 3] = ["cancel", "canceled", "cancelled"];

/// Texts for true and false.
const TRUE_TEXTS: [&str; 4] = ["true", "yes", "y", "1"];
const FALSE_TEXTS: [&str; 4] = ["false", "no", "n", "0"];

/// One question of a server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServerQuestion {
    /// The server's name for the question.
    pub(crate) key: String,
    message: String,
    wants: QuestionForm,
}

#[derive(Clone, Debug, PartialEq)]
enum QuestionForm {
    /// An object that matches this schema.
    Form(Map<String, Value>),
    /// A visit to this URL.
    Visit { url: String, id: Option<String> },
}

/// Elicitation results, by question key.
pub(crate) type ElicitationAnswers = BTreeMap<String, Value>;

// === impl ServerQuestion ===

impl ServerQuestion {
    /// Parses the parameters of an elicitation.
    pub(crate) fn read(key: &str, params: &Value) -> Option<Self> {
        let text = |name: &str| params.get(name).and_then(Value::as_str).map(str::to_owned);
        let wants = match text("url") {
            Some(url) => QuestionForm::Visit { url, id: text("elicitationId") },
            None => QuestionForm::Form(params.get("requestedSchema")?.as_object()?.clone()),
        };
        Some(Self { key: key.to_owned(), message: text("message").unwrap_or_default(), wants })
    }

    fn part(&self) -> Part {
        let facts = match &self.wants {
            QuestionForm::Form(schema) => {
                json!({ "key": self.key, "message": self.message, "requestedSchema": schema })
            }
            QuestionForm::Visit { url, id } => {
                json!({ "key": self.key, "message": self.message, "url": url, "elicitationId": id })
            }
        };
        Part::data(Json::encode(&facts))
    }

    fn words(&self) -> String {
        match &self.wants {
            QuestionForm::Visit { url, .. } if !self.message.contains(url.as_str()) => {
                format!("{}\n{url}", self.message).trim().to_owned()
            }
            _ => self.message.clone(),
        }
    }

    /// Elicitation result in these parts; or the reason why they are invalid.
    fn answer(&self, parts: &[&Part]) -> Result<Value, String> {
        let said = parts.iter().rev().find_map(|part| object_in(part));
        if let Some(said) = &said
            && let Some(action @ ("accept" | "decline" | "cancel")) =
                said.get("action").and_then(Value::as_str)
            && said.keys().all(|name| matches!(name.as_str(), "action" | "content" | "_meta"))
        {
            return match (action, &self.wants, said.get("content")) {
                ("accept", QuestionForm::Form(schema), content) => {
                    let content = content.and_then(Value::as_object).cloned().unwrap_or_default();
                    accepted(schema, &content)
                }
                _ => Ok(json!({ "action": action })),
            };
        }
        let text = text_of(parts.iter().map(|part| (*part).clone()).collect::<Vec<_>>().as_slice());
        let word = text.trim().to_lowercase();
        if DECLINE_TEXTS.contains(&word.as_str()) {
            return Ok(json!({ "action": "decline" }));
        }
        if CANCEL_TEXTS.contains(&word.as_str()) {
            return Ok(json!({ "action": "cancel" }));
        }
        match (&self.wants, said) {
            (QuestionForm::Visit { .. }, _) => Ok(json!({ "action": "accept" })),
            (QuestionForm::Form(schema), Some(said)) => accepted(schema, &said),
            (QuestionForm::Form(schema), None) => accepted(schema, &only_field(schema, text.trim())?),
        }
    }
}

/// Event of a task that waits for answers; `trouble` is the error in the previous ones.
pub(crate) fn asked(questions: &[ServerQuestion], trouble: Option<&str>) -> Event {
    let visits = questions.iter().all(|question| matches!(question.wants, QuestionForm::Visit { .. }));
    let words: Vec<String> =
        trouble.map(str::to_owned).into_iter().chain(questions.iter().map(ServerQuestion::words)).collect();
    let text = Part::text(words.join("\n\n"));
    let parts = std::iter::once(text).chain(questions.iter().map(ServerQuestion::part)).collect();
    Event::Asked {
        ask: if visits { QuestionKind::Auth } else { QuestionKind::Input },
        message: Some(Message::new(fresh(), Role::Agent, parts)),
        aside: EventAside::default(),
    }
}

/// Parses the answers to each question; the error names what is missing or invalid.
///
/// A part may name its question in its metadata (`inputRequest`). Otherwise several questions are answered by one object with a member
/// for each.
pub(crate) fn answers(questions: &[ServerQuestion], parts: &[Part]) -> Result<ElicitationAnswers, String> {
    let named = |part: &Part| {
        let beside = part.metadata.as_ref()?.value();
        Some(beside.get("inputRequest")?.as_str()?.to_owned())
    };
    let is_one = questions.len() == 1;
    let whole = parts.iter().find_map(object_in);
    let mut answers = ElicitationAnswers::new();
    for question in questions {
        let own: Vec<&Part> =
            parts.iter().filter(|part| named(part).map_or(is_one, |name| name == question.key)).collect();
        let member = whole.as_ref().and_then(|whole| whole.get(&question.key)).filter(|_| !is_one);
        let answer = match (own.as_slice(), member) {
            ([], Some(Value::String(text))) => question.answer(&[&Part::text(text)]),
            ([], Some(member)) => question.answer(&[&Part::data(Json::encode(member))]),
            ([], None) => Err("there is no answer".to_owned()),
            (own, _) => question.answer(own),
        };
        let answer = answer.map_err(|why| {
            if is_one { format!("That is no answer: {why}.") } else { format!("{}: {why}.", question.key) }
        })?;
        answers.insert(question.key.clone(), answer);
    }
    Ok(answers)
}

/// Accepted answer with this content, if it matches the form. Missing fields get their defaults.
fn accepted(schema: &Map<String, Value>, content: &Map<String, Value>) -> Result<Value, String> {
    let mut content = content.clone();
    for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if let Some(default) = field.get("default")
            && !content.contains_key(name)
        {
            content.insert(name.clone(), default.clone());
        }
    }
    if let Some(why) = form_validation::find_mismatch(schema, &content) {
        return Err(why);
    }
    Ok(json!({ "action": "accept", "content": content }))
}

/// Plain text as the value of the only required field.
fn only_field(schema: &Map<String, Value>, text: &str) -> Result<Map<String, Value>, String> {
    let none = Map::new();
    let fields = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|required| required.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let name = match (required.as_slice(), fields.len()) {
        ([only], _) => *only,
        ([], 1) => fields.keys().next().map_or("", String::as_str),
        // A form without fields only asks for confirmation.
        ([], 0) => return Ok(Map::new()),
        _ => {
            let names: Vec<String> = fields.keys().map(|name| format!("`{name}`")).collect();
            return Err(format!("send a JSON object with {}", names.join(", ")));
        }
    };
    let field = fields.get(name).unwrap_or(&Value::Null);
    let value = valued(field, text).ok_or_else(|| {
        format!(
            "`{name}` must be {}",
            form_validation::describe_accepted(field).unwrap_or_else(|| "another value".into())
        )
    })?;
    Ok(Map::from_iter([(name.to_owned(), value)]))
}

/// Converts text to a value of this field, if possible.
fn valued(field: &Value, text: &str) -> Option<Value> {
    if form_validation::list_choices(field).is_some() {
        return form_validation::select_choice(field, text);
    }
    let word = text.to_lowercase();
    let value = match field.get("type").and_then(Value::as_str) {
        Some("boolean") if TRUE_TEXTS.contains(&word.as_str()) => json!(true),
        Some("boolean") if FALSE_TEXTS.contains(&word.as_str()) => json!(false),
        Some("boolean") => return None,
        Some("integer") => json!(text.parse::<i64>().ok()?),
        Some("number") => Value::Number(serde_json::Number::from_f64(text.parse().ok()?)?),
        Some("array") => json!([form_validation::select_choice(field.get("items")?, text)?]),
        _ => json!(text),
    };
    form_validation::find_field_mismatch(field, &value).is_none().then_some(value)
}

/// Object in a part: data, or JSON as text.
fn object_in(part: &Part) -> Option<Map<String, Value>> {
    let value = match &part.content {
        Content::Data(data) => data.value(),
        Content::Text(text) => serde_json::from_str(text.trim()).ok()?,
        Content::Raw(_) | Content::Url(_) | Content::Unknown(_) => return None,
    };
    match value {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(schema: &Value) -> ServerQuestion {
        ServerQuestion::read("q", &json!({ "message": "What?", "requestedSchema": schema })).unwrap()
    }

    fn color() -> ServerQuestion {
        let color = json!({ "type": "string", "enum": ["red", "green"], "enumNames": ["Rot", "Grün"] });
        form(&json!({ "type": "object", "properties": { "color": color }, "required": ["color"] }))
    }

    fn said(question: &ServerQuestion, text: &str) -> Result<Value, String> {
        answers(std::slice::from_ref(question), &[Part::text(text)]).map(|mut all| all.remove("q").unwrap())
    }

    fn accepts(content: &Value) -> Result<Value, String> {
        Ok(json!({ "action": "accept", "content": content }))
    }

    #[test]
    fn a_text_fills_in_the_only_field() {
        assert_eq!(said(&color(), "red"), accepts(&json!({ "color": "red" })));
        assert_eq!(said(&color(), " Grün "), accepts(&json!({ "color": "green" })));
        assert_eq!(
            said(&color(), "blue"),
            Err("That is no answer: `color` must be one of red, green.".into())
        );
        let field = |kind: &str| {
            form(&json!({ "type": "object", "properties": { "x": { "type": kind } }, "required": ["x"] }))
        };
        assert_eq!(said(&field("boolean"), "Yes"), accepts(&json!({ "x": true })));
        assert_eq!(said(&field("integer"), "7"), accepts(&json!({ "x": 7 })));
        assert_eq!(said(&field("number"), "1.5"), accepts(&json!({ "x": 1.5 })));
        assert_eq!(said(&field("string"), "7"), accepts(&json!({ "x": "7" })));
        assert!(said(&field("integer"), "seven").unwrap_err().contains("a whole number"));
        assert_eq!(said(&form(&json!({ "type": "object", "properties": {} })), "ok"), accepts(&json!({})));
    }

    #[test]
    fn data_and_json_fill_in_the_form() {
        let two = json!({ "type": "object", "required": ["a"], "properties": {
            "a": { "type": "string" }, "b": { "type": "integer" },
        } });
        let two = form(&two);
        let whole = json!({ "a": "x", "b": 2 });
        let data = answers(std::slice::from_ref(&two), &[Part::data(Json::encode(&whole))]);
        assert_eq!(data.unwrap()["q"], accepts(&whole).unwrap());
        assert_eq!(said(&two, &whole.to_string()), accepts(&whole));
        assert!(said(&two, "{\"b\":2}").unwrap_err().contains("`a` is missing"));
        assert!(said(&two, "{\"a\":\"x\",\"b\":\"y\"}").unwrap_err().contains("`b` must be a whole number"));
        assert_eq!(said(&two, "words"), accepts(&json!({ "a": "words" })));
        let accepted = json!({ "action": "accept", "content": whole });
        assert_eq!(said(&two, &accepted.to_string()), Ok(accepted));
    }

    #[test]
    fn what_is_left_out_is_what_the_form_says() {
        let form = form(&json!({ "type": "object", "required": ["a"], "properties": {
            "a": { "type": "string", "default": "x" }, "b": { "type": "integer", "default": 30 }, "c": { "type": "string" },
        } }));
        assert_eq!(said(&form, "{}"), accepts(&json!({ "a": "x", "b": 30 })));
        assert_eq!(said(&form, "{\"action\":\"accept\"}"), accepts(&json!({ "a": "x", "b": 30 })));
        assert_eq!(said(&form, "{\"a\":\"y\"}"), accepts(&json!({ "a": "y", "b": 30 })));
    }

    #[test]
    fn who_does_not_want_to_answer_says_so() {
        let visit = json!({ "message": "Log in", "url": "https://a.example/login", "mode": "url" });
        let visit = ServerQuestion::read("q", &visit).unwrap();
        assert_eq!(said(&visit, "done"), Ok(json!({ "action": "accept" })));
        for question in [color(), visit] {
            assert_eq!(said(&question, "Decline"), Ok(json!({ "action": "decline" })));
            assert_eq!(said(&question, "cancel"), Ok(json!({ "action": "cancel" })));
            assert_eq!(said(&question, "{\"action\":\"decline\"}"), Ok(json!({ "action": "decline" })));
        }
    }

    #[test]
    fn several_questions_are_answered_together() {
        let both = [color(), ServerQuestion { key: "r".into(), ..color() }];
        let whole = json!({ "q": { "color": "red" }, "r": "green" });
        let all = answers(&both, &[Part::data(Json::encode(&whole))]).unwrap();
        assert_eq!(
            (&all["q"]["content"]["color"], &all["r"]["content"]["color"]),
            (&json!("red"), &json!("green"))
        );
        let named = |key: &str, text: &str| Part {
            metadata: Some(Json::encode(&json!({ "inputRequest": key }))),
            ..Part::text(text)
        };
        assert_eq!(answers(&both, &[named("r", "green"), named("q", "red")]).unwrap(), all);
        assert_eq!(answers(&both, &[named("q", "red")]), Err("r: there is no answer.".into()));
    }

    #[test]
    fn a_question_is_words_and_a_form() {
        let visit = json!({ "message": "Log in", "url": "https://a.example/login", "elicitationId": "e1" });
        let visit = ServerQuestion::read("q", &visit).unwrap();
        let said = [asked(&[color()], None), asked(&[visit], Some("That is no answer."))].map(|event| {
            let Event::Asked { ask, message: Some(message), .. } = event else { panic!("it asks nothing") };
            (ask, message.parts)
        });
        insta::assert_json_snapshot!(said);
    }
}
