//! Events without their task's arguments.
//!
//! The message that begins a task says its arguments once more, and they are most of what it says. They stand with the task
//! already, so the event is kept without them, with the place where they belong in front of it.

use rialto_model::store::StoreError;

/// What a text without arguments begins with; JSON does not.
const MARK: char = '@';

/// What stands in front of a part's data.
const DATA: &[u8] = b"\"data\":";

/// Shorter arguments are not worth a second look.
const SHORT: usize = 64;

/// Writes `events` without `args` over `into`. False when they are not there: they are the first data that is told, or they are not
/// looked for.
pub(super) fn shorten(events: &[u8], args: &[u8], into: &mut Vec<u8>) -> bool {
    if args.len() < SHORT {
        return false;
    }
    let place = events.windows(DATA.len()).position(|window| window == DATA).map(|at| at + DATA.len());
    let parts = place.and_then(|place| events.split_at_checked(place));
    let Some((before, after)) = parts.and_then(|(before, rest)| Some((before, rest.strip_prefix(args)?)))
    else {
        return false;
    };
    into.clear();
    into.extend_from_slice(format!("{MARK}{}", before.len()).as_bytes());
    into.extend_from_slice(before);
    into.extend_from_slice(after);
    true
}

/// The events as they were told. The arguments are asked for only where they are missing.
pub(super) fn whole<E: From<StoreError>>(
    text: String,
    args: impl FnOnce() -> Result<String, E>,
) -> Result<String, E> {
    let Some(short) = text.strip_prefix(MARK) else { return Ok(text) };
    let digits = short.bytes().take_while(u8::is_ascii_digit).count();
    let (place, events) = short.split_at(digits);
    let parts = place.parse().ok().and_then(|place| events.split_at_checked(place));
    let (before, after) = parts.ok_or_else(|| {
        StoreError::Corrupt(format!("events that begin with {MARK}{place} do not have that place"))
    })?;
    Ok([before, &args()?, after].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "the same few words, said often enough to be worth leaving out of it";

    fn kept(events: &str, args: &str) -> Option<String> {
        let mut text = b"left from before".to_vec();
        shorten(events.as_bytes(), args.as_bytes(), &mut text).then(|| String::from_utf8(text).unwrap())
    }

    fn read(text: &str, args: &str) -> Result<String, StoreError> {
        whole(text.to_owned(), || Ok(args.to_owned()))
    }

    #[test]
    fn what_is_left_out_is_put_back_to_the_letter() {
        for args in [format!(r#"{{"ü":"{TEXT}"}}"#), format!(r#"{{"data":["@3","{TEXT}"]}}"#)] {
            for events in [
                format!(r#"[{{"data":{args}}}]"#),
                format!(r#"[{{"name":"größer","data":{args}}},{{"data":{args}}}]"#),
                format!(r#""data":{args}"#),
            ] {
                let short = kept(&events, &args).unwrap();
                assert_eq!(short.len() + args.len(), events.len() + 1 + short[1..].find(['[', '"']).unwrap());
                assert_eq!(read(&short, &args).unwrap(), events);
            }
        }
    }

    #[test]
    fn what_says_something_else_first_is_kept_whole() {
        let args = format!(r#"{{"text":"{TEXT}"}}"#);
        for events in [
            String::new(),
            r#"["data":"#.to_owned(),
            format!(r#"[{{"text":{args}}}]"#),
            format!(r#"[{{"data":1}},{{"data":{args}}}]"#),
            format!(r#"[{{"data": {args}}}]"#),
        ] {
            assert_eq!(kept(&events, &args), None, "{events}");
            let unasked = whole(events.clone(), || Err(StoreError::Corrupt("was asked for".to_owned())));
            assert_eq!(unasked.unwrap(), events);
        }
        assert_eq!(kept(r#"[{"data":{"text":"short"}}]"#, r#"{"text":"short"}"#), None);
    }

    #[test]
    fn a_text_without_a_place_for_the_arguments_is_an_error() {
        for broken in ["@", "@[]", "@3[]", "@1ü", "@99999999999999999999[]"] {
            let error = read(broken, "{}").unwrap_err().to_string();
            assert!(error.contains("do not have that place"), "{broken}: {error}");
        }
    }
}
