//! JSON laid out for people, with what cannot be seen spelt out.
//!
//! It is laid out as text: on the way through a value, numbers would lose digits.

use rialto_model::json::Json;

use crate::text;

/// So many characters are shown.
const MOST: usize = 60_000;

/// A text of JSON on lines of its own.
pub(crate) fn pretty(json: &Json) -> String {
    text::visible(&text::cut(&laid_out(json.get()), MOST).0, true).into_owned()
}

fn laid_out(json: &str) -> String {
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
    fn it_looks_as_everybody_lays_json_out() {
        let value = json!({ "a": [1, { "b": "x\\\"{,}:[" }, [], {}], "c": null, "": true });
        assert_eq!(laid_out(&value.to_string()), serde_json::to_string_pretty(&value).unwrap());
        let spaced = "{ \"a\" : [ ] ,\r\n\t\"b\":  { } }";
        assert_eq!(laid_out(spaced), "{\n  \"a\": [],\n  \"b\": {}\n}");
    }

    #[test]
    fn numbers_keep_every_digit() {
        let json = Json::parse("[1.000000000000000000010,123456789012345678901234567890]").unwrap();
        assert!(pretty(&json).contains("1.000000000000000000010"));
    }
}
