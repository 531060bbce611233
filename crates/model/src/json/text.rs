//! Texts as JSON, quickly.

use super::find::{is_clean, specials, word};

/// So much of a text is escaped at a time.
const PIECE: usize = 128;

/// What each byte of a text may become at most: a backslash, a `u` and four digits.
const LONGEST: usize = 6;

/// How many bytes are written at once, whether or not all of them count.
const STEP: usize = 8;

/// Room for a piece in which every byte is escaped.
type Room = [u8; PIECE * LONGEST + STEP];

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
    let mut room = [0; PIECE * LONGEST + STEP];
    for piece in bytes.chunks(PIECE) {
        if is_clean(piece) {
            out.extend_from_slice(piece);
            continue;
        }
        let written = escape(piece, &mut room);
        out.extend_from_slice(room.get(..written).unwrap_or_default());
    }
    out.push(b'"');
}

/// Writes a piece of a text, escaped, and says how long it has become.
///
/// Eight bytes are copied together, and of these only those before the first special one count: that is less work than to find
/// out first how many to copy.
fn escape(piece: &[u8], room: &mut Room) -> usize {
    let (mut from, mut to) = (0, 0);
    while let Some(word) = word(piece, from) {
        put(room, to, word.to_le_bytes());
        let found = specials(word);
        if found == 0 {
            (from, to) = (from + STEP, to + STEP);
            continue;
        }
        let clean = found.trailing_zeros() as usize / 8;
        to += clean;
        to += put_escaped(room, to, piece.get(from + clean).copied().unwrap_or_default());
        from += clean + 1;
    }
    for byte in piece.get(from..).unwrap_or_default() {
        to += put_escaped(room, to, *byte);
    }
    to
}

/// Writes a byte of a text, escaped if need be, and says how long it has become.
fn put_escaped(room: &mut Room, at: usize, byte: u8) -> usize {
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        0..0x20 => {
            let digit = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
            put(room, at, [b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15), 0, 0]);
            return LONGEST;
        }
        _ => {
            put(room, at, [byte]);
            return 1;
        }
    };
    put(room, at, [b'\\', short]);
    2
}

/// Writes bytes where there is room for them, as there is for every piece.
fn put<const N: usize>(room: &mut Room, at: usize, bytes: [u8; N]) {
    if let Some(place) = room.get_mut(at..at + N) {
        place.copy_from_slice(&bytes);
    }
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
        for length in [127, 128, 129, 300] {
            for filler in ["\u{1}", "\"", "x\u{2}", "\u{e9}\\"] {
                let text = filler.repeat(length);
                assert_eq!(written(&text), serde_json::to_vec(&text).unwrap(), "{filler:?} {length} times");
            }
        }
        let all: String = (0..=0x80).filter_map(char::from_u32).collect();
        assert_eq!(written(&all), serde_json::to_vec(&all).unwrap());
    }
}
