//! Texts as JSON, quickly.

/// How many bytes are looked at together.
const TOGETHER: usize = 32;

/// Appends `text` as a JSON string.
///
/// Names and addresses hardly ever have a character that needs escaping, so whole blocks are looked through for one; a
/// text that has one is left to those who write JSON for a living.
pub fn push_text(out: &mut Vec<u8>, text: &str) {
    if text.as_bytes().chunks(TOGETHER).any(needs_escape) {
        // Writing to memory does not fail, and any text can be said in JSON.
        let _ = serde_json::to_writer(out, text);
        return;
    }
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Looks at every byte, whatever the others are: that is what makes it quick.
fn needs_escape(block: &[u8]) -> bool {
    block.iter().fold(false, |needs, &byte| needs | (byte < 0x20) | (byte == b'"') | (byte == b'\\'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_is_written_as_everybody_writes_it(text in ".{0,80}") {
            let mut out = Vec::new();
            push_text(&mut out, &text);
            prop_assert_eq!(out, serde_json::to_vec(&text).unwrap());
        }
    }

    #[test]
    fn whatever_needs_escaping_is_escaped_wherever_it_stands() {
        for special in ["\"", "\\", "\n", "\u{0}", "\u{1f}"] {
            for at in [0, 1, 31, 32, 33, 63] {
                let text = format!("{}{special}{}", "x".repeat(at), "y".repeat(5));
                let mut out = Vec::new();
                push_text(&mut out, &text);
                assert_eq!(out, serde_json::to_vec(&text).unwrap(), "{special:?} at {at}");
            }
        }
    }
}
