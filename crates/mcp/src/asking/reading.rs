//! What answers mean for the agent.
//!
//! Only an accepted elicitation is an answer. Clients without a person decline or cancel by themselves, so neither is ever sent to the
//! agent: the task keeps waiting, and the result says how to answer it.

use rialto_model::{
    failure::{Failure, Kind},
    json::Json,
    message::Part,
};
use rmcp::model::{ElicitResult, ElicitationAction};
use serde_json::{Map, Value, json};

use super::{
    Responses, form,
    question::{Inquiry, Question, Wants},
};

/// What to do.
#[derive(Debug, PartialEq)]
pub(super) enum Reading {
    /// There are questions without an answer.
    Incomplete,
    /// Tell the agent this.
    Said(Vec<Part>),
    /// The person logs in.
    LoggedIn,
    /// There is no answer, because of this; the task keeps waiting.
    Unanswered(&'static str),
}

/// What one answer says.
enum Told {
    This(Part),
    LoggedIn,
    Nothing(&'static str),
}

/// Reads answers, together with those that were given before. Answers to nothing are not looked at. One that is wrong is
/// refused, and then none counts.
pub(super) fn read(inquiry: &mut Inquiry, responses: Responses) -> Result<Reading, Failure> {
    let is_one = inquiry.questions.len() == 1;
    let mut parts = Vec::new();
    let mut given = inquiry.given.clone();
    given.extend(responses);
    given.retain(|key, _| inquiry.questions.iter().any(|question| question.key == *key));
    for question in &inquiry.questions {
        let Some(response) = given.get(&question.key) else { continue };
        match told(question, response)? {
            Told::Nothing(why) => return Ok(Reading::Unanswered(why)),
            Told::LoggedIn => return Ok(Reading::LoggedIn),
            Told::This(part) if is_one => parts.push(part),
            Told::This(part) => {
                let of = Json::of(&json!({ "inputRequest": question.name }));
                parts.push(Part { metadata: Some(of), ..part });
            }
        }
    }
    inquiry.given = given;
    Ok(if inquiry.open().next().is_some() { Reading::Incomplete } else { Reading::Said(parts) })
}

fn told(question: &Question, response: &Value) -> Result<Told, Failure> {
    let key = &question.key;
    let result: ElicitResult = serde_json::from_value(response.clone()).map_err(|_| {
        wrong(key, "is no answer: it must be an object whose `action` is accept, decline or cancel")
    })?;
    let content = match (result.action, &question.wants) {
        (ElicitationAction::Accept, _) => result.content,
        (ElicitationAction::Decline, Wants::Login) => {
            return Ok(Told::Nothing("The client declined to log in"));
        }
        (ElicitationAction::Decline, _) => return Ok(Told::Nothing("The client declined to answer")),
        _ => return Ok(Told::Nothing("The client cancelled the question")),
    };
    match (&question.wants, content) {
        (Wants::Login, None) => Ok(Told::LoggedIn),
        (Wants::Login, Some(content)) if content.get("done") == Some(&json!(false)) => {
            Ok(Told::Nothing("The person did not log in"))
        }
        (Wants::Login, Some(_)) => Ok(Told::LoggedIn),
        (wants, Some(Value::Object(content))) => answer(key, wants, &content).map(Told::This),
        (_, _) => Err(wrong(key, "was accepted without an answer: `content` must be an object")),
    }
}

fn answer(key: &str, wants: &Wants, content: &Map<String, Value>) -> Result<Part, Failure> {
    if let Wants::Data(schema) | Wants::Decision(schema) = wants {
        return match form::misfit(schema, content) {
            Some(why) => Err(wrong(key, &format!("does not fit: {why}"))),
            None => Ok(Part::data(Json::of(content))),
        };
    }
    let Some(Value::String(text)) = content.get("answer") else {
        return Err(wrong(key, "does not fit: `answer` must be a text"));
    };
    let as_data =
        Json::parse(text.trim()).ok().filter(|json| *wants == Wants::Anything && !json.get().is_empty());
    Ok(as_data.map_or_else(|| Part::text(text), Part::data))
}

fn wrong(key: &str, what: &str) -> Failure {
    Failure::new(Kind::Invalid, format!("the response to \"{key}\" {what}"))
}

#[cfg(test)]
mod tests;
