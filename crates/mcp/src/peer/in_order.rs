//! Hears of progress in the order the server told it.
//!
//! Once a message is taken from the wire, what is told by the way and what is answered go different ways, so the last
//! word of a call may be overtaken by its answer. Here, where all is still in one line, progress is handed on first.

use std::{borrow::Cow, future::Future};

use rmcp::{
    RoleClient,
    model::{JsonRpcMessage, ServerNotification},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};

use super::ears::Ears;

/// A way to a server, of which progress is taken as it comes.
pub(super) struct InOrder<T> {
    way: T,
    ears: Ears,
    /// Progress that was taken from the way and not yet handed on.
    held: Option<rmcp::model::ProgressNotificationParam>,
}

// === impl InOrder ===

impl<T> InOrder<T> {
    pub(super) const fn new(way: T, ears: Ears) -> Self {
        Self { way, ears, held: None }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for InOrder<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.way.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            // Whoever waits here may be told to stop and come again: what is held stays until it is handed on.
            if let Some(told) = &self.held {
                self.ears.tell(told).await;
                self.held = None;
            }
            match self.way.receive().await? {
                JsonRpcMessage::Notification(message) => match message.notification {
                    ServerNotification::ProgressNotification(told) => self.held = Some(told.params),
                    notification => {
                        let message = rmcp::model::JsonRpcNotification { notification, ..message };
                        return Some(JsonRpcMessage::Notification(message));
                    }
                },
                message => return Some(message),
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.way.close()
    }
}
