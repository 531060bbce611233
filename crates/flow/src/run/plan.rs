//! What may happen next: a function of the definition and of how its nodes stand, and of nothing else.
//!
//! A node begins once all that it needs is over. One that needs what has failed is lost, and so is what needs it; one whose
//! branch was not taken, or that needs only such nodes, is left out. Whatever happens, every node is over in the end.

use crate::definition::{Does, NodeId, Workflow};

/// How a node stands, as far as those that need it care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It has not begun.
    Open,
    /// It is at work, waits, or will be tried again.
    Busy,
    /// It is done.
    Done,
    /// It has failed.
    Failed,
    /// It was left out: its branch was not taken, or its condition did not hold.
    Left,
    /// It was not begun because something that it needs has failed.
    Lost,
}

/// What may happen to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// It begins.
    Begin(usize),
    /// It is left out.
    Leave(usize),
    /// It cannot be done, because of this one.
    Lose(usize, usize),
}

/// A definition, as far as order matters. Nodes are numbers: their places in the definition.
#[derive(Clone, Debug)]
pub(super) struct Plan(Vec<Spot>);

#[derive(Clone, Debug, Default)]
struct Spot {
    needs: Vec<usize>,
    /// The conditions that it is a branch of, and the answer that takes it.
    branches: Vec<(usize, bool)>,
    goes_on_after_failure: bool,
}

// === impl Standing ===

impl Standing {
    /// Whether nothing more will come of it.
    pub(super) const fn is_over(self) -> bool {
        !matches!(self, Self::Open | Self::Busy)
    }
}

// === impl Plan ===

impl Plan {
    pub(super) fn of(workflow: &Workflow) -> Self {
        let place = |id: &NodeId| workflow.nodes.iter().position(|node| node.id == *id);
        let mut spots: Vec<Spot> = workflow
            .nodes
            .iter()
            .map(|node| Spot {
                needs: node.needs.iter().filter_map(place).collect(),
                branches: Vec::new(),
                goes_on_after_failure: node.goes_on_after_failure,
            })
            .collect();
        for (at, node) in workflow.nodes.iter().enumerate() {
            let Does::Condition { then, otherwise, .. } = &node.does else { continue };
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

    /// Everything that may happen now. `chose` says what a condition that is done has answered.
    pub(super) fn next(
        &self,
        standings: &[Standing],
        chose: impl Fn(usize) -> Option<bool>,
    ) -> impl Iterator<Item = Move> {
        let is_ready = |at: usize, spot: &Spot| {
            stands(standings, at) == Standing::Open
                && spot.needs.iter().all(|need| stands(standings, *need).is_over())
        };
        let ready = self.0.iter().enumerate().filter(move |(at, spot)| is_ready(*at, spot));
        ready.map(move |(at, spot)| self.fate(at, spot, standings, &chose))
    }

    /// What becomes of a node once all that it needs is over.
    fn fate(
        &self,
        at: usize,
        spot: &Spot,
        standings: &[Standing],
        chose: &impl Fn(usize) -> Option<bool>,
    ) -> Move {
        let is_lost = |need: &&usize| match stands(standings, **need) {
            Standing::Failed => !self.0.get(**need).is_some_and(|spot| spot.goes_on_after_failure),
            standing => standing == Standing::Lost,
        };
        if let Some(cause) = spot.needs.iter().find(is_lost) {
            return Move::Lose(at, *cause);
        }
        let is_taken = |(condition, answer): &(usize, bool)| chose(*condition) == Some(*answer);
        let is_untaken = !spot.branches.is_empty() && !spot.branches.iter().any(is_taken);
        let is_left = |need: &usize| stands(standings, *need) == Standing::Left;
        let has_nothing = !spot.needs.is_empty() && spot.needs.iter().all(is_left);
        if is_untaken || has_nothing { Move::Leave(at) } else { Move::Begin(at) }
    }
}

fn stands(standings: &[Standing], at: usize) -> Standing {
    standings.get(at).copied().unwrap_or(Standing::Left)
}

#[cfg(test)]
mod tests;
