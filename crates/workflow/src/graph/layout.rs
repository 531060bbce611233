//! Positions of boxes and lines in a drawing.
//!
//! Rows from top to bottom, each node below all it needs. A line that passes a row has a narrow place of its own there, so it goes
//! around boxes instead of through them. The order within a row follows the neighbours above and below, back and forth a few times,
//! and then each moves to the middle of its neighbours as far as the others leave it room.

use super::{GraphLink, rows};

/// The height of a box.
pub(super) const BOX_HEIGHT: f64 = 46.0;
const GAP_ACROSS: f64 = 26.0;
const GAP_DOWN: f64 = 54.0;
const MARGIN: f64 = 20.0;
/// The width that a passing line takes.
const PASSING_LINE_WIDTH: f64 = 8.0;
/// Number of passes that order the rows.
const ORDERING_PASSES: usize = 8;
/// Maximum number of rows that lines pass in total; beyond it they are drawn straight.
const MAX_PASSING_LINES: usize = 4_000;

/// Positions of all boxes and lines.
#[derive(Debug)]
pub(super) struct GraphLayout {
    pub(super) width: f64,
    pub(super) height: f64,
    /// Of each node, the middle of its box.
    pub(super) boxes: Vec<LayoutPoint>,
    /// Of each link, the way from below one box to above another.
    pub(super) lines: Vec<Vec<LayoutPoint>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LayoutPoint {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// The places in all rows: those of the nodes first, then those of lines that pass.
struct LayoutGrid {
    rows: Vec<Vec<usize>>,
    row_of: Vec<usize>,
    widths: Vec<f64>,
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
    xs: Vec<f64>,
    /// The places that each link passes, from the first to the last.
    ways: Vec<Vec<usize>>,
}

/// Lays out nodes of these widths.
pub(super) fn lay_out(widths: &[f64], links: &[GraphLink]) -> GraphLayout {
    let mut grid = LayoutGrid::new(widths, links);
    for turn in 0..ORDERING_PASSES {
        grid.order_rows(turn % 2 == 0);
    }
    grid.pack_rows();
    for turn in 0..ORDERING_PASSES {
        grid.spread_rows(turn % 2 == 0);
    }
    grid.layout(widths.len())
}

// === impl LayoutGrid ===

impl LayoutGrid {
    fn new(widths: &[f64], links: &[GraphLink]) -> Self {
        let row_of = rows::assign_rows(widths.len(), links);
        let depth = row_of.iter().max().map_or(0, |last| last + 1);
        let mut grid = Self {
            rows: vec![Vec::new(); depth],
            row_of,
            widths: widths.to_vec(),
            above: vec![Vec::new(); widths.len()],
            below: vec![Vec::new(); widths.len()],
            xs: Vec::new(),
            ways: Vec::new(),
        };
        for node in 0..widths.len() {
            grid.rows[grid.row_of[node]].push(node);
        }
        for link in links {
            grid.route_link(link, widths.len());
        }
        grid.xs = vec![0.0; grid.widths.len()];
        grid
    }

    /// Leads a link through the rows between its ends.
    fn route_link(&mut self, link: &GraphLink, nodes: usize) {
        let mut way = vec![link.from];
        let between = self.row_of[link.from] + 1..self.row_of[link.to];
        if self.widths.len() - nodes + between.len() <= MAX_PASSING_LINES {
            for row in between {
                let place = self.widths.len();
                self.widths.push(PASSING_LINE_WIDTH);
                self.row_of.push(row);
                self.above.push(Vec::new());
                self.below.push(Vec::new());
                self.rows[row].push(place);
                way.push(place);
            }
        }
        way.push(link.to);
        for pair in way.windows(2) {
            if let [upper, lower] = *pair {
                self.below[upper].push(lower);
                self.above[lower].push(upper);
            }
        }
        self.ways.push(way);
    }

    /// Orders each row by the position of its neighbours in the row before.
    fn order_rows(&mut self, is_down: bool) {
        let mut at = vec![0.0; self.widths.len()];
        for row in &self.rows {
            for (number, place) in row.iter().enumerate() {
                at[*place] = number as f64;
            }
        }
        for number in self.row_order(is_down) {
            let neighbours = if is_down { &self.above } else { &self.below };
            let mut wanted: Vec<(f64, usize)> = self.rows[number]
                .iter()
                .map(|place| (mean_position(&neighbours[*place], &at).unwrap_or(at[*place]), *place))
                .collect();
            wanted.sort_by(|left, right| left.0.total_cmp(&right.0));
            for (number, (_, place)) in wanted.iter().enumerate() {
                at[*place] = number as f64;
            }
            self.rows[number] = wanted.into_iter().map(|(_, place)| place).collect();
        }
    }

    /// Puts everything side by side.
    fn pack_rows(&mut self) {
        for row in &self.rows {
            let mut x = 0.0;
            for place in row {
                self.xs[*place] = x + self.widths[*place] / 2.0;
                x += self.widths[*place] + GAP_ACROSS;
            }
            for place in row {
                self.xs[*place] -= x / 2.0;
            }
        }
    }

    /// Moves each to the middle of its neighbours, as far as there is room.
    fn spread_rows(&mut self, is_down: bool) {
        for number in self.row_order(is_down) {
            let row = &self.rows[number];
            let neighbours = if is_down { &self.above } else { &self.below };
            let wanted: Vec<f64> = row
                .iter()
                .map(|place| mean_position(&neighbours[*place], &self.xs).unwrap_or(self.xs[*place]))
                .collect();
            let room =
                |left: usize, right: usize| (self.widths[left] + self.widths[right]) / 2.0 + GAP_ACROSS;
            let mut rightward = wanted.clone();
            for at in 1..row.len() {
                rightward[at] = rightward[at].max(rightward[at - 1] + room(row[at - 1], row[at]));
            }
            let mut leftward = wanted;
            for at in (1..row.len()).rev() {
                leftward[at - 1] = leftward[at - 1].min(leftward[at] - room(row[at - 1], row[at]));
            }
            // Both leave enough room, so halfway between them there is enough too.
            for (at, place) in row.iter().enumerate() {
                self.xs[*place] = f64::midpoint(rightward[at], leftward[at]);
            }
        }
    }

    fn row_order(&self, is_down: bool) -> Vec<usize> {
        let rows = 0..self.rows.len();
        if is_down { rows.collect() } else { rows.rev().collect() }
    }

    fn layout(self, nodes: usize) -> GraphLayout {
        let left = self.outer_edge(-1.0);
        let shift = if left.is_finite() { MARGIN - left } else { MARGIN };
        let right = self.outer_edge(1.0);
        let width = if right.is_finite() { right + shift + MARGIN } else { 2.0 * MARGIN };
        let y =
            |place: usize| MARGIN + BOX_HEIGHT / 2.0 + self.row_of[place] as f64 * (BOX_HEIGHT + GAP_DOWN);
        let point = |place: usize| LayoutPoint { x: self.xs[place] + shift, y: y(place) };
        let line = |way: &Vec<usize>| {
            let mut points: Vec<LayoutPoint> = way.iter().map(|place| point(*place)).collect();
            if let [first, .., last] = points.as_mut_slice() {
                first.y += BOX_HEIGHT / 2.0;
                last.y -= BOX_HEIGHT / 2.0;
            }
            points
        };
        let height = 2.0 * MARGIN + self.rows.len() as f64 * (BOX_HEIGHT + GAP_DOWN) - GAP_DOWN;
        GraphLayout {
            width,
            height: height.max(2.0 * MARGIN),
            boxes: (0..nodes).map(point).collect(),
            lines: self.ways.iter().map(line).collect(),
        }
    }

    /// Outermost position to the right, or with -1 to the left.
    fn outer_edge(&self, side: f64) -> f64 {
        let edges = self.xs.iter().zip(&self.widths).map(|(x, width)| x + side * width / 2.0);
        edges.fold(f64::INFINITY * -side, |far, edge| if side < 0.0 { far.min(edge) } else { far.max(edge) })
    }
}

fn mean_position(places: &[usize], at: &[f64]) -> Option<f64> {
    (!places.is_empty()).then(|| places.iter().map(|place| at[*place]).sum::<f64>() / places.len() as f64)
}
