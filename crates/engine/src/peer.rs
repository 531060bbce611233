//! The far side, as the engine sees it: who executes a call, and who fetches a card.

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

/// Executes calls. Each protocol we can call out in is one.
///
/// A stream ends after an event that ends the task or makes it wait. A peer reports trouble as
/// [`Event::Failed`], never by ending the stream early.
pub trait Peer: Send + Sync {
    /// Sends a call and tells what becomes of it.
    fn send(&self, call: Permitted<Call>) -> BoxStream<'static, Event>;

    /// Tells how a task goes on that was sent earlier. Trouble in asking is an `Err`: it says nothing about the task.
    fn follow(&self, follow: Permitted<FollowRequest>) -> BoxStream<'static, Result<Event, Failure>>;

    /// Asks for a task to be called off, and tells what became of it.
    fn cancel(&self, cancel: Permitted<CancelRequest>) -> BoxFuture<'static, Result<Vec<Event>, Failure>>;
}

/// Where to look for a card.
#[derive(Clone, Debug)]
pub struct Place {
    /// Whose it is.
    pub scope: Scope,
    /// What stands there.
    pub backing: Backing,
    /// The canonical base URL.
    pub url: String,
    /// Where below it the card is; none tries the well-known places.
    pub card_path: Option<String>,
    /// What to show at the door when asked.
    pub credential: Option<Credential>,
    /// Whether private and loopback addresses may be used.
    pub allow_private: bool,
    /// The validator of the card we have.
    pub etag: Option<String>,
    /// The card we have: the same text again says nothing new, and need not be read.
    pub known: Option<Arc<Card>>,
    /// How long it may take in all.
    pub timeout: Duration,
}

/// What was found.
#[derive(Clone, Debug)]
pub enum Fetched {
    /// A card.
    Card {
        /// The card.
        card: Box<Card>,
        /// Where below the base URL it was.
        path: String,
        /// Its validator.
        etag: Option<String>,
        /// What became of its signature.
        signature: SignatureStatus,
    },
    /// The card we have is still good.
    Unchanged,
}

/// Why no card was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryError {
    /// The server answered with another status than 200.
    #[error("{url} answered with HTTP status {status}")]
    Status {
        /// What was asked for.
        url: String,
        /// The answer.
        status: u16,
    },
    /// What is there is not a valid card.
    #[error("the card at {url} is not valid: {reason}")]
    Invalid {
        /// Where it was found.
        url: String,
        /// JSON path and what was expected.
        reason: String,
    },
    /// Nobody answered.
    #[error("{url} could not be reached: {reason}")]
    Unreachable {
        /// What was asked for.
        url: String,
        /// Why.
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
        /// Where it was found.
        url: String,
    },
    /// We may not go there.
    #[error("{0}")]
    Refused(String),
}

/// Fetches cards.
#[async_trait]
pub trait Discovery: Send + Sync {
    /// Looks for the card at `place`.
    async fn fetch(&self, place: &Place) -> Result<Fetched, DiscoveryError>;
}

/// What a peer learns about an agent while talking to it.
pub trait Learned: Send + Sync {
    /// The agent speaks another dialect than its card says.
    fn speaks(&self, agent: &Arc<Agent>, dialect: Dialect);
}
