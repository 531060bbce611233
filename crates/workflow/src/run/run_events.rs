//! Events of a run, as those of its task.

use rialto_model::{
    event::{Event, EventAside, QuestionKind, RemoteIds},
    failure::{Failure, FailureKind},
    flow::{FlowRun, FlowStep, RunRecord, RunState, StepState},
    ids::{TaskId, fresh},
    json::Json,
    message::{Artifact, Message, Part, Role},
};
use serde_json::{Value, json};

use super::output::output_part;

/// Metadata member that names a step.
pub(super) const FLOW_METADATA: &str = "rialto/flow";

/// The run is written down, under this name.
pub(super) fn accepted_event(run: &TaskId) -> Event {
    let remote = RemoteIds { task_id: Some(run.to_string()), context_id: None };
    Event::Accepted { remote, aside: EventAside::default() }
}

/// Event for a changed step.
pub(super) fn progress_event(step: &FlowStep, done: usize, total: usize) -> Event {
    let (name, state) = (step_name(step), state_word(step.state));
    let mut words = format!("{name}: {state} ({done} of {total})");
    if let Some(failure) = step.failure.as_ref().filter(|_| step.state != StepState::Skipped) {
        words = format!("{name}: {state} ({done} of {total}): {}", failure.message);
    }
    let mut facts = step_metadata(step);
    (facts["done"], facts["total"]) = (json!(done), json!(total));
    let message = Message::new(fresh(), Role::Agent, vec![Part::text(words)]);
    Event::Progress { working: true, message: Some(message), aside: progress_aside(&facts) }
}

/// Event for waiting steps; the question of the first is asked.
pub(super) fn question_event(held: &[&FlowStep], done: usize, total: usize) -> Event {
    let first = held.first();
    let question = first.and_then(|step| step.question.as_ref());
    let mut facts = first.map_or_else(|| json!({}), |step| step_metadata(step));
    (facts["done"], facts["total"]) = (json!(done), json!(total));
    if held.len() > 1 {
        facts["held"] = held.iter().map(|step| step_metadata(step)).collect();
    }
    let unsaid = || {
        let name = first.map_or_else(|| "a step".to_owned(), |step| step_name(step));
        Message::new(fresh(), Role::Agent, vec![Part::text(format!("{name} waits for an answer"))])
    };
    let message = question.and_then(|question| question.message.clone()).unwrap_or_else(unsaid);
    let ask = question.map_or(QuestionKind::Input, |question| question.ask);
    Event::Asked { ask, message: Some(message), aside: progress_aside(&facts) }
}

/// Last events of a finished or waiting run. None while it is running.
pub(super) fn final_events(record: &RunRecord, done: usize, total: usize) -> Option<Vec<Event>> {
    match record.run.state {
        RunState::Running => None,
        RunState::Waiting => {
            let held: Vec<&FlowStep> =
                record.steps.iter().filter(|step| step.state == StepState::Waiting).collect();
            Some(vec![question_event(&held, done, total)])
        }
        RunState::Completed => Some(completed_events(&record.run)),
        RunState::Failed => {
            let unsaid = || Failure::new(FailureKind::PeerFailed, "the run has failed");
            Some(vec![Event::failed(record.run.failure.clone().unwrap_or_else(unsaid))])
        }
        RunState::Canceled => Some(vec![canceled_event()]),
    }
}

/// The run is done, and this is what it made.
fn completed_events(run: &FlowRun) -> Vec<Event> {
    let output = run.output.clone().unwrap_or_else(Json::null);
    let name = Some(format!("{}-result", run.name));
    let artifact = Artifact { name, ..Artifact::new("result", vec![output_part(output)]) };
    vec![
        Event::Artifact { artifact, append: false, last: true, aside: EventAside::default() },
        Event::Finished { message: None, aside: EventAside::default() },
    ]
}

pub(super) fn canceled_event() -> Event {
    Event::Canceled { message: None, aside: EventAside::default() }
}

/// A step, as metadata names it.
fn step_metadata(step: &FlowStep) -> Value {
    let mut facts = json!({ "node": step.node, "state": state_word(step.state), "attempt": step.attempt });
    if let Some(item) = step.item {
        facts["item"] = json!(item);
    }
    if let Some(task) = &step.task {
        facts["taskId"] = json!(task);
    }
    facts
}

fn progress_aside(facts: &Value) -> EventAside {
    EventAside { metadata: Some(Json::encode(&json!({ FLOW_METADATA: facts }))), ..EventAside::default() }
}

fn step_name(step: &FlowStep) -> String {
    step.item.map_or_else(|| step.node.clone(), |item| format!("{}[{item}]", step.node))
}

/// The words of tasks, where there are such.
const fn state_word(state: StepState) -> &'static str {
    match state {
        StepState::Running => "working",
        StepState::Waiting => "input-required",
        state => state.as_str(),
    }
}
