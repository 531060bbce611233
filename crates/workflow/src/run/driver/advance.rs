//! Begins everything that may begin, as far as there is room for it.

use rialto_engine::{is_redacted, redact};
use rialto_model::{
    event::QuestionKind,
    failure::{Failure, FailureKind},
    flow::{FlowStep, StepQuestion, StepState},
    ids::{TaskId, fresh},
    message::{Message, Part, Role},
};
use serde_json::json;

use super::{RunDriver, StepWork};
use crate::{
    definition::NodeAction,
    run::{
        answer::{ApprovalDecision, RunAnswer},
        execution_state::StepKey,
        ready_nodes::NodeTransition,
        step_action::{self, StepAction},
        step_runner::{StepRunner, StepStart},
    },
};

impl RunDriver {
    /// Puts everything on the board that may happen now.
    pub(super) fn advance(&mut self) {
        loop {
            let mut has_moved = false;
            for next in self.execution.next_transitions() {
                match next {
                    NodeTransition::Leave(at) => self.skip_step(StepKey::node(at), None),
                    NodeTransition::Lose(at, cause) => {
                        let cause = self.execution.node(cause).map_or("", |node| node.id.as_str());
                        let why = format!("{cause} did not succeed");
                        self.skip_step(StepKey::node(at), Some(Failure::new(FailureKind::PeerFailed, why)));
                    }
                    NodeTransition::Begin(_) if !self.has_free_slot() => continue,
                    NodeTransition::Begin(at) => self.begin_node(at),
                }
                has_moved = true;
            }
            let has_begun = self.begin_items();
            if !has_moved && !has_begun {
                return;
            }
        }
    }

    /// Resumes a stored run: the tasks of running steps are searched, and the answer is applied to its step.
    pub(in crate::run) fn resume_run(&mut self, answer: Option<RunAnswer>) {
        let open: Vec<(StepKey, FlowStep)> = [StepState::Running, StepState::Retrying]
            .into_iter()
            .flat_map(|state| self.execution.steps_in_state(state).map(|(key, step)| (key, step.clone())))
            .collect();
        for (key, step) in open {
            match (step.state, self.action_of(key)) {
                (StepState::Retrying, _) => self.retry_step(key, &step),
                (_, Some(NodeAction::Map { .. })) if key.item.is_none() => {}
                _ => self.resume_step(key, step),
            }
        }
        self.expire_approvals();
        if let Some(answer) = answer {
            self.apply_answer(answer);
        }
    }

    /// Hands an answer to the step that is meant.
    fn apply_answer(&mut self, answer: RunAnswer) {
        let mut held = self.execution.steps_in_state(StepState::Waiting);
        let Some((key, step)) = held.find(|(_, step)| answer.answers_step(step)) else { return };
        let step = step.clone();
        drop(held);
        match (step.task.clone(), answer.decision()) {
            (Some(task), _) => {
                let begun = FlowStep { state: StepState::Running, question: None, ..step };
                self.set_step(key, begun);
                self.begin_call(key, task, StepStart::Answer(answer.parts));
            }
            (None, Some(ApprovalDecision::Approve)) => {
                let decided = json!({ "approved": true });
                self.complete_step(key, step, rialto_model::json::Json::encode(&decided));
            }
            (None, Some(ApprovalDecision::Deny)) => {
                self.deny_step(key, step, "it was denied");
            }
            // Anything else is asked again.
            (None, None) => {}
        }
    }

    /// Denies approvals whose timeout has passed.
    fn expire_approvals(&mut self) {
        let now = self.context.engine.now();
        let is_late = |step: &FlowStep| {
            step.question.as_ref().and_then(|question| question.expires).is_some_and(|end| end <= now)
        };
        let late: Vec<(StepKey, FlowStep)> = self
            .execution
            .steps_in_state(StepState::Waiting)
            .filter(|(_, step)| is_late(step))
            .map(|(key, step)| (key, step.clone()))
            .collect();
        for (key, step) in late {
            self.deny_step(key, step, "the approval timed out");
        }
    }

    fn deny_step(&mut self, key: StepKey, step: FlowStep, why: &str) {
        self.fail_step(key, step, Failure::new(FailureKind::Denied, why));
    }

    /// True if one more step may run.
    fn has_free_slot(&self) -> bool {
        let is_call = |key: StepKey| {
            !(key.item.is_none() && matches!(self.action_of(key), Some(NodeAction::Map { .. })))
        };
        let busy = self.execution.steps_in_state(StepState::Running).filter(|(key, _)| is_call(*key)).count();
        busy < self.execution.workflow.limits.parallel.max(1)
    }

    fn begin_node(&mut self, at: usize) {
        let key = StepKey::node(at);
        let Some(node) = self.execution.node(at) else { return };
        let holds = node
            .when
            .as_ref()
            .is_none_or(|when| when.is_true(&|root| self.execution.resolve_root(root, key)));
        if !holds {
            return self.skip_step(key, None);
        }
        let step = FlowStep::begun(node.id.as_str(), None, 1, self.context.engine.now());
        self.begin_step(key, step);
    }

    /// Starts items of `map` nodes. Returns true if there were any.
    fn begin_items(&mut self) -> bool {
        let mut has_begun = false;
        for node in 0..self.execution.workflow.nodes.len() {
            let Some(NodeAction::Map { parallel, .. }) = self.execution.node(node).map(|node| &node.action)
            else {
                continue;
            };
            let is_busy =
                self.execution.step(StepKey::node(node)).is_some_and(|it| it.state == StepState::Running);
            let most = parallel.unwrap_or(usize::MAX);
            if !is_busy {
                continue;
            }
            for item in self.execution.unstarted_items(node) {
                if !self.has_free_slot() || self.execution.running_items(node) >= most {
                    break;
                }
                let Some(id) = self.execution.node(node).map(|node| node.id.to_string()) else { break };
                let step = FlowStep::begun(id, Some(item), 1, self.context.engine.now());
                self.begin_step(StepKey { node, item: Some(item) }, step);
                has_begun = true;
            }
        }
        has_begun
    }

    pub(super) fn retry_step(&mut self, key: StepKey, step: &FlowStep) {
        let next = FlowStep::begun(&*step.node, step.item, step.attempt + 1, self.context.engine.now());
        self.begin_step(key, next);
    }

    /// Starts a step; one without a call finishes at once.
    fn begin_step(&mut self, key: StepKey, step: FlowStep) {
        let Some(action) = self.action_of(key).cloned() else { return };
        match StepAction::for_step(&action, &self.execution, key) {
            Ok(Some(step_action)) if self.lacks_secrets(key, &step_action) => {
                self.fail_step(key, step, secrets_lost());
            }
            Ok(Some(step_action)) => {
                let task = TaskId::fresh();
                let input = Some(self.context.redacted_input(&step_action));
                self.set_step(key, FlowStep { task: Some(task.clone()), input, ..step });
                self.begin_action(key, task, step_action, false);
            }
            Ok(None) => self.begin_local(key, step, &action),
            Err(failure) => self.fail_step(key, step, failure),
        }
    }

    /// Searches the task of a step that was running before.
    fn resume_step(&mut self, key: StepKey, step: FlowStep) {
        let (Some(action), Some(task)) = (self.action_of(key).cloned(), step.task.clone()) else {
            return self.begin_step(key, step);
        };
        match StepAction::for_step(&action, &self.execution, key) {
            Ok(Some(step_action)) if self.lacks_secrets(key, &step_action) => {
                // The skill cannot be called any more, but a task that was started may have a result.
                let (called, takes_turn) = (step_action.callee_name(), !self.context.is_nested(&step_action));
                let lost = StepStart::Resume(Box::new(Err(secrets_lost())));
                self.enqueue(key, task, (called, takes_turn), lost);
            }
            Ok(Some(step_action)) => self.begin_action(key, task, step_action, true),
            Ok(None) => self.begin_local(key, step, &action),
            Err(failure) => self.fail_step(key, step, failure),
        }
    }

    /// True if the input contains secrets that were not stored when another process had the run.
    fn lacks_secrets(&self, key: StepKey, step_action: &StepAction) -> bool {
        let is_for_items = key.item.is_some();
        let list = self.execution.step(StepKey::node(key.node)).filter(|_| is_for_items);
        let list = list.and_then(|step| step.input.as_ref());
        let is_lost = self.execution.has_lost_secrets || list.is_some_and(is_redacted);
        is_lost && is_redacted(&step_action.recorded_input())
    }

    fn begin_action(&mut self, key: StepKey, task: TaskId, step_action: StepAction, is_resumed: bool) {
        let (called, takes_turn) = (step_action.callee_name(), !self.context.is_nested(&step_action));
        let start = if is_resumed {
            StepStart::Resume(Box::new(Ok(step_action)))
        } else {
            StepStart::Begin(Box::new(step_action))
        };
        self.enqueue(key, task, (called, takes_turn), start);
    }

    fn begin_call(&mut self, key: StepKey, task: TaskId, start: StepStart) {
        let action = self.action_of(key);
        let takes_turn = !matches!(action, Some(NodeAction::Pipeline { .. } | NodeAction::Workflow { .. }));
        let called = match action {
            Some(NodeAction::Tool { name, .. }) => name.clone(),
            _ => self.execution.node(key.node).map_or_else(String::new, |node| node.id.to_string()),
        };
        self.enqueue(key, task, (called, takes_turn), start);
    }

    fn enqueue(
        &mut self,
        key: StepKey,
        task: TaskId,
        (called, takes_turn): (String, bool),
        start: StepStart,
    ) {
        let timeout = self.execution.node(key.node).and_then(|node| node.timeout);
        let unit = StepRunner { context: self.context.clone(), task, called, start, takes_turn, timeout };
        self.starting.push((key, StepWork::Call(Box::new(unit))));
    }

    /// Action of a step: the node's, or that of its items.
    pub(super) fn action_of(&self, key: StepKey) -> Option<&NodeAction> {
        match (&self.execution.node(key.node)?.action, key.item) {
            (NodeAction::Map { action, .. }, Some(_)) => Some(action),
            (action, _) => Some(action),
        }
    }

    fn skip_step(&mut self, key: StepKey, why: Option<Failure>) {
        let Some(node) = self.execution.node(key.node) else { return };
        let now = self.context.engine.now();
        let step = FlowStep::begun(node.id.as_str(), None, 1, now);
        self.set_step(key, FlowStep { state: StepState::Skipped, failure: why, ended_at: Some(now), ..step });
    }

    /// Asks a person, and waits.
    pub(super) fn ask_caller(
        &mut self,
        key: StepKey,
        step: FlowStep,
        action: &NodeAction,
    ) -> Result<(), Failure> {
        let NodeAction::Approval { question, details, expires } = action else { return Ok(()) };
        let words = step_action::json_as_text(&step_action::render_template(question, &self.execution, key)?);
        let details = details
            .as_ref()
            .map(|details| step_action::render_template(details, &self.execution, key))
            .transpose()?;
        let text = format!("{words}\n\nAnswer `approve` or `deny`.");
        let mut parts = vec![Part::text(text)];
        parts.extend(details.as_ref().map(|details| Part::data(redact(details))));
        let message = Message::new(fresh(), Role::Agent, parts);
        let now = self.context.engine.now();
        let expires = expires.and_then(|after| now.checked_add(after).ok());
        let step = FlowStep { input: details.as_ref().map(redact), ..step };
        self.hold_step(key, step, StepQuestion { ask: QuestionKind::Input, message: Some(message), expires });
        Ok(())
    }
}

fn secrets_lost() -> Failure {
    let why =
        "another process started this run, and its input contained secrets that are not stored; run it again";
    Failure::new(FailureKind::Conflict, why)
}
