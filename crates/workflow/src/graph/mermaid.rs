//! A workflow as a Mermaid flowchart, which GitHub and many other pages draw.

use std::fmt::Write;

use super::{NodeMarker, NodeMarkers, label, links};
use crate::definition::{NodeAction, Workflow};

pub(super) fn draw(workflow: &Workflow, marks: &NodeMarkers) -> String {
    let mut out = String::from("flowchart TD\n");
    for (number, node) in workflow.nodes.iter().enumerate() {
        let (open, close) = match node.action {
            NodeAction::Condition { .. } => ("{", "}"),
            NodeAction::Approval { .. } => ("([", "])"),
            NodeAction::Pipeline { .. } | NodeAction::Workflow { .. } => ("[[", "]]"),
            _ => ("[", "]"),
        };
        // A number for a name: ids like "end" mean something else there.
        let (id, what) = (escape(node.id.as_str()), escape(&label::action_label(&node.action)));
        let _ = writeln!(out, "  n{number}{open}\"{id}<br/>{what}\"{close}");
    }
    for link in links(workflow) {
        let arrow = link.branch.map_or_else(|| "-->".to_owned(), |branch| format!("-- {branch} -->"));
        let _ = writeln!(out, "  n{} {arrow} n{}", link.from, link.to);
    }
    for mark in NodeMarker::ALL {
        let marked = workflow.nodes.iter().enumerate().filter(|(_, node)| marks.get(&node.id) == Some(&mark));
        let names: Vec<String> = marked.map(|(number, _)| format!("n{number}")).collect();
        if !names.is_empty() {
            let ((fill, stroke), word) = (mark.colours(), mark.word());
            let _ = writeln!(out, "  classDef {word} fill:{fill},stroke:{stroke},color:#18181b");
            let _ = writeln!(out, "  class {} {word}", names.join(","));
        }
    }
    out
}

/// Text that is only text for Mermaid, and for the HTML it makes.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_alphanumeric() || " -_.,:/…".contains(c) {
            out.push(c);
        } else {
            let _ = write!(out, "#{};", u32::from(c));
        }
    }
    out
}
