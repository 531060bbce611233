//! Scopes of tokens: limits on a caller that hold before any policy is evaluated.
//!
//! Policies say who may call which skill. Rights are coarser and belong to what a caller came in with: a token that
//! may only look around cannot call, whatever the policies say. On the wire and in the configuration they are words
//! with spaces between them, as OAuth writes scopes.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, FailureKind};

/// One thing a caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "TokenScope")]
pub enum TokenScope {
    /// Call skills, and follow and cancel the tasks that come of it.
    Call,
    /// See which skills there are.
    Discover,
    /// Change what is registered, and who may come in.
    Admin,
}

/// A set of rights, and whether the caller has the role `owner`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TokenScopes(u8);

/// A word that is no right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not one of call, discover and admin")]
pub struct UnknownTokenScope(String);

// === impl TokenScope ===

impl TokenScope {
    /// Every one of them.
    pub const EACH: [Self; 3] = [Self::Call, Self::Discover, Self::Admin];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Discover => "discover",
            Self::Admin => "admin",
        }
    }

    /// Failure of a caller without this scope.
    pub fn lacking(self) -> Failure {
        let word = self.as_str();
        let message = format!(
            "this token lacks the scope {word}; make one that has it with `rialto tokens create NAME --scope {word}`"
        );
        Failure::new(FailureKind::Denied, message)
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Call => 1,
            Self::Discover => 2,
            Self::Admin => 4,
        }
    }
}

impl FromStr for TokenScope {
    type Err = UnknownTokenScope;

    fn from_str(word: &str) -> Result<Self, UnknownTokenScope> {
        Self::EACH
            .into_iter()
            .find(|right| right.as_str() == word)
            .ok_or_else(|| UnknownTokenScope(word.to_owned()))
    }
}

// === impl TokenScopes ===

impl TokenScopes {
    /// Nothing at all.
    pub const NONE: Self = Self(0);

    /// Everything.
    pub const ALL: Self = Self(TokenScope::Call.bit() | TokenScope::Discover.bit() | TokenScope::Admin.bit());

    /// The role's bit, and its word among those of the rights.
    const OWNER_BIT: u8 = 8;
    const OWNER: &'static str = "owner";

    /// Adds the role `owner`, which administers its org by the policy of a fresh install. An
    /// issuer of signed tokens cannot give it, because no scope is called so.
    #[must_use]
    pub const fn with_owner(self) -> Self {
        Self(self.0 | Self::OWNER_BIT)
    }

    /// Returns whether the caller has the role `owner`.
    pub const fn is_owner(self) -> bool {
        self.0 & Self::OWNER_BIT != 0
    }

    /// These, and no others.
    pub fn from_scopes(rights: impl IntoIterator<Item = TokenScope>) -> Self {
        Self(rights.into_iter().fold(0, |bits, right| bits | right.bit()))
    }

    /// Parses the scopes among the words of `text`; other words are ignored.
    pub fn parse_known(text: &str) -> Self {
        Self::from_scopes(text.split_whitespace().filter_map(|word| word.parse().ok()))
    }

    /// Returns whether `right` is one of them.
    pub const fn have(self, right: TokenScope) -> bool {
        self.0 & right.bit() != 0
    }

    /// Returns whether there is one that is also among `others`.
    pub const fn meet(self, others: Self) -> bool {
        self.0 & others.0 & Self::ALL.0 != 0
    }

    /// Each of them.
    pub fn each(self) -> impl Iterator<Item = TokenScope> {
        TokenScope::EACH.into_iter().filter(move |right| self.have(*right))
    }
}

/// Default scopes: discover and call.
impl Default for TokenScopes {
    fn default() -> Self {
        Self::from_scopes([TokenScope::Call, TokenScope::Discover])
    }
}

impl fmt::Display for TokenScopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, right) in self.each().enumerate() {
            if n > 0 {
                f.write_str(" ")?;
            }
            f.write_str(right.as_str())?;
        }
        if self.is_owner() {
            let space = if self.0 == Self::OWNER_BIT { "" } else { " " };
            write!(f, "{space}{}", Self::OWNER)?;
        }
        Ok(())
    }
}

impl fmt::Debug for TokenScopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rights({self})")
    }
}

impl FromStr for TokenScopes {
    type Err = UnknownTokenScope;

    fn from_str(text: &str) -> Result<Self, UnknownTokenScope> {
        let (roles, words): (Vec<_>, Vec<_>) = text.split_whitespace().partition(|word| *word == Self::OWNER);
        let rights =
            words.into_iter().map(str::parse).collect::<Result<Vec<_>, _>>().map(Self::from_scopes)?;
        Ok(if roles.is_empty() { rights } else { rights.with_owner() })
    }
}

impl TryFrom<String> for TokenScopes {
    type Error = UnknownTokenScope;

    fn try_from(text: String) -> Result<Self, UnknownTokenScope> {
        text.parse()
    }
}

impl From<TokenScopes> for String {
    fn from(rights: TokenScopes) -> Self {
        rights.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_words_with_spaces_between_them() {
        assert_eq!("admin call".parse::<TokenScopes>().unwrap().to_string(), "call admin");
        assert_eq!("".parse::<TokenScopes>(), Ok(TokenScopes::NONE));
        assert_eq!(TokenScopes::ALL.to_string().parse(), Ok(TokenScopes::ALL));
        let owner = TokenScopes::ALL.with_owner();
        assert_eq!(
            (owner.to_string().as_str(), owner.to_string().parse()),
            ("call discover admin owner", Ok(owner))
        );
        assert!("call everything".parse::<TokenScopes>().unwrap_err().to_string().contains("everything"));
    }

    #[test]
    fn words_that_are_no_rights_say_nothing() {
        assert_eq!(
            TokenScopes::parse_known("openid discover profile"),
            TokenScopes::from_scopes([TokenScope::Discover])
        );
        assert_eq!(TokenScopes::parse_known("Call calls"), TokenScopes::NONE);
        assert!(!TokenScopes::parse_known("admin owner").is_owner());
    }

    #[test]
    fn nobody_is_an_administrator_by_default() {
        assert!(
            TokenScopes::default().have(TokenScope::Call)
                && TokenScopes::default().have(TokenScope::Discover)
        );
        assert!(!TokenScopes::default().have(TokenScope::Admin));
        assert!(!TokenScopes::NONE.meet(TokenScopes::ALL));
    }
}
