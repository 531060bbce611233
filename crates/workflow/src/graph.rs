//! Drawings of a workflow: as text for a terminal, as Mermaid for documentation, and as SVG.
//!
//! Each can show the state of a run's nodes. Ids and texts come from untrusted files, so everything is escaped, and an SVG
//! contains no scripts, styles or links.

mod label;
mod layout;
mod mermaid;
mod rows;
mod svg;
mod text;

use std::collections::BTreeMap;

use crate::definition::{NodeId, Workflow};

/// Format of a drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrawingFormat {
    /// Lines for a terminal.
    Text,
    /// A Mermaid flowchart.
    Mermaid,
    /// A drawing.
    Svg,
}

/// State of a run's node in a drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeMarker {
    /// Not started.
    Waiting,
    /// Running.
    Running,
    /// Waiting for an answer or an approval.
    Held,
    /// Completed.
    Completed,
    /// Failed.
    Failed,
    /// Skipped.
    Skipped,
    /// Cancelled.
    Canceled,
}

/// States of a run's nodes. A node without a state is drawn plainly.
pub type NodeMarkers = BTreeMap<NodeId, NodeMarker>;

/// A line between two nodes, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GraphLink {
    from: usize,
    to: usize,
    /// Branch of a condition, if it is one.
    branch: Option<&'static str>,
}

/// Draws a workflow.
pub fn draw(workflow: &Workflow, format: DrawingFormat, marks: &NodeMarkers) -> String {
    match format {
        DrawingFormat::Text => text::draw(workflow, marks),
        DrawingFormat::Mermaid => mermaid::draw(workflow, marks),
        DrawingFormat::Svg => svg::draw(workflow, marks),
    }
}

// === impl NodeMarker ===

impl NodeMarker {
    /// Every one there is.
    const ALL: [Self; 7] = [
        Self::Waiting,
        Self::Running,
        Self::Held,
        Self::Completed,
        Self::Failed,
        Self::Skipped,
        Self::Canceled,
    ];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Held => "held",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Canceled => "canceled",
        }
    }

    /// Its colours, inside and around; both are seen on dark and on light.
    const fn colours(self) -> (&'static str, &'static str) {
        match self {
            Self::Waiting => ("#f4f4f5", "#a1a1aa"),
            Self::Running => ("#dbeafe", "#2563eb"),
            Self::Held => ("#fef3c7", "#d97706"),
            Self::Completed => ("#dcfce7", "#16a34a"),
            Self::Failed => ("#fee2e2", "#dc2626"),
            Self::Skipped => ("#fafafa", "#d4d4d8"),
            Self::Canceled => ("#e4e4e7", "#52525b"),
        }
    }
}

/// Lines of a workflow. A line that is implied by others is left out.
fn links(workflow: &Workflow) -> Vec<GraphLink> {
    let numbers: BTreeMap<&NodeId, usize> = workflow.nodes.iter().map(|node| &node.id).zip(0..).collect();
    let mut links = Vec::new();
    for (to, node) in workflow.nodes.iter().enumerate() {
        for from in node.needs.iter().filter_map(|id| numbers.get(id).copied()) {
            let branch = workflow.nodes.get(from).and_then(|from| label::branch_name(&from.action, &node.id));
            links.push(GraphLink { from, to, branch });
        }
    }
    rows::without_shortcuts(workflow.nodes.len(), links)
}

#[cfg(test)]
mod tests;
