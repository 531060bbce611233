//! Long words: what looks as random as a key, and what is an instruction once it is decoded.

use std::ops::Range;

use base64::{
    Engine,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use super::anchors::Anchors;
use crate::kind::Kind;

/// Shorter words are no keys.
const LONG: usize = 20;
/// Longer ones are data: pictures, archives, signatures.
const LONGEST_KEY: usize = 128;
/// So much of a word is decoded.
const DECODED: usize = 8_192;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const PLAIN: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
const URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);

/// Looks at every long word.
///
/// It leaps: where the twentieth character from here belongs to no word, no long word can begin before it.
pub(crate) fn scan(text: &str, anchors: &Anchors, found: &mut impl FnMut(Kind, Range<usize>)) {
    let bytes = text.as_bytes();
    let mut start = 0;
    while let Some(&probe) = bytes.get(start + LONG - 1) {
        let probed = start + LONG - 1;
        if !IS_WORD[usize::from(probe)] {
            start = probed + 1;
            continue;
        }
        let back = bytes[start..probed].iter().rev().take_while(|b| IS_WORD[usize::from(**b)]).count();
        if back < probed - start {
            start = probed - back;
            continue;
        }
        let length = LONG + bytes[probed + 1..].iter().take_while(|b| IS_WORD[usize::from(**b)]).count();
        word(text, start..start + length, anchors, found);
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

fn word(text: &str, at: Range<usize>, anchors: &Anchors, found: &mut impl FnMut(Kind, Range<usize>)) {
    let Some(word) = text.get(at.clone()) else { return };
    if decoded(word).is_some_and(|inner| anchors.has_instruction(&inner)) {
        return found(Kind::EncodedInstruction, at);
    }
    let mut start = at.start;
    for piece in word.split(['/', '=']) {
        if (LONG..=LONGEST_KEY).contains(&piece.len()) && is_random(piece) {
            found(Kind::HighEntropy, start..start + piece.len());
        }
        start += piece.len() + 1;
    }
}

/// What a word says in base64, if it says something.
fn decoded(word: &str) -> Option<String> {
    let word = word.trim_start_matches(['-', '_', '/', '=']).trim_end_matches('=');
    let word =
        word.get(..word.len().min(DECODED) / 4 * 4 + if word.len() <= DECODED { word.len() % 4 } else { 0 })?;
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

/// Letters of both cases and digits, well mixed, and hardly one of them twice.
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

/// Shannon's measure, in bits for each character.
fn entropy(counts: &[u8; 128], length: usize) -> f64 {
    let length = length as f64;
    let share = |count: &u8| f64::from(*count) / length;
    counts.iter().filter(|count| **count > 0).map(share).map(|p| -p * p.log2()).sum()
}
