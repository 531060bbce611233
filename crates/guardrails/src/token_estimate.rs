//! Estimated number of tokens of a text.
//!
//! Every model counts differently, and a tokenizer costs more than all other checks. So this is an estimate that errs on the high side: one
//! token for four ASCII characters, one for each other character.

/// Estimates the number of tokens of a text.
pub fn estimate_tokens(text: &str) -> usize {
    let (mut ascii, mut others) = (0, 0);
    // A block's counts fit into bytes, so that the compiler can count many at a time.
    for block in text.as_bytes().chunks(128) {
        ascii += usize::from(block.iter().map(|byte| u8::from(*byte < 0x80)).sum::<u8>());
        // Every other character has exactly one byte that begins it.
        others += usize::from(block.iter().map(|byte| u8::from(*byte >= 0xC0)).sum::<u8>());
    }
    ascii.div_ceil(4) + others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_ascii_characters_are_a_token_and_so_is_any_other() {
        assert_eq!(estimate_tokens(""), 0);
        assert_eq!(estimate_tokens("abcd"), 1);
        assert_eq!(estimate_tokens("abcde"), 2);
        assert_eq!(estimate_tokens("日本"), 2);
        assert_eq!(estimate_tokens("é👍ab"), 3);
    }
}
