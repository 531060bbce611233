//! Long words: words as random as a key, and instructions in base64.

use std::ops::Range;

use base64::{
    Engine,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use super::prefilter::Prefilter;
use crate::finding_kind::FindingKind;

/// Least length of a key.
const MIN_WORD_BYTES: usize = 20;
/// Maximum length of a key; longer words are data: pictures, archives, signatures.
const MAX_KEY_BYTES: usize = 128;
/// Maximum bytes of a word that are decoded.
const MAX_DECODED_BYTES: usize = 8_192;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const PLAIN: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
const URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);

/// Checks every long word.
///
/// It leaps: if the twentieth byte from here belongs to no word, no long word begins before it.
pub(crate) fn scan(text: &str, prefilter: &Prefilter, found: &mut impl FnMut(FindingKind, Range<usize>)) {
    let bytes = text.as_bytes();
    let mut start = 0;
    while let Some(&probe) = bytes.get(start + MIN_WORD_BYTES - 1) {
        let probed = start + MIN_WORD_BYTES - 1;
        if !IS_WORD[usize::from(probe)] {
            start = probed + 1;
            continue;
        }
        let back = bytes[start..probed].iter().rev().take_while(|b| IS_WORD[usize::from(**b)]).count();
        if back < probed - start {
            start = probed - back;
            continue;
        }
        let length =
            MIN_WORD_BYTES + bytes[probed + 1..].iter().take_while(|b| IS_WORD[usize::from(**b)]).count();
        check_word(text, start..start + length, prefilter, found);
        start += length;
    }
}

static IS_WORD: [bool; 256] = {
    let mut is_word = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        is_word[byte as usize] =
            byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'_' | b'-' | b'=');
        byte += 1;
    }
    is_word
};

fn check_word(
    text: &str,
    at: Range<usize>,
    prefilter: &Prefilter,
    found: &mut impl FnMut(FindingKind, Range<usize>),
) {
    let Some(word) = text.get(at.clone()) else { return };
    if decode_base64(word).is_some_and(|inner| prefilter.has_instruction(&inner)) {
        return found(FindingKind::EncodedInstruction, at);
    }
    let mut start = at.start;
    for piece in word.split(['/', '=']) {
        if (MIN_WORD_BYTES..=MAX_KEY_BYTES).contains(&piece.len()) && is_random(piece) {
            found(FindingKind::HighEntropy, start..start + piece.len());
        }
        start += piece.len() + 1;
    }
}

/// Text of a word in base64, if it has one.
fn decode_base64(word: &str) -> Option<String> {
    let word = word.trim_start_matches(['-', '_', '/', '=']).trim_end_matches('=');
    let word = word.get(
        ..word.len().min(MAX_DECODED_BYTES) / 4 * 4
            + if word.len() <= MAX_DECODED_BYTES { word.len() % 4 } else { 0 },
    )?;
    let is_url = word.bytes().any(|b| matches!(b, b'-' | b'_'));
    let bytes = if is_url { URL.decode(word) } else { PLAIN.decode(word) }.ok()?;
    let text = String::from_utf8(bytes).or_else(|error| {
        // Only the end may be cut.
        let valid = error.utf8_error().valid_up_to();
        let mut bytes = error.into_bytes();
        let is_cut = bytes.len() - valid < 4;
        bytes.truncate(valid);
        if is_cut { String::from_utf8(bytes).map_err(drop) } else { Err(()) }
    });
    text.ok().filter(|text| text.bytes().any(|b| b == b' ') || !text.is_ascii())
}

/// True for letters of both cases and digits, well mixed, with few repetitions.
fn is_random(word: &str) -> bool {
    let (mut counts, mut classes, mut changes) = ([0_u8; 128], [0_usize; 4], 0);
    let mut last = 4;
    for byte in word.bytes() {
        let class = match byte {
            b'0'..=b'9' => 0,
            b'a'..=b'z' => 1,
            b'A'..=b'Z' => 2,
            _ => 3,
        };
        counts[usize::from(byte & 127)] = counts[usize::from(byte & 127)].saturating_add(1);
        classes[class] += 1;
        changes += usize::from(class != last);
        last = class;
    }
    let length = word.len();
    classes[0] >= 2
        && classes[1] >= 2
        && classes[2] >= 2
        && classes[3] * 5 <= length
        && changes * 5 >= length * 2
        && entropy(&counts, length) >= 3.6
}

/// Shannon entropy in bits per character.
fn entropy(counts: &[u8; 128], length: usize) -> f64 {
    let length = length as f64;
    let share = |count: &u8| f64::from(*count) / length;
    counts.iter().filter(|count| **count > 0).map(share).map(|p| -p * p.log2()).sum()
}
