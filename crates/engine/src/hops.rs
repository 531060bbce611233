//! Limit of calls that lead to one another.
//!
//! An agent may call back through us, also itself. What we send carries how many calls led to it: in the header `rialto-hops`, in `tracestate`
//! and in MCP's `_meta`. A request that brings the count back is one call further; beyond the limit it is refused.

use rialto_model::{
    call::Caller,
    failure::{Failure, FailureKind},
    json::Json,
};
use serde_json::json;

/// Refuses a call that too many others led to.
pub(crate) fn check(caller: &Caller, max_hops: u8) -> Result<(), Failure> {
    if caller.hops < max_hops { Ok(()) } else { Err(too_many(max_hops)) }
}

/// The refusal.
pub(crate) fn too_many(max_hops: u8) -> Failure {
    let message = format!(
        "{max_hops} calls through this server led to this one, which is the limit: agents call each other in a circle, or max_hops under \
         [calls] in rialto.toml is too low for this chain"
    );
    Failure::new(FailureKind::Conflict, message)
        .with_data(Json::encode(&json!({ "limit": "calls.max_hops", "max": max_hops })))
}
