//! Masks secrets in text and in members of JSON, for whatever is logged or recorded.
//!
//! A secret is known by one of four signs: the name of the member that it is the value of, how it begins, the place of a password in an
//! address (`postgres://user:…@host`), or how random it looks. Guardrails decide about messages with the same scanner and stricter rules;
//! here a false alarm costs a word in a log and a miss costs a secret, so a known beginning is enough.

use std::{borrow::Cow, ops::Range, sync::LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use crate::{
    kind::{Kind, Kinds},
    scan::{Hit, KEYS, Scanner},
};

/// What stands in the place of a secret.
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
const HARMLESS_ENDS: [&str; 13] = [
    "id", "ids", "type", "kind", "name", "names", "count", "limit", "usage", "budget", "url", "uri",
    "endpoint",
];

/// How secrets of well-known services begin.
const PREFIXES: [&str; 52] = [
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

/// Beginnings that are secret whatever follows.
const MARKS: [&str; 4] = ["eyJhbGci", "-----BEGIN", "Bearer ", "Basic "];

/// So many characters of a key must follow its beginning: words that only begin alike are shorter.
const LEAST_BEHIND: usize = 6;

/// Kinds of secrets that the scanner knows by more than their beginning.
const SCANNED: [Kind; 11] = [
    Kind::AwsKey,
    Kind::GcpKey,
    Kind::AzureKey,
    Kind::GithubToken,
    Kind::SlackToken,
    Kind::StripeKey,
    Kind::AiKey,
    Kind::ServiceToken,
    Kind::Jwt,
    Kind::PrivateKey,
    Kind::UrlPassword,
];

/// What the name of a member says about its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretName {
    /// Nothing.
    Harmless,
    /// Text and whatever is below it are secret.
    Text,
    /// Numbers are secret too.
    TextAndNumbers,
}

/// Finds secrets by their beginnings, in any case; a closer look follows.
static BEGINNINGS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let words = PREFIXES.iter().chain(&MARKS);
    AhoCorasick::builder().kind(Some(AhoCorasickKind::DFA)).build(words).ok()
});

/// Pieces that every name of a secret has one of, however it is written.
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
static HINTS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let scanned = Kinds::of(&SCANNED);
    let anchors = KEYS.iter().filter(|key| scanned.has(key.kind)).map(|key| key.prefix);
    let words = NAME_PIECES.into_iter().chain(PREFIXES).chain(MARKS).chain(anchors);
    AhoCorasick::builder().ascii_case_insensitive(true).kind(Some(AhoCorasickKind::DFA)).build(words).ok()
});

static SCANNER: LazyLock<Option<Scanner>> = LazyLock::new(|| Scanner::new(Kinds::of(&SCANNED)).ok());

static ENTROPY: LazyLock<Option<Scanner>> =
    LazyLock::new(|| Scanner::new(Kinds::of(&[Kind::HighEntropy])).ok());

/// What a member's name says about its value.
pub fn secret_name(name: &str) -> SecretName {
    let words = words_of(name);
    let plain = words.concat();
    let is_word = |known: &&str| words.iter().any(|word| word == *known);
    let part = NAME_PARTS.iter().find(|part| plain.contains(**part));
    let is_harmless = words.len() > 1
        && matches!(part, Some(&("token" | "secret")))
        && words.last().is_some_and(|last| HARMLESS_ENDS.contains(&last.as_str()));
    if NUMERIC_NAMES.iter().any(|known| if known.len() > 4 { plain.contains(known) } else { is_word(known) })
    {
        SecretName::TextAndNumbers
    } else if is_harmless || part.is_none() && !NAME_WORDS.iter().any(is_word) {
        SecretName::Harmless
    } else {
        SecretName::Text
    }
}

/// Whether a text could hold a secret, by a member's name or by a value. Quick, and says yes too often rather than too rarely.
pub fn may_hold_secret(json: &str) -> bool {
    // What is escaped is not seen before it is read.
    json.contains('\\')
        || json.contains("://") && json.contains('@')
        || has_hint(json) && (has_suspicious_name(json) || !find_secrets(json).is_empty())
        || has_random_word(json)
}

/// Whether a text has any word that secrets or their names have.
fn has_hint(text: &str) -> bool {
    HINTS.as_ref().is_none_or(|hints| hints.is_match(text))
}

/// Whether a secret stands in a text.
pub fn has_secret(text: &str) -> bool {
    (text.contains("://") || has_hint(text)) && !find_secrets(text).is_empty() || has_random_word(text)
}

/// The text with every secret in it masked.
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

/// Whether a word of a text looks as random as a key.
pub fn has_random_word(text: &str) -> bool {
    let Some(scanner) = &*ENTROPY else { return false };
    let mut hits = Vec::new();
    scanner.scan(text, None, &mut hits);
    !hits.is_empty()
}

/// Where secrets stand in a text, in order, none of them twice.
fn find_secrets(text: &str) -> Vec<Range<usize>> {
    let mut hits: Vec<Hit> = Vec::new();
    if let Some(scanner) = &*SCANNER {
        scanner.scan(text, None, &mut hits);
    }
    let mut found: Vec<Range<usize>> = hits.into_iter().map(|hit| hit.at).collect();
    if let Some(beginnings) = &*BEGINNINGS {
        let places = beginnings.find_overlapping_iter(text);
        found.extend(places.filter_map(|place| behind(text, place.range())));
    }
    found.extend(passwords(text));
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

/// The secret that begins here, if enough of one follows.
fn behind(text: &str, beginning: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let word = text.get(beginning.clone())?;
    let is_mark = MARKS.contains(&word);
    let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if beginning.start > 0 && goes_on(&bytes[beginning.start - 1]) {
        return None;
    }
    let is_key = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_-.+/=~".contains(byte);
    let length = bytes[beginning.end..].iter().take_while(is_key).count();
    // A PEM block goes on to its end, which only the scanner knows; its first line is enough here.
    let is_enough =
        if is_mark { word.starts_with('-') || length >= LEAST_BEHIND } else { length >= LEAST_BEHIND };
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

/// The passwords in addresses: `scheme://user:password@host`.
fn passwords(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
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

/// Whether a member's name in a JSON text could be that of a secret.
fn has_suspicious_name(json: &str) -> bool {
    let mut texts = json.split('"').skip(1).step_by(2);
    texts.any(|text| text.len() <= 80 && has_hint(text) && secret_name(text) != SecretName::Harmless)
}

/// The words of a name, in lower case: `apiKey`, `API_KEY` and `api-key` are alike.
fn words_of(name: &str) -> Vec<String> {
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
