//! gRPC: A2A's messages as protobuf, in the packages `lf.a2a.v1` (1.0) and `a2a.v1` (0.3).
//!
//! Protobuf's JSON of a 1.0 message is 1.0's JSON, and that of a 0.3 message is the JSON of 0.3's REST. Both have a codec here already,
//! so there is no second mapping that could differ: a message is converted between protobuf and JSON by tables made from the `.proto`
//! files (`tools/grpc-gen`), and the rest is as on the other wires.
//!
//! Data that protobuf cannot hold is lost, and nothing else: members that are not in the schema, digits beyond a double's precision in
//! data and metadata, the spelling of a timestamp, and the difference between an empty string and none.
//!
//! * a client: [`encode`] a request, then [`Status::read`] the trailers, and [`answer_text`] each of the [`frame::Frames`];
//! * a server: [`decode_request`], then [`encode_answer`] and [`Status::put`].

pub mod frame;
mod names;
mod read;
mod schema;
pub mod status;
mod tables;
mod write;

use crate::{
    codec::params,
    error::{ErrorCode, RpcError},
    invalid::InvalidDocument,
    members::parse,
    object::OnWire,
    request::{A2aOperation, A2aRequest},
    rpc::{DecodedRequest, Id, RejectedRequest, Unsupported},
    wire::Wire,
};

use self::schema::ProtoMethod;
pub use self::status::GrpcStatus;

/// Media type of requests and responses. A suffix after `+` or `;` is ignored.
pub const MEDIA_TYPE: &str = "application/grpc";

/// Encoded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcCall {
    /// `/package.Service/Method`.
    pub path: String,
    /// Framed message.
    pub body: Vec<u8>,
}

/// Error of a request that cannot be encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrpcEncodeError {
    /// Unsupported method.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// Protobuf cannot represent the content.
    #[error("gRPC cannot carry it: {0}")]
    Unfit(InvalidDocument),
}

/// Encodes a request. Only 1.0 and 0.3 have gRPC.
pub fn encode(wire: Wire, request: &A2aRequest) -> Result<GrpcCall, GrpcEncodeError> {
    let operation = request.operation();
    let method = method(wire, operation).ok_or(Unsupported { operation, wire })?;
    let text = match wire {
        Wire::V03Proto => names::params(request),
        Wire::V10 | Wire::V03 | Wire::V01 => OnWire(wire, request).text(),
    };
    let body = framed(method.input, &text).map_err(GrpcEncodeError::Unfit)?;
    let service = service(wire).unwrap_or_default();
    Ok(GrpcCall { path: format!("/{service}/{}", method.name), body })
}

/// Decodes a request from its path and its one message. gRPC requests have no ids; the response has `null` there. An unknown path is
/// rejected with [`Code::MethodNotFound`].
pub fn decode_request(path: &str, message: &[u8]) -> Result<DecodedRequest, RejectedRequest> {
    let known = place(path);
    let wire = known.map_or(Wire::V10, |(wire, _)| wire);
    let refused = |error| RejectedRequest { id: Id::null(), wire, error };
    let Some((wire, operation)) = known else {
        return Err(refused(RpcError::new(ErrorCode::MethodNotFound, format!("there is no method {path}"))));
    };
    let read = || {
        let text = text_of(method(wire, operation).map(|method| method.input), message)?;
        let raw = parse(text.as_bytes())?;
        match wire {
            Wire::V03Proto => names::read(operation, raw),
            Wire::V10 | Wire::V03 | Wire::V01 => params::decode(wire, operation, raw),
        }
    };
    match read() {
        Ok(request) => Ok(DecodedRequest { id: Id::null(), wire, request }),
        Err(garbled) => Err(refused(garbled.into())),
    }
}

/// Wire and operation of a path.
pub fn place(path: &str) -> Option<(Wire, A2aOperation)> {
    let (service_name, method_name) = path.strip_prefix('/')?.rsplit_once('/')?;
    let wire = [Wire::V10, Wire::V03Proto].into_iter().find(|wire| service(*wire) == Some(service_name))?;
    let operation =
        A2aOperation::ALL.into_iter().find(|operation| name(wire, *operation) == Some(method_name))?;
    Some((wire, operation))
}

/// Decodes one message of the response to JSON, for [`crate::answer`].
pub fn answer_text(wire: Wire, operation: A2aOperation, message: &[u8]) -> Result<String, InvalidDocument> {
    text_of(method(wire, operation).map(|method| method.output), message)
}

/// Encodes one framed message of the response from its JSON.
pub fn encode_answer(wire: Wire, operation: A2aOperation, text: &str) -> Result<Vec<u8>, InvalidDocument> {
    let method =
        method(wire, operation).ok_or_else(|| InvalidDocument::missing("a method with that answer"))?;
    if (wire, operation) == (Wire::V03Proto, A2aOperation::ExtendedCard) {
        return framed(method.output, &names::card(text)?);
    }
    framed(method.output, text)
}

/// Name of the service, if the wire has one.
pub const fn service(wire: Wire) -> Option<&'static str> {
    match wire {
        Wire::V10 => Some("lf.a2a.v1.A2AService"),
        Wire::V03Proto => Some("a2a.v1.A2AService"),
        Wire::V03 | Wire::V01 => None,
    }
}

fn framed(shape: &schema::ProtoMessage, text: &str) -> Result<Vec<u8>, InvalidDocument> {
    let raw = parse(text.as_bytes())?;
    frame::framed(|out| write::message(shape, raw, out))
}

fn text_of(shape: Option<&schema::ProtoMessage>, message: &[u8]) -> Result<String, InvalidDocument> {
    let shape = shape.ok_or_else(|| InvalidDocument::missing("a method with that message"))?;
    let mut out = Vec::with_capacity(message.len() + message.len() / 2);
    read::message(shape, message, 0, &mut out)?;
    String::from_utf8(out).map_err(|_| InvalidDocument::new("a string", "bytes that are not UTF-8"))
}

fn method(wire: Wire, operation: A2aOperation) -> Option<&'static ProtoMethod> {
    let name = name(wire, operation)?;
    let methods = if wire == Wire::V10 { tables::v10::METHODS } else { tables::v03::METHODS };
    methods.iter().find(|method| method.name == name)
}

/// Name of an operation, if the wire has it.
const fn name(wire: Wire, operation: A2aOperation) -> Option<&'static str> {
    let is_new = match wire {
        Wire::V10 => true,
        Wire::V03Proto => false,
        Wire::V03 | Wire::V01 => return None,
    };
    Some(match operation {
        A2aOperation::Send => "SendMessage",
        A2aOperation::Stream => "SendStreamingMessage",
        A2aOperation::Get => "GetTask",
        A2aOperation::List if is_new => "ListTasks",
        A2aOperation::List => return None,
        A2aOperation::Cancel => "CancelTask",
        A2aOperation::Subscribe if is_new => "SubscribeToTask",
        A2aOperation::Subscribe => "TaskSubscription",
        A2aOperation::PushCreate => "CreateTaskPushNotificationConfig",
        A2aOperation::PushGet => "GetTaskPushNotificationConfig",
        A2aOperation::PushList if is_new => "ListTaskPushNotificationConfigs",
        A2aOperation::PushList => "ListTaskPushNotificationConfig",
        A2aOperation::PushDelete => "DeleteTaskPushNotificationConfig",
        A2aOperation::ExtendedCard if is_new => "GetExtendedAgentCard",
        A2aOperation::ExtendedCard => "GetAgentCard",
    })
}
