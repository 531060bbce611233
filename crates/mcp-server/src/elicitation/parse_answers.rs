//! Parses elicitation answers and decides the next step of the task.
//!
//! Only an accepted elicitation is an answer. Clients without a person decline or cancel by themselves, so neither is ever sent to the
//! agent: the task keeps waiting, and the result says how to answer it.

use rialto_model::{
    failure::{Failure, FailureKind},
    json::Json,
    message::Part,
};
use rmcp::model::{ElicitResult, ElicitationAction};
use serde_json::{Map, Value, json};

use super::{
    ElicitationResponses, form,
    question::{ElicitationQuestion, ExpectedAnswer, QuestionSet},
};

/// Next step after parsing the answers.
#[derive(Debug, PartialEq)]
pub(super) enum AnswerOutcome {
    /// Some questions have no answer yet.
    Incomplete,
    /// Send these parts to the agent.
    Said(Vec<Part>),
    /// The person logs in.
    LoggedIn,
    /// No answer, for this reason; the task keeps waiting.
    Unanswered(&'static str),
}

/// One parsed answer.
enum ParsedAnswer {
    This(Part),
    LoggedIn,
    Nothing(&'static str),
}

/// Parses answers and merges them with earlier ones. Unknown keys are ignored. An invalid answer is an error, and then none is recorded.
pub(super) fn read(
    inquiry: &mut QuestionSet,
    responses: ElicitationResponses,
) -> Result<AnswerOutcome, Failure> {
    let is_one = inquiry.questions.len() == 1;
    let mut parts = Vec::new();
    let mut given = inquiry.given.clone();
    given.extend(responses);
    given.retain(|key, _| inquiry.questions.iter().any(|question| question.key == *key));
    for question in &inquiry.questions {
        let Some(response) = given.get(&question.key) else { continue };
        match told(question, response)? {
            ParsedAnswer::Nothing(why) => return Ok(AnswerOutcome::Unanswered(why)),
            ParsedAnswer::LoggedIn => return Ok(AnswerOutcome::LoggedIn),
            ParsedAnswer::This(part) if is_one => parts.push(part),
            ParsedAnswer::This(part) => {
                let of = Json::encode(&json!({ "inputRequest": question.name }));
                parts.push(Part { metadata: Some(of), ..part });
            }
        }
    }
    inquiry.given = given;
    Ok(if inquiry.open().next().is_some() { AnswerOutcome::Incomplete } else { AnswerOutcome::Said(parts) })
}

fn told(question: &ElicitationQuestion, response: &Value) -> Result<ParsedAnswer, Failure> {
    let key = &question.key;
    let result: ElicitResult = serde_json::from_value(response.clone()).map_err(|_| {
        wrong(key, "is no answer: it must be an object whose `action` is accept, decline or cancel")
    })?;
    let content = match (result.action, &question.wants) {
        (ElicitationAction::Accept, _) => result.content,
        (ElicitationAction::Decline, ExpectedAnswer::Login) => {
            return Ok(ParsedAnswer::Nothing("The client declined to log in"));
        }
        (ElicitationAction::Decline, _) => return Ok(ParsedAnswer::Nothing("The client declined to answer")),
        _ => return Ok(ParsedAnswer::Nothing("The client cancelled the question")),
    };
    match (&question.wants, content) {
        (ExpectedAnswer::Login, None) => Ok(ParsedAnswer::LoggedIn),
        (ExpectedAnswer::Login, Some(content)) if content.get("done") == Some(&json!(false)) => {
            Ok(ParsedAnswer::Nothing("The person did not log in"))
        }
        (ExpectedAnswer::Login, Some(_)) => Ok(ParsedAnswer::LoggedIn),
        (wants, Some(Value::Object(content))) => answer(key, wants, &content).map(ParsedAnswer::This),
        (_, _) => Err(wrong(key, "was accepted without an answer: `content` must be an object")),
    }
}

fn answer(key: &str, wants: &ExpectedAnswer, content: &Map<String, Value>) -> Result<Part, Failure> {
    if let ExpectedAnswer::Data(schema) | ExpectedAnswer::Decision(schema) = wants {
        return match form::misfit(schema, content) {
            Some(why) => Err(wrong(key, &format!("does not fit: {why}"))),
            None => Ok(Part::data(Json::encode(content))),
        };
    }
    let Some(Value::String(text)) = content.get("answer") else {
        return Err(wrong(key, "does not fit: `answer` must be a text"));
    };
    let as_data = Json::parse(text.trim())
        .ok()
        .filter(|json| *wants == ExpectedAnswer::Anything && !json.get().is_empty());
    Ok(as_data.map_or_else(|| Part::text(text), Part::data))
}

fn wrong(key: &str, what: &str) -> Failure {
    Failure::new(FailureKind::Invalid, format!("the response to \"{key}\" {what}"))
}

#[cfg(test)]
mod tests;
