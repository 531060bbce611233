//! Nodes that can never run.
//!
//! What a condition answers without looking at anything is known beforehand: the other branch is dead, and so is what needs only dead
//! nodes.

use super::circle::{Edge, Tie};
use crate::{
    condition::Condition,
    definition::Does,
    problem::{Code, Problems},
    read::Draft,
};

pub(super) fn tell(drafts: &[Draft], edges: &[Edge], problems: &mut Problems) {
    let mut branch_of: Vec<Option<usize>> = vec![None; drafts.len()];
    let mut needed_by: Vec<Vec<usize>> = vec![Vec::new(); drafts.len()];
    let mut alive: Vec<usize> = vec![0; drafts.len()];
    for edge in edges {
        needed_by[edge.needs].push(edge.node);
        alive[edge.node] += 1;
        if edge.tie == Tie::Branch {
            branch_of[edge.node] = Some(edge.needs);
        }
    }
    let direct = drafts.iter().zip(&branch_of);
    let mut whys: Vec<Option<String>> = direct
        .map(|(draft, condition)| why(draft, condition.and_then(|condition| drafts.get(condition))))
        .collect();
    let mut dead: Vec<usize> = (0..drafts.len()).filter(|number| whys[*number].is_some()).collect();
    while let Some(number) = dead.pop() {
        for other in needed_by[number].iter().copied() {
            alive[other] -= 1;
            if alive[other] == 0 && whys[other].is_none() && !drafts[other].runs_after_skipped() {
                whys[other] = Some("none of the nodes it needs can run".to_owned());
                dead.push(other);
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
