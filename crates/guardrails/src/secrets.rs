//! Masking of secrets in text and JSON, for logs and records.
//!
//! A secret is recognized by one of four signs: the name of its member, its prefix, the place of a password in a URL
//! (`postgres://user:…@host`), or its randomness. Guardrails use the scanner with stricter rules; here a false alarm costs a word in a log
//! and a miss costs a secret, so a known prefix is enough.

use std::{borrow::Cow, ops::Range, sync::LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use crate::{
    finding_kind::{FindingKind, FindingKindSet},
    scan::{KEYS, ScanHit, Scanner},
};

/// Replacement of a secret.
pub const MASK: &str = "[redacted]";

/// Parts of names that make a value a secret, in lower case and without separators.
const NAME_PARTS: [&str; 15] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "apikey",
    "authorization",
    "credential",
    "privatekey",
    "accesskey",
    "signingkey",
    "connectionstring",
    "cookie",
    "bearer",
];

/// Names that make a value a secret only as a whole word: `card_pin`, `pinCode`, never `spinner`.
const NAME_WORDS: [&str; 11] = ["pwd", "pin", "pass", "pw", "otp", "totp", "cvv", "cvc", "psk", "dsn", "jwt"];

/// Names of secrets that people write as numbers.
const NUMERIC_NAMES: [&str; 9] =
    ["password", "passwd", "passcode", "pwd", "pin", "otp", "totp", "cvv", "cvc"];

/// Last words that make a name with `token` or `secret` in it harmless: `tokenId`, `token_type`, `secretName`.
const HARMLESS_SUFFIXES: [&str; 13] = [
    "id", "ids", "type", "kind", "name", "names", "count", "limit", "usage", "budget", "url", "uri",
    "endpoint",
];

/// Prefixes of secrets of well-known services.
const KEY_PREFIXES: [&str; 52] = [
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "rk_test_",
    "pk_live_",
    "whsec_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "gldt-",
    "glrt-",
    "glptt-",
    "xoxa-",
    "xoxb-",
    "xoxp-",
    "xoxr-",
    "xoxs-",
    "xoxe.",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "GOCSPX-",
    "npm_",
    "pypi-",
    "hf_",
    "SG.",
    "dop_v1_",
    "doo_v1_",
    "shpat_",
    "shpss_",
    "lin_api_",
    "gsk_",
    "xai-",
    "hvs.",
    "hvb.",
    "AGE-SECRET-KEY-",
    "sntrys_",
    "rubygems_",
    "dckr_pat_",
    "PMAK-",
    "figd_",
    "atlasv1.",
    "tfp_",
    "r8_",
    "rialto_",
];

/// Prefixes that are secret whatever follows.
const SECRET_MARKS: [&str; 4] = ["eyJhbGci", "-----BEGIN", "Bearer ", "Basic "];

/// Least number of characters after a prefix: words that only begin alike are shorter.
const MIN_KEY_CHARS: usize = 6;

/// Kinds of secrets that the scanner knows by more than their beginning.
const SCANNED_KINDS: [FindingKind; 11] = [
    FindingKind::AwsKey,
    FindingKind::GcpKey,
    FindingKind::AzureKey,
    FindingKind::GithubToken,
    FindingKind::SlackToken,
    FindingKind::StripeKey,
    FindingKind::AiKey,
    FindingKind::ServiceToken,
    FindingKind::Jwt,
    FindingKind::PrivateKey,
    FindingKind::UrlPassword,
];

/// Meaning of a member's name for its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretName {
    /// Not the name of a secret.
    Harmless,
    /// Text and whatever is below it are secret.
    Text,
    /// Numbers are secret too.
    TextAndNumbers,
}

/// Automaton of prefixes; a closer check follows.
static PREFIX_AUTOMATON: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let words = KEY_PREFIXES.iter().chain(&SECRET_MARKS);
    AhoCorasick::builder().kind(Some(AhoCorasickKind::DFA)).build(words).ok()
});

/// Pieces of which every name of a secret has one, however it is written.
const NAME_PIECES: [&str; 18] = [
    "pass",
    "pwd",
    "pin",
    "pw",
    "otp",
    "cvv",
    "cvc",
    "psk",
    "dsn",
    "jwt",
    "secret",
    "token",
    "key",
    "authori",
    "creden",
    "connection",
    "cookie",
    "bearer",
];

/// Prefilter: pieces of names, beginnings and anchors of the scanner together, so that a text without any of them, which most arguments
/// are, is read once.
static HINT_AUTOMATON: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let scanned = FindingKindSet::new(&SCANNED_KINDS);
    let anchors = KEYS.iter().filter(|key| scanned.contains(key.kind)).map(|key| key.prefix);
    let words = NAME_PIECES.into_iter().chain(KEY_PREFIXES).chain(SECRET_MARKS).chain(anchors);
    AhoCorasick::builder().ascii_case_insensitive(true).kind(Some(AhoCorasickKind::DFA)).build(words).ok()
});

static KEY_SCANNER: LazyLock<Option<Scanner>> =
    LazyLock::new(|| Scanner::new(FindingKindSet::new(&SCANNED_KINDS)).ok());

static ENTROPY_SCANNER: LazyLock<Option<Scanner>> =
    LazyLock::new(|| Scanner::new(FindingKindSet::new(&[FindingKind::HighEntropy])).ok());

/// Meaning of a member's name for its value.
pub fn secret_name(name: &str) -> SecretName {
    let words = split_name(name);
    let plain = words.concat();
    let is_word = |known: &&str| words.iter().any(|word| word == *known);
    let part = NAME_PARTS.iter().find(|part| plain.contains(**part));
    let is_harmless = words.len() > 1
        && matches!(part, Some(&("token" | "secret")))
        && words.last().is_some_and(|last| HARMLESS_SUFFIXES.contains(&last.as_str()));
    if NUMERIC_NAMES.iter().any(|known| if known.len() > 4 { plain.contains(known) } else { is_word(known) })
    {
        SecretName::TextAndNumbers
    } else if is_harmless || part.is_none() && !NAME_WORDS.iter().any(is_word) {
        SecretName::Harmless
    } else {
        SecretName::Text
    }
}

/// True if a text may hold a secret, by a member's name or by a value. Fast, with false positives rather than false negatives.
pub fn may_hold_secret(json: &str) -> bool {
    // Escaped text is not visible before it is parsed.
    json.contains('\\')
        || json.contains("://") && json.contains('@')
        || has_hint(json) && (has_suspicious_name(json) || !find_secrets(json).is_empty())
        || has_random_word(json)
}

/// True if a text has any word that occurs in secrets or their names.
fn has_hint(text: &str) -> bool {
    HINT_AUTOMATON.as_ref().is_none_or(|hints| hints.is_match(text))
}

/// True if a text contains a secret.
pub fn has_secret(text: &str) -> bool {
    (text.contains("://") || has_hint(text)) && !find_secrets(text).is_empty() || has_random_word(text)
}

/// Masks every secret in a text.
pub fn mask_secrets(text: &str) -> Cow<'_, str> {
    if !text.contains("://") && !has_hint(text) {
        return Cow::Borrowed(text);
    }
    let found = find_secrets(text);
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let (mut masked, mut end) = (String::with_capacity(text.len()), 0);
    for place in found {
        masked.push_str(text.get(end..place.start).unwrap_or_default());
        masked.push_str(MASK);
        end = place.end;
    }
    masked.push_str(text.get(end..).unwrap_or_default());
    Cow::Owned(masked)
}

/// True if a word of a text looks as random as a key.
pub fn has_random_word(text: &str) -> bool {
    let Some(scanner) = &*ENTROPY_SCANNER else { return false };
    let mut hits = Vec::new();
    scanner.scan(text, None, &mut hits);
    !hits.is_empty()
}

/// Ranges of secrets in a text, in order and without overlaps.
fn find_secrets(text: &str) -> Vec<Range<usize>> {
    let mut hits: Vec<ScanHit> = Vec::new();
    if let Some(scanner) = &*KEY_SCANNER {
        scanner.scan(text, None, &mut hits);
    }
    let mut found: Vec<Range<usize>> = hits.into_iter().map(|hit| hit.at).collect();
    if let Some(beginnings) = &*PREFIX_AUTOMATON {
        let places = beginnings.find_overlapping_iter(text);
        found.extend(places.filter_map(|place| secret_after_prefix(text, place.range())));
    }
    found.extend(url_passwords(text));
    found.sort_by_key(|place| (place.start, std::cmp::Reverse(place.end)));
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(found.len());
    for place in found {
        match merged.last_mut() {
            Some(last) if place.start < last.end => last.end = last.end.max(place.end),
            _ => merged.push(place),
        }
    }
    merged
}

/// Range of the secret with this prefix, if enough of it follows.
fn secret_after_prefix(text: &str, beginning: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let word = text.get(beginning.clone())?;
    let is_mark = SECRET_MARKS.contains(&word);
    let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if beginning.start > 0 && goes_on(&bytes[beginning.start - 1]) {
        return None;
    }
    let is_key = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_-.+/=~".contains(byte);
    let length = bytes[beginning.end..].iter().take_while(is_key).count();
    // A PEM block goes on to its end, which only the scanner knows; its first line is enough here.
    let is_enough =
        if is_mark { word.starts_with('-') || length >= MIN_KEY_CHARS } else { length >= MIN_KEY_CHARS };
    let has_digit_or_case = || {
        let rest = &bytes[beginning.end..beginning.end + length];
        rest.iter().any(u8::is_ascii_digit) || rest.iter().any(u8::is_ascii_uppercase) || length >= 16
    };
    // "sk-learn-pipeline" begins like a key and is none.
    let is_made = !matches!(
        word,
        "sk-" | "hf_" | "npm_" | "r8_" | "pypi-" | "xai-" | "gsk_" | "tfp_" | "SG." | "Basic "
    ) || has_digit_or_case();
    (is_enough && is_made).then_some(beginning.start..beginning.end + length)
}

/// Passwords in URLs: `scheme://user:password@host`.
fn url_passwords(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    memchr::memmem::find_iter(text.as_bytes(), b"://").filter_map(|at| {
        let start = at + 3;
        let authority = text.get(start..)?;
        let is_end =
            |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>' | '`');
        // A password may hold what should have been escaped: the last `@` before the text ends as a whole counts then.
        let authority = authority.get(..authority.find(is_end).unwrap_or(authority.len()))?;
        let user = authority.rsplit_once('@')?.0;
        let (name, password) = user.split_once(':')?;
        (!password.is_empty() && password != MASK).then(|| start + name.len() + 1..start + user.len())
    })
}

/// True if a member's name in a JSON text may be that of a secret.
fn has_suspicious_name(json: &str) -> bool {
    let mut texts = json.split('"').skip(1).step_by(2);
    texts.any(|text| text.len() <= 80 && has_hint(text) && secret_name(text) != SecretName::Harmless)
}

/// The words of a name, in lower case: `apiKey`, `API_KEY` and `api-key` are alike.
fn split_name(name: &str) -> Vec<String> {
    let (mut words, mut word, mut was_lower) = (Vec::new(), String::new(), false);
    for c in name.chars() {
        if !c.is_alphanumeric() || c.is_uppercase() && was_lower {
            words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

#[cfg(test)]
mod tests;
