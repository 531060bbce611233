//! Signing in and out, and the colours.

use axum::{
    Extension,
    body::to_bytes,
    extract::{Query, Request, State},
    response::{IntoResponse, Redirect, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use maud::{Markup, html};
use rialto_edge::session::{BrowserSession, SIGN_IN, SignInRequest};
use rialto_model::failure::Failure;
use serde::Deserialize;

use super::{
    layout::{self, Theme},
    visit::{Visit, pairs},
};
use crate::{Console, admin::sessions, text};

/// The largest form that is read of somebody who is not in yet.
const LARGEST: usize = 16 * 1024;

#[derive(Deserialize)]
pub(super) struct Came {
    #[serde(default)]
    next: String,
}

pub(super) async fn form(
    State(console): State<Console>,
    Query(came): Query<Came>,
    headers: HeaderMap,
) -> Response {
    if !console.parts().needs_token {
        return Redirect::to("/factory").into_response();
    }
    let body = ask(inside(&came.next), None);
    layout::outside(layout::theme(&headers), StatusCode::OK, "Sign in", &body)
}

pub(super) async fn sign_in(
    State(console): State<Console>,
    newcomer: Option<Extension<SignInRequest>>,
    request: Request,
) -> Response {
    let theme = layout::theme(request.headers());
    let fields = to_bytes(request.into_body(), LARGEST).await.map(|body| pairs(&body)).unwrap_or_default();
    let field =
        |name: &str| fields.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str());
    let next = inside(field("next"));
    let cookie = match newcomer {
        Some(Extension(newcomer)) => {
            let signed_in = newcomer.sign_in(field("token").trim()).await;
            sessions::record_sign_in(&console, &signed_in).await;
            signed_in.map(|(cookie, ..)| cookie)
        }
        None => Err("nobody can sign in here".to_owned()),
    };
    match cookie.map(|cookie| HeaderValue::from_str(&cookie)) {
        Ok(Ok(cookie)) => ([(header::SET_COOKIE, cookie)], Redirect::to(next)).into_response(),
        Ok(Err(_)) => layout::outside(
            theme,
            StatusCode::BAD_REQUEST,
            "Sign in",
            &ask(next, Some("the cookie could not be written")),
        ),
        Err(why) => layout::outside(theme, StatusCode::UNAUTHORIZED, "Sign in", &ask(next, Some(&why))),
    }
}

pub(super) async fn sign_out(visit: Visit) -> Result<Response, Failure> {
    if let Some(session) = visit.session_id() {
        sessions::sign_out(&visit.console, &visit.caller, session).await?;
    }
    let cookie = HeaderValue::from_static(BrowserSession::removal_cookie());
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to(SIGN_IN)).into_response())
}

/// Changes the colours where no script does.
pub(super) async fn theme(visit: Visit) -> Result<Response, Failure> {
    let next = if visit.frame().theme == Some(Theme::Dark) { Theme::Light } else { Theme::Dark };
    let cookie = format!("rialto_theme={}; Path=/; Max-Age=31536000; SameSite=Strict", next.as_str());
    let mut response = visit.back("", "");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

fn ask(next: &str, why: Option<&str>) -> Markup {
    html! {
        div.panel {
            h1 { "Sign in to Rialto" }
            p.muted { "Show a token once. It is sealed into a cookie for twelve hours, and kept nowhere else." }
            @if let Some(why) = why {
                div #why.said.bad role="alert" { (text::phrase(why, 400)) }
            }
            form method="post" action=(SIGN_IN) data-plain {
                input type="hidden" name="next" value=(next);
                div.field {
                    label for="token" { "Token" }
                    input #token type="password" name="token" required autofocus autocomplete="current-password"
                        spellcheck="false" aria-describedby=[why.map(|_| "why")];
                    p.hint { "The first start of the server shows one. For another: " code { "rialto tokens create NAME --scope admin" } }
                }
                button.first type="submit" { "Sign in" }
            }
        }
    }
}

/// A path of our own to go on to: nobody is led anywhere else.
fn inside(next: &str) -> &str {
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
    fn nobody_is_led_elsewhere() {
        assert_eq!(inside("/acme/web/factory/agents?q=x"), "/acme/web/factory/agents?q=x");
        for elsewhere in
            ["https://evil.example/factory", "//evil/factory", "/\\evil/factory", "", "/mcp", "/x\n/factory"]
        {
            assert_eq!(inside(elsewhere), "/factory", "{elsewhere}");
        }
    }
}
