//! Strings and long numbers of a JSON text, with their ranges.
//!
//! A check reads a string without its escapes; a finding is reported, and replaced, at its range in the JSON. Everything else keeps its
//! exact text.

use std::{borrow::Cow, ops::Range};

use memchr::memchr2;

/// Least length of a number that is checked.
const MIN_NUMBER_LENGTH: usize = 9;

/// One string, key or number.
pub(crate) struct JsonString<'a> {
    /// Start, after the quote.
    pub(crate) start: usize,
    /// Text as it is written.
    pub(crate) raw: &'a str,
    /// Text without escapes.
    pub(crate) text: Cow<'a, str>,
    /// Member that it is the value of.
    pub(crate) key: Option<&'a str>,
    /// True for a number.
    is_number: bool,
}

/// Visits the strings and numbers of a valid JSON text.
pub(crate) fn visit_strings<'a>(json: &'a str, mut each: impl FnMut(JsonString<'a>)) {
    let bytes = json.as_bytes();
    let (mut at, mut key) = (0, None);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let start = at + 1;
                let end = end_of_string(bytes, start);
                let raw = json.get(start..end).unwrap_or_default();
                at = end + 1;
                let is_key =
                    bytes[at.min(bytes.len())..].iter().find(|b| !b.is_ascii_whitespace()) == Some(&b':');
                if is_key {
                    key = Some(raw);
                }
                let text = unescape(json, raw, start..end);
                each(JsonString { start, raw, text, key: key.filter(|_| !is_key), is_number: false });
            }
            b'0'..=b'9' | b'-' => {
                let is_part = |b: &u8| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E');
                let length = bytes[at..].iter().take_while(|b| is_part(b)).count();
                let raw = json.get(at..at + length).unwrap_or_default();
                if length >= MIN_NUMBER_LENGTH {
                    each(JsonString { start: at, raw, text: Cow::Borrowed(raw), key, is_number: true });
                }
                at += length;
            }
            _ => at += 1,
        }
    }
}

/// Replaces ranges, which are in order and do not overlap.
pub(crate) fn replace(json: &str, places: &[(Range<usize>, String)]) -> String {
    let mut out = String::with_capacity(json.len());
    let mut copied = 0;
    visit_strings(json, |string| {
        let span = string.start..string.start + string.raw.len();
        for (place, word) in places.iter().filter(|(place, _)| span.contains(&place.start)) {
            if string.is_number {
                // A number cannot be half a number.
                if copied <= span.start {
                    out.push_str(json.get(copied..span.start).unwrap_or_default());
                    out.extend(["\"", word, "\""]);
                    copied = span.end;
                }
            } else {
                out.push_str(json.get(copied..place.start).unwrap_or_default());
                out.push_str(word);
                copied = place.end;
            }
        }
    });
    out.push_str(json.get(copied..).unwrap_or_default());
    out
}

impl JsonString<'_> {
    /// Range in the JSON of a range in the text.
    pub(crate) fn range_in_json(&self, found: &Range<usize>) -> Range<usize> {
        match self.text {
            Cow::Borrowed(_) => self.start + found.start..self.start + found.end,
            Cow::Owned(_) => {
                self.start + raw_offset(self.raw, found.start)..self.start + raw_offset(self.raw, found.end)
            }
        }
    }
}

fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(next) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += next;
        if bytes[at] == b'"' {
            return at;
        }
        at += 2;
    }
    bytes.len()
}

fn unescape<'a>(json: &'a str, raw: &'a str, at: Range<usize>) -> Cow<'a, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    let quoted = json.get(at.start - 1..at.end + 1).unwrap_or_default();
    // Half a character has no text; then what is written is what is read.
    serde_json::from_str(quoted).map_or(Cow::Borrowed(raw), Cow::Owned)
}

/// Number of written bytes for the first `read` bytes of the text.
fn raw_offset(raw: &str, read: usize) -> usize {
    let bytes = raw.as_bytes();
    let hex = |at: usize| raw.get(at..at + 4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let (mut from, mut to) = (0, 0);
    while to < read && from < bytes.len() {
        (from, to) = match (bytes[from], bytes.get(from + 1)) {
            (b'\\', Some(b'u')) => match hex(from + 2) {
                Some(0..0x80) => (from + 6, to + 1),
                Some(0x80..0x800) => (from + 6, to + 2),
                Some(0xD800..0xDC00) => (from + 12, to + 4),
                _ => (from + 6, to + 3),
            },
            (b'\\', _) => (from + 2, to + 1),
            _ => (from + 1, to + 1),
        };
    }
    from.min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn strings_keys_and_long_numbers_are_seen_with_their_member() {
        let mut seen = Vec::new();
        visit_strings(r#"{"a": ["x\ty", 12, 4111111111111111], "b":{"c":"d"}}"#, |string| {
            seen.push((string.key.unwrap_or("-").to_owned(), string.text.into_owned()));
        });
        let expected =
            [("-", "a"), ("a", "x\ty"), ("a", "4111111111111111"), ("-", "b"), ("-", "c"), ("c", "d")];
        assert_eq!(seen, expected.map(|(key, text)| (key.to_owned(), text.to_owned())));
    }

    #[test]
    fn a_number_is_replaced_whole_and_stays_json() {
        assert_eq!(replace(r#"{"n":4111111111111111}"#, &[(5..21, "[x]".to_owned())]), r#"{"n":"[x]"}"#);
    }

    proptest! {
        #[test]
        fn a_finding_behind_escapes_is_replaced_at_its_range(before in ".{0,9}", after in ".{0,9}") {
            let value = serde_json::json!({ "k": [format!("{before}NEEDLE{after}")] });
            let escaped: String = value.to_string().chars().map(|c| {
                if c.is_ascii() { c.to_string() } else {
                    let mut units = [0; 2];
                    c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect()
                }
            }).collect();
            for json in [value.to_string(), escaped] {
                let mut places = Vec::new();
                visit_strings(&json, |string| {
                    let start = before.len();
                    if string.key.is_some() {
                        places.push((string.range_in_json(&(start..start + 6)), "[x]".to_owned()));
                    }
                });
                let cut: serde_json::Value = serde_json::from_str(&replace(&json, &places)).unwrap();
                prop_assert_eq!(&cut["k"][0], &format!("{before}[x]{after}"));
            }
        }
    }
}
