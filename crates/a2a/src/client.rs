//! A2A client: one request to an agent and its response, in a dialect that both support.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use memchr::memchr2;
use rialto_a2a_codec::{
    answer,
    error::ErrorCode,
    grpc as wire,
    request::{A2aOperation, A2aRequest},
    rest,
    rpc::{self, Id},
    task::{A2aTask, SendAnswer},
};
use rialto_engine::peer::DialectObserver;
use rialto_http_client::{
    address::Reach,
    fetch::{self, Fetch},
};
use rialto_model::{
    agent::Agent,
    call::{Caller, CallerId, HOPS_HEADER, OriginalMessage},
    card::{Dialect, Skill},
    clock::Clock,
    credential::CredentialScheme,
    failure::{Failure, FailureKind},
    presence::CallerPresence,
    trace::Trace,
};

use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::{
    agent_link::{AgentLink, AgentLinks},
    backend::Config,
    credential::{CredentialOwner, CredentialResolver, CredentialTarget, RequestAuth},
    endpoints::{AgentEndpoint, Carrier},
    error::{AgentError, AuthSent, wants_login},
    extension::Extensions,
    grpc,
    retry::RequestRetry,
    retry_after,
    stream::AgentEvents,
};

/// A2A client, shared by all exchanges.
pub(crate) struct AgentClient {
    pub(crate) config: Config,
    pub(crate) fetch: Arc<dyn Fetch>,
    pub(crate) keys: CredentialResolver,
    pub(crate) learned: Arc<dyn DialectObserver>,
    pub(crate) lines: AgentLinks,
    pub(crate) ids: RequestIds,
}

/// Context of an exchange: the agent, and the caller if it matters there.
pub(crate) struct ExchangeContext {
    pub(crate) agent: Arc<Agent>,
    pub(crate) line: Arc<AgentLink>,
    caller: Option<CredentialOwner>,
    /// Trace context, if there is one.
    trace: Option<Arc<Trace>>,
    /// Number of calls that led to this one.
    hops: u8,
    /// Extensions: requested by the caller, and activated by the agent.
    extensions: Extensions,
    presence: CallerPresence,
    /// Called skill, if any.
    skill: Option<Arc<Skill>>,
}

/// Response of an agent.
#[expect(clippy::large_enum_variant, reason = "the large one is the common one")]
pub(crate) enum AgentReply {
    /// Complete response.
    Whole(SendAnswer),
    /// Stream of events.
    Events(Box<AgentEvents>),
}

/// Request that a response belongs to.
struct SentRequest {
    operation: A2aOperation,
    id: Id,
    shown: Option<Arc<RequestAuth>>,
}

/// Request ids: the time in milliseconds, or one more than the last id when that is not unique.
pub(crate) struct RequestIds {
    clock: Arc<dyn Clock>,
    last: AtomicU64,
}

const HOPS: HeaderName = HeaderName::from_static(HOPS_HEADER);
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
const BAGGAGE: HeaderName = HeaderName::from_static("baggage");
const A2A_VERSION: HeaderName = HeaderName::from_static("a2a-version");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENT_STREAM_OR_JSON: HeaderValue = HeaderValue::from_static("text/event-stream, application/json");
const USER_AGENT_VALUE: HeaderValue = HeaderValue::from_static(concat!("rialto/", env!("CARGO_PKG_VERSION")));

// === impl AgentClient ===

impl AgentClient {
    /// Sends a request, and tries the other dialects of the agent when it does not understand.
    pub(crate) async fn ask(
        &self,
        pair: &ExchangeContext,
        request: &mut A2aRequest,
    ) -> Result<AgentReply, AgentError> {
        let ExchangeContext { agent, line, .. } = pair;
        let mut first = None;
        for (at, route) in line.ways()? {
            request_for(request, route);
            let outcome = self.exchange(pair, route, request).await;
            let is_understood = match &outcome {
                Ok(_) => true,
                Err(trouble) => trouble.code.is_some() && !trouble.is_foreign,
            };
            if is_understood {
                if line.settle(at) {
                    self.learned.speaks(agent, route.dialect);
                }
                return outcome;
            }
            match (outcome, first.take()) {
                (Err(trouble), None) if trouble.is_foreign => first = Some(trouble),
                (Err(trouble), Some(earlier)) if trouble.is_foreign => first = Some(earlier),
                // The error in the agent's own dialect explains more than that of a guess.
                (Err(_), Some(earlier)) => return Err(earlier),
                (outcome, None | Some(_)) => return outcome,
            }
        }
        Err(first.unwrap_or_else(|| Failure::new(FailureKind::Internal, "there was no way to try").into()))
    }

    /// Sends a request whose response is a task.
    pub(crate) async fn ask_task(
        &self,
        pair: &ExchangeContext,
        request: &mut A2aRequest,
    ) -> Result<A2aTask, AgentError> {
        match self.ask(pair, request).await? {
            AgentReply::Whole(SendAnswer::Task(task)) => Ok(task),
            AgentReply::Whole(SendAnswer::Message(_)) | AgentReply::Events(_) => {
                let message = "the agent's answer is not A2A: expected a task";
                Err(Failure::new(FailureKind::PeerGarbled, message).into())
            }
        }
    }

    async fn exchange(
        &self,
        pair: &ExchangeContext,
        route: &AgentEndpoint,
        request: &A2aRequest,
    ) -> Result<AgentReply, AgentError> {
        let started = Instant::now();
        let mut shown = self.login(pair, route).await?;
        let (mut answer, mut id) = self.send_until_accepted(pair, route, request, shown.as_deref()).await?;
        if route.status(&answer) == StatusCode::UNAUTHORIZED
            && let Some(old) = shown.as_ref().filter(|old| old.made < started || !is_issued(pair))
            && let Some(newer) = self.login_anew(pair, route, old).await
        {
            (answer, id) = self.send_until_accepted(pair, route, request, Some(&newer)).await?;
            shown = Some(newer);
        }
        let pause = retry_after::read(&answer, self.ids.clock.now());
        let sent = SentRequest { operation: request.operation(), id, shown };
        let read = read(answer, pair, route, sent).await;
        read.map_err(|trouble| trouble.with_retry_after(pause))
    }

    /// Sends a request, with retries and backoff while it surely was not accepted, or may be run twice.
    async fn send_until_accepted(
        &self,
        pair: &ExchangeContext,
        route: &AgentEndpoint,
        request: &A2aRequest,
        shown: Option<&RequestAuth>,
    ) -> Result<(fetch::FetchResponse, Id), AgentError> {
        let mut retry = RequestRetry::new(pair, &self.config);
        loop {
            let outcome = self.send(pair, route, request, shown).await;
            let is_sent_again = match &outcome {
                Ok((answer, _)) => retry.next_after_answer(answer, self.ids.clock.now()),
                Err(trouble) => retry.next_after_error(trouble),
            };
            let Some(pause) = is_sent_again else { return outcome };
            drop(outcome);
            sleep(pause).await;
        }
    }

    async fn send(
        &self,
        pair: &ExchangeContext,
        route: &AgentEndpoint,
        request: &A2aRequest,
        shown: Option<&RequestAuth>,
    ) -> Result<(fetch::FetchResponse, Id), AgentError> {
        let id = Id::from(self.ids.fresh());
        let mut message = self.write(&pair.agent, route, (request, &id), shown)?;
        if let Some(trace) = &pair.trace {
            go_on_in(trace, &mut message.headers);
        }
        message.headers.insert(HOPS, HeaderValue::from(u16::from(pair.hops) + 1));
        pair.extensions.ask(route.dialect, &mut message.headers);
        let answer = self.fetch.fetch(message).await;
        let answer = answer.map_err(|error| AgentError::fetching(&error).without(shown))?;
        Ok((answer, id))
    }

    /// Authentication for the agent, if it has any and this endpoint may receive it.
    async fn login(
        &self,
        pair: &ExchangeContext,
        route: &AgentEndpoint,
    ) -> Result<Option<Arc<RequestAuth>>, Failure> {
        let agent = &pair.agent;
        let Some(credential) = agent.credential.as_ref().filter(|_| route.is_home) else { return Ok(None) };
        let source = match &pair.caller {
            None => &credential.source,
            Some(who) => credential.source_for(who.id()).ok_or_else(|| nothing_for(who.id(), agent))?,
        };
        let proof = pair.caller.as_ref().and_then(|who| who.proof.as_ref());
        let door = CredentialTarget { url: &agent.url, card: Some(&agent.card), reach: reach(agent), proof };
        let made = pair.line.shown.get(pair.caller.as_ref(), || self.keys.show(credential, source, &door));
        made.await.map(Some).map_err(|why| Failure::new(FailureKind::PeerUnreachable, why))
    }

    /// Fresh authentication in place of one that the agent rejected; none when it did not change.
    async fn login_anew(
        &self,
        pair: &ExchangeContext,
        route: &AgentEndpoint,
        old: &Arc<RequestAuth>,
    ) -> Option<Arc<RequestAuth>> {
        pair.line.shown.forget(pair.caller.as_ref(), old);
        let newer = self.login(pair, route).await.ok()??;
        (!newer.is_same(old)).then_some(newer)
    }

    fn write(
        &self,
        agent: &Agent,
        route: &AgentEndpoint,
        (request, id): (&A2aRequest, &Id),
        shown: Option<&RequestAuth>,
    ) -> Result<fetch::FetchRequest, AgentError> {
        let (method, uri, body) = match route.carrier {
            Carrier::Rpc => {
                let body = rpc::encode_bytes(route.wire, id, request);
                (Method::POST, route.uri.clone(), body.map_err(|error| unsupported(&error))?)
            }
            Carrier::Rest => {
                let call = rest::encode(route.wire, request).map_err(|error| unsupported(&error))?;
                let uri =
                    format!("{}{}", route.base, call.path).parse().map_err(|_| unaddressable(&call.path))?;
                let method = if call.body.is_some() { Method::POST } else { Method::GET };
                (method, uri, call.body.unwrap_or_default().into_bytes())
            }
            Carrier::Grpc => {
                let call = wire::encode(route.wire, request).map_err(|error| unsupported(&error))?;
                let uri =
                    format!("{}{}", route.base, call.path).parse().map_err(|_| unaddressable(&call.path))?;
                (Method::POST, uri, call.body)
            }
        };
        let patience = Duration::from_millis(self.config.patience_ms);
        let mut headers = headers(route, request.operation());
        if route.carrier == Carrier::Grpc {
            grpc::put_headers(&mut headers, request.operation(), patience);
        } else if method == Method::POST {
            headers.insert(header::CONTENT_TYPE, JSON);
        }
        let mut message = fetch::FetchRequest {
            method,
            uri,
            headers,
            body: Bytes::from(body),
            reach: reach(agent),
            patience,
            total: None,
            limit: None,
            http2: route.carrier == Carrier::Grpc,
        };
        if let Some(shown) = shown {
            shown.put(&mut message).map_err(|why| Failure::new(FailureKind::PeerUnreachable, why))?;
        }
        Ok(message)
    }
}

// === impl ExchangeContext ===

impl ExchangeContext {
    pub(crate) fn new(agent: Arc<Agent>, lines: &AgentLinks, caller: &Caller) -> Self {
        let (line, hops) = (lines.to(&agent), caller.hops);
        let personal = agent.credential.as_ref().filter(|credential| credential.is_personal());
        let caller = personal.map(|credential| {
            line.shown.who(caller, matches!(credential.scheme, Some(CredentialScheme::Exchange(_))))
        });
        Self {
            agent,
            line,
            caller,
            trace: None,
            hops,
            extensions: Extensions::default(),
            presence: CallerPresence::default(),
            skill: None,
        }
    }

    /// Sets the presence of the caller and the skill.
    pub(crate) fn called_by(mut self, presence: CallerPresence, skill: Option<Arc<Skill>>) -> Self {
        (self.presence, self.skill) = (presence, skill);
        self
    }

    /// Presence of the caller.
    pub(crate) const fn presence(&self) -> &CallerPresence {
        &self.presence
    }

    /// True when the skill is idempotent.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.skill.as_ref().is_some_and(|skill| skill.is_repeatable())
    }

    /// Authentication sent to the agent, or the reason for none.
    fn login<'a>(&self, shown: Option<&'a RequestAuth>) -> AuthSent<'a> {
        match shown {
            Some(shown) => AuthSent::Shown(shown),
            None if self.agent.credential.is_some() => AuthSent::Withheld,
            None => AuthSent::None,
        }
    }

    /// Requests the caller's extensions.
    pub(crate) fn with_extensions(mut self, spoken: Option<&OriginalMessage>) -> Self {
        self.extensions = spoken.map(|spoken| Extensions::wanted(&spoken.extensions)).unwrap_or_default();
        self
    }

    /// Active extensions, as far as the agent has reported them.
    pub(crate) fn activated(&self) -> &[String] {
        self.extensions.activated()
    }

    /// Sets the trace context.
    pub(crate) fn in_trace(mut self, trace: Option<Arc<Trace>>) -> Self {
        self.trace = trace;
        self
    }
}

// === impl RequestIds ===

impl RequestIds {
    pub(crate) const fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, last: AtomicU64::new(0) }
    }

    pub(crate) fn fresh(&self) -> u64 {
        let now = u64::try_from(self.clock.now().as_millisecond()).unwrap_or(0);
        let step = |last: u64| Some(now.max(last + 1));
        match self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step) {
            Ok(last) | Err(last) => now.max(last + 1),
        }
    }
}

/// Adapts a request to an endpoint.
fn request_for(request: &mut A2aRequest, route: &AgentEndpoint) {
    let tenant = match request {
        A2aRequest::Send(request) | A2aRequest::Stream(request) => &mut request.tenant,
        A2aRequest::Get(request) => {
            // In 0.x zero means the complete history.
            request.history_length = (route.dialect == Dialect::V10).then_some(0);
            &mut request.tenant
        }
        A2aRequest::Cancel(request) | A2aRequest::Subscribe(request) => &mut request.tenant,
        _ => return,
    };
    tenant.clone_from(&route.tenant);
}

fn headers(route: &AgentEndpoint, operation: A2aOperation) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    if route.carrier != Carrier::Grpc {
        headers.insert(header::ACCEPT, if operation.streams() { EVENT_STREAM_OR_JSON } else { JSON });
    }
    headers.insert(header::USER_AGENT, USER_AGENT_VALUE);
    if route.dialect == Dialect::V10 {
        headers.insert(A2A_VERSION, HeaderValue::from_static("1.0"));
    }
    headers
}

/// Adds the trace context to a request.
fn go_on_in(trace: &Trace, headers: &mut HeaderMap) {
    if let Ok(value) = HeaderValue::try_from(trace.to_string()) {
        headers.insert(TRACEPARENT, value);
    }
    if let Some(Ok(value)) = trace.state().map(HeaderValue::try_from) {
        headers.insert(TRACESTATE, value);
    }
    if let Some(Ok(value)) = trace.baggage().map(HeaderValue::try_from) {
        headers.insert(BAGGAGE, value);
    }
}

const fn reach(agent: &Agent) -> Reach {
    if agent.allow_private { Reach::Private } else { Reach::Public }
}

/// True when the agent gets a token from an issuer. One that was issued for this call is not requested again.
fn is_issued(pair: &ExchangeContext) -> bool {
    let scheme = pair.agent.credential.as_ref().and_then(|credential| credential.scheme.as_ref());
    matches!(scheme, Some(CredentialScheme::OAuth2(_) | CredentialScheme::Exchange(_)))
}

fn nothing_for(caller: &CallerId, agent: &Agent) -> Failure {
    let slug = &agent.slug;
    let message = format!(
        "{slug} has no credential for {caller}, and only for those it names; give one with `rialto agents credential \
         {slug} --for-caller {caller} --secret SOURCE`"
    );
    Failure::new(FailureKind::PeerUnreachable, message)
}

/// JSON without line breaks. Payloads are passed on as text, and on some wires a line break ends the message. In JSON a line break
/// outside strings is only white space, so no parsing is needed.
pub(crate) fn one_line(json: &[u8]) -> Cow<'_, [u8]> {
    if memchr2(b'\n', b'\r', json).is_none() {
        return Cow::Borrowed(json);
    }
    let is_end = |byte: u8| matches!(byte, b'\n' | b'\r');
    Cow::Owned(json.iter().map(|byte| if is_end(*byte) { b' ' } else { *byte }).collect())
}

/// Decodes an agent's response.
async fn read(
    answer: fetch::FetchResponse,
    pair: &ExchangeContext,
    route: &AgentEndpoint,
    sent: SentRequest,
) -> Result<AgentReply, AgentError> {
    let SentRequest { operation, id, shown } = sent;
    pair.extensions.hear(&answer.headers);
    let status = route.status(&answer);
    if route.carrier == Carrier::Grpc {
        return hear_grpc(answer, pair, route, operation, shown).await;
    }
    if status.is_success() && answer.media_type().eq_ignore_ascii_case("text/event-stream") {
        let events = AgentEvents::new(answer.body, route, id, shown);
        return Ok(AgentReply::Events(Box::new(events)));
    }
    let body = answer.body.read().await.map_err(|error| AgentError::fetching(&error))?;
    let body = one_line(&body);
    let login = pair.login(shown.as_deref());
    let read = match route.carrier {
        Carrier::Rpc => read_rpc(route, status, &body, (&id, login)),
        Carrier::Rest | Carrier::Grpc => read_rest(route, status, &body, login),
    };
    read.map_err(|trouble| trouble.without(shown.as_deref()))
}

async fn hear_grpc(
    answer: fetch::FetchResponse,
    pair: &ExchangeContext,
    route: &AgentEndpoint,
    operation: A2aOperation,
    shown: Option<Arc<RequestAuth>>,
) -> Result<AgentReply, AgentError> {
    let login = pair.login(shown.as_deref());
    let heard = async {
        let messages = grpc::open(answer, route.wire, operation, login).await?;
        if operation.streams() {
            return Ok(AgentReply::Events(Box::new(AgentEvents::grpc(messages, shown.clone()))));
        }
        messages.only(login).await.map(AgentReply::Whole)
    };
    heard.await.map_err(|trouble: AgentError| trouble.without(shown.as_deref()))
}

fn read_rpc(
    route: &AgentEndpoint,
    status: StatusCode,
    body: &[u8],
    (id, login): (&Id, AuthSent<'_>),
) -> Result<AgentReply, AgentError> {
    if !status.is_success() {
        return Err(read_rpc_error(status, body, login));
    }
    match rpc::decode_send(route.wire, id, body) {
        Ok(Ok(answer)) => Ok(AgentReply::Whole(answer)),
        Ok(Err(error)) => Err(AgentError::remote(&error)),
        Err(garbled) => Err(AgentError::garbled(&garbled, body, login)),
    }
}

/// Protocol error if the body is one; otherwise only a status.
fn read_rpc_error(status: StatusCode, body: &[u8], login: AuthSent<'_>) -> AgentError {
    let is_envelope = || has(body, |body| body.get("jsonrpc").is_some());
    match rpc::decode_response(body) {
        Ok(rpc::RpcResponse { result: Err(error), .. }) if !wants_login(status) && is_envelope() => {
            // A 0.1 server rejects an unknown method as an invalid request (Q11).
            let is_foreign =
                status == StatusCode::BAD_REQUEST && error.code == ErrorCode::InvalidRequest.number();
            AgentError::remote(&error).foreign_if(is_foreign)
        }
        _ => AgentError::status(status, body, login),
    }
}

fn read_rest(
    route: &AgentEndpoint,
    status: StatusCode,
    body: &[u8],
    login: AuthSent<'_>,
) -> Result<AgentReply, AgentError> {
    if !status.is_success() {
        return Err(read_rest_error(status, body, login));
    }
    let read = answer::parse(body).and_then(|raw| answer::decode_send(route.wire, raw));
    read.map(AgentReply::Whole).map_err(|garbled| AgentError::garbled(&garbled, body, login))
}

/// Protocol error if the body is one; otherwise only a status, and possibly an unknown path.
fn read_rest_error(status: StatusCode, body: &[u8], login: AuthSent<'_>) -> AgentError {
    let error = rest::decode_error(status.as_u16(), body);
    if !wants_login(status) && is_protocol_error(body) {
        return AgentError::remote(&error);
    }
    let mut trouble = AgentError::status(status, body, login);
    trouble.is_foreign = matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED);
    trouble.code = (status == StatusCode::NOT_IMPLEMENTED).then_some(ErrorCode::UnsupportedOperation);
    trouble
}

/// Frameworks answer unknown paths with JSON too, but without an `error` object or a `message`.
fn is_protocol_error(body: &[u8]) -> bool {
    has(body, |body| body.get("error").is_some_and(Value::is_object) || body.get("message").is_some())
}

fn has(body: &[u8], what: impl FnOnce(Value) -> bool) -> bool {
    serde_json::from_slice(body).is_ok_and(what)
}

fn unsupported(error: &dyn std::error::Error) -> AgentError {
    Failure::new(FailureKind::Unsupported, format!("the agent cannot do this: {error}")).into()
}

fn unaddressable(path: &str) -> AgentError {
    Failure::new(FailureKind::PeerGarbled, format!("the agent's names do not make an address: {path}")).into()
}
