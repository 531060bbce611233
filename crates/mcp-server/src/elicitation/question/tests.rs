use rialto_model::{
    event::{Event, EventAside, QuestionKind},
    message::Role,
};
use rialto_testkit::peer::accepted;
use serde_json::Value;

use super::*;

const BOTH: DeclaredCapabilities = DeclaredCapabilities { form: true, url: true, tasks: false };

/// A task that waits, having said this.
fn waiting(ask: QuestionKind, message: Option<Message>) -> Task {
    let mut task = Task::new(rialto_testkit::store_suite::head("task_1"));
    for event in
        [accepted("remote-1", "context-1"), Event::Asked { ask, message, aside: EventAside::default() }]
    {
        assert!(task.apply(&event, rialto_model::clock::Timestamp::UNIX_EPOCH));
    }
    task
}

fn says(parts: Vec<Part>) -> Option<Message> {
    Some(Message::new("m", Role::Agent, parts))
}

fn data(value: Value) -> Part {
    Part::data(Json::from(value))
}

fn told(task: &Task, abilities: DeclaredCapabilities) -> Value {
    let inquiry = QuestionSet::of(task, abilities, ProtocolFeatures::NEWEST);
    let questions = inquiry.map(|inquiry| inquiry.questions).unwrap_or_default();
    questions.iter().map(|question| json!({ "key": question.key, "params": question.params })).collect()
}

#[test]
fn words_are_asked_with_a_line_for_the_answer() {
    let task = waiting(QuestionKind::Input, says(vec![Part::text("which colour?")]));
    insta::assert_json_snapshot!(told(&task, BOTH));
    let silent = waiting(QuestionKind::Input, None);
    assert_eq!(told(&silent, BOTH)[0]["params"]["message"], "The agent did not say what it needs.");
}

#[test]
fn a_schema_becomes_a_form_wherever_it_stands() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let text = || Part::text("how many?");
    let noted = |note: Value| Some(Json::from(note));
    let with_note = Part { metadata: noted(json!({ "schema": schema })), ..text() };
    let message = |parts| Message::new("m", Role::Agent, parts);
    for said in [
        message(vec![text(), data(schema.clone())]),
        message(vec![text(), data(json!({ "requestedSchema": schema }))]),
        message(vec![data(json!({ "schema": schema, "message": "how many?" }))]),
        message(vec![with_note]),
        Message { metadata: noted(json!({ "inputSchema": schema })), ..message(vec![text()]) },
    ] {
        let told = told(&waiting(QuestionKind::Input, Some(said.clone())), BOTH);
        let params = json!({ "mode": "form", "message": "how many?", "requestedSchema": schema });
        assert_eq!(told, json!([{ "key": "answer", "params": params }]), "{said:?}");
    }
}

#[test]
fn several_schemas_are_several_questions_under_the_names_they_have() {
    let schema = json!({ "type": "object", "properties": { "x": { "type": "string" } } });
    let named = |name: &str| data(json!({ "name": name, "schema": schema }));
    let task = waiting(
        QuestionKind::Input,
        says(vec![named("who"), named("who"), data(schema.clone()), named("where")]),
    );
    let told = told(&task, BOTH);
    let keys: Vec<_> =
        told.as_array().unwrap().iter().map(|question| question["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["who", "who_2", "answer", "where"]);
}

#[test]
fn a_schema_that_is_no_form_is_shown_in_words() {
    let deep = json!({ "type": "object", "properties": { "x": { "type": "object" } } });
    let task = waiting(QuestionKind::Input, says(vec![Part::text("what?"), data(deep)]));
    insta::assert_json_snapshot!(told(&task, BOTH));
    assert_eq!(
        QuestionSet::of(&task, BOTH, ProtocolFeatures::NEWEST).unwrap().questions[0].wants,
        ExpectedAnswer::Anything
    );
}

#[test]
fn who_waits_for_a_login_has_the_person_sent_there() {
    let at = "https://login.example.com/start?a=1";
    let url = Part::new(Content::Url(at.to_owned()));
    for parts in [
        vec![Part::text(format!("please sign in at {at}."))],
        vec![Part::text(format!("sign in (<{at}>), please"))],
        vec![Part::text("sign in"), url.clone()],
        vec![Part::text("sign in"), data(json!({ "url": at }))],
        vec![data(json!({ "verification_uri": at }))],
    ] {
        let told = told(&waiting(QuestionKind::Auth, says(parts.clone())), BOTH);
        assert_eq!(told[0]["params"]["url"], at, "{parts:?}");
        assert_eq!(told[0]["params"]["mode"], "url");
    }
    let task = waiting(QuestionKind::Auth, says(vec![Part::text("sign in"), url]));
    insta::assert_json_snapshot!(
        "login_by_form",
        told(&task, DeclaredCapabilities { form: true, url: false, tasks: false })
    );
    let nowhere = waiting(QuestionKind::Auth, says(vec![Part::text("sign in at javascript:alert(1)")]));
    assert_eq!(told(&nowhere, BOTH)[0]["params"]["mode"], "form");
}

#[test]
fn a_client_that_cannot_ask_so_is_not_told_to() {
    let question = waiting(QuestionKind::Input, says(vec![Part::text("which colour?")]));
    let nowhere = waiting(QuestionKind::Auth, says(vec![Part::text("sign in")]));
    assert_eq!(told(&question, DeclaredCapabilities::default()), json!([]));
    assert_eq!(told(&question, DeclaredCapabilities { form: false, url: true, tasks: false }), json!([]));
    assert_eq!(told(&nowhere, DeclaredCapabilities { form: false, url: true, tasks: false }), json!([]));
}

#[test]
fn what_waits_for_approval_is_a_choice_for_whoever_may_make_it() {
    let choice = json!({
        "type": "object",
        "properties": { "decision": { "type": "string", "enum": ["approve", "deny"] } },
        "required": ["decision"],
    });
    let asks = |answerable: bool| {
        let facts = json!({ "approval": "apr_1", "tool": "rm", "arguments": {}, "requestedSchema": choice });
        let said = says(vec![Part::text("May rm be called?"), data(facts)]).unwrap();
        let metadata = Json::from(json!({ "rialto/approval": { "id": "apr_1", "answerable": answerable } }));
        waiting(QuestionKind::Input, Some(Message { metadata: Some(metadata), ..said }))
    };
    let params = json!({ "mode": "form", "message": "May rm be called?", "requestedSchema": choice });
    assert_eq!(told(&asks(true), BOTH), json!([{ "key": "answer", "params": params }]));
    let inquiry = QuestionSet::of(&asks(true), BOTH, ProtocolFeatures::NEWEST).unwrap();
    assert!(matches!(inquiry.questions[0].wants, ExpectedAnswer::Decision(_)));
    assert!(QuestionSet::of(&asks(false), BOTH, ProtocolFeatures::NEWEST).is_none());
}
