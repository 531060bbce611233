//! Stylesheet and script. Their paths contain a hash of the content, so browsers cache them without revalidation.

use std::sync::LazyLock;

use axum::{
    Router,
    response::{IntoResponse, Response},
    routing::get,
};
use http::{HeaderMap, HeaderValue, StatusCode, header};

const STYLE: &str = include_str!("assets/console.css");
const SCRIPT: &str = include_str!("assets/console.js");

static STYLE_PATH: LazyLock<&'static str> = LazyLock::new(|| hashed_path(STYLE, "css"));
static SCRIPT_PATH: LazyLock<&'static str> = LazyLock::new(|| hashed_path(SCRIPT, "js"));

/// Path of the stylesheet.
pub(crate) fn style_path() -> &'static str {
    &STYLE_PATH
}

/// Path of the script.
pub(crate) fn script_path() -> &'static str {
    &SCRIPT_PATH
}

pub(crate) fn router() -> Router {
    Router::new()
        .route(
            style_path(),
            get(|headers: HeaderMap| async move {
                serve_file(&headers, style_path(), STYLE, "text/css; charset=utf-8")
            }),
        )
        .route(
            script_path(),
            get(|headers: HeaderMap| async move {
                serve_file(&headers, script_path(), SCRIPT, "text/javascript; charset=utf-8")
            }),
        )
}

fn serve_file(headers: &HeaderMap, path: &'static str, text: &'static str, kind: &'static str) -> Response {
    let tag = format!("\"{path}\"");
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let headers_out = [
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
        (header::ETAG, HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\""))),
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    if is_known {
        (StatusCode::NOT_MODIFIED, headers_out).into_response()
    } else {
        (headers_out, text).into_response()
    }
}

/// Path with the FNV-1a hash of the content. It lives as long as the program.
fn hashed_path(text: &str, ending: &str) -> &'static str {
    let number = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |number, byte| {
        (number ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("/factory/assets/console-{number:016x}.{ending}").leak()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_files_are_small_and_load_nothing_from_other_hosts() {
        assert!(STYLE.len() + SCRIPT.len() < 60_000);
        for text in [STYLE, SCRIPT] {
            assert!(!text.contains("http://") && !text.contains("https://") && !text.contains("@import"));
        }
    }
}
