//! Stated costs of calls.
//!
//! A card may say what a task costs. Nobody has agreed on how, so the usual spellings are read; what cannot be read is
//! unknown, never free.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::{
    call::CallerId,
    clock::Timestamp,
    ids::AgentId,
    json::{Json, RawJson},
};

/// Member names of a cost in a card or in its `metadata`.
pub const NAMES: [&str; 4] = ["costPerTask", "costPerTaskCents", "cost_per_task", "cost-per-task"];

/// Smallest units per cent.
const MILLIONTHS: u64 = 1_000_000;

/// A million dollars: what says more is a mistake.
const MOST: f64 = 1e8;

/// An amount in US cents, exact to a millionth of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema)]
#[serde(try_from = "f64")]
#[schemars(inline, with = "f64")]
pub struct Cents {
    millionths: u64,
}

/// Query for sums of costs.
#[derive(Clone, Debug, Default)]
pub struct CostQuery {
    /// Only of calls that ended at or after this moment.
    pub since: Option<Timestamp>,
    /// Only of calls that ended before this moment.
    pub until: Option<Timestamp>,
    /// Only this agent's.
    pub agent: Option<AgentId>,
    /// Only this caller's.
    pub caller: Option<CallerId>,
    /// One sum for each of these.
    pub by: CostBy,
}

/// Key of a sum of costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CostBy {
    /// The agent's id.
    #[default]
    Agent,
    /// The canonical name of the skill.
    Skill,
    /// The caller's name.
    Caller,
    /// The day (UTC), as `2026-11-15`.
    Day,
}

/// What some calls cost together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CostSum {
    /// Whose, or when.
    pub key: String,
    /// How many calls were completed.
    pub calls: u64,
    /// Of how many nobody knows the cost.
    pub unknown: u64,
    /// What the others were said to cost.
    pub estimated_cents: Cents,
}

// === impl Cents ===

impl Cents {
    /// The amount as a number, to be compared with others.
    #[expect(clippy::cast_precision_loss, reason = "it is compared, not summed up")]
    pub const fn as_f64(self) -> f64 {
        self.millionths as f64 / MILLIONTHS as f64
    }

    /// An amount in millionths of a cent.
    pub const fn from_millionths(millionths: u64) -> Self {
        Self { millionths }
    }

    /// The amount in millionths of a cent.
    pub const fn millionths(self) -> u64 {
        self.millionths
    }

    /// The sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { millionths: self.millionths.saturating_add(other.millionths) }
    }

    /// Parses a cost in a card: a number of cents, `{"cents": 5}`, or `{"amount": 0.05, "currency": "USD"}`.
    pub fn read(raw: RawJson<'_>) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum CostForm {
            Cents(f64),
            Object { cents: f64 },
            Money { amount: f64, currency: Option<String> },
        }
        let cents = match serde_json::from_str(raw.get()).ok()? {
            CostForm::Cents(cents) | CostForm::Object { cents } => cents,
            // Of other currencies we do not know what they are worth.
            CostForm::Money { amount, currency } if currency.as_deref().is_none_or(is_dollars) => {
                amount * 100.0
            }
            CostForm::Money { .. } => return None,
        };
        Self::try_from(cents).ok()
    }

    /// The cost among the members of a card or a skill, or in their `metadata`.
    pub fn among<'a>(member: impl Fn(&str) -> Option<RawJson<'a>>) -> Option<Self> {
        let own = || NAMES.iter().find_map(|name| Self::read(member(name)?));
        let metadata = || {
            let metadata = member("metadata")?;
            NAMES.iter().find_map(|name| Self::read(metadata.member(name)?))
        };
        own().or_else(metadata)
    }
}

impl TryFrom<f64> for Cents {
    type Error = &'static str;

    fn try_from(cents: f64) -> Result<Self, Self::Error> {
        if (0.0..=MOST).contains(&cents) {
            Ok(Self { millionths: (cents * MILLIONTHS as f64).round() as u64 })
        } else {
            Err("a cost is between nothing and a million dollars")
        }
    }
}

impl Serialize for Cents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.millionths.is_multiple_of(MILLIONTHS) {
            serializer.serialize_u64(self.millionths / MILLIONTHS)
        } else {
            serializer.serialize_f64(self.millionths as f64 / MILLIONTHS as f64)
        }
    }
}

impl std::fmt::Display for Cents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", Json::encode(self))
    }
}

fn is_dollars(currency: &str) -> bool {
    currency.eq_ignore_ascii_case("USD")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<String> {
        Cents::read(Json::parse(text).unwrap().raw()).map(|cents| cents.to_string())
    }

    #[test]
    fn a_cost_is_read_however_a_card_says_it() {
        for (text, cents) in [
            ("5", "5"),
            ("0.25", "0.25"),
            (r#"{"cents": 12}"#, "12"),
            (r#"{"amount": 0.07, "currency": "USD"}"#, "7"),
            (r#"{"amount": 0.07}"#, "7"),
            ("0", "0"),
        ] {
            assert_eq!(read(text).as_deref(), Some(cents), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_unknown_and_not_free() {
        for text in [
            "null",
            "\"5\"",
            "-1",
            "1e300",
            "{}",
            "[5]",
            r#"{"amount": 1, "currency": "EUR"}"#,
            r#"{"cents": "5"}"#,
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn a_cost_is_found_by_its_name_or_in_the_metadata() {
        for (text, cents) in [
            (r#"{"costPerTask": 3}"#, Some(3)),
            (r#"{"cost-per-task": 4}"#, Some(4)),
            (r#"{"metadata": {"costPerTaskCents": 5}}"#, Some(5)),
            (r#"{"costPerTask": 3, "metadata": {"costPerTask": 5}}"#, Some(3)),
            (r#"{"cost": 3}"#, None),
        ] {
            let json = Json::parse(text).unwrap();
            let found = Cents::among(|name| json.raw().member(name));
            assert_eq!(found.map(|cents| cents.millionths() / MILLIONTHS), cents, "{text}");
        }
    }
}
