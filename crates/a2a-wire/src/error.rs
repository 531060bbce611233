//! What goes wrong on the wire: the codes of A2A, what each is called elsewhere, and how an error is spelt.
//!
//! The reason in the error's details says what happened; the HTTP status only hints at it, and differs between releases.

use rialto_model::json::{Json, RawJson};
use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::{
    garbled::Garbled,
    members::{Members, list, text},
    object::{Object, On},
    wire::Wire,
};

/// The errors that have a number of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The body is not JSON.
    Parse,
    /// The body is not a request.
    InvalidRequest,
    /// Nothing is done under that name.
    MethodNotFound,
    /// The parameters do not make sense.
    InvalidParams,
    /// Something went wrong inside.
    Internal,
    /// There is no such task, or not for this caller.
    TaskNotFound,
    /// The task is over.
    TaskNotCancelable,
    /// The agent has no webhooks.
    PushNotificationNotSupported,
    /// The agent cannot do this.
    UnsupportedOperation,
    /// The agent does not take this media type.
    ContentTypeNotSupported,
    /// The agent's answer does not make sense.
    InvalidAgentResponse,
    /// There is no card for those who log in.
    ExtendedAgentCardNotConfigured,
    /// The client must speak an extension that it does not.
    ExtensionSupportRequired,
    /// The agent does not speak this version.
    VersionNotSupported,
}

/// An error as a JSON-RPC answer carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcError {
    /// Its number.
    pub code: i64,
    /// What happened, for people.
    pub message: String,
    /// Facts for programs.
    pub data: Option<Json>,
    /// What it is called in [`OWN_DOMAIN`], where A2A has no name for it.
    pub reason: Option<&'static str>,
}

/// The details of a 1.0 error: an `ErrorInfo`, with facts about the error as its metadata.
pub(crate) struct Details<'a> {
    reason: &'static str,
    domain: &'static str,
    facts: Option<&'a Json>,
}

/// Facts as an `ErrorInfo` holds them: texts. What is no text is told as its JSON.
struct Texts<'a>(RawJson<'a>);

/// Whose reasons those are that A2A does not have.
pub const OWN_DOMAIN: &str = "rialto";

pub(crate) const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
pub(crate) const DOMAIN: &str = "a2a-protocol.org";

// === impl Code ===

impl Code {
    /// Every code, for tests and tables.
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

    /// The number in JSON-RPC.
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

    /// The reason in the details of 1.0.
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

    /// The name of the class that the SDKs have for it.
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

    /// The HTTP status of 1.0.1's REST.
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

    /// The HTTP status of 1.0.0's REST, where it is another than 1.0.1's.
    pub const fn http_first(self) -> u16 {
        match self {
            Self::TaskNotCancelable => 409,
            Self::ContentTypeNotSupported => 415,
            Self::InvalidAgentResponse => 502,
            _ => self.http(),
        }
    }

    /// The HTTP status of 0.3's REST, as its SDK has it.
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

    /// The gRPC status of 1.0.1.
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

    /// The code with that number.
    pub fn from_number(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.number() == number)
    }

    /// The code with that reason.
    pub fn from_reason(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.reason() == reason)
    }

    /// The code a client of that dialect knows for this: `Internal` for what came later.
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
    /// An error without further facts.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code: code.number(), message: message.into(), data: None, reason: None }
    }

    /// The same error with facts for programs.
    #[must_use]
    pub fn with_data(mut self, data: Json) -> Self {
        self.data = Some(data);
        self
    }

    /// Which error this is, by the reason among its details or else by its number.
    pub fn known(&self) -> Option<Code> {
        let reason = self.data.as_ref().and_then(|data| reason_in(data.raw()));
        reason.as_deref().and_then(Code::from_reason).or_else(|| Code::from_number(self.code))
    }

    pub(crate) fn decode(raw: RawJson<'_>) -> Self {
        let Ok(mut members) = Members::read(raw) else {
            let message = text(raw).unwrap_or_else(|_| raw.get().to_owned());
            return Self::new(Code::Internal, message);
        };
        let code = members.take("code").and_then(|raw| raw.get().trim_matches('"').parse().ok());
        Self {
            code: code.unwrap_or(Code::Internal.number()),
            message: members.take("message").and_then(|raw| text(raw).ok()).unwrap_or_default(),
            data: members.take("data").map(Json::from),
            reason: None,
        }
    }

    pub(crate) fn details(&self) -> Option<Details<'_>> {
        let known = Code::from_number(self.code).map(|code| (code.reason(), DOMAIN));
        let (reason, domain) = self.reason.map(|reason| (reason, OWN_DOMAIN)).or(known)?;
        Some(Details { reason, domain, facts: self.data.as_ref() })
    }
}

impl std::fmt::Display for RpcError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RpcError {}

impl From<Garbled> for RpcError {
    fn from(garbled: Garbled) -> Self {
        Self::new(Code::InvalidParams, format!("invalid parameters: {garbled}"))
    }
}

impl Serialize for On<'_, RpcError> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, error) = *self;
        let number = Code::from_number(error.code).map_or(error.code, |code| code.on(wire).number());
        let mut object = Object::open(serializer)?;
        object.put("code", &number)?;
        object.put("message", &error.message)?;
        match error.details() {
            Some(details) if wire == Wire::V10 => object.put("data", &details)?,
            _ => object.put_some("data", error.data.as_ref())?,
        }
        object.end()
    }
}

/// The reason that an error's details name.
pub(crate) fn reason_in(details: RawJson<'_>) -> Option<String> {
    let reasons = list(details, |raw| Ok(Members::read(raw).ok().and_then(|mut info| info.take("reason"))));
    reasons.ok()?.into_iter().flatten().find_map(|raw| text(raw).ok())
}

// === impl Details ===

impl Serialize for Details<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Info<'a>(&'a Details<'a>);
        impl Serialize for Info<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut object = Object::open(serializer)?;
                object.put("@type", ERROR_INFO)?;
                object.put("reason", self.0.reason)?;
                object.put("domain", self.0.domain)?;
                let facts = self.0.facts.filter(|facts| facts.is_object());
                object.put_some("metadata", facts.map(|facts| Texts(facts.raw())).as_ref())?;
                object.end()
            }
        }
        match self.facts {
            Some(facts) if facts.get().starts_with('[') => facts.serialize(serializer),
            _ => serializer.collect_seq([Info(self)]),
        }
    }
}

// === impl Texts ===

impl Serialize for Texts<'_> {
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
