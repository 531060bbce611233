//! Admission of browsers: session cookies in place of a header, and redirects to the sign-in page.
//!
//! Requests of programs, which have a header and other paths, do not run any of this.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::Request,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, Method, StatusCode, Uri, header};

use super::{AdmissionLayer, AdmissionResult, AdmissionRules, is_path_below};
use crate::{
    auth::{AuthError, AuthLookup, Authentication, BearerAuthenticator},
    host_check::request_host,
    rejection::Rejection,
    session::{
        BrowserSession, PAGES, SIGN_IN, SessionCookie, SignInRequest, cross_origin, is_for_browsers,
        is_same_origin, wants_page,
    },
};

// === impl AdmissionLayer ===

impl AdmissionLayer {
    pub(crate) fn rules(&self) -> &AdmissionRules {
        &self.0
    }

    /// Admits a request to a path that needs no token. A request to the sign-in page gets what it needs to sign in.
    pub(super) fn admit_without_token(&self, request: &mut Request, peer: Option<IpAddr>) -> AdmissionResult {
        let checks = &*self.0;
        checks.host_check.limit_body(request.body_mut());
        let Some(sessions) = checks.sessions.as_ref().filter(|_| request.uri().path() == SIGN_IN) else {
            return AdmissionResult::Admitted;
        };
        let (uri, headers) = (request.uri(), request.headers());
        if is_same_origin(uri, headers, checks.public_url.external_url.as_deref()) == Some(false)
            && request.method() != Method::GET
        {
            return AdmissionResult::Rejected(checks.reject(cross_origin()));
        }
        let host = request_host(uri, headers).unwrap_or_default();
        let is_encrypted = checks.public_url.base_url(host, false, headers).starts_with("https:");
        let from = checks.source_address(request, peer);
        let sign_in =
            SignInRequest { gate: self.clone(), sessions: Arc::clone(sessions), from, is_encrypted };
        request.extensions_mut().insert(sign_in);
        AdmissionResult::Admitted
    }
}

// === impl AdmissionRules ===

impl AdmissionRules {
    /// Authenticates by the session cookie, as far as that is possible without waiting.
    pub(super) fn authenticate_cookie(&self, request: &Request, bearers: &BearerAuthenticator) -> AuthLookup {
        match self.token_in_cookie(request) {
            Some(cookie) => match bearers.find_cached(cookie.token.expose()) {
                AuthLookup::Done(Ok(_)) if !bearers.is_valid(&cookie.session) => {
                    AuthLookup::Done(Err(AuthError::SignedOut))
                }
                answer => answer,
            },
            None => AuthLookup::Done(Err(AuthError::NoToken)),
        }
    }

    /// Token in the session cookie, on paths where cookies are accepted.
    pub(super) fn token_in_cookie(&self, request: &Request) -> Option<SessionCookie> {
        let sessions = self.sessions.as_ref()?;
        let host = request_host(request.uri(), request.headers()).unwrap_or_default();
        let path = request.uri().path();
        let plain = self.tenant_paths.parse(host, path).map_or(path, |tenant| tenant.plain_path(path));
        if is_for_browsers(plain) { sessions.open(request.headers()) } else { None }
    }

    /// Adds the [`BrowserSession`] to a request, or rejects one that another site made the browser send.
    pub(super) fn check_browser(&self, request: &mut Request, plain: Option<&Uri>) -> Result<(), Rejection> {
        let plain = plain.unwrap_or(request.uri()).path();
        let Some(sessions) = self.sessions.as_ref().filter(|_| is_for_browsers(plain)) else { return Ok(()) };
        let is_open = matches!(self.authentication, Authentication::Open(_));
        let session = sessions.check(request, plain, is_open, self.public_url.external_url.as_deref())?;
        request.extensions_mut().insert::<BrowserSession>(session);
        Ok(())
    }

    /// Redirect of `/` to the pages, for a browser.
    pub(super) fn redirect_root(&self, request: &Request) -> Option<Response> {
        let is_page_request = self.sessions.is_some()
            && request.method() == Method::GET
            && request.uri().path() == "/"
            && wants_page(request.headers());
        is_page_request.then(|| see_other(PAGES))
    }

    /// Redirect to the sign-in page, which returns to this address.
    pub(super) fn redirect_to_sign_in(&self, request: &Request, plain: &str) -> Option<Response> {
        if self.sessions.is_none() || !is_path_below(plain, PAGES) || !wants_page(request.headers()) {
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

fn see_other(path: &str) -> Response {
    let location = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static(SIGN_IN));
    (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response()
}
