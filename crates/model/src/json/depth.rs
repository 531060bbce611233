//! How deep JSON may go.
//!
//! A reader that builds a tree goes down with it, and most stop at 128 levels: what is deeper could be carried, but not
//! looked at, and not by those it is meant for. So it is refused where it comes in, with some room left for envelopes.

/// Lists and objects may lie this deep inside each other.
pub const DEEPEST: usize = 100;

/// Whether lists and objects lie deeper inside each other than [`DEEPEST`]. The text need not be sound.
///
/// Almost all texts have fewer brackets than that altogether, and counting them is quick.
pub fn is_too_deep(json: &[u8]) -> bool {
    json.len() > DEEPEST && openings(json) > DEEPEST && depth(json) > DEEPEST
}

/// How many brackets are opened, inside of texts too. Sums of a byte each, over as many as fit, are what a processor adds
/// up many at a time.
fn openings(json: &[u8]) -> usize {
    // The two differ in one bit.
    let is_opening = |byte: &u8| u8::from(byte | 0x20 == b'{');
    json.chunks(usize::from(u8::MAX)).map(|some| usize::from(some.iter().map(is_opening).sum::<u8>())).sum()
}

fn depth(json: &[u8]) -> usize {
    let (mut deepest, mut depth) = (0_usize, 0_usize);
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => skip_text(&mut bytes),
            _ => {}
        }
    }
    deepest
}

/// Goes to the end of a text whose first quote is behind us.
fn skip_text(bytes: &mut std::slice::Iter<'_, u8>) {
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
    fn what_is_deeper_than_the_limit_is_too_deep_and_nothing_else_is() {
        assert!(!is_too_deep(nested(DEEPEST).as_bytes()));
        assert!(is_too_deep(nested(DEEPEST + 1).as_bytes()));
        assert!(is_too_deep(nested(1_000_000).as_bytes()));
        let wide = format!("[{}]", vec!["{}"; 10 * DEEPEST].join(","));
        assert!(!is_too_deep(wide.as_bytes()));
        let text = serde_json::to_string(&format!("\\\"{}", nested(2 * DEEPEST))).unwrap();
        assert!(!is_too_deep(text.as_bytes()), "brackets in a text are none");
        assert!(serde_json::from_str::<serde_json::Value>(&nested(DEEPEST)).is_ok(), "it can be read");
    }
}
