//! The one pass: finds the few places in a text that are worth a closer look, and has them looked at.
//!
//! Clean text is what there is most of, so it must cost next to nothing. Three filters go over it: an automaton for the words
//! that keys and phrases have in them (`anchors`), a comparison of 64 bytes at a time for digits, `@` and whatever is not ASCII,
//! and leaps from word to word that stop at long ones. Only what they point at is read by the rules in the modules below, each of
//! which looks at a bounded stretch around that place. So the time is linear in the text, whatever is in it.

mod anchors;
mod digits;
mod hidden;
mod keys;
mod mail;
mod phrases;
mod words;

use std::ops::Range;

use self::anchors::Anchors;
pub(crate) use self::keys::KEYS;
use crate::{
    guards::CompileError,
    kind::{Kind, Kinds},
};

/// How many bytes are compared at once.
const BLOCK: usize = 64;

/// Nothing in ASCII that is looked for is shorter: `a@b.de`, `[INST]`. Most names of members are.
const SHORTEST: usize = 6;

/// Looks for some kinds.
pub(crate) struct Scanner {
    kinds: Kinds,
    anchors: Anchors,
    wants: Wants,
}

/// What was found, and where in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) kind: Kind,
    pub(crate) at: Range<usize>,
}

/// Which filters are needed for the kinds.
#[derive(Clone, Copy)]
struct Wants {
    digits: bool,
    at_signs: bool,
    beyond_ascii: bool,
    words: bool,
}

// === impl Scanner ===

impl Scanner {
    pub(crate) fn new(kinds: Kinds) -> Result<Self, CompileError> {
        let any = |of: &[Kind]| kinds.has_any(Kinds::of(of));
        let wants = Wants {
            digits: any(&[Kind::UsSsn, Kind::PaymentCard, Kind::Phone]),
            at_signs: any(&[Kind::Email, Kind::UrlPassword]),
            beyond_ascii: any(&[Kind::HiddenText]),
            words: any(&[Kind::HighEntropy, Kind::EncodedInstruction]),
        };
        Ok(Self { kinds, anchors: Anchors::new(kinds)?, wants })
    }

    /// Adds what is found in a text, in order. `key` is the member that the text is the value of.
    pub(crate) fn scan(&self, text: &str, key: Option<&str>, hits: &mut Vec<Hit>) {
        if text.len() < SHORTEST && text.is_ascii() {
            return;
        }
        let first = hits.len();
        let mut found = |kind: Kind, at: Range<usize>| {
            if self.kinds.has(kind) {
                hits.push(Hit { kind, at });
            }
        };
        self.anchors.scan(text, &mut found);
        self.blocks(text, &mut found);
        if self.wants.words {
            words::scan(text, &self.anchors, &mut found);
        }
        if let Some(key) = key {
            keys::named(key, text, &mut found);
        }
        if hits.len() > first + 1 {
            tidy(hits, first);
        }
    }

    fn blocks(&self, text: &str, found: &mut impl FnMut(Kind, Range<usize>)) {
        let Wants { digits, at_signs, beyond_ascii, .. } = self.wants;
        if !(digits || at_signs || beyond_ascii) {
            return;
        }
        let (mut read, mut mailed, mut is_beyond) = (0, 0, false);
        for (n, block) in text.as_bytes().chunks(BLOCK).enumerate() {
            let seen = Seen::of(block);
            let span = n * BLOCK..n * BLOCK + block.len();
            if digits && seen.digit {
                read = digits::scan(text, span.start.max(read)..span.end, found);
            }
            if at_signs && seen.at_sign {
                mailed = mail::scan(text, span.start.max(mailed)..span.end, found);
            }
            is_beyond = is_beyond || (beyond_ascii && seen.beyond_ascii && hidden::is_suspicious(text, span));
        }
        if is_beyond {
            hidden::scan(text, &self.anchors, found);
        }
    }
}

/// What is in a block.
struct Seen {
    digit: bool,
    at_sign: bool,
    beyond_ascii: bool,
}

// === impl Seen ===

impl Seen {
    /// Written without branches, so that the compiler compares many bytes at a time.
    fn of(block: &[u8]) -> Self {
        let (mut digit, mut at_sign, mut high) = (0_u8, 0_u8, 0_u8);
        for byte in block {
            digit |= u8::from(byte.wrapping_sub(b'0') < 10);
            at_sign |= u8::from(*byte == b'@');
            high |= *byte;
        }
        Self { digit: digit != 0, at_sign: at_sign != 0, beyond_ascii: high >= 0x80 }
    }
}

/// Puts hits in order, each place once. A vague kind gives way to one that says more.
fn tidy(hits: &mut Vec<Hit>, first: usize) {
    hits[first..].sort_by_key(|hit| (hit.at.start, hit.kind.is_vague(), std::cmp::Reverse(hit.at.end)));
    let mut kept: Vec<Hit> = Vec::with_capacity(hits.len() - first);
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
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The nearest place at or behind `at` where a character begins.
fn ceil(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests;
