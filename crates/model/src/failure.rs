//! Failures of calls, by kind.
//!
//! Each wire has one exhaustive match over [`FailureKind`]; a new kind breaks the build of every server until that server has
//! decided how to say it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::Json;

/// The kinds of trouble a caller can be told about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "FailureKind")]
pub enum FailureKind {
    /// The caller's request does not make sense.
    Invalid,
    /// The caller did not say who it is, or could not prove it.
    Unauthenticated,
    /// Policy says no.
    Denied,
    /// A guardrail found something that must not be said.
    Blocked,
    /// What was named is not there, or not visible to this caller.
    NotFound,
    /// It is there, but in a state that does not allow this.
    Conflict,
    /// A limit is reached; later may work.
    Busy,
    /// The peer took longer than the wall clock allows.
    PeerTimeout,
    /// The peer could not be reached, or answered with an HTTP error.
    PeerUnreachable,
    /// The peer answered with something that is not its protocol.
    PeerGarbled,
    /// The peer did its work and says that it failed.
    PeerFailed,
    /// The peer cannot do what was asked.
    Unsupported,
    /// The store is not available: it may be later. It is written down as `internal`, which every version can read.
    #[serde(rename(serialize = "internal"))]
    StoreUnavailable,
    /// Our own fault.
    Internal,
}

/// One failure, ready to be told to a caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Whose fault it is.
    pub kind: FailureKind,
    /// What happened and how to fix it, for the caller to read.
    pub message: String,
    /// Facts for programs: the remote's own code, message, HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Json>,
}

/// The fact that a request was not received.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NotSent {
    not_sent: bool,
}

// === impl FailureKind ===

impl FailureKind {
    /// Every kind there is.
    pub const ALL: [Self; 14] = [
        Self::Invalid,
        Self::Unauthenticated,
        Self::Denied,
        Self::Blocked,
        Self::NotFound,
        Self::Conflict,
        Self::Busy,
        Self::PeerTimeout,
        Self::PeerUnreachable,
        Self::PeerGarbled,
        Self::PeerFailed,
        Self::Unsupported,
        Self::StoreUnavailable,
        Self::Internal,
    ];

    /// The kind whose class is called like this.
    pub fn of_class(class: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.class() == class)
    }

    /// The JSON-RPC code that stands for this kind wherever a wire has no code of its own for it.
    pub const fn rpc_code(self) -> i64 {
        match self {
            Self::Invalid | Self::NotFound => -32602,
            Self::Unauthenticated => -32001,
            Self::Denied => -32003,
            Self::PeerTimeout => -32201,
            Self::PeerUnreachable => -32202,
            Self::PeerGarbled => -32203,
            Self::PeerFailed => -32204,
            Self::Busy => -32205,
            Self::Conflict => -32206,
            Self::Unsupported => -32207,
            // -32208 is a denial in A2A.
            Self::Blocked => -32209,
            Self::StoreUnavailable | Self::Internal => -32603,
        }
    }

    /// The class that `data.class` of such an error names.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Invalid => "InvalidArgumentsError",
            Self::NotFound => "NotFoundError",
            Self::Unauthenticated => "AuthenticationError",
            Self::Denied => "AuthorizationError",
            Self::Blocked => "GuardrailBlockedError",
            Self::PeerTimeout => "RemoteA2ATimeoutError",
            Self::PeerUnreachable => "RemoteA2ATransportError",
            Self::PeerGarbled => "RemoteA2AInvalidResponseError",
            Self::PeerFailed => "RemoteA2ATaskFailedError",
            Self::Busy => "OverloadedError",
            Self::Conflict => "ConflictError",
            Self::Unsupported => "UnsupportedOperationError",
            Self::StoreUnavailable => "StoreUnavailableError",
            Self::Internal => "InternalError",
        }
    }
}

// === impl Failure ===

impl Failure {
    /// A failure without further facts.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), data: None }
    }

    /// Marks the failure as one of a request that surely was not received.
    #[must_use]
    pub fn not_sent(self) -> Self {
        self.with_data(Json::encode(&NotSent { not_sent: true }))
    }

    /// Returns whether the request surely was not received, so that another may be asked instead.
    pub fn is_not_sent(&self) -> bool {
        let data = self.data.as_ref().filter(|data| data.get().contains("\"notSent\":true"));
        data.is_some_and(|data| data.read::<NotSent>().is_ok_and(|data| data.not_sent))
    }

    /// Adds machine-readable data.
    #[must_use]
    pub fn with_data(mut self, data: Json) -> Self {
        self.data = Some(data);
        self
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_kind_is_read_back_and_an_unavailable_store_as_internal() {
        for kind in FailureKind::ALL {
            let text = serde_json::to_string(&kind).unwrap();
            let known = if kind == FailureKind::StoreUnavailable { FailureKind::Internal } else { kind };
            assert_eq!(serde_json::from_str::<FailureKind>(&text).unwrap(), known);
        }
    }

    #[test]
    fn every_kind_is_known_by_its_class() {
        assert!(FailureKind::ALL.into_iter().all(|kind| FailureKind::of_class(kind.class()) == Some(kind)));
        assert_eq!(FailureKind::ALL.into_iter().collect::<HashSet<_>>().len(), FailureKind::ALL.len());
        assert_eq!(FailureKind::of_class("SurpriseError"), None);
    }
}
