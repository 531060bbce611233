//! Hears what a server says without being asked: that its tools have changed, and who wants to hear of progress.
//!
//! What it asks of us (sampling, elicitation, roots) is declined: we do not say that we can do it.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock, Weak},
};

use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ClientRequest, Implementation, ProgressNotificationParam,
        ProgressToken,
    },
    service::{NotificationContext, Peer, PeerRequestOptions, RequestHandle, ServiceError},
};
use tokio::sync::{Mutex, mpsc};

use super::line::Line;

/// Progress that nobody collects is dropped beyond this.
const UNCOLLECTED: usize = 64;

/// What hears.
#[derive(Clone, Default)]
pub(super) struct Listener {
    progress: Progress,
    line: Arc<OnceLock<Weak<Line>>>,
}

/// Who wants to hear of the progress of what.
#[derive(Clone, Default)]
pub(super) struct Progress(Arc<Mutex<HashMap<ProgressToken, mpsc::Sender<ProgressNotificationParam>>>>);

// === impl Listener ===

impl Listener {
    pub(super) fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// From now on changes are told to `line`.
    pub(super) fn tell(&self, line: &Arc<Line>) {
        let _ = self.line.set(Arc::downgrade(line));
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("rialto", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), own)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        if let Some(line) = self.line.get().and_then(Weak::upgrade) {
            line.changed();
        }
    }
}

// === impl Progress ===

impl Progress {
    /// Tells whoever wants to hear it.
    pub(super) async fn tell(&self, told: &ProgressNotificationParam) {
        let listeners = self.0.lock().await;
        if let Some(listener) = listeners.get(&told.progress_token) {
            let _ = listener.try_send(told.clone());
        }
    }

    /// Sends a request, and hears of its progress from the very first word.
    pub(super) async fn send(
        &self,
        peer: &Peer<RoleClient>,
        request: ClientRequest,
        options: PeerRequestOptions,
    ) -> Result<(RequestHandle<RoleClient>, mpsc::Receiver<ProgressNotificationParam>), ServiceError> {
        // Whoever brings progress waits for this too, so none can come before it is known whose it is.
        let mut listeners = self.0.lock().await;
        let handle = peer.send_cancellable_request(request, options).await?;
        let (sender, receiver) = mpsc::channel(UNCOLLECTED);
        listeners.retain(|_, listener| !listener.is_closed());
        listeners.insert(handle.progress_token.clone(), sender);
        Ok((handle, receiver))
    }
}
