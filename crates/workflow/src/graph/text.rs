//! A workflow as lines: each node behind the number of its row, with what it does and what it needs.

use std::fmt::Write;

use super::{NodeMarkers, label, links, rows};
use crate::definition::{Workflow, WorkflowKind};

pub(super) fn draw(workflow: &Workflow, marks: &NodeMarkers) -> String {
    let kind = match workflow.kind {
        WorkflowKind::Workflow => "workflow",
        WorkflowKind::Pipeline => "pipeline",
    };
    let mut out = format!("{} ({kind}, {})\n\n", workflow.name, workflow.status.word());
    let rows = rows::assign_rows(workflow.nodes.len(), &links(workflow));
    let mut order: Vec<usize> = (0..workflow.nodes.len()).collect();
    order.sort_by_key(|number| rows[*number]);
    let lines: Vec<[String; 4]> = order
        .into_iter()
        .map(|number| {
            let node = &workflow.nodes[number];
            let mark = marks.get(&node.id).map_or("", |mark| mark.word());
            let name = [node.id.as_str(), mark].join(" ").trim_end().to_owned();
            let needs: Vec<String> =
                node.needs.iter().map(|id| describe_dependency(workflow, id.as_str(), &node.id)).collect();
            let needs = if needs.is_empty() { String::new() } else { format!("← {}", needs.join(", ")) };
            [(rows[number] + 1).to_string(), name, label::action_label(&node.action), needs]
        })
        .collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let (first, second, third) = (width(0), width(1), width(2));
    for [row, name, what, needs] in &lines {
        let line = format!("{row:>first$}  {name:second$}  {what:third$}  {needs}");
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

/// A node that is needed, and as which branch.
fn describe_dependency(workflow: &Workflow, id: &str, by: &crate::definition::NodeId) -> String {
    match workflow.node(id).and_then(|node| label::branch_name(&node.action, by)) {
        Some(branch) => format!("{id} ({branch})"),
        None => id.to_owned(),
    }
}
