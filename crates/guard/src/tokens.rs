//! How many tokens a text has, nearly.
//!
//! Every model counts differently, and a tokenizer costs more than all other checks. So this is an estimate that rather says too
//! much: one token for four ASCII characters, one for each other character.

/// An estimate of a text's tokens.
pub fn estimate(text: &str) -> usize {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    // Every other character has exactly one byte that begins it.
    let others = text.bytes().filter(|byte| *byte >= 0xC0).count();
    ascii.div_ceil(4) + others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_ascii_characters_are_a_token_and_so_is_any_other() {
        assert_eq!(estimate(""), 0);
        assert_eq!(estimate("abcd"), 1);
        assert_eq!(estimate("abcde"), 2);
        assert_eq!(estimate("日本"), 2);
        assert_eq!(estimate("é👍ab"), 3);
    }
}
