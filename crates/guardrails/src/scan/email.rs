//! Text around an `@`: an e-mail address, or a password in a URL.

use std::ops::Range;

use memchr::{memchr, memrchr};

use crate::finding_kind::FindingKind;

const MAX_NAME_BYTES: usize = 64;
const MAX_HOST_BYTES: usize = 253;

/// File extensions that are no domains: `logo@2x.png`.
const FILE_EXTENSIONS: &[&str] =
    &["png", "jpg", "jpeg", "gif", "svg", "webp", "css", "js", "ts", "json", "html", "md"];

/// Checks every `@` within a span, and returns the end of what was read.
pub(crate) fn scan(
    text: &str,
    span: Range<usize>,
    found: &mut impl FnMut(FindingKind, Range<usize>),
) -> usize {
    let bytes = text.as_bytes();
    let mut at = span.start;
    while let Some(next) = bytes.get(at..span.end).and_then(|rest| memchr(b'@', rest)) {
        let sign = at + next;
        at = sign + 1;
        if let Some(password) = match_password(text, sign) {
            found(FindingKind::UrlPassword, password);
        } else if let Some(address) = match_address(text, sign) {
            at = address.end;
            found(FindingKind::Email, address);
        }
    }
    at
}

fn match_address(text: &str, sign: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || b"._%+-'".contains(b);
    let name = bytes[..sign].iter().rev().take(MAX_NAME_BYTES + 1).take_while(|b| is_name(b)).count();
    let mut start = sign - name;
    while start < sign && !bytes[start].is_ascii_alphanumeric() {
        start += 1;
    }
    if start == sign || name > MAX_NAME_BYTES || matches!(bytes[sign - 1], b'.') {
        return None;
    }
    let is_host = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-');
    let length = bytes[sign + 1..].iter().take(MAX_HOST_BYTES).take_while(|b| is_host(b)).count();
    let host = text.get(sign + 1..sign + 1 + length)?.trim_end_matches(['.', '-']);
    let (domain, top) = host.rsplit_once('.')?;
    let is_top = top.len() >= 2 && top.bytes().all(|b| b.is_ascii_alphabetic());
    let is_file = FILE_EXTENSIONS.contains(&top.to_ascii_lowercase().as_str());
    let end = sign + 1 + host.len();
    // `git@host:path` is where a repository is.
    let is_repository = &text[start..sign] == "git" && bytes.get(end) == Some(&b':');
    (is_top && !is_file && !domain.is_empty() && !domain.contains("..") && !is_repository)
        .then_some(start..end)
}

/// `scheme://name:password@host`.
fn match_password(text: &str, sign: usize) -> Option<Range<usize>> {
    let start = super::floor_char(text, sign.saturating_sub(200));
    // A login has no slash in it, so the last one before the sign belongs to the scheme.
    let slash = memrchr(b'/', text.as_bytes().get(start..sign)?)?;
    let login = text.get(start + slash + 1..sign)?;
    if !text.get(start..=start + slash)?.ends_with("://") {
        return None;
    }
    let (_, password) = login.split_once(':')?;
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '/' | '<' | '$' | '{' | '"' | '\'');
    let is_masked = password.bytes().all(|b| matches!(b, b'*' | b'x' | b'X' | b'.'));
    let is_word = matches!(password, "password" | "pass" | "pw");
    (!password.is_empty() && password.chars().all(is_plain) && !is_masked && !is_word)
        .then(|| sign - password.len()..sign)
}
