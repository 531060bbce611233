//! Operator-defined tool names for single skills, in place of the names made of the agent's name and the skill's id.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{builtin_tools, names::is_allowed};

/// The longest name that MCP allows.
const MAX_NAME_LENGTH: usize = 128;

/// Skills by operator-defined name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, String>")]
pub struct Aliases(BTreeMap<String, String>);

// === impl Aliases ===

impl Aliases {
    /// The skill with this alias.
    pub(crate) fn skill(&self, alias: &str) -> Option<&str> {
        self.0.get(alias).map(String::as_str)
    }

    /// The alias of a skill; the first one, if it has several.
    pub(crate) fn of(&self, canonical: &str, legacy: &str) -> Option<&str> {
        let is_meant = |skill: &str| skill == canonical || skill == legacy;
        self.0.iter().find(|(_, skill)| is_meant(skill)).map(|(alias, _)| alias.as_str())
    }
}

impl TryFrom<BTreeMap<String, String>> for Aliases {
    type Error = String;

    fn try_from(names: BTreeMap<String, String>) -> Result<Self, String> {
        for alias in names.keys() {
            if alias.is_empty() || alias.len() > MAX_NAME_LENGTH || !is_allowed(alias) {
                return Err(format!(
                    "\"{alias}\" cannot be a tool's name: letters, digits, `_`, `-` and `.`, at most {MAX_NAME_LENGTH} of them"
                ));
            }
            if builtin_tools::NAMES.contains(&alias.as_str()) {
                return Err(format!("\"{alias}\" is the name of a tool of Rialto's own; choose another one"));
            }
        }
        Ok(Self(names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aliases(pairs: &[(&str, &str)]) -> Result<Aliases, String> {
        let pairs = pairs.iter().map(|(alias, skill)| ((*alias).to_owned(), (*skill).to_owned()));
        Aliases::try_from(pairs.collect::<BTreeMap<_, _>>())
    }

    #[test]
    fn a_skill_is_found_by_the_name_it_was_given_and_the_other_way_round() {
        let aliases = aliases(&[("rain", "weather.forecast"), ("sun", "a2a_weather_history")]).unwrap();
        assert_eq!(aliases.skill("rain"), Some("weather.forecast"));
        assert_eq!(aliases.of("weather.forecast", "a2a_weather_forecast"), Some("rain"));
        assert_eq!(aliases.of("weather.history", "a2a_weather_history"), Some("sun"));
        assert_eq!(aliases.of("weather.other", "a2a_weather_other"), None);
    }

    #[test]
    fn what_no_tool_can_be_called_is_refused() {
        for alias in ["", "two words", "send_message", &"x".repeat(129)] {
            assert!(aliases(&[(alias, "weather.forecast")]).is_err(), "{alias}");
        }
    }
}
