//! Browsers: people who have shown their token once, and come with a cookie from then on.
//!
//! The cookie holds the token itself and the name of a session, sealed with a key of the store, and the moment it ends. The session is a
//! row among the tokens of the store: signing out revokes it, so a copy of the cookie is refused from the very next request on, by every
//! process of the store. So it is when the token itself is revoked. A cookie is sent
//! by any page that makes a browser do something: what changes anything must come from a page of ours, and prove that it has read one
//! (a code over the cookie, which only our pages have).
//!
//! Cookies count below [`PAGES`] and [`API`] only, and only where no `Authorization` header stands; no protocol of programs ever
//! looks at one.

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::extract::Request;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, Method, StatusCode, Uri, header};
use rialto_model::{call::Caller, clock::Clock, credential::Secret, ids::TokenId};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::{
    auth::{Authentication, Denial},
    gate::Gate,
    guard::host_of,
    refusal::Refusal,
};

/// Where pages for people are.
pub const PAGES: &str = "/factory";

/// Where their scripts ask.
pub const API: &str = "/api/v1";

/// Where somebody signs in.
pub const SIGN_IN: &str = "/factory/sign-in";

/// The header in which scripts prove that they have read one of our pages.
pub const PROOF: &str = "x-csrf-token";

const COOKIE: &str = "rialto_session";

/// How long somebody stays signed in, in seconds.
const LIFE: i64 = 12 * 60 * 60;

/// Browsers drop cookies that are longer.
const LONGEST: usize = 4_000;

/// Encrypts a text.
pub type Seal = Box<dyn Fn(&Secret) -> Option<Vec<u8>> + Send + Sync>;

/// Opens what was encrypted.
pub type Open = Box<dyn Fn(&[u8]) -> Option<Secret> + Send + Sync>;

/// Encrypts a text, and opens what was encrypted.
pub struct Sealing {
    /// Encrypts.
    pub seal: Seal,
    /// Opens, if it was encrypted here.
    pub open: Open,
}

/// Makes cookies, and reads them again.
pub struct Sessions {
    sealing: Sealing,
    key: Hmac<Sha256>,
    clock: Arc<dyn Clock>,
}

/// How a request of a browser came, for what is behind the gate.
#[derive(Clone, Debug)]
pub struct Session {
    /// What forms must repeat.
    pub csrf: Arc<str>,
    /// Whether it came with a cookie, which can be taken back.
    pub is_signed_in: bool,
    /// The session of its cookie.
    pub id: Option<TokenId>,
    /// Whether it has proven to come from a page of ours, or need not.
    is_proven: bool,
}

/// What a cookie holds.
pub(crate) struct SessionCookie {
    pub(crate) session: TokenId,
    pub(crate) token: Secret,
}

/// Somebody who wants to sign in.
#[derive(Clone)]
pub struct Newcomer {
    pub(crate) gate: Gate,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) from: Option<IpAddr>,
    pub(crate) is_encrypted: bool,
}

// === impl Sessions ===

impl Sessions {
    /// Sessions that are sealed like this. Proofs are made with `key`.
    pub fn new(sealing: Sealing, key: [u8; 32], clock: Arc<dyn Clock>) -> Option<Self> {
        let key = Hmac::new_from_slice(&key).ok()?;
        Some(Self { sealing, key, clock })
    }

    /// What a request's cookie holds, if there is one whose time is not over.
    pub(crate) fn open(&self, headers: &HeaderMap) -> Option<SessionCookie> {
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(cookie(headers)?).ok()?;
        let opened = (self.sealing.open)(&sealed)?;
        let (until, rest) = opened.expose().split_once('\n')?;
        let (session, token) = rest.split_once('\n')?;
        let is_good = until.parse::<i64>().is_ok_and(|until| self.clock.now().as_second() < until);
        is_good.then(|| SessionCookie { session: TokenId::from(session), token: Secret::from(token) })
    }

    /// What a request of a browser has proven; a refusal where it had to, and has not.
    pub(crate) fn judge(
        &self,
        request: &Request,
        plain: &str,
        is_open: bool,
        public: Option<&str>,
    ) -> Result<Session, Refusal> {
        let headers = request.headers();
        let cookie = cookie(headers).filter(|_| !is_open);
        let csrf = self.proof(cookie.unwrap_or("nobody signs in"));
        let id = cookie.and_then(|_| self.open(headers)).map(|cookie| cookie.session);
        let session = |is_proven| Session {
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
        let is_ours = comes_from_us(request.uri(), headers, public);
        if is_ours == Some(false) || is_ours.is_none() && cookie.is_some() {
            return Err(foreign());
        }
        match headers.get(PROOF) {
            Some(given) if bool::from(given.as_bytes().ct_eq(csrf.as_bytes())) => Ok(session(true)),
            Some(_) => Err(unproven()),
            None if cookie.is_some() && is_below(plain, API) => Err(unproven()),
            None => Ok(session(false)),
        }
    }

    fn seal(&self, session: &TokenId, token: &str) -> Option<String> {
        let until = self.clock.now().as_second() + LIFE;
        let sealed = (self.sealing.seal)(&Secret::from(format!("{until}\n{session}\n{token}")))?;
        Some(BASE64_URL_SAFE_NO_PAD.encode(sealed))
    }

    fn proof(&self, of: &str) -> String {
        let code = self.key.clone().chain_update(of).finalize().into_bytes();
        BASE64_URL_SAFE_NO_PAD.encode(code)
    }
}

// === impl Session ===

impl Session {
    /// Whether the request comes from a page of ours, which has put `field` into its form.
    pub fn is_proven(&self, field: Option<&str>) -> bool {
        self.is_proven || field.is_some_and(|field| bool::from(field.as_bytes().ct_eq(self.csrf.as_bytes())))
    }

    /// The cookie that ends a session.
    pub const fn goodbye() -> &'static str {
        "rialto_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"
    }
}

// === impl Newcomer ===

impl Newcomer {
    /// The cookie of somebody who shows this token, and who that is; or why there is none.
    pub async fn sign_in(&self, token: &str) -> Result<(String, Caller, TokenId), String> {
        let checks = self.gate.checks();
        let Authentication::Bearer(bearers) = &checks.authentication else {
            return Err("nobody signs in here: the server was started with --allow-no-auth".to_owned());
        };
        if let Some(wait) = checks.limits.now().shut_out(|| self.from) {
            let seconds = wait.as_secs() + 1;
            return Err(format!("too many wrong tokens came from this address; try again in {seconds} s"));
        }
        let caller = match bearers.find(token).await {
            Ok(admitted) => admitted.caller,
            Err(denial) => {
                if checks.limits.now().counts_tokens() && denial.is_wrong_token() {
                    checks.limits.now().wrong_token(self.from);
                }
                checks.tally.refused(denial.reason());
                return Err(why(&denial));
            }
        };
        let lifetime = Duration::from_secs(LIFE.unsigned_abs());
        let session = bearers.begin_session(&caller, lifetime).await;
        let session =
            session.ok_or("the store did not take the session; see the server's log, and try again")?;
        let value = self.sessions.seal(&session, token).filter(|value| value.len() <= LONGEST);
        let value = value.ok_or(
            "this token is too long to be kept in a cookie; make one with `rialto tokens create NAME`",
        )?;
        let secure = if self.is_encrypted { "; Secure" } else { "" };
        let cookie = format!("{COOKIE}={value}; Path=/; Max-Age={LIFE}; HttpOnly; SameSite=Strict{secure}");
        Ok((cookie, caller, session))
    }
}

/// Whether a path without org and project may be come to with a cookie.
pub(crate) fn is_for_browsers(plain: &str) -> bool {
    is_below(plain, PAGES) || is_below(plain, API)
}

/// Whether whoever asks wants a page.
pub(crate) fn wants_page(headers: &HeaderMap) -> bool {
    let mut accepts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepts.any(|accepts| accepts.contains("text/html"))
}

/// Whether a page of ours made the browser send this; nothing if it does not say.
pub(crate) fn comes_from_us(uri: &Uri, headers: &HeaderMap, public: Option<&str>) -> Option<bool> {
    let text = |name| headers.get(name).map(|value: &http::HeaderValue| value.to_str().unwrap_or_default());
    // No page can set this one.
    if let Some(site) = text(header::HeaderName::from_static("sec-fetch-site")) {
        return Some(matches!(site, "same-origin" | "none"));
    }
    let origin = text(header::ORIGIN)?;
    let authority = origin.split_once("://").map(|(_, authority)| authority).unwrap_or_default();
    let is_host = host_of(uri, headers).is_some_and(|host| host.eq_ignore_ascii_case(authority));
    let is_public = public.is_some_and(|url| url.trim_end_matches('/').eq_ignore_ascii_case(origin));
    Some(is_host || is_public)
}

pub(crate) fn foreign() -> Refusal {
    let message = "this was not sent by a page of this server; open the page here and do it there";
    Refusal::new(StatusCode::FORBIDDEN, "cross-origin", message)
}

fn unproven() -> Refusal {
    let message = "this page is too old, or you have signed in anew since; load it again";
    Refusal::new(StatusCode::FORBIDDEN, "csrf", message)
}

fn why(denial: &Denial) -> String {
    denial.told().into_owned()
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, value)| value)
}

fn is_below(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use rialto_model::clock::FixedClock;

    use super::*;

    fn sessions(at: &str) -> Sessions {
        // Turned around is all the secrecy these tests need.
        let turned = |text: &[u8]| text.iter().rev().copied().collect::<Vec<u8>>();
        let sealing = Sealing {
            seal: Box::new(move |text| Some(turned(text.expose().as_bytes()))),
            open: Box::new(move |text| String::from_utf8(turned(text)).ok().map(Secret::from)),
        };
        Sessions::new(sealing, [7; 32], Arc::new(FixedClock(at.parse().unwrap()))).unwrap()
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
        let cookie = format!("a=b; {COOKIE}={value}");
        let request = request("GET", &[("cookie", &cookie)]);
        let token =
            |at: &str| sessions(at).open(request.headers()).map(|cookie| cookie.token.expose().to_owned());
        assert_eq!(token("2026-08-01T23:59:59Z").as_deref(), Some("mine"));
        assert_eq!(token("2026-08-02T00:00:00Z"), None);
    }

    #[test]
    fn what_changes_something_must_come_from_a_page_of_ours_and_prove_it() {
        let sessions = sessions("2026-08-01T12:00:00Z");
        let cookie = format!("{COOKIE}={}", sessions.seal(&"ses_1".into(), "mine").unwrap());
        let proof = sessions.judge(&request("GET", &[("cookie", &cookie)]), PAGES, false, None).unwrap().csrf;
        let told = |path: &str, is_open: bool, headers: &[(&str, &str)]| {
            let judged = sessions.judge(&request("POST", headers), path, is_open, Some("https://there/"));
            judged.map(|session| session.is_proven(None)).map_err(|refusal| refusal.error)
        };
        let (ours, theirs) = (("origin", "http://here:1"), ("origin", "http://here:2"));
        let signed = ("cookie", cookie.as_str());
        assert_eq!(told(API, false, &[signed, ours, (PROOF, &proof)]), Ok(true));
        assert_eq!(told(API, false, &[signed, ("origin", "https://there"), (PROOF, &proof)]), Ok(true));
        assert_eq!(told(API, false, &[signed, ours]), Err("csrf"));
        assert_eq!(told(API, false, &[signed, ours, (PROOF, "guess")]), Err("csrf"));
        assert_eq!(told(API, false, &[signed, theirs, (PROOF, &proof)]), Err("cross-origin"));
        assert_eq!(told(API, false, &[signed, (PROOF, &proof)]), Err("cross-origin"), "it does not say");
        let site = ("sec-fetch-site", "same-site");
        assert_eq!(told(API, false, &[signed, ours, site, (PROOF, &proof)]), Err("cross-origin"));
        assert_eq!(told(PAGES, false, &[signed, ours]), Ok(false), "a form proves it with a field");
        assert_eq!(told(API, true, &[]), Ok(false), "a program, where nobody signs in");
        assert_eq!(
            told(API, true, &[theirs]),
            Err("cross-origin"),
            "a page of another server of this machine"
        );
        assert_eq!(told(API, false, &[("authorization", "Bearer x")]), Ok(true));
    }

    #[test]
    fn a_form_repeats_the_code_of_its_own_session() {
        let sessions = sessions("2026-08-01T12:00:00Z");
        let of = |token: &str| {
            let cookie = format!("{COOKIE}={}", sessions.seal(&"ses_1".into(), token).unwrap());
            sessions.judge(&request("GET", &[("cookie", &cookie)]), PAGES, false, None).unwrap()
        };
        let (mine, other) = (of("mine"), of("other"));
        assert!(mine.is_proven(Some(&mine.csrf)) && !mine.is_proven(Some(&other.csrf)));
        assert!(!mine.is_proven(None) && !mine.is_proven(Some("")));
    }
}
