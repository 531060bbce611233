//! Admission: the checks of every request before any protocol.
//!
//! A request is admitted if its Host and Origin are ours ([`HostCheck`]), its caller is authenticated ([`Authentication`]), and the caller
//! has the rights that the path requires; in this order, so that a request that another site made a browser send learns nothing about
//! tokens. An admitted request has a [`Caller`] of the org and project that the address selects, and a path without them.
//!
//! It is one layer, because each layer of a router costs every request a copy of everything below it and a future on the heap. It wraps the
//! router from outside, because it changes paths. Only a request that has to wait (tokens have changed since the last one, or an issuer's
//! keys are needed) pays for a future of its own.

mod cookie_auth;

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
    auth::{AdmittedCaller, AuthError, AuthLookup, Authentication, BearerChallenge, bearer_token},
    host_check::{HostCheck, request_host},
    listener::ConnectionPeer,
    public_url::{self, PublicUrl},
    rate_limits::{self, RateLimiter},
    rejection::{Rejection, draining, not_found, too_many_attempts, too_many_requests},
    request_counters::{CountedResponse, RequestCounters},
    session::BrowserSessions,
    tenant_path::TenantPaths,
    token_binding::{SignedTokenExpiry, TokenBinding},
};

/// Layer that admits requests. The service behind it finds a [`Caller`] in each request's extensions.
#[derive(Clone)]
pub struct AdmissionLayer(Arc<AdmissionRules>);

/// Service behind admission.
#[derive(Clone)]
pub struct AdmissionService<S> {
    gate: AdmissionLayer,
    inner: S,
    /// Peer of the connection, if it is known.
    peer: Option<ConnectionPeer>,
}

/// Path, with everything below it, and the rights of which a caller needs one.
#[derive(Clone, Copy, Debug)]
pub struct RouteRule {
    /// Path, without a slash at its end.
    pub path: &'static str,
    /// Rights of which one is required.
    pub needs: TokenScopes,
}

#[derive(Clone)]
pub(crate) struct AdmissionRules {
    host_check: HostCheck,
    pub(crate) authentication: Authentication,
    public_url: PublicUrl,
    tenant_paths: TenantPaths,
    routes: Vec<RouteRule>,
    unchecked: Vec<&'static str>,
    tokenless: Vec<&'static str>,
    public_get: Vec<&'static str>,
    public_get_below: Option<&'static str>,
    pub(crate) counters: Arc<RequestCounters>,
    pub(crate) limits: Arc<RateLimiter>,
    draining: Arc<AtomicBool>,
    sessions: Option<Arc<BrowserSessions>>,
}

/// Result of the synchronous checks.
enum AdmissionResult {
    /// The request is passed to the service.
    Admitted,
    /// The request is answered here.
    Rejected(Response),
    /// Authentication has to read something first.
    Pending,
}

// === impl AdmissionLayer ===

impl AdmissionLayer {
    /// Creates the layer. Where no token is needed, the port of an Origin counts too.
    pub fn new(host_check: HostCheck, authentication: Authentication) -> Self {
        let is_open = matches!(authentication, Authentication::Open(_));
        let host_check = if is_open { host_check.with_port_check() } else { host_check };
        let (public_url, tenant_paths) = (PublicUrl::default(), TenantPaths::default());
        let (routes, unchecked, tokenless, public_get) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self(Arc::new(AdmissionRules {
            host_check,
            authentication,
            public_url,
            tenant_paths,
            routes,
            unchecked,
            tokenless,
            public_get,
            public_get_below: None,
            counters: Arc::new(RequestCounters::new([])),
            limits: Arc::default(),
            draining: Arc::default(),
            sessions: None,
        }))
    }

    /// Sets how clients reach this server.
    #[must_use]
    pub fn with_public_url(mut self, public_url: PublicUrl) -> Self {
        let checks = Arc::make_mut(&mut self.0);
        checks.tenant_paths.domain.clone_from(&public_url.domain);
        checks.public_url = public_url;
        self
    }

    /// Sets the routes. The first that matches applies; any other path needs at least one right of any kind.
    #[must_use]
    pub fn with_routes(mut self, routes: &[RouteRule]) -> Self {
        let checks = Arc::make_mut(&mut self.0);
        let endpoints = routes.iter().filter_map(|route| route.path.split('/').nth(1));
        checks.tenant_paths.endpoints = endpoints.collect();
        checks.routes = routes.to_vec();
        let names = routes.iter().map(|route| route.path.trim_start_matches('/'));
        checks.counters = Arc::new(RequestCounters::new(names));
        self
    }

    /// Admits these exact paths without any check.
    #[must_use]
    pub fn without_checks(mut self, paths: &[&'static str]) -> Self {
        Arc::make_mut(&mut self.0).unchecked = paths.to_vec();
        self
    }

    /// Admits these exact paths without a token. Host and Origin are checked all the same.
    #[must_use]
    pub fn without_token(mut self, paths: &[&'static str]) -> Self {
        Arc::make_mut(&mut self.0).tokenless.extend_from_slice(paths);
        self
    }

    /// Accepts session cookies of browsers on pages. These exact paths need no cookie.
    #[must_use]
    pub fn with_sessions(mut self, sessions: Arc<BrowserSessions>, sign_in_paths: &[&'static str]) -> Self {
        let checks = Arc::make_mut(&mut self.0);
        checks.sessions = Some(sessions);
        checks.tokenless.extend_from_slice(sign_in_paths);
        self
    }

    /// Admits GET of these exact paths of every org and project without a token, and of paths below `also_below` that end like them. The
    /// caller is then [`Caller::stranger`].
    #[must_use]
    pub fn with_public_get(mut self, paths: &[&'static str], also_below: &'static str) -> Self {
        let checks = Arc::make_mut(&mut self.0);
        (checks.public_get, checks.public_get_below) = (paths.to_vec(), Some(also_below));
        self
    }

    /// Sets the rate limits.
    #[must_use]
    pub fn with_rate_limits(mut self, limits: Arc<RateLimiter>) -> Self {
        Arc::make_mut(&mut self.0).limits = limits;
        self
    }

    /// Sets the draining flag: while it is true, only paths without checks are answered.
    #[must_use]
    pub fn with_draining_flag(mut self, draining: Arc<AtomicBool>) -> Self {
        Arc::make_mut(&mut self.0).draining = draining;
        self
    }

    /// Counters of requests and rejections.
    pub fn request_counters(&self) -> Arc<RequestCounters> {
        Arc::clone(&self.0.counters)
    }

    /// Wraps `inner`. A whole router has to be wrapped this way: inside a router, paths are matched before admission can change them.
    pub fn wrap<S>(&self, inner: S) -> AdmissionService<S> {
        AdmissionService { gate: self.clone(), inner, peer: None }
    }

    /// Binding of the response to the token of its request.
    fn token_binding(&self, request: &Request) -> Option<TokenBinding> {
        TokenBinding::new(&self.0.authentication, request.extensions())
    }

    /// Checks a request and prepares it for the service.
    fn check(&self, request: &mut Request, from: Option<&ConnectionPeer>) -> AdmissionResult {
        let (checks, peer) = (&*self.0, from.map(|peer| peer.address));
        if checks.unchecked.contains(&request.uri().path()) {
            return AdmissionResult::Admitted;
        }
        if checks.draining.load(Ordering::Relaxed) {
            return AdmissionResult::Rejected(checks.reject(draining()));
        }
        if let Err(rejection) = checks.host_check.check(request.uri(), request.headers()) {
            return AdmissionResult::Rejected(checks.reject(rejection));
        }
        if checks.tokenless.contains(&request.uri().path()) {
            return self.admit_without_token(request, peer);
        }
        if let Some(redirect) = checks.redirect_root(request) {
            return AdmissionResult::Rejected(redirect);
        }
        if let Some(metadata) = checks.resource_metadata(request) {
            return AdmissionResult::Rejected(metadata);
        }
        match checks.admit_anonymous(request) {
            Some(Ok(())) => return AdmissionResult::Admitted,
            Some(Err(rejection)) => return AdmissionResult::Rejected(checks.reject(rejection)),
            None => {}
        }
        if let Some(wait) = checks.limits.now().blocked_for(|| checks.source_address(request, peer)) {
            return AdmissionResult::Rejected(checks.reject(too_many_attempts(wait)));
        }
        let outcome = match checks.authenticate_cached(request, from) {
            AuthLookup::Pending => return AdmissionResult::Pending,
            AuthLookup::Done(outcome) => outcome,
        };
        match checks.admit(request, outcome, peer) {
            None => AdmissionResult::Admitted,
            Some(rejection) => AdmissionResult::Rejected(rejection),
        }
    }

    /// Checks a request that had to wait, after reading what has changed.
    async fn check_after_refresh(
        &self,
        request: &mut Request,
        from: Option<&ConnectionPeer>,
    ) -> Option<Response> {
        let found = match &self.0.authentication {
            Authentication::Open(caller) => Ok(caller.clone().into()),
            Authentication::Bearer(bearers) => match bearer_token(request.headers()).map(str::to_owned) {
                Ok(token) => bearers.find(&token).await,
                Err(error) => match self.0.token_in_cookie(request).filter(|_| error == AuthError::NoToken) {
                    Some(cookie) => bearers.find(cookie.token.expose()).await.and_then(|caller| {
                        if bearers.is_valid(&cookie.session) { Ok(caller) } else { Err(AuthError::SignedOut) }
                    }),
                    None => caller_of_certificate(from, error),
                },
            },
        };
        self.0.admit(request, found, from.map(|peer| peer.address))
    }
}

impl<S> Layer<S> for AdmissionLayer {
    type Service = AdmissionService<S>;

    fn layer(&self, inner: S) -> AdmissionService<S> {
        self.wrap(inner)
    }
}

// === impl AdmissionRules ===

impl AdmissionRules {
    fn authenticate_cached(&self, request: &Request, from: Option<&ConnectionPeer>) -> AuthLookup {
        if has_token_in_query(request.uri().query()) {
            return AuthLookup::Done(Err(AuthError::TokenInQuery));
        }
        match &self.authentication {
            Authentication::Open(caller) => AuthLookup::Done(Ok(caller.clone().into())),
            Authentication::Bearer(bearers) => match bearer_token(request.headers()) {
                Ok(token) => bearers.find_cached(token),
                Err(AuthError::NoToken) => match self.authenticate_cookie(request, bearers) {
                    AuthLookup::Done(Err(error)) => AuthLookup::Done(caller_of_certificate(from, error)),
                    answer => answer,
                },
                Err(error) => AuthLookup::Done(Err(error)),
            },
        }
    }

    fn admit(
        &self,
        request: &mut Request,
        found: Result<AdmittedCaller, AuthError>,
        peer: Option<IpAddr>,
    ) -> Option<Response> {
        let AdmittedCaller { mut caller, ends_at } = match found {
            Ok(admitted) => admitted,
            Err(error) => {
                if self.limits.now().counts_tokens() && error.is_wrong_token() {
                    self.limits.now().count_wrong_token(self.source_address(request, peer));
                }
                return Some(self.reject_unauthenticated(request, &error));
            }
        };
        if let Err(wait) = self.limits.now().count_request(&caller) {
            return Some(self.reject(too_many_requests(wait)));
        }
        let plain = match self.select_tenant(request, &mut caller) {
            Ok(plain) => plain,
            Err(rejection) => return Some(self.reject(rejection)),
        };
        let needs = self.required_rights(plain.as_ref().unwrap_or(request.uri()).path());
        if !caller.rights.meet(needs) {
            return Some(self.reject_unauthenticated(request, &AuthError::MissingScope(needs)));
        }
        if let Err(rejection) = self.check_browser(request, plain.as_ref()) {
            return Some(self.reject(rejection));
        }
        if let Some(plain) = plain {
            *request.uri_mut() = plain;
        }
        self.host_check.limit_body(request.body_mut());
        caller.hops = count_hops(request.headers());
        request.extensions_mut().insert(caller);
        if let Some(end) = ends_at {
            request.extensions_mut().insert(SignedTokenExpiry(end));
        }
        None
    }

    /// Selects the org and project that the address names, and returns the address without them. Another org is not found.
    fn select_tenant(&self, request: &Request, caller: &mut Caller) -> Result<Option<Uri>, Rejection> {
        let host = request_host(request.uri(), request.headers()).unwrap_or_default();
        let Some(tenant) = self.tenant_paths.parse(host, request.uri().path()) else { return Ok(None) };
        let is_there = match self.authentication {
            Authentication::Open(_) => tenant.apply_to(caller),
            Authentication::Bearer(_) => tenant.apply_within_org(caller),
        };
        tenant.strip_from(request.uri()).filter(|_| is_there).map(Some).ok_or_else(not_found)
    }

    /// Admits an anonymous request to a public path.
    fn admit_anonymous(&self, request: &mut Request) -> Option<Result<(), Rejection>> {
        if self.public_get.is_empty() || !matches!(*request.method(), Method::GET | Method::HEAD) {
            return None;
        }
        let host = request_host(request.uri(), request.headers()).unwrap_or_default();
        let tenant = self.tenant_paths.parse(host, request.uri().path());
        let plain =
            tenant.as_ref().map_or(request.uri().path(), |tenant| tenant.plain_path(request.uri().path()));
        let is_below = self.public_get_below.is_some_and(|root| is_path_below(plain, root));
        if !self.public_get.iter().any(|path| plain == *path || is_below && plain.ends_with(path)) {
            return None;
        }
        let mut caller = Caller::stranger();
        if let Some(tenant) = tenant {
            let Some(plain) = tenant.strip_from(request.uri()).filter(|_| tenant.apply_to(&mut caller))
            else {
                return Some(Err(not_found()));
            };
            *request.uri_mut() = plain;
        }
        request.extensions_mut().insert(caller);
        Some(Ok(()))
    }

    /// Rights required by a path without org and project.
    fn required_rights(&self, path: &str) -> TokenScopes {
        let fits = |route: &&RouteRule| is_path_below(path, route.path);
        self.routes.iter().find(fits).map_or(TokenScopes::ALL, |route| route.needs)
    }

    /// Address that a request is counted under.
    fn source_address(&self, request: &Request, peer: Option<IpAddr>) -> Option<IpAddr> {
        rate_limits::source_address(peer, request.headers(), self.public_url.trust_proxy)
    }

    /// Index of the route that matches a path without org and project.
    fn route_index(&self, path: &str) -> usize {
        let matches = |route: &RouteRule| is_path_below(path, route.path);
        self.routes.iter().position(matches).unwrap_or(self.routes.len())
    }

    fn reject(&self, rejection: Rejection) -> Response {
        self.counters.count_rejection(rejection.error);
        rejection.into_response()
    }

    fn reject_unauthenticated(&self, request: &Request, error: &AuthError) -> Response {
        self.counters.count_rejection(error.reason());
        let (uri, headers) = (request.uri(), request.headers());
        let host = request_host(uri, headers).unwrap_or_default();
        let base = self.public_url.base_url(host, self.tenant_paths.org_in_host(host).is_some(), headers);
        let tenant = self.tenant_paths.parse(host, uri.path());
        let plain = tenant.map_or(uri.path(), |tenant| tenant.plain_path(uri.path()));
        if !matches!(
            error,
            AuthError::MissingScope(_) | AuthError::StoreUnavailable | AuthError::IssuerUnavailable
        ) && let Some(way) = self.redirect_to_sign_in(request, plain)
        {
            return way;
        }
        let route = self.routes.iter().find(|route| is_path_below(plain, route.path));
        // The description is that of the entrance, whatever is asked for below it.
        let below = route.map_or(uri.path().len(), |route| plain.len() - route.path.len());
        let resource = uri.path().get(..uri.path().len() - below).unwrap_or_default();
        let needs = route.map_or(TokenScopes::NONE, |route| route.needs);
        error.respond(&BearerChallenge { metadata_url: public_url::metadata_url(&base, resource), needs })
    }

    /// OAuth metadata of this server, if the request asks for it.
    fn resource_metadata(&self, request: &Request) -> Option<Response> {
        let path = public_url::resource_of_metadata_path(request.uri().path())
            .filter(|_| request.method() == Method::GET)?;
        let host = request_host(request.uri(), request.headers()).unwrap_or_default();
        let plain = self.tenant_paths.parse(host, path).map_or(path, |tenant| tenant.plain_path(path));
        if !plain.is_empty() && !self.routes.iter().any(|route| plain == route.path) {
            return Some(not_found().into_response());
        }
        let base =
            self.public_url.base_url(host, self.tenant_paths.org_in_host(host).is_some(), request.headers());
        let issuers = match &self.authentication {
            Authentication::Open(_) => None,
            Authentication::Bearer(bearers) => Some(bearers.issuers().addresses()),
        };
        Some(public_url::respond_metadata(&base, path, issuers.into_iter().flatten()))
    }
}

// === impl AdmissionService ===

impl<S: Clone> AdmissionService<S> {
    /// Service for a connection from this peer.
    #[must_use]
    pub fn with_peer(&self, peer: ConnectionPeer) -> Self {
        Self { peer: Some(peer), ..self.clone() }
    }
}

impl<S> Service<Request> for AdmissionService<S>
where
    S: Service<Request, Response = Response> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
{
    type Response = Response;
    type Error = S::Error;
    type Future =
        Either<CountedResponse<S::Future>, Either<Ready<Outcome<S>>, BoxFuture<'static, Outcome<S>>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let result = self.gate.check(&mut request, self.peer.as_ref());
        let (counters, route) = (self.gate.request_counters(), self.gate.0.route_index(request.uri().path()));
        match result {
            AdmissionResult::Admitted => {
                let binding = self.gate.token_binding(&request);
                Either::Left(CountedResponse::new(self.inner.call(request), counters, route, binding))
            }
            AdmissionResult::Rejected(answer) => {
                counters.count_response(route, answer.status());
                Either::Right(Either::Left(ready(Ok(answer))))
            }
            AdmissionResult::Pending => {
                let (gate, peer) = (self.gate.clone(), self.peer.clone());
                // The one that was polled is ready, its copy need not be.
                let copy = self.inner.clone();
                let mut inner = std::mem::replace(&mut self.inner, copy);
                Either::Right(Either::Right(Box::pin(async move {
                    let response = match gate.check_after_refresh(&mut request, peer.as_ref()).await {
                        None => {
                            let route = gate.0.route_index(request.uri().path());
                            let binding = gate.token_binding(&request);
                            return CountedResponse::new(inner.call(request), counters, route, binding).await;
                        }
                        Some(rejection) => rejection,
                    };
                    counters.count_response(route, response.status());
                    Ok(response)
                })))
            }
        }
    }
}

/// Caller of the client certificate, for a request without a token.
fn caller_of_certificate(
    from: Option<&ConnectionPeer>,
    error: AuthError,
) -> Result<AdmittedCaller, AuthError> {
    let caller = from.and_then(|peer| peer.certified.as_deref());
    caller.filter(|_| error == AuthError::NoToken).cloned().map(AdmittedCaller::from).ok_or(error)
}

type Outcome<S> = Result<Response, <S as Service<Request>>::Error>;

fn is_path_below(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// True if the query has a token, where logs and histories would keep it.
fn has_token_in_query(query: Option<&str>) -> bool {
    query.is_some_and(|query| query.split('&').any(|pair| pair.starts_with("access_token=")))
}

/// Number of calls through this server that led to a request, from its header. A value that cannot be parsed is the maximum.
fn count_hops(headers: &HeaderMap) -> u8 {
    let counted = headers.get_all(HOPS_HEADER).iter();
    let read = |count: &HeaderValue| count.to_str().ok()?.trim().parse().ok();
    counted.map(|count| read(count).unwrap_or(u8::MAX)).max().unwrap_or(0)
}
