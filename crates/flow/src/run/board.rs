//! How a run stands: its definition, what it was given, and its steps.
//!
//! A step of the last attempt says everything about its node, so a board can be put together again from what is written down.

use std::{collections::BTreeMap, sync::Arc};

use rialto_engine::is_redacted;
use rialto_model::{
    failure::{Failure, FailureKind},
    flow::{FlowStep, StepState},
    json::Json,
};

use super::plan::{Move, Plan, Standing};
use crate::{
    definition::{Does, Node, Workflow},
    reference::Root,
};

/// One step: a node, or one item of a node that does the same for many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) node: usize,
    pub(super) item: Option<u32>,
}

/// How a run stands.
pub(super) struct Board {
    pub(super) workflow: Arc<Workflow>,
    plan: Plan,
    /// What the run was given.
    pub(super) input: Json,
    /// Whether secrets of it were not kept.
    pub(super) has_lost_secrets: bool,
    /// The last attempt of each.
    steps: BTreeMap<Key, FlowStep>,
    /// What nodes that do the same for many do it for.
    items: BTreeMap<usize, Vec<Json>>,
}

// === impl Key ===

impl Key {
    pub(super) const fn node(node: usize) -> Self {
        Self { node, item: None }
    }
}

// === impl Board ===

impl Board {
    /// A run with these steps; steps of nodes that the definition does not have are not looked at.
    pub(super) fn new(workflow: Arc<Workflow>, input: Json, steps: Vec<FlowStep>) -> Self {
        let plan = Plan::of(&workflow);
        let has_lost_secrets = is_redacted(&input);
        let (steps_of, items) = (BTreeMap::new(), BTreeMap::new());
        let mut board = Self { workflow, plan, input, has_lost_secrets, steps: steps_of, items };
        for step in steps {
            let node = board.workflow.nodes.iter().position(|node| node.id.as_str() == step.node);
            if let Some(node) = node {
                let key = Key { node, item: step.item };
                if let (None, Some(list)) = (step.item, &step.input) {
                    board.set_items(node, list);
                }
                if board.steps.get(&key).is_none_or(|known| known.attempt <= step.attempt) {
                    board.steps.insert(key, step);
                }
            }
        }
        board
    }

    pub(super) fn node(&self, at: usize) -> Option<&Node> {
        self.workflow.nodes.get(at)
    }

    pub(super) fn step(&self, key: Key) -> Option<&FlowStep> {
        self.steps.get(&key)
    }

    pub(super) fn put(&mut self, key: Key, step: FlowStep) {
        self.steps.insert(key, step);
    }

    /// Says what a node that does the same for many does it for. Answers whether that is a list.
    pub(super) fn set_items(&mut self, node: usize, list: &Json) -> bool {
        let is_map = self.node(node).is_some_and(|node| matches!(node.does, Does::Map { .. }));
        let items = if is_map { list.read::<Vec<Json>>().ok() } else { None };
        let is_list = items.is_some();
        if let Some(items) = items {
            self.items.insert(node, items);
        }
        is_list
    }

    /// All steps in a state, in the order of their nodes.
    pub(super) fn in_state(&self, state: StepState) -> impl Iterator<Item = (Key, &FlowStep)> {
        self.steps.iter().filter(move |(_, step)| step.state == state).map(|(key, step)| (*key, step))
    }

    /// What may happen now.
    pub(super) fn moves(&self) -> Vec<Move> {
        let standings: Vec<Standing> = (0..self.workflow.nodes.len()).map(|at| self.standing(at)).collect();
        self.plan.next(&standings, |at| self.chose(at)).collect()
    }

    pub(super) fn standing(&self, node: usize) -> Standing {
        let Some(step) = self.step(Key::node(node)) else { return Standing::Open };
        match step.state {
            StepState::Running | StepState::Waiting | StepState::Retrying => Standing::Busy,
            StepState::Completed => Standing::Done,
            StepState::Failed | StepState::Canceled => Standing::Failed,
            StepState::Skipped if step.failure.is_some() => Standing::Lost,
            StepState::Skipped => Standing::Left,
        }
    }

    /// How many nodes are over.
    pub(super) fn done(&self) -> usize {
        (0..self.workflow.nodes.len()).filter(|at| self.standing(*at).is_over()).count()
    }

    /// Whether all nodes are.
    pub(super) fn is_over(&self) -> bool {
        self.done() == self.workflow.nodes.len()
    }

    /// The nodes whose failure fails the run, in order.
    pub(super) fn failed(&self) -> impl Iterator<Item = (&Node, &Failure)> {
        let nodes = self.workflow.nodes.iter().enumerate();
        nodes.filter_map(|(at, node)| {
            let step = self.step(Key::node(at)).filter(|step| step.state == StepState::Failed)?;
            let failure = step.failure.as_ref().filter(|_| !node.goes_on_after_failure)?;
            Some((node, failure))
        })
    }

    /// The items of a node that does the same for many that have not begun.
    pub(super) fn open_items(&self, node: usize) -> Vec<u32> {
        (0..self.len_of(node)).filter(|item| self.step(Key { node, item: Some(*item) }).is_none()).collect()
    }

    /// How many items of a node are at work.
    pub(super) fn busy_items(&self, node: usize) -> usize {
        let items = (0..self.len_of(node)).filter_map(|item| self.step(Key { node, item: Some(item) }));
        items.filter(|step| step.state == StepState::Running).count()
    }

    fn item(&self, key: Key) -> Option<Json> {
        self.items.get(&key.node)?.get(usize::try_from(key.item?).ok()?).cloned()
    }

    /// What a node that does the same for many has made of all, once all are over; or why it has failed.
    pub(super) fn gathered(&self, node: usize) -> Option<Result<Json, Failure>> {
        let steps: Option<Vec<&FlowStep>> =
            (0..self.len_of(node)).map(|item| self.step(Key { node, item: Some(item) })).collect();
        let steps = steps.filter(|steps| steps.iter().all(|step| step.state.is_over()))?;
        let failed = steps.iter().enumerate().find(|(_, step)| step.state != StepState::Completed);
        if let Some((at, step)) = failed {
            let why = step.failure.as_ref().map_or("it was called off", |failure| &failure.message);
            let kind = step.failure.as_ref().map_or(FailureKind::PeerFailed, |it| it.kind);
            return Some(Err(Failure::new(kind, format!("item {at}: {why}"))));
        }
        let outputs: Vec<Json> =
            steps.into_iter().map(|step| step.output.clone().unwrap_or_else(Json::null)).collect();
        Some(Ok(Json::encode(&outputs)))
    }

    /// What stands at a root, for whoever does the work of a step.
    pub(super) fn find(&self, root: &Root, key: Key) -> Option<Json> {
        let place = |id: &crate::definition::NodeId| self.workflow.nodes.iter().position(|it| it.id == *id);
        match root {
            Root::Trigger => Some(self.input.clone()),
            Root::Output(id) => {
                let step = self.step(Key::node(place(id)?))?;
                step.output.clone().filter(|_| step.state == StepState::Completed)
            }
            Root::State(id) => {
                let state = self.step(Key::node(place(id)?)).map_or("pending", |step| step.state.as_str());
                Some(Json::encode(state))
            }
            Root::Item => self.item(key),
            Root::Index => key.item.map(|item| Json::encode(&item)),
        }
    }

    /// What the run answers with, where its definition does not say: what its last nodes have made.
    pub(super) fn made(&self) -> Json {
        let place = |node: &Node| self.workflow.nodes.iter().position(|it| it.id == node.id);
        let made = |node: &Node| {
            let step = self.step(Key::node(place(node)?))?;
            step.output.clone().filter(|_| step.state == StepState::Completed)
        };
        let ends: Vec<&Node> = self.workflow.ends().collect();
        match ends.as_slice() {
            [one] => made(one).unwrap_or_else(Json::null),
            ends => {
                let made = ends.iter().filter_map(|node| Some((node.id.to_string(), made(node)?)));
                let object: rialto_model::json::Extra = made.collect();
                Json::encode(&object)
            }
        }
    }

    /// What a condition that is done has answered.
    fn chose(&self, node: usize) -> Option<bool> {
        let Does::Condition { .. } = self.node(node)?.does else { return None };
        let step = self.step(Key::node(node))?;
        let output = step.output.as_ref().filter(|_| step.state == StepState::Completed)?;
        output.value().get("result")?.as_bool()
    }

    fn len_of(&self, node: usize) -> u32 {
        u32::try_from(self.items.get(&node).map_or(0, Vec::len)).unwrap_or(u32::MAX)
    }
}
