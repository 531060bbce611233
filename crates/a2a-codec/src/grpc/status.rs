//! Status of a gRPC call, in its trailers.
//!
//! 1.0 puts an `ErrorInfo` among the details. Python's 0.3 has no details and writes the name of the error before its message; both are
//! decoded everywhere, and encoded as the dialect has it. Without either, only the status is left, which does not distinguish an unknown
//! method from an unsupported one.

use base64::{
    Engine,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};
use http::{HeaderMap, HeaderName, HeaderValue};
use rialto_model::json::{Json, RawJson};
use serde_json::{Map, Value, json};

use super::{
    read,
    schema::{ProtoField, ProtoKind, ProtoMessage, ProtoRule},
    write,
};
use crate::{
    error::{DOMAIN, ERROR_INFO, ErrorCode, OWN_DOMAIN, RpcError},
    object::text_of,
    wire::Wire,
};

/// Status of a gRPC call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcStatus {
    /// gRPC status code; zero is success.
    pub number: u32,
    /// Message for people.
    pub message: String,
    /// `ErrorInfo` among the details, as JSON.
    info: Option<Value>,
}

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_encode_padding(false),
);

/// Maximum length of a message in a header, in bytes.
const MAX_MESSAGE_BYTES: usize = 2000;

/// `google.rpc.Status`, `google.protobuf.Any` and `google.rpc.ErrorInfo`.
static RPC_STATUS: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "code", kind: ProtoKind::Int, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "message", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 3, name: "details", kind: ProtoKind::Message(&ANY), rule: ProtoRule::Many },
    ],
};
static ANY: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "typeUrl", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "value", kind: ProtoKind::Bytes, rule: ProtoRule::Plain },
    ],
};
static INFO: ProtoMessage = ProtoMessage {
    fields: &[
        ProtoField { number: 1, name: "reason", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 2, name: "domain", kind: ProtoKind::Text, rule: ProtoRule::Plain },
        ProtoField { number: 3, name: "metadata", kind: ProtoKind::Text, rule: ProtoRule::Map },
    ],
};

// === impl Status ===

impl GrpcStatus {
    /// Success.
    pub const OK: Self = Self { number: 0, message: String::new(), info: None };

    /// Cancelled by the caller.
    pub const CANCELLED: u32 = 1;
    /// Timed out.
    pub const DEADLINE_EXCEEDED: u32 = 4;
    /// Permission denied.
    pub const PERMISSION_DENIED: u32 = 7;
    /// Limit exceeded.
    pub const RESOURCE_EXHAUSTED: u32 = 8;
    /// Unknown method.
    pub const UNIMPLEMENTED: u32 = 12;
    /// Internal error.
    pub const INTERNAL: u32 = 13;
    /// Temporarily unavailable.
    pub const UNAVAILABLE: u32 = 14;
    /// Missing or invalid credentials.
    pub const UNAUTHENTICATED: u32 = 16;

    /// Status without details.
    pub fn new(number: u32, message: impl Into<String>) -> Self {
        Self { number, message: message.into(), info: None }
    }

    /// Status of an error.
    pub fn of(wire: Wire, error: &RpcError) -> Self {
        let code = ErrorCode::from_number(error.code).unwrap_or(ErrorCode::Internal).on(wire);
        let message = error.message.clone();
        if wire == Wire::V10 {
            return Self { number: number(code), message, info: info(error) };
        }
        Self { number: number_v03(code), message: format!("{}: {message}", name_v03(code)), info: None }
    }

    /// Status of an error that A2A does not define, under this code.
    pub fn like(number: u32, wire: Wire, error: &RpcError) -> Self {
        let info = if wire == Wire::V10 { info(error) } else { None };
        Self { number, message: error.message.clone(), info }
    }

    /// Status in `headers`, if they are the trailers of a call.
    pub fn read(headers: &HeaderMap) -> Option<Self> {
        let number = headers.get(STATUS)?.to_str().ok().and_then(|text| text.parse().ok());
        let message = headers.get(MESSAGE).map(|value| unescape(value.as_bytes())).unwrap_or_default();
        let details = headers.get(DETAILS).and_then(|value| LENIENT.decode(value.as_bytes()).ok());
        Some(Self {
            // A missing status is not a success.
            number: number.unwrap_or(2),
            message,
            info: details.and_then(|details| read_details(&details)),
        })
    }

    /// Writes the status to `headers`.
    pub fn put(&self, headers: &mut HeaderMap) {
        headers.insert(STATUS, HeaderValue::from(self.number));
        if let Some(message) = Some(escape(&self.message)).filter(|message| !message.is_empty())
            && let Ok(message) = HeaderValue::try_from(message)
        {
            headers.insert(MESSAGE, message);
        }
        let details = self.info.as_ref().and_then(|info| self.details(info));
        if let Some(Ok(details)) = details.map(HeaderValue::try_from) {
            headers.insert(DETAILS, details);
        }
    }

    /// True for success.
    pub const fn is_ok(&self) -> bool {
        self.number == 0
    }

    /// Converts the status to an error.
    pub fn error(&self) -> RpcError {
        let reason =
            self.info.as_ref().and_then(|info| info["reason"].as_str()).and_then(ErrorCode::from_reason);
        let named = self.message.split_once(": ").and_then(|(name, rest)| Some((from_name(name)?, rest)));
        let message = named.map_or(self.message.as_str(), |(_, rest)| rest);
        let code = reason.or(named.map(|(code, _)| code)).unwrap_or_else(|| by_number(self.number));
        let data = self.info.as_ref().map(|info| Json::encode(&[info]));
        RpcError { code: code.number(), message: message.to_owned(), data, reason: None }
    }

    fn details(&self, info: &Value) -> Option<String> {
        let any = json!({ "typeUrl": ERROR_INFO, "value": STANDARD.encode(bytes_of(&INFO, info)?) });
        let message = beginning(&self.message);
        let status = json!({ "code": self.number, "message": message, "details": [any] });
        let details = LENIENT.encode(bytes_of(&RPC_STATUS, &status)?);
        // Data that does not fit into a header is dropped; the reason always fits.
        if details.len() > 2 * MAX_MESSAGE_BYTES && info.get("metadata").is_some() {
            return self.details(&json!({ "reason": info["reason"], "domain": info["domain"] }));
        }
        Some(details)
    }
}

/// `ErrorInfo` of an error: its own if it has one. Protobuf's metadata are strings.
fn info(error: &RpcError) -> Option<Value> {
    let details: Vec<Value> = serde_json::from_str(&text_of(&error.details()?)).ok()?;
    let mut info = details.into_iter().find(|detail| detail["reason"].is_string())?;
    if let Some(facts) = info.get_mut("metadata").and_then(Value::as_object_mut) {
        for fact in facts.values_mut().filter(|fact| !fact.is_string()) {
            *fact = Value::String(fact.to_string());
        }
    }
    Some(info)
}

fn read_details(bytes: &[u8]) -> Option<Value> {
    let status = value_of(&RPC_STATUS, bytes)?;
    let any = status["details"].as_array()?.iter().find(|any| any["typeUrl"] == ERROR_INFO)?;
    let info = STANDARD.decode(any["value"].as_str()?).ok()?;
    let Value::Object(members) = value_of(&INFO, &info)? else { return None };
    let mut info = Map::from_iter([("@type".to_owned(), Value::from(ERROR_INFO))]);
    info.extend(members);
    // Reasons of other domains have other meanings.
    let domain = info.get("domain").and_then(Value::as_str);
    matches!(domain, Some(DOMAIN | OWN_DOMAIN)).then_some(Value::Object(info))
}

fn bytes_of(shape: &ProtoMessage, value: &Value) -> Option<Vec<u8>> {
    let (text, mut out) = (value.to_string(), Vec::new());
    write::message(shape, RawJson::parse(&text).ok()?, &mut out).ok()?;
    Some(out)
}

fn value_of(shape: &ProtoMessage, bytes: &[u8]) -> Option<Value> {
    let mut out = Vec::new();
    read::message(shape, bytes, 0, &mut out).ok()?;
    serde_json::from_slice(&out).ok()
}

/// Status code of 1.0.1. An unknown method has one of its own in gRPC.
fn number(code: ErrorCode) -> u32 {
    match code.grpc() {
        _ if code == ErrorCode::MethodNotFound => GrpcStatus::UNIMPLEMENTED,
        "INVALID_ARGUMENT" => 3,
        "NOT_FOUND" => 5,
        "FAILED_PRECONDITION" => 9,
        _ => GrpcStatus::INTERNAL,
    }
}

/// Status code of 0.3, as its SDK has it.
const fn number_v03(code: ErrorCode) -> u32 {
    match code {
        ErrorCode::InvalidRequest | ErrorCode::InvalidParams => 3,
        ErrorCode::TaskNotFound => 5,
        ErrorCode::MethodNotFound
        | ErrorCode::TaskNotCancelable
        | ErrorCode::PushNotificationNotSupported
        | ErrorCode::UnsupportedOperation
        | ErrorCode::ContentTypeNotSupported
        | ErrorCode::ExtendedAgentCardNotConfigured => GrpcStatus::UNIMPLEMENTED,
        ErrorCode::Parse
        | ErrorCode::Internal
        | ErrorCode::InvalidAgentResponse
        | ErrorCode::ExtensionSupportRequired
        | ErrorCode::VersionNotSupported => GrpcStatus::INTERNAL,
    }
}

/// Error of a status without details.
const fn by_number(number: u32) -> ErrorCode {
    match number {
        3 => ErrorCode::InvalidParams,
        5 => ErrorCode::TaskNotFound,
        9 => ErrorCode::UnsupportedOperation,
        GrpcStatus::UNIMPLEMENTED => ErrorCode::MethodNotFound,
        _ => ErrorCode::Internal,
    }
}

/// Name of an error in Python's SDKs.
const fn name_v03(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Parse => "JSONParseError",
        ErrorCode::InvalidRequest => "InvalidRequestError",
        ErrorCode::MethodNotFound => "MethodNotFoundError",
        ErrorCode::InvalidParams => "InvalidParamsError",
        ErrorCode::Internal => "InternalError",
        ErrorCode::TaskNotFound => "TaskNotFoundError",
        ErrorCode::TaskNotCancelable => "TaskNotCancelableError",
        ErrorCode::PushNotificationNotSupported => "PushNotificationNotSupportedError",
        ErrorCode::UnsupportedOperation => "UnsupportedOperationError",
        ErrorCode::ContentTypeNotSupported => "ContentTypeNotSupportedError",
        ErrorCode::InvalidAgentResponse => "InvalidAgentResponseError",
        ErrorCode::ExtendedAgentCardNotConfigured => "AuthenticatedExtendedCardNotConfiguredError",
        ErrorCode::ExtensionSupportRequired => "ExtensionSupportRequiredError",
        ErrorCode::VersionNotSupported => "VersionNotSupportedError",
    }
}

fn from_name(name: &str) -> Option<ErrorCode> {
    ErrorCode::ALL.into_iter().find(|code| name_v03(*code) == name)
}

/// Start of a message that fits into a header.
fn beginning(message: &str) -> &str {
    &message[..message.floor_char_boundary(MAX_MESSAGE_BYTES)]
}

/// Percent-encodes a message for a header.
fn escape(message: &str) -> String {
    let mut escaped = String::with_capacity(message.len());
    for byte in beginning(message).bytes() {
        if matches!(byte, b' '..=b'~') && byte != b'%' {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

fn unescape(escaped: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some((&byte, behind)) = rest.split_first() {
        let code = behind.get(..2).filter(|_| byte == b'%').and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(code) => {
                bytes.push(code);
                rest = &behind[2..];
            }
            None => {
                bytes.push(byte);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crossed(wire: Wire, error: &RpcError) -> RpcError {
        let mut headers = HeaderMap::new();
        GrpcStatus::of(wire, error).put(&mut headers);
        GrpcStatus::read(&headers).unwrap().error()
    }

    #[test]
    fn every_error_is_still_that_error_on_the_other_side() {
        for code in ErrorCode::ALL {
            for wire in [Wire::V10, Wire::V03Proto] {
                let error = crossed(wire, &RpcError::new(code, "a task: 100 % für nichts\n"));
                assert_eq!(error.known(), Some(code.on(wire)));
                assert_eq!(error.message, "a task: 100 % für nichts\n");
            }
        }
    }

    #[test]
    fn facts_cross_as_texts() {
        let facts = Json::parse(r#"{"taskId":"t","tries":3}"#).unwrap();
        let error = crossed(Wire::V10, &RpcError::new(ErrorCode::TaskNotFound, "gone").with_data(facts));
        insta::assert_snapshot!(error.data.unwrap(), @r#"[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org","metadata":{"taskId":"t","tries":"3"}}]"#);
    }

    #[test]
    fn headers_stay_small() {
        let facts = Json::encode(&json!({ "x": "y".repeat(100_000) }));
        let error = RpcError::new(ErrorCode::TaskNotFound, "ü".repeat(100_000)).with_data(facts);
        let mut headers = HeaderMap::new();
        GrpcStatus::of(Wire::V10, &error).put(&mut headers);
        assert!(headers.values().map(HeaderValue::len).sum::<usize>() < 14_000);
        assert_eq!(GrpcStatus::read(&headers).unwrap().error().known(), Some(ErrorCode::TaskNotFound));
    }

    #[test]
    fn what_says_nothing_more_is_read_by_its_number() {
        let code = |number| GrpcStatus::new(number, "Method not found!").error().known();
        assert_eq!(code(GrpcStatus::UNIMPLEMENTED), Some(ErrorCode::MethodNotFound));
        assert_eq!(code(5), Some(ErrorCode::TaskNotFound));
        assert_eq!(code(2), Some(ErrorCode::Internal));
        assert_eq!(GrpcStatus::read(&HeaderMap::new()), None);
        let odd = HeaderMap::from_iter([(STATUS, HeaderValue::from_static("fine"))]);
        assert!(!GrpcStatus::read(&odd).unwrap().is_ok());
    }

    #[test]
    fn the_reason_of_another_domain_is_not_ours() {
        let info = json!({ "reason": "TASK_NOT_FOUND", "domain": "googleapis.com" });
        let mut headers = HeaderMap::new();
        GrpcStatus { info: Some(info), ..GrpcStatus::new(8, "quota") }.put(&mut headers);
        assert_eq!(GrpcStatus::read(&headers).unwrap().error().known(), Some(ErrorCode::Internal));
    }
}
