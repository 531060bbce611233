//! HTTP status of each failure kind.

use http::StatusCode;
use rialto_model::failure::FailureKind;

/// Status of a failure kind.
pub const fn from_kind(kind: FailureKind) -> StatusCode {
    match kind {
        FailureKind::Invalid => StatusCode::BAD_REQUEST,
        FailureKind::Unauthenticated => StatusCode::UNAUTHORIZED,
        FailureKind::Denied | FailureKind::Blocked => StatusCode::FORBIDDEN,
        FailureKind::NotFound => StatusCode::NOT_FOUND,
        FailureKind::Conflict => StatusCode::CONFLICT,
        FailureKind::Busy => StatusCode::TOO_MANY_REQUESTS,
        FailureKind::PeerTimeout => StatusCode::GATEWAY_TIMEOUT,
        FailureKind::PeerUnreachable | FailureKind::PeerGarbled | FailureKind::PeerFailed => {
            StatusCode::BAD_GATEWAY
        }
        FailureKind::Unsupported => StatusCode::NOT_IMPLEMENTED,
        FailureKind::StoreUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        FailureKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
