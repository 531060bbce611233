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

use super::{Driver, Work};
use crate::{
    definition::Does,
    run::{
        act::{self, Act},
        answer::{Answer, Decision},
        board::Key,
        plan::Move,
        unit::{Unit, Wants},
    },
};

impl Driver {
    /// Puts everything on the board that may happen now.
    pub(super) fn advance(&mut self) {
        loop {
            let mut has_moved = false;
            for next in self.board.moves() {
                match next {
                    Move::Leave(at) => self.skip(Key::node(at), None),
                    Move::Lose(at, cause) => {
                        let cause = self.board.node(cause).map_or("", |node| node.id.as_str());
                        let why = format!("{cause} did not succeed");
                        self.skip(Key::node(at), Some(Failure::new(FailureKind::PeerFailed, why)));
                    }
                    Move::Begin(_) if !self.has_room() => continue,
                    Move::Begin(at) => self.begin_node(at),
                }
                has_moved = true;
            }
            let has_begun = self.begin_items();
            if !has_moved && !has_begun {
                return;
            }
        }
    }

    /// Takes a run up again that was written down before: steps that were at work are looked for, and the answer goes to whoever
    /// asked.
    pub(in crate::run) fn take_up(&mut self, answer: Option<Answer>) {
        let open: Vec<(Key, FlowStep)> = [StepState::Running, StepState::Retrying]
            .into_iter()
            .flat_map(|state| self.board.in_state(state).map(|(key, step)| (key, step.clone())))
            .collect();
        for (key, step) in open {
            match (step.state, self.does(key)) {
                (StepState::Retrying, _) => self.try_again(key, &step),
                (_, Some(Does::Map { .. })) if key.item.is_none() => {}
                _ => self.resume(key, step),
            }
        }
        self.expire();
        if let Some(answer) = answer {
            self.answer(answer);
        }
    }

    /// Hands an answer to the step that is meant.
    fn answer(&mut self, answer: Answer) {
        let mut held = self.board.in_state(StepState::Waiting);
        let Some((key, step)) = held.find(|(_, step)| answer.is_for(step)) else { return };
        let step = step.clone();
        drop(held);
        match (step.task.clone(), answer.decision()) {
            (Some(task), _) => {
                let begun = FlowStep { state: StepState::Running, question: None, ..step };
                self.put(key, begun);
                self.begin_call(key, task, Wants::Answer(answer.parts));
            }
            (None, Some(Decision::Approve)) => {
                let decided = json!({ "approved": true });
                self.complete(key, step, rialto_model::json::Json::encode(&decided));
            }
            (None, Some(Decision::Deny)) => {
                self.refuse(key, step, "it was denied");
            }
            // Anything else is asked again.
            (None, None) => {}
        }
    }

    /// Refuses what nobody has decided in time.
    fn expire(&mut self) {
        let now = self.crew.engine.now();
        let is_late = |step: &FlowStep| {
            step.question.as_ref().and_then(|question| question.expires).is_some_and(|end| end <= now)
        };
        let late: Vec<(Key, FlowStep)> = self
            .board
            .in_state(StepState::Waiting)
            .filter(|(_, step)| is_late(step))
            .map(|(key, step)| (key, step.clone()))
            .collect();
        for (key, step) in late {
            self.refuse(key, step, "nobody decided in time");
        }
    }

    fn refuse(&mut self, key: Key, step: FlowStep, why: &str) {
        self.fail(key, step, Failure::new(FailureKind::Denied, why));
    }

    /// Whether one more step may be at work.
    fn has_room(&self) -> bool {
        let is_call = |key: Key| !(key.item.is_none() && matches!(self.does(key), Some(Does::Map { .. })));
        let busy = self.board.in_state(StepState::Running).filter(|(key, _)| is_call(*key)).count();
        busy < self.board.workflow.limits.parallel.max(1)
    }

    fn begin_node(&mut self, at: usize) {
        let key = Key::node(at);
        let Some(node) = self.board.node(at) else { return };
        let holds = node.when.as_ref().is_none_or(|when| when.holds(&|root| self.board.find(root, key)));
        if !holds {
            return self.skip(key, None);
        }
        let step = FlowStep::begun(node.id.as_str(), None, 1, self.crew.engine.now());
        self.begin_step(key, step);
    }

    /// Begins items of nodes that do the same for many. Answers whether there were any.
    fn begin_items(&mut self) -> bool {
        let mut has_begun = false;
        for node in 0..self.board.workflow.nodes.len() {
            let Some(Does::Map { parallel, .. }) = self.board.node(node).map(|node| &node.does) else {
                continue;
            };
            let is_busy = self.board.step(Key::node(node)).is_some_and(|it| it.state == StepState::Running);
            let most = parallel.unwrap_or(usize::MAX);
            if !is_busy {
                continue;
            }
            for item in self.board.open_items(node) {
                if !self.has_room() || self.board.busy_items(node) >= most {
                    break;
                }
                let Some(id) = self.board.node(node).map(|node| node.id.to_string()) else { break };
                let step = FlowStep::begun(id, Some(item), 1, self.crew.engine.now());
                self.begin_step(Key { node, item: Some(item) }, step);
                has_begun = true;
            }
        }
        has_begun
    }

    pub(super) fn try_again(&mut self, key: Key, step: &FlowStep) {
        let next = FlowStep::begun(&*step.node, step.item, step.attempt + 1, self.crew.engine.now());
        self.begin_step(key, next);
    }

    /// Begins a step: one that calls nobody is over at once.
    fn begin_step(&mut self, key: Key, step: FlowStep) {
        let Some(does) = self.does(key).cloned() else { return };
        match Act::of(&does, &self.board, key) {
            Ok(Some(act)) if self.lacks_secrets(key, &act) => self.fail(key, step, unkept()),
            Ok(Some(act)) => {
                let task = TaskId::fresh();
                let input = Some(self.crew.kept(&act));
                self.put(key, FlowStep { task: Some(task.clone()), input, ..step });
                self.begin_act(key, task, act, false);
            }
            Ok(None) => self.begin_local(key, step, &does),
            Err(failure) => self.fail(key, step, failure),
        }
    }

    /// Looks for a step that was at work before.
    fn resume(&mut self, key: Key, step: FlowStep) {
        let (Some(does), Some(task)) = (self.does(key).cloned(), step.task.clone()) else {
            return self.begin_step(key, step);
        };
        match Act::of(&does, &self.board, key) {
            Ok(Some(act)) if self.lacks_secrets(key, &act) => {
                // Nobody can call it any more; but whoever was called may have an answer.
                let (called, takes_turn) = (act.called(), !self.crew.is_nested(&act));
                let lost = Wants::Resume(Box::new(Err(unkept())));
                self.push(key, task, (called, takes_turn), lost);
            }
            Ok(Some(act)) => self.begin_act(key, task, act, true),
            Ok(None) => self.begin_local(key, step, &does),
            Err(failure) => self.fail(key, step, failure),
        }
    }

    /// Whether what is to be said held secrets that were not kept when another process had the run.
    fn lacks_secrets(&self, key: Key, act: &Act) -> bool {
        let is_for_items = key.item.is_some();
        let list = self.board.step(Key::node(key.node)).filter(|_| is_for_items);
        let list = list.and_then(|step| step.input.as_ref());
        let is_lost = self.board.has_lost_secrets || list.is_some_and(is_redacted);
        is_lost && is_redacted(&act.input())
    }

    fn begin_act(&mut self, key: Key, task: TaskId, act: Act, is_resumed: bool) {
        let (called, takes_turn) = (act.called(), !self.crew.is_nested(&act));
        let wants = if is_resumed { Wants::Resume(Box::new(Ok(act))) } else { Wants::Begin(Box::new(act)) };
        self.push(key, task, (called, takes_turn), wants);
    }

    fn begin_call(&mut self, key: Key, task: TaskId, wants: Wants) {
        let does = self.does(key);
        let takes_turn = !matches!(does, Some(Does::Pipeline { .. } | Does::Workflow { .. }));
        let called = match does {
            Some(Does::Tool { name, .. }) => name.clone(),
            _ => self.board.node(key.node).map_or_else(String::new, |node| node.id.to_string()),
        };
        self.push(key, task, (called, takes_turn), wants);
    }

    fn push(&mut self, key: Key, task: TaskId, (called, takes_turn): (String, bool), wants: Wants) {
        let timeout = self.board.node(key.node).and_then(|node| node.timeout);
        let unit = Unit { crew: self.crew.clone(), task, called, wants, takes_turn, timeout };
        self.starting.push((key, Work::Call(Box::new(unit))));
    }

    /// What a step does: the node's own work, or what it does for each item.
    pub(super) fn does(&self, key: Key) -> Option<&Does> {
        match (&self.board.node(key.node)?.does, key.item) {
            (Does::Map { does, .. }, Some(_)) => Some(does),
            (does, _) => Some(does),
        }
    }

    fn skip(&mut self, key: Key, why: Option<Failure>) {
        let Some(node) = self.board.node(key.node) else { return };
        let now = self.crew.engine.now();
        let step = FlowStep::begun(node.id.as_str(), None, 1, now);
        self.put(key, FlowStep { state: StepState::Skipped, failure: why, ended_at: Some(now), ..step });
    }

    /// Asks a person, and waits.
    pub(super) fn ask(&mut self, key: Key, step: FlowStep, does: &Does) -> Result<(), Failure> {
        let Does::Approval { question, details, expires } = does else { return Ok(()) };
        let words = act::text(&act::render(question, &self.board, key)?);
        let details = details.as_ref().map(|details| act::render(details, &self.board, key)).transpose()?;
        let text = format!("{words}\n\nAnswer `approve` or `deny`.");
        let mut parts = vec![Part::text(text)];
        parts.extend(details.as_ref().map(|details| Part::data(redact(details))));
        let message = Message::new(fresh(), Role::Agent, parts);
        let now = self.crew.engine.now();
        let expires = expires.and_then(|after| now.checked_add(after).ok());
        let step = FlowStep { input: details.as_ref().map(redact), ..step };
        self.hold(key, step, StepQuestion { ask: QuestionKind::Input, message: Some(message), expires });
        Ok(())
    }
}

fn unkept() -> Failure {
    let why =
        "another process began this run, and what it was given held secrets that are not kept; run it again";
    Failure::new(FailureKind::Conflict, why)
}
