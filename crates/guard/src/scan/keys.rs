//! Keys and tokens by how they begin, and values by what they are called.

use std::ops::Range;

use crate::kind::Kind;

/// How keys of one service look.
pub(crate) struct Key {
    pub(crate) kind: Kind,
    pub(crate) prefix: &'static str,
    shape: Shape,
}

#[derive(Clone, Copy)]
enum Shape {
    /// So many characters of an alphabet follow, at least and at most.
    Word(Alphabet, usize, usize),
    /// Three parts with dots between them.
    Jwt,
    /// A block that says where it ends.
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

const LONG: usize = 400;

/// Every key that is known. Prefixes that begin alike are read on their own; the longest that fits is told.
pub(crate) const KEYS: &[Key] = &[
    key(Kind::AwsKey, "AKIA", Alphabet::Upper, 16, 16),
    key(Kind::AwsKey, "ASIA", Alphabet::Upper, 16, 16),
    key(Kind::AwsKey, "aws_secret_access_key=", Alphabet::Base64, 40, 40),
    key(Kind::AwsKey, "aws_secret_access_key = ", Alphabet::Base64, 40, 40),
    key(Kind::GcpKey, "AIza", Alphabet::Url, 35, 35),
    key(Kind::GcpKey, "ya29.", Alphabet::Url, 20, LONG),
    key(Kind::GcpKey, "GOCSPX-", Alphabet::Url, 28, 28),
    key(Kind::AzureKey, "AccountKey=", Alphabet::Base64, 88, 88),
    key(Kind::AzureKey, "SharedAccessKey=", Alphabet::Base64, 44, 44),
    key(Kind::GithubToken, "ghp_", Alphabet::Plain, 36, 255),
    key(Kind::GithubToken, "gho_", Alphabet::Plain, 36, 255),
    key(Kind::GithubToken, "ghu_", Alphabet::Plain, 36, 255),
    key(Kind::GithubToken, "ghs_", Alphabet::Plain, 36, 255),
    key(Kind::GithubToken, "ghr_", Alphabet::Plain, 36, 255),
    key(Kind::GithubToken, "github_pat_", Alphabet::Url, 40, 255),
    key(Kind::SlackToken, "xoxb-", Alphabet::Url, 24, LONG),
    key(Kind::SlackToken, "xoxp-", Alphabet::Url, 24, LONG),
    key(Kind::SlackToken, "xoxa-", Alphabet::Url, 24, LONG),
    key(Kind::SlackToken, "xoxr-", Alphabet::Url, 24, LONG),
    key(Kind::SlackToken, "xoxs-", Alphabet::Url, 24, LONG),
    key(Kind::SlackToken, "xapp-", Alphabet::Url, 24, LONG),
    key(Kind::SlackToken, "hooks.slack.com/services/T", Alphabet::Path, 30, 80),
    key(Kind::StripeKey, "sk_live_", Alphabet::Plain, 16, 255),
    key(Kind::StripeKey, "sk_test_", Alphabet::Plain, 16, 255),
    key(Kind::StripeKey, "rk_live_", Alphabet::Plain, 16, 255),
    key(Kind::StripeKey, "rk_test_", Alphabet::Plain, 16, 255),
    key(Kind::StripeKey, "whsec_", Alphabet::Base64, 24, 255),
    key(Kind::AiKey, "sk-ant-", Alphabet::Url, 24, 255),
    key(Kind::AiKey, "sk-proj-", Alphabet::Url, 24, 255),
    key(Kind::AiKey, "sk-", Alphabet::Url, 32, 255),
    key(Kind::ServiceToken, "hf_", Alphabet::Plain, 34, 40),
    key(Kind::ServiceToken, "npm_", Alphabet::Plain, 36, 36),
    key(Kind::ServiceToken, "glpat-", Alphabet::Url, 20, 64),
    key(Kind::ServiceToken, "dop_v1_", Alphabet::Plain, 64, 64),
    key(Kind::ServiceToken, "pypi-", Alphabet::Url, 80, LONG),
    Key { kind: Kind::Jwt, prefix: "eyJ", shape: Shape::Jwt },
    Key { kind: Kind::PrivateKey, prefix: "-----BEGIN ", shape: Shape::Pem },
];

/// What secrets are called.
pub(crate) const NAMES: &[&str] =
    &["password", "passwd", "passphrase", "secret", "api_key", "api-key", "apikey", "access_key", "token"];

/// Words that show a value to be none.
const PLACEHOLDERS: &[&str] =
    &["example", "your", "xxxx", "changeme", "placeholder", "redacted", "dummy", "sample"];

const fn key(kind: Kind, prefix: &'static str, alphabet: Alphabet, least: usize, most: usize) -> Key {
    Key { kind, prefix, shape: Shape::Word(alphabet, least, most) }
}

/// Reads on where a prefix stands, in whatever case, and says where the key is.
pub(crate) fn read(key: &Key, text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text.get(at..)?.strip_prefix(key.prefix)?;
    // Within a longer word nothing begins; so no character is read for two keys.
    let goes_on = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    if at > 0 && goes_on(text.as_bytes()[at - 1]) && !matches!(key.shape, Shape::Pem) {
        return None;
    }
    let length = match key.shape {
        Shape::Word(alphabet, least, most) => {
            let length = alphabet.run(rest, most + 1);
            let is_key = (least..=most).contains(&length) && looks_made(&rest[..length]);
            is_key.then_some(length)
        }
        Shape::Jwt => jwt(rest),
        Shape::Pem => pem(rest),
    };
    length.map(|length| at..at + key.prefix.len() + length)
}

/// Reads a value behind a name (`password: …`, `"api_key" = "…"`), and says up to where it has read.
pub(crate) fn assigned(text: &str, name: Range<usize>, found: &mut impl FnMut(Kind, Range<usize>)) -> usize {
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
    let length = bytes[at..].iter().take(LONG).take_while(|b| is_value(b)).count();
    let value = text.get(at..at + length).unwrap_or_default().trim_end_matches('.');
    if is_secret_value(value) {
        found(Kind::AssignedSecret, at..at + value.len());
    }
    at + length
}

/// The value of a member that is called a secret.
pub(crate) fn named(key: &str, value: &str, found: &mut impl FnMut(Kind, Range<usize>)) {
    if value.contains(' ') || !is_secret_value(value) {
        return;
    }
    let key = key.to_ascii_lowercase();
    if NAMES.iter().any(|name| key.contains(name)) {
        found(Kind::AssignedSecret, 0..value.len());
    }
}

/// Long enough, of letters and digits, and not a placeholder.
fn is_secret_value(value: &str) -> bool {
    let has = |is: fn(&u8) -> bool| value.bytes().any(|b| is(&b));
    value.len() >= 8
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
        && !value.contains("://")
        && !value.starts_with(['$', '{', '<', '%', '/', '['])
        && looks_made(value)
}

/// Whether somebody's machine has made it: no placeholder, and not the same character over and over.
fn looks_made(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let mut seen = 0_u128;
    value.bytes().filter(u8::is_ascii).for_each(|b| seen |= 1 << b);
    seen.count_ones() >= 5 && !PLACEHOLDERS.iter().any(|word| lower.contains(word))
}

fn jwt(rest: &str) -> Option<usize> {
    let header = Alphabet::Url.run(rest, 2_000);
    let payload = rest.get(header..)?.strip_prefix('.').map(|rest| Alphabet::Url.run(rest, 8_000))?;
    let signature =
        rest.get(header + 1 + payload..)?.strip_prefix('.').map(|rest| Alphabet::Url.run(rest, 2_000))?;
    (header >= 12 && payload >= 8 && signature >= 16).then_some(header + payload + signature + 2)
}

fn pem(rest: &str) -> Option<usize> {
    let head = rest.get(..super::floor(rest, 60))?;
    let label = head.split("-----").next()?;
    let is_private = label.ends_with("PRIVATE KEY") || label.ends_with("PRIVATE KEY BLOCK");
    if !is_private || label.len() == head.len() {
        return None;
    }
    // A key without an end is cut out up to where it could end.
    let bounded = rest.get(..super::floor(rest, 16_384)).unwrap_or(rest);
    let end = memchr::memmem::find(bounded.as_bytes(), b"-----END ")
        .map(|end| end + "-----END ".len() + label.len() + 5);
    Some(end.map_or(bounded.len(), |end| super::floor(rest, end)))
}

// === impl Alphabet ===

impl Alphabet {
    /// How many characters of it a text begins with, at most so many.
    fn run(self, text: &str, most: usize) -> usize {
        text.bytes().take(most).take_while(|b| self.has(*b)).count()
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
