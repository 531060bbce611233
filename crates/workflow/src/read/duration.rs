//! Lengths of time: `500ms`, `30s`, `1m30s`, `2h`, `7d`.

use std::time::Duration;

/// Nothing waits longer than a year.
const MAX_DURATION: Duration = Duration::from_secs(365 * 24 * 60 * 60);

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("\"{text}\" is no length of time; write one as in 500ms, 30s, 1m30s, 2h or 7d");
    let mut rest = text.trim();
    let mut millis = 0_u64;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, behind) = rest.split_at(digits);
        let letters = behind.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, behind) = behind.split_at(letters);
        let (_, size) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        let number: u64 = number.parse().map_err(|_| wrong())?;
        millis = number.checked_mul(size).and_then(|more| millis.checked_add(more)).ok_or_else(wrong)?;
        rest = behind.trim_start();
    }
    match Duration::from_millis(millis) {
        Duration::ZERO => Err(format!("\"{text}\" is no time at all")),
        duration if duration > MAX_DURATION => Err(format!("\"{text}\" is longer than a year")),
        duration => Ok(duration),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_with_their_units() {
        let millis = |text: &str| parse_duration(text).map(|duration| duration.as_millis());
        assert_eq!(millis("500ms"), Ok(500));
        assert_eq!(millis("1m30s"), Ok(90_000));
        assert_eq!(millis(" 2h 5m "), Ok(7_500_000));
        assert_eq!(millis("7d"), Ok(604_800_000));
        for wrong in ["", "0s", "10", "s", "1.5s", "1 week", "-1s", "366d", "99999999999999999999s", "1é"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}
