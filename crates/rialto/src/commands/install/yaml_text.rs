//! Textual edits of YAML: one entry below a key of the outermost mapping is set or removed, every other line is copied.
//!
//! YAML has many spellings. What is not plain block style is refused, and an edit counts only if the text, read again, is what it
//! was except for the entry.

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};
use serde_json::{Map, Value};

/// Shape of a client's list of servers.
#[derive(Clone, Copy, Debug)]
pub(super) enum ServersShape {
    /// A mapping from names to servers.
    Mapping,
    /// A list of servers, each with its `name`.
    List,
}

/// Key of the outermost mapping, name of our entry, and how entries are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryPlace {
    pub(super) key: &'static str,
    pub(super) name: &'static str,
    pub(super) shape: ServersShape,
}

/// Value with the line (from 0) and column that it begins at.
struct YamlNode {
    value: Value,
    line: usize,
    column: usize,
    /// Members or items, with the place of their key or of themselves.
    children: Vec<YamlChild>,
}

struct YamlChild {
    key: String,
    line: usize,
    column: usize,
    node: YamlNode,
}

struct YamlReader<'a>(Parser<'a, StrInput<'a>>);

/// Reads our entry; none if it is not there.
pub(super) fn read(text: &str, place: EntryPlace) -> Result<Option<Value>, String> {
    let root = parse(text)?;
    Ok(entry(&root, place).map(|child| child.node.value.clone()))
}

/// Sets our entry to `members`.
pub(super) fn set(text: &str, place: EntryPlace, members: &Map<String, Value>) -> Result<String, String> {
    let root = parse(text)?;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let out = match (servers(&root, place), entry(&root, place)) {
        (_, Some(child)) => {
            let range = block(&lines, child, place);
            let column = item_column(child, place);
            ensure_block(&lines, child, place)?;
            join(&lines[..range.start], &render(place, members, column), &lines[range.end..])
        }
        (Some(list), None) => {
            let column = list.node.children.first().map_or(2, |child| item_column(child, place));
            let head = open(lines.get(list.line).copied().unwrap_or_default(), list)?;
            let before: String = lines[..list.line].concat();
            join(&[&before, &head], &render(place, members, column), &lines[list.line + 1..])
        }
        (None, None) => {
            let head = format!("{}:\n", place.key);
            let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            join(&[text, gap, &head], &render(place, members, 2), &[])
        }
    };
    verify(&root, &out, place, Some(members))?;
    Ok(out)
}

/// Removes our entry; a text without it stays as it is.
pub(super) fn remove(text: &str, place: EntryPlace) -> Result<String, String> {
    let root = parse(text)?;
    let Some(child) = entry(&root, place) else {
        return Ok(text.to_owned());
    };
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    ensure_block(&lines, child, place)?;
    let range = block(&lines, child, place);
    let mut out: String = lines[..range.start].concat();
    if servers(&root, place).is_some_and(|list| list.node.children.len() == 1) {
        // A key without a value would be null.
        let empty = if matches!(place.shape, ServersShape::Mapping) { "{}" } else { "[]" };
        let line = out.lines().last().unwrap_or_default().to_owned();
        let bare = format!("{}:", place.key);
        if line.trim_end() != bare {
            return Err(format!(
                "\"{}\" has nothing but this entry, and a comment beside its key",
                place.key
            ));
        }
        out.truncate(out.trim_end().len());
        out.push_str(&format!(" {empty}\n"));
    }
    out.push_str(&lines[range.end..].concat());
    verify(&root, &out, place, None)?;
    Ok(out)
}

fn servers(root: &YamlNode, place: EntryPlace) -> Option<&YamlChild> {
    root.children.iter().find(|child| child.key == place.key)
}

fn entry(root: &YamlNode, place: EntryPlace) -> Option<&YamlChild> {
    let servers = servers(root, place)?;
    servers.node.children.iter().find(|child| match place.shape {
        ServersShape::Mapping => child.key == place.name,
        ServersShape::List => child.node.value.get("name").and_then(Value::as_str) == Some(place.name),
    })
}

/// Column that an entry begins at: of its key, or of the dash before it.
const fn item_column(child: &YamlChild, place: EntryPlace) -> usize {
    match place.shape {
        ServersShape::Mapping => child.column,
        ServersShape::List => child.column.saturating_sub(2),
    }
}

/// Lines of an entry: its first, and those that are indented further.
fn block(lines: &[&str], child: &YamlChild, place: EntryPlace) -> std::ops::Range<usize> {
    let column = item_column(child, place);
    let is_inside =
        |line: &&&str| line.trim().is_empty() || line.len() - line.trim_start_matches(' ').len() > column;
    let mut end = child.line + 1 + lines[child.line + 1..].iter().take_while(is_inside).count();
    while end > child.line + 1 && lines[end - 1].trim().is_empty() {
        end -= 1;
    }
    child.line..end
}

/// Refuses entries that are not alone on their first line.
fn ensure_block(lines: &[&str], child: &YamlChild, place: EntryPlace) -> Result<(), String> {
    let line = lines.get(child.line).copied().unwrap_or_default();
    let start = line.trim_start_matches(' ');
    let indent = line.len() - start.len();
    let is_first = indent == item_column(child, place);
    let is_plain = match place.shape {
        ServersShape::Mapping => start.trim_end() == format!("{}:", place.name),
        ServersShape::List => start.starts_with("- ") && !start.starts_with("- {"),
    };
    if is_first && is_plain {
        Ok(())
    } else {
        Err(format!("the entry \"{}\" is not in block style", place.name))
    }
}

/// The line of the servers' key, ready for entries below it.
fn open(line: &str, list: &YamlChild) -> Result<String, String> {
    let rest = line.trim_end().strip_prefix(&format!("{}:", list.key)).map(str::trim);
    let is_below = list.node.line > list.line;
    match rest {
        Some("") => Ok(format!("{}\n", line.trim_end())),
        Some(comment) if comment.starts_with('#') && (is_below || list.node.value.is_null()) => {
            Ok(format!("{}\n", line.trim_end()))
        }
        Some("{}" | "[]") => Ok(format!("{}:\n", list.key)),
        _ => Err(format!("\"{}\" is not in block style", list.key)),
    }
}

fn render(place: EntryPlace, members: &Map<String, Value>, column: usize) -> String {
    let outer = " ".repeat(column);
    let mut out = match place.shape {
        ServersShape::Mapping => format!("{outer}{}:\n", place.name),
        ServersShape::List => String::new(),
    };
    for (index, (key, value)) in members.iter().enumerate() {
        let dash = if matches!(place.shape, ServersShape::List) && index == 0 { "- " } else { "  " };
        out.push_str(&format!("{outer}{dash}{key}: {}\n", flow(value)));
    }
    out
}

/// JSON is YAML, if there is a space behind each colon.
fn flow(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let members =
                members.iter().map(|(key, value)| format!("{}: {}", Value::from(key.as_str()), flow(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        scalar => scalar.to_string(),
    }
}

fn join(before: &[&str], middle: &str, after: &[&str]) -> String {
    let mut out = before.concat();
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    out.push_str(middle);
    out.push_str(&after.concat());
    out
}

/// Checks that the new text is the old one except for the entry.
fn verify(
    before: &YamlNode,
    after: &str,
    place: EntryPlace,
    members: Option<&Map<String, Value>>,
) -> Result<(), String> {
    let after = parse(after).map_err(|_| "it cannot be edited safely".to_owned())?;
    let is_set =
        entry(&after, place).map(|child| &child.node.value) == members.cloned().map(Value::Object).as_ref();
    if is_set && others(before, place) == others(&after, place) {
        Ok(())
    } else {
        Err("it cannot be edited safely".to_owned())
    }
}

/// All other entries.
fn others(root: &YamlNode, place: EntryPlace) -> Vec<(&str, Vec<&Value>)> {
    let ours = entry(root, place).map(|child| std::ptr::from_ref(&child.node.value));
    let listed = root.children.iter().map(|child| {
        let values: Vec<&Value> = if child.key == place.key {
            child.node.children.iter().map(|item| &item.node.value).collect()
        } else {
            vec![&child.node.value]
        };
        (
            child.key.as_str(),
            values.into_iter().filter(|value| Some(std::ptr::from_ref(*value)) != ours).collect(),
        )
    });
    listed.filter(|(key, values): &(&str, Vec<&Value>)| *key != place.key || !values.is_empty()).collect()
}

fn parse(text: &str) -> Result<YamlNode, String> {
    let mut reader = YamlReader(Parser::new_from_str(text));
    loop {
        match reader.next()? {
            (Event::StreamEnd, _) => {
                return Ok(YamlNode { value: Value::Null, line: 0, column: 0, children: Vec::new() });
            }
            (Event::StreamStart | Event::DocumentStart(_) | Event::Nothing, _) => {}
            (event @ Event::MappingStart(..), span) => {
                let root = reader.node(&event, span)?;
                while !matches!(reader.next()?.0, Event::StreamEnd) {}
                return Ok(root);
            }
            _ => return Err("not a YAML mapping".to_owned()),
        }
    }
}

// === impl YamlReader ===

impl<'a> YamlReader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), String> {
        match self.0.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(format!("not YAML ({error})")),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(&mut self, event: &Event<'a>, span: Span) -> Result<YamlNode, String> {
        let (line, column) = (span.start.line().saturating_sub(1), span.start.col());
        let (value, children) = match event {
            Event::Scalar(text, ScalarStyle::Plain, ..) => (plain(text), Vec::new()),
            Event::Scalar(text, ..) => (Value::from(text.as_ref()), Vec::new()),
            Event::Alias(id) => (Value::from(format!("*{id}")), Vec::new()),
            Event::SequenceStart(..) => {
                let children = self.items()?;
                (children.iter().map(|child| child.node.value.clone()).collect(), children)
            }
            Event::MappingStart(..) => {
                let children = self.members()?;
                let members = children.iter().map(|child| (child.key.clone(), child.node.value.clone()));
                (Value::Object(members.collect()), children)
            }
            _ => return Err("not YAML".to_owned()),
        };
        Ok(YamlNode { value, line, column, children })
    }

    fn items(&mut self) -> Result<Vec<YamlChild>, String> {
        let mut children = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                return Ok(children);
            }
            let node = self.node(&event, span)?;
            children.push(YamlChild { key: String::new(), line: node.line, column: node.column, node });
        }
    }

    fn members(&mut self) -> Result<Vec<YamlChild>, String> {
        let mut children = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                return Ok(children);
            }
            let key = self.node(&event, span)?;
            let (event, span) = self.next()?;
            let node = self.node(&event, span)?;
            let name = key.value.as_str().map_or_else(|| key.value.to_string(), str::to_owned);
            children.push(YamlChild { key: name, line: key.line, column: key.column, node });
        }
    }
}

/// A word without quotes: JSON's own words and numbers, else text.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" => Value::Null,
        text => serde_json::from_str(text)
            .ok()
            .filter(|value: &Value| !value.is_string())
            .unwrap_or_else(|| text.into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const GOOSE: EntryPlace = EntryPlace { key: "extensions", name: "rialto", shape: ServersShape::Mapping };
    const CONTINUE: EntryPlace = EntryPlace { key: "mcpServers", name: "rialto", shape: ServersShape::List };

    fn members() -> Map<String, Value> {
        let entry =
            json!({ "name": "rialto", "cmd": "/bin/rialto", "args": ["mcp"], "envs": {}, "timeout": 300 });
        entry.as_object().unwrap().clone()
    }

    #[track_caller]
    fn set_and_remove(text: &str, place: EntryPlace) -> String {
        let with = set(text, place, &members()).unwrap();
        assert_eq!(read(&with, place).unwrap(), Some(Value::Object(members())), "{with}");
        assert_eq!(set(&with, place, &members()).unwrap(), with);
        assert_eq!(remove(&with, place).unwrap(), text, "{with}");
        with
    }

    #[test]
    fn an_entry_is_set_in_a_mapping_and_comments_stay() {
        let text = "# mine\nGOOSE_MODEL: gpt-4o # why\nextensions:\n  # built in\n  developer:\n    enabled: true\n    args:\n    - x\n\nafter: 1\n";
        let with = set_and_remove(text, GOOSE);
        assert!(with.contains("extensions:\n  rialto:\n    name: \"rialto\"\n"), "{with}");
    }

    #[test]
    fn an_entry_is_set_in_a_list() {
        let text = "name: c\nmcpServers: # tools\n  - name: other\n    command: x\nmodels: []\n";
        let with = set_and_remove(text, CONTINUE);
        assert!(with.contains("mcpServers: # tools\n  - name: \"rialto\"\n    cmd:"), "{with}");
        set_and_remove("mcpServers:\n- name: other\n  command: x\nz: 1\n", CONTINUE);
        set_and_remove("mcpServers: []\n", CONTINUE);
        set_and_remove("extensions: {}\n", GOOSE);
    }

    #[test]
    fn a_key_that_is_missing_is_made() {
        assert!(set("a: 1", GOOSE, &members()).unwrap().starts_with("a: 1\nextensions:\n  rialto:\n"));
        assert!(set("", CONTINUE, &members()).unwrap().starts_with("mcpServers:\n  - name: \"rialto\"\n"));
    }

    #[test]
    fn an_entry_in_any_spelling_is_replaced() {
        let text =
            "extensions:\n  rialto:\n    cmd: old\n    args:\n    - a\n    - |\n      b\n  other: {}\n";
        let with = set(text, GOOSE, &members()).unwrap();
        assert!(with.ends_with("    timeout: 300\n  other: {}\n") && !with.contains("old"), "{with}");
    }

    #[test]
    fn what_cannot_be_edited_safely_is_refused() {
        for text in ["extensions: {developer: {enabled: true}}\n", "- a\n", "a: [\n", "extensions: 5\n"] {
            assert!(set(text, GOOSE, &members()).is_err(), "{text}");
        }
    }
}
