//! What the gate does for browsers: it takes a cookie in place of a header, and leads people to where they sign in.
//!
//! None of this is on the road of a program's call, which has a header and asks for another path.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::Request,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, Method, StatusCode, Uri, header};

use super::{Checks, Gate, Verdict, is_below};
use crate::{
    auth::{Answer, Authentication, Bearers, Denial},
    guard::host_of,
    refusal::Refusal,
    session::{
        Newcomer, PAGES, SIGN_IN, Session, SessionCookie, comes_from_us, foreign, is_for_browsers, wants_page,
    },
};

// === impl Gate ===

impl Gate {
    pub(crate) fn checks(&self) -> &Checks {
        &self.0
    }

    /// Lets a request to a path without locks through. Whoever wants to sign in is given the way to do so.
    pub(super) fn unlock(&self, request: &mut Request, peer: Option<IpAddr>) -> Verdict {
        let checks = &*self.0;
        checks.guard.limit(request.body_mut());
        let Some(sessions) = checks.sessions.as_ref().filter(|_| request.uri().path() == SIGN_IN) else {
            return Verdict::Passes;
        };
        let (uri, headers) = (request.uri(), request.headers());
        if comes_from_us(uri, headers, checks.site.public_url.as_deref()) == Some(false)
            && request.method() != Method::GET
        {
            return Verdict::Answered(checks.turn_away(foreign()));
        }
        let host = host_of(uri, headers).unwrap_or_default();
        let is_encrypted = checks.site.base(host, false, headers).starts_with("https:");
        let from = checks.source(request, peer);
        let newcomer = Newcomer { gate: self.clone(), sessions: Arc::clone(sessions), from, is_encrypted };
        request.extensions_mut().insert(newcomer);
        Verdict::Passes
    }
}

// === impl Checks ===

impl Checks {
    /// Who comes with a cookie, as far as can be said without waiting.
    pub(super) fn look_at_cookie(&self, request: &Request, bearers: &Bearers) -> Answer {
        match self.token_in_cookie(request) {
            Some(cookie) => match bearers.look(cookie.token.expose()) {
                Answer::Known(Ok(_)) if !bearers.is_good(&cookie.session) => {
                    Answer::Known(Err(Denial::SignedOut))
                }
                answer => answer,
            },
            None => Answer::Known(Err(Denial::NoToken)),
        }
    }

    /// The token in a request's cookie, where cookies count.
    pub(super) fn token_in_cookie(&self, request: &Request) -> Option<SessionCookie> {
        let sessions = self.sessions.as_ref()?;
        let host = host_of(request.uri(), request.headers()).unwrap_or_default();
        let path = request.uri().path();
        let plain = self.places.read(host, path).map_or(path, |asked| asked.rest(path));
        if is_for_browsers(plain) { sessions.open(request.headers()) } else { None }
    }

    /// Tells what is behind how a browser came, or refuses what another page made it send.
    pub(super) fn judge_browser(&self, request: &mut Request, plain: Option<&Uri>) -> Result<(), Refusal> {
        let plain = plain.unwrap_or(request.uri()).path();
        let Some(sessions) = self.sessions.as_ref().filter(|_| is_for_browsers(plain)) else { return Ok(()) };
        let is_open = matches!(self.authentication, Authentication::Open(_));
        let session = sessions.judge(request, plain, is_open, self.site.public_url.as_deref())?;
        request.extensions_mut().insert::<Session>(session);
        Ok(())
    }

    /// The answer to somebody who opens the address of this server in a browser.
    pub(super) fn greet(&self, request: &Request) -> Option<Response> {
        let is_greeted = self.sessions.is_some()
            && request.method() == Method::GET
            && request.uri().path() == "/"
            && wants_page(request.headers());
        is_greeted.then(|| see_other(PAGES))
    }

    /// Leads somebody who wants a page to where it can sign in; it comes back to where it was.
    pub(super) fn lead_to_sign_in(&self, request: &Request, plain: &str) -> Option<Response> {
        if self.sessions.is_none() || !is_below(plain, PAGES) || !wants_page(request.headers()) {
            return None;
        }
        if request.method() != Method::GET {
            return Some(see_other(SIGN_IN));
        }
        let asked = request.uri().path_and_query().map_or(PAGES, http::uri::PathAndQuery::as_str);
        let next: String = url::form_urlencoded::byte_serialize(asked.as_bytes()).collect();
        Some(see_other(&format!("{SIGN_IN}?next={next}")))
    }
}

fn see_other(place: &str) -> Response {
    let place = HeaderValue::from_str(place).unwrap_or(HeaderValue::from_static(SIGN_IN));
    (StatusCode::SEE_OTHER, [(header::LOCATION, place)]).into_response()
}
