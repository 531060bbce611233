//! Finds the bytes that mean something inside of JSON's texts, several at a time.

/// How many bytes are looked at together where nothing is expected.
const BLOCK: usize = 32;

/// A one in each byte.
const ONES: u64 = u64::MAX / 255;

/// Where the first byte at or behind `at` is that cannot stand for itself in a text: a quote, a backslash or a control
/// character. The length of `bytes` when there is none.
pub(super) fn special(bytes: &[u8], mut at: usize) -> usize {
    let mut clean = 0;
    while let Some(word) = word(bytes, at) {
        let found = specials(word);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
        clean += 1;
        // Names are short; what is longer is words, which go on for a while. Behind the last clean block it is not far.
        if clean == 2 {
            at = past_clean_blocks(bytes, at);
        }
    }
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| is_special(*byte)).unwrap_or(rest.len())
}

/// Whether every byte can stand for itself in a text. Most texts are names and have nothing to escape, so the whole of them is
/// looked at in pieces that may overlap, and nothing has to be found.
pub(super) fn is_clean(bytes: &[u8]) -> bool {
    if let (Some((first, rest)), Some(last)) = (bytes.split_first_chunk::<16>(), bytes.last_chunk::<16>()) {
        return !has_special(first)
            && !has_special(last)
            && rest.as_chunks::<16>().0.iter().all(|piece| !has_special(piece));
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        return specials(u64::from_le_bytes(*first)) | specials(u64::from_le_bytes(*last)) == 0;
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let both = u64::from(u32::from_le_bytes(*first)) | (u64::from(u32::from_le_bytes(*last)) << 32);
        return specials(both) == 0;
    }
    bytes.iter().all(|byte| !is_special(*byte))
}

/// Whether a byte cannot stand for itself in a text.
pub(super) const fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// The eight bytes from `at`, the first one lowest.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let eight = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*eight))
}

/// Has the highest bit of the lowest special byte set, and none below it; zero when no byte is special.
pub(super) const fn specials(word: u64) -> u64 {
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    // A byte that is smaller than what is taken from it borrows from the next one, so only the lowest can be trusted.
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let quote = quote.wrapping_sub(ONES) & !quote;
    let backslash = backslash.wrapping_sub(ONES) & !backslash;
    (control | quote | backslash) & (ONES << 7)
}

fn past_clean_blocks(bytes: &[u8], mut at: usize) -> usize {
    while let Some(block) = bytes.get(at..).and_then(|rest| rest.first_chunk::<BLOCK>())
        && !has_special(block)
    {
        at += BLOCK;
    }
    at
}

/// Looks at every byte, whatever the others are: that is what makes it quick.
fn has_special<const N: usize>(block: &[u8; N]) -> bool {
    let look = |byte: u8| u8::from(byte < 0x20) | u8::from(byte == b'"') | u8::from(byte == b'\\');
    block.iter().fold(0, |found, byte| found | look(*byte)) != 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_special_byte_is_found(bytes in prop::collection::vec(any::<u8>(), 0..80), at in 0..80_usize) {
            let rest = bytes.get(at..).unwrap_or_default();
            let expected = at + rest.iter().position(|byte| is_special(*byte)).unwrap_or(rest.len());
            prop_assert_eq!(special(&bytes, at), expected);
        }

        #[test]
        fn a_text_is_clean_when_nothing_is_special(text in "[ -~\u{e9}]{0,70}", bytes in prop::collection::vec(any::<u8>(), 0..24)) {
            prop_assert_eq!(is_clean(text.as_bytes()), !text.bytes().any(is_special));
            prop_assert_eq!(is_clean(&bytes), !bytes.iter().any(|byte| is_special(*byte)));
        }
    }

    #[test]
    fn a_text_of_any_length_is_clean_until_one_byte_is_not() {
        for length in 0..70 {
            let mut bytes = vec![b'x'; length];
            assert!(is_clean(&bytes), "{length}");
            for at in 0..length {
                for byte in [b'"', b'\\', 0, 0x1f] {
                    bytes[at] = byte;
                    assert!(!is_clean(&bytes), "{byte} at {at} of {length}");
                }
                bytes[at] = 0xc3;
                assert!(is_clean(&bytes), "{at} of {length}");
            }
        }
    }

    #[test]
    fn it_is_found_wherever_it_stands_in_a_long_text() {
        for byte in [b'"', b'\\', 0, 0x1f] {
            for at in 0..200 {
                let mut bytes = vec![b'x'; 200];
                bytes[at] = byte;
                assert_eq!(special(&bytes, 0), at, "{byte}");
            }
        }
        assert_eq!(special("\u{fc}\u{7f}\u{80} x".repeat(30).as_bytes(), 0), 210, "nothing else is special");
    }
}
