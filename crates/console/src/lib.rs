//! Administration console: pages below `/factory`.
//!
//! Pages parse requests, call the operations of [`rialto_admin`] and render their results.
//!
//! Text from agents is untrusted: it passes through `text` before it is shown, and the templates escape it.

mod assets;
mod chart;
mod pages;
mod pretty_json;
mod schema_form;
mod text;

use axum::Router;
use rialto_admin::Administration;

/// Router of the pages and their assets. Requests must carry a caller, which admission adds.
pub fn router(admin: &Administration) -> Router {
    pages::router(admin).merge(assets::router())
}

/// Paths that need no session.
pub fn paths_before_sign_in() -> Vec<&'static str> {
    [rialto_http_server::session::SIGN_IN, assets::style_path(), assets::script_path()].to_vec()
}
