//! Which nodes take others with them when they are skipped.
//!
//! A node that names others is skipped with all of them, so that nothing runs behind an approval that nobody was asked for. One that
//! looks at others is skipped where a place could be filled from them alone: it would fail for what was left out on purpose.

use crate::{
    definition::{Does, NodeId},
    read::Draft,
    reference::{Expression, Root},
    template::Template,
};

/// The groups of nodes that take a node with them, each once.
pub(super) fn with(draft: &Draft) -> Vec<Vec<NodeId>> {
    let named: Vec<NodeId> = draft.depends_on.iter().flatten().map(|(id, _)| id.clone()).collect();
    let places = draft.does.as_ref().map(templates).unwrap_or_default();
    let filled = places.into_iter().flat_map(Template::expressions).filter_map(sources);
    let mut groups: Vec<Vec<NodeId>> = Vec::new();
    for group in std::iter::once(named).chain(filled).filter(|group| !group.is_empty()) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

/// The nodes that a place is filled from, if from nothing else.
fn sources(expression: &Expression) -> Option<Vec<NodeId>> {
    if expression.default.is_some() {
        return None;
    }
    let mut nodes: Vec<NodeId> = Vec::new();
    for reference in expression.references() {
        match &reference.root {
            Root::Output(node) if nodes.contains(node) => {}
            Root::Output(node) => nodes.push(node.clone()),
            Root::State(_) | Root::Trigger | Root::Item | Root::Index => return None,
        }
    }
    Some(nodes)
}

/// All that a node is given.
fn templates(does: &Does) -> Vec<&Template> {
    match does {
        Does::AgentRef { agent } => vec![agent],
        Does::Invoke { agent, skill, args, message } => {
            [Some(agent), skill.as_ref(), args.as_ref(), message.as_ref()].into_iter().flatten().collect()
        }
        Does::Dispatch { work_type, description, required_skills, args, message } => {
            let others = [work_type, description, args, message].into_iter().flatten();
            required_skills.iter().chain(others).collect()
        }
        Does::Tool { args: input, .. } | Does::Pipeline { input, .. } | Does::Workflow { input, .. } => {
            input.iter().collect()
        }
        Does::Condition { .. } => Vec::new(),
        Does::Map { over, does, .. } => std::iter::once(over).chain(templates(does)).collect(),
        Does::Approval { question, details, .. } => std::iter::once(question).chain(details).collect(),
        Does::Set { value } => vec![value],
    }
}
