//! Traits of backends: they execute calls, and fetch cards.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures::{future::BoxFuture, stream::BoxStream};
use rialto_model::{
    agent::{Agent, SignatureStatus},
    backing::Backing,
    call::{Call, CancelRequest, FollowRequest},
    card::{Card, Dialect},
    credential::Credential,
    event::Event,
    failure::Failure,
    ids::Scope,
};
use rialto_policy::Permitted;

/// Backend that executes calls. Each outgoing protocol is one.
///
/// A stream ends after an event that ends the task or makes it wait. A backend reports a failure as
/// [`Event::Failed`], never by ending the stream early.
pub trait Peer: Send + Sync {
    /// Sends a call, and returns the events of its task.
    fn send(&self, call: Permitted<Call>) -> BoxStream<'static, Event>;

    /// Follows a task that was sent earlier. A failure to ask is an `Err`: it says nothing about the task.
    fn follow(&self, follow: Permitted<FollowRequest>) -> BoxStream<'static, Result<Event, Failure>>;

    /// Cancels a task, and returns its events.
    fn cancel(&self, cancel: Permitted<CancelRequest>) -> BoxFuture<'static, Result<Vec<Event>, Failure>>;
}

/// Request to fetch a card.
#[derive(Clone, Debug)]
pub struct DiscoveryRequest {
    /// Org and project.
    pub scope: Scope,
    /// Kind of backend.
    pub backing: Backing,
    /// The canonical base URL.
    pub url: String,
    /// Path of the card below it; none tries the well-known paths.
    pub card_path: Option<String>,
    /// Credential for an agent that requires authentication.
    pub credential: Option<Credential>,
    /// True if private and loopback addresses may be used.
    pub allow_private: bool,
    /// Validator (ETag) of the known card.
    pub etag: Option<String>,
    /// The known card: an equal text need not be parsed.
    pub known: Option<Arc<Card>>,
    /// Timeout of the whole request.
    pub timeout: Duration,
}

/// Result of fetching a card.
#[derive(Clone, Debug)]
pub enum Fetched {
    /// A card.
    Card {
        /// The card.
        card: Box<Card>,
        /// Its path below the base URL.
        path: String,
        /// Its validator.
        etag: Option<String>,
        /// Result of verifying its signature.
        signature: SignatureStatus,
    },
    /// The known card has not changed.
    Unchanged,
}

/// Failure to fetch a card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryError {
    /// The server answered with another status than 200.
    #[error("{url} answered with HTTP status {status}")]
    Status {
        /// URL that was requested.
        url: String,
        /// Status of the response.
        status: u16,
    },
    /// The response is not a valid card.
    #[error("the card at {url} is not valid: {reason}")]
    Invalid {
        /// URL of the card.
        url: String,
        /// JSON path and what was expected.
        reason: String,
    },
    /// No response.
    #[error("{url} could not be reached: {reason}")]
    Unreachable {
        /// URL that was requested.
        url: String,
        /// Reason.
        reason: String,
    },
    /// This process or machine could not open a connection; nothing is known about the server.
    #[error("{url} was not asked: {reason}")]
    Local {
        /// URL that was not asked.
        url: String,
        /// Reason, and how to fix it.
        reason: String,
    },
    /// The card is this installation's own, for the project that it would be registered in.
    #[error(
        "{url} is this Rialto server itself: registered as an agent of its own it would offer each of its skills again; register \
         the agents themselves"
    )]
    Own {
        /// URL of the card.
        url: String,
    },
    /// The egress rules forbid the address.
    #[error("{0}")]
    Refused(String),
}

/// Fetches cards.
#[async_trait]
pub trait Discovery: Send + Sync {
    /// Fetches a card.
    async fn fetch(&self, request: &DiscoveryRequest) -> Result<Fetched, DiscoveryError>;
}

/// Observer of the dialect that an agent turns out to speak.
pub trait DialectObserver: Send + Sync {
    /// The agent speaks another dialect than its card says.
    fn speaks(&self, agent: &Arc<Agent>, dialect: Dialect);
}
