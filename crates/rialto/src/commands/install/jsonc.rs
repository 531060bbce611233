//! Textual edits of JSON with comments.
//!
//! A client's configuration belongs to its user: comments, trailing commas, white space and the digits of numbers stay as they
//! are. So nothing is serialised again; a member is set or removed at its byte span, and every other byte is copied.

use std::ops::Range;

use serde::Serialize;
use serde_json::{Value, ser::PrettyFormatter};

/// Text of a file, and plain JSON with equal byte offsets.
struct JsoncDocument<'a> {
    text: &'a str,
    /// The text with comments and trailing commas replaced by spaces.
    plain: String,
    comments: Vec<Range<usize>>,
}

/// Spans of one object.
struct ObjectSpans {
    open: usize,
    close: usize,
    members: Vec<MemberSpans>,
}

struct MemberSpans {
    key: String,
    start: usize,
    value: Range<usize>,
}

/// Reads the value at `path`; none if it is not there.
pub(super) fn read(text: &str, path: &[&str]) -> Result<Option<Value>, String> {
    let plain = blank(text).0;
    if plain.trim().is_empty() {
        return Ok(None);
    }
    let whole: Value = parse(&plain)?;
    Ok(path.iter().try_fold(&whole, |value, key| value.get(key)).cloned())
}

/// Sets the value at `path`. Objects on the way that do not exist are made.
pub(super) fn set(text: &str, path: &[&str], value: &Value) -> Result<String, String> {
    let document = JsoncDocument::new(text);
    if document.plain.trim().is_empty() {
        let whole = pretty(&nested(path, value), "  ");
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        return Ok(format!("{text}{gap}{whole}\n"));
    }
    let mut object = document.root()?;
    for (depth, key) in path.iter().enumerate() {
        let Some(member) = object.find(key) else {
            return Ok(document.insert(&object, key, &nested(&path[depth + 1..], value)));
        };
        if depth + 1 == path.len() {
            let rendered = document.render(value, &object, member.start);
            return Ok(splice(text, vec![(member.value.clone(), rendered)]));
        }
        object = document.object(member)?;
    }
    Err("a path has at least one key".to_owned())
}

/// Removes the member at `path`; a text without it stays as it is.
pub(super) fn remove(text: &str, path: &[&str]) -> Result<String, String> {
    let document = JsoncDocument::new(text);
    if document.plain.trim().is_empty() {
        return Ok(text.to_owned());
    }
    let mut object = document.root()?;
    for (depth, key) in path.iter().enumerate() {
        let Some(index) = object.members.iter().rposition(|member| member.key == *key) else {
            return Ok(text.to_owned());
        };
        if depth + 1 == path.len() {
            return Ok(document.cut(&object, index));
        }
        object = document.object(&object.members[index])?;
    }
    Ok(text.to_owned())
}

fn parse(plain: &str) -> Result<Value, String> {
    serde_json::from_str(plain).map_err(|error| format!("not JSON ({error})"))
}

/// Replaces comments and trailing commas by spaces; returns the ranges of comments.
fn blank(text: &str) -> (String, Vec<Range<usize>>) {
    let mut bytes = text.as_bytes().to_vec();
    let mut comments = Vec::new();
    let mut commas = None;
    let mut at = if text.starts_with('\u{feff}') { 3 } else { 0 };
    bytes[..at].fill(b' ');
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = string_end(&bytes, at),
            b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => {
                let end = comment_end(text, at);
                bytes[at..end]
                    .iter_mut()
                    .filter(|byte| !matches!(byte, b'\n' | b'\r'))
                    .for_each(|byte| *byte = b' ');
                comments.push(at..end);
                at = end;
                continue;
            }
            _ => at += 1,
        }
        // `at` is after a token: a comma is trailing unless a member follows.
        match bytes[at - 1] {
            b',' => commas = Some(at - 1),
            b'}' | b']' => {
                if let Some(comma) = commas.take() {
                    bytes[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => commas = None,
        }
    }
    (String::from_utf8_lossy(&bytes).into_owned(), comments)
}

fn comment_end(text: &str, start: usize) -> usize {
    let rest = &text[start..];
    let length = if rest.starts_with("//") {
        rest.find(['\n', '\r'])
    } else {
        rest[2..].find("*/").map(|end| end + 4)
    };
    length.map_or(text.len(), |length| start + length)
}

/// The offset behind the string that begins at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn nested(path: &[&str], value: &Value) -> Value {
    path.iter()
        .rev()
        .fold(value.clone(), |inner, key| Value::Object([((*key).to_owned(), inner)].into_iter().collect()))
}

fn pretty(value: &Value, unit: &str) -> String {
    let mut out = Vec::new();
    let formatter = PrettyFormatter::with_indent(unit.as_bytes());
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
    // A `Value` has text for keys and is written to memory: nothing can fail.
    let _ = value.serialize(&mut serializer);
    String::from_utf8(out).unwrap_or_default()
}

/// Replaces ranges, which are in order and apart.
fn splice(text: &str, edits: Vec<(Range<usize>, String)>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (range, with) in edits {
        out.push_str(&text[at..range.start]);
        out.push_str(&with);
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

// === impl JsoncDocument ===

impl<'a> JsoncDocument<'a> {
    fn new(text: &'a str) -> Self {
        let (plain, comments) = blank(text);
        Self { text, plain, comments }
    }

    /// The outermost object, once the whole text is known to be JSON.
    fn root(&self) -> Result<ObjectSpans, String> {
        if !parse(&self.plain)?.is_object() {
            return Err("not a JSON object".to_owned());
        }
        Ok(self.spans(self.skip_space(0)))
    }

    fn object(&self, member: &MemberSpans) -> Result<ObjectSpans, String> {
        if self.plain.as_bytes()[member.value.start] != b'{' {
            return Err(format!("\"{}\" is not an object", member.key));
        }
        Ok(self.spans(member.value.start))
    }

    /// Spans of the object that opens at `open`. The text is valid JSON.
    fn spans(&self, open: usize) -> ObjectSpans {
        let bytes = self.plain.as_bytes();
        let mut members = Vec::new();
        let mut at = self.skip_space(open + 1);
        while at < bytes.len() && bytes[at] != b'}' {
            let key = at..string_end(bytes, at);
            let start = self.skip_space(self.skip_space(key.end) + 1);
            let value = start..self.value_end(start);
            at = self.skip_space(value.end);
            if bytes.get(at) == Some(&b',') {
                at = self.skip_space(at + 1);
            }
            let name = serde_json::from_str(&self.plain[key.clone()]).unwrap_or_default();
            members.push(MemberSpans { key: name, start: key.start, value });
        }
        ObjectSpans { open, close: at, members }
    }

    fn skip_space(&self, from: usize) -> usize {
        let bytes = self.plain.as_bytes();
        (from..bytes.len()).find(|&at| !bytes[at].is_ascii_whitespace()).unwrap_or(bytes.len())
    }

    fn value_end(&self, start: usize) -> usize {
        let bytes = self.plain.as_bytes();
        let (mut at, mut depth) = (start, 0_usize);
        while at < bytes.len() {
            match bytes[at] {
                b'"' => {
                    at = string_end(bytes, at);
                    if depth == 0 {
                        return at;
                    }
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth == 0 => return at,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        return at + 1;
                    }
                }
                b',' if depth == 0 => return at,
                byte if depth == 0 && byte.is_ascii_whitespace() => return at,
                _ => {}
            }
            at += 1;
        }
        at
    }

    fn eol(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    /// White space at the begin of the line that `at` is on.
    fn indent(&self, at: usize) -> &str {
        let line = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
        let rest = &self.text[line..];
        &rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()]
    }

    /// One level of the file's indentation.
    fn unit(&self) -> String {
        let first =
            self.spans(self.skip_space(0)).members.first().map(|member| self.indent(member.start).to_owned());
        first.filter(|unit| !unit.is_empty()).unwrap_or_else(|| "  ".to_owned())
    }

    fn is_one_line(&self, object: &ObjectSpans) -> bool {
        !self.text[object.open..object.close].contains('\n')
    }

    /// A value as text of a member of `object` on the line of `at`.
    fn render(&self, value: &Value, object: &ObjectSpans, at: usize) -> String {
        if self.is_one_line(object) && !object.members.is_empty() {
            return value.to_string();
        }
        let line = format!("{}{}", self.eol(), self.indent(at));
        pretty(value, &self.unit()).replace('\n', &line)
    }

    fn insert(&self, object: &ObjectSpans, key: &str, value: &Value) -> String {
        let name = Value::from(key).to_string();
        let Some(last) = object.members.last() else {
            return self.fill(object, &name, value);
        };
        let comma = self.trailing_comma(last.value.end, object.close);
        let behind = comma.map_or(last.value.end, |comma| comma + 1);
        let missing = if comma.is_some() { "" } else { "," };
        if self.is_one_line(object) {
            let gap = if self.text[object.open..object.close].contains(", ") { " " } else { "" };
            let colon = if self.text[last.start..last.value.start].contains(": ") { ": " } else { ":" };
            let member = format!("{missing}{gap}{name}{colon}{value}");
            return splice(self.text, vec![(behind..behind, member)]);
        }
        let rendered = self.render(value, object, last.start);
        let tail = if comma.is_some() { "," } else { "" };
        let member = format!("{}{}{name}: {rendered}{tail}", self.eol(), self.indent(last.start));
        let place = self.line_end(behind);
        splice(self.text, vec![(last.value.end..last.value.end, missing.to_owned()), (place..place, member)])
    }

    /// Inserts the first member of an object.
    fn fill(&self, object: &ObjectSpans, name: &str, value: &Value) -> String {
        let (eol, unit) = (self.eol(), self.unit());
        let outer = self.indent(object.open).to_owned();
        let inner = format!("{outer}{unit}");
        let rendered = pretty(value, &unit).replace('\n', &format!("{eol}{inner}"));
        let content = self.text[object.open + 1..object.close].trim_end();
        let place = object.open + 1 + content.len();
        let end = if self.text[place..object.close].contains('\n') {
            String::new()
        } else {
            format!("{eol}{outer}")
        };
        let until = if end.is_empty() { place } else { object.close };
        splice(self.text, vec![(place..until, format!("{eol}{inner}{name}: {rendered}{end}"))])
    }

    /// The comma behind the last member, if the file has trailing commas.
    fn trailing_comma(&self, from: usize, until: usize) -> Option<usize> {
        (from..until).find(|&at| {
            self.text.as_bytes()[at] == b',' && !self.comments.iter().any(|comment| comment.contains(&at))
        })
    }

    /// The end of the line, if there is nothing but a comment until there; else `from`.
    fn line_end(&self, from: usize) -> usize {
        let rest = &self.text[from..];
        let length = rest.find(['\n', '\r']).unwrap_or(0);
        let end = from + length;
        let is_inside = self.comments.iter().any(|comment| comment.start < end && end < comment.end);
        if is_inside || !self.plain[from..end].trim().is_empty() { from } else { end }
    }

    /// Removes one member with its comma and the white space before it.
    fn cut(&self, object: &ObjectSpans, index: usize) -> String {
        let member = &object.members[index];
        let is_last = index + 1 == object.members.len();
        let until = object.members.get(index + 1).map_or(object.close, |next| next.start);
        let comma = self.trailing_comma(member.value.end, until);
        let start = self.text[..member.start].trim_end().len();
        let end = comma.map_or(member.value.end, |comma| comma + 1);
        let mut edits = Vec::new();
        match index.checked_sub(1).map(|before| &object.members[before]) {
            Some(before) if is_last && comma.is_none() => {
                if let Some(comma) = self.trailing_comma(before.value.end, member.start) {
                    edits.push((comma..comma + 1, String::new()));
                }
                let start = start.max(edits.last().map_or(0, |(range, _)| range.end));
                edits.push((start..end, String::new()));
            }
            None if is_last && self.text[object.open + 1..start].trim().is_empty() => {
                let rest = self.text[end..object.close].trim_start_matches([' ', '\t', '\r', '\n']);
                let end = if rest.is_empty() { object.close } else { end };
                edits.push((start..end, String::new()));
            }
            _ => edits.push((start..end, String::new())),
        }
        splice(self.text, edits)
    }
}

// === impl ObjectSpans ===

impl ObjectSpans {
    /// The member of this name; of several the last one, as clients read it.
    fn find(&self, key: &str) -> Option<&MemberSpans> {
        self.members.iter().rfind(|member| member.key == key)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PATH: &[&str] = &["mcpServers", "rialto"];

    /// Sets an entry, checks that it can be read, and that removing it gives the text back.
    #[track_caller]
    fn set_and_remove(text: &str) -> String {
        let entry = json!({ "command": "/bin/rialto", "args": ["mcp"] });
        let with = set(text, PATH, &entry).unwrap();
        assert_eq!(read(&with, PATH).unwrap(), Some(entry), "{with}");
        assert_eq!(remove(&with, PATH).unwrap(), text, "{with}");
        with
    }

    #[test]
    fn comments_numbers_and_trailing_commas_stay() {
        let text = "// mine\n{\n\t\"big\": 12345678901234567890.10, // exact, {really}\n\t\"mcpServers\": {\n\t\t\"a\": {\"x\": \"//no\"}, /* , */\n\t},\n}\n";
        let with = set_and_remove(text);
        assert!(
            with.starts_with("// mine\n{\n\t\"big\": 12345678901234567890.10, // exact, {really}\n"),
            "{with}"
        );
        assert!(with.contains("/* , */\n\t\t\"rialto\": {\n\t\t\t\"command\""), "{with}");
    }

    #[test]
    fn an_entry_goes_behind_the_last_one_and_its_comment() {
        let text = "{\n  \"mcpServers\": {\n    \"a\": 1 // first\n  }\n}";
        let with = set_and_remove(text);
        assert!(with.contains("\"a\": 1, // first\n    \"rialto\": {\n      \"command\""), "{with}");
    }

    #[test]
    fn a_file_on_one_line_stays_on_one_line() {
        let with = set_and_remove(r#"{"theme":"dark","mcpServers":{"other":{"command":"x"}}}"#);
        assert!(
            !with.contains('\n')
                && with.starts_with(r#"{"theme":"dark","mcpServers":{"other":{"command":"x"},"#)
        );
    }

    #[test]
    fn line_ends_of_windows_stay() {
        let with = set_and_remove("\u{feff}{\r\n  \"mcpServers\": {\r\n    \"a\": {}\r\n  }\r\n}\r\n");
        assert_eq!(with.matches('\n').count(), with.matches("\r\n").count());
    }

    #[test]
    fn objects_on_the_way_are_made() {
        let value = json!(true);
        assert_eq!(set("", &["a", "b"], &value).unwrap(), "{\n  \"a\": {\n    \"b\": true\n  }\n}\n");
        assert_eq!(set("{}", &["a"], &value).unwrap(), "{\n  \"a\": true\n}");
        assert_eq!(set("{ // mine\n}", &["a"], &value).unwrap(), "{ // mine\n  \"a\": true\n}");
        assert_eq!(
            set("{\n    \"z\": 1\n}\n", &["a"], &value).unwrap(),
            "{\n    \"z\": 1,\n    \"a\": true\n}\n"
        );
        assert_eq!(set("// only\n", &["a"], &value).unwrap(), "// only\n{\n  \"a\": true\n}\n");
    }

    #[test]
    fn a_member_that_is_there_is_replaced_alone() {
        let text = "{ \"a\": { \"args\": [1, 2], /* why */ \"trust\": true } }";
        let with = set(text, &["a", "args"], &json!(["mcp"])).unwrap();
        assert_eq!(with, "{ \"a\": { \"args\": [\"mcp\"], /* why */ \"trust\": true } }");
    }

    #[test]
    fn a_member_is_removed_from_any_place() {
        assert_eq!(remove("{\n  \"a\": 1,\n  \"b\": 2\n}", &["a"]).unwrap(), "{\n  \"b\": 2\n}");
        assert_eq!(remove("{\n  \"a\": 1\n}", &["a"]).unwrap(), "{}");
        assert_eq!(remove("{\"a\":1,\"b\":2,\"c\":3}", &["b"]).unwrap(), "{\"a\":1,\"c\":3}");
        assert_eq!(remove("{\"a\":1}", &["b"]).unwrap(), "{\"a\":1}");
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for (text, word) in
            [("[1]", "object"), ("{ nonsense", "not JSON"), ("{\"mcpServers\": 5}", "mcpServers")]
        {
            let reason = set(text, PATH, &json!(1)).unwrap_err();
            assert!(reason.contains(word), "{reason}");
        }
    }
}
