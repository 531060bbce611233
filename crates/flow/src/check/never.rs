//! Nodes that can never run.
//!
//! What a condition answers without looking at anything is known beforehand: the other branch is dead, and so is what needs only dead
//! nodes.

use std::collections::BTreeMap;

use super::{
    circle::{Edge, Tie},
    skips,
};
use crate::{
    condition::Condition,
    definition::{Does, NodeId},
    problem::{Code, Problems},
    read::Draft,
};

pub(super) fn tell(
    drafts: &[Draft],
    numbers: &BTreeMap<NodeId, usize>,
    edges: &[Edge],
    problems: &mut Problems,
) {
    let mut branch_of: Vec<Option<usize>> = vec![None; drafts.len()];
    for edge in edges.iter().filter(|edge| edge.tie == Tie::Branch) {
        branch_of[edge.node] = Some(edge.needs);
    }
    let direct = drafts.iter().zip(&branch_of);
    let mut whys: Vec<Option<String>> = direct
        .map(|(draft, condition)| why(draft, condition.and_then(|condition| drafts.get(condition))))
        .collect();
    // Each group that takes a node with it when all of it is dead: the node, and how many are alive.
    let mut groups: Vec<(usize, usize)> = Vec::new();
    let mut groups_of: Vec<Vec<usize>> = vec![Vec::new(); drafts.len()];
    for (number, draft) in drafts.iter().enumerate() {
        for group in skips::with(draft) {
            let members: Vec<usize> = group.iter().filter_map(|id| numbers.get(id).copied()).collect();
            members.iter().for_each(|member| groups_of[*member].push(groups.len()));
            groups.push((number, members.len()));
        }
    }
    let mut dead: Vec<usize> = (0..drafts.len()).filter(|number| whys[*number].is_some()).collect();
    while let Some(number) = dead.pop() {
        for group in &groups_of[number] {
            let (node, alive) = &mut groups[*group];
            *alive -= 1;
            if *alive == 0 && whys[*node].is_none() {
                whys[*node] = Some("none of the nodes it needs can run".to_owned());
                dead.push(*node);
            }
        }
    }
    for (draft, why) in drafts.iter().zip(whys) {
        if let Some(why) = why {
            problems.add(draft.place, Code::Unreachable, format!("\"{}\" can never run: {why}", draft.id));
        }
    }
}

/// Why a node itself can never run. A branch has the condition that chooses it.
fn why(draft: &Draft, condition: Option<&Draft>) -> Option<String> {
    if draft.common.when.as_ref().and_then(answer) == Some(false) {
        return Some("its \"when\" never holds".to_owned());
    }
    let condition = condition?;
    let Some(Does::Condition { test, then, .. }) = &condition.does else { return None };
    let answer = answer(test)?;
    (then.contains(&draft.id) != answer)
        .then(|| format!("\"{}\" always chooses the other branch", condition.id))
}

/// What a condition answers, if that is known beforehand.
fn answer(condition: &Condition) -> Option<bool> {
    condition.references().is_empty().then(|| condition.holds(&|_| None))
}
