//! Errors of exchanges with an agent, as failures for the caller.
//!
//! Every failure says which side caused it and carries the facts: the agent's own code and message, the HTTP status, the beginning of an
//! invalid body. It never contains a token.

use std::{borrow::Cow, time::Duration};

use http::StatusCode;
use rialto_a2a_codec::{
    error::{ErrorCode, RpcError},
    grpc::GrpcStatus,
    invalid::InvalidDocument,
};
use rialto_http_client::fetch::FetchError;
use rialto_model::{
    failure::{Failure, FailureKind},
    json::Json,
};
use serde_json::json;

use crate::{credential::RequestAuth, retry_after};

/// Maximum length of a body in a message.
const MAX_SNIPPET_LENGTH: usize = 200;

/// Error with the facts that decide on retries and fallbacks.
#[derive(Debug)]
pub(crate) struct AgentError {
    pub(crate) failure: Failure,
    /// Protocol error code of the agent, if it sent one.
    pub(crate) code: Option<ErrorCode>,
    /// True when the agent did not understand the dialect, so that another may be tried: the request had no effect.
    pub(crate) is_foreign: bool,
    /// True for a temporary error.
    pub(crate) is_passing: bool,
    /// True when the connection broke after the request was sent.
    pub(crate) is_broken: bool,
}

// === impl AgentError ===

impl AgentError {
    /// The request failed.
    pub(crate) fn fetching(error: &FetchError) -> Self {
        let kind = match error {
            FetchError::Timeout(_) => FailureKind::PeerTimeout,
            FetchError::TooLarge(limit) => return Self::too_large(*limit),
            FetchError::Local(_) => FailureKind::Internal,
            FetchError::Forbidden(_) | FetchError::NotSent(_) | FetchError::Broken(_) => {
                FailureKind::PeerUnreachable
            }
        };
        let message = match error {
            FetchError::Timeout(_) => format!("the agent {error}"),
            FetchError::Local(_) => format!("the agent was not called: {error}"),
            _ => format!("the agent could not be reached: {error}"),
        };
        let is_passing = !matches!(error, FetchError::Forbidden(_));
        let failure = Failure::new(kind, message);
        let is_broken = matches!(error, FetchError::Broken(_));
        let failure = match error {
            error if error.is_surely_not_sent() => failure.not_sent(),
            FetchError::Broken(_) => failure.with_data(Json::encode(&json!({ "broken": true }))),
            _ => failure,
        };
        Self { is_passing, is_broken, ..failure.into() }
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!(
            "the agent's answer is larger than the limit of {limit} bytes; raise outbound.max_response_bytes to take it"
        );
        Failure::new(FailureKind::PeerGarbled, message).into()
    }

    /// The agent sent a protocol error.
    pub(crate) fn remote(error: &RpcError) -> Self {
        let said = error.message.trim();
        let message = match said {
            "" => format!("the agent answered with error {}", error.code),
            said => format!("the agent answered with error {}: {said}", error.code),
        };
        let mut data = json!({ "remoteCode": error.code, "remoteMessage": error.message });
        if let Some(facts) = &error.data {
            data["remoteData"] = facts.value();
        }
        let failure = Failure::new(FailureKind::PeerFailed, message).with_data(Json::encode(&data));
        Self { code: error.known(), is_foreign: is_foreign(error), ..failure.into() }
    }

    /// The agent sent an HTTP error status without a protocol error.
    pub(crate) fn status(status: StatusCode, body: &[u8], login: AuthSent<'_>) -> Self {
        let mut message = format!("the agent answered with HTTP status {}", status.as_u16());
        if wants_login(status) {
            message.push_str(login.advice());
        } else if status.is_redirection() {
            message.push_str(": it sends us to another address, which its card should name instead");
        }
        let data = json!({ "status": status.as_u16(), "body": snippet(body, login.shown()) });
        let failure = Failure::new(FailureKind::PeerUnreachable, message).with_data(Json::encode(&data));
        let is_passing = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
        Self { is_passing, ..failure.into() }
    }

    /// The agent sent a gRPC error status: a protocol error, or one of the transport.
    pub(crate) fn grpc(status: &GrpcStatus, login: AuthSent<'_>) -> Self {
        let (kind, is_passing) = match status.number {
            GrpcStatus::UNAUTHENTICATED | GrpcStatus::PERMISSION_DENIED => {
                (FailureKind::PeerUnreachable, false)
            }
            GrpcStatus::UNAVAILABLE | GrpcStatus::RESOURCE_EXHAUSTED => (FailureKind::PeerUnreachable, true),
            GrpcStatus::DEADLINE_EXCEEDED => (FailureKind::PeerTimeout, true),
            _ => return Self::remote(&status.error()),
        };
        let mut message = format!("the agent answered with gRPC status {}", status.number);
        if matches!(status.number, GrpcStatus::UNAUTHENTICATED | GrpcStatus::PERMISSION_DENIED) {
            message.push_str(login.advice());
        } else if !status.message.trim().is_empty() {
            message.push_str(": ");
            message.push_str(status.message.trim());
        }
        let data = json!({ "grpcStatus": status.number, "remoteMessage": status.message });
        let failure = Failure::new(kind, message).with_data(Json::encode(&data));
        Self { is_passing, ..failure.into() }
    }

    /// The agent sent an invalid response.
    pub(crate) fn garbled(garbled: &InvalidDocument, body: &[u8], login: AuthSent<'_>) -> Self {
        let message = format!("the agent's answer is not A2A: {garbled}");
        let data = json!({ "body": snippet(body, login.shown()) });
        Failure::new(FailureKind::PeerGarbled, message).with_data(Json::encode(&data)).into()
    }

    /// Redacts the token, in case the agent repeated it.
    pub(crate) fn without(mut self, shown: Option<&RequestAuth>) -> Self {
        let Some(shown) = shown else { return self };
        if let Cow::Owned(message) = shown.hide(&self.failure.message) {
            self.failure.message = message;
        }
        if let Some(data) = self.failure.data.take() {
            self.failure.data = match shown.hide(data.get()) {
                Cow::Borrowed(_) => Some(data),
                Cow::Owned(data) => Json::parse(data).ok(),
            };
        }
        self
    }

    /// Adds the pause that the agent requests.
    pub(crate) fn with_retry_after(mut self, pause: Option<Duration>) -> Self {
        let Some(pause) = pause else { return self };
        let mut data = self.failure.data.as_ref().map_or_else(|| json!({}), Json::value);
        data["retryAfter"] = json!(retry_after::seconds(pause));
        self.failure.data = Some(Json::encode(&data));
        self
    }

    /// Allows another dialect to be tried if `is_foreign`.
    pub(crate) fn foreign_if(mut self, is_foreign: bool) -> Self {
        self.is_foreign |= is_foreign;
        self
    }
}

impl From<Failure> for AgentError {
    fn from(failure: Failure) -> Self {
        let is_passing = failure.kind == FailureKind::Busy;
        Self { failure, code: None, is_foreign: false, is_passing, is_broken: false }
    }
}

/// Authentication sent with the request.
#[derive(Clone, Copy)]
pub(crate) enum AuthSent<'a> {
    /// None: the agent has no token.
    None,
    /// None: the token is not for this URL.
    Withheld,
    /// Sent.
    Shown(&'a RequestAuth),
}

// === impl AuthSent ===

impl<'a> AuthSent<'a> {
    const fn shown(self) -> Option<&'a RequestAuth> {
        match self {
            Self::Shown(shown) => Some(shown),
            Self::None | Self::Withheld => None,
        }
    }

    const fn advice(self) -> &'static str {
        match self {
            Self::None => {
                ": it requires authentication; register it with `rialto agents add URL --secret env:NAME`, or load it again with \
                 the `token` of load_agent"
            }
            Self::Withheld => {
                ": it wants a login, but its card names an address on another host or port than its URL, and its token is \
                 not shown there; if that is right, say so: `rialto agents credential NAME --for-host HOST[:PORT]`"
            }
            Self::Shown(_) => ": it does not accept the token it was registered with",
        }
    }
}

/// True for a status about authentication, whatever the body says.
pub(crate) const fn wants_login(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

/// True when an error means that the agent does not support the dialect.
fn is_foreign(error: &RpcError) -> bool {
    match error.known() {
        Some(ErrorCode::MethodNotFound | ErrorCode::VersionNotSupported) => true,
        // a2a-sdk 1.3 reports an unsupported version to 0.3 clients with the only code they know (Q7).
        Some(ErrorCode::Internal) => {
            let said = error.message.to_ascii_lowercase();
            said.contains("version") && said.contains("not supported")
        }
        _ => false,
    }
}

/// Beginning of a body, on one line, without the token.
fn snippet(body: &[u8], shown: Option<&RequestAuth>) -> String {
    let head = body.get(..4 * MAX_SNIPPET_LENGTH).unwrap_or(body);
    let mut text = String::from_utf8_lossy(head).split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some(shown) = shown {
        text = shown.hide(&text).into_owned();
    }
    match text.char_indices().nth(MAX_SNIPPET_LENGTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use rialto_model::credential::CredentialScheme;

    use super::*;

    #[test]
    fn a_body_is_shown_without_the_token_and_not_whole() {
        let shown =
            RequestAuth::new(&CredentialScheme::Bearer, &"hunter2".into(), tokio::time::Instant::now())
                .unwrap();
        let body = format!("you sent\n\thunter2 {}", "x".repeat(1000));
        let text = snippet(body.as_bytes(), Some(&shown));
        assert!(text.starts_with("you sent [secret] xxx") && text.ends_with('…'));
        assert_eq!(text.chars().count(), MAX_SNIPPET_LENGTH + 1);
    }

    #[test]
    fn an_error_about_the_version_is_foreign_even_under_the_code_for_everything() {
        let said = "A2A version '1.0' is not supported by this handler. Expected version '0.3'.";
        assert!(is_foreign(&RpcError::new(ErrorCode::Internal, said)));
        assert!(is_foreign(&RpcError::new(ErrorCode::MethodNotFound, "")));
        assert!(!is_foreign(&RpcError::new(ErrorCode::Internal, "database is down")));
    }
}
