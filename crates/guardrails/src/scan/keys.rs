//! Keys and tokens by their prefix, and secrets by the name of their member.

use std::ops::Range;

use crate::finding_kind::FindingKind;

/// Format of a service's keys.
pub(crate) struct KeyFormat {
    pub(crate) kind: FindingKind,
    pub(crate) prefix: &'static str,
    shape: KeyShape,
}

#[derive(Clone, Copy)]
enum KeyShape {
    /// Characters of an alphabet, at least and at most.
    Word(Alphabet, usize, usize),
    /// Three parts with dots between them.
    Jwt,
    /// PEM block.
    Pem,
}

#[derive(Clone, Copy)]
enum Alphabet {
    /// Capital letters and digits.
    Upper,
    /// Letters and digits.
    Plain,
    /// Letters, digits, `_` and `-`.
    Url,
    /// Letters, digits, `+`, `/` and `=`.
    Base64,
    /// Letters, digits and whatever stands in a path.
    Path,
}

const MAX_KEY_BYTES: usize = 400;

/// Known key formats. Prefixes with a common beginning are matched on their own; the longest match is reported.
pub(crate) const KEYS: &[KeyFormat] = &[
    key(FindingKind::AwsKey, "AKIA", Alphabet::Upper, 16, 16),
    key(FindingKind::AwsKey, "ASIA", Alphabet::Upper, 16, 16),
    key(FindingKind::AwsKey, "aws_secret_access_key=", Alphabet::Base64, 40, 40),
    key(FindingKind::AwsKey, "aws_secret_access_key = ", Alphabet::Base64, 40, 40),
    key(FindingKind::GcpKey, "AIza", Alphabet::Url, 35, 35),
    key(FindingKind::GcpKey, "ya29.", Alphabet::Url, 20, MAX_KEY_BYTES),
    key(FindingKind::GcpKey, "GOCSPX-", Alphabet::Url, 28, 28),
    key(FindingKind::AzureKey, "AccountKey=", Alphabet::Base64, 88, 88),
    key(FindingKind::AzureKey, "SharedAccessKey=", Alphabet::Base64, 44, 44),
    key(FindingKind::GithubToken, "ghp_", Alphabet::Plain, 36, 255),
    key(FindingKind::GithubToken, "gho_", Alphabet::Plain, 36, 255),
    key(FindingKind::GithubToken, "ghu_", Alphabet::Plain, 36, 255),
    key(FindingKind::GithubToken, "ghs_", Alphabet::Plain, 36, 255),
    key(FindingKind::GithubToken, "ghr_", Alphabet::Plain, 36, 255),
    key(FindingKind::GithubToken, "github_pat_", Alphabet::Url, 40, 255),
    key(FindingKind::SlackToken, "xoxb-", Alphabet::Url, 24, MAX_KEY_BYTES),
    key(FindingKind::SlackToken, "xoxp-", Alphabet::Url, 24, MAX_KEY_BYTES),
    key(FindingKind::SlackToken, "xoxa-", Alphabet::Url, 24, MAX_KEY_BYTES),
    key(FindingKind::SlackToken, "xoxr-", Alphabet::Url, 24, MAX_KEY_BYTES),
    key(FindingKind::SlackToken, "xoxs-", Alphabet::Url, 24, MAX_KEY_BYTES),
    key(FindingKind::SlackToken, "xapp-", Alphabet::Url, 24, MAX_KEY_BYTES),
    key(FindingKind::SlackToken, "hooks.slack.com/services/T", Alphabet::Path, 30, 80),
    key(FindingKind::StripeKey, "sk_live_", Alphabet::Plain, 16, 255),
    key(FindingKind::StripeKey, "sk_test_", Alphabet::Plain, 16, 255),
    key(FindingKind::StripeKey, "rk_live_", Alphabet::Plain, 16, 255),
    key(FindingKind::StripeKey, "rk_test_", Alphabet::Plain, 16, 255),
    key(FindingKind::StripeKey, "whsec_", Alphabet::Base64, 24, 255),
    key(FindingKind::AiKey, "sk-ant-", Alphabet::Url, 24, 255),
    key(FindingKind::AiKey, "sk-proj-", Alphabet::Url, 24, 255),
    key(FindingKind::AiKey, "sk-", Alphabet::Url, 32, 255),
    key(FindingKind::ServiceToken, "hf_", Alphabet::Plain, 34, 40),
    key(FindingKind::ServiceToken, "npm_", Alphabet::Plain, 36, 36),
    key(FindingKind::ServiceToken, "glpat-", Alphabet::Url, 20, 64),
    key(FindingKind::ServiceToken, "dop_v1_", Alphabet::Plain, 64, 64),
    key(FindingKind::ServiceToken, "pypi-", Alphabet::Url, 80, MAX_KEY_BYTES),
    KeyFormat { kind: FindingKind::Jwt, prefix: "eyJ", shape: KeyShape::Jwt },
    KeyFormat { kind: FindingKind::PrivateKey, prefix: "-----BEGIN ", shape: KeyShape::Pem },
];

/// Names of secrets.
pub(crate) const SECRET_NAMES: &[&str] =
    &["password", "passwd", "passphrase", "secret", "api_key", "api-key", "apikey", "access_key", "token"];

/// Words of placeholders.
const PLACEHOLDERS: &[&str] =
    &["example", "your", "xxxx", "changeme", "placeholder", "redacted", "dummy", "sample"];

const fn key(
    kind: FindingKind,
    prefix: &'static str,
    alphabet: Alphabet,
    min: usize,
    max: usize,
) -> KeyFormat {
    KeyFormat { kind, prefix, shape: KeyShape::Word(alphabet, min, max) }
}

/// Range of a key whose prefix is at `at`, in any case.
pub(crate) fn read_key(key: &KeyFormat, text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text.get(at..)?.strip_prefix(key.prefix)?;
    // Within a longer word nothing begins; so no character is read for two keys.
    let is_word_byte = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    if at > 0 && is_word_byte(text.as_bytes()[at - 1]) && !matches!(key.shape, KeyShape::Pem) {
        return None;
    }
    let length = match key.shape {
        KeyShape::Word(alphabet, min, max) => {
            let length = alphabet.prefix_length(rest, max + 1);
            let is_key = (min..=max).contains(&length) && looks_generated(&rest[..length]);
            is_key.then_some(length)
        }
        KeyShape::Jwt => match_jwt(rest),
        KeyShape::Pem => match_pem(rest),
    };
    length.map(|length| at..at + key.prefix.len() + length)
}

/// Checks the value behind a name (`password: …`, `"api_key" = "…"`), and returns the end of what was read.
pub(crate) fn scan_assignment(
    text: &str,
    name: Range<usize>,
    found: &mut impl FnMut(FindingKind, Range<usize>),
) -> usize {
    let bytes = text.as_bytes();
    let is_word = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let mut at = name.end;
    // The name may go on a little: `secret_access_key`, `tokenValue`.
    at += bytes[at..].iter().take(24).take_while(|b| is_word(b)).count();
    at += bytes[at..].iter().take(3).take_while(|b| matches!(b, b'"' | b'\'' | b'`' | b' ')).count();
    if !matches!(bytes.get(at), Some(b':' | b'=')) {
        return name.end;
    }
    at += bytes[at..]
        .iter()
        .take(5)
        .take_while(|b| matches!(b, b':' | b'=' | b'>' | b' ' | b'"' | b'\'' | b'`'))
        .count();
    let is_value = |b: &u8| {
        b.is_ascii_graphic()
            && !matches!(b, b'"' | b'\'' | b'`' | b',' | b';' | b'<' | b'>' | b'(' | b')' | b'&')
    };
    let length = bytes[at..].iter().take(MAX_KEY_BYTES).take_while(|b| is_value(b)).count();
    let value = text.get(at..at + length).unwrap_or_default().trim_end_matches('.');
    if is_secret_value(value) {
        found(FindingKind::AssignedSecret, at..at + value.len());
    }
    at + length
}

/// Checks the value of a member whose name is that of a secret.
pub(crate) fn scan_member(key: &str, value: &str, found: &mut impl FnMut(FindingKind, Range<usize>)) {
    if value.contains(' ') || !is_secret_value(value) {
        return;
    }
    let key = key.to_ascii_lowercase();
    if SECRET_NAMES.iter().any(|name| key.contains(name)) {
        found(FindingKind::AssignedSecret, 0..value.len());
    }
}

/// True for a value with letters and digits that is long enough and no placeholder.
fn is_secret_value(value: &str) -> bool {
    let has = |is: fn(&u8) -> bool| value.bytes().any(|b| is(&b));
    value.len() >= 8
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
        && !value.contains("://")
        && !value.starts_with(['$', '{', '<', '%', '/', '['])
        && looks_generated(value)
}

/// True if a value looks generated: no placeholder, and enough different characters.
fn looks_generated(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let mut seen = 0_u128;
    value.bytes().filter(u8::is_ascii).for_each(|b| seen |= 1 << b);
    seen.count_ones() >= 5 && !PLACEHOLDERS.iter().any(|word| lower.contains(word))
}

fn match_jwt(rest: &str) -> Option<usize> {
    let header = Alphabet::Url.prefix_length(rest, 2_000);
    let payload =
        rest.get(header..)?.strip_prefix('.').map(|rest| Alphabet::Url.prefix_length(rest, 8_000))?;
    let signature = rest
        .get(header + 1 + payload..)?
        .strip_prefix('.')
        .map(|rest| Alphabet::Url.prefix_length(rest, 2_000))?;
    (header >= 12 && payload >= 8 && signature >= 16).then_some(header + payload + signature + 2)
}

fn match_pem(rest: &str) -> Option<usize> {
    let head = rest.get(..super::floor_char(rest, 60))?;
    let label = head.split("-----").next()?;
    let is_private = label.ends_with("PRIVATE KEY") || label.ends_with("PRIVATE KEY BLOCK");
    if !is_private || label.len() == head.len() {
        return None;
    }
    // A key without an end is cut out up to where it could end.
    let bounded = rest.get(..super::floor_char(rest, 16_384)).unwrap_or(rest);
    let end = memchr::memmem::find(bounded.as_bytes(), b"-----END ")
        .map(|end| end + "-----END ".len() + label.len() + 5);
    Some(end.map_or(bounded.len(), |end| super::floor_char(rest, end)))
}

// === impl Alphabet ===

impl Alphabet {
    /// Length of the prefix of a text in this alphabet, at most `max`.
    fn prefix_length(self, text: &str, max: usize) -> usize {
        text.bytes().take(max).take_while(|b| self.has(*b)).count()
    }

    const fn has(self, byte: u8) -> bool {
        match self {
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Plain => byte.is_ascii_alphanumeric(),
            Self::Url => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='),
            Self::Path => byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'-'),
        }
    }
}
