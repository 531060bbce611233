//! JSON-RPC binding: method names of each dialect, and the envelope.
//!
//! The method name identifies the dialect: `SendMessage` is 1.0, `message/send` is 0.2 or 0.3, `tasks/send` is 0.1. Methods that 0.1
//! shares with 0.3 (`tasks/get` and its like) are decoded as 0.3; a server that knows that the task was made by a 0.1 client answers in
//! 0.1.

use rialto_model::json::{Json, RawJson};
use serde::{Serialize, Serializer};

use crate::{
    codec::{event, params},
    error::{ErrorCode, RpcError},
    invalid::InvalidDocument,
    members::{ObjectMembers, parse, text},
    object::{ObjectWriter, OnWire, as_text, bytes_within, text_of, text_within},
    request::{A2aOperation, A2aRequest},
    task::SendAnswer,
    wire::Wire,
};

/// Id of a request, as its client wrote it. A request without one is a notification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Id(Option<Json>);

/// Decoded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedRequest {
    /// Id, repeated in the response.
    pub id: Id,
    /// Wire of the request and its response.
    pub wire: Wire,
    /// Request.
    pub request: A2aRequest,
}

/// Error of a request that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", error.message)]
pub struct RejectedRequest {
    /// Id, repeated in the response; `null` when it could not be decoded.
    pub id: Id,
    /// Wire of the response.
    pub wire: Wire,
    /// Error.
    pub error: RpcError,
}

/// Decoded response.
#[derive(Clone, Debug)]
pub struct RpcResponse<'a> {
    /// Id of the request.
    pub id: Id,
    /// Result, to be decoded by [`crate::answer`], or the error.
    pub result: Result<RawJson<'a>, RpcError>,
}

/// Error of an operation that the dialect does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operation} is not part of A2A {}", wire.dialect())]
pub struct Unsupported {
    /// Operation.
    pub operation: A2aOperation,
    /// Wire.
    pub wire: Wire,
}

/// All methods: name, wire and operation.
const METHODS: &[(&str, Wire, A2aOperation)] = &[
    ("SendMessage", Wire::V10, A2aOperation::Send),
    ("SendStreamingMessage", Wire::V10, A2aOperation::Stream),
    ("GetTask", Wire::V10, A2aOperation::Get),
    ("ListTasks", Wire::V10, A2aOperation::List),
    ("CancelTask", Wire::V10, A2aOperation::Cancel),
    ("SubscribeToTask", Wire::V10, A2aOperation::Subscribe),
    ("CreateTaskPushNotificationConfig", Wire::V10, A2aOperation::PushCreate),
    ("GetTaskPushNotificationConfig", Wire::V10, A2aOperation::PushGet),
    ("ListTaskPushNotificationConfigs", Wire::V10, A2aOperation::PushList),
    ("DeleteTaskPushNotificationConfig", Wire::V10, A2aOperation::PushDelete),
    ("GetExtendedAgentCard", Wire::V10, A2aOperation::ExtendedCard),
    ("message/send", Wire::V03, A2aOperation::Send),
    ("message/stream", Wire::V03, A2aOperation::Stream),
    ("tasks/get", Wire::V03, A2aOperation::Get),
    ("tasks/cancel", Wire::V03, A2aOperation::Cancel),
    ("tasks/resubscribe", Wire::V03, A2aOperation::Subscribe),
    ("tasks/pushNotificationConfig/set", Wire::V03, A2aOperation::PushCreate),
    ("tasks/pushNotificationConfig/get", Wire::V03, A2aOperation::PushGet),
    ("tasks/pushNotificationConfig/list", Wire::V03, A2aOperation::PushList),
    ("tasks/pushNotificationConfig/delete", Wire::V03, A2aOperation::PushDelete),
    ("agent/getAuthenticatedExtendedCard", Wire::V03, A2aOperation::ExtendedCard),
    ("tasks/send", Wire::V01, A2aOperation::Send),
    ("tasks/sendSubscribe", Wire::V01, A2aOperation::Stream),
    ("tasks/get", Wire::V01, A2aOperation::Get),
    ("tasks/cancel", Wire::V01, A2aOperation::Cancel),
    ("tasks/resubscribe", Wire::V01, A2aOperation::Subscribe),
    ("tasks/pushNotification/set", Wire::V01, A2aOperation::PushCreate),
    ("tasks/pushNotification/get", Wire::V01, A2aOperation::PushGet),
];

/// Typical size of a request besides its payload, in bytes.
const ENVELOPE_BYTES: usize = 1024;

/// Typical size of a response, in bytes. A longer one grows.
const RESPONSE_BYTES: usize = 4096;

/// Method name of an operation, or none when that wire's JSON-RPC does not have it.
pub fn method(wire: Wire, operation: A2aOperation) -> Option<&'static str> {
    METHODS.iter().find(|(_, whose, what)| (*whose, *what) == (wire, operation)).map(|(name, ..)| *name)
}

/// Encodes a request as text.
pub fn encode(wire: Wire, id: &Id, request: &A2aRequest) -> Result<String, Unsupported> {
    encode_bytes(wire, id, request).map(as_text)
}

/// Encodes a request.
pub fn encode_bytes(wire: Wire, id: &Id, request: &A2aRequest) -> Result<Vec<u8>, Unsupported> {
    let operation = request.operation();
    let method = method(wire, operation).ok_or(Unsupported { operation, wire })?;
    let call = RequestEnvelope { id, method, params: OnWire(wire, request) };
    Ok(bytes_within(ENVELOPE_BYTES + request.payload(), &call))
}

/// Decodes a request.
pub fn decode_request(body: &[u8]) -> Result<DecodedRequest, RejectedRequest> {
    let refused = |id: &Id, wire, error| RejectedRequest { id: id.clone(), wire, error };
    let document = parse(body).map_err(|garbled| {
        refused(&Id::null(), Wire::V10, RpcError::new(ErrorCode::Parse, garbled.to_string()))
    })?;
    let mut members = ObjectMembers::read(document)
        .map_err(|garbled| refused(&Id::null(), Wire::V10, not_a_request(&garbled)))?;
    let id = id_in(&mut members);
    let id = id.map_err(|garbled| refused(&Id::null(), Wire::V10, not_a_request(&garbled)))?;
    // An invalid request is not known to be a notification.
    let method = envelope(&mut members)
        .map_err(|garbled| refused(&id.clone().or_null(), Wire::V10, not_a_request(&garbled)))?;
    let Some((_, wire, operation)) = METHODS.iter().find(|(name, ..)| *name == method) else {
        let wire = if method.contains('/') { Wire::V03 } else { Wire::V10 };
        return Err(refused(
            &id,
            wire,
            RpcError::new(ErrorCode::MethodNotFound, format!("there is no method {method}")),
        ));
    };
    let request = members.take("params").map_or_else(
        || params::decode(*wire, *operation, Json::empty_object().raw()),
        |raw| params::decode(*wire, *operation, raw),
    );
    match request {
        Ok(request) => Ok(DecodedRequest { id, wire: *wire, request }),
        Err(garbled) => Err(refused(&id, *wire, garbled.at("params").into())),
    }
}

/// Decodes a response. A body without the envelope is an error.
pub fn decode_response(body: &[u8]) -> Result<RpcResponse<'_>, InvalidDocument> {
    response(parse(body)?)
}

/// Decodes the response to a message: envelope and result in one pass. `sent` is the id of the request.
pub fn decode_send(
    wire: Wire,
    sent: &Id,
    body: &[u8],
) -> Result<Result<SendAnswer, RpcError>, InvalidDocument> {
    let document = parse(body)?;
    let response = response(document)?;
    response.check_id(sent)?;
    match response.result {
        Ok(result) => event::send_answer(wire, result).map(Ok),
        Err(error) => Ok(Err(error)),
    }
}

fn response(raw: RawJson<'_>) -> Result<RpcResponse<'_>, InvalidDocument> {
    let mut members = ObjectMembers::read(raw)?;
    let id = id_in(&mut members)?.or_null();
    let result = match (members.take("error"), members.take_any("result")) {
        (Some(error), _) => Err(RpcError::decode(error)),
        (None, Some(result)) => Ok(result),
        (None, None) => {
            return Err(InvalidDocument::new("a JSON-RPC answer", "an object with neither result nor error"));
        }
    };
    Ok(RpcResponse { id, result })
}

/// Encodes a result as text. The result comes from [`crate::answer`].
pub fn encode_result<T: Serialize + ?Sized>(id: &Id, result: &T) -> String {
    text_within(RESPONSE_BYTES, &ResponseEnvelope { id, name: "result", value: result })
}

/// Encodes an error.
pub fn encode_error(wire: Wire, id: &Id, error: &RpcError) -> String {
    text_of(&ResponseEnvelope { id, name: "error", value: &OnWire(wire, error) })
}

struct RequestEnvelope<'a> {
    id: &'a Id,
    method: &'static str,
    params: OnWire<'a, A2aRequest>,
}

struct ResponseEnvelope<'a, T: ?Sized> {
    id: &'a Id,
    name: &'static str,
    value: &'a T,
}

// === impl RpcResponse ===

impl RpcResponse<'_> {
    /// Fails when this is the response to another request than the one with the id `sent`.
    pub fn check_id(&self, sent: &Id) -> Result<(), InvalidDocument> {
        if self.id.answers(sent) {
            return Ok(());
        }
        let found = format!("one to request {}", self.id.get());
        Err(InvalidDocument::new(format!("the answer to request {}", sent.get()), found).at("id"))
    }
}

// === impl Id ===

impl Id {
    /// Id of a response to a request whose id could not be decoded.
    pub fn null() -> Self {
        Self(Some(Json::null()))
    }

    /// True for a notification, which gets no response.
    pub const fn is_absent(&self) -> bool {
        self.0.is_none()
    }

    /// Id as JSON text.
    pub fn get(&self) -> &str {
        self.0.as_ref().map_or("null", Json::get)
    }

    /// True when a response with this id belongs to the request `sent`. Servers may quote a number or write it with a fraction of zero;
    /// and one that could not decode the id omits it or writes `null`.
    fn answers(&self, sent: &Self) -> bool {
        let bare = |id: &Self| {
            let text = id.get().trim_matches('"');
            text.strip_suffix(".0").unwrap_or(text).to_owned()
        };
        matches!(self.get(), "null") || self.get() == sent.get() || bare(self) == bare(sent)
    }

    fn decode(raw: RawJson<'_>) -> Result<Self, InvalidDocument> {
        match raw.get().as_bytes().first() {
            Some(b'"' | b'-' | b'0'..=b'9' | b'n') => Ok(Self(Some(raw.into()))),
            _ => Err(InvalidDocument::kind("a string or a number", raw)),
        }
    }

    /// Id of the response, `null` for a notification.
    fn or_null(self) -> Self {
        if self.is_absent() { Self::null() } else { self }
    }
}

impl From<u64> for Id {
    fn from(number: u64) -> Self {
        Self(Some(Json::encode(&number)))
    }
}

impl From<&str> for Id {
    fn from(name: &str) -> Self {
        Self(Some(Json::encode(name)))
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

// === impl RequestEnvelope ===

impl Serialize for RequestEnvelope<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = ObjectWriter::open(serializer)?;
        object.put("jsonrpc", "2.0")?;
        object.put("id", self.id)?;
        object.put("method", self.method)?;
        object.put("params", &self.params)?;
        object.end()
    }
}

// === impl ResponseEnvelope ===

impl<T: Serialize + ?Sized> Serialize for ResponseEnvelope<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = ObjectWriter::open(serializer)?;
        object.put("jsonrpc", "2.0")?;
        object.put("id", self.id)?;
        object.put(self.name, self.value)?;
        object.end()
    }
}

/// Id of a request or a response.
fn id_in(members: &mut ObjectMembers<'_>) -> Result<Id, InvalidDocument> {
    let id = members.take_any("id").map(Id::decode).transpose();
    id.map(Option::unwrap_or_default).map_err(|garbled| garbled.at("id"))
}

/// Id of a request, if it can be decoded, for errors before the request is decoded.
pub fn id_of(body: &[u8]) -> Id {
    let document = parse(body).ok();
    let members = document.and_then(|document| ObjectMembers::read(document).ok());
    members.and_then(|mut members| id_in(&mut members).ok()).unwrap_or_default().or_null()
}

/// Checks the envelope and returns the method name.
fn envelope(members: &mut ObjectMembers<'_>) -> Result<String, InvalidDocument> {
    let version = members.need("jsonrpc", r#""2.0""#, text)?;
    if version != "2.0" {
        return Err(InvalidDocument::new(r#""2.0""#, "another version").at("jsonrpc"));
    }
    members.need("method", "a string", text)
}

fn not_a_request(garbled: &InvalidDocument) -> RpcError {
    RpcError::new(ErrorCode::InvalidRequest, format!("not a JSON-RPC request: {garbled}"))
}
