//! Indented JSON with invisible characters escaped.
//!
//! It is indented as text, because numbers would lose digits in a parsed value.

use rialto_model::json::Json;

use crate::text;

/// Maximum number of characters.
const MAX_CHARS: usize = 60_000;

/// Indented text of a JSON value.
pub(crate) fn pretty_json(json: &Json) -> String {
    text::escape_invisible(&text::truncate(&indent(json.get()), MAX_CHARS).0, true).into_owned()
}

fn indent(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    let mut rest = json.chars().filter(|c| *c != '\r').peekable();
    while let Some(c) = rest.next() {
        if is_text {
            out.push(c);
            is_text = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            continue;
        }
        match c {
            '"' => {
                is_text = true;
                out.push(c);
            }
            '{' | '[' => {
                while rest.next_if(char::is_ascii_whitespace).is_some() {}
                out.push(c);
                match rest.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => out.push(end),
                    None => {
                        depth += 1;
                        new_line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_result_is_the_same_as_that_of_serde_json() {
        let value = json!({ "a": [1, { "b": "x\\\"{,}:[" }, [], {}], "c": null, "": true });
        assert_eq!(indent(&value.to_string()), serde_json::to_string_pretty(&value).unwrap());
        let spaced = "{ \"a\" : [ ] ,\r\n\t\"b\":  { } }";
        assert_eq!(indent(spaced), "{\n  \"a\": [],\n  \"b\": {}\n}");
    }

    #[test]
    fn numbers_keep_every_digit() {
        let json = Json::parse("[1.000000000000000000010,123456789012345678901234567890]").unwrap();
        assert!(pretty_json(&json).contains("1.000000000000000000010"));
    }
}
