//! `rialto tokens …`, as `--help` shows it.

use std::{str::FromStr, time::Duration};

use clap::{Args, Subcommand, ValueEnum};

use super::{CallerKindName, Listing};

#[derive(Debug, Subcommand)]
pub(crate) enum Tokens {
    /// Make a token; it is shown this once
    Create(CreateToken),
    /// List tokens, without the tokens themselves
    List(Listing),
    /// Let nobody in with a token any more, from the next request on
    Revoke {
        /// Its id, or its caller's name if that has only one
        token: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CreateToken {
    /// Who comes with it
    #[arg(value_name = "NAME")]
    pub(crate) caller: String,
    /// What that caller is
    #[arg(long, default_value = "user")]
    pub(crate) kind: CallerKindName,
    /// What may be done with it (repeatable); call and discover if none is named
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<RightName>,
    /// How long it is good: 30d, 12h, 15m, 2w or never
    #[arg(long, value_name = "SPAN", default_value = "never")]
    pub(crate) expires: Lifetime,
    /// Give it a role: an owner administers everything in its org
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Option<RoleName>,
    #[command(flatten)]
    pub(crate) listing: Listing,
}

/// What may be done with a token.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RightName {
    /// Call skills
    Call,
    /// See which skills there are
    Discover,
    /// Change what is registered, and who may come in
    Admin,
}

/// A role in an org.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RoleName {
    /// Administers everything in the org
    Owner,
}

/// How long something lasts; none is for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifetime(pub(crate) Option<Duration>);
// === impl Lifetime ===

impl FromStr for Lifetime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "never" {
            return Ok(Self(None));
        }
        let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let seconds = match unit {
            "m" => 60,
            "h" => 60 * 60,
            "d" => 24 * 60 * 60,
            "w" => 7 * 24 * 60 * 60,
            _ => 0,
        };
        match digits.parse::<u64>().ok().and_then(|count| count.checked_mul(seconds)) {
            Some(seconds) if seconds > 0 => Ok(Self(Some(Duration::from_secs(seconds)))),
            _ => Err("say a number and m, h, d or w (30d, 12h), or never".to_owned()),
        }
    }
}

/// The name of an org or project. It must be possible to write it in an address.
pub(super) fn slug(name: &str) -> Result<String, String> {
    if rialto_model::ids::is_slug(name) {
        Ok(name.to_owned())
    } else {
        Err("use letters, digits, `-` and `_`, at most 64 of them, a letter or digit first".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_a_number_and_a_unit() {
        let seconds = |text: &str| text.parse().map(|Lifetime(life)| life.map(|life| life.as_secs()));
        assert_eq!(seconds("never"), Ok(None));
        assert_eq!(seconds("30d"), Ok(Some(30 * 86_400)));
        assert_eq!(seconds("12h"), Ok(Some(12 * 3_600)));
        for wrong in ["", "d", "30", "0d", "-1d", "1y", "99999999999999999999d", "1 d"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
