//! Steps: nodes that run one after the other because they stand so.
//!
//! A step comes after the one before it, or after all of the group before it; one that says what it depends on comes after that alone.

use super::{
    head::has,
    node::{Draft, few, node},
    notes::Notes,
    tree::{Tree, Value},
};
use crate::{definition::NodeId, keys::GROUP, problem::Code};

pub(super) fn read(tree: &Tree, notes: &mut Notes) -> Vec<Draft> {
    let Value::List(items) = &tree.value else {
        return notes.wrong_type(tree, "steps", "a list").unwrap_or_default();
    };
    let mut drafts: Vec<Draft> = Vec::new();
    let mut before: Vec<NodeId> = Vec::new();
    for item in few(tree, items, notes) {
        let group: Vec<Draft> = match group(item, notes) {
            Some(steps) => steps.iter().filter_map(|step| node(step, None, notes)).collect(),
            None => node(item, None, notes).into_iter().collect(),
        };
        let ids: Vec<NodeId> = group.iter().map(|draft| draft.id.clone()).collect();
        drafts.extend(group.into_iter().map(|draft| {
            let after = if draft.depends_on.is_some() { Vec::new() } else { before.clone() };
            Draft { after, ..draft }
        }));
        if !ids.is_empty() {
            before = ids;
        }
    }
    drafts
}

/// The steps of a group, if it is one.
pub(crate) fn group<'a>(tree: &'a Tree, notes: &mut Notes) -> Option<&'a [Tree]> {
    let Value::Object(members) = &tree.value else { return None };
    let member = members.iter().find(|member| member.name == "parallel")?;
    let Value::List(steps) = &member.tree.value else { return None };
    if let Some(other) = members.iter().find(|member| !GROUP.iter().any(|key| key.is_called(&member.name))) {
        let message = format!(
            "a group of steps has nothing beside \"parallel\"; put \"{}\" into its steps",
            other.name
        );
        notes.problems.add(other.place, Code::UnknownKey, message);
    }
    if steps.is_empty() {
        notes.problems.add(member.tree.place, Code::BadValue, "a group has at least one step");
    }
    for step in steps.iter().filter(|step| matches!(&step.value, Value::Object(members) if is_group(members)))
    {
        notes.problems.add(step.place, Code::BadValue, "a group cannot be inside a group");
    }
    Some(steps)
}

fn is_group(members: &[super::tree::Member]) -> bool {
    has(members, "parallel") && members.len() == 1
}
