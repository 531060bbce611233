//! JSON-RPC: which operation has which name in which dialect, and the envelope around it.
//!
//! The name alone tells the dialect: `SendMessage` is 1.0, `message/send` is 0.2 or 0.3, `tasks/send` is 0.1. What 0.1
//! shares with 0.3 (`tasks/get` and its like) is read as 0.3; a server that knows the task was made by a 0.1 client
//! answers in 0.1.

use rialto_model::json::{Json, RawJson};
use serde::{Serialize, Serializer};

use crate::{
    codec::{event, params},
    error::{Code, RpcError},
    garbled::Garbled,
    members::{Members, parse, text},
    object::{Object, On, as_text, bytes_within, text_of, text_within},
    request::{Operation, Request},
    task::SendAnswer,
    wire::Wire,
};

/// A request's number or name, as its client wrote it. One without any wants no answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Id(Option<Json>);

/// A request that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// To be repeated in the answer.
    pub id: Id,
    /// The shape it came in, and its answer is expected in.
    pub wire: Wire,
    /// What is wanted.
    pub request: Request,
}

/// A request that cannot be served, and how to say so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", error.message)]
pub struct Refused {
    /// To be repeated in the answer; `null` when it could not be read.
    pub id: Id,
    /// The shape its answer is expected in.
    pub wire: Wire,
    /// Why.
    pub error: RpcError,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Response<'a> {
    /// The request it answers.
    pub id: Id,
    /// The result, still to be read by [`crate::answer`], or the error.
    pub result: Result<RawJson<'a>, RpcError>,
}

/// The dialect has no such operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operation} is not part of A2A {}", wire.dialect())]
pub struct Unsupported {
    /// What was wanted.
    pub operation: Operation,
    /// Where.
    pub wire: Wire,
}

/// Every method: its name, whose it is, and what it does.
const METHODS: &[(&str, Wire, Operation)] = &[
    ("SendMessage", Wire::V10, Operation::Send),
    ("SendStreamingMessage", Wire::V10, Operation::Stream),
    ("GetTask", Wire::V10, Operation::Get),
    ("ListTasks", Wire::V10, Operation::List),
    ("CancelTask", Wire::V10, Operation::Cancel),
    ("SubscribeToTask", Wire::V10, Operation::Subscribe),
    ("CreateTaskPushNotificationConfig", Wire::V10, Operation::PushCreate),
    ("GetTaskPushNotificationConfig", Wire::V10, Operation::PushGet),
    ("ListTaskPushNotificationConfigs", Wire::V10, Operation::PushList),
    ("DeleteTaskPushNotificationConfig", Wire::V10, Operation::PushDelete),
    ("GetExtendedAgentCard", Wire::V10, Operation::ExtendedCard),
    ("message/send", Wire::V03, Operation::Send),
    ("message/stream", Wire::V03, Operation::Stream),
    ("tasks/get", Wire::V03, Operation::Get),
    ("tasks/cancel", Wire::V03, Operation::Cancel),
    ("tasks/resubscribe", Wire::V03, Operation::Subscribe),
    ("tasks/pushNotificationConfig/set", Wire::V03, Operation::PushCreate),
    ("tasks/pushNotificationConfig/get", Wire::V03, Operation::PushGet),
    ("tasks/pushNotificationConfig/list", Wire::V03, Operation::PushList),
    ("tasks/pushNotificationConfig/delete", Wire::V03, Operation::PushDelete),
    ("agent/getAuthenticatedExtendedCard", Wire::V03, Operation::ExtendedCard),
    ("tasks/send", Wire::V01, Operation::Send),
    ("tasks/sendSubscribe", Wire::V01, Operation::Stream),
    ("tasks/get", Wire::V01, Operation::Get),
    ("tasks/cancel", Wire::V01, Operation::Cancel),
    ("tasks/resubscribe", Wire::V01, Operation::Subscribe),
    ("tasks/pushNotification/set", Wire::V01, Operation::PushCreate),
    ("tasks/pushNotification/get", Wire::V01, Operation::PushGet),
];

/// What a request takes besides its payload, most of the time.
const ENVELOPE: usize = 1024;

/// What an answer takes, most of the time. One that is longer grows.
const ANSWER: usize = 4096;

/// What the operation is called, or none when that wire's JSON-RPC does not have it.
pub fn method(wire: Wire, operation: Operation) -> Option<&'static str> {
    METHODS.iter().find(|(_, whose, what)| (*whose, *what) == (wire, operation)).map(|(name, ..)| *name)
}

/// The whole body of a request, as text.
pub fn encode(wire: Wire, id: &Id, request: &Request) -> Result<String, Unsupported> {
    encode_bytes(wire, id, request).map(as_text)
}

/// The whole body of a request.
pub fn encode_bytes(wire: Wire, id: &Id, request: &Request) -> Result<Vec<u8>, Unsupported> {
    let operation = request.operation();
    let method = method(wire, operation).ok_or(Unsupported { operation, wire })?;
    let call = Call { id, method, params: On(wire, request) };
    Ok(bytes_within(ENVELOPE + request.payload(), &call))
}

/// Reads the body of a request.
pub fn decode_request(body: &[u8]) -> Result<Incoming, Refused> {
    let refused = |id: &Id, wire, error| Refused { id: id.clone(), wire, error };
    let document = parse(body).map_err(|garbled| {
        refused(&Id::null(), Wire::V10, RpcError::new(Code::Parse, garbled.to_string()))
    })?;
    let mut members = Members::read(document)
        .map_err(|garbled| refused(&Id::null(), Wire::V10, not_a_request(&garbled)))?;
    let id = id_in(&mut members);
    let id = id.map_err(|garbled| refused(&Id::null(), Wire::V10, not_a_request(&garbled)))?;
    // What is no request cannot say that it wants no answer.
    let method = envelope(&mut members)
        .map_err(|garbled| refused(&id.clone().or_null(), Wire::V10, not_a_request(&garbled)))?;
    let Some((_, wire, operation)) = METHODS.iter().find(|(name, ..)| *name == method) else {
        let wire = if method.contains('/') { Wire::V03 } else { Wire::V10 };
        return Err(refused(
            &id,
            wire,
            RpcError::new(Code::MethodNotFound, format!("there is no method {method}")),
        ));
    };
    let request = members.take("params").map_or_else(
        || params::decode(*wire, *operation, Json::empty_object().raw()),
        |raw| params::decode(*wire, *operation, raw),
    );
    match request {
        Ok(request) => Ok(Incoming { id, wire: *wire, request }),
        Err(garbled) => Err(refused(&id, *wire, garbled.at("params").into())),
    }
}

/// Reads the body of an answer. A body without the envelope is garbled.
pub fn decode_response(body: &[u8]) -> Result<Response<'_>, Garbled> {
    response(parse(body)?)
}

/// Reads the body of an answer to a message: envelope and result in one go. `sent` is the id of the request.
pub fn decode_send(wire: Wire, sent: &Id, body: &[u8]) -> Result<Result<SendAnswer, RpcError>, Garbled> {
    let document = parse(body)?;
    let response = response(document)?;
    response.check_id(sent)?;
    match response.result {
        Ok(result) => event::send_answer(wire, result).map(Ok),
        Err(error) => Ok(Err(error)),
    }
}

fn response(raw: RawJson<'_>) -> Result<Response<'_>, Garbled> {
    let mut members = Members::read(raw)?;
    let id = id_in(&mut members)?.or_null();
    let result = match (members.take("error"), members.take_any("result")) {
        (Some(error), _) => Err(RpcError::decode(error)),
        (None, Some(result)) => Ok(result),
        (None, None) => {
            return Err(Garbled::new("a JSON-RPC answer", "an object with neither result nor error"));
        }
    };
    Ok(Response { id, result })
}

/// The whole body of an answer, as text. The result comes from [`crate::answer`].
pub fn encode_result<T: Serialize + ?Sized>(id: &Id, result: &T) -> String {
    text_within(ANSWER, &Answer { id, name: "result", value: result })
}

/// The whole body of an answer that is an error.
pub fn encode_error(wire: Wire, id: &Id, error: &RpcError) -> String {
    text_of(&Answer { id, name: "error", value: &On(wire, error) })
}

struct Call<'a> {
    id: &'a Id,
    method: &'static str,
    params: On<'a, Request>,
}

struct Answer<'a, T: ?Sized> {
    id: &'a Id,
    name: &'static str,
    value: &'a T,
}

// === impl Response ===

impl Response<'_> {
    /// Fails when this answers another request than the one whose id is `sent`.
    pub fn check_id(&self, sent: &Id) -> Result<(), Garbled> {
        if self.id.answers(sent) {
            return Ok(());
        }
        let found = format!("one to request {}", self.id.get());
        Err(Garbled::new(format!("the answer to request {}", sent.get()), found).at("id"))
    }
}

// === impl Id ===

impl Id {
    /// The id of an answer to a request whose id could not be read.
    pub fn null() -> Self {
        Self(Some(Json::null()))
    }

    /// Whether there is none: whoever asks so wants no answer.
    pub const fn is_absent(&self) -> bool {
        self.0.is_none()
    }

    /// The id as JSON text.
    pub fn get(&self) -> &str {
        self.0.as_ref().map_or("null", Json::get)
    }

    /// Whether an answer with this id is one to the request `sent`. Servers may quote a number or give it a fraction of zero;
    /// and one that could not read the id leaves it out or says `null`.
    fn answers(&self, sent: &Self) -> bool {
        let bare = |id: &Self| {
            let text = id.get().trim_matches('"');
            text.strip_suffix(".0").unwrap_or(text).to_owned()
        };
        matches!(self.get(), "null") || self.get() == sent.get() || bare(self) == bare(sent)
    }

    fn decode(raw: RawJson<'_>) -> Result<Self, Garbled> {
        match raw.get().as_bytes().first() {
            Some(b'"' | b'-' | b'0'..=b'9' | b'n') => Ok(Self(Some(raw.into()))),
            _ => Err(Garbled::kind("a string or a number", raw)),
        }
    }

    /// The id to answer under, also where none was asked for.
    fn or_null(self) -> Self {
        if self.is_absent() { Self::null() } else { self }
    }
}

impl From<u64> for Id {
    fn from(number: u64) -> Self {
        Self(Some(Json::of(&number)))
    }
}

impl From<&str> for Id {
    fn from(name: &str) -> Self {
        Self(Some(Json::of(name)))
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

// === impl Call ===

impl Serialize for Call<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::open(serializer)?;
        object.put("jsonrpc", "2.0")?;
        object.put("id", self.id)?;
        object.put("method", self.method)?;
        object.put("params", &self.params)?;
        object.end()
    }
}

// === impl Answer ===

impl<T: Serialize + ?Sized> Serialize for Answer<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::open(serializer)?;
        object.put("jsonrpc", "2.0")?;
        object.put("id", self.id)?;
        object.put(self.name, self.value)?;
        object.end()
    }
}

/// The id of a request or an answer.
fn id_in(members: &mut Members<'_>) -> Result<Id, Garbled> {
    let id = members.take_any("id").map(Id::decode).transpose();
    id.map(Option::unwrap_or_default).map_err(|garbled| garbled.at("id"))
}

/// The id of a request, if it can be read. For refusing what is not read any further.
pub fn id_of(body: &[u8]) -> Id {
    let document = parse(body).ok();
    let members = document.and_then(|document| Members::read(document).ok());
    members.and_then(|mut members| id_in(&mut members).ok()).unwrap_or_default().or_null()
}

/// Checks the envelope and gives the method's name.
fn envelope(members: &mut Members<'_>) -> Result<String, Garbled> {
    let version = members.need("jsonrpc", r#""2.0""#, text)?;
    if version != "2.0" {
        return Err(Garbled::new(r#""2.0""#, "another version").at("jsonrpc"));
    }
    members.need("method", "a string", text)
}

fn not_a_request(garbled: &Garbled) -> RpcError {
    RpcError::new(Code::InvalidRequest, format!("not a JSON-RPC request: {garbled}"))
}
