//! The automaton for all words that keys and phrases have in them.
//!
//! An anchor is a word that clean text hardly ever has. Where one stands its rule reads on: a key's alphabet and length, or a
//! pattern in a window around a phrase.

use std::{ops::Range, sync::LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::Regex;

use super::{
    ceil, floor,
    keys::{self, KEYS},
    phrases::{MARKERS, PHRASES},
};
use crate::{
    guards::CompileError,
    kind::{Kind, Kinds},
};

/// How far a phrase may begin before its anchor, and end behind it.
const BEFORE: usize = 120;
const BEHIND: usize = 240;
/// How near to the last window the next one of the same phrase may begin.
const STRIDE: usize = 80;

pub(crate) struct Anchors {
    words: AhoCorasick,
    /// What each word is an anchor of.
    rules: Vec<Rule>,
    phrases: Vec<(Kind, Regex)>,
}

#[derive(Clone, Copy)]
enum Rule {
    Key(usize),
    Assigned,
    Phrase(usize),
    Marker(Kind),
}

/// The patterns of phrases, built once for all guardrails: that takes longer than everything else.
static PATTERNS: LazyLock<Vec<Result<Regex, regex::Error>>> =
    LazyLock::new(|| PHRASES.iter().map(|phrase| Regex::new(phrase.pattern)).collect());

// === impl Anchors ===

impl Anchors {
    pub(crate) fn new(kinds: Kinds) -> Result<Self, CompileError> {
        let (mut words, mut rules, mut phrases) = (Vec::new(), Vec::new(), Vec::new());
        let mut add = |word: &'static str, rule: Rule| {
            words.push(word);
            rules.push(rule);
        };
        for (n, key) in KEYS.iter().enumerate().filter(|(_, key)| kinds.has(key.kind)) {
            add(key.prefix, Rule::Key(n));
        }
        if kinds.has(Kind::AssignedSecret) {
            keys::NAMES.iter().for_each(|name| add(name, Rule::Assigned));
        }
        // What is hidden or wrapped is any of the others: then all of them are looked for.
        let is_deep = kinds.has(Kind::HiddenText) || kinds.has(Kind::EncodedInstruction);
        for (n, phrase) in PHRASES.iter().enumerate() {
            if !is_deep && !kinds.has(phrase.kind) {
                continue;
            }
            // Asked for here and not before: whoever wants no phrases need not hold their patterns, which are many megabytes.
            let Some(pattern) = PATTERNS.get(n) else { continue };
            let pattern = pattern.clone().map_err(|error| CompileError::BuiltIn(error.to_string()))?;
            phrase.anchors.iter().for_each(|word| add(word, Rule::Phrase(phrases.len())));
            phrases.push((phrase.kind, pattern));
        }
        for (kind, word) in MARKERS.iter().filter(|(kind, _)| is_deep || kinds.has(*kind)) {
            add(word, Rule::Marker(*kind));
        }
        let words = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&words)
            .map_err(|error| CompileError::BuiltIn(error.to_string()))?;
        Ok(Self { words, rules, phrases })
    }

    /// Has every place looked at where an anchor stands.
    pub(crate) fn scan(&self, text: &str, found: &mut impl FnMut(Kind, Range<usize>)) {
        if self.rules.is_empty() {
            return;
        }
        // Up to where keys, values and each phrase were read: nothing is read twice for the same.
        let (mut keyed, mut valued, mut searched) = (0, 0, Vec::new());
        for anchor in self.words.find_overlapping_iter(text) {
            let at = anchor.range();
            match self.rules[anchor.pattern().as_usize()] {
                Rule::Key(_) if at.start < keyed => {}
                Rule::Key(n) => {
                    if let Some(place) = keys::read(&KEYS[n], text, at.start) {
                        keyed = place.end;
                        found(KEYS[n].kind, place);
                    }
                }
                Rule::Assigned if at.start < valued => {}
                Rule::Assigned => valued = keys::assigned(text, at, found),
                Rule::Marker(kind) => found(kind, at),
                Rule::Phrase(n) => {
                    searched.resize(self.phrases.len(), 0);
                    if at.start >= searched[n] {
                        searched[n] = at.start + STRIDE;
                        self.phrase(n, text, at.start, found);
                    }
                }
            }
        }
    }

    /// Whether an instruction stands in a text.
    pub(crate) fn has_instruction(&self, text: &str) -> bool {
        let mut is_there = false;
        self.scan(text, &mut |kind, _| is_there |= is_instruction(kind));
        is_there
    }

    fn phrase(&self, n: usize, text: &str, at: usize, found: &mut impl FnMut(Kind, Range<usize>)) {
        let window = floor(text, at.saturating_sub(BEFORE))..ceil(text, at + BEHIND);
        let (kind, pattern) = &self.phrases[n];
        for hit in pattern.find_iter(&text[window.clone()]) {
            found(*kind, window.start + hit.start()..window.start + hit.end());
        }
    }
}

pub(crate) const fn is_instruction(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::InstructionOverride
            | Kind::PromptLeak
            | Kind::Persona
            | Kind::Concealment
            | Kind::RoleMarker
            | Kind::Exfiltration
    )
}
