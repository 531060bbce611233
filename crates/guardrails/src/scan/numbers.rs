//! Numbers: social security numbers, payment cards and phones.

use std::ops::Range;

use crate::finding_kind::FindingKind;

/// Maximum number of digit groups.
const MAX_GROUPS: usize = 8;
/// Least number of digits, and maximum bytes, of a number.
const MIN_DIGITS: usize = 7;
const MAX_NUMBER_BYTES: usize = 28;
/// Bytes before a number in which a word may say what it is.
const CONTEXT_BYTES: usize = 40;

/// Digits in groups, with one kind of separator.
struct DigitGroups {
    at: [(usize, usize); MAX_GROUPS],
    count: usize,
    separator: Option<u8>,
}

/// Checks every number that begins within a span, and returns the end of what was read.
pub(crate) fn scan(
    text: &str,
    span: Range<usize>,
    found: &mut impl FnMut(FindingKind, Range<usize>),
) -> usize {
    let bytes = text.as_bytes();
    let mut at = span.start;
    while let Some(next) = bytes.get(at..span.end).and_then(|rest| rest.iter().position(u8::is_ascii_digit)) {
        let start = at + next;
        let (end, count) = measure_digits(bytes, start);
        if count < MIN_DIGITS && end < start + MAX_NUMBER_BYTES {
            at = end;
            continue;
        }
        let groups = DigitGroups::read(bytes, start);
        at = match classify_number(text, &groups) {
            Some((kind, place)) => {
                let end = place.end;
                found(kind, place);
                end
            }
            None => groups.at[0].1,
        };
        // A number that belongs to a word, like `a1b2`, is read over with it.
        at += bytes[at..].iter().take_while(|b| b.is_ascii_alphanumeric()).count();
    }
    at
}

/// End and count of digits that may belong together.
fn measure_digits(bytes: &[u8], start: usize) -> (usize, usize) {
    let rest = bytes[start..].iter().take(MAX_NUMBER_BYTES).take_while(|b| is_part(b));
    rest.fold((start, 0), |(end, count), b| (end + 1, count + usize::from(b.is_ascii_digit())))
}

/// True for bytes of a phone number, or between the digits of any number.
fn is_part(b: &u8) -> bool {
    b.is_ascii_digit() || matches!(b, b' ' | b'-' | b'.' | b'(' | b')' | b'/')
}

fn classify_number(text: &str, groups: &DigitGroups) -> Option<(FindingKind, Range<usize>)> {
    let start = groups.at[0].0;
    let bytes = text.as_bytes();
    let before = start.checked_sub(1).map(|at| bytes[at]);
    if before.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'#' | b'='))
        && !is_after_key(bytes, start)
    {
        return None;
    }
    if let Some(end) = match_card(bytes, groups) {
        return Some((FindingKind::PaymentCard, start..end));
    }
    if let Some(end) = match_ssn(text, groups) {
        return Some((FindingKind::UsSsn, start..end));
    }
    match_phone(text, start).map(|place| (FindingKind::Phone, place))
}

/// `card=4111…`: the sign only says that a value begins.
fn is_after_key(bytes: &[u8], start: usize) -> bool {
    start.checked_sub(1).is_some_and(|at| bytes[at] == b'=')
}

// === impl DigitGroups ===

impl DigitGroups {
    fn read(bytes: &[u8], start: usize) -> Self {
        let mut groups = Self { at: [(start, start); MAX_GROUPS], count: 0, separator: None };
        let mut at = start;
        while groups.count < MAX_GROUPS {
            let end = at + bytes[at..].iter().take(24).take_while(|b| b.is_ascii_digit()).count();
            groups.at[groups.count] = (at, end);
            groups.count += 1;
            let is_separator =
                |b: &&u8| matches!(b, b' ' | b'-') && groups.separator.is_none_or(|s| s == **b);
            let Some(separator) = bytes.get(end).filter(is_separator) else { break };
            if !bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
                break;
            }
            groups.separator = Some(*separator);
            at = end + 1;
        }
        groups
    }

    /// Lengths of the groups.
    fn lengths(&self) -> [usize; MAX_GROUPS] {
        let mut lengths = [0; MAX_GROUPS];
        for (length, (start, end)) in lengths.iter_mut().zip(self.at).take(self.count) {
            *length = end - start;
        }
        lengths
    }
}

/// End of a card number.
fn match_card(bytes: &[u8], groups: &DigitGroups) -> Option<usize> {
    let used = match groups.lengths() {
        [13..=19, ..] => 1,
        [4, 4, 4, 4, 3, ..] => 5,
        [4, 4, 4, 4, ..] => 4,
        [4, 6, 4 | 5, ..] => 3,
        _ => return None,
    };
    let (start, end) = (groups.at[0].0, groups.at[used - 1].1);
    if is_decimal(bytes, start, end)
        || bytes.get(end).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
    {
        return None;
    }
    let mut digits = [0_u8; 19];
    let mut count = 0;
    for byte in bytes[start..end].iter().filter(|b| b.is_ascii_digit()) {
        *digits.get_mut(count)? = byte - b'0';
        count += 1;
    }
    let digits = &digits[..count];
    (is_issued(digits) && passes_luhn(digits)).then_some(end)
}

/// True if a decimal point with digits is before or after.
fn is_decimal(bytes: &[u8], start: usize, end: usize) -> bool {
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let before = start >= 1
        && matches!(bytes[start - 1], b'.' | b'-')
        && start >= 2
        && bytes[start - 2].is_ascii_alphanumeric();
    before
        || (bytes.get(end) == Some(&b'.') && is_digit(end + 1))
        || (bytes.get(end) == Some(&b'-') && is_digit(end + 1))
}

/// True if a card network issues numbers with this beginning and length.
fn is_issued(digits: &[u8]) -> bool {
    let first = |count: usize| digits[..count].iter().fold(0_u32, |sum, digit| sum * 10 + u32::from(*digit));
    matches!(
        (digits.len(), first(4)),
        (13 | 16 | 19, 4000..=4999)
            | (16, 5100..=5599 | 2221..=2720)
            | (15, 3400..=3499 | 3700..=3799)
            | (16..=19, 6011 | 6440..=6599 | 3528..=3589 | 6200..=6299 | 8100..=8171)
            | (14..=19, 3000..=3059 | 3600..=3699 | 3800..=3999)
    )
}

fn passes_luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(n, digit)| match (n % 2, u32::from(*digit) * 2) {
            (0, _) => u32::from(*digit),
            (_, doubled) => doubled / 10 + doubled % 10,
        })
        .sum();
    sum.is_multiple_of(10) && digits.iter().any(|digit| *digit != digits[0])
}

/// End of a social security number.
fn match_ssn(text: &str, groups: &DigitGroups) -> Option<usize> {
    let bytes = text.as_bytes();
    let start = groups.at[0].0;
    let has_context = || has_word(text, start, &["ssn", "social security", "soc sec"]);
    let end = match (groups.lengths(), groups.separator) {
        ([3, 2, 4, 0, ..], Some(b'-')) => groups.at[2].1,
        ([3, 2, 4, ..], Some(b' ')) if has_context() => groups.at[2].1,
        ([9, ..], _) if has_context() => groups.at[0].1,
        _ => return None,
    };
    if is_decimal(bytes, start, end) || bytes.get(end).is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    let digits: Vec<u8> = bytes[start..end].iter().copied().filter(u8::is_ascii_digit).collect();
    let is_given = match digits.as_slice() {
        [b'0', b'0', b'0', ..] | [b'6', b'6', b'6', ..] | [b'9', ..] => false,
        [_, _, _, b'0', b'0', ..] | [.., b'0', b'0', b'0', b'0'] => false,
        // Two that were printed in advertisements.
        b"078051120" | b"219099999" => false,
        _ => true,
    };
    is_given.then_some(end)
}

/// Range of a phone number whose first digit is at `start`.
fn match_phone(text: &str, start: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let begin = match start.checked_sub(1).map(|at| bytes[at]) {
        Some(b'+' | b'(') => start - 1,
        _ => start,
    };
    let begin =
        if begin >= 1 && bytes[begin] == b'(' && bytes[begin - 1] == b'+' { begin - 1 } else { begin };
    let length = bytes[start..].iter().take(MAX_NUMBER_BYTES).take_while(|b| is_part(b)).count();
    let written = text.get(start..start + length)?.trim_end_matches(|c: char| !c.is_ascii_digit());
    let end = start + written.len();
    if bytes.get(end).is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'%' | b':')) {
        return None;
    }
    let mut digits = [0_u8; 20];
    let mut count = 0;
    for byte in written.bytes().filter(u8::is_ascii_digit) {
        *digits.get_mut(count)? = byte;
        count += 1;
    }
    let digits = &digits[..count];
    if bytes[begin] == b'+' {
        let begins = begin == 0 || !bytes[begin - 1].is_ascii_alphanumeric();
        return (begins && (8..=15).contains(&count) && digits[0] != b'0').then_some(begin..end);
    }
    if matches!(count, 10 | 11) && is_north_american(written, bytes[begin] == b'(', digits) {
        let ends = !is_decimal(bytes, start, end);
        return ends.then_some(begin..end);
    }
    let has_context = (7..=14).contains(&count)
        && has_word(
            text,
            begin,
            &["phone", "tel", "call ", "mobile", "cell", "fax", "whatsapp", "sms", "text me at"],
        );
    (has_context && !written.contains("..") && !is_decimal(bytes, start, end)).then_some(begin..end)
}

/// `(415) 555-0132`, `415-555-0132`, `415.555.0132`, each with or without a 1.
fn is_north_american(written: &str, has_bracket: bool, digits: &[u8]) -> bool {
    let shape: String = written.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }).collect();
    let is_shaped = match shape.as_str() {
        "999) 999-9999" | "999)999-9999" | "999) 999 9999" | "999) 999.9999" => has_bracket,
        "999-999-9999" | "999.999.9999" | "9-999-999-9999" | "9 (999) 999-9999" | "9.999.999.9999" => true,
        _ => false,
    };
    let national = if digits.len() == 11 && digits[0] == b'1' { &digits[1..] } else { digits };
    is_shaped && national.len() == 10 && national[0] >= b'2' && national[3] >= b'2'
}

/// True if one of the words is shortly before a place.
fn has_word(text: &str, at: usize, words: &[&str]) -> bool {
    let start = super::floor_char(text, at.saturating_sub(CONTEXT_BYTES));
    let before = text.get(start..super::floor_char(text, at)).unwrap_or_default().to_ascii_lowercase();
    words.iter().any(|word| before.contains(word))
}
