//! Meaning of unquoted YAML words, with all digits retained.
//!
//! The rules are those of YAML 1.2's core schema, with one exception: digits behind a zero stay text, because `007` and `0123` are
//! names of something far more often than numbers, and as numbers they would lose their zeros.

use super::tree::SourceValue;

/// Value of a plain scalar; a message if JSON cannot represent it.
pub(super) fn parse_plain(text: &str) -> Result<Option<SourceValue>, String> {
    Ok(Some(match text {
        "" | "~" | "null" | "Null" | "NULL" => SourceValue::Null,
        "true" | "True" | "TRUE" => SourceValue::Bool(true),
        "false" | "False" | "FALSE" => SourceValue::Bool(false),
        ".inf" | ".Inf" | ".INF" | "-.inf" | "-.Inf" | "-.INF" | "+.inf" | ".nan" | ".NaN" | ".NAN" => {
            return Err(format!("JSON has no {text}; put it in quotes if it is a text"));
        }
        _ => match parse_number(text) {
            Some(number) => SourceValue::Number(number),
            None => return Ok(None),
        },
    }))
}

/// The JSON number that a text spells.
pub(super) fn parse_number(text: &str) -> Option<String> {
    let radix =
        |digits: &str, radix| u128::from_str_radix(digits, radix).ok().map(|number| number.to_string());
    let is_bare = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_alphanumeric());
    if let Some(digits) = text.strip_prefix("0x").filter(|digits| is_bare(digits)) {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o").filter(|digits| is_bare(digits)) {
        return radix(digits, 8);
    }
    let unsigned = text.trim_start_matches(['+', '-']);
    if text.len() - unsigned.len() > 1 || !unsigned.starts_with(|c: char| c == '.' || c.is_ascii_digit()) {
        return None;
    }
    let sign = if text.starts_with('-') { "-" } else { "" };
    let (number, power) = match unsigned.find(['e', 'E']) {
        Some(at) => unsigned.split_at(at),
        None => (unsigned, ""),
    };
    // Without a digit on one side of the dot it is none of JSON's; a zero there changes nothing.
    let (whole, part) = number.split_once('.').map_or((number, None), |(whole, part)| (whole, Some(part)));
    let whole = if whole.is_empty() { "0" } else { whole };
    let part = match part {
        Some("") if number.len() == 1 => return None,
        Some("") => ".0".to_owned(),
        Some(part) => format!(".{part}"),
        None => String::new(),
    };
    let spelt = format!("{sign}{whole}{part}{power}");
    let is_number = rialto_model::json::RawJson::parse(&spelt).is_ok();
    is_number.then_some(spelt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits_and_what_is_none_stays_text() {
        let pairs = [
            ("12345678901234567890.10", "12345678901234567890.10"),
            ("-1", "-1"),
            ("+1", "1"),
            (".5", "0.5"),
            ("1.", "1.0"),
            ("1.e3", "1.0e3"),
            ("1E+2", "1E+2"),
            ("0x1f", "31"),
            ("0o17", "15"),
            ("0", "0"),
            ("0.10", "0.10"),
        ];
        for (text, expected) in pairs {
            assert_eq!(parse_number(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "007", "1_000", "1.2.3", "e5", ".", "+", "-", "--1", "0x", "0xg", "1e", "1 2", "inf", "12:30",
            "1.e",
        ] {
            assert_eq!(parse_number(text), None, "{text}");
        }
    }

    #[test]
    fn the_words_of_json_are_no_texts() {
        assert!(matches!(parse_plain("~"), Ok(Some(SourceValue::Null))));
        assert!(matches!(parse_plain("True"), Ok(Some(SourceValue::Bool(true)))));
        assert!(matches!(parse_plain("no"), Ok(None)));
        assert!(parse_plain(".nan").unwrap_err().contains("JSON has no .nan"));
    }
}
