//! Hidden text: characters that people do not see, or that look like others. A model reads them all the same.

use std::ops::Range;

use super::prefilter::{Prefilter, is_instruction};
use crate::finding_kind::FindingKind;

/// True if a non-ASCII block may have hidden text, by its bytes alone.
pub(crate) fn is_suspicious(text: &str, block: Range<usize>) -> bool {
    let bytes = text.as_bytes();
    let at = |n: usize| bytes.get(n).copied().unwrap_or_default();
    // A Cyrillic letter is suspicious only beside a Latin one.
    let is_beside = |n: usize| n > 0 && at(n - 1).is_ascii_alphabetic() || at(n + 2).is_ascii_alphabetic();
    block.into_iter().any(|n| match (at(n), at(n + 1), at(n + 2)) {
        (0xC2, 0xAD, _) | (0xE1, 0xA0, 0x8E) | (0xE2, 0x80, 0x8B..=0x8F | 0xAD..=0xAE) => true,
        (0xE2, 0x81, 0xA0..=0xA4) | (0xEF, 0xB8..=0xBD, _) | (0xF0, 0x9D, _) | (0xF3, 0xA0, _) => true,
        (0xD0 | 0xD1, ..) => is_beside(n),
        _ => false,
    })
}

/// Scans a text that is not all ASCII.
pub(crate) fn scan(text: &str, prefilter: &Prefilter, found: &mut impl FnMut(FindingKind, Range<usize>)) {
    let mut broken = Vec::new();
    let (mut is_foldable, mut last, mut told, mut breaks) = (false, None, 0, 0);
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        // Bytes of the last finding are not checked again.
        if at >= told
            && let Some(end) = end_of_hidden(text, at, c, last)
        {
            found(FindingKind::HiddenText, at..end);
            told = end;
        }
        if is_empty(c) {
            is_foldable = true;
            let is_within = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphabetic());
            if c != '\u{ad}' && is_within(last) && is_within(chars.peek().map(|(_, c)| *c)) {
                if broken.last().is_none_or(|word: &Range<usize>| at >= word.end) {
                    broken.push(word_around(text, at));
                }
                breaks += 1;
            }
        }
        is_foldable |= look_alike(c).is_some();
        if !is_tag(c) && !is_variation(c) {
            last = Some(c);
        }
    }
    // One may be a hint where a line can be broken.
    if breaks >= 2 {
        broken.into_iter().for_each(|at| found(FindingKind::HiddenText, at));
    }
    if is_foldable {
        scan_unhidden(text, prefilter, found);
    }
}

/// End of hidden text that begins here.
fn end_of_hidden(text: &str, at: usize, c: char, last: Option<char>) -> Option<usize> {
    match c {
        // Flags of England, Scotland and Wales are spelt with tags.
        c if is_tag(c) && last != Some('\u{1f3f4}') => Some(end_of_run(text, at, is_tag).0),
        c if is_variation(c) => {
            let before = text[..at].chars().next_back();
            // Only the first of a run: one or two are how some letters and pictures are written.
            let (end, count) =
                if before.is_some_and(is_variation) { (at, 0) } else { end_of_run(text, at, is_variation) };
            (count >= 4).then_some(end)
        }
        '\u{202d}' | '\u{202e}' => Some(end_of_turn(text, at)),
        _ => None,
    }
}

/// Scans the text as a model reads it, for instructions that are not visible as such.
fn scan_unhidden(text: &str, prefilter: &Prefilter, found: &mut impl FnMut(FindingKind, Range<usize>)) {
    let (mut plain, mut places) = (String::with_capacity(text.len()), Vec::with_capacity(text.len() + 1));
    for (at, c) in text.char_indices().filter(|(_, c)| !is_empty(*c)) {
        plain.push(look_alike(c).unwrap_or(c));
        places.resize(plain.len(), at);
    }
    places.push(text.len());
    prefilter.scan(&plain, &mut |kind, at| {
        let place = places[at.start]..places[at.end];
        // Visible instructions are reported as their own kind.
        if is_instruction(kind) && text.get(place.clone()) != plain.get(at) {
            found(FindingKind::HiddenText, place);
        }
    });
}

/// End and length of a run of such characters.
fn end_of_run(text: &str, at: usize, is_part: fn(char) -> bool) -> (usize, usize) {
    let run = text[at..].chars().take_while(|c| is_part(*c));
    run.fold((at, 0), |(end, count), c| (end + c.len_utf8(), count + 1))
}

/// End of text in reverse direction, or of its line.
fn end_of_turn(text: &str, at: usize) -> usize {
    let end = text[at..].char_indices().find(|(_, c)| matches!(c, '\u{202c}' | '\n'));
    end.map_or(text.len(), |(end, c)| at + end + if c == '\n' { 0 } else { c.len_utf8() })
}

fn word_around(text: &str, at: usize) -> Range<usize> {
    let before = text[..at].char_indices().rev().take(64).take_while(|(_, c)| !c.is_whitespace());
    let start = before.last().map_or(at, |(start, _)| start);
    let end = text[at..].char_indices().take(64).find(|(_, c)| c.is_whitespace());
    start..end.map_or_else(|| super::floor_char(text, (at + 192).min(text.len())), |(end, _)| at + end)
}

const fn is_tag(c: char) -> bool {
    matches!(c, '\u{e0000}'..='\u{e007f}')
}

const fn is_variation(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// True for characters of zero width.
const fn is_empty(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// The ASCII letter that a character looks like.
fn look_alike(c: char) -> Option<char> {
    let code = u32::from(c);
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(code - 0xff01 + 0x21),
        '\u{1d400}'..='\u{1d6a3}' => {
            let n = (code - 0x1d400) % 52;
            char::from_u32(if n < 26 { 0x41 + n } else { 0x61 + n - 26 })
        }
        'а' => Some('a'),
        'е' => Some('e'),
        'о' => Some('o'),
        'р' => Some('p'),
        'с' => Some('c'),
        'у' => Some('y'),
        'х' => Some('x'),
        'і' => Some('i'),
        'ѕ' => Some('s'),
        _ => None,
    }
}
