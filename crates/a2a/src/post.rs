//! One request to an agent and the answer to it, in whatever dialect the two can agree on.

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
use rialto_a2a_wire::{
    answer,
    error::Code,
    grpc as wire,
    request::{Operation, Request},
    rest,
    rpc::{self, Id},
    task::{SendAnswer, Task},
};
use rialto_edge::{
    address::Reach,
    fetch::{self, Fetch},
};
use rialto_engine::peer::Learned;
use rialto_model::{
    agent::Agent,
    call::{Caller, CallerId, HOPS_HEADER, Spoken},
    card::{Dialect, Skill},
    clock::Clock,
    credential::Scheme,
    failure::{Failure, Kind},
    presence::CallerPresence,
    trace::Trace,
};

use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::{
    credential::{Door, Keys, Shown, Who},
    extension::Extensions,
    grpc,
    line::{Line, Lines},
    peer::Config,
    retry::Retry,
    retry_after,
    route::{Carrier, Route},
    stream::Events,
    trouble::{Login, Trouble, wants_login},
};

/// Everything an exchange needs, shared by all of them.
pub(crate) struct Post {
    pub(crate) config: Config,
    pub(crate) fetch: Arc<dyn Fetch>,
    pub(crate) keys: Keys,
    pub(crate) learned: Arc<dyn Learned>,
    pub(crate) lines: Lines,
    pub(crate) ids: Ids,
}

/// The two who talk: an agent, and who calls it if that makes a difference there.
pub(crate) struct Pair {
    pub(crate) agent: Arc<Agent>,
    pub(crate) line: Arc<Line>,
    caller: Option<Who>,
    /// What their talk is a part of, if anybody wants to know.
    trace: Option<Arc<Trace>>,
    /// How many calls led to this one.
    hops: u8,
    /// What the caller wants in use, and what the agent says is.
    extensions: Extensions,
    presence: CallerPresence,
    /// The skill that is called, if one is.
    skill: Option<Arc<Skill>>,
}

/// What came back.
#[expect(clippy::large_enum_variant, reason = "the large one is the common one")]
pub(crate) enum Reply {
    /// A whole answer.
    Whole(SendAnswer),
    /// A stream of events.
    Events(Box<Events>),
}

/// The request that an answer belongs to.
struct Sent {
    operation: Operation,
    id: Id,
    shown: Option<Arc<Shown>>,
}

/// Numbers for requests: the time of day in milliseconds, or one more than the last when that is not unique.
pub(crate) struct Ids {
    clock: Arc<dyn Clock>,
    last: AtomicU64,
}

const HOPS: HeaderName = HeaderName::from_static(HOPS_HEADER);
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
const BAGGAGE: HeaderName = HeaderName::from_static("baggage");
const A2A_VERSION: HeaderName = HeaderName::from_static("a2a-version");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EITHER: HeaderValue = HeaderValue::from_static("text/event-stream, application/json");
const RIALTO: HeaderValue = HeaderValue::from_static(concat!("rialto/", env!("CARGO_PKG_VERSION")));

// === impl Post ===

impl Post {
    /// Asks the agent, and when it does not understand, asks again in each other dialect it might speak.
    pub(crate) async fn ask(&self, pair: &Pair, request: &mut Request) -> Result<Reply, Trouble> {
        let Pair { agent, line, .. } = pair;
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
                // What the agent said in its own dialect explains more than how a guess went wrong.
                (Err(_), Some(earlier)) => return Err(earlier),
                (outcome, None | Some(_)) => return outcome,
            }
        }
        Err(first.unwrap_or_else(|| Failure::new(Kind::Internal, "there was no way to try").into()))
    }

    /// Asks for something that is answered with a task.
    pub(crate) async fn ask_task(&self, pair: &Pair, request: &mut Request) -> Result<Task, Trouble> {
        match self.ask(pair, request).await? {
            Reply::Whole(SendAnswer::Task(task)) => Ok(task),
            Reply::Whole(SendAnswer::Message(_)) | Reply::Events(_) => {
                let message = "the agent's answer is not A2A: expected a task";
                Err(Failure::new(Kind::PeerGarbled, message).into())
            }
        }
    }

    async fn exchange(&self, pair: &Pair, route: &Route, request: &Request) -> Result<Reply, Trouble> {
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
        let sent = Sent { operation: request.operation(), id, shown };
        let read = read(answer, pair, route, sent).await;
        read.map_err(|trouble| trouble.with_retry_after(pause))
    }

    /// Sends a request, and sends it again with backoff while it surely was not accepted, or may be run twice.
    async fn send_until_accepted(
        &self,
        pair: &Pair,
        route: &Route,
        request: &Request,
        shown: Option<&Shown>,
    ) -> Result<(fetch::Response, Id), Trouble> {
        let mut retry = Retry::new(pair, &self.config);
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
        pair: &Pair,
        route: &Route,
        request: &Request,
        shown: Option<&Shown>,
    ) -> Result<(fetch::Response, Id), Trouble> {
        let id = Id::from(self.ids.fresh());
        let mut message = self.write(&pair.agent, route, (request, &id), shown)?;
        if let Some(trace) = &pair.trace {
            go_on_in(trace, &mut message.headers);
        }
        message.headers.insert(HOPS, HeaderValue::from(u16::from(pair.hops) + 1));
        pair.extensions.ask(route.dialect, &mut message.headers);
        let answer = self.fetch.fetch(message).await;
        let answer = answer.map_err(|error| Trouble::fetching(&error).without(shown))?;
        Ok((answer, id))
    }

    /// What the agent is shown, if there is something and this is where it belongs.
    async fn login(&self, pair: &Pair, route: &Route) -> Result<Option<Arc<Shown>>, Failure> {
        let agent = &pair.agent;
        let Some(credential) = agent.credential.as_ref().filter(|_| route.is_home) else { return Ok(None) };
        let source = match &pair.caller {
            None => &credential.source,
            Some(who) => credential.source_for(who.id()).ok_or_else(|| nothing_for(who.id(), agent))?,
        };
        let proof = pair.caller.as_ref().and_then(|who| who.proof.as_ref());
        let door = Door { url: &agent.url, card: Some(&agent.card), reach: reach(agent), proof };
        let made = pair.line.shown.get(pair.caller.as_ref(), || self.keys.show(credential, source, &door));
        made.await.map(Some).map_err(|why| Failure::new(Kind::PeerUnreachable, why))
    }

    /// Another login, freshly read, in place of one that the agent refused; none when there is no other.
    async fn login_anew(&self, pair: &Pair, route: &Route, old: &Arc<Shown>) -> Option<Arc<Shown>> {
        pair.line.shown.forget(pair.caller.as_ref(), old);
        let newer = self.login(pair, route).await.ok()??;
        (!newer.is_same(old)).then_some(newer)
    }

    fn write(
        &self,
        agent: &Agent,
        route: &Route,
        (request, id): (&Request, &Id),
        shown: Option<&Shown>,
    ) -> Result<fetch::Request, Trouble> {
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
        let mut message = fetch::Request {
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
            shown.put(&mut message).map_err(|why| Failure::new(Kind::PeerUnreachable, why))?;
        }
        Ok(message)
    }
}

// === impl Pair ===

impl Pair {
    pub(crate) fn new(agent: Arc<Agent>, lines: &Lines, caller: &Caller) -> Self {
        let (line, hops) = (lines.to(&agent), caller.hops);
        let personal = agent.credential.as_ref().filter(|credential| credential.is_personal());
        let caller = personal
            .map(|credential| line.shown.who(caller, matches!(credential.scheme, Some(Scheme::Exchange(_)))));
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

    /// The same two, for a caller that waits for this skill.
    pub(crate) fn called_by(mut self, presence: CallerPresence, skill: Option<Arc<Skill>>) -> Self {
        (self.presence, self.skill) = (presence, skill);
        self
    }

    /// Presence of the caller.
    pub(crate) const fn presence(&self) -> &CallerPresence {
        &self.presence
    }

    /// Whether the skill may be run twice.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.skill.as_ref().is_some_and(|skill| skill.is_repeatable())
    }

    /// What the agent was shown, or why nothing.
    fn login<'a>(&self, shown: Option<&'a Shown>) -> Login<'a> {
        match shown {
            Some(shown) => Login::Shown(shown),
            None if self.agent.credential.is_some() => Login::Withheld,
            None => Login::None,
        }
    }

    /// The same two, with the extensions that the caller wants in use.
    pub(crate) fn with_extensions(mut self, spoken: Option<&Spoken>) -> Self {
        self.extensions = spoken.map(|spoken| Extensions::wanted(&spoken.extensions)).unwrap_or_default();
        self
    }

    /// The extensions that the agent says are in use, as far as it has said so.
    pub(crate) fn activated(&self) -> &[String] {
        self.extensions.activated()
    }

    /// The same two, talking as a part of this.
    pub(crate) fn in_trace(mut self, trace: Option<Arc<Trace>>) -> Self {
        self.trace = trace;
        self
    }
}

// === impl Ids ===

impl Ids {
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

/// What differs in a request from route to route.
fn request_for(request: &mut Request, route: &Route) {
    let tenant = match request {
        Request::Send(request) | Request::Stream(request) => &mut request.tenant,
        Request::Get(request) => {
            // 0.x means "all of it" by zero.
            request.history_length = (route.dialect == Dialect::V10).then_some(0);
            &mut request.tenant
        }
        Request::Cancel(request) | Request::Subscribe(request) => &mut request.tenant,
        _ => return,
    };
    tenant.clone_from(&route.tenant);
}

fn headers(route: &Route, operation: Operation) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    if route.carrier != Carrier::Grpc {
        headers.insert(header::ACCEPT, if operation.streams() { EITHER } else { JSON });
    }
    headers.insert(header::USER_AGENT, RIALTO);
    if route.dialect == Dialect::V10 {
        headers.insert(A2A_VERSION, HeaderValue::from_static("1.0"));
    }
    headers
}

/// Says which trace a request is a part of.
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

/// Whether the agent is shown a token that an issuer hands out. One that was issued for this very call is not asked for again.
fn is_issued(pair: &Pair) -> bool {
    let scheme = pair.agent.credential.as_ref().and_then(|credential| credential.scheme.as_ref());
    matches!(scheme, Some(Scheme::OAuth2(_) | Scheme::Exchange(_)))
}

fn nothing_for(caller: &CallerId, agent: &Agent) -> Failure {
    let slug = &agent.slug;
    let message = format!(
        "{slug} has no credential for {caller}, and only for those it names; give one with `rialto agents credential \
         {slug} --for-caller {caller} --secret SOURCE`"
    );
    Failure::new(Kind::PeerUnreachable, message)
}

/// JSON without line ends. Payloads travel on as the text they came in, and on some wires a line end ends the message.
/// In JSON a line end is only ever space, so no parsing is needed.
pub(crate) fn one_line(json: &[u8]) -> Cow<'_, [u8]> {
    if memchr2(b'\n', b'\r', json).is_none() {
        return Cow::Borrowed(json);
    }
    let is_end = |byte: u8| matches!(byte, b'\n' | b'\r');
    Cow::Owned(json.iter().map(|byte| if is_end(*byte) { b' ' } else { *byte }).collect())
}

/// Reads what an agent has answered.
async fn read(answer: fetch::Response, pair: &Pair, route: &Route, sent: Sent) -> Result<Reply, Trouble> {
    let Sent { operation, id, shown } = sent;
    pair.extensions.hear(&answer.headers);
    let status = route.status(&answer);
    if route.carrier == Carrier::Grpc {
        return hear_grpc(answer, pair, route, operation, shown).await;
    }
    if status.is_success() && answer.media_type().eq_ignore_ascii_case("text/event-stream") {
        let events = Events::new(answer.body, route, id, shown);
        return Ok(Reply::Events(Box::new(events)));
    }
    let body = answer.body.read().await.map_err(|error| Trouble::fetching(&error))?;
    let body = one_line(&body);
    let login = pair.login(shown.as_deref());
    let read = match route.carrier {
        Carrier::Rpc => read_rpc(route, status, &body, (&id, login)),
        Carrier::Rest | Carrier::Grpc => read_rest(route, status, &body, login),
    };
    read.map_err(|trouble| trouble.without(shown.as_deref()))
}

async fn hear_grpc(
    answer: fetch::Response,
    pair: &Pair,
    route: &Route,
    operation: Operation,
    shown: Option<Arc<Shown>>,
) -> Result<Reply, Trouble> {
    let login = pair.login(shown.as_deref());
    let heard = async {
        let messages = grpc::open(answer, route.wire, operation, login).await?;
        if operation.streams() {
            return Ok(Reply::Events(Box::new(Events::grpc(messages, shown.clone()))));
        }
        messages.only(login).await.map(Reply::Whole)
    };
    heard.await.map_err(|trouble: Trouble| trouble.without(shown.as_deref()))
}

fn read_rpc(
    route: &Route,
    status: StatusCode,
    body: &[u8],
    (id, login): (&Id, Login<'_>),
) -> Result<Reply, Trouble> {
    if !status.is_success() {
        return Err(read_rpc_error(status, body, login));
    }
    match rpc::decode_send(route.wire, id, body) {
        Ok(Ok(answer)) => Ok(Reply::Whole(answer)),
        Ok(Err(error)) => Err(Trouble::remote(&error)),
        Err(garbled) => Err(Trouble::garbled(&garbled, body, login)),
    }
}

/// An error of the protocol if the body is one; else only a status.
fn read_rpc_error(status: StatusCode, body: &[u8], login: Login<'_>) -> Trouble {
    let is_envelope = || has(body, |body| body.get("jsonrpc").is_some());
    match rpc::decode_response(body) {
        Ok(rpc::Response { result: Err(error), .. }) if !wants_login(status) && is_envelope() => {
            // A 0.1 server does not even take a method it does not know for a request (Q11).
            let is_foreign = status == StatusCode::BAD_REQUEST && error.code == Code::InvalidRequest.number();
            Trouble::remote(&error).foreign_if(is_foreign)
        }
        _ => Trouble::status(status, body, login),
    }
}

fn read_rest(route: &Route, status: StatusCode, body: &[u8], login: Login<'_>) -> Result<Reply, Trouble> {
    if !status.is_success() {
        return Err(read_rest_error(status, body, login));
    }
    let read = answer::parse(body).and_then(|raw| answer::decode_send(route.wire, raw));
    read.map(Reply::Whole).map_err(|garbled| Trouble::garbled(&garbled, body, login))
}

/// An error of the protocol if the body is one; else only a status, and perhaps a path that is not known there.
fn read_rest_error(status: StatusCode, body: &[u8], login: Login<'_>) -> Trouble {
    let error = rest::decode_error(status.as_u16(), body);
    if !wants_login(status) && is_protocol_error(body) {
        return Trouble::remote(&error);
    }
    let mut trouble = Trouble::status(status, body, login);
    trouble.is_foreign = matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED);
    trouble.code = (status == StatusCode::NOT_IMPLEMENTED).then_some(Code::UnsupportedOperation);
    trouble
}

/// Frameworks answer unknown paths with JSON too, but not with an `error` object or a `message`.
fn is_protocol_error(body: &[u8]) -> bool {
    has(body, |body| body.get("error").is_some_and(Value::is_object) || body.get("message").is_some())
}

fn has(body: &[u8], what: impl FnOnce(Value) -> bool) -> bool {
    serde_json::from_slice(body).is_ok_and(what)
}

fn unsupported(error: &dyn std::error::Error) -> Trouble {
    Failure::new(Kind::Unsupported, format!("the agent cannot do this: {error}")).into()
}

fn unaddressable(path: &str) -> Trouble {
    Failure::new(Kind::PeerGarbled, format!("the agent's names do not make an address: {path}")).into()
}
