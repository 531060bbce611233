//! The process environment, read once at the start and passed on from there.

use std::{collections::BTreeMap, path::PathBuf};

use rialto_model::call::HOPS_VARIABLE;
use rialto_secrets::SecretKeyLocation;

/// Environment variables at the start of the process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment(BTreeMap<String, String>);

// === impl Environment ===

impl Environment {
    /// The environment of this process. Variables that are not text are left out.
    pub(crate) fn from_process() -> Self {
        Self(
            std::env::vars_os()
                .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
                .collect(),
        )
    }

    /// The variable called `name`, unless it is empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// All variables with this prefix.
    pub(crate) fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let of_interest =
            self.0.range(prefix.to_owned()..).take_while(move |(name, _)| name.starts_with(prefix));
        of_interest.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Number of calls through Rialto that led to this process. An unreadable count is the maximum.
    pub(crate) fn hops(&self) -> u8 {
        self.get(HOPS_VARIABLE).map_or(0, |count| count.trim().parse().unwrap_or(u8::MAX))
    }

    /// Folder for private settings of the user.
    pub(crate) fn config_dir(&self) -> PathBuf {
        let home = || self.get("HOME").or_else(|| self.get("USERPROFILE")).map(PathBuf::from);
        self.get("XDG_CONFIG_HOME")
            .or_else(|| self.get("APPDATA"))
            .map(PathBuf::from)
            .or_else(|| home().map(|home| home.join(".config")))
            .unwrap_or_else(|| PathBuf::from("."))
            .join("rialto")
    }

    /// Location of the key to stored secrets.
    pub(crate) fn secret_key_location(&self) -> SecretKeyLocation {
        SecretKeyLocation::find(|name| self.get(name), &self.config_dir())
    }

    /// Default data folder of this system.
    pub(crate) fn default_data_dir(&self) -> PathBuf {
        let home = || self.get("HOME").or_else(|| self.get("USERPROFILE")).map(PathBuf::from);
        self.get("XDG_DATA_HOME")
            .or_else(|| self.get("LOCALAPPDATA"))
            .map(PathBuf::from)
            .or_else(|| home().map(|home| home.join(".local/share")))
            .unwrap_or_else(|| PathBuf::from("."))
            .join("rialto")
    }
}

impl FromIterator<(String, String)> for Environment {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Self {
        Self(variables.into_iter().collect())
    }
}
