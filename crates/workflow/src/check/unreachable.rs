//! Nodes that can never run.
//!
//! A condition without references has a constant answer: its other branch is unreachable, and so are nodes that depend only on
//! unreachable nodes.

use std::collections::BTreeMap;

use super::{
    cycles::{DependencyEdge, DependencyKind},
    skip_groups,
};
use crate::{
    condition::Condition,
    definition::{NodeAction, NodeId},
    problem::{DefinitionProblems, ProblemCode},
    read::NodeDraft,
};

pub(super) fn report_unreachable(
    drafts: &[NodeDraft],
    numbers: &BTreeMap<NodeId, usize>,
    edges: &[DependencyEdge],
    problems: &mut DefinitionProblems,
) {
    let mut branch_of: Vec<Option<usize>> = vec![None; drafts.len()];
    for edge in edges.iter().filter(|edge| edge.dependency == DependencyKind::Branch) {
        branch_of[edge.node] = Some(edge.needs);
    }
    let direct = drafts.iter().zip(&branch_of);
    let mut whys: Vec<Option<String>> = direct
        .map(|(draft, condition)| {
            unreachable_reason(draft, condition.and_then(|condition| drafts.get(condition)))
        })
        .collect();
    // Each group whose nodes cause the node to be skipped: the node, and the number of reachable ones.
    let mut groups: Vec<(usize, usize)> = Vec::new();
    let mut groups_of: Vec<Vec<usize>> = vec![Vec::new(); drafts.len()];
    for (number, draft) in drafts.iter().enumerate() {
        for group in skip_groups::skip_groups(draft) {
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
            problems.add(
                draft.place,
                ProblemCode::Unreachable,
                format!("\"{}\" can never run: {why}", draft.id),
            );
        }
    }
}

/// Why a node itself can never run. A branch has the condition that chooses it.
fn unreachable_reason(draft: &NodeDraft, condition: Option<&NodeDraft>) -> Option<String> {
    if draft.common.when.as_ref().and_then(constant_answer) == Some(false) {
        return Some("its \"when\" never holds".to_owned());
    }
    let condition = condition?;
    let Some(NodeAction::Condition { test, then, .. }) = &condition.action else { return None };
    let answer = constant_answer(test)?;
    (then.contains(&draft.id) != answer)
        .then(|| format!("\"{}\" always chooses the other branch", condition.id))
}

/// Constant answer of a condition, if it has one.
fn constant_answer(condition: &Condition) -> Option<bool> {
    condition.references().is_empty().then(|| condition.is_true(&|_| None))
}
