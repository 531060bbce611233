//! Why somebody is not let in, in the words of RFC 6750.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use rialto_model::{
    clock::Timestamp,
    token_scopes::{TokenScope, TokenScopes},
};

use super::jwt::Flaw;
use crate::refusal::Refusal;

/// Why somebody is not let in. Nothing in here, or in what is made of it, repeats the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// There is no token.
    NoToken,
    /// There are two.
    Twice,
    /// It stands in the address.
    InQuery,
    /// It is none that we know.
    Unknown,
    /// It was good until this moment.
    Expired(Timestamp),
    /// It was taken back.
    Revoked,
    /// The console session was ended.
    SignedOut,
    /// Somebody has signed it, but it is not good.
    Flawed(Flaw),
    /// It is good, but not for this: that needs one of these.
    Lacks(TokenScopes),
    /// It cannot be told whether it is still good.
    NoStore,
    /// It cannot be told whether its issuer has signed it.
    NoKeys,
}

/// What a refusal tells a client beside why: where to read how to get in, and what to ask for.
pub(crate) struct Challenge {
    pub(crate) description: String,
    pub(crate) needs: TokenScopes,
}

/// How a refusal looks from outside.
struct Look {
    status: StatusCode,
    /// Our own name for it.
    name: &'static str,
    /// The code of RFC 6750, when a token was shown.
    code: Option<&'static str>,
}

// === impl Denial ===

impl Denial {
    pub(crate) fn answer(&self, challenge: &Challenge) -> Response {
        let (Look { status, name, .. }, message) = (self.look(), self.message());
        let mut response = Refusal::new(status, name, message).into_response();
        if status != StatusCode::SERVICE_UNAVAILABLE
            && let Ok(challenge) = HeaderValue::from_str(&self.challenge(challenge))
        {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }

    /// Why, for whoever counts.
    pub(crate) const fn reason(&self) -> &'static str {
        match self {
            Self::NoToken => "no-token",
            Self::Unknown | Self::Expired(_) | Self::Revoked | Self::SignedOut | Self::Flawed(_) => {
                "bad-token"
            }
            Self::Twice | Self::InQuery => "malformed-token",
            Self::Lacks(_) => "insufficient-scope",
            Self::NoStore | Self::NoKeys => "unavailable",
        }
    }

    /// Whether somebody showed a token that was never good: perhaps a guess.
    pub(crate) const fn is_wrong_token(&self) -> bool {
        matches!(self, Self::Unknown | Self::Flawed(_))
    }

    const fn look(&self) -> Look {
        let (status, name, code) = match self {
            Self::NoToken => (StatusCode::UNAUTHORIZED, "unauthenticated", None),
            Self::Unknown | Self::Expired(_) | Self::Revoked | Self::SignedOut | Self::Flawed(_) => {
                (StatusCode::UNAUTHORIZED, "unauthenticated", Some("invalid_token"))
            }
            Self::Twice | Self::InQuery => {
                (StatusCode::BAD_REQUEST, "invalid-request", Some("invalid_request"))
            }
            Self::Lacks(_) => (StatusCode::FORBIDDEN, "insufficient-scope", Some("insufficient_scope")),
            Self::NoStore | Self::NoKeys => (StatusCode::SERVICE_UNAVAILABLE, "unavailable", None),
        };
        Look { status, name, code }
    }

    /// Why, for whoever is not let in.
    pub(crate) fn told(&self) -> Cow<'static, str> {
        self.message()
    }

    fn message(&self) -> Cow<'static, str> {
        match self {
            Self::NoToken => {
                "send `Authorization: Bearer <token>`; make a token with `rialto tokens create NAME`".into()
            }
            Self::Twice => "there is more than one Authorization header; send one".into(),
            Self::InQuery => {
                "a token in the address ends up in logs; send it as `Authorization: Bearer <token>`, and make a new one"
                    .into()
            }
            Self::Unknown => "this token is not known; make one with `rialto tokens create NAME`".into(),
            Self::Expired(end) => {
                let end = end.strftime("%F %T UTC");
                format!("this token expired at {end}; make a new one with `rialto tokens create NAME`").into()
            }
            Self::SignedOut => "this session was ended; sign in again".into(),
            Self::Revoked => "this token was revoked; make a new one with `rialto tokens create NAME`".into(),
            Self::Flawed(flaw) => flaw.to_string().into(),
            Self::Lacks(needs) => {
                let words: Vec<_> = needs.each().map(TokenScope::as_str).collect();
                let words = words.join(" or ");
                format!("this token lacks the scope {words}; make one with `rialto tokens create NAME --scope`")
                    .into()
            }
            Self::NoKeys => {
                "this token's issuer does not answer, so it cannot be checked; try again later".into()
            }
            Self::NoStore => "tokens cannot be checked right now; try again in a moment".into(),
        }
    }

    /// What `WWW-Authenticate` says.
    fn challenge(&self, Challenge { description, needs }: &Challenge) -> String {
        let mut said = format!("Bearer realm=\"rialto\", resource_metadata=\"{}\"", quotable(description));
        if let Some(code) = self.look().code {
            said += &format!(", error=\"{code}\", error_description=\"{}\"", quotable(&self.message()));
        }
        let needs = if let Self::Lacks(needs) = self { needs } else { needs };
        if *needs != TokenScopes::NONE {
            said += &format!(", scope=\"{needs}\"");
        }
        said
    }
}

impl From<Flaw> for Denial {
    fn from(flaw: Flaw) -> Self {
        Self::Flawed(flaw)
    }
}

/// What may stand between the quotes of a header, by RFC 6750.
fn quotable(text: &str) -> String {
    let is_plain = |c: char| matches!(c, ' '..='~') && c != '"' && c != '\\';
    text.chars().map(|c| if is_plain(c) { c } else { '\'' }).collect()
}
