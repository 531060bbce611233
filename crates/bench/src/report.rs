//! Reports for people and for programs.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

/// Something that can be held against its targets.
pub(crate) trait BenchReport {
    /// The targets.
    fn checks(&self) -> &[TargetCheck];

    /// True if the result is invalid because of wrong responses.
    fn is_broken(&self) -> bool {
        false
    }

    /// True if a target was missed.
    fn is_missed(&self) -> bool {
        self.checks().iter().any(|check| !check.ok)
    }
}

/// One target and its measured value.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TargetCheck {
    what: String,
    measured: f64,
    target: f64,
    unit: &'static str,
    ok: bool,
    #[serde(skip)]
    relation: &'static str,
}

/// Rows of text in columns.
pub(crate) struct TextTable {
    rows: Vec<Vec<String>>,
}

// === impl TargetCheck ===

impl TargetCheck {
    /// The value should be at most `target`.
    pub(crate) fn at_most(what: impl Into<String>, measured: f64, target: f64, unit: &'static str) -> Self {
        Self { what: what.into(), measured, target, unit, ok: measured <= target, relation: "at most" }
    }

    /// The value should be at least `target`.
    pub(crate) fn at_least(what: impl Into<String>, measured: f64, target: f64, unit: &'static str) -> Self {
        Self { what: what.into(), measured, target, unit, ok: measured >= target, relation: "at least" }
    }
}

impl TargetCheck {
    /// True if this is the name of the check.
    pub(crate) fn is_named(&self, what: &str) -> bool {
        self.what.starts_with(what)
    }
}

impl Display for TargetCheck {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { what, measured, target, unit, ok, relation } = self;
        let word = if *ok { "pass" } else { "FAIL" };
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        write!(f, "{word}  {what}: {measured:.2}{unit} (target: {relation} {target}{unit})")
    }
}

// === impl TextTable ===

impl TextTable {
    /// A table with those headings.
    pub(crate) fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|&heading| heading.to_owned()).collect()] }
    }

    /// Adds a row.
    pub(crate) fn add_row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }
}

impl Display for TextTable {
    /// The first column is words, the others are numbers.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..columns).map(width).collect();
        for row in &self.rows {
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                match column {
                    0 => write!(f, "{cell:<width$}")?,
                    _ => write!(f, "  {cell:>width$}")?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// Prints the targets, one on each line.
pub(crate) fn print_checks(f: &mut Formatter<'_>, checks: &[TargetCheck]) -> fmt::Result {
    checks.iter().try_for_each(|check| writeln!(f, "{check}"))
}

/// The value below which `share` of all values lie; zero when there are none.
pub(crate) fn percentile<T: Copy + Default + Ord>(values: &mut [T], share: f64) -> T {
    values.sort_unstable();
    let last = values.len().saturating_sub(1);
    let at = (last as f64 * share).round() as usize;
    values.get(at).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_five_is_the_third() {
        assert_eq!(percentile(&mut [5, 1, 4, 2, 3], 0.5), 3);
        assert_eq!(percentile::<u32>(&mut [], 0.99), 0);
    }

    #[test]
    fn numbers_stand_under_each_other() {
        let mut table = TextTable::new(&["what", "n"]);
        table.add_row(["longer name".to_owned(), "1234".to_owned()]);
        assert_eq!(table.to_string(), "what            n\nlonger name  1234\n");
    }
}
