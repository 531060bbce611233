//! Texts as JSON, quickly.

use super::find::{is_clean, special, specials, word};

/// Appends `text` as a JSON string.
///
/// Names and addresses hardly ever have a character that needs escaping. What has many is JSON inside of JSON, where
/// one quote is never far from the next.
pub fn push_text(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    if is_clean(bytes) {
        out.reserve(bytes.len() + 2);
        out.push(b'"');
        out.extend_from_slice(bytes);
        return out.push(b'"');
    }
    out.reserve(bytes.len() + bytes.len() / 8 + 2);
    out.push(b'"');
    let mut at = special(bytes, 0);
    out.extend_from_slice(bytes.get(..at).unwrap_or_default());
    while let Some(byte) = bytes.get(at) {
        match word(bytes, at) {
            Some(word) if specials(word) == 0 => {
                let clean = special(bytes, at + 8);
                out.extend_from_slice(bytes.get(at..clean).unwrap_or_default());
                at = clean;
            }
            _ => {
                push_byte(out, *byte);
                at += 1;
            }
        }
    }
    out.push(b'"');
}

/// Appends a byte of a text, escaped if need be.
fn push_byte(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        0..0x20 => {
            let digit = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
            return out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)]);
        }
        _ => return out.push(byte),
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        push_text(&mut out, text);
        out
    }

    proptest! {
        #[test]
        fn a_text_is_written_as_everybody_writes_it(text in ".{0,80}") {
            prop_assert_eq!(written(&text), serde_json::to_vec(&text).unwrap());
        }

        #[test]
        fn a_text_full_of_quotes_is_too(pieces in prop::collection::vec("[a-z\u{e9}\"\\\\\u{0}-\u{1f}]{0,12}|[a-z ]{0,60}", 0..12)) {
            let text = pieces.concat();
            prop_assert_eq!(written(&text), serde_json::to_vec(&text).unwrap());
        }
    }

    #[test]
    fn whatever_needs_escaping_is_escaped_wherever_it_stands() {
        for special in ["\"", "\\", "\n", "\u{0}", "\u{1f}"] {
            for at in [0, 1, 31, 32, 33, 63] {
                let text = format!("{}{special}{}", "x".repeat(at), "y".repeat(5));
                assert_eq!(written(&text), serde_json::to_vec(&text).unwrap(), "{special:?} at {at}");
            }
        }
        let all: String = (0..=0x80).filter_map(char::from_u32).collect();
        assert_eq!(written(&all), serde_json::to_vec(&all).unwrap());
    }
}
