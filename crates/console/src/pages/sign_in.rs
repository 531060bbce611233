//! Sign-in, sign-out and the color theme.

use axum::{
    Extension,
    body::to_bytes,
    extract::{Query, Request, State},
    response::{IntoResponse, Redirect, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use maud::{Markup, html};
use rialto_admin::{Administration, sessions};
use rialto_http_server::session::{BrowserSession, SIGN_IN, SignInRequest};
use rialto_model::failure::Failure;
use serde::Deserialize;

use super::{
    layout::{self, Theme},
    request::{PageRequest, parse_pairs},
};
use crate::text;

/// Maximum size of the sign-in form.
const MAX_FORM_BYTES: usize = 16 * 1024;

#[derive(Deserialize)]
pub(super) struct SignInQuery {
    #[serde(default)]
    next: String,
}

pub(super) async fn form(
    State(admin): State<Administration>,
    Query(query): Query<SignInQuery>,
    headers: HeaderMap,
) -> Response {
    if !admin.deps().needs_token {
        return Redirect::to("/factory").into_response();
    }
    let body = sign_in_form(local_path(&query.next), None);
    layout::signed_out_page(layout::theme(&headers), StatusCode::OK, "Sign in", &body)
}

pub(super) async fn submit(
    State(admin): State<Administration>,
    newcomer: Option<Extension<SignInRequest>>,
    request: Request,
) -> Response {
    let theme = layout::theme(request.headers());
    let fields = to_bytes(request.into_body(), MAX_FORM_BYTES)
        .await
        .map(|body| parse_pairs(&body))
        .unwrap_or_default();
    let field =
        |name: &str| fields.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str());
    let next = local_path(field("next"));
    let cookie = match newcomer {
        Some(Extension(newcomer)) => {
            let signed_in = newcomer.sign_in(field("token").trim()).await;
            sessions::record_sign_in(&admin, &signed_in).await;
            signed_in.map(|(cookie, ..)| cookie)
        }
        None => Err("sign-in is not available on this server".to_owned()),
    };
    match cookie.map(|cookie| HeaderValue::from_str(&cookie)) {
        Ok(Ok(cookie)) => ([(header::SET_COOKIE, cookie)], Redirect::to(next)).into_response(),
        Ok(Err(_)) => layout::signed_out_page(
            theme,
            StatusCode::BAD_REQUEST,
            "Sign in",
            &sign_in_form(next, Some("the cookie could not be written")),
        ),
        Err(why) => layout::signed_out_page(
            theme,
            StatusCode::UNAUTHORIZED,
            "Sign in",
            &sign_in_form(next, Some(&why)),
        ),
    }
}

pub(super) async fn sign_out(request: PageRequest) -> Result<Response, Failure> {
    if let Some(session) = request.session_id() {
        sessions::sign_out(&request.admin, &request.caller, session).await?;
    }
    let cookie = HeaderValue::from_static(BrowserSession::removal_cookie());
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to(SIGN_IN)).into_response())
}

/// Switches the theme for browsers without scripts.
pub(super) async fn theme(request: PageRequest) -> Result<Response, Failure> {
    let next = if request.frame().theme == Some(Theme::Dark) { Theme::Light } else { Theme::Dark };
    let cookie = format!("rialto_theme={}; Path=/; Max-Age=31536000; SameSite=Strict", next.as_str());
    let mut response = request.redirect_back("", "");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

fn sign_in_form(next: &str, why: Option<&str>) -> Markup {
    html! {
        div.panel {
            h1 { "Sign in to Rialto" }
            p.muted { "Sign in with a token. It is sealed into a cookie for 12 hours and stored nowhere else." }
            @if let Some(why) = why {
                div #why.notice.bad role="alert" { (text::render_message_line(why, 400)) }
            }
            form method="post" action=(SIGN_IN) data-plain {
                input type="hidden" name="next" value=(next);
                div.field {
                    label for="token" { "Token" }
                    input #token type="password" name="token" required autofocus autocomplete="current-password"
                        spellcheck="false" aria-describedby=[why.map(|_| "why")];
                    p.hint { "The server prints a token at its first start. Create another: " code { "rialto tokens create NAME --scope admin" } }
                }
                button.first type="submit" { "Sign in" }
            }
        }
    }
}

/// Path of the console to continue at. Any other target is replaced by the overview.
fn local_path(next: &str) -> &str {
    let is_ours = next.starts_with('/')
        && !next.starts_with("//")
        && !next.contains(['\\', '\r', '\n', '\t'])
        && next.split('?').next().is_some_and(|path| path.split('/').any(|word| word == "factory"));
    if is_ours { next } else { "/factory" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_the_console_are_redirect_targets() {
        assert_eq!(local_path("/acme/web/factory/agents?q=x"), "/acme/web/factory/agents?q=x");
        for elsewhere in
            ["https://evil.example/factory", "//evil/factory", "/\\evil/factory", "", "/mcp", "/x\n/factory"]
        {
            assert_eq!(local_path(elsewhere), "/factory", "{elsewhere}");
        }
    }
}
