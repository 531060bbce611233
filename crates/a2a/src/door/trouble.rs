//! How a failure is told in A2A.
//!
//! A2A has codes of its own for what can happen to tasks; everything else keeps the code that Rialto has for it elsewhere. Only
//! a denial cannot: its code means something else in A2A. In 1.0 each has an `ErrorInfo`, in A2A's domain or in ours.

use rialto_a2a_wire::{
    error::{Code, RpcError},
    rest::{self, Release},
    wire::Wire,
};
use rialto_model::{
    failure::{Failure, Kind},
    json::Json,
};
use serde_json::{Value, json};

/// The code of a denial on this wire.
pub(crate) const DENIED: i64 = -32208;

/// Why a request is not served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", error.message)]
pub struct Trouble {
    /// What the caller is told.
    pub error: RpcError,
    /// The kind of failure, when it is one of ours.
    pub kind: Option<Kind>,
}

// === impl Trouble ===

impl Trouble {
    /// One of A2A's own errors.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { error: RpcError::new(code, message), kind: None }
    }

    /// There is no such task, or it is somebody else's.
    pub(crate) fn no_task(id: &str) -> Self {
        Self::new(
            Code::TaskNotFound,
            format!("task \"{id}\" was not found: it never was, is long over, or is not yours"),
        )
    }

    /// The HTTP status and body of it where HTTP itself carries requests.
    pub(crate) fn http(&self, wire: Wire, release: Release) -> (u16, String) {
        let Some((status, name)) = self.kind.and_then(status) else {
            return rest::encode_error(wire, release, &self.error);
        };
        (status, rest::encode_other(wire, (status, name), &self.error))
    }

    /// Whether the caller has as much as it may have, for now.
    pub(crate) fn is_busy(&self) -> bool {
        self.kind == Some(Kind::Busy)
    }

    /// How many seconds to wait before trying again, if that is known.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        let data = self.error.data.as_ref().filter(|data| data.get().contains("retryAfter"))?;
        data.value()["retryAfter"].as_u64()
    }

    /// What gRPC calls it, when A2A has no error for it.
    pub(crate) fn grpc_name(&self) -> Option<&'static str> {
        self.kind.and_then(status).map(|(_, name)| name)
    }
}

impl From<RpcError> for Trouble {
    fn from(error: RpcError) -> Self {
        Self { error, kind: None }
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        let code = match failure.kind {
            Kind::Invalid => Code::InvalidParams.number(),
            Kind::Unsupported => Code::UnsupportedOperation.number(),
            Kind::StoreUnavailable | Kind::Internal => Code::Internal.number(),
            Kind::Denied => DENIED,
            kind @ (Kind::Unauthenticated
            | Kind::Blocked
            | Kind::NotFound
            | Kind::Conflict
            | Kind::Busy
            | Kind::PeerTimeout
            | Kind::PeerUnreachable
            | Kind::PeerGarbled
            | Kind::PeerFailed) => kind.rpc_code(),
        };
        let reason = reason(failure.kind);
        let error = RpcError { code, message: failure.message.clone(), data: facts(&failure), reason };
        Self { error, kind: Some(failure.kind) }
    }
}

/// What programs are told beside the message.
fn facts(failure: &Failure) -> Option<Json> {
    if matches!(failure.kind, Kind::Invalid | Kind::Unsupported | Kind::Internal) {
        // These have a reason of A2A's own, and their facts stand beside it.
        return failure.data.clone();
    }
    let mut facts = failure.data.as_ref().map_or_else(|| json!({}), Json::value);
    if let Value::Object(members) = &mut facts {
        members.insert("class".to_owned(), json!(failure.kind.class()));
    }
    Some(Json::of(&facts))
}

/// What 1.0 calls what A2A has no error for, in our own domain.
const fn reason(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Invalid | Kind::Unsupported | Kind::Internal => None,
        Kind::Unauthenticated => Some("UNAUTHENTICATED"),
        Kind::Denied => Some("DENIED"),
        Kind::Blocked => Some("BLOCKED_BY_GUARDRAIL"),
        Kind::NotFound => Some("NOT_FOUND"),
        Kind::Conflict => Some("CONFLICT"),
        Kind::Busy => Some("BUSY"),
        Kind::PeerTimeout => Some("AGENT_TIMEOUT"),
        Kind::PeerUnreachable => Some("AGENT_UNREACHABLE"),
        Kind::PeerGarbled => Some("AGENT_GARBLED"),
        Kind::PeerFailed => Some("AGENT_FAILED"),
        Kind::StoreUnavailable => Some("STORE_UNAVAILABLE"),
    }
}

/// The HTTP status and gRPC name of what A2A has no error for.
const fn status(kind: Kind) -> Option<(u16, &'static str)> {
    match kind {
        Kind::Invalid | Kind::Unsupported | Kind::Internal => None,
        Kind::Unauthenticated => Some((401, "UNAUTHENTICATED")),
        Kind::Denied | Kind::Blocked => Some((403, "PERMISSION_DENIED")),
        Kind::NotFound => Some((404, "NOT_FOUND")),
        Kind::Conflict => Some((409, "ABORTED")),
        Kind::Busy => Some((429, "RESOURCE_EXHAUSTED")),
        Kind::PeerTimeout => Some((504, "DEADLINE_EXCEEDED")),
        Kind::PeerUnreachable | Kind::PeerGarbled => Some((502, "UNAVAILABLE")),
        Kind::PeerFailed => Some((502, "UNKNOWN")),
        Kind::StoreUnavailable => Some((503, "UNAVAILABLE")),
    }
}
