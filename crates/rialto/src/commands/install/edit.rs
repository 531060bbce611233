//! Edits of one entry in a configuration of any format.

use serde_json::{Map, Value};

use super::{
    clients::{ConfigFormat, ENTRY_NAME},
    entry::CONNECTION_MEMBERS,
    jsonc, toml_text, yaml_text,
};

/// Reads our entry; none if it is not there.
pub(super) fn read(format: ConfigFormat, text: &str) -> Result<Option<Value>, String> {
    match format {
        ConfigFormat::Json(servers) => jsonc::read(text, &[servers, ENTRY_NAME]),
        ConfigFormat::Toml(servers) => toml_text::read(text, [servers, ENTRY_NAME]),
        ConfigFormat::Yaml(place, _) => yaml_text::read(text, place),
    }
}

/// Sets our entry. Members that the user added to an entry that is there stay.
pub(super) fn set(format: ConfigFormat, text: &str, entry: &Map<String, Value>) -> Result<String, String> {
    let known = read(format, text)?;
    let after = match format {
        ConfigFormat::Json(servers) => set_json(text, servers, known.as_ref(), entry)?,
        ConfigFormat::Toml(servers) => {
            toml_text::set(text, [servers, ENTRY_NAME], entry, CONNECTION_MEMBERS)?
        }
        ConfigFormat::Yaml(place, start) => {
            let text = if text.trim().is_empty() { start } else { text };
            yaml_text::set(text, place, &merged(known.as_ref(), entry))?
        }
    };
    if read(format, &after)? == Some(Value::Object(merged(known.as_ref(), entry))) {
        Ok(after)
    } else {
        Err("it cannot be edited safely".to_owned())
    }
}

/// True if the text has no list of servers.
pub(super) fn lacks_servers(format: ConfigFormat, text: &str) -> bool {
    matches!(format, ConfigFormat::Json(servers) if matches!(jsonc::read(text, &[servers]), Ok(None)))
}

/// Removes our entry, and with `made_servers` the place for servers if nothing else is in it. A text without the entry stays
/// as it is.
pub(super) fn remove(format: ConfigFormat, text: &str, made_servers: bool) -> Result<String, String> {
    match format {
        ConfigFormat::Json(servers) => {
            let rest = jsonc::remove(text, &[servers, ENTRY_NAME])?;
            let is_empty =
                jsonc::read(&rest, &[servers])?.is_some_and(|left| left == Value::Object(Map::new()));
            if made_servers && is_empty { jsonc::remove(&rest, &[servers]) } else { Ok(rest) }
        }
        ConfigFormat::Toml(servers) => toml_text::remove(text, [servers, ENTRY_NAME]),
        ConfigFormat::Yaml(place, _) => yaml_text::remove(text, place),
    }
}

/// The entry as text of its own, for people who edit the file themselves.
pub(super) fn snippet(format: ConfigFormat, entry: &Map<String, Value>) -> String {
    let text = match format {
        ConfigFormat::Yaml(place, _) => yaml_text::set("", place, entry),
        format => set(format, "", entry),
    };
    text.unwrap_or_default()
}

fn set_json(
    text: &str,
    servers: &str,
    known: Option<&Value>,
    entry: &Map<String, Value>,
) -> Result<String, String> {
    let Some(known) = known.and_then(Value::as_object) else {
        return jsonc::set(text, &[servers, ENTRY_NAME], &Value::Object(entry.clone()));
    };
    let mut out = text.to_owned();
    for name in
        CONNECTION_MEMBERS.iter().filter(|name| known.contains_key(**name) && !entry.contains_key(**name))
    {
        out = jsonc::remove(&out, &[servers, ENTRY_NAME, name])?;
    }
    for (name, value) in entry.iter().filter(|(name, value)| known.get(*name) != Some(value)) {
        out = jsonc::set(&out, &[servers, ENTRY_NAME, name], value)?;
    }
    Ok(out)
}

fn merged(known: Option<&Value>, entry: &Map<String, Value>) -> Map<String, Value> {
    let mut members = known.and_then(Value::as_object).cloned().unwrap_or_default();
    members.retain(|name, _| !CONNECTION_MEMBERS.contains(&name.as_str()) || entry.contains_key(name));
    members.extend(entry.clone());
    members
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_user_added_to_the_entry_stays_and_the_other_transport_goes() {
        let text = "{\n  \"mcpServers\": {\n    \"rialto\": {\n      // slow agents\n      \"timeout\": 600000,\n      \"httpUrl\": \"http://old\",\n      \"headers\": {}\n    }\n  }\n}\n";
        let entry = json!({ "command": "r", "args": ["mcp"] });
        let after = set(ConfigFormat::Json("mcpServers"), text, entry.as_object().unwrap()).unwrap();
        assert!(
            after.contains("// slow agents\n      \"timeout\": 600000,\n      \"command\": \"r\""),
            "{after}"
        );
        assert!(!after.contains("httpUrl") && !after.contains("headers"), "{after}");
    }
}
