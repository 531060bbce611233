//! How a call went, as its last headers say it.
//!
//! 1.0 says what went wrong in an `ErrorInfo` among the details. Python's 0.3 has no details and writes the name of the
//! error before its message; we read both everywhere and write what the dialect has. Without either, the status alone must
//! do, and it does not tell a method that is not there from one that is not supported.

use base64::{
    Engine,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};
use http::{HeaderMap, HeaderName, HeaderValue};
use rialto_model::json::{Json, RawJson};
use serde_json::{Map, Value, json};

use super::{
    read,
    schema::{Field, Kind, Rule, Shape},
    write,
};
use crate::{
    error::{Code, DOMAIN, ERROR_INFO, OWN_DOMAIN, RpcError},
    object::text_of,
    wire::Wire,
};

/// How a call went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// gRPC's number; zero is success.
    pub number: u32,
    /// What happened, for people.
    pub message: String,
    /// The `ErrorInfo` among the details, as JSON.
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

/// How long a message may be: headers have their limits.
const LONGEST: usize = 2000;

/// `google.rpc.Status`, `google.protobuf.Any` and `google.rpc.ErrorInfo`.
static RPC_STATUS: Shape = Shape {
    fields: &[
        Field { number: 1, name: "code", kind: Kind::Int, rule: Rule::Plain },
        Field { number: 2, name: "message", kind: Kind::Text, rule: Rule::Plain },
        Field { number: 3, name: "details", kind: Kind::Message(&ANY), rule: Rule::Many },
    ],
};
static ANY: Shape = Shape {
    fields: &[
        Field { number: 1, name: "typeUrl", kind: Kind::Text, rule: Rule::Plain },
        Field { number: 2, name: "value", kind: Kind::Bytes, rule: Rule::Plain },
    ],
};
static INFO: Shape = Shape {
    fields: &[
        Field { number: 1, name: "reason", kind: Kind::Text, rule: Rule::Plain },
        Field { number: 2, name: "domain", kind: Kind::Text, rule: Rule::Plain },
        Field { number: 3, name: "metadata", kind: Kind::Text, rule: Rule::Map },
    ],
};

// === impl Status ===

impl Status {
    /// All went well.
    pub const OK: Self = Self { number: 0, message: String::new(), info: None };

    /// The caller gave up.
    pub const CANCELLED: u32 = 1;
    /// It took too long.
    pub const DEADLINE_EXCEEDED: u32 = 4;
    /// The caller may not do this.
    pub const PERMISSION_DENIED: u32 = 7;
    /// There is too much of it.
    pub const RESOURCE_EXHAUSTED: u32 = 8;
    /// There is no such method.
    pub const UNIMPLEMENTED: u32 = 12;
    /// Something went wrong inside.
    pub const INTERNAL: u32 = 13;
    /// It may work later.
    pub const UNAVAILABLE: u32 = 14;
    /// The caller is not known.
    pub const UNAUTHENTICATED: u32 = 16;

    /// A status without details.
    pub fn new(number: u32, message: impl Into<String>) -> Self {
        Self { number, message: message.into(), info: None }
    }

    /// The status that says this error.
    pub fn of(wire: Wire, error: &RpcError) -> Self {
        let code = Code::from_number(error.code).unwrap_or(Code::Internal).on(wire);
        let message = error.message.clone();
        if wire == Wire::V10 {
            return Self { number: number(code), message, info: info(error) };
        }
        Self { number: number_v03(code), message: format!("{}: {message}", name_v03(code)), info: None }
    }

    /// The same under another number, for an error that A2A has no name for.
    pub fn like(number: u32, wire: Wire, error: &RpcError) -> Self {
        let info = if wire == Wire::V10 { info(error) } else { None };
        Self { number, message: error.message.clone(), info }
    }

    /// The status among `headers`, if they are the last ones of a call.
    pub fn read(headers: &HeaderMap) -> Option<Self> {
        let number = headers.get(STATUS)?.to_str().ok().and_then(|text| text.parse().ok());
        let message = headers.get(MESSAGE).map(|value| unescape(value.as_bytes())).unwrap_or_default();
        let details = headers.get(DETAILS).and_then(|value| LENIENT.decode(value.as_bytes()).ok());
        Some(Self {
            // Who does not say how it went does not say that it went well.
            number: number.unwrap_or(2),
            message,
            info: details.and_then(|details| read_details(&details)),
        })
    }

    /// Says it in `headers`.
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

    /// Whether all went well.
    pub const fn is_ok(&self) -> bool {
        self.number == 0
    }

    /// The error that this says.
    pub fn error(&self) -> RpcError {
        let reason = self.info.as_ref().and_then(|info| info["reason"].as_str()).and_then(Code::from_reason);
        let named = self.message.split_once(": ").and_then(|(name, rest)| Some((from_name(name)?, rest)));
        let message = named.map_or(self.message.as_str(), |(_, rest)| rest);
        let code = reason.or(named.map(|(code, _)| code)).unwrap_or_else(|| by_number(self.number));
        let data = self.info.as_ref().map(|info| Json::of(&[info]));
        RpcError { code: code.number(), message: message.to_owned(), data, reason: None }
    }

    fn details(&self, info: &Value) -> Option<String> {
        let any = json!({ "typeUrl": ERROR_INFO, "value": STANDARD.encode(bytes_of(&INFO, info)?) });
        let message = beginning(&self.message);
        let status = json!({ "code": self.number, "message": message, "details": [any] });
        let details = LENIENT.encode(bytes_of(&RPC_STATUS, &status)?);
        // Facts that do not fit into a header are left out; the reason always fits.
        if details.len() > 2 * LONGEST && info.get("metadata").is_some() {
            return self.details(&json!({ "reason": info["reason"], "domain": info["domain"] }));
        }
        Some(details)
    }
}

/// The `ErrorInfo` of an error: its own if it brings one from elsewhere. Protobuf's facts are texts.
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
    // Reasons of others mean other things.
    let domain = info.get("domain").and_then(Value::as_str);
    matches!(domain, Some(DOMAIN | OWN_DOMAIN)).then_some(Value::Object(info))
}

fn bytes_of(shape: &Shape, value: &Value) -> Option<Vec<u8>> {
    let (text, mut out) = (value.to_string(), Vec::new());
    write::message(shape, RawJson::parse(&text).ok()?, &mut out).ok()?;
    Some(out)
}

fn value_of(shape: &Shape, bytes: &[u8]) -> Option<Value> {
    let mut out = Vec::new();
    read::message(shape, bytes, 0, &mut out).ok()?;
    serde_json::from_slice(&out).ok()
}

/// The status of 1.0.1. A method that is not there has one of its own in gRPC.
fn number(code: Code) -> u32 {
    match code.grpc() {
        _ if code == Code::MethodNotFound => Status::UNIMPLEMENTED,
        "INVALID_ARGUMENT" => 3,
        "NOT_FOUND" => 5,
        "FAILED_PRECONDITION" => 9,
        _ => Status::INTERNAL,
    }
}

/// The status of 0.3, as its SDK has it.
const fn number_v03(code: Code) -> u32 {
    match code {
        Code::InvalidRequest | Code::InvalidParams => 3,
        Code::TaskNotFound => 5,
        Code::MethodNotFound
        | Code::TaskNotCancelable
        | Code::PushNotificationNotSupported
        | Code::UnsupportedOperation
        | Code::ContentTypeNotSupported
        | Code::ExtendedAgentCardNotConfigured => Status::UNIMPLEMENTED,
        Code::Parse
        | Code::Internal
        | Code::InvalidAgentResponse
        | Code::ExtensionSupportRequired
        | Code::VersionNotSupported => Status::INTERNAL,
    }
}

/// What a status means when it says nothing else.
const fn by_number(number: u32) -> Code {
    match number {
        3 => Code::InvalidParams,
        5 => Code::TaskNotFound,
        9 => Code::UnsupportedOperation,
        Status::UNIMPLEMENTED => Code::MethodNotFound,
        _ => Code::Internal,
    }
}

/// What Python's SDKs call an error.
const fn name_v03(code: Code) -> &'static str {
    match code {
        Code::Parse => "JSONParseError",
        Code::InvalidRequest => "InvalidRequestError",
        Code::MethodNotFound => "MethodNotFoundError",
        Code::InvalidParams => "InvalidParamsError",
        Code::Internal => "InternalError",
        Code::TaskNotFound => "TaskNotFoundError",
        Code::TaskNotCancelable => "TaskNotCancelableError",
        Code::PushNotificationNotSupported => "PushNotificationNotSupportedError",
        Code::UnsupportedOperation => "UnsupportedOperationError",
        Code::ContentTypeNotSupported => "ContentTypeNotSupportedError",
        Code::InvalidAgentResponse => "InvalidAgentResponseError",
        Code::ExtendedAgentCardNotConfigured => "AuthenticatedExtendedCardNotConfiguredError",
        Code::ExtensionSupportRequired => "ExtensionSupportRequiredError",
        Code::VersionNotSupported => "VersionNotSupportedError",
    }
}

fn from_name(name: &str) -> Option<Code> {
    Code::ALL.into_iter().find(|code| name_v03(*code) == name)
}

/// As much of a message as fits into a header.
fn beginning(message: &str) -> &str {
    &message[..message.floor_char_boundary(LONGEST)]
}

/// A message as a header can carry it.
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
        Status::of(wire, error).put(&mut headers);
        Status::read(&headers).unwrap().error()
    }

    #[test]
    fn every_error_is_still_that_error_on_the_other_side() {
        for code in Code::ALL {
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
        let error = crossed(Wire::V10, &RpcError::new(Code::TaskNotFound, "gone").with_data(facts));
        insta::assert_snapshot!(error.data.unwrap(), @r#"[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org","metadata":{"taskId":"t","tries":"3"}}]"#);
    }

    #[test]
    fn headers_stay_small() {
        let facts = Json::of(&json!({ "x": "y".repeat(100_000) }));
        let error = RpcError::new(Code::TaskNotFound, "ü".repeat(100_000)).with_data(facts);
        let mut headers = HeaderMap::new();
        Status::of(Wire::V10, &error).put(&mut headers);
        assert!(headers.values().map(HeaderValue::len).sum::<usize>() < 14_000);
        assert_eq!(Status::read(&headers).unwrap().error().known(), Some(Code::TaskNotFound));
    }

    #[test]
    fn what_says_nothing_more_is_read_by_its_number() {
        let code = |number| Status::new(number, "Method not found!").error().known();
        assert_eq!(code(Status::UNIMPLEMENTED), Some(Code::MethodNotFound));
        assert_eq!(code(5), Some(Code::TaskNotFound));
        assert_eq!(code(2), Some(Code::Internal));
        assert_eq!(Status::read(&HeaderMap::new()), None);
        let odd = HeaderMap::from_iter([(STATUS, HeaderValue::from_static("fine"))]);
        assert!(!Status::read(&odd).unwrap().is_ok());
    }

    #[test]
    fn the_reason_of_another_domain_is_not_ours() {
        let info = json!({ "reason": "TASK_NOT_FOUND", "domain": "googleapis.com" });
        let mut headers = HeaderMap::new();
        Status { info: Some(info), ..Status::new(8, "quota") }.put(&mut headers);
        assert_eq!(Status::read(&headers).unwrap().error().known(), Some(Code::Internal));
    }
}
