//! Decides which nodes may start: a pure function of the definition and the progress of its nodes.
//!
//! A node starts once its dependencies are finished. A node that depends on a failed one is blocked, and so are its dependents; a
//! node on a branch that was not taken is skipped, and so are nodes of its skip groups. Every node finishes in the end.

use crate::definition::{NodeAction, NodeId, Workflow};

/// Progress of a node, as its dependents see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeProgress {
    /// Not started.
    Open,
    /// Running, waiting, or scheduled for a retry.
    Busy,
    /// Completed.
    Done,
    /// Failed.
    Failed,
    /// Skipped: its branch was not taken, or its condition was false.
    Left,
    /// Blocked: a dependency failed.
    Lost,
}

/// Possible transition of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeTransition {
    /// Start.
    Begin(usize),
    /// Skip.
    Leave(usize),
    /// Block, because of this dependency.
    Lose(usize, usize),
}

/// A definition, as far as order matters. Nodes are numbers: their places in the definition.
#[derive(Clone, Debug)]
pub(super) struct DependencyGraph(Vec<DependencyNode>);

#[derive(Clone, Debug, Default)]
struct DependencyNode {
    needs: Vec<usize>,
    /// Skipped if all nodes of one of these groups were.
    skipped_with: Vec<Vec<usize>>,
    /// The conditions that it is a branch of, and the answer that takes it.
    branches: Vec<(usize, bool)>,
    goes_on_after_failure: bool,
}

// === impl NodeProgress ===

impl NodeProgress {
    /// True if the node is finished.
    pub(super) const fn is_over(self) -> bool {
        !matches!(self, Self::Open | Self::Busy)
    }
}

// === impl DependencyGraph ===

impl DependencyGraph {
    pub(super) fn from_workflow(workflow: &Workflow) -> Self {
        let place = |id: &NodeId| workflow.nodes.iter().position(|node| node.id == *id);
        let mut spots: Vec<DependencyNode> = workflow
            .nodes
            .iter()
            .map(|node| DependencyNode {
                needs: node.needs.iter().filter_map(place).collect(),
                skipped_with: node
                    .skipped_with
                    .iter()
                    .map(|ids| ids.iter().filter_map(place).collect())
                    .collect(),
                branches: Vec::new(),
                goes_on_after_failure: node.goes_on_after_failure,
            })
            .collect();
        for (at, node) in workflow.nodes.iter().enumerate() {
            let NodeAction::Condition { then, otherwise, .. } = &node.action else { continue };
            let taken = then.iter().map(|id| (id, true)).chain(otherwise.iter().map(|id| (id, false)));
            for (branch, answer) in taken {
                if let Some(spot) = place(branch).and_then(|place| spots.get_mut(place)) {
                    spot.branches.push((at, answer));
                    if !spot.needs.contains(&at) {
                        spot.needs.push(at);
                    }
                }
            }
        }
        Self(spots)
    }

    /// All transitions that are possible now. `chose` returns the answer of a completed condition.
    pub(super) fn transitions(
        &self,
        standings: &[NodeProgress],
        chose: impl Fn(usize) -> Option<bool>,
    ) -> impl Iterator<Item = NodeTransition> {
        let is_ready = |at: usize, spot: &DependencyNode| {
            progress_at(standings, at) == NodeProgress::Open
                && spot.needs.iter().all(|need| progress_at(standings, *need).is_over())
        };
        let ready = self.0.iter().enumerate().filter(move |(at, spot)| is_ready(*at, spot));
        ready.map(move |(at, spot)| self.decide_node(at, spot, standings, &chose))
    }

    /// Decides the transition of a node whose dependencies are finished.
    fn decide_node(
        &self,
        at: usize,
        spot: &DependencyNode,
        standings: &[NodeProgress],
        chose: &impl Fn(usize) -> Option<bool>,
    ) -> NodeTransition {
        let is_lost = |need: &&usize| match progress_at(standings, **need) {
            NodeProgress::Failed => !self.0.get(**need).is_some_and(|spot| spot.goes_on_after_failure),
            standing => standing == NodeProgress::Lost,
        };
        if let Some(cause) = spot.needs.iter().find(is_lost) {
            return NodeTransition::Lose(at, *cause);
        }
        let is_taken = |(condition, answer): &(usize, bool)| chose(*condition) == Some(*answer);
        let is_untaken = !spot.branches.is_empty() && !spot.branches.iter().any(is_taken);
        let is_left = |need: &usize| progress_at(standings, *need) == NodeProgress::Left;
        let is_skipped = spot.skipped_with.iter().any(|group| !group.is_empty() && group.iter().all(is_left));
        if is_untaken || is_skipped { NodeTransition::Leave(at) } else { NodeTransition::Begin(at) }
    }
}

fn progress_at(standings: &[NodeProgress], at: usize) -> NodeProgress {
    standings.get(at).copied().unwrap_or(NodeProgress::Left)
}

#[cfg(test)]
mod tests;
