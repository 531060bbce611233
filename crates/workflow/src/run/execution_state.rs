//! State of a run: definition, input and steps.
//!
//! The latest attempt of a step determines the state of its node, so the state can be rebuilt from stored steps.

use std::{collections::BTreeMap, sync::Arc};

use rialto_engine::is_redacted;
use rialto_model::{
    failure::{Failure, FailureKind},
    flow::{FlowStep, StepState},
    json::Json,
};

use super::ready_nodes::{DependencyGraph, NodeProgress, NodeTransition};
use crate::{
    definition::{NodeAction, Workflow, WorkflowNode},
    reference::ReferenceRoot,
};

/// Key of a step: a node, or one item of a `map` node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct StepKey {
    pub(super) node: usize,
    pub(super) item: Option<u32>,
}

/// State of a run.
pub(super) struct ExecutionState {
    pub(super) workflow: Arc<Workflow>,
    plan: DependencyGraph,
    /// Input of the run.
    pub(super) input: Json,
    /// True if secrets of the input were not stored.
    pub(super) has_lost_secrets: bool,
    /// The last attempt of each.
    steps: BTreeMap<StepKey, FlowStep>,
    /// Items of `map` nodes.
    items: BTreeMap<usize, Vec<Json>>,
}

// === impl StepKey ===

impl StepKey {
    pub(super) const fn node(node: usize) -> Self {
        Self { node, item: None }
    }
}

// === impl ExecutionState ===

impl ExecutionState {
    /// Creates the state from stored steps; steps of unknown nodes are ignored.
    pub(super) fn new(workflow: Arc<Workflow>, input: Json, steps: Vec<FlowStep>) -> Self {
        let plan = DependencyGraph::from_workflow(&workflow);
        let has_lost_secrets = is_redacted(&input);
        let (steps_of, items) = (BTreeMap::new(), BTreeMap::new());
        let mut execution = Self { workflow, plan, input, has_lost_secrets, steps: steps_of, items };
        for step in steps {
            let node = execution.workflow.nodes.iter().position(|node| node.id.as_str() == step.node);
            if let Some(node) = node {
                let key = StepKey { node, item: step.item };
                if let (None, Some(list)) = (step.item, &step.input) {
                    execution.set_items(node, list);
                }
                if execution.steps.get(&key).is_none_or(|known| known.attempt <= step.attempt) {
                    execution.steps.insert(key, step);
                }
            }
        }
        execution
    }

    pub(super) fn node(&self, at: usize) -> Option<&WorkflowNode> {
        self.workflow.nodes.get(at)
    }

    pub(super) fn step(&self, key: StepKey) -> Option<&FlowStep> {
        self.steps.get(&key)
    }

    pub(super) fn set_step(&mut self, key: StepKey, step: FlowStep) {
        self.steps.insert(key, step);
    }

    /// Sets the items of a `map` node. Returns false if the value is no list.
    pub(super) fn set_items(&mut self, node: usize, list: &Json) -> bool {
        let is_map = self.node(node).is_some_and(|node| matches!(node.action, NodeAction::Map { .. }));
        let items = if is_map { list.read::<Vec<Json>>().ok() } else { None };
        let is_list = items.is_some();
        if let Some(items) = items {
            self.items.insert(node, items);
        }
        is_list
    }

    /// All steps in a state, in the order of their nodes.
    pub(super) fn steps_in_state(&self, state: StepState) -> impl Iterator<Item = (StepKey, &FlowStep)> {
        self.steps.iter().filter(move |(_, step)| step.state == state).map(|(key, step)| (*key, step))
    }

    /// Transitions that are possible now.
    pub(super) fn next_transitions(&self) -> Vec<NodeTransition> {
        let standings: Vec<NodeProgress> =
            (0..self.workflow.nodes.len()).map(|at| self.node_progress(at)).collect();
        self.plan.transitions(&standings, |at| self.condition_answer(at)).collect()
    }

    pub(super) fn node_progress(&self, node: usize) -> NodeProgress {
        let Some(step) = self.step(StepKey::node(node)) else { return NodeProgress::Open };
        match step.state {
            StepState::Running | StepState::Waiting | StepState::Retrying => NodeProgress::Busy,
            StepState::Completed => NodeProgress::Done,
            StepState::Failed | StepState::Canceled => NodeProgress::Failed,
            StepState::Skipped if step.failure.is_some() => NodeProgress::Lost,
            StepState::Skipped => NodeProgress::Left,
        }
    }

    /// Number of finished nodes.
    pub(super) fn finished_nodes(&self) -> usize {
        (0..self.workflow.nodes.len()).filter(|at| self.node_progress(*at).is_over()).count()
    }

    /// True if all nodes are finished.
    pub(super) fn is_over(&self) -> bool {
        self.finished_nodes() == self.workflow.nodes.len()
    }

    /// Nodes whose failure fails the run, in order.
    pub(super) fn failed_nodes(&self) -> impl Iterator<Item = (&WorkflowNode, &Failure)> {
        let nodes = self.workflow.nodes.iter().enumerate();
        nodes.filter_map(|(at, node)| {
            let step = self.step(StepKey::node(at)).filter(|step| step.state == StepState::Failed)?;
            let failure = step.failure.as_ref().filter(|_| !node.goes_on_after_failure)?;
            Some((node, failure))
        })
    }

    /// Items of a `map` node that have not started.
    pub(super) fn unstarted_items(&self, node: usize) -> Vec<u32> {
        (0..self.item_count(node))
            .filter(|item| self.step(StepKey { node, item: Some(*item) }).is_none())
            .collect()
    }

    /// Number of running items of a node.
    pub(super) fn running_items(&self, node: usize) -> usize {
        let items =
            (0..self.item_count(node)).filter_map(|item| self.step(StepKey { node, item: Some(item) }));
        items.filter(|step| step.state == StepState::Running).count()
    }

    fn item(&self, key: StepKey) -> Option<Json> {
        self.items.get(&key.node)?.get(usize::try_from(key.item?).ok()?).cloned()
    }

    /// Outputs of all items of a `map` node once they are finished, or its failure.
    pub(super) fn gather_results(&self, node: usize) -> Option<Result<Json, Failure>> {
        let steps: Option<Vec<&FlowStep>> =
            (0..self.item_count(node)).map(|item| self.step(StepKey { node, item: Some(item) })).collect();
        let steps = steps.filter(|steps| steps.iter().all(|step| step.state.is_over()))?;
        let failed = steps.iter().enumerate().find(|(_, step)| step.state != StepState::Completed);
        if let Some((at, step)) = failed {
            let why = step.failure.as_ref().map_or("it was cancelled", |failure| &failure.message);
            let kind = step.failure.as_ref().map_or(FailureKind::PeerFailed, |it| it.kind);
            return Some(Err(Failure::new(kind, format!("item {at}: {why}"))));
        }
        let outputs: Vec<Json> =
            steps.into_iter().map(|step| step.output.clone().unwrap_or_else(Json::null)).collect();
        Some(Ok(Json::encode(&outputs)))
    }

    /// Value of a root, for a step.
    pub(super) fn resolve_root(&self, root: &ReferenceRoot, key: StepKey) -> Option<Json> {
        let place = |id: &crate::definition::NodeId| self.workflow.nodes.iter().position(|it| it.id == *id);
        match root {
            ReferenceRoot::Trigger => Some(self.input.clone()),
            ReferenceRoot::Output(id) => {
                let step = self.step(StepKey::node(place(id)?))?;
                step.output.clone().filter(|_| step.state == StepState::Completed)
            }
            ReferenceRoot::State(id) => {
                let state =
                    self.step(StepKey::node(place(id)?)).map_or("pending", |step| step.state.as_str());
                Some(Json::encode(state))
            }
            ReferenceRoot::Item => self.item(key),
            ReferenceRoot::Index => key.item.map(|item| Json::encode(&item)),
        }
    }

    /// Default output of the run: the outputs of its last nodes.
    pub(super) fn default_output(&self) -> Json {
        let place = |node: &WorkflowNode| self.workflow.nodes.iter().position(|it| it.id == node.id);
        let made = |node: &WorkflowNode| {
            let step = self.step(StepKey::node(place(node)?))?;
            step.output.clone().filter(|_| step.state == StepState::Completed)
        };
        let ends: Vec<&WorkflowNode> = self.workflow.ends().collect();
        match ends.as_slice() {
            [one] => made(one).unwrap_or_else(Json::null),
            ends => {
                let made = ends.iter().filter_map(|node| Some((node.id.to_string(), made(node)?)));
                let object: rialto_model::json::Extra = made.collect();
                Json::encode(&object)
            }
        }
    }

    /// Answer of a completed condition.
    fn condition_answer(&self, node: usize) -> Option<bool> {
        let NodeAction::Condition { .. } = self.node(node)?.action else { return None };
        let step = self.step(StepKey::node(node))?;
        let output = step.output.as_ref().filter(|_| step.state == StepState::Completed)?;
        output.value().get("result")?.as_bool()
    }

    fn item_count(&self, node: usize) -> u32 {
        u32::try_from(self.items.get(&node).map_or(0, Vec::len)).unwrap_or(u32::MAX)
    }
}
