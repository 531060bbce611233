//! Browser sessions: sign in once with a token, then by cookie.
//!
//! The cookie holds the token and the id of a session, sealed with a key of the store, and its expiry. The session is a row among the
//! tokens of the store: signing out revokes it, so a copy of the cookie is refused from the next request on, by every process of the store.
//! The same holds when the token itself is revoked. Any site can make a browser send the cookie, so a request that changes something must
//! come from a page of ours, and prove that it has read one (a code over the cookie, which only our pages have).
//!
//! Cookies are accepted below [`PAGES`] and [`API`] only, and only without an `Authorization` header; no protocol of programs reads one.

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::extract::Request;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, Method, StatusCode, Uri, header};
use rialto_model::{call::Caller, clock::Clock, credential::Secret, ids::TokenId};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::{
    admission::AdmissionLayer, auth::Authentication, host_check::request_host, rejection::Rejection,
};

/// Path of the console's pages.
pub const PAGES: &str = "/factory";

/// Path of the API that their scripts call.
pub const API: &str = "/api/v1";

/// Path of the sign-in page.
pub const SIGN_IN: &str = "/factory/sign-in";

/// Header in which scripts prove that they have read one of our pages.
pub const CSRF_HEADER: &str = "x-csrf-token";

const COOKIE_NAME: &str = "rialto_session";

/// Lifetime of a session, in seconds.
const SESSION_SECONDS: i64 = 12 * 60 * 60;

/// Maximum bytes of a cookie; browsers drop longer ones.
const MAX_COOKIE_BYTES: usize = 4_000;

/// Encrypts a text.
pub type SealFn = Box<dyn Fn(&Secret) -> Option<Vec<u8>> + Send + Sync>;

/// Opens what was encrypted.
pub type OpenFn = Box<dyn Fn(&[u8]) -> Option<Secret> + Send + Sync>;

/// Encryption of cookies.
pub struct CookieSealing {
    /// Encrypts.
    pub seal: SealFn,
    /// Opens, if it was encrypted here.
    pub open: OpenFn,
}

/// Creates and reads session cookies.
pub struct BrowserSessions {
    sealing: CookieSealing,
    key: Hmac<Sha256>,
    clock: Arc<dyn Clock>,
}

/// Session of a browser's request, for the handlers behind admission.
#[derive(Clone, Debug)]
pub struct BrowserSession {
    /// CSRF code that forms must repeat.
    pub csrf: Arc<str>,
    /// True if the request has a session cookie.
    pub is_signed_in: bool,
    /// Id of the session.
    pub id: Option<TokenId>,
    /// True if the request has proven to come from a page of ours, or need not.
    is_proven: bool,
}

/// Content of a session cookie.
pub(crate) struct SessionCookie {
    pub(crate) session: TokenId,
    pub(crate) token: Secret,
}

/// State that the sign-in page needs.
#[derive(Clone)]
pub struct SignInRequest {
    pub(crate) gate: AdmissionLayer,
    pub(crate) sessions: Arc<BrowserSessions>,
    pub(crate) from: Option<IpAddr>,
    pub(crate) is_encrypted: bool,
}

// === impl BrowserSessions ===

impl BrowserSessions {
    /// Creates sessions with this encryption. CSRF codes are made with `key`.
    pub fn new(sealing: CookieSealing, key: [u8; 32], clock: Arc<dyn Clock>) -> Option<Self> {
        let key = Hmac::new_from_slice(&key).ok()?;
        Some(Self { sealing, key, clock })
    }

    /// Content of a request's cookie, if it has not expired.
    pub(crate) fn open(&self, headers: &HeaderMap) -> Option<SessionCookie> {
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(cookie(headers)?).ok()?;
        let opened = (self.sealing.open)(&sealed)?;
        let (until, rest) = opened.expose().split_once('\n')?;
        let (session, token) = rest.split_once('\n')?;
        let is_good = until.parse::<i64>().is_ok_and(|until| self.clock.now().as_second() < until);
        is_good.then(|| SessionCookie { session: TokenId::from(session), token: Secret::from(token) })
    }

    /// Checks the CSRF proof of a browser's request; rejects a request that requires one and has none.
    pub(crate) fn check(
        &self,
        request: &Request,
        plain: &str,
        is_open: bool,
        public: Option<&str>,
    ) -> Result<BrowserSession, Rejection> {
        let headers = request.headers();
        let cookie = cookie(headers).filter(|_| !is_open);
        let csrf = self.csrf_code(cookie.unwrap_or("nobody signs in"));
        let id = cookie.and_then(|_| self.open(headers)).map(|cookie| cookie.session);
        let session = |is_proven| BrowserSession {
            csrf: csrf.clone().into(),
            is_signed_in: cookie.is_some(),
            id: id.clone(),
            is_proven,
        };
        if headers.contains_key(header::AUTHORIZATION) {
            return Ok(session(true));
        }
        if matches!(*request.method(), Method::GET | Method::HEAD) {
            return Ok(session(false));
        }
        let is_same_origin = is_same_origin(request.uri(), headers, public);
        if is_same_origin == Some(false) || is_same_origin.is_none() && cookie.is_some() {
            return Err(cross_origin());
        }
        match headers.get(CSRF_HEADER) {
            Some(given) if bool::from(given.as_bytes().ct_eq(csrf.as_bytes())) => Ok(session(true)),
            Some(_) => Err(missing_csrf_proof()),
            None if cookie.is_some() && is_below(plain, API) => Err(missing_csrf_proof()),
            None => Ok(session(false)),
        }
    }

    fn seal(&self, session: &TokenId, token: &str) -> Option<String> {
        let until = self.clock.now().as_second() + SESSION_SECONDS;
        let sealed = (self.sealing.seal)(&Secret::from(format!("{until}\n{session}\n{token}")))?;
        Some(BASE64_URL_SAFE_NO_PAD.encode(sealed))
    }

    fn csrf_code(&self, cookie: &str) -> String {
        let code = self.key.clone().chain_update(cookie).finalize().into_bytes();
        BASE64_URL_SAFE_NO_PAD.encode(code)
    }
}

// === impl BrowserSession ===

impl BrowserSession {
    /// True if the request comes from a page of ours, which has put `field` into its form.
    pub fn is_proven(&self, field: Option<&str>) -> bool {
        self.is_proven || field.is_some_and(|field| bool::from(field.as_bytes().ct_eq(self.csrf.as_bytes())))
    }

    /// Cookie that removes the session cookie.
    pub const fn removal_cookie() -> &'static str {
        "rialto_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"
    }
}

// === impl SignInRequest ===

impl SignInRequest {
    /// Signs in with a token: the cookie, the caller and the session, or the error for the page.
    pub async fn sign_in(&self, token: &str) -> Result<(String, Caller, TokenId), String> {
        let rules = self.gate.rules();
        let Authentication::Bearer(bearers) = &rules.authentication else {
            return Err("sign-in is not needed: the server was started with --allow-no-auth".to_owned());
        };
        if let Some(wait) = rules.limits.now().blocked_for(|| self.from) {
            let seconds = wait.as_secs() + 1;
            return Err(format!("too many wrong tokens came from this address; try again in {seconds} s"));
        }
        let caller = match bearers.find(token).await {
            Ok(admitted) => admitted.caller,
            Err(error) => {
                if rules.limits.now().counts_tokens() && error.is_wrong_token() {
                    rules.limits.now().count_wrong_token(self.from);
                }
                rules.counters.count_rejection(error.reason());
                return Err(error.message().into_owned());
            }
        };
        let lifetime = Duration::from_secs(SESSION_SECONDS.unsigned_abs());
        let session = bearers.begin_session(&caller, lifetime).await;
        let session =
            session.ok_or("the store did not take the session; see the server's log, and try again")?;
        let value = self.sessions.seal(&session, token).filter(|value| value.len() <= MAX_COOKIE_BYTES);
        let value = value.ok_or(
            "this token is too long to be kept in a cookie; make one with `rialto tokens create NAME`",
        )?;
        let secure = if self.is_encrypted { "; Secure" } else { "" };
        let cookie = format!(
            "{COOKIE_NAME}={value}; Path=/; Max-Age={SESSION_SECONDS}; HttpOnly; SameSite=Strict{secure}"
        );
        Ok((cookie, caller, session))
    }
}

/// True if cookies are accepted on a path without org and project.
pub(crate) fn is_for_browsers(plain: &str) -> bool {
    is_below(plain, PAGES) || is_below(plain, API)
}

/// True if the client asks for a page.
pub(crate) fn wants_page(headers: &HeaderMap) -> bool {
    let mut accepts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepts.any(|accepts| accepts.contains("text/html"))
}

/// True if a page of ours made the browser send this; none if the request does not say.
pub(crate) fn is_same_origin(uri: &Uri, headers: &HeaderMap, public: Option<&str>) -> Option<bool> {
    let text = |name| headers.get(name).map(|value: &http::HeaderValue| value.to_str().unwrap_or_default());
    // No page can set this one.
    if let Some(site) = text(header::HeaderName::from_static("sec-fetch-site")) {
        return Some(matches!(site, "same-origin" | "none"));
    }
    let origin = text(header::ORIGIN)?;
    let authority = origin.split_once("://").map(|(_, authority)| authority).unwrap_or_default();
    let is_host = request_host(uri, headers).is_some_and(|host| host.eq_ignore_ascii_case(authority));
    let is_public = public.is_some_and(|url| url.trim_end_matches('/').eq_ignore_ascii_case(origin));
    Some(is_host || is_public)
}

pub(crate) fn cross_origin() -> Rejection {
    let message = "this was not sent by a page of this server; open the page here and do it there";
    Rejection::new(StatusCode::FORBIDDEN, "cross-origin", message)
}

fn missing_csrf_proof() -> Rejection {
    let message = "this page is too old, or you have signed in anew since; load it again";
    Rejection::new(StatusCode::FORBIDDEN, "csrf", message)
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value)
}

fn is_below(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use rialto_model::clock::FixedClock;

    use super::*;

    fn sessions(at: &str) -> BrowserSessions {
        // Turned around is all the secrecy these tests need.
        let turned = |text: &[u8]| text.iter().rev().copied().collect::<Vec<u8>>();
        let sealing = CookieSealing {
            seal: Box::new(move |text| Some(turned(text.expose().as_bytes()))),
            open: Box::new(move |text| String::from_utf8(turned(text)).ok().map(Secret::from)),
        };
        BrowserSessions::new(sealing, [7; 32], Arc::new(FixedClock(at.parse().unwrap()))).unwrap()
    }

    fn request(method: &str, headers: &[(&str, &str)]) -> Request {
        let mut request = http::Request::builder().method(method).uri("/factory").header("host", "here:1");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).unwrap()
    }

    #[test]
    fn a_cookie_holds_its_token_until_it_ends() {
        let value = sessions("2026-08-01T12:00:00Z").seal(&"ses_1".into(), "mine").unwrap();
        let cookie = format!("a=b; {COOKIE_NAME}={value}");
        let request = request("GET", &[("cookie", &cookie)]);
        let token =
            |at: &str| sessions(at).open(request.headers()).map(|cookie| cookie.token.expose().to_owned());
        assert_eq!(token("2026-08-01T23:59:59Z").as_deref(), Some("mine"));
        assert_eq!(token("2026-08-02T00:00:00Z"), None);
    }

    #[test]
    fn a_request_that_changes_something_must_come_from_our_page_and_prove_it() {
        let sessions = sessions("2026-08-01T12:00:00Z");
        let cookie = format!("{COOKIE_NAME}={}", sessions.seal(&"ses_1".into(), "mine").unwrap());
        let proof = sessions.check(&request("GET", &[("cookie", &cookie)]), PAGES, false, None).unwrap().csrf;
        let check = |path: &str, is_open: bool, headers: &[(&str, &str)]| {
            let checked = sessions.check(&request("POST", headers), path, is_open, Some("https://there/"));
            checked.map(|session| session.is_proven(None)).map_err(|rejection| rejection.error)
        };
        let (ours, theirs) = (("origin", "http://here:1"), ("origin", "http://here:2"));
        let signed = ("cookie", cookie.as_str());
        assert_eq!(check(API, false, &[signed, ours, (CSRF_HEADER, &proof)]), Ok(true));
        assert_eq!(
            check(API, false, &[signed, ("origin", "https://there"), (CSRF_HEADER, &proof)]),
            Ok(true)
        );
        assert_eq!(check(API, false, &[signed, ours]), Err("csrf"));
        assert_eq!(check(API, false, &[signed, ours, (CSRF_HEADER, "guess")]), Err("csrf"));
        assert_eq!(check(API, false, &[signed, theirs, (CSRF_HEADER, &proof)]), Err("cross-origin"));
        assert_eq!(
            check(API, false, &[signed, (CSRF_HEADER, &proof)]),
            Err("cross-origin"),
            "it does not say"
        );
        let site = ("sec-fetch-site", "same-site");
        assert_eq!(check(API, false, &[signed, ours, site, (CSRF_HEADER, &proof)]), Err("cross-origin"));
        assert_eq!(check(PAGES, false, &[signed, ours]), Ok(false), "a form proves it with a field");
        assert_eq!(check(API, true, &[]), Ok(false), "a program, where nobody signs in");
        assert_eq!(
            check(API, true, &[theirs]),
            Err("cross-origin"),
            "a page of another server of this machine"
        );
        assert_eq!(check(API, false, &[("authorization", "Bearer x")]), Ok(true));
    }

    #[test]
    fn a_form_repeats_the_code_of_its_own_session() {
        let sessions = sessions("2026-08-01T12:00:00Z");
        let of = |token: &str| {
            let cookie = format!("{COOKIE_NAME}={}", sessions.seal(&"ses_1".into(), token).unwrap());
            sessions.check(&request("GET", &[("cookie", &cookie)]), PAGES, false, None).unwrap()
        };
        let (mine, other) = (of("mine"), of("other"));
        assert!(mine.is_proven(Some(&mine.csrf)) && !mine.is_proven(Some(&other.csrf)));
        assert!(!mine.is_proven(None) && !mine.is_proven(Some("")));
    }
}
