//! Errors of A2A: codes, their names in each binding, and their encoding.
//!
//! The reason in the error's details identifies the error; the HTTP status is only a hint, and differs between releases.

use rialto_model::json::{Json, RawJson};
use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::{
    invalid::InvalidDocument,
    members::{ObjectMembers, list, text},
    object::{ObjectWriter, OnWire},
    wire::Wire,
};

/// Errors with a code of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// The body is not JSON.
    Parse,
    /// The body is not a request.
    InvalidRequest,
    /// Unknown method.
    MethodNotFound,
    /// Invalid parameters.
    InvalidParams,
    /// Internal error.
    Internal,
    /// Unknown task, or not visible to this caller.
    TaskNotFound,
    /// The task cannot be cancelled: it has ended.
    TaskNotCancelable,
    /// The agent does not support webhooks.
    PushNotificationNotSupported,
    /// The agent does not support this operation.
    UnsupportedOperation,
    /// The agent does not accept this media type.
    ContentTypeNotSupported,
    /// The agent's response is invalid.
    InvalidAgentResponse,
    /// There is no extended card.
    ExtendedAgentCardNotConfigured,
    /// The client does not support a required extension.
    ExtensionSupportRequired,
    /// The agent does not support this version.
    VersionNotSupported,
}

/// JSON-RPC error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcError {
    /// Error code.
    pub code: i64,
    /// Message for people.
    pub message: String,
    /// Data for programs.
    pub data: Option<Json>,
    /// Reason in [`OWN_DOMAIN`], for an error that A2A does not define.
    pub reason: Option<&'static str>,
}

/// Details of a 1.0 error: an `ErrorInfo`, with data about the error as its metadata.
pub(crate) struct ErrorDetails<'a> {
    reason: &'static str,
    domain: &'static str,
    facts: Option<&'a Json>,
}

/// Data as an `ErrorInfo` holds it: strings. Any other value is written as its JSON.
struct TextFacts<'a>(RawJson<'a>);

/// Domain of reasons that A2A does not define.
pub const OWN_DOMAIN: &str = "rialto";

pub(crate) const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
pub(crate) const DOMAIN: &str = "a2a-protocol.org";

// === impl Code ===

impl ErrorCode {
    /// All codes, for tests and tables.
    pub const ALL: [Self; 14] = [
        Self::Parse,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::Internal,
        Self::TaskNotFound,
        Self::TaskNotCancelable,
        Self::PushNotificationNotSupported,
        Self::UnsupportedOperation,
        Self::ContentTypeNotSupported,
        Self::InvalidAgentResponse,
        Self::ExtendedAgentCardNotConfigured,
        Self::ExtensionSupportRequired,
        Self::VersionNotSupported,
    ];

    /// Code in JSON-RPC.
    pub const fn number(self) -> i64 {
        match self {
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Internal => -32603,
            Self::TaskNotFound => -32001,
            Self::TaskNotCancelable => -32002,
            Self::PushNotificationNotSupported => -32003,
            Self::UnsupportedOperation => -32004,
            Self::ContentTypeNotSupported => -32005,
            Self::InvalidAgentResponse => -32006,
            Self::ExtendedAgentCardNotConfigured => -32007,
            Self::ExtensionSupportRequired => -32008,
            Self::VersionNotSupported => -32009,
        }
    }

    /// Reason in the details of 1.0.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Parse => "PARSE_ERROR",
            Self::InvalidRequest => "INVALID_REQUEST",
            Self::MethodNotFound => "METHOD_NOT_FOUND",
            Self::InvalidParams => "INVALID_PARAMS",
            Self::Internal => "INTERNAL_ERROR",
            Self::TaskNotFound => "TASK_NOT_FOUND",
            Self::TaskNotCancelable => "TASK_NOT_CANCELABLE",
            Self::PushNotificationNotSupported => "PUSH_NOTIFICATION_NOT_SUPPORTED",
            Self::UnsupportedOperation => "UNSUPPORTED_OPERATION",
            Self::ContentTypeNotSupported => "CONTENT_TYPE_NOT_SUPPORTED",
            Self::InvalidAgentResponse => "INVALID_AGENT_RESPONSE",
            Self::ExtendedAgentCardNotConfigured => "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
            Self::ExtensionSupportRequired => "EXTENSION_SUPPORT_REQUIRED",
            Self::VersionNotSupported => "VERSION_NOT_SUPPORTED",
        }
    }

    /// Class name in the SDKs.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Parse => "JSONParseError",
            Self::InvalidRequest => "InvalidRequestError",
            Self::MethodNotFound => "MethodNotFoundError",
            Self::InvalidParams => "InvalidParamsError",
            Self::Internal => "InternalError",
            Self::TaskNotFound => "TaskNotFoundError",
            Self::TaskNotCancelable => "TaskNotCancelableError",
            Self::PushNotificationNotSupported => "PushNotificationNotSupportedError",
            Self::UnsupportedOperation => "UnsupportedOperationError",
            Self::ContentTypeNotSupported => "ContentTypeNotSupportedError",
            Self::InvalidAgentResponse => "InvalidAgentResponseError",
            Self::ExtendedAgentCardNotConfigured => "ExtendedAgentCardNotConfiguredError",
            Self::ExtensionSupportRequired => "ExtensionSupportRequiredError",
            Self::VersionNotSupported => "VersionNotSupportedError",
        }
    }

    /// HTTP status of 1.0.1's REST.
    pub const fn http(self) -> u16 {
        match self {
            Self::TaskNotFound | Self::MethodNotFound => 404,
            Self::InvalidAgentResponse | Self::Internal => 500,
            Self::Parse
            | Self::InvalidRequest
            | Self::InvalidParams
            | Self::TaskNotCancelable
            | Self::PushNotificationNotSupported
            | Self::UnsupportedOperation
            | Self::ContentTypeNotSupported
            | Self::ExtendedAgentCardNotConfigured
            | Self::ExtensionSupportRequired
            | Self::VersionNotSupported => 400,
        }
    }

    /// HTTP status of 1.0.0's REST, where it differs from 1.0.1's.
    pub const fn http_first(self) -> u16 {
        match self {
            Self::TaskNotCancelable => 409,
            Self::ContentTypeNotSupported => 415,
            Self::InvalidAgentResponse => 502,
            _ => self.http(),
        }
    }

    /// HTTP status of 0.3's REST, as its SDK has it.
    pub const fn http_v03(self) -> u16 {
        match self {
            Self::TaskNotFound | Self::MethodNotFound | Self::ExtendedAgentCardNotConfigured => 404,
            Self::Parse | Self::InvalidRequest => 400,
            Self::InvalidParams => 422,
            Self::TaskNotCancelable => 409,
            Self::ContentTypeNotSupported => 415,
            Self::PushNotificationNotSupported | Self::UnsupportedOperation => 501,
            Self::InvalidAgentResponse => 502,
            Self::Internal | Self::ExtensionSupportRequired | Self::VersionNotSupported => 500,
        }
    }

    /// gRPC status of 1.0.1.
    pub const fn grpc(self) -> &'static str {
        match self {
            Self::TaskNotFound | Self::MethodNotFound => "NOT_FOUND",
            Self::InvalidAgentResponse | Self::Internal => "INTERNAL",
            Self::Parse | Self::InvalidRequest | Self::InvalidParams | Self::ContentTypeNotSupported => {
                "INVALID_ARGUMENT"
            }
            Self::TaskNotCancelable
            | Self::PushNotificationNotSupported
            | Self::UnsupportedOperation
            | Self::ExtendedAgentCardNotConfigured
            | Self::ExtensionSupportRequired
            | Self::VersionNotSupported => "FAILED_PRECONDITION",
        }
    }

    /// Looks up a code.
    pub fn from_number(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.number() == number)
    }

    /// Looks up a reason.
    pub fn from_reason(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.reason() == reason)
    }

    /// Code that a client of that dialect knows: `Internal` for later ones.
    pub const fn on(self, wire: Wire) -> Self {
        match (wire, self) {
            (Wire::V10, _) => self,
            (_, Self::ExtensionSupportRequired | Self::VersionNotSupported)
            | (
                Wire::V01,
                Self::ContentTypeNotSupported
                | Self::InvalidAgentResponse
                | Self::ExtendedAgentCardNotConfigured,
            ) => Self::Internal,
            _ => self,
        }
    }
}

// === impl RpcError ===

impl RpcError {
    /// Error without further data.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code: code.number(), message: message.into(), data: None, reason: None }
    }

    /// Adds data for programs.
    #[must_use]
    pub fn with_data(mut self, data: Json) -> Self {
        self.data = Some(data);
        self
    }

    /// Identifies the error, by the reason among its details or else by its code.
    pub fn known(&self) -> Option<ErrorCode> {
        let reason = self.data.as_ref().and_then(|data| reason_in(data.raw()));
        reason.as_deref().and_then(ErrorCode::from_reason).or_else(|| ErrorCode::from_number(self.code))
    }

    pub(crate) fn decode(raw: RawJson<'_>) -> Self {
        let Ok(mut members) = ObjectMembers::read(raw) else {
            let message = text(raw).unwrap_or_else(|_| raw.get().to_owned());
            return Self::new(ErrorCode::Internal, message);
        };
        let code = members.take("code").and_then(|raw| raw.get().trim_matches('"').parse().ok());
        Self {
            code: code.unwrap_or(ErrorCode::Internal.number()),
            message: members.take("message").and_then(|raw| text(raw).ok()).unwrap_or_default(),
            data: members.take("data").map(Json::from),
            reason: None,
        }
    }

    pub(crate) fn details(&self) -> Option<ErrorDetails<'_>> {
        let known = ErrorCode::from_number(self.code).map(|code| (code.reason(), DOMAIN));
        let (reason, domain) = self.reason.map(|reason| (reason, OWN_DOMAIN)).or(known)?;
        Some(ErrorDetails { reason, domain, facts: self.data.as_ref() })
    }
}

impl std::fmt::Display for RpcError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RpcError {}

impl From<InvalidDocument> for RpcError {
    fn from(garbled: InvalidDocument) -> Self {
        Self::new(ErrorCode::InvalidParams, format!("invalid parameters: {garbled}"))
    }
}

impl Serialize for OnWire<'_, RpcError> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, error) = *self;
        let number = ErrorCode::from_number(error.code).map_or(error.code, |code| code.on(wire).number());
        let mut object = ObjectWriter::open(serializer)?;
        object.put("code", &number)?;
        object.put("message", &error.message)?;
        match error.details() {
            Some(details) if wire == Wire::V10 => object.put("data", &details)?,
            _ => object.put_some("data", error.data.as_ref())?,
        }
        object.end()
    }
}

/// Reason in an error's details.
pub(crate) fn reason_in(details: RawJson<'_>) -> Option<String> {
    let reasons =
        list(details, |raw| Ok(ObjectMembers::read(raw).ok().and_then(|mut info| info.take("reason"))));
    reasons.ok()?.into_iter().flatten().find_map(|raw| text(raw).ok())
}

// === impl ErrorDetails ===

impl Serialize for ErrorDetails<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct ErrorInfoWriter<'a>(&'a ErrorDetails<'a>);
        impl Serialize for ErrorInfoWriter<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut object = ObjectWriter::open(serializer)?;
                object.put("@type", ERROR_INFO)?;
                object.put("reason", self.0.reason)?;
                object.put("domain", self.0.domain)?;
                let facts = self.0.facts.filter(|facts| facts.is_object());
                object.put_some("metadata", facts.map(|facts| TextFacts(facts.raw())).as_ref())?;
                object.end()
            }
        }
        match self.facts {
            Some(facts) if facts.get().starts_with('[') => facts.serialize(serializer),
            _ => serializer.collect_seq([ErrorInfoWriter(self)]),
        }
    }
}

// === impl TextFacts ===

impl Serialize for TextFacts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.0.members().into_iter().flatten() {
            match value.get() {
                text if text.starts_with('"') => map.serialize_entry(&name, &value)?,
                other => map.serialize_entry(&name, other)?,
            }
        }
        map.end()
    }
}
