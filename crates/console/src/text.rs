//! What others wrote, made harmless to look at.
//!
//! Escaping keeps a name from being markup; it does not keep it from turning the text around it, hiding letters in nothing, or being
//! ten thousand characters long. So what cannot be seen is made visible, and what is long is cut.

use std::{borrow::Cow, fmt::Write};

use jiff::Timestamp;
use maud::{Markup, html};

/// What stands in the title of a text that was cut is cut too.
const TITLE: usize = 300;

/// One line of somebody else's text, at most so many characters of it. What was cut can be read by pointing at it.
pub(crate) fn line(text: &str, most: usize) -> Markup {
    let (shown, is_cut) = cut(text, most);
    let shown = visible(&shown, false);
    html! {
        @if is_cut {
            bdi title=(visible(&cut(text, TITLE).0, false)) { (shown) }
        } @else {
            bdi { (shown) }
        }
    }
}

/// Several lines of it.
pub(crate) fn block(text: &str, most: usize) -> Markup {
    let (shown, is_cut) = cut(text, most);
    html! {
        bdi.block { (visible(&shown, true)) }
        @if is_cut { span.muted { " (cut after " (most) " characters)" } }
    }
}

/// What we say ourselves, several lines of it: what stands between backticks is to be typed.
pub(crate) fn told(text: &str, most: usize) -> Markup {
    html! { bdi.block { (with_code(&visible(&cut(text, most).0, true))) } }
}

/// The same in one line, within another text. What was cut can be read by pointing at it.
pub(crate) fn phrase(text: &str, most: usize) -> Markup {
    let (shown, is_cut) = cut(text, most);
    let title = is_cut.then(|| visible(&cut(text, TITLE).0, false).into_owned());
    html! { bdi title=[title] { (with_code(&visible(&shown, false))) } }
}

fn with_code(shown: &str) -> Markup {
    let pieces: Vec<&str> = shown.split('`').collect();
    // One that is not closed is no more than a letter.
    let is_whole = pieces.len() % 2 == 1;
    html! {
        @if is_whole {
            @for (at, piece) in pieces.iter().enumerate() { @if at % 2 == 1 { code { (piece) } } @else { (piece) } }
        } @else { (shown) }
    }
}

/// The same text with what cannot be seen spelt out.
pub(crate) fn visible(text: &str, keeps_lines: bool) -> Cow<'_, str> {
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

/// The beginning of a text, and whether there is more.
pub(crate) fn cut(text: &str, most: usize) -> (Cow<'_, str>, bool) {
    match text.char_indices().nth(most) {
        None => (Cow::Borrowed(text), false),
        Some((at, _)) => (Cow::Owned(format!("{}…", text.get(..at).unwrap_or_default())), true),
    }
}

/// How long ago, in one short word.
pub(crate) fn ago(at: Timestamp, now: Timestamp) -> String {
    match now.as_second() - at.as_second() {
        ..5 => "now".to_owned(),
        seconds @ 5..60 => format!("{seconds} s ago"),
        seconds @ 60..3_600 => format!("{} min ago", seconds / 60),
        seconds @ 3_600..172_800 => format!("{} h ago", seconds / 3_600),
        seconds => format!("{} days ago", seconds / 86_400),
    }
}

/// How far ahead, in one short word.
fn ahead(at: Timestamp, now: Timestamp) -> String {
    match at.as_second() - now.as_second() {
        ..1 => "now".to_owned(),
        seconds @ 1..60 => format!("in {seconds} s"),
        seconds @ 60..3_600 => format!("in {} min", seconds / 60),
        seconds @ 3_600..172_800 => format!("in {} h", seconds / 3_600),
        seconds => format!("in {} days", seconds / 86_400),
    }
}

/// A moment, said as how long ago it was.
pub(crate) fn moment(at: Timestamp, now: Timestamp) -> Markup {
    html! { time data-ago datetime=(at.strftime("%FT%TZ")) title=(at.strftime("%F %T UTC")) { (ago(at, now)) } }
}

/// A moment that is still to come, said as how far ahead it is.
pub(crate) fn ahead_of(at: Timestamp, now: Timestamp) -> Markup {
    html! { time data-ahead datetime=(at.strftime("%FT%TZ")) title=(at.strftime("%F %T UTC")) { (ahead(at, now)) } }
}

/// How long something took, in one short word.
pub(crate) fn took(from: Timestamp, to: Timestamp) -> String {
    match to.as_millisecond() - from.as_millisecond() {
        ms @ ..1_000 => format!("{} ms", ms.max(0)),
        ms @ 1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        ms @ 60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
        ms => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// A count with its noun.
pub(crate) fn count(n: usize, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}

/// What turns text around, joins letters, or takes no room.
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
    fn what_cannot_be_seen_is_spelt_out() {
        assert_eq!(visible("a\u{202E}b\u{200B}", false), "a[U+202E]b[U+200B]");
        assert_eq!(visible("a\nb\u{7}", false), "a b[U+0007]");
        assert_eq!(visible("a\nb\tc", true), "a\nb\tc");
        assert!(matches!(visible("Größe 数 مرحبا", false), Cow::Borrowed(_)));
    }

    #[test]
    fn a_long_name_is_cut_and_its_title_too() {
        let html = line(&"<i>".repeat(5_000), 10).into_string();
        assert!(html.len() < 2_000 && !html.contains("<i>"), "{html}");
        assert!(html.starts_with("<bdi title="));
    }

    #[test]
    fn what_is_to_be_typed_stands_out_and_stays_text() {
        let html = told("run `rialto <b> check` and\nlook", 100).into_string();
        assert_eq!(html, "<bdi class=\"block\">run <code>rialto &lt;b&gt; check</code> and\nlook</bdi>");
        assert!(!told("a ` alone", 100).into_string().contains("<code>"));
        assert_eq!(phrase("run `it`\nnow", 100).into_string(), "<bdi>run <code>it</code> now</bdi>");
    }

    #[test]
    fn a_moment_is_said_in_one_unit() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let told: Vec<_> = [0, 59, 60, 7_200, 200_000].map(|s| ago(at(0), at(s))).into();
        assert_eq!(told, ["now", "59 s ago", "1 min ago", "2 h ago", "2 days ago"]);
        let told: Vec<_> = [0, 59, 60, 7_200, 200_000].map(|s| ahead(at(s), at(0))).into();
        let took: Vec<_> = [0, 59, 60, 7_260].map(|s| took(at(0), at(s))).into();
        assert_eq!(took, ["0 ms", "59.0 s", "1 min 0 s", "2 h 1 min"]);
        assert_eq!(told, ["now", "in 59 s", "in 1 min", "in 2 h", "in 2 days"]);
    }
}
