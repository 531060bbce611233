//! The shapes A2A takes on the wire.
//!
//! A dialect and a binding together decide how objects are spelt; only four spellings exist. JSON-RPC and REST carry the
//! same objects in 1.0, 0.2 is spelt like 0.3, and 0.3 over REST is protobuf's JSON mapping of an older schema. gRPC
//! carries the same objects as REST.

use rialto_model::card::{Binding, Dialect};

/// How objects are spelt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// 1.0, over JSON-RPC, REST and gRPC alike.
    V10,
    /// 0.3 and 0.2 over JSON-RPC: objects say their `kind`.
    V03,
    /// 0.3 over REST and gRPC: protobuf's JSON, with names of its own.
    V03Proto,
    /// 0.1: parts say their `type`, the client names the task.
    V01,
}

// === impl Wire ===

impl Wire {
    /// Every shape, for tests and tables.
    pub const ALL: [Self; 4] = [Self::V10, Self::V03, Self::V03Proto, Self::V01];

    /// The shape spoken at an address, or none when nobody knows it. Over gRPC it is the JSON that stands for the
    /// messages; 0.1 and 0.2 had none.
    pub const fn of(dialect: Dialect, binding: &Binding) -> Option<Self> {
        match (dialect, binding) {
            (_, Binding::Other(_)) | (Dialect::V01, Binding::Grpc) => None,
            (Dialect::V10, _) => Some(Self::V10),
            (Dialect::V03 | Dialect::V02, Binding::JsonRpc) => Some(Self::V03),
            (Dialect::V03 | Dialect::V02, Binding::HttpJson | Binding::Grpc) => Some(Self::V03Proto),
            (Dialect::V01, _) => Some(Self::V01),
        }
    }

    /// The newest dialect that is spelt like this.
    pub const fn dialect(self) -> Dialect {
        match self {
            Self::V10 => Dialect::V10,
            Self::V03 | Self::V03Proto => Dialect::V03,
            Self::V01 => Dialect::V01,
        }
    }

    /// Whether enums are spelt in capitals and choices are wrapped in an object that names them.
    pub(crate) const fn is_proto(self) -> bool {
        matches!(self, Self::V10 | Self::V03Proto)
    }
}
