//! The server's certificates, read again when their files change.

use std::sync::Arc;

use rialto_http_server::listener::ServerTls;
use tokio_util::sync::CancellationToken;

use crate::file_poll::{FilePoll, PollReason, ReloadSignal, is_stable};

/// Reads the certificates again whenever their files have changed, or it is asked for. Files that cannot be used change nothing.
pub(crate) async fn watch(tls: Arc<ServerTls>, stop: CancellationToken, signal: ReloadSignal) {
    let mut looks = FilePoll::new(stop, &signal);
    while let Some(reason) = looks.next().await {
        if !tls.is_outdated() && reason == PollReason::Tick {
            continue;
        }
        // A certificate and its key are two files: both must be stable before they are used.
        if !is_stable(&tls.file_stamps(), || tls.file_stamps()).await && reason == PollReason::Tick {
            continue;
        }
        match tls.reload() {
            Ok(()) => tracing::info!("the certificates were read again, and count for new connections"),
            Err(why) => {
                tracing::warn!("the certificates were not reloaded, the previous ones stay active: {why}");
            }
        }
    }
}
