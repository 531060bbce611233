//! Scanner: finds the few places in a text that need a closer check.
//!
//! Most text is clean, so it must cost next to nothing. Three filters run over it: an automaton for words that occur in keys and phrases
//! (`prefilter`), a comparison of 64 bytes at a time for digits, `@` and non-ASCII, and leaps from word to word that stop at long ones.
//! Only the places they find are read by the rules in the modules below, each of which reads a bounded range around the place. So the time
//! is linear in the text, whatever it contains.

mod email;
mod entropy;
mod hidden_text;
mod keys;
mod numbers;
mod phrases;
mod prefilter;

use std::ops::Range;

pub(crate) use self::keys::KEYS;
use self::prefilter::Prefilter;
use crate::{
    finding_kind::{FindingKind, FindingKindSet},
    ruleset::CompileError,
};

/// Bytes compared at once.
const BLOCK_BYTES: usize = 64;

/// Length of the shortest ASCII finding: `a@b.de`, `[INST]`. Most names of members are shorter.
const MIN_SCANNED_BYTES: usize = 6;

/// Scanner for some kinds.
pub(crate) struct Scanner {
    kinds: FindingKindSet,
    prefilter: Prefilter,
    filters: ScanFilters,
}

/// Finding in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScanHit {
    pub(crate) kind: FindingKind,
    pub(crate) at: Range<usize>,
}

/// Filters that the kinds need.
#[derive(Clone, Copy)]
struct ScanFilters {
    digits: bool,
    at_signs: bool,
    beyond_ascii: bool,
    words: bool,
}

// === impl Scanner ===

impl Scanner {
    pub(crate) fn new(kinds: FindingKindSet) -> Result<Self, CompileError> {
        let any = |of: &[FindingKind]| kinds.intersects(FindingKindSet::new(of));
        let filters = ScanFilters {
            digits: any(&[FindingKind::UsSsn, FindingKind::PaymentCard, FindingKind::Phone]),
            at_signs: any(&[FindingKind::Email, FindingKind::UrlPassword]),
            beyond_ascii: any(&[FindingKind::HiddenText]),
            words: any(&[FindingKind::HighEntropy, FindingKind::EncodedInstruction]),
        };
        Ok(Self { kinds, prefilter: Prefilter::new(kinds)?, filters })
    }

    /// Adds all findings in a text, in order. `key` is the member that the text is the value of.
    pub(crate) fn scan(&self, text: &str, key: Option<&str>, hits: &mut Vec<ScanHit>) {
        if text.len() < MIN_SCANNED_BYTES && text.is_ascii() {
            return;
        }
        let first = hits.len();
        let mut found = |kind: FindingKind, at: Range<usize>| {
            if self.kinds.contains(kind) {
                hits.push(ScanHit { kind, at });
            }
        };
        self.prefilter.scan(text, &mut found);
        self.scan_blocks(text, &mut found);
        if self.filters.words {
            entropy::scan(text, &self.prefilter, &mut found);
        }
        if let Some(key) = key {
            keys::scan_member(key, text, &mut found);
        }
        if hits.len() > first + 1 {
            merge_overlaps(hits, first);
        }
    }

    fn scan_blocks(&self, text: &str, found: &mut impl FnMut(FindingKind, Range<usize>)) {
        let ScanFilters { digits, at_signs, beyond_ascii, .. } = self.filters;
        if !(digits || at_signs || beyond_ascii) {
            return;
        }
        let (mut read, mut mailed, mut is_beyond) = (0, 0, false);
        for (n, block) in text.as_bytes().chunks(BLOCK_BYTES).enumerate() {
            let seen = BlockBytes::scan(block);
            let span = n * BLOCK_BYTES..n * BLOCK_BYTES + block.len();
            if digits && seen.digit {
                read = numbers::scan(text, span.start.max(read)..span.end, found);
            }
            if at_signs && seen.at_sign {
                mailed = email::scan(text, span.start.max(mailed)..span.end, found);
            }
            is_beyond =
                is_beyond || (beyond_ascii && seen.beyond_ascii && hidden_text::is_suspicious(text, span));
        }
        if is_beyond {
            hidden_text::scan(text, &self.prefilter, found);
        }
    }
}

/// Byte classes in a block.
struct BlockBytes {
    digit: bool,
    at_sign: bool,
    beyond_ascii: bool,
}

// === impl BlockBytes ===

impl BlockBytes {
    /// Branch-free, so that the compiler compares many bytes at a time.
    fn scan(block: &[u8]) -> Self {
        let (mut digit, mut at_sign, mut high) = (0_u8, 0_u8, 0_u8);
        for byte in block {
            digit |= u8::from(byte.wrapping_sub(b'0') < 10);
            at_sign |= u8::from(*byte == b'@');
            high |= *byte;
        }
        Self { digit: digit != 0, at_sign: at_sign != 0, beyond_ascii: high >= 0x80 }
    }
}

/// Sorts findings and merges overlaps. A vague kind yields to a specific one.
fn merge_overlaps(hits: &mut Vec<ScanHit>, first: usize) {
    hits[first..].sort_by_key(|hit| (hit.at.start, hit.kind.is_vague(), std::cmp::Reverse(hit.at.end)));
    let mut kept: Vec<ScanHit> = Vec::with_capacity(hits.len() - first);
    for hit in hits.drain(first..) {
        match kept.last_mut() {
            Some(last) if hit.at.start < last.at.end => {
                if last.kind.is_vague() && !hit.kind.is_vague() {
                    let start = last.at.start;
                    *last = hit;
                    last.at.start = start;
                } else {
                    last.at.end = last.at.end.max(hit.at.end);
                }
            }
            _ => kept.push(hit),
        }
    }
    hits.append(&mut kept);
}

/// The nearest place at or before `at` where a character begins.
fn floor_char(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The nearest place at or behind `at` where a character begins.
fn ceil_char(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests;
