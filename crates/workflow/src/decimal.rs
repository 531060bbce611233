//! Numbers compared by all of their digits.
//!
//! A number of JSON can have more digits than any number of a computer, and an id with nineteen of them must not equal its neighbour.

use std::cmp::Ordering;

/// A number as `0.digits × 10^point`; without digits it is zero.
struct DecimalNumber<'a> {
    is_negative: bool,
    /// The digits before and behind the dot, without zeros that mean nothing.
    digits: DecimalDigits<'a>,
    point: i64,
}

/// Digits that a dot may divide.
#[derive(Clone, Copy)]
struct DecimalDigits<'a> {
    before: &'a str,
    behind: &'a str,
}

/// Compares two JSON numbers.
pub(crate) fn compare(left: &str, right: &str) -> Ordering {
    let (left, right) = (DecimalNumber::parse(left), DecimalNumber::parse(right));
    match (left.sign(), right.sign()) {
        (-1, -1) => right.compare_magnitude(&left),
        (1, 1) => left.compare_magnitude(&right),
        (left, right) => left.cmp(&right),
    }
}

// === impl DecimalNumber ===

impl<'a> DecimalNumber<'a> {
    /// Reads what is known to be a number of JSON.
    fn parse(text: &'a str) -> Self {
        let (is_negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (before, behind) = number.split_once('.').unwrap_or((number, ""));
        let before = before.trim_start_matches('0');
        let mut point = digit_count(before).saturating_add(parse_exponent(exponent));
        let mut digits = DecimalDigits { before, behind: behind.trim_end_matches('0') };
        if before.is_empty() {
            let leading = digits.behind.trim_start_matches('0');
            point = point.saturating_sub(digit_count(digits.behind) - digit_count(leading));
            digits.behind = leading;
        }
        if digits.behind.is_empty() {
            digits.before = before.trim_end_matches('0');
        }
        Self { is_negative, digits, point }
    }

    fn sign(&self) -> i8 {
        match (self.digits.all().next(), self.is_negative) {
            (None, _) => 0,
            (_, true) => -1,
            (_, false) => 1,
        }
    }

    fn compare_magnitude(&self, other: &Self) -> Ordering {
        self.point.cmp(&other.point).then_with(|| self.digits.all().cmp(other.digits.all()))
    }
}

// === impl DecimalDigits ===

impl<'a> DecimalDigits<'a> {
    fn all(self) -> impl Iterator<Item = u8> + 'a {
        self.before.bytes().chain(self.behind.bytes())
    }
}

fn digit_count(digits: &str) -> i64 {
    i64::try_from(digits.len()).unwrap_or(i64::MAX)
}

/// An exponent; one that no computer could hold is as large as can be.
fn parse_exponent(text: &str) -> i64 {
    let digits = text.trim_start_matches(['+', '-']);
    let size =
        if digits.bytes().all(|digit| digit == b'0') { 0 } else { digits.parse().unwrap_or(i64::MAX / 2) };
    if text.starts_with('-') { -size } else { size }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_digit_counts_and_spelling_does_not() {
        let equal = [
            ("1", "1.0"),
            ("100", "1e2"),
            ("0.001", "1E-3"),
            ("-0", "0.00"),
            ("1.50", "15e-1"),
            ("0e9", "0"),
        ];
        for (left, right) in equal {
            assert_eq!(compare(left, right), Ordering::Equal, "{left} {right}");
        }
        let rising = [
            "-1e400",
            "-20",
            "-3",
            "-0.5",
            "0",
            "1e-400",
            "0.09",
            "0.1",
            "0.11",
            "9",
            "10",
            "12345678901234567890",
            "12345678901234567891",
            "1e99999999999999999999",
        ];
        for (at, left) in rising.iter().enumerate() {
            for (other, right) in rising.iter().enumerate() {
                assert_eq!(compare(left, right), at.cmp(&other), "{left} {right}");
            }
        }
    }

    proptest! {
        #[test]
        fn they_compare_as_a_computer_compares_them(left in any::<i64>(), right in any::<i64>()) {
            prop_assert_eq!(compare(&left.to_string(), &right.to_string()), left.cmp(&right));
        }

        #[test]
        fn fractions_do_too(left in -1e9_f64..1e9, right in -1e9_f64..1e9) {
            prop_assert_eq!(Some(compare(&left.to_string(), &right.to_string())), left.partial_cmp(&right));
        }
    }
}
