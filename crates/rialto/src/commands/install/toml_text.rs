//! Textual edits of TOML: one table is set or removed, every other byte is copied.

use std::ops::Range;

use serde_json::{Map, Value};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// Reads the table at `path` (two keys); none if it is not there.
pub(super) fn read(text: &str, path: [&str; 2]) -> Result<Option<Value>, String> {
    let whole: toml::Table = text.parse().map_err(|error| format!("not TOML ({error})"))?;
    let Some(entry) = whole.get(path[0]).and_then(|servers| servers.get(path[1])) else {
        return Ok(None);
    };
    serde_json::to_value(entry).map(Some).map_err(|error| error.to_string())
}

/// Sets members of the table at `path`, drops others from it, and leaves all that are not named.
pub(super) fn set(
    text: &str,
    path: [&str; 2],
    members: &Map<String, Value>,
    drop: &[&str],
) -> Result<String, String> {
    let whole = parse(text)?;
    let Some(entry) = find(&whole, path) else {
        return append(text, path, members);
    };
    if text[entry.span()].starts_with('{') {
        return replace_inline(text, path, entry.span(), members, drop);
    }
    let table = header_table(text, entry, path)?;
    let mut edits = Vec::new();
    let mut added = String::new();
    for (key, value) in members {
        let rendered = render(value)?;
        match table.iter().find(|(name, _)| name.get_ref() == key) {
            Some((_, known)) => edits.push((known.span(), rendered)),
            None => added.push_str(&format!("{key} = {rendered}{}", eol(text))),
        }
    }
    for (name, known) in table {
        if drop.contains(&name.get_ref().as_ref()) && !members.contains_key(name.get_ref().as_ref()) {
            edits.push((lines(text, name.span().start..known.span().end), String::new()));
        }
    }
    let header = lines(text, entry.span());
    let gap = if text[header.clone()].ends_with('\n') { "" } else { eol(text) };
    edits.push((header.end..header.end, format!("{gap}{added}")));
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    Ok(splice(text, &edits))
}

/// Removes the table at `path` with the tables below it.
pub(super) fn remove(text: &str, path: [&str; 2]) -> Result<String, String> {
    let whole = parse(text)?;
    let Some(entry) = find(&whole, path) else {
        return Ok(text.to_owned());
    };
    if text[entry.span()].starts_with('{') {
        let key =
            servers(&whole, path).and_then(|table| table.iter().find(|(name, _)| name.get_ref() == path[1]));
        let start = key.map_or(entry.span().start, |(name, _)| name.span().start);
        return Ok(splice(text, &[(lines(text, start..entry.span().end), String::new())]));
    }
    header_table(text, entry, path)?;
    let mut ranges = Vec::new();
    collect(text, entry, &mut ranges);
    ranges.sort_by_key(|range| range.start);
    let edits: Vec<_> = ranges
        .into_iter()
        .map(|range| {
            // The blank lines before a section were written with it.
            let kept = text[..range.start].trim_end_matches(['\n', '\r']);
            let start = if kept.is_empty() { 0 } else { lines(text, kept.len()..kept.len()).end };
            (start.min(range.start)..range.end, String::new())
        })
        .collect();
    Ok(splice(text, &edits))
}

/// The lines of a header, of its own values, and of the tables below it.
fn collect(text: &str, table: &Spanned<DeValue<'_>>, ranges: &mut Vec<Range<usize>>) {
    let mut own = table.span();
    for value in table.get_ref().as_table().into_iter().flat_map(DeTable::values) {
        if value.get_ref().is_table() && text[value.span()].starts_with('[') {
            collect(text, value, ranges);
        } else {
            own.end = own.end.max(value.span().end);
        }
    }
    ranges.push(lines(text, own));
}

fn parse(text: &str) -> Result<Spanned<DeTable<'_>>, String> {
    DeTable::parse(text).map_err(|error| format!("not TOML ({error})"))
}

fn servers<'t, 'i>(whole: &'t Spanned<DeTable<'i>>, path: [&str; 2]) -> Option<&'t DeTable<'i>> {
    let (_, servers) = whole.get_ref().iter().find(|(name, _)| name.get_ref() == path[0])?;
    servers.get_ref().as_table()
}

fn find<'t, 'i>(whole: &'t Spanned<DeTable<'i>>, path: [&str; 2]) -> Option<&'t Spanned<DeValue<'i>>> {
    servers(whole, path)?.iter().find(|(name, _)| name.get_ref() == path[1]).map(|(_, entry)| entry)
}

/// The members of a table that has a header of its own.
fn header_table<'t, 'i>(
    text: &str,
    entry: &'t Spanned<DeValue<'i>>,
    path: [&str; 2],
) -> Result<&'t DeTable<'i>, String> {
    let table = entry.get_ref().as_table().filter(|_| text[entry.span()].starts_with('['));
    table.ok_or_else(|| format!("{}.{} has no [{0}.{1}] section of its own", path[0], path[1]))
}

fn append(text: &str, path: [&str; 2], members: &Map<String, Value>) -> Result<String, String> {
    let eol = eol(text);
    let gap = match text {
        "" => String::new(),
        text if text.ends_with('\n') => eol.to_owned(),
        _ => format!("{eol}{eol}"),
    };
    let mut out = format!("{text}{gap}[{}.{}]{eol}", path[0], path[1]);
    for (key, value) in members {
        out.push_str(&format!("{key} = {}{eol}", render(value)?));
    }
    Ok(out)
}

fn replace_inline(
    text: &str,
    path: [&str; 2],
    span: Range<usize>,
    members: &Map<String, Value>,
    drop: &[&str],
) -> Result<String, String> {
    let mut entry = read(text, path)?.unwrap_or_default();
    if let Some(known) = entry.as_object_mut() {
        known.retain(|key, _| !drop.contains(&key.as_str()));
        known.extend(members.clone());
    }
    Ok(splice(text, &[(span, render(&entry)?)]))
}

fn render(value: &Value) -> Result<String, String> {
    toml::Value::try_from(value).map(|value| value.to_string()).map_err(|error| error.to_string())
}

fn eol(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// The range, widened to whole lines with their ends.
fn lines(text: &str, range: Range<usize>) -> Range<usize> {
    let start = text[..range.start].rfind('\n').map_or(0, |end| end + 1);
    let end = text[range.end..].find('\n').map_or(text.len(), |length| range.end + length + 1);
    start..end
}

fn splice(text: &str, edits: &[(Range<usize>, String)]) -> String {
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for (range, with) in edits {
        out.push_str(&text[at..range.start.max(at)]);
        out.push_str(with);
        at = range.end.max(at);
    }
    out.push_str(&text[at..]);
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PATH: [&str; 2] = ["mcp_servers", "rialto"];

    fn members() -> Map<String, Value> {
        json!({ "command": "/bin/rialto", "args": ["mcp"] }).as_object().unwrap().clone()
    }

    #[test]
    fn a_section_is_appended_and_removed_and_comments_stay() {
        for text in
            ["# mine\nmodel = \"x\" # why\n", "", "a = 1", "[mcp_servers.other] # note\ncommand = \"y\"\r\n"]
        {
            let with = set(text, PATH, &members(), &[]).unwrap();
            assert!(with.starts_with(text), "{with}");
            assert_eq!(read(&with, PATH).unwrap().unwrap()["args"], json!(["mcp"]));
            assert_eq!(remove(&with, PATH).unwrap().trim_end(), text.trim_end(), "{with}");
        }
    }

    #[test]
    fn members_that_are_not_ours_stay_in_a_section_that_is_there() {
        let text = "[mcp_servers.rialto] # mine\nurl = \"http://x\"\n# slow\ntool_timeout_sec = 90\nargs = [\n  \"old\",\n]\n\n[mcp_servers.rialto.env]\nA = \"b\"\n\n[other]\nx = 1\n";
        let with = set(text, PATH, &members(), &["url"]).unwrap();
        assert_eq!(
            with,
            "[mcp_servers.rialto] # mine\ncommand = \"/bin/rialto\"\n# slow\ntool_timeout_sec = 90\nargs = [\"mcp\"]\n\n[mcp_servers.rialto.env]\nA = \"b\"\n\n[other]\nx = 1\n"
        );
        assert_eq!(remove(&with, PATH).unwrap().trim_start(), "[other]\nx = 1\n");
    }

    #[test]
    fn an_inline_table_is_replaced_and_dotted_keys_are_refused() {
        let with =
            set("[mcp_servers]\nrialto = { command = \"x\", enabled = true }\n", PATH, &members(), &[])
                .unwrap();
        let entry = read(&with, PATH).unwrap().unwrap();
        assert_eq!((&entry["command"], &entry["enabled"]), (&json!("/bin/rialto"), &json!(true)));
        assert_eq!(remove(&with, PATH).unwrap(), "[mcp_servers]\n");
        assert!(set("mcp_servers.rialto.command = \"x\"\n", PATH, &members(), &[]).is_err());
    }
}
