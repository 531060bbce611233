//! gRPC: A2A's messages as protobuf, in the packages `lf.a2a.v1` (1.0) and `a2a.v1` (0.3).
//!
//! Protobuf's JSON of a 1.0 message is 1.0's JSON, and that of a 0.3 message is what 0.3's REST speaks. Both are read and
//! written here already, so there is no second mapping that could differ from the first: a message goes from protobuf to
//! JSON, or back, by tables made from the `.proto` files (`tools/grpc-gen`), and the rest is as on the other wires.
//!
//! What protobuf cannot hold is lost, and nothing else: members that are not in the schema, digits beyond a double's
//! precision in data and metadata, the spelling of a timestamp, and the difference between an empty text and none.
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
    error::{Code, RpcError},
    garbled::Garbled,
    members::parse,
    object::On,
    request::{Operation, Request},
    rpc::{Id, Incoming, Refused, Unsupported},
    wire::Wire,
};

use self::schema::Method;
pub use self::status::Status;

/// The media type of requests and answers. What follows a `+` or a `;` says nothing new.
pub const MEDIA_TYPE: &str = "application/grpc";

/// A request, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcCall {
    /// `/package.Service/Method`.
    pub path: String,
    /// The framed message.
    pub body: Vec<u8>,
}

/// Why a request cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSaid {
    /// There is no such method.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// There is no room for what it holds.
    #[error("gRPC cannot carry it: {0}")]
    Unfit(Garbled),
}

/// The call that makes the request. Only 1.0 and 0.3 have gRPC.
pub fn encode(wire: Wire, request: &Request) -> Result<GrpcCall, NotSaid> {
    let operation = request.operation();
    let method = method(wire, operation).ok_or(Unsupported { operation, wire })?;
    let text = match wire {
        Wire::V03Proto => names::params(request),
        Wire::V10 | Wire::V03 | Wire::V01 => On(wire, request).text(),
    };
    let body = framed(method.input, &text).map_err(NotSaid::Unfit)?;
    let service = service(wire).unwrap_or_default();
    Ok(GrpcCall { path: format!("/{service}/{}", method.name), body })
}

/// Reads a request from the path it was sent to and its one message. gRPC requests have no ids; the answer carries `null`
/// there. A path that is no method's is refused as [`Code::MethodNotFound`].
pub fn decode_request(path: &str, message: &[u8]) -> Result<Incoming, Refused> {
    let known = place(path);
    let wire = known.map_or(Wire::V10, |(wire, _)| wire);
    let refused = |error| Refused { id: Id::null(), wire, error };
    let Some((wire, operation)) = known else {
        return Err(refused(RpcError::new(Code::MethodNotFound, format!("there is no method {path}"))));
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
        Ok(request) => Ok(Incoming { id: Id::null(), wire, request }),
        Err(garbled) => Err(refused(garbled.into())),
    }
}

/// Which operation a path means, and on which wire.
pub fn place(path: &str) -> Option<(Wire, Operation)> {
    let (service_name, method_name) = path.strip_prefix('/')?.rsplit_once('/')?;
    let wire = [Wire::V10, Wire::V03Proto].into_iter().find(|wire| service(*wire) == Some(service_name))?;
    let operation =
        Operation::ALL.into_iter().find(|operation| name(wire, *operation) == Some(method_name))?;
    Some((wire, operation))
}

/// The JSON of one message of the answer, still to be read by [`crate::answer`].
pub fn answer_text(wire: Wire, operation: Operation, message: &[u8]) -> Result<String, Garbled> {
    text_of(method(wire, operation).map(|method| method.output), message)
}

/// One framed message of the answer, from its JSON.
pub fn encode_answer(wire: Wire, operation: Operation, text: &str) -> Result<Vec<u8>, Garbled> {
    let method = method(wire, operation).ok_or_else(|| Garbled::missing("a method with that answer"))?;
    if (wire, operation) == (Wire::V03Proto, Operation::ExtendedCard) {
        return framed(method.output, &names::card(text)?);
    }
    framed(method.output, text)
}

/// The name of the service, where there is one.
pub const fn service(wire: Wire) -> Option<&'static str> {
    match wire {
        Wire::V10 => Some("lf.a2a.v1.A2AService"),
        Wire::V03Proto => Some("a2a.v1.A2AService"),
        Wire::V03 | Wire::V01 => None,
    }
}

fn framed(shape: &schema::Shape, text: &str) -> Result<Vec<u8>, Garbled> {
    let raw = parse(text.as_bytes())?;
    frame::framed(|out| write::message(shape, raw, out))
}

fn text_of(shape: Option<&schema::Shape>, message: &[u8]) -> Result<String, Garbled> {
    let shape = shape.ok_or_else(|| Garbled::missing("a method with that message"))?;
    let mut out = Vec::with_capacity(message.len() + message.len() / 2);
    read::message(shape, message, 0, &mut out)?;
    String::from_utf8(out).map_err(|_| Garbled::new("a string", "bytes that are not UTF-8"))
}

fn method(wire: Wire, operation: Operation) -> Option<&'static Method> {
    let name = name(wire, operation)?;
    let methods = if wire == Wire::V10 { tables::v10::METHODS } else { tables::v03::METHODS };
    methods.iter().find(|method| method.name == name)
}

/// What an operation is called, where there is one.
const fn name(wire: Wire, operation: Operation) -> Option<&'static str> {
    let is_new = match wire {
        Wire::V10 => true,
        Wire::V03Proto => false,
        Wire::V03 | Wire::V01 => return None,
    };
    Some(match operation {
        Operation::Send => "SendMessage",
        Operation::Stream => "SendStreamingMessage",
        Operation::Get => "GetTask",
        Operation::List if is_new => "ListTasks",
        Operation::List => return None,
        Operation::Cancel => "CancelTask",
        Operation::Subscribe if is_new => "SubscribeToTask",
        Operation::Subscribe => "TaskSubscription",
        Operation::PushCreate => "CreateTaskPushNotificationConfig",
        Operation::PushGet => "GetTaskPushNotificationConfig",
        Operation::PushList if is_new => "ListTaskPushNotificationConfigs",
        Operation::PushList => "ListTaskPushNotificationConfig",
        Operation::PushDelete => "DeleteTaskPushNotificationConfig",
        Operation::ExtendedCard if is_new => "GetExtendedAgentCard",
        Operation::ExtendedCard => "GetAgentCard",
    })
}
