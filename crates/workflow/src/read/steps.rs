//! Steps: nodes that run in the order of the file.
//!
//! A step depends on the one before it, or on all steps of the group before it; explicit dependencies replace these.

use super::{
    diagnostics::Diagnostics,
    metadata::has_key,
    node::{NodeDraft, limit_nodes, read_node},
    tree::{SourceTree, SourceValue},
};
use crate::{definition::NodeId, problem::ProblemCode, schema_keys::GROUP};

pub(super) fn read_steps(tree: &SourceTree, diagnostics: &mut Diagnostics) -> Vec<NodeDraft> {
    let SourceValue::List(items) = &tree.value else {
        return diagnostics.report_type(tree, "steps", "a list").unwrap_or_default();
    };
    let mut drafts: Vec<NodeDraft> = Vec::new();
    let mut before: Vec<NodeId> = Vec::new();
    for item in limit_nodes(tree, items, diagnostics) {
        let group: Vec<NodeDraft> = match parallel_group(item, diagnostics) {
            Some(steps) => steps.iter().filter_map(|step| read_node(step, None, diagnostics)).collect(),
            None => read_node(item, None, diagnostics).into_iter().collect(),
        };
        let ids: Vec<NodeId> = group.iter().map(|draft| draft.id.clone()).collect();
        drafts.extend(group.into_iter().map(|draft| {
            let after = if draft.depends_on.is_some() { Vec::new() } else { before.clone() };
            NodeDraft { after, ..draft }
        }));
        if !ids.is_empty() {
            before = ids;
        }
    }
    drafts
}

/// The steps of a group, if it is one.
pub(crate) fn parallel_group<'a>(
    tree: &'a SourceTree,
    diagnostics: &mut Diagnostics,
) -> Option<&'a [SourceTree]> {
    let SourceValue::Object(members) = &tree.value else { return None };
    let member = members.iter().find(|member| member.name == "parallel")?;
    let SourceValue::List(steps) = &member.tree.value else { return None };
    if let Some(other) = members.iter().find(|member| !GROUP.iter().any(|key| key.has_spelling(&member.name)))
    {
        let message = format!(
            "a group of steps has nothing beside \"parallel\"; put \"{}\" into its steps",
            other.name
        );
        diagnostics.problems.add(other.place, ProblemCode::UnknownKey, message);
    }
    if steps.is_empty() {
        diagnostics.problems.add(member.tree.place, ProblemCode::BadValue, "a group has at least one step");
    }
    for step in
        steps.iter().filter(|step| matches!(&step.value, SourceValue::Object(members) if is_group(members)))
    {
        diagnostics.problems.add(step.place, ProblemCode::BadValue, "a group cannot be inside a group");
    }
    Some(steps)
}

fn is_group(members: &[super::tree::ObjectMember]) -> bool {
    has_key(members, "parallel") && members.len() == 1
}
