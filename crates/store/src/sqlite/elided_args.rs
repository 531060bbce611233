//! Restores events that programs until November 2026 wrote without their task's arguments.
//!
//! They left the arguments out of a task's first message, because the task has them, and wrote `@` and the byte offset at which they belong in front
//! of the text. Events are written whole now; these rows are swept with their tasks.

use rialto_model::store::StoreError;

/// First character of a text without arguments; JSON never begins with it.
const ELIDED_MARK: char = '@';

/// Returns the events whole. Loads the arguments only where they were left out.
pub(super) fn restore<E: From<StoreError>>(
    text: String,
    load_args: impl FnOnce() -> Result<String, E>,
) -> Result<String, E> {
    let Some(elided) = text.strip_prefix(ELIDED_MARK) else { return Ok(text) };
    let digits = elided.bytes().take_while(u8::is_ascii_digit).count();
    let (offset, events) = elided.split_at(digits);
    let parts = offset.parse().ok().and_then(|offset| events.split_at_checked(offset));
    let (before, after) = parts.ok_or_else(|| {
        StoreError::Corrupt(format!("events that begin with {ELIDED_MARK}{offset} do not have that place"))
    })?;
    Ok([before, &load_args()?, after].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restored(text: &str, args: &str) -> Result<String, StoreError> {
        restore(text.to_owned(), || Ok(args.to_owned()))
    }

    #[test]
    fn arguments_are_put_back_at_their_offset() {
        let args = r#"{"city":"Köln"}"#;
        assert_eq!(restored(r#"@9[{"data":}]"#, args).unwrap(), r#"[{"data":{"city":"Köln"}}]"#);
        assert_eq!(
            restored(r#"@21[{"name":"ü","data":}]"#, args).unwrap(),
            r#"[{"name":"ü","data":{"city":"Köln"}}]"#
        );
    }

    #[test]
    fn whole_events_do_not_load_the_arguments() {
        for events in ["", "[]", r#"[{"data":{"n":1}}]"#] {
            let restored = restore(events.to_owned(), || Err(StoreError::Corrupt("was loaded".to_owned())));
            assert_eq!(restored.unwrap(), events);
        }
    }

    #[test]
    fn a_text_without_a_place_for_the_arguments_is_an_error() {
        for broken in ["@", "@[]", "@3[]", "@1ü", "@99999999999999999999[]"] {
            let error = restored(broken, "{}").unwrap_err().to_string();
            assert!(error.contains("do not have that place"), "{broken}: {error}");
        }
    }
}
