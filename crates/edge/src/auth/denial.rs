//! Why somebody is not let in, in the words of RFC 6750.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use rialto_model::clock::Timestamp;

use super::jwt::Flaw;
use crate::refusal::Refusal;

/// Why somebody is not let in. Nothing in here, or in what is made of it, repeats the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// There is no token.
    NoToken,
    /// There are two.
    Twice,
    /// It is none that we know.
    Unknown,
    /// It was good until this moment.
    Expired(Timestamp),
    /// It was taken back.
    Revoked,
    /// Somebody has signed it, but it is not good.
    Flawed(Flaw),
    /// It cannot be told whether it is still good.
    NoStore,
    /// It cannot be told whether its issuer has signed it.
    NoKeys,
}

// === impl Denial ===

impl Denial {
    fn status(&self) -> StatusCode {
        match self {
            Self::NoToken | Self::Unknown | Self::Expired(_) | Self::Revoked | Self::Flawed(_) => {
                StatusCode::UNAUTHORIZED
            }
            Self::Twice => StatusCode::BAD_REQUEST,
            Self::NoStore | Self::NoKeys => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The code of RFC 6750, when a token was shown.
    const fn code(&self) -> Option<&'static str> {
        match self {
            Self::NoToken | Self::NoStore | Self::NoKeys => None,
            Self::Twice => Some("invalid_request"),
            Self::Unknown | Self::Expired(_) | Self::Revoked | Self::Flawed(_) => Some("invalid_token"),
        }
    }

    /// Our own name for it.
    const fn name(&self) -> &'static str {
        match self {
            Self::NoToken | Self::Unknown | Self::Expired(_) | Self::Revoked | Self::Flawed(_) => {
                "unauthenticated"
            }
            Self::Twice => "invalid-request",
            Self::NoStore | Self::NoKeys => "unavailable",
        }
    }

    fn message(&self) -> Cow<'static, str> {
        match self {
            Self::NoToken => {
                "send `Authorization: Bearer <token>`; make a token with `rialto tokens create NAME`".into()
            }
            Self::Twice => "there is more than one Authorization header; send one".into(),
            Self::Unknown => "this token is not known; make one with `rialto tokens create NAME`".into(),
            Self::Expired(end) => {
                let end = end.strftime("%F %T UTC");
                format!("this token expired at {end}; make a new one with `rialto tokens create NAME`").into()
            }
            Self::Revoked => "this token was revoked; make a new one with `rialto tokens create NAME`".into(),
            Self::Flawed(flaw) => flaw.to_string().into(),
            Self::NoKeys => {
                "this token's issuer does not answer, so it cannot be checked; try again later".into()
            }
            Self::NoStore => "tokens cannot be checked right now; try again in a moment".into(),
        }
    }

    /// What `WWW-Authenticate` says.
    fn challenge(&self) -> String {
        let mut challenge = "Bearer realm=\"rialto\"".to_owned();
        if let Some(code) = self.code() {
            challenge += &format!(", error=\"{code}\", error_description=\"{}\"", quotable(&self.message()));
        }
        challenge
    }
}

impl IntoResponse for Denial {
    fn into_response(self) -> Response {
        let mut response = Refusal::new(self.status(), self.name(), self.message()).into_response();
        if self.status() != StatusCode::SERVICE_UNAVAILABLE
            && let Ok(challenge) = HeaderValue::from_str(&self.challenge())
        {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
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
