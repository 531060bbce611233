//! Authentication errors, rendered by RFC 6750.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use rialto_model::{
    clock::Timestamp,
    token_scopes::{TokenScope, TokenScopes},
};

use super::jwt::JwtError;
use crate::rejection::Rejection;

/// Reason why a request is not authenticated. Neither this nor its texts repeat the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AuthError {
    /// There is no token.
    NoToken,
    /// There are two tokens.
    TwoTokens,
    /// The token is in the address.
    TokenInQuery,
    /// The token is unknown.
    Unknown,
    /// The token expired at this time.
    Expired(Timestamp),
    /// The token was revoked.
    Revoked,
    /// The console session was ended.
    SignedOut,
    /// The token is signed, but not valid.
    InvalidJwt(JwtError),
    /// The token lacks all of these rights, of which one is required.
    MissingScope(TokenScopes),
    /// The store is unavailable, so the token cannot be checked.
    StoreUnavailable,
    /// The issuer is unavailable, so the signature cannot be checked.
    IssuerUnavailable,
}

/// Content of `WWW-Authenticate` besides the error: address of the metadata, and rights to ask for.
pub(crate) struct BearerChallenge {
    pub(crate) metadata_url: String,
    pub(crate) needs: TokenScopes,
}

/// Status and codes of an error.
struct ErrorStatus {
    status: StatusCode,
    /// Our own error code.
    name: &'static str,
    /// Code of RFC 6750, if the request has a token.
    code: Option<&'static str>,
}

// === impl AuthError ===

impl AuthError {
    pub(crate) fn respond(&self, challenge: &BearerChallenge) -> Response {
        let (ErrorStatus { status, name, .. }, message) = (self.status(), self.message());
        let mut response = Rejection::new(status, name, message).into_response();
        if status != StatusCode::SERVICE_UNAVAILABLE
            && let Ok(challenge) = HeaderValue::from_str(&self.challenge_header(challenge))
        {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }

    /// Reason, as it is counted.
    pub(crate) const fn reason(&self) -> &'static str {
        match self {
            Self::NoToken => "no-token",
            Self::Unknown | Self::Expired(_) | Self::Revoked | Self::SignedOut | Self::InvalidJwt(_) => {
                "bad-token"
            }
            Self::TwoTokens | Self::TokenInQuery => "malformed-token",
            Self::MissingScope(_) => "insufficient-scope",
            Self::StoreUnavailable | Self::IssuerUnavailable => "unavailable",
        }
    }

    /// True if the token was never valid: it may be a guess.
    pub(crate) const fn is_wrong_token(&self) -> bool {
        matches!(self, Self::Unknown | Self::InvalidJwt(_))
    }

    const fn status(&self) -> ErrorStatus {
        let (status, name, code) = match self {
            Self::NoToken => (StatusCode::UNAUTHORIZED, "unauthenticated", None),
            Self::Unknown | Self::Expired(_) | Self::Revoked | Self::SignedOut | Self::InvalidJwt(_) => {
                (StatusCode::UNAUTHORIZED, "unauthenticated", Some("invalid_token"))
            }
            Self::TwoTokens | Self::TokenInQuery => {
                (StatusCode::BAD_REQUEST, "invalid-request", Some("invalid_request"))
            }
            Self::MissingScope(_) => {
                (StatusCode::FORBIDDEN, "insufficient-scope", Some("insufficient_scope"))
            }
            Self::StoreUnavailable | Self::IssuerUnavailable => {
                (StatusCode::SERVICE_UNAVAILABLE, "unavailable", None)
            }
        };
        ErrorStatus { status, name, code }
    }

    /// Text for the client, with what to do next.
    pub(crate) fn message(&self) -> Cow<'static, str> {
        match self {
            Self::NoToken => {
                "send `Authorization: Bearer <token>`; make a token with `rialto tokens create NAME`".into()
            }
            Self::TwoTokens => "there is more than one Authorization header; send one".into(),
            Self::TokenInQuery => {
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
            Self::InvalidJwt(error) => error.to_string().into(),
            Self::MissingScope(needs) => {
                let words: Vec<_> = needs.each().map(TokenScope::as_str).collect();
                let words = words.join(" or ");
                format!("this token lacks the scope {words}; make one with `rialto tokens create NAME --scope`")
                    .into()
            }
            Self::IssuerUnavailable => {
                "this token's issuer does not answer, so it cannot be checked; try again later".into()
            }
            Self::StoreUnavailable => "tokens cannot be checked right now; try again in a moment".into(),
        }
    }

    /// Value of `WWW-Authenticate`.
    fn challenge_header(&self, BearerChallenge { metadata_url, needs }: &BearerChallenge) -> String {
        let mut value =
            format!("Bearer realm=\"rialto\", resource_metadata=\"{}\"", sanitize_quoted(metadata_url));
        if let Some(code) = self.status().code {
            value +=
                &format!(", error=\"{code}\", error_description=\"{}\"", sanitize_quoted(&self.message()));
        }
        let needs = if let Self::MissingScope(needs) = self { needs } else { needs };
        if *needs != TokenScopes::NONE {
            value += &format!(", scope=\"{needs}\"");
        }
        value
    }
}

impl From<JwtError> for AuthError {
    fn from(error: JwtError) -> Self {
        Self::InvalidJwt(error)
    }
}

/// Replaces characters that RFC 6750 does not allow between quotes.
fn sanitize_quoted(text: &str) -> String {
    let is_plain = |c: char| matches!(c, ' '..='~') && c != '"' && c != '\\';
    text.chars().map(|c| if is_plain(c) { c } else { '\'' }).collect()
}
