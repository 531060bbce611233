//! Dependencies between the nodes of a workflow, and checks of the whole graph.
//!
//! A node depends on nodes it names, nodes it refers to, the condition whose branch it is, and the steps before it. For a cycle
//! the reference is reported, if there is one: a reference to a later node is a mistaken order, not a mistaken plan.

mod cycles;
mod skip_groups;
mod unreachable;

use std::collections::BTreeMap;

use self::cycles::{DependencyEdge, DependencyKind};
use crate::{
    definition::{NodeId, SourcePosition, WorkflowNode},
    problem::{DefinitionProblems, ProblemCode},
    read::{
        MAX_NODES, NodeDraft,
        diagnostics::{NodeReference, did_you_mean},
    },
    template::JsonTemplate,
};

/// S0 refers to a node of this name that it never shows: the agent that a run is given.
const AGENT_REF: &str = "agent-ref";
const AGENT: &str = "{{ $trigger.agentCardId ?? $trigger.agent }}";

/// The drafts by their ids, and the ties between them.
struct DraftGraph<'a> {
    drafts: &'a [NodeDraft],
    numbers: BTreeMap<NodeId, usize>,
    edges: Vec<DependencyEdge>,
}

/// Makes nodes of drafts and reports problems between them. `output_references` are the references in the workflow's output.
pub(crate) fn link_nodes(
    mut drafts: Vec<NodeDraft>,
    output_references: &[NodeReference],
    problems: &mut DefinitionProblems,
) -> Vec<WorkflowNode> {
    if drafts.len() > MAX_NODES {
        let place = drafts.first().map(|draft| draft.place).unwrap_or_default();
        problems.add(place, ProblemCode::BadValue, format!("a workflow has at most {MAX_NODES} nodes"));
        return Vec::new();
    }
    add_agent_ref(&mut drafts, output_references);
    let mut graph = DraftGraph { drafts: &drafts, numbers: BTreeMap::new(), edges: Vec::new() };
    graph.number_nodes(problems);
    graph.connect(problems);
    for seen in output_references.iter().filter(|seen| !graph.numbers.contains_key(&seen.node)) {
        graph.report_unknown_node(seen, problems);
    }
    cycles::break_cycles(&drafts, &mut graph.edges, problems);
    unreachable::report_unreachable(&drafts, &graph.numbers, &graph.edges, problems);
    let edges = graph.edges;
    build_nodes(drafts, &edges)
}

/// Adds the agent of a run as a node, for nodes that refer to it.
fn add_agent_ref(drafts: &mut Vec<NodeDraft>, output_references: &[NodeReference]) {
    let is_there = drafts.iter().any(|draft| draft.id.as_str() == AGENT_REF);
    let seen = drafts.iter().flat_map(|draft| &draft.seen).chain(output_references);
    let Some(place) = seen.filter(|seen| seen.node.as_str() == AGENT_REF).map(|seen| seen.place).min() else {
        return;
    };
    let Some(agent) = JsonTemplate::parse(AGENT).ok().filter(|_| !is_there) else { return };
    let draft = NodeDraft {
        id: NodeId::from(AGENT_REF),
        place,
        action: Some(crate::definition::NodeAction::AgentRef { agent }),
        depends_on: None,
        after: Vec::new(),
        branches: Vec::new(),
        seen: Vec::new(),
        common: crate::read::CommonFields::default(),
    };
    drafts.insert(0, draft);
}

fn build_nodes(drafts: Vec<NodeDraft>, edges: &[DependencyEdge]) -> Vec<WorkflowNode> {
    let ids: Vec<NodeId> = drafts.iter().map(|draft| draft.id.clone()).collect();
    let mut needs: Vec<Vec<NodeId>> = vec![Vec::new(); ids.len()];
    for edge in edges {
        if !needs[edge.node].contains(&ids[edge.needs]) {
            needs[edge.node].push(ids[edge.needs].clone());
        }
    }
    let made = drafts.into_iter().zip(needs).filter_map(|(draft, needs)| {
        let skipped_with = skip_groups::skip_groups(&draft);
        let crate::read::CommonFields { when, retry, timeout, goes_on_after_failure } = draft.common;
        Some(WorkflowNode {
            id: draft.id,
            needs,
            action: draft.action?,
            when,
            retry,
            timeout,
            goes_on_after_failure,
            skipped_with,
            place: draft.place,
        })
    });
    made.collect()
}

// === impl DraftGraph ===

impl DraftGraph<'_> {
    fn number_nodes(&mut self, problems: &mut DefinitionProblems) {
        for (number, draft) in self.drafts.iter().enumerate() {
            match self.numbers.get(&draft.id).and_then(|first| self.drafts.get(*first)) {
                None => drop(self.numbers.insert(draft.id.clone(), number)),
                Some(first) => {
                    let message = format!("another node is called \"{}\" too, at {}", draft.id, first.place);
                    problems.add(draft.place, ProblemCode::DuplicateId, message);
                }
            }
        }
    }

    fn connect(&mut self, problems: &mut DefinitionProblems) {
        let mut branch_of: BTreeMap<&NodeId, &NodeId> = BTreeMap::new();
        for (number, draft) in self.drafts.iter().enumerate() {
            for (id, place) in draft.depends_on.iter().flatten() {
                if let Some(needs) = self.find_node(id, *place, problems) {
                    self.edges.push(DependencyEdge {
                        node: number,
                        needs,
                        place: *place,
                        dependency: DependencyKind::Named,
                    });
                }
            }
            for id in &draft.after {
                if let Some(needs) = self.numbers.get(id).copied() {
                    self.edges.push(DependencyEdge {
                        node: number,
                        needs,
                        place: draft.place,
                        dependency: DependencyKind::After,
                    });
                }
            }
            for (id, place) in &draft.branches {
                if let Some(first) = branch_of.insert(id, &draft.id) {
                    let message =
                        format!("\"{id}\" is a branch of \"{first}\" already; a node is a branch once");
                    problems.add(*place, ProblemCode::BadValue, message);
                } else if let Some(node) = self.find_node(id, *place, problems) {
                    self.edges.push(DependencyEdge {
                        node,
                        needs: number,
                        place: *place,
                        dependency: DependencyKind::Branch,
                    });
                }
            }
            for seen in &draft.seen {
                self.add_reference(number, seen, problems);
            }
        }
    }

    fn add_reference(&mut self, number: usize, seen: &NodeReference, problems: &mut DefinitionProblems) {
        match self.numbers.get(&seen.node).copied() {
            None => self.report_unknown_node(seen, problems),
            Some(needs) if needs == number => {
                let message =
                    format!("\"{}\" refers to itself; it can refer only to earlier nodes", seen.node);
                problems.add(seen.place, ProblemCode::BadReference, message);
            }
            Some(needs) => {
                let dependency = DependencyKind::Looks(seen.text.clone());
                self.edges.push(DependencyEdge { node: number, needs, place: seen.place, dependency });
            }
        }
    }

    fn find_node(
        &self,
        id: &NodeId,
        place: SourcePosition,
        problems: &mut DefinitionProblems,
    ) -> Option<usize> {
        let found = self.numbers.get(id).copied();
        if found.is_none() {
            let hint = self.suggest_node(id, problems);
            problems.add(place, ProblemCode::UnknownNode, format!("there is no node \"{id}\"{hint}"));
        }
        found
    }

    fn report_unknown_node(&self, seen: &NodeReference, problems: &mut DefinitionProblems) {
        let hint = self.suggest_node(&seen.node, problems);
        let message =
            format!("{} refers to an unknown node: there is no node \"{}\"{hint}", seen.text, seen.node);
        problems.add(seen.place, ProblemCode::BadReference, message);
    }

    fn suggest_node(&self, id: &NodeId, problems: &DefinitionProblems) -> String {
        if problems.is_full() {
            return String::new();
        }
        did_you_mean(id.as_str(), self.numbers.keys().map(NodeId::as_str))
    }
}
