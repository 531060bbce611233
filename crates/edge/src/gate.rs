//! The checks that come before any protocol, in one step.
//!
//! A request passes when it was meant for us ([`Guard`]), we know who sent it ([`Authentication`]), and its sender may do
//! what is done there; in this order, so a request that another page made somebody's browser send learns nothing about
//! tokens. What passes has a [`Caller`] of the org and project that the address selects, and a path without them.
//!
//! It is one layer, because each layer of a router costs every request a copy of all that is below and a future on the
//! heap. It goes around the router, not inside: it changes paths. Only a request that has to wait (tokens have changed
//! since the last one, or an issuer's keys are needed) pays for a future of its own.

mod browsers;

use std::{
    future::{Ready, ready},
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use axum::{
    extract::Request,
    response::{IntoResponse, Response},
};
use futures::future::{BoxFuture, Either};
use http::{HeaderMap, HeaderValue, Method, Uri};
use rialto_model::{
    call::{Caller, HOPS_HEADER},
    token_scopes::TokenScopes,
};
use tower::{Layer, Service};

use crate::{
    auth::{Admitted, Answer, Authentication, Challenge, Denial, bearer},
    guard::{Guard, host_of},
    limits::{self, Limited},
    place::Places,
    refusal::{Refusal, draining, nothing_here, too_many_attempts, too_many_requests},
    revocable::{SignedTokenEnd, TokenHold},
    serve::ConnectionPeer,
    session::Sessions,
    site::{self, Site},
    tally::{Counted, Tally},
};

/// A layer that lets through what may come in. What is behind it finds a [`Caller`] in each request's extensions, or is
/// not reached.
#[derive(Clone)]
pub struct Gate(Arc<Checks>);

/// What is behind a gate.
#[derive(Clone)]
pub struct Gated<S> {
    gate: Gate,
    inner: S,
    /// Who is at the other end of the connection, if that is known.
    peer: Option<ConnectionPeer>,
}

/// A path, with all below it, and what callers need to go there: one of these rights.
#[derive(Clone, Copy, Debug)]
pub struct Entrance {
    /// The path, without a slash at its end.
    pub path: &'static str,
    /// What it needs.
    pub needs: TokenScopes,
}

#[derive(Clone)]
pub(crate) struct Checks {
    guard: Guard,
    pub(crate) authentication: Authentication,
    site: Site,
    places: Places,
    entrances: Vec<Entrance>,
    public: Vec<&'static str>,
    unlocked: Vec<&'static str>,
    shown: Vec<&'static str>,
    shown_below: Option<&'static str>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) limits: Arc<Limited>,
    draining: Arc<AtomicBool>,
    sessions: Option<Arc<Sessions>>,
}

/// How a request fares.
enum Verdict {
    /// It is on its way.
    Passes,
    /// It gets no further.
    Answered(Response),
    /// Whose it is takes a moment to find out.
    Waits,
}

// === impl Gate ===

impl Gate {
    /// A gate for what `guard` and `authentication` both accept. Where nobody needs a token, the port of a page counts too.
    pub fn new(guard: Guard, authentication: Authentication) -> Self {
        let is_open = matches!(authentication, Authentication::Open(_));
        let guard = if is_open { guard.checking_ports() } else { guard };
        let (site, places) = (Site::default(), Places::default());
        let (entrances, public, unlocked, shown) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self(Arc::new(Checks {
            guard,
            authentication,
            site,
            places,
            entrances,
            public,
            unlocked,
            shown,
            shown_below: None,
            tally: Arc::new(Tally::new([])),
            limits: Arc::default(),
            draining: Arc::default(),
            sessions: None,
        }))
    }

    /// The same, reached from outside like this.
    #[must_use]
    pub fn at(mut self, site: Site) -> Self {
        let checks = Arc::make_mut(&mut self.0);
        checks.places.domain.clone_from(&site.domain);
        checks.site = site;
        self
    }

    /// The same, with these paths behind it. The first that fits counts; any other path needs any right at all.
    #[must_use]
    pub fn before(mut self, entrances: &[Entrance]) -> Self {
        let checks = Arc::make_mut(&mut self.0);
        let doors = entrances.iter().filter_map(|entrance| entrance.path.split('/').nth(1));
        checks.places.doors = doors.collect();
        checks.entrances = entrances.to_vec();
        let names = entrances.iter().map(|entrance| entrance.path.trim_start_matches('/'));
        checks.tally = Arc::new(Tally::new(names));
        self
    }

    /// The same, but these exact paths are for everybody, without any check.
    #[must_use]
    pub fn open_to_all(mut self, paths: &[&'static str]) -> Self {
        Arc::make_mut(&mut self.0).public = paths.to_vec();
        self
    }

    /// The same, but these exact paths need no token. They are still only for requests that are meant for us.
    #[must_use]
    pub fn unlocked(mut self, paths: &[&'static str]) -> Self {
        Arc::make_mut(&mut self.0).unlocked.extend_from_slice(paths);
        self
    }

    /// The same, and browsers come to pages for people with a cookie. These exact paths they see before they have one.
    #[must_use]
    pub fn with_sessions(mut self, sessions: Arc<Sessions>, before: &[&'static str]) -> Self {
        let checks = Arc::make_mut(&mut self.0);
        checks.sessions = Some(sessions);
        checks.unlocked.extend_from_slice(before);
        self
    }

    /// The same, but these exact paths of every org and project are shown to strangers, and so is what ends like them below
    /// `also_below`: without a token there is a caller that nobody knows.
    #[must_use]
    pub fn showing(mut self, paths: &[&'static str], also_below: &'static str) -> Self {
        let checks = Arc::make_mut(&mut self.0);
        (checks.shown, checks.shown_below) = (paths.to_vec(), Some(also_below));
        self
    }

    /// The same, for those who do not come too often.
    #[must_use]
    pub fn limited(mut self, limits: Arc<Limited>) -> Self {
        Arc::make_mut(&mut self.0).limits = limits;
        self
    }

    /// The same, as long as `draining` is false; then only what is open to all is answered.
    #[must_use]
    pub fn until(mut self, draining: Arc<AtomicBool>) -> Self {
        Arc::make_mut(&mut self.0).draining = draining;
        self
    }

    /// What came so far.
    pub fn tally(&self) -> Arc<Tally> {
        Arc::clone(&self.0.tally)
    }

    /// Puts `inner` behind the gate. A whole router has to be behind it this way: inside of one, paths are read before
    /// the gate can change them.
    pub fn around<S>(&self, inner: S) -> Gated<S> {
        Gated { gate: self.clone(), inner, peer: None }
    }

    /// Keeps the token of a request that was let in until its response is there.
    fn hold(&self, request: &Request) -> Option<TokenHold> {
        TokenHold::new(&self.0.authentication, request.extensions())
    }

    /// Prepares `request` for what is behind, or answers it.
    fn judge(&self, request: &mut Request, from: Option<&ConnectionPeer>) -> Verdict {
        let (checks, peer) = (&*self.0, from.map(|peer| peer.address));
        if checks.public.contains(&request.uri().path()) {
            return Verdict::Passes;
        }
        if checks.draining.load(Ordering::Relaxed) {
            return Verdict::Answered(checks.turn_away(draining()));
        }
        if let Err(refusal) = checks.guard.check(request.uri(), request.headers()) {
            return Verdict::Answered(checks.turn_away(refusal));
        }
        if checks.unlocked.contains(&request.uri().path()) {
            return self.unlock(request, peer);
        }
        if let Some(greeting) = checks.greet(request) {
            return Verdict::Answered(greeting);
        }
        if let Some(description) = checks.description(request) {
            return Verdict::Answered(description);
        }
        match checks.show(request) {
            Some(Ok(())) => return Verdict::Passes,
            Some(Err(refusal)) => return Verdict::Answered(checks.turn_away(refusal)),
            None => {}
        }
        if let Some(wait) = checks.limits.now().shut_out(|| checks.source(request, peer)) {
            return Verdict::Answered(checks.turn_away(too_many_attempts(wait)));
        }
        let known = match checks.look(request, from) {
            Answer::Wait => return Verdict::Waits,
            Answer::Known(known) => known,
        };
        match checks.admit(request, known, peer) {
            None => Verdict::Passes,
            Some(refusal) => Verdict::Answered(refusal),
        }
    }

    /// The same for a request that had to wait.
    async fn find(&self, request: &mut Request, from: Option<&ConnectionPeer>) -> Option<Response> {
        let found = match &self.0.authentication {
            Authentication::Open(caller) => Ok(caller.clone().into()),
            Authentication::Bearer(bearers) => match bearer(request.headers()).map(str::to_owned) {
                Ok(token) => bearers.find(&token).await,
                Err(denial) => match self.0.token_in_cookie(request).filter(|_| denial == Denial::NoToken) {
                    Some(cookie) => bearers.find(cookie.token.expose()).await.and_then(|caller| {
                        if bearers.is_good(&cookie.session) { Ok(caller) } else { Err(Denial::SignedOut) }
                    }),
                    None => certified(from, denial),
                },
            },
        };
        self.0.admit(request, found, from.map(|peer| peer.address))
    }
}

impl<S> Layer<S> for Gate {
    type Service = Gated<S>;

    fn layer(&self, inner: S) -> Gated<S> {
        self.around(inner)
    }
}

// === impl Checks ===

impl Checks {
    fn look(&self, request: &Request, from: Option<&ConnectionPeer>) -> Answer {
        if has_token(request.uri().query()) {
            return Answer::Known(Err(Denial::InQuery));
        }
        match &self.authentication {
            Authentication::Open(caller) => Answer::Known(Ok(caller.clone().into())),
            Authentication::Bearer(bearers) => match bearer(request.headers()) {
                Ok(token) => bearers.look(token),
                Err(Denial::NoToken) => match self.look_at_cookie(request, bearers) {
                    Answer::Known(Err(denial)) => Answer::Known(certified(from, denial)),
                    answer => answer,
                },
                Err(denial) => Answer::Known(Err(denial)),
            },
        }
    }

    fn admit(
        &self,
        request: &mut Request,
        found: Result<Admitted, Denial>,
        peer: Option<IpAddr>,
    ) -> Option<Response> {
        let Admitted { mut caller, ends_at } = match found {
            Ok(admitted) => admitted,
            Err(denial) => {
                if self.limits.now().counts_tokens() && denial.is_wrong_token() {
                    self.limits.now().wrong_token(self.source(request, peer));
                }
                return Some(self.refuse(request, &denial));
            }
        };
        if let Err(wait) = self.limits.now().request(&caller) {
            return Some(self.turn_away(too_many_requests(wait)));
        }
        let plain = match self.lead(request, &mut caller) {
            Ok(plain) => plain,
            Err(refusal) => return Some(self.turn_away(refusal)),
        };
        let needs = self.needs(plain.as_ref().unwrap_or(request.uri()).path());
        if !caller.rights.meet(needs) {
            return Some(self.refuse(request, &Denial::Lacks(needs)));
        }
        if let Err(refusal) = self.judge_browser(request, plain.as_ref()) {
            return Some(self.turn_away(refusal));
        }
        if let Some(plain) = plain {
            *request.uri_mut() = plain;
        }
        self.guard.limit(request.body_mut());
        caller.hops = hops(request.headers());
        request.extensions_mut().insert(caller);
        if let Some(end) = ends_at {
            request.extensions_mut().insert(SignedTokenEnd(end));
        }
        None
    }

    /// Leads a caller to the org and project that the address selects, if it does, and answers the address without
    /// them. What belongs to another org is not there at all.
    fn lead(&self, request: &Request, caller: &mut Caller) -> Result<Option<Uri>, Refusal> {
        let host = host_of(request.uri(), request.headers()).unwrap_or_default();
        let Some(asked) = self.places.read(host, request.uri().path()) else { return Ok(None) };
        let is_there = match self.authentication {
            Authentication::Open(_) => asked.take(caller),
            Authentication::Bearer(_) => asked.admit(caller),
        };
        asked.strip(request.uri()).filter(|_| is_there).map(Some).ok_or_else(nothing_here)
    }

    /// Leads a stranger to what is shown to strangers, if that is asked for.
    fn show(&self, request: &mut Request) -> Option<Result<(), Refusal>> {
        if self.shown.is_empty() || !matches!(*request.method(), Method::GET | Method::HEAD) {
            return None;
        }
        let host = host_of(request.uri(), request.headers()).unwrap_or_default();
        let asked = self.places.read(host, request.uri().path());
        let plain = asked.as_ref().map_or(request.uri().path(), |asked| asked.rest(request.uri().path()));
        let is_below = self.shown_below.is_some_and(|root| is_below(plain, root));
        if !self.shown.iter().any(|shown| plain == *shown || is_below && plain.ends_with(shown)) {
            return None;
        }
        let mut caller = Caller::stranger();
        if let Some(asked) = asked {
            let Some(plain) = asked.strip(request.uri()).filter(|_| asked.take(&mut caller)) else {
                return Some(Err(nothing_here()));
            };
            *request.uri_mut() = plain;
        }
        request.extensions_mut().insert(caller);
        Some(Ok(()))
    }

    /// What a path without org and project needs.
    fn needs(&self, path: &str) -> TokenScopes {
        let fits = |entrance: &&Entrance| is_below(path, entrance.path);
        self.entrances.iter().find(fits).map_or(TokenScopes::ALL, |entrance| entrance.needs)
    }

    /// The address that a request is counted under.
    fn source(&self, request: &Request, peer: Option<IpAddr>) -> Option<IpAddr> {
        limits::source(peer, request.headers(), self.site.trust_proxy)
    }

    /// The place of the door that a path without org and project leads to.
    fn door(&self, path: &str) -> usize {
        let is_it = |entrance: &Entrance| is_below(path, entrance.path);
        self.entrances.iter().position(is_it).unwrap_or(self.entrances.len())
    }

    fn turn_away(&self, refusal: Refusal) -> Response {
        self.tally.refused(refusal.error);
        refusal.into_response()
    }

    fn refuse(&self, request: &Request, denial: &Denial) -> Response {
        self.tally.refused(denial.reason());
        let (uri, headers) = (request.uri(), request.headers());
        let host = host_of(uri, headers).unwrap_or_default();
        let base = self.site.base(host, self.places.org_of(host).is_some(), headers);
        let asked = self.places.read(host, uri.path());
        let plain = asked.map_or(uri.path(), |asked| asked.rest(uri.path()));
        if !matches!(denial, Denial::Lacks(_) | Denial::NoStore | Denial::NoKeys)
            && let Some(way) = self.lead_to_sign_in(request, plain)
        {
            return way;
        }
        let entrance = self.entrances.iter().find(|entrance| is_below(plain, entrance.path));
        // The description is that of the entrance, whatever is asked for below it.
        let below = entrance.map_or(uri.path().len(), |entrance| plain.len() - entrance.path.len());
        let resource = uri.path().get(..uri.path().len() - below).unwrap_or_default();
        let needs = entrance.map_or(TokenScopes::NONE, |entrance| entrance.needs);
        denial.answer(&Challenge { description: site::description_url(&base, resource), needs })
    }

    /// What is public about this server, if that is asked for.
    fn description(&self, request: &Request) -> Option<Response> {
        let path = site::described(request.uri().path()).filter(|_| request.method() == Method::GET)?;
        let host = host_of(request.uri(), request.headers()).unwrap_or_default();
        let plain = self.places.read(host, path).map_or(path, |asked| asked.rest(path));
        if !plain.is_empty() && !self.entrances.iter().any(|entrance| plain == entrance.path) {
            return Some(nothing_here().into_response());
        }
        let base = self.site.base(host, self.places.org_of(host).is_some(), request.headers());
        let issuers = match &self.authentication {
            Authentication::Open(_) => None,
            Authentication::Bearer(bearers) => Some(bearers.issuers().addresses()),
        };
        Some(site::description(&base, path, issuers.into_iter().flatten()))
    }
}

// === impl Gated ===

impl<S: Clone> Gated<S> {
    /// The same, for a connection from this peer.
    #[must_use]
    pub fn facing(&self, peer: ConnectionPeer) -> Self {
        Self { peer: Some(peer), ..self.clone() }
    }
}

impl<S> Service<Request> for Gated<S>
where
    S: Service<Request, Response = Response> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
{
    type Response = Response;
    type Error = S::Error;
    type Future = Either<Counted<S::Future>, Either<Ready<Outcome<S>>, BoxFuture<'static, Outcome<S>>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let verdict = self.gate.judge(&mut request, self.peer.as_ref());
        let (tally, door) = (self.gate.tally(), self.gate.0.door(request.uri().path()));
        match verdict {
            Verdict::Passes => {
                let hold = self.gate.hold(&request);
                Either::Left(Counted::new(self.inner.call(request), tally, door, hold))
            }
            Verdict::Answered(answer) => {
                tally.answered(door, answer.status());
                Either::Right(Either::Left(ready(Ok(answer))))
            }
            Verdict::Waits => {
                let (gate, peer) = (self.gate.clone(), self.peer.clone());
                // The one that was polled is ready, its copy need not be.
                let copy = self.inner.clone();
                let mut inner = std::mem::replace(&mut self.inner, copy);
                Either::Right(Either::Right(Box::pin(async move {
                    let answer = match gate.find(&mut request, peer.as_ref()).await {
                        None => {
                            let door = gate.0.door(request.uri().path());
                            let hold = gate.hold(&request);
                            return Counted::new(inner.call(request), tally, door, hold).await;
                        }
                        Some(refusal) => refusal,
                    };
                    tally.answered(door, answer.status());
                    Ok(answer)
                })))
            }
        }
    }
}

/// The caller whose certificate a request without a token came with.
fn certified(from: Option<&ConnectionPeer>, denial: Denial) -> Result<Admitted, Denial> {
    let caller = from.and_then(|peer| peer.certified.as_deref());
    caller.filter(|_| denial == Denial::NoToken).cloned().map(Admitted::from).ok_or(denial)
}

type Outcome<S> = Result<Response, <S as Service<Request>>::Error>;

fn is_below(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a token stands in the address, where logs and histories would keep it.
fn has_token(query: Option<&str>) -> bool {
    query.is_some_and(|query| query.split('&').any(|pair| pair.starts_with("access_token=")))
}

/// How many calls through us led to a request, by what we sent with the last of them. A count that cannot be read is the highest.
fn hops(headers: &HeaderMap) -> u8 {
    let counted = headers.get_all(HOPS_HEADER).iter();
    let read = |count: &HeaderValue| count.to_str().ok()?.trim().parse().ok();
    counted.map(|count| read(count).unwrap_or(u8::MAX)).max().unwrap_or(0)
}
