//! Limit of nesting, checked before a text is read.
//!
//! `serde_json` skips raw values without recursion, so it has no limit of its own for them; code that reads a payload later has.

/// Greatest depth of lists and objects inside each other.
pub const MAX_DEPTH: usize = 100;

/// Reports whether lists and objects are nested deeper than [`MAX_DEPTH`]. The text need not be valid JSON.
pub fn is_too_deep(json: &[u8]) -> bool {
    let mut depth = 0_usize;
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

/// Advances to the end of a string whose opening quote has been read.
fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> String {
        format!("{}{}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn only_a_text_beyond_the_limit_is_too_deep() {
        assert!(!is_too_deep(nested(MAX_DEPTH).as_bytes()));
        assert!(is_too_deep(nested(MAX_DEPTH + 1).as_bytes()));
        assert!(is_too_deep(nested(1_000_000).as_bytes()));
        let wide = format!("[{}]", vec!["{}"; 10 * MAX_DEPTH].join(","));
        assert!(!is_too_deep(wide.as_bytes()));
        let text = serde_json::to_string(&format!("\\\"{}", nested(2 * MAX_DEPTH))).unwrap();
        assert!(!is_too_deep(text.as_bytes()), "brackets in a string do not count");
        assert!(serde_json::from_str::<serde_json::Value>(&nested(MAX_DEPTH)).is_ok(), "it can be read");
    }
}
