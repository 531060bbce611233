//! Prefilter: automaton for all words that occur in keys and phrases.
//!
//! An anchor is a word that clean text rarely has. Its rule reads on from there: the alphabet and length of a key, or a pattern in a window
//! around a phrase.

use std::{ops::Range, sync::LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::Regex;

use super::{
    ceil_char, floor_char,
    keys::{self, KEYS},
    phrases::{MARKERS, PHRASES},
};
use crate::{
    finding_kind::{FindingKind, FindingKindSet},
    ruleset::CompileError,
};

/// Bytes that a phrase may begin before its anchor, and end behind it.
const BYTES_BEFORE_ANCHOR: usize = 120;
const BYTES_AFTER_ANCHOR: usize = 240;
/// Least distance of two windows of one phrase.
const MIN_WINDOW_STEP: usize = 80;

pub(crate) struct Prefilter {
    words: AhoCorasick,
    /// Rule of each word.
    rules: Vec<AnchorTarget>,
    phrases: Vec<(FindingKind, Regex)>,
}

#[derive(Clone, Copy)]
enum AnchorTarget {
    Key(usize),
    Assigned,
    Phrase(usize),
    Marker(FindingKind),
}

/// Patterns of phrases, compiled once for all guardrails, because that is the slowest part.
static PHRASE_PATTERNS: LazyLock<Vec<Result<Regex, regex::Error>>> =
    LazyLock::new(|| PHRASES.iter().map(|phrase| Regex::new(phrase.pattern)).collect());

// === impl Prefilter ===

impl Prefilter {
    pub(crate) fn new(kinds: FindingKindSet) -> Result<Self, CompileError> {
        let (mut words, mut rules, mut phrases) = (Vec::new(), Vec::new(), Vec::new());
        let mut add = |word: &'static str, rule: AnchorTarget| {
            words.push(word);
            rules.push(rule);
        };
        for (n, key) in KEYS.iter().enumerate().filter(|(_, key)| kinds.contains(key.kind)) {
            add(key.prefix, AnchorTarget::Key(n));
        }
        if kinds.contains(FindingKind::AssignedSecret) {
            keys::SECRET_NAMES.iter().for_each(|name| add(name, AnchorTarget::Assigned));
        }
        // Hidden and encoded text may contain any other kind, so all of them are needed.
        let is_deep =
            kinds.contains(FindingKind::HiddenText) || kinds.contains(FindingKind::EncodedInstruction);
        for (n, phrase) in PHRASES.iter().enumerate() {
            if !is_deep && !kinds.contains(phrase.kind) {
                continue;
            }
            // Compiled lazily: the patterns take many megabytes, which checks without phrases need not hold.
            let Some(pattern) = PHRASE_PATTERNS.get(n) else { continue };
            let pattern = pattern.clone().map_err(|error| CompileError::BuiltIn(error.to_string()))?;
            phrase.anchors.iter().for_each(|word| add(word, AnchorTarget::Phrase(phrases.len())));
            phrases.push((phrase.kind, pattern));
        }
        for (kind, word) in MARKERS.iter().filter(|(kind, _)| is_deep || kinds.contains(*kind)) {
            add(word, AnchorTarget::Marker(*kind));
        }
        let words = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&words)
            .map_err(|error| CompileError::BuiltIn(error.to_string()))?;
        Ok(Self { words, rules, phrases })
    }

    /// Runs the rule of each anchor in a text.
    pub(crate) fn scan(&self, text: &str, found: &mut impl FnMut(FindingKind, Range<usize>)) {
        if self.rules.is_empty() {
            return;
        }
        // Ends of the ranges already read for keys, values and phrases, so that nothing is read twice.
        let (mut keyed, mut valued, mut searched) = (0, 0, Vec::new());
        for anchor in self.words.find_overlapping_iter(text) {
            let at = anchor.range();
            match self.rules[anchor.pattern().as_usize()] {
                AnchorTarget::Key(_) if at.start < keyed => {}
                AnchorTarget::Key(n) => {
                    if let Some(place) = keys::read_key(&KEYS[n], text, at.start) {
                        keyed = place.end;
                        found(KEYS[n].kind, place);
                    }
                }
                AnchorTarget::Assigned if at.start < valued => {}
                AnchorTarget::Assigned => valued = keys::scan_assignment(text, at, found),
                AnchorTarget::Marker(kind) => found(kind, at),
                AnchorTarget::Phrase(n) => {
                    searched.resize(self.phrases.len(), 0);
                    if at.start >= searched[n] {
                        searched[n] = at.start + MIN_WINDOW_STEP;
                        self.phrase(n, text, at.start, found);
                    }
                }
            }
        }
    }

    /// True if a text contains an instruction.
    pub(crate) fn has_instruction(&self, text: &str) -> bool {
        let mut is_there = false;
        self.scan(text, &mut |kind, _| is_there |= is_instruction(kind));
        is_there
    }

    fn phrase(&self, n: usize, text: &str, at: usize, found: &mut impl FnMut(FindingKind, Range<usize>)) {
        let window = floor_char(text, at.saturating_sub(BYTES_BEFORE_ANCHOR))
            ..ceil_char(text, at + BYTES_AFTER_ANCHOR);
        let (kind, pattern) = &self.phrases[n];
        for hit in pattern.find_iter(&text[window.clone()]) {
            found(*kind, window.start + hit.start()..window.start + hit.end());
        }
    }
}

pub(crate) const fn is_instruction(kind: FindingKind) -> bool {
    matches!(
        kind,
        FindingKind::InstructionOverride
            | FindingKind::PromptLeak
            | FindingKind::Persona
            | FindingKind::Concealment
            | FindingKind::RoleMarker
            | FindingKind::Exfiltration
    )
}
