//! Session manager and session store of rmcp.

use std::{
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
};

use async_trait::async_trait;
use futures::{Stream, StreamExt};
use http::request::Parts;
use rialto_model::call::Caller;
use rmcp::{
    model::{ClientJsonRpcMessage, ClientNotification, ClientRequest, GetExtensions, ServerJsonRpcMessage},
    transport::{
        WorkerTransport,
        streamable_http_server::session::{
            RestoreOutcome, ServerSseMessage, SessionId, SessionManager, SessionState, SessionStore,
            SessionStoreError,
            local::{LocalSessionManagerError, LocalSessionWorker, SessionError},
        },
    },
};

use super::{
    McpSessions,
    node_tag::Addressee,
    sealed_id::ClientHello,
    table::{HeldSession, key_of},
};

/// Replays the handshakes of sessions that are being rebuilt.
pub(crate) struct HandshakeStore(pub(crate) Arc<McpSessions>);

/// A stream that counts as use of its session while it lasts.
struct SessionUseStream<S> {
    stream: S,
    session: Option<Arc<HeldSession>>,
}

// === impl HandshakeStore ===

#[async_trait]
impl SessionStore for HandshakeStore {
    async fn load(&self, id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        Ok(self.0.table.lock().handshake(id).map(SessionState::new))
    }

    async fn store(&self, _id: &str, _state: &SessionState) -> Result<(), SessionStoreError> {
        // The client's id holds it.
        Ok(())
    }

    async fn delete(&self, _id: &str) -> Result<(), SessionStoreError> {
        // `Sessions::end` has done it.
        Ok(())
    }
}

// === impl McpSessions ===

impl SessionManager for McpSessions {
    type Error = LocalSessionManagerError;
    type Transport = WorkerTransport<LocalSessionWorker>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.inner.create_session().await?;
        self.table.lock().insert(&id);
        drop(self.used(&id));
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        if let (Some(session), Some(caller)) = (self.used(id), caller_of(&message)) {
            // A session is opened once in a process, so this is the first owner.
            let _ = session.owner.set(caller);
            if let Some(hello) = hello_of(&message) {
                let _ = session.hello.set(hello);
            }
        }
        self.inner.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.inner.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.table.lock().remove(id);
        self.inner.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let session = self.used(id);
        let stream = self.inner.create_stream(id, message).await?;
        Ok(SessionUseStream::new(Box::pin(self.tagged(stream)), session))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        let session = self.used(id);
        let is_for_others = match &message {
            ClientJsonRpcMessage::Notification(told) => match &told.notification {
                // The client may send it to one process while another has processed it already, or generated it itself.
                ClientNotification::InitializedNotification(_)
                    if session.is_some_and(|session| session.is_ready.swap(true, Ordering::Relaxed)) =>
                {
                    return Ok(());
                }
                // The call may be running in any process.
                ClientNotification::CancelledNotification(_) => true,
                _ => false,
            },
            _ => self.node.untag(&mut message) == Addressee::Elsewhere,
        };
        if is_for_others && let Err(failure) = self.relay(key_of(id), &message).await {
            tracing::warn!("a message of session {id} could not be relayed: {}", failure.message);
        }
        self.inner.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let session = self.used(id);
        self.ensure_ready(id).await;
        let stream = self.tagged(self.inner.create_standalone_stream(id).await?);
        Ok(SessionUseStream::new(Box::pin(stream.take_until(self.stop.clone().cancelled_owned())), session))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let session = self.used(id);
        // Events are kept by the process that sent them.
        let last = self.node.untag_event(&last_event_id).ok_or(SessionError::InvalidEventId)?.to_owned();
        let stream = self.tagged(self.inner.resume(id, last).await?);
        Ok(SessionUseStream::new(Box::pin(stream.take_until(self.stop.clone().cancelled_owned())), session))
    }

    async fn restore_session(&self, id: SessionId) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        if !self.table.lock().finish_rebuild(&id) {
            return Ok(RestoreOutcome::NotSupported);
        }
        drop(self.used(&id));
        self.inner.restore_session(id).await
    }
}

impl McpSessions {
    fn tagged(
        &self,
        stream: impl Stream<Item = ServerSseMessage> + Send + Sync + 'static,
    ) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static {
        let node = self.node;
        stream.map(move |event| node.tag(event))
    }
}

// === impl SessionUseStream ===

impl<S> SessionUseStream<S> {
    fn new(stream: S, session: Option<Arc<HeldSession>>) -> Self {
        if let Some(session) = &session {
            session.open.fetch_add(1, Ordering::Relaxed);
        }
        Self { stream, session }
    }
}

impl<S: Stream + Unpin> Stream for SessionUseStream<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        Pin::new(&mut self.stream).poll_next(context)
    }
}

impl<S> Drop for SessionUseStream<S> {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            session.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn caller_of(message: &ClientJsonRpcMessage) -> Option<Caller> {
    let ClientJsonRpcMessage::Request(request) = message else { return None };
    request
        .request
        .extensions()
        .get::<Parts>()?
        .extensions
        .get::<Caller>()
        .cloned()
        .map(Caller::without_proof)
}

fn hello_of(message: &ClientJsonRpcMessage) -> Option<ClientHello> {
    let ClientJsonRpcMessage::Request(request) = message else { return None };
    let ClientRequest::InitializeRequest(initialize) = &request.request else { return None };
    Some(ClientHello::new(&initialize.params))
}
