//! Pictures of a workflow: as text for a terminal, as Mermaid for a page of documentation, and as SVG.
//!
//! Each can show how the nodes of a run stand. What nodes are called and say is written by strangers, so everything is escaped, and
//! an SVG carries neither scripts nor styles nor addresses.

mod label;
mod layers;
mod layout;
mod mermaid;
mod svg;
mod text;

use std::collections::BTreeMap;

use crate::definition::{NodeId, Workflow};

/// What a picture is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Lines for a terminal.
    Text,
    /// A Mermaid flowchart.
    Mermaid,
    /// A drawing.
    Svg,
}

/// How a node of a run stands, as far as a picture tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// It has not begun.
    Waiting,
    /// It is at work.
    Running,
    /// It waits for somebody.
    Held,
    /// It is done.
    Completed,
    /// It has failed.
    Failed,
    /// It was left out.
    Skipped,
    /// It was stopped.
    Canceled,
}

/// How the nodes of a run stand. One without a mark is drawn plainly.
pub type Marks = BTreeMap<NodeId, Mark>;

/// A line between two nodes, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Link {
    from: usize,
    to: usize,
    /// Which branch it is, where a condition chooses.
    branch: Option<&'static str>,
}

/// Draws a workflow.
pub fn draw(workflow: &Workflow, format: Format, marks: &Marks) -> String {
    match format {
        Format::Text => text::draw(workflow, marks),
        Format::Mermaid => mermaid::draw(workflow, marks),
        Format::Svg => svg::draw(workflow, marks),
    }
}

// === impl Mark ===

impl Mark {
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

/// All lines of a workflow.
fn links(workflow: &Workflow) -> Vec<Link> {
    let numbers: BTreeMap<&NodeId, usize> = workflow.nodes.iter().map(|node| &node.id).zip(0..).collect();
    let mut links = Vec::new();
    for (to, node) in workflow.nodes.iter().enumerate() {
        for from in node.needs.iter().filter_map(|id| numbers.get(id).copied()) {
            let branch = workflow.nodes.get(from).and_then(|from| label::branch(&from.does, &node.id));
            links.push(Link { from, to, branch });
        }
    }
    links
}

#[cfg(test)]
mod tests;
