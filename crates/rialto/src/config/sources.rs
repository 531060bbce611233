//! Sources of the configuration: the file and the environment, as one table.

use std::path::Path;

use toml::{Table, Value};

use super::{ConfigError, DEFAULT_FILE};
use crate::environment::Environment;

/// `RIALTO_CALLS__TIMEOUT_MS=1000` is `[calls] timeout_ms = 1000`.
const PREFIX: &str = "RIALTO_";

/// Variables with names of their own, and their keys.
const OWN_NAMES: [(&str, &str, &str); 3] = [
    ("A2A_DISCOVERY_TIMEOUT_MS", "calls", "discovery_timeout_ms"),
    ("RIALTO_STORE_URL", "store", "url"),
    ("RIALTO_STORE_LISTEN_URL", "store", "listen_url"),
];

/// The table of the file, and what the file is called.
pub(super) fn read_file(file: Option<&Path>) -> Result<(String, Table), ConfigError> {
    let path = file.unwrap_or(Path::new(DEFAULT_FILE));
    let place = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => match text.parse::<Table>() {
            Ok(table) => Ok((place, table)),
            Err(error) => Err(ConfigError::Invalid { place, reason: error.to_string().trim().to_owned() }),
        },
        Err(error) if file.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
            Ok(("the environment".to_owned(), Table::new()))
        }
        Err(error) => Err(ConfigError::Unreadable { path: place, reason: error.to_string() }),
    }
}

/// Puts the environment on top of it.
pub(super) fn apply_environment(table: &mut Table, environment: &Environment) -> Result<(), ConfigError> {
    for (name, value) in environment.with_prefix(PREFIX) {
        let path: Vec<String> = name[PREFIX.len()..].split("__").map(str::to_lowercase).collect();
        if let [section, key] = path.as_slice() {
            set(table, name, section, key, toml_value(value))?;
        }
    }
    for (name, section, key) in OWN_NAMES {
        if let Some(value) = environment.get(name) {
            set(table, name, section, key, toml_value(value))?;
        }
    }
    Ok(())
}

fn set(table: &mut Table, variable: &str, section: &str, key: &str, value: Value) -> Result<(), ConfigError> {
    let section = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
    let Value::Table(section) = section else {
        let reason = "this is not a section of the configuration".to_owned();
        return Err(ConfigError::Invalid { place: variable.to_owned(), reason });
    };
    section.insert(key.to_owned(), value);
    Ok(())
}

/// Parses `5`, `true` and `["a"]` as TOML; everything else is a text.
fn toml_value(text: &str) -> Value {
    let parsed = format!("value = {text}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
    parsed.unwrap_or_else(|| Value::String(text.to_owned()))
}
