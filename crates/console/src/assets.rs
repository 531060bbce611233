//! The stylesheet and the script. Their names hold a number made from what is in them, so browsers may keep them for ever.

use std::sync::LazyLock;

use axum::{
    Router,
    response::{IntoResponse, Response},
    routing::get,
};
use http::{HeaderMap, HeaderValue, StatusCode, header};

const STYLE: &str = include_str!("assets/console.css");
const SCRIPT: &str = include_str!("assets/console.js");

static STYLE_PATH: LazyLock<&'static str> = LazyLock::new(|| path(STYLE, "css"));
static SCRIPT_PATH: LazyLock<&'static str> = LazyLock::new(|| path(SCRIPT, "js"));

/// Where the stylesheet is.
pub(crate) fn style() -> &'static str {
    &STYLE_PATH
}

/// Where the script is.
pub(crate) fn script() -> &'static str {
    &SCRIPT_PATH
}

pub(crate) fn router() -> Router {
    Router::new()
        .route(
            style(),
            get(
                |headers: HeaderMap| async move { file(&headers, style(), STYLE, "text/css; charset=utf-8") },
            ),
        )
        .route(
            script(),
            get(|headers: HeaderMap| async move {
                file(&headers, script(), SCRIPT, "text/javascript; charset=utf-8")
            }),
        )
}

fn file(headers: &HeaderMap, path: &'static str, text: &'static str, kind: &'static str) -> Response {
    let tag = format!("\"{path}\"");
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let told = [
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
        (header::ETAG, HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\""))),
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    if is_known { (StatusCode::NOT_MODIFIED, told).into_response() } else { (told, text).into_response() }
}

/// FNV-1a tells two versions of a file apart. The path lives as long as the program does.
fn path(text: &str, ending: &str) -> &'static str {
    let number = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |number, byte| {
        (number ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("/factory/assets/console-{number:016x}.{ending}").leak()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_files_are_small_and_name_nobody_outside() {
        assert!(STYLE.len() + SCRIPT.len() < 60_000);
        for text in [STYLE, SCRIPT] {
            assert!(!text.contains("http://") && !text.contains("https://") && !text.contains("@import"));
        }
    }
}
