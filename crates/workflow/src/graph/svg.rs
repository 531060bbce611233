//! A workflow as a drawing that is safe to put into any page: shapes and text, nothing else.

use std::fmt::Write;

use super::{
    NodeMarker, NodeMarkers, label,
    layout::{self, BOX_HEIGHT, LayoutPoint},
    links,
};
use crate::definition::{NodeAction, Workflow, WorkflowNode};

/// Approximate width of a character: of the first line, which is larger and bold, and of the second.
const BOLD: f64 = 8.1;
const CHARACTER: f64 = 6.6;
const NARROWEST: f64 = 110.0;
const BACK: &str = "#ffffff";
const LINE: &str = "#71717a";
const TEXT: &str = "#18181b";
const FAINT: &str = "#52525b";
const PLAIN: (&str, &str) = ("#ffffff", "#71717a");

pub(super) fn draw(workflow: &Workflow, marks: &NodeMarkers) -> String {
    let labels: Vec<(String, String)> =
        workflow.nodes.iter().map(|node| (title(node, marks), label::action_label(&node.action))).collect();
    let widths: Vec<f64> =
        labels.iter().map(|(id, what)| text_width(id, BOLD).max(text_width(what, CHARACTER))).collect();
    let links = links(workflow);
    let layout = layout::lay_out(&widths, &links);
    let (across, down) = (layout.width.ceil(), layout.height.ceil());
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {across} {down}\" width=\"{across}\" height=\"{down}\" role=\"img\" \
         font-family=\"ui-sans-serif, system-ui, sans-serif\"><title>{}</title>\n\
         <rect width=\"{across}\" height=\"{down}\" fill=\"{BACK}\"/>\n",
        escape(&workflow.name)
    );
    for (link, line) in links.iter().zip(&layout.lines) {
        push_line(&mut out, line, link.branch);
    }
    for (at, node) in workflow.nodes.iter().enumerate() {
        if let (Some(middle), Some((id, what)), Some(width)) =
            (layout.boxes.get(at), labels.get(at), widths.get(at))
        {
            let (fill, stroke) = marks.get(&node.id).map_or(PLAIN, |mark| mark.colours());
            let (name, told) = (escape(node.id.as_str()), escape(&tooltip(node)));
            // A page that has colours of its own goes by the word.
            let mark = marks.get(&node.id).map_or("plain", |mark| mark.word());
            let _ = write!(
                out,
                "<g data-node=\"{name}\" data-mark=\"{mark}\" fill=\"{fill}\" stroke=\"{stroke}\"><title>{told}</title>"
            );
            push_box(&mut out, &node.action, *middle, *width);
            out += "</g>";
            push_text(&mut out, LayoutPoint { y: middle.y - 5.0, ..*middle }, id, ("13", TEXT, "600"));
            push_text(&mut out, LayoutPoint { y: middle.y + 13.0, ..*middle }, what, ("11", FAINT, "400"));
            out.push('\n');
        }
    }
    out += "</svg>\n";
    out
}

fn title(node: &WorkflowNode, marks: &NodeMarkers) -> String {
    let id = label::shorten(node.id.as_str(), label::MAX_LABEL_CHARS);
    match marks.get(&node.id) {
        Some(NodeMarker::Waiting) | None => id,
        Some(mark) => format!("{id} · {}", mark.word()),
    }
}

/// Tooltip of a node.
fn tooltip(node: &WorkflowNode) -> String {
    let mut told = format!("{}: {}", node.id, label::action_tooltip(&node.action));
    if let Some(when) = &node.when {
        let _ = write!(told, ", when {}", when.text());
    }
    told
}

fn text_width(text: &str, character: f64) -> f64 {
    (text.chars().count() as f64 * character + 28.0).max(NARROWEST)
}

/// A choice has slanted ends, a person's decision round ones.
fn push_box(out: &mut String, action: &NodeAction, middle: LayoutPoint, width: f64) {
    let (left, right) = (middle.x - width / 2.0, middle.x + width / 2.0);
    let (top, bottom, y) = (middle.y - BOX_HEIGHT / 2.0, middle.y + BOX_HEIGHT / 2.0, middle.y);
    if let NodeAction::Condition { .. } = action {
        let (inner, outer) = (left + 10.0, right - 10.0);
        let _ = write!(
            out,
            "<path stroke-width=\"1.5\" d=\"M{left:.1} {y:.1}L{inner:.1} {top:.1}H{outer:.1}L{right:.1} {y:.1}L{outer:.1} \
             {bottom:.1}H{inner:.1}Z\"/>"
        );
        return;
    }
    let round = if matches!(action, NodeAction::Approval { .. }) { BOX_HEIGHT / 2.0 } else { 6.0 };
    let _ = write!(
        out,
        "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{BOX_HEIGHT}\" rx=\"{round}\" stroke-width=\"1.5\"/>"
    );
}

fn push_line(out: &mut String, points: &[LayoutPoint], branch: Option<&str>) {
    let [first, rest @ ..] = points else { return };
    let mut way = format!("M{:.1} {:.1}", first.x, first.y);
    let mut from = *first;
    for to in rest {
        let bend = f64::midpoint(from.y, to.y);
        let _ = write!(way, "C{:.1} {bend:.1} {:.1} {bend:.1} {:.1} {:.1}", from.x, to.x, to.x, to.y);
        from = *to;
    }
    let _ = write!(out, "<path fill=\"none\" stroke=\"{LINE}\" stroke-width=\"1.3\" d=\"{way}\"/>");
    let LayoutPoint { x, y } = from;
    let (left, right, back) = (x - 3.5, x + 3.5, y - 7.0);
    let _ = writeln!(out, "<path fill=\"{LINE}\" d=\"M{x:.1} {y:.1}L{left:.1} {back:.1}H{right:.1}Z\"/>");
    if let Some(branch) = branch {
        // On the side that the line does not come from.
        let aside = if first.x > x { -18.0 } else { 18.0 };
        push_text(out, LayoutPoint { x: x + aside, y: y - 10.0 }, branch, ("11", FAINT, "400"));
        out.push('\n');
    }
}

fn push_text(out: &mut String, at: LayoutPoint, text: &str, (size, colour, weight): (&str, &str, &str)) {
    let _ = write!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"{size}\" font-weight=\"{weight}\" fill=\"{colour}\">{}</text>",
        at.x,
        at.y,
        escape(text)
    );
}

/// Text that is only text in XML; what XML cannot hold at all is left out.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}
