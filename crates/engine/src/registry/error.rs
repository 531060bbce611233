//! Why the registry did not do as it was told.

use rialto_model::{
    failure::{Failure, FailureKind},
    store::StoreError,
};

use crate::{address::AddressError, peer::DiscoveryError};

/// Why the registry did not do as it was told.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// That is not an agent's address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// Its card could not be had.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    /// There is no such agent.
    #[error("no agent is registered as \"{0}\"; `rialto agents list` shows those that are")]
    NotFound(String),
    /// There is nothing to approve.
    #[error("{0} has no changed card that waits for approval")]
    NothingPending(String),
    /// Only the configuration changes it.
    #[error(
        "{0} stands in the configuration; change or remove it there (`[[mcp_servers]]`, `[[functions]]`)"
    )]
    Configured(String),
    /// It could not be written down.
    #[error("the registry could not be read or written")]
    Store(#[from] StoreError),
}

// === impl RegistryError ===

impl RegistryError {
    /// Whose fault it is.
    pub const fn kind(&self) -> FailureKind {
        match self {
            Self::Address(_) => FailureKind::Invalid,
            Self::Discovery(DiscoveryError::Status { .. } | DiscoveryError::Unreachable { .. }) => {
                FailureKind::PeerUnreachable
            }
            Self::Discovery(DiscoveryError::Invalid { .. }) => FailureKind::PeerGarbled,
            Self::Discovery(DiscoveryError::Own { .. }) => FailureKind::Invalid,
            Self::Discovery(DiscoveryError::Refused(_)) => FailureKind::Denied,
            Self::NotFound(_) => FailureKind::NotFound,
            Self::NothingPending(_) | Self::Configured(_) => FailureKind::Conflict,
            Self::Discovery(DiscoveryError::Local { .. }) | Self::Store(_) => FailureKind::Internal,
        }
    }
}

impl From<RegistryError> for Failure {
    fn from(error: RegistryError) -> Self {
        Self::new(error.kind(), error.to_string())
    }
}
