use rialto_model::{
    event::{Event, EventAside, QuestionKind},
    message::{Message, Role},
    task::Task,
};

use super::*;
use crate::client_profile::{DeclaredCapabilities, ProtocolFeatures};

fn inquiry(ask: QuestionKind, parts: Vec<Part>) -> QuestionSet {
    let mut task = Task::new(rialto_testkit::store_suite::head("task_1"));
    let message = Some(Message::new("m", Role::Agent, parts));
    let event = Event::Asked { ask, message, aside: EventAside::default() };
    assert!(task.apply(&event, rialto_model::clock::Timestamp::UNIX_EPOCH));
    QuestionSet::of(
        &task,
        DeclaredCapabilities { form: true, url: true, tasks: false },
        ProtocolFeatures::NEWEST,
    )
    .unwrap()
}

fn asked(schemas: &[Value]) -> QuestionSet {
    inquiry(QuestionKind::Input, schemas.iter().map(|schema| Part::data(Json::encode(schema))).collect())
}

fn number() -> Value {
    json!({ "schema": { "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] } })
}

fn responses(value: Value) -> ElicitationResponses {
    serde_json::from_value(value).unwrap()
}

fn accept(content: Value) -> Value {
    Value::Object(Map::from_iter([("answer".to_owned(), accepted(content))]))
}

fn accepted(content: Value) -> Value {
    Value::Object(Map::from_iter([("action".to_owned(), json!("accept")), ("content".to_owned(), content)]))
}

fn reading(inquiry: &QuestionSet, value: Value) -> Result<AnswerOutcome, String> {
    read(&mut inquiry.clone(), responses(value)).map_err(|failure| failure.message)
}

#[test]
fn an_accepted_answer_goes_on_as_the_agent_wants_it() {
    let words = inquiry(QuestionKind::Input, vec![Part::text("which colour?")]);
    assert_eq!(
        reading(&words, accept(json!({ "answer": "red" }))),
        Ok(AnswerOutcome::Said(vec![Part::text("red")]))
    );
    let data = |value: Value| Ok(AnswerOutcome::Said(vec![Part::data(Json::encode(&value))]));
    assert_eq!(reading(&asked(&[number()]), accept(json!({ "n": 5 }))), data(json!({ "n": 5 })));
    let deep = asked(&[json!({ "schema": { "type": "array" } })]);
    assert_eq!(reading(&deep, accept(json!({ "answer": " [1,2] " }))), data(json!([1, 2])));
    let said = Ok(AnswerOutcome::Said(vec![Part::text("as you like")]));
    assert_eq!(reading(&deep, accept(json!({ "answer": "as you like" }))), said);
}

#[test]
fn a_declined_or_cancelled_question_has_no_answer() {
    let question = asked(&[number()]);
    let declined = reading(&question, json!({ "answer": { "action": "decline" } }));
    assert_eq!(declined, Ok(AnswerOutcome::Unanswered("The client declined to answer")));
    let cancelled = reading(&question, json!({ "answer": { "action": "cancel" } }));
    assert_eq!(cancelled, Ok(AnswerOutcome::Unanswered("The client cancelled the question")));
}

#[test]
fn a_login_is_done_or_it_is_not() {
    let login = inquiry(QuestionKind::Auth, vec![Part::text("sign in at https://login.example.com")]);
    assert_eq!(reading(&login, json!({ "login": { "action": "accept" } })), Ok(AnswerOutcome::LoggedIn));
    let form = inquiry(QuestionKind::Auth, vec![Part::text("sign in")]);
    let done = |done: bool| json!({ "login": { "action": "accept", "content": { "done": done } } });
    assert_eq!(reading(&form, done(true)), Ok(AnswerOutcome::LoggedIn));
    assert_eq!(reading(&form, done(false)), Ok(AnswerOutcome::Unanswered("The person did not log in")));
    let off = reading(&form, json!({ "login": { "action": "decline" } }));
    assert_eq!(off, Ok(AnswerOutcome::Unanswered("The client declined to log in")));
}

#[test]
fn answers_may_come_one_by_one_and_say_what_they_are_for() {
    let named = |name: &str| json!({ "name": name, "schema": number()["schema"] });
    let mut inquiry = asked(&[named("a"), named("b")]);
    let one = |key: &str, n: u32| responses(json!({ key: { "action": "accept", "content": { "n": n } } }));
    assert_eq!(read(&mut inquiry, one("b", 2)).unwrap(), AnswerOutcome::Incomplete);
    assert_eq!(inquiry.open().map(|question| question.key.as_str()).collect::<Vec<_>>(), ["a"]);
    let part = |key: &str, n: u32| Part {
        metadata: Some(Json::encode(&json!({ "inputRequest": key }))),
        ..Part::data(Json::encode(&json!({ "n": n })))
    };
    assert_eq!(
        read(&mut inquiry, one("a", 1)).unwrap(),
        AnswerOutcome::Said(vec![part("a", 1), part("b", 2)])
    );
}

#[test]
fn answers_to_nothing_are_not_looked_at() {
    let question = asked(&[number()]);
    assert_eq!(reading(&question, json!({ "other": 5 })), Ok(AnswerOutcome::Incomplete));
    assert_eq!(reading(&question, json!({})), Ok(AnswerOutcome::Incomplete));
}

#[test]
fn an_answer_that_is_wrong_is_refused_with_the_reason() {
    let question = asked(&[number()]);
    for (value, why) in [
        (
            json!({ "answer": 5 }),
            "the response to \"answer\" is no answer: it must be an object whose `action` is accept, decline or cancel",
        ),
        (
            json!({ "answer": { "action": "accept" } }),
            "the response to \"answer\" was accepted without an answer: `content` must be an object",
        ),
        (accept(json!({ "n": "5" })), "the response to \"answer\" does not fit: `n` must be a whole number"),
    ] {
        assert_eq!(reading(&question, value).unwrap_err(), why);
    }
}
