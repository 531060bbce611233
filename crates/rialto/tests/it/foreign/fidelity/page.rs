//! The page: a table for each thing that crosses, with one line for all who fare alike.

use std::fmt::Write;

use super::{Half, Row, Verdict};

/// A half, as it stands on the page.
pub(super) fn written(half: &Half) -> String {
    let mut text = String::new();
    for row in &half.rows {
        write!(text, "### {}\n\n{}\n\n| |", row.title, row.how).unwrap();
        half.columns.iter().for_each(|column| write!(text, " {column} |").unwrap());
        text += "\n|---|";
        half.columns.iter().for_each(|_| text += "---|");
        text.push('\n');
        for (names, verdicts) in alike(half, row) {
            write!(text, "| {names} |").unwrap();
            verdicts.iter().for_each(|verdict| write!(text, " {verdict} |").unwrap());
            text.push('\n');
        }
        text.push('\n');
    }
    text
}

/// The lines of a row, those that fare alike together, in the order of the first of each.
fn alike<'a>(half: &Half, row: &'a Row) -> Vec<(String, &'a [Verdict])> {
    let mut groups: Vec<(Vec<&str>, &[Verdict])> = Vec::new();
    for (name, verdicts) in half.lines.iter().zip(&row.lines) {
        match groups.iter_mut().find(|(_, known)| *known == verdicts.as_slice()) {
            Some((names, _)) => names.push(name),
            None => groups.push((vec![name], verdicts)),
        }
    }
    let all = |names: Vec<&str>| {
        if names.len() == half.lines.len() { "all".to_owned() } else { names.join("; ") }
    };
    groups.into_iter().map(|(names, verdicts)| (all(names), verdicts)).collect()
}

/// A page with one half replaced.
pub(super) fn with_half(page: &str, name: &str, half: &str) -> String {
    let (before, _, after) = cut(page, name);
    format!("{before}{half}{after}")
}

/// What a page says of one half.
pub(super) fn half_of<'a>(page: &'a str, name: &str) -> &'a str {
    cut(page, name).1
}

fn cut<'a>(page: &'a str, name: &str) -> (&'a str, &'a str, &'a str) {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->\n"));
    let from = page.find(&begin).unwrap_or_else(|| panic!("no {begin}")) + begin.len();
    let to = page.find(&end).unwrap_or_else(|| panic!("no {end}"));
    (&page[..from], &page[from..to], &page[to..])
}
