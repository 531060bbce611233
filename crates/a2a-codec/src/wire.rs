//! Wire formats of A2A.
//!
//! A dialect and a binding together determine the format of objects; there are only four. JSON-RPC and REST carry the same objects in
//! 1.0, 0.2 has the format of 0.3, and 0.3 over REST is protobuf's JSON mapping of an older schema. gRPC carries the same objects as
//! REST.

use rialto_model::card::{Binding, Dialect};

/// Format of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// 1.0, over JSON-RPC, REST and gRPC alike.
    V10,
    /// 0.3 and 0.2 over JSON-RPC: objects have a `kind`.
    V03,
    /// 0.3 over REST and gRPC: protobuf's JSON, with names of its own.
    V03Proto,
    /// 0.1: parts have a `type`, the client chooses the task id.
    V01,
}

// === impl Wire ===

impl Wire {
    /// All formats, for tests and tables.
    pub const ALL: [Self; 4] = [Self::V10, Self::V03, Self::V03Proto, Self::V01];

    /// Format at an address, or none when it is unsupported. Over gRPC it is the JSON equivalent of the messages; 0.1 and 0.2 have none.
    pub const fn of(dialect: Dialect, binding: &Binding) -> Option<Self> {
        match (dialect, binding) {
            (_, Binding::Other(_)) | (Dialect::V01, Binding::Grpc) => None,
            (Dialect::V10, _) => Some(Self::V10),
            (Dialect::V03 | Dialect::V02, Binding::JsonRpc) => Some(Self::V03),
            (Dialect::V03 | Dialect::V02, Binding::HttpJson | Binding::Grpc) => Some(Self::V03Proto),
            (Dialect::V01, _) => Some(Self::V01),
        }
    }

    /// Newest dialect with this format.
    pub const fn dialect(self) -> Dialect {
        match self {
            Self::V10 => Dialect::V10,
            Self::V03 | Self::V03Proto => Dialect::V03,
            Self::V01 => Dialect::V01,
        }
    }

    /// True when enums are upper case and `oneof` members are wrapped in an object that names them.
    pub(crate) const fn is_proto(self) -> bool {
        matches!(self, Self::V10 | Self::V03Proto)
    }
}
