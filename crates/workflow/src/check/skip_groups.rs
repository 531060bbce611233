//! Groups of nodes that cause another node to be skipped.
//!
//! A node that names others is skipped with all of them, so that nothing runs after an approval that was never requested. A node that
//! refers to others is skipped if one of its places could be filled from them alone: it would fail because of an intended omission.

use crate::{
    definition::{NodeAction, NodeId},
    read::NodeDraft,
    reference::{ReferenceExpression, ReferenceRoot},
    template::JsonTemplate,
};

/// The groups of nodes that take a node with them, each once.
pub(super) fn skip_groups(draft: &NodeDraft) -> Vec<Vec<NodeId>> {
    let named: Vec<NodeId> = draft.depends_on.iter().flatten().map(|(id, _)| id.clone()).collect();
    let places = draft.action.as_ref().map(templates_of_action).unwrap_or_default();
    let filled = places.into_iter().flat_map(JsonTemplate::expressions).filter_map(only_sources);
    let mut groups: Vec<Vec<NodeId>> = Vec::new();
    for group in std::iter::once(named).chain(filled).filter(|group| !group.is_empty()) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

/// The nodes that a place is filled from, if from nothing else.
fn only_sources(expression: &ReferenceExpression) -> Option<Vec<NodeId>> {
    if expression.default.is_some() {
        return None;
    }
    let mut nodes: Vec<NodeId> = Vec::new();
    for reference in expression.references() {
        match &reference.root {
            ReferenceRoot::Output(node) if nodes.contains(node) => {}
            ReferenceRoot::Output(node) => nodes.push(node.clone()),
            ReferenceRoot::State(_) | ReferenceRoot::Trigger | ReferenceRoot::Item | ReferenceRoot::Index => {
                return None;
            }
        }
    }
    Some(nodes)
}

/// All that a node is given.
fn templates_of_action(action: &NodeAction) -> Vec<&JsonTemplate> {
    match action {
        NodeAction::AgentRef { agent } => vec![agent],
        NodeAction::Invoke { agent, skill, args, message } => {
            [Some(agent), skill.as_ref(), args.as_ref(), message.as_ref()].into_iter().flatten().collect()
        }
        NodeAction::Dispatch { work_type, description, required_skills, args, message } => {
            let others = [work_type, description, args, message].into_iter().flatten();
            required_skills.iter().chain(others).collect()
        }
        NodeAction::Tool { args: input, .. }
        | NodeAction::Pipeline { input, .. }
        | NodeAction::Workflow { input, .. } => input.iter().collect(),
        NodeAction::Condition { .. } => Vec::new(),
        NodeAction::Map { over, action, .. } => {
            std::iter::once(over).chain(templates_of_action(action)).collect()
        }
        NodeAction::Approval { question, details, .. } => std::iter::once(question).chain(details).collect(),
        NodeAction::Set { value } => vec![value],
    }
}
