//! Delivers progress notifications in the order in which the server sent them.
//!
//! Above the transport, notifications and responses take different paths, so the last progress of a call may be overtaken by its result.
//! Here, where messages are still in order, progress is delivered first.

use std::{borrow::Cow, future::Future};

use rmcp::{
    RoleClient,
    model::{JsonRpcMessage, ServerNotification},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};

use crate::call_listeners::CallListeners;

/// Transport that delivers progress as it is received.
pub(crate) struct OrderedTransport<T> {
    way: T,
    ears: CallListeners,
    /// Progress that was received and not yet delivered.
    held: Option<rmcp::model::ProgressNotificationParam>,
}

// === impl OrderedTransport ===

impl<T> OrderedTransport<T> {
    pub(crate) const fn new(way: T, ears: CallListeners) -> Self {
        Self { way, ears, held: None }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for OrderedTransport<T> {
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
            // The future may be dropped and polled again: the notification is kept until it is delivered.
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
