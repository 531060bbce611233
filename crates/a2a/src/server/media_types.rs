//! Check of the media types that a target accepts.

use rialto_a2a_codec::error::ErrorCode;
use rialto_model::{call::CallTarget, media, message::Part};

use super::error::ServiceError;

/// Media type of text.
pub(crate) const TEXT: &str = "text/plain";

/// Rejects parts with a media type that the target does not accept.
pub(crate) fn check(target: &CallTarget, parts: &[Part]) -> Result<(), ServiceError> {
    let mut special =
        parts.iter().enumerate().filter_map(|(place, part)| Some((place, media::special(part)?)));
    let Some(first) = special.next() else { return Ok(()) };
    let taken = media::types_accepted_by_agent(&target.agent, target.skill.as_deref());
    let refused = std::iter::once(first).chain(special).find(|(_, kind)| !media::is_accepted(kind, &taken));
    let Some((place, kind)) = refused else { return Ok(()) };
    let message =
        format!("message.parts[{place}]: {kind} is not taken here; send one of {}", taken.join(", "));
    Err(ServiceError::new(ErrorCode::ContentTypeNotSupported, message))
}
