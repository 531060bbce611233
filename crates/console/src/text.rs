//! Safe rendering of untrusted text, and short forms of times and counts.
//!
//! HTML escaping does not stop a name from reversing the text around it, containing invisible characters, or being ten thousand characters
//! long. So invisible characters are escaped, and long texts are truncated.

use std::{borrow::Cow, fmt::Write};

use jiff::Timestamp;
use maud::{Markup, html};

/// Maximum length of the title of a truncated text.
const TITLE: usize = 300;

/// Untrusted text in one line, truncated. The title of a truncated text has more of it.
pub(crate) fn render_line(text: &str, most: usize) -> Markup {
    let (shown, is_cut) = truncate(text, most);
    let shown = escape_invisible(&shown, false);
    html! {
        @if is_cut {
            bdi title=(escape_invisible(&truncate(text, TITLE).0, false)) { (shown) }
        } @else {
            bdi { (shown) }
        }
    }
}

/// Untrusted text in several lines, truncated.
pub(crate) fn render_block(text: &str, most: usize) -> Markup {
    let (shown, is_cut) = truncate(text, most);
    html! {
        bdi.block { (escape_invisible(&shown, true)) }
        @if is_cut { span.muted { " (cut after " (most) " characters)" } }
    }
}

/// Message of Rialto in several lines, with code between backticks.
pub(crate) fn render_message(text: &str, most: usize) -> Markup {
    html! { bdi.block { (render_code_spans(&escape_invisible(&truncate(text, most).0, true))) } }
}

/// Message of Rialto in one line, with code between backticks. The title of a truncated text has more of it.
pub(crate) fn render_message_line(text: &str, most: usize) -> Markup {
    let (shown, is_cut) = truncate(text, most);
    let title = is_cut.then(|| escape_invisible(&truncate(text, TITLE).0, false).into_owned());
    html! { bdi title=[title] { (render_code_spans(&escape_invisible(&shown, false))) } }
}

fn render_code_spans(shown: &str) -> Markup {
    let pieces: Vec<&str> = shown.split('`').collect();
    // An unclosed backtick is shown as it is.
    let is_whole = pieces.len() % 2 == 1;
    html! {
        @if is_whole {
            @for (at, piece) in pieces.iter().enumerate() { @if at % 2 == 1 { code { (piece) } } @else { (piece) } }
        } @else { (shown) }
    }
}

/// Text with control and invisible characters escaped.
pub(crate) fn escape_invisible(text: &str, keeps_lines: bool) -> Cow<'_, str> {
    let is_plain = |c: char| !is_hidden(c) && (!c.is_control() || keeps_lines && matches!(c, '\n' | '\t'));
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            _ if is_plain(c) => shown.push(c),
            '\n' | '\r' | '\t' => shown.push(' '),
            // Writing to a text cannot fail.
            _ => drop(write!(shown, "[U+{:04X}]", u32::from(c))),
        }
    }
    Cow::Owned(shown)
}

/// Beginning of a text, and whether it was truncated.
pub(crate) fn truncate(text: &str, most: usize) -> (Cow<'_, str>, bool) {
    match text.char_indices().nth(most) {
        None => (Cow::Borrowed(text), false),
        Some((at, _)) => (Cow::Owned(format!("{}…", text.get(..at).unwrap_or_default())), true),
    }
}

/// Time since a moment, in one unit.
pub(crate) fn format_ago(at: Timestamp, now: Timestamp) -> String {
    match now.as_second() - at.as_second() {
        ..5 => "now".to_owned(),
        seconds @ 5..60 => format!("{seconds} s ago"),
        seconds @ 60..3_600 => format!("{} min ago", seconds / 60),
        seconds @ 3_600..172_800 => format!("{} h ago", seconds / 3_600),
        seconds => format!("{} days ago", seconds / 86_400),
    }
}

/// Time until a moment, in one unit.
fn format_until(at: Timestamp, now: Timestamp) -> String {
    match at.as_second() - now.as_second() {
        ..1 => "now".to_owned(),
        seconds @ 1..60 => format!("in {seconds} s"),
        seconds @ 60..3_600 => format!("in {} min", seconds / 60),
        seconds @ 3_600..172_800 => format!("in {} h", seconds / 3_600),
        seconds => format!("in {} days", seconds / 86_400),
    }
}

/// Time element that shows how long ago a moment was.
pub(crate) fn time_ago(at: Timestamp, now: Timestamp) -> Markup {
    html! { time data-ago datetime=(at.strftime("%FT%TZ")) title=(at.strftime("%F %T UTC")) { (format_ago(at, now)) } }
}

/// Time element that shows how far ahead a moment is.
pub(crate) fn time_until(at: Timestamp, now: Timestamp) -> Markup {
    html! { time data-ahead datetime=(at.strftime("%FT%TZ")) title=(at.strftime("%F %T UTC")) { (format_until(at, now)) } }
}

/// Duration between two moments, in at most two units.
pub(crate) fn format_duration(from: Timestamp, to: Timestamp) -> String {
    match to.as_millisecond() - from.as_millisecond() {
        ms @ ..1_000 => format!("{} ms", ms.max(0)),
        ms @ 1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        ms @ 60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
        ms => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// Number with its noun in singular or plural.
pub(crate) fn count_noun(n: usize, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}

/// Whether a character changes the direction of text, joins letters or is invisible.
const fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
        | '\u{3164}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{E0000}'..='\u{E0FFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_escaped() {
        assert_eq!(escape_invisible("a\u{202E}b\u{200B}", false), "a[U+202E]b[U+200B]");
        assert_eq!(escape_invisible("a\nb\u{7}", false), "a b[U+0007]");
        assert_eq!(escape_invisible("a\nb\tc", true), "a\nb\tc");
        assert!(matches!(escape_invisible("Größe 数 مرحبا", false), Cow::Borrowed(_)));
    }

    #[test]
    fn a_long_name_and_its_title_are_truncated() {
        let html = render_line(&"<i>".repeat(5_000), 10).into_string();
        assert!(html.len() < 2_000 && !html.contains("<i>"), "{html}");
        assert!(html.starts_with("<bdi title="));
    }

    #[test]
    fn text_between_backticks_is_code_and_escaped() {
        let html = render_message("run `rialto <b> check` and\nlook", 100).into_string();
        assert_eq!(html, "<bdi class=\"block\">run <code>rialto &lt;b&gt; check</code> and\nlook</bdi>");
        assert!(!render_message("a ` alone", 100).into_string().contains("<code>"));
        assert_eq!(
            render_message_line("run `it`\nnow", 100).into_string(),
            "<bdi>run <code>it</code> now</bdi>"
        );
    }

    #[test]
    fn a_time_is_shown_in_one_unit() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let told: Vec<_> = [0, 59, 60, 7_200, 200_000].map(|s| format_ago(at(0), at(s))).into();
        assert_eq!(told, ["now", "59 s ago", "1 min ago", "2 h ago", "2 days ago"]);
        let told: Vec<_> = [0, 59, 60, 7_200, 200_000].map(|s| format_until(at(s), at(0))).into();
        let took: Vec<_> = [0, 59, 60, 7_260].map(|s| format_duration(at(0), at(s))).into();
        assert_eq!(took, ["0 ms", "59.0 s", "1 min 0 s", "2 h 1 min"]);
        assert_eq!(told, ["now", "in 59 s", "in 1 min", "in 2 h", "in 2 days"]);
    }
}
