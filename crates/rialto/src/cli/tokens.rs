//! Options of `rialto tokens`.

use std::{str::FromStr, time::Duration};

use clap::{Args, Subcommand, ValueEnum};

use super::{CallerKindName, OutputOptions};

#[derive(Debug, Subcommand)]
pub(crate) enum TokensCommand {
    /// Create a token; it is shown only once
    Create(CreateTokenOptions),
    /// List tokens without their values
    List(OutputOptions),
    /// Revoke a token, effective from the next request
    Revoke {
        /// Token id, or the caller's name if it has only one token
        token: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CreateTokenOptions {
    /// Name of the caller the token identifies
    #[arg(value_name = "NAME")]
    pub(crate) caller: String,
    /// Kind of the caller
    #[arg(long, default_value = "user")]
    pub(crate) kind: CallerKindName,
    /// Scope of the token (repeatable; default: call and discover)
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<TokenScopeName>,
    /// Lifetime: a number with m, h, d or w (15m, 12h, 30d, 2w), or never
    #[arg(long, value_name = "LIFETIME", default_value = "never")]
    pub(crate) expires: TokenLifetime,
    /// Role of the caller: an owner administers everything in its org (default: none)
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Option<RoleName>,
    #[command(flatten)]
    pub(crate) listing: OutputOptions,
}

/// Scope of a token.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TokenScopeName {
    /// Call skills
    Call,
    /// List skills
    Discover,
    /// Administer agents, policies and tokens
    Admin,
}

/// A role in an org.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RoleName {
    /// Administers everything in the org
    Owner,
}

/// Lifetime of a token; none never expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenLifetime(pub(crate) Option<Duration>);
// === impl TokenLifetime ===

impl FromStr for TokenLifetime {
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
            _ => Err("use a number with m, h, d or w (30d, 12h), or never".to_owned()),
        }
    }
}

/// Parses the name of an org or project, which must be valid in a URL path.
pub(super) fn slug(name: &str) -> Result<String, String> {
    if rialto_model::ids::is_slug(name) {
        Ok(name.to_owned())
    } else {
        Err("use at most 64 letters, digits, `-` and `_`, beginning with a letter or a digit".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_a_number_and_a_unit() {
        let seconds = |text: &str| text.parse().map(|TokenLifetime(life)| life.map(|life| life.as_secs()));
        assert_eq!(seconds("never"), Ok(None));
        assert_eq!(seconds("30d"), Ok(Some(30 * 86_400)));
        assert_eq!(seconds("12h"), Ok(Some(12 * 3_600)));
        for wrong in ["", "d", "30", "0d", "-1d", "1y", "99999999999999999999d", "1 d"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
