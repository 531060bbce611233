//! HTTP status of each failure kind.

use http::StatusCode;
use rialto_model::failure::Kind;

/// Status of a failure kind.
pub const fn from_kind(kind: Kind) -> StatusCode {
    match kind {
        Kind::Invalid => StatusCode::BAD_REQUEST,
        Kind::Unauthenticated => StatusCode::UNAUTHORIZED,
        Kind::Denied | Kind::Blocked => StatusCode::FORBIDDEN,
        Kind::NotFound => StatusCode::NOT_FOUND,
        Kind::Conflict => StatusCode::CONFLICT,
        Kind::Busy => StatusCode::TOO_MANY_REQUESTS,
        Kind::PeerTimeout => StatusCode::GATEWAY_TIMEOUT,
        Kind::PeerUnreachable | Kind::PeerGarbled | Kind::PeerFailed => StatusCode::BAD_GATEWAY,
        Kind::Unsupported => StatusCode::NOT_IMPLEMENTED,
        Kind::StoreUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        Kind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
