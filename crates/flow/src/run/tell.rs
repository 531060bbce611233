//! What a run tells of itself, as events of its task.

use rialto_model::{
    event::{Event, EventAside, QuestionKind, RemoteIds},
    failure::{Failure, FailureKind},
    flow::{FlowRun, FlowStep, RunRecord, RunState, StepState},
    ids::{TaskId, fresh},
    json::Json,
    message::{Artifact, Message, Part, Role},
};
use serde_json::{Value, json};

use super::render::part_of;

/// The member of metadata that says which step is meant.
pub(super) const FLOW: &str = "rialto/flow";

/// The run is written down, under this name.
pub(super) fn accepted(run: &TaskId) -> Event {
    let remote = RemoteIds { task_id: Some(run.to_string()), context_id: None };
    Event::Accepted { remote, aside: EventAside::default() }
}

/// A step stands elsewhere now.
pub(super) fn progress(step: &FlowStep, done: usize, total: usize) -> Event {
    let (name, state) = (name_of(step), word(step.state));
    let mut words = format!("{name}: {state} ({done} of {total})");
    if let Some(failure) = step.failure.as_ref().filter(|_| step.state != StepState::Skipped) {
        words = format!("{name}: {state} ({done} of {total}): {}", failure.message);
    }
    let mut facts = facts_of(step);
    (facts["done"], facts["total"]) = (json!(done), json!(total));
    let message = Message::new(fresh(), Role::Agent, vec![Part::text(words)]);
    Event::Progress { working: true, message: Some(message), aside: aside(&facts) }
}

/// Nothing can go on before these steps have their answers; the first of them is told.
pub(super) fn asked(held: &[&FlowStep], done: usize, total: usize) -> Event {
    let first = held.first();
    let question = first.and_then(|step| step.question.as_ref());
    let mut facts = first.map_or_else(|| json!({}), |step| facts_of(step));
    (facts["done"], facts["total"]) = (json!(done), json!(total));
    if held.len() > 1 {
        facts["held"] = held.iter().map(|step| facts_of(step)).collect();
    }
    let unsaid = || {
        let name = first.map_or_else(|| "a step".to_owned(), |step| name_of(step));
        Message::new(fresh(), Role::Agent, vec![Part::text(format!("{name} waits for an answer"))])
    };
    let message = question.and_then(|question| question.message.clone()).unwrap_or_else(unsaid);
    let ask = question.map_or(QuestionKind::Input, |question| question.ask);
    Event::Asked { ask, message: Some(message), aside: aside(&facts) }
}

/// How a run ended that is over, or what it waits for. None while it goes on.
pub(super) fn ending(record: &RunRecord, done: usize, total: usize) -> Option<Vec<Event>> {
    match record.run.state {
        RunState::Running => None,
        RunState::Waiting => {
            let held: Vec<&FlowStep> =
                record.steps.iter().filter(|step| step.state == StepState::Waiting).collect();
            Some(vec![asked(&held, done, total)])
        }
        RunState::Completed => Some(completed(&record.run)),
        RunState::Failed => {
            let unsaid = || Failure::new(FailureKind::PeerFailed, "the run has failed");
            Some(vec![Event::failed(record.run.failure.clone().unwrap_or_else(unsaid))])
        }
        RunState::Canceled => Some(vec![canceled()]),
    }
}

/// The run is done, and this is what it made.
fn completed(run: &FlowRun) -> Vec<Event> {
    let output = run.output.clone().unwrap_or_else(Json::null);
    let name = Some(format!("{}-result", run.name));
    let artifact = Artifact { name, ..Artifact::new("result", vec![part_of(output)]) };
    vec![
        Event::Artifact { artifact, append: false, last: true, aside: EventAside::default() },
        Event::Finished { message: None, aside: EventAside::default() },
    ]
}

pub(super) fn canceled() -> Event {
    Event::Canceled { message: None, aside: EventAside::default() }
}

/// A step, as metadata names it.
fn facts_of(step: &FlowStep) -> Value {
    let mut facts = json!({ "node": step.node, "state": word(step.state), "attempt": step.attempt });
    if let Some(item) = step.item {
        facts["item"] = json!(item);
    }
    if let Some(task) = &step.task {
        facts["taskId"] = json!(task);
    }
    facts
}

fn aside(facts: &Value) -> EventAside {
    EventAside { metadata: Some(Json::encode(&json!({ FLOW: facts }))), ..EventAside::default() }
}

fn name_of(step: &FlowStep) -> String {
    step.item.map_or_else(|| step.node.clone(), |item| format!("{}[{item}]", step.node))
}

/// The words of tasks, where there are such.
const fn word(state: StepState) -> &'static str {
    match state {
        StepState::Running => "working",
        StepState::Waiting => "input-required",
        state => state.as_str(),
    }
}
