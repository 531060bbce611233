//! Who executes a call is decided by what stands behind its row.

use std::sync::Arc;

use async_trait::async_trait;
use futures::{future::BoxFuture, stream::BoxStream};
use rialto_model::{
    agent::SignatureStatus,
    backing::Backing,
    call::{Call, CancelRequest, FollowRequest},
    event::Event,
    failure::Failure,
};
use rialto_policy::Permitted;

use crate::peer::{Discovery, DiscoveryError, Fetched, Peer, Place};

/// All peers, as one.
pub struct Peers {
    /// Calls remote agents.
    pub a2a: Arc<dyn Peer>,
    /// Calls the tools of MCP servers.
    pub mcp: Arc<dyn Peer>,
    /// Calls functions.
    pub function: Arc<dyn Peer>,
    /// Runs workflows.
    pub flow: Arc<dyn Peer>,
    /// Prompts coding agents on this machine.
    pub acp: Arc<dyn Peer>,
}

/// All ways to find out what a row can do, as one.
pub struct Discoveries {
    /// Fetches agents' cards.
    pub a2a: Arc<dyn Discovery>,
    /// Asks MCP servers for their tools.
    pub mcp: Arc<dyn Discovery>,
}

// === impl Peers ===

impl Peers {
    fn of(&self, backing: &Backing) -> &dyn Peer {
        match backing {
            Backing::A2a => &*self.a2a,
            Backing::Mcp(_) => &*self.mcp,
            Backing::Function(_) => &*self.function,
            Backing::Flow(_) => &*self.flow,
            Backing::Acp(_) => &*self.acp,
        }
    }
}

impl Peer for Peers {
    fn send(&self, call: Permitted<Call>) -> BoxStream<'static, Event> {
        self.of(&call.get().target.agent.backing).send(call)
    }

    fn follow(&self, follow: Permitted<FollowRequest>) -> BoxStream<'static, Result<Event, Failure>> {
        self.of(&follow.get().target.agent.backing).follow(follow)
    }

    fn cancel(&self, cancel: Permitted<CancelRequest>) -> BoxFuture<'static, Result<Vec<Event>, Failure>> {
        self.of(&cancel.get().target.agent.backing).cancel(cancel)
    }
}

// === impl Discoveries ===

#[async_trait]
impl Discovery for Discoveries {
    async fn fetch(&self, place: &Place) -> Result<Fetched, DiscoveryError> {
        if let Some(card) = place.backing.own_card() {
            let (card, path) = (Box::new(card), String::new());
            return Ok(Fetched::Card { card, path, etag: None, signature: SignatureStatus::None });
        }
        match &place.backing {
            Backing::Mcp(_) => self.mcp.fetch(place).await,
            _ => self.a2a.fetch(place).await,
        }
    }
}
