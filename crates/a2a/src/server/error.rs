//! Encoding of failures as A2A errors.
//!
//! A2A has codes of its own for errors of tasks; everything else keeps Rialto's code, except a denial, whose code has another meaning in
//! A2A. In 1.0 each has an `ErrorInfo`, in A2A's domain or in Rialto's.

use rialto_a2a_codec::{
    error::{ErrorCode, RpcError},
    rest::{self, Release},
    wire::Wire,
};
use rialto_model::{
    failure::{Failure, FailureKind},
    json::Json,
};
use serde_json::{Value, json};

/// Code of a denial in A2A.
pub(crate) const DENIED: i64 = -32208;

/// Error response to a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", error.message)]
pub struct ServiceError {
    /// Error for the caller.
    pub error: RpcError,
    /// The kind of failure, when it is one of ours.
    pub kind: Option<FailureKind>,
}

// === impl ServiceError ===

impl ServiceError {
    /// One of A2A's own errors.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { error: RpcError::new(code, message), kind: None }
    }

    /// Unknown task, or another caller's.
    pub(crate) fn no_task(id: &str) -> Self {
        Self::new(
            ErrorCode::TaskNotFound,
            format!("task \"{id}\" was not found: it never was, is long over, or is not yours"),
        )
    }

    /// HTTP status and body, for HTTP+JSON.
    pub(crate) fn http(&self, wire: Wire, release: Release) -> (u16, String) {
        let Some((status, name)) = self.kind.and_then(status) else {
            return rest::encode_error(wire, release, &self.error);
        };
        (status, rest::encode_other(wire, (status, name), &self.error))
    }

    /// True when the caller has reached a limit, for now.
    pub(crate) fn is_busy(&self) -> bool {
        self.kind == Some(FailureKind::Busy)
    }

    /// Seconds to wait before a retry, if known.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        let data = self.error.data.as_ref().filter(|data| data.get().contains("retryAfter"))?;
        data.value()["retryAfter"].as_u64()
    }

    /// gRPC status name of an error that A2A does not define.
    pub(crate) fn grpc_name(&self) -> Option<&'static str> {
        self.kind.and_then(status).map(|(_, name)| name)
    }
}

impl From<RpcError> for ServiceError {
    fn from(error: RpcError) -> Self {
        Self { error, kind: None }
    }
}

impl From<Failure> for ServiceError {
    fn from(failure: Failure) -> Self {
        let code = match failure.kind {
            FailureKind::Invalid => ErrorCode::InvalidParams.number(),
            FailureKind::Unsupported => ErrorCode::UnsupportedOperation.number(),
            FailureKind::StoreUnavailable | FailureKind::Internal => ErrorCode::Internal.number(),
            FailureKind::Denied => DENIED,
            kind @ (FailureKind::Unauthenticated
            | FailureKind::Blocked
            | FailureKind::NotFound
            | FailureKind::Conflict
            | FailureKind::Busy
            | FailureKind::PeerTimeout
            | FailureKind::PeerUnreachable
            | FailureKind::PeerGarbled
            | FailureKind::PeerFailed) => kind.rpc_code(),
        };
        let reason = reason(failure.kind);
        let error = RpcError { code, message: failure.message.clone(), data: facts(&failure), reason };
        Self { error, kind: Some(failure.kind) }
    }
}

/// Data for programs.
fn facts(failure: &Failure) -> Option<Json> {
    if matches!(failure.kind, FailureKind::Invalid | FailureKind::Unsupported | FailureKind::Internal) {
        // These have a reason of A2A's own, with data beside it.
        return failure.data.clone();
    }
    let mut facts = failure.data.as_ref().map_or_else(|| json!({}), Json::value);
    if let Value::Object(members) = &mut facts {
        members.insert("class".to_owned(), json!(failure.kind.class()));
    }
    Some(Json::encode(&facts))
}

/// Reason in Rialto's domain for an error that 1.0 does not define.
const fn reason(kind: FailureKind) -> Option<&'static str> {
    match kind {
        FailureKind::Invalid | FailureKind::Unsupported | FailureKind::Internal => None,
        FailureKind::Unauthenticated => Some("UNAUTHENTICATED"),
        FailureKind::Denied => Some("DENIED"),
        FailureKind::Blocked => Some("BLOCKED_BY_GUARDRAIL"),
        FailureKind::NotFound => Some("NOT_FOUND"),
        FailureKind::Conflict => Some("CONFLICT"),
        FailureKind::Busy => Some("BUSY"),
        FailureKind::PeerTimeout => Some("AGENT_TIMEOUT"),
        FailureKind::PeerUnreachable => Some("AGENT_UNREACHABLE"),
        FailureKind::PeerGarbled => Some("AGENT_GARBLED"),
        FailureKind::PeerFailed => Some("AGENT_FAILED"),
        FailureKind::StoreUnavailable => Some("STORE_UNAVAILABLE"),
    }
}

/// HTTP status and gRPC status name of an error that A2A does not define.
const fn status(kind: FailureKind) -> Option<(u16, &'static str)> {
    match kind {
        FailureKind::Invalid | FailureKind::Unsupported | FailureKind::Internal => None,
        FailureKind::Unauthenticated => Some((401, "UNAUTHENTICATED")),
        FailureKind::Denied | FailureKind::Blocked => Some((403, "PERMISSION_DENIED")),
        FailureKind::NotFound => Some((404, "NOT_FOUND")),
        FailureKind::Conflict => Some((409, "ABORTED")),
        FailureKind::Busy => Some((429, "RESOURCE_EXHAUSTED")),
        FailureKind::PeerTimeout => Some((504, "DEADLINE_EXCEEDED")),
        FailureKind::PeerUnreachable | FailureKind::PeerGarbled => Some((502, "UNAVAILABLE")),
        FailureKind::PeerFailed => Some((502, "UNKNOWN")),
        FailureKind::StoreUnavailable => Some((503, "UNAVAILABLE")),
    }
}
