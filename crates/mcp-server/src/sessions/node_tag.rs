//! Tag of a process in the ids that its clients send back.
//!
//! rmcp numbers the requests and events of each session from zero, in every process that holds it. A client has one session, so these
//! numbers would be ambiguous between processes. So each id is sent with the tag of its process, and an answer shows which process waits
//! for it.

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

use rmcp::{
    model::{
        CancelledNotificationParam, ClientJsonRpcMessage, JsonRpcError, JsonRpcNotification, JsonRpcRequest,
        JsonRpcResponse, NumberOrString, RequestId, ServerJsonRpcMessage, ServerNotification,
    },
    transport::streamable_http_server::session::ServerSseMessage,
};

/// Bits of a tag: with 32 bits of a number behind them, every client can read them as a number, also as a double.
const TAG_BITS: u32 = 21;

/// Tag of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeTag(u32);

/// Process that a client's answer is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addressee {
    /// This process, or none in particular.
    Here,
    /// Another process of this store.
    Elsewhere,
}

// === impl NodeTag ===

impl NodeTag {
    /// A random tag, most likely unique.
    pub(super) fn random() -> Self {
        let random = RandomState::new().hash_one(std::process::id()) % (1 << TAG_BITS);
        Self(u32::try_from(random).unwrap_or_default().max(1))
    }

    /// Adds the tag to the ids of an outgoing event.
    pub(super) fn tag(self, mut event: ServerSseMessage) -> ServerSseMessage {
        event.event_id = event.event_id.map(|id| format!("{}-{id}", self.0));
        event.message = event.message.map(|message| self.tag_message(message));
        event
    }

    /// The event id that this process assigned; none for another process.
    pub(super) fn untag_event(self, id: &str) -> Option<&str> {
        let (tag, id) = id.split_once('-')?;
        (tag.parse() == Ok(self.0)).then_some(id)
    }

    /// Process that an answer is meant for. For this process, the answer gets its original id back.
    pub(super) fn untag(self, message: &mut ClientJsonRpcMessage) -> Addressee {
        let id = match message {
            ClientJsonRpcMessage::Response(JsonRpcResponse { id, .. }) => id,
            ClientJsonRpcMessage::Error(JsonRpcError { id: Some(id), .. }) => id,
            _ => return Addressee::Here,
        };
        let NumberOrString::Number(tagged) = id else { return Addressee::Here };
        let (tag, number) = (*tagged >> 32, *tagged & i64::from(u32::MAX));
        if tag == i64::from(self.0) {
            *id = NumberOrString::Number(number);
            Addressee::Here
        } else if tag > 0 && tag < 1 << TAG_BITS {
            Addressee::Elsewhere
        } else {
            Addressee::Here
        }
    }

    fn tag_message(self, message: Arc<ServerJsonRpcMessage>) -> Arc<ServerJsonRpcMessage> {
        match &*message {
            ServerJsonRpcMessage::Request(request) => {
                let id = self.tag_id(&request.id);
                Arc::new(ServerJsonRpcMessage::Request(JsonRpcRequest { id, ..request.clone() }))
            }
            ServerJsonRpcMessage::Notification(notification) => {
                let ServerNotification::CancelledNotification(cancelled) = &notification.notification else {
                    return message;
                };
                let mut cancelled = cancelled.clone();
                let CancelledNotificationParam { request_id, .. } = &mut cancelled.params;
                *request_id = request_id.as_ref().map(|id| self.tag_id(id));
                let tagged = ServerNotification::CancelledNotification(cancelled);
                let tagged = JsonRpcNotification { notification: tagged, ..notification.clone() };
                Arc::new(ServerJsonRpcMessage::Notification(tagged))
            }
            _ => message,
        }
    }

    fn tag_id(self, id: &RequestId) -> RequestId {
        match id {
            NumberOrString::Number(number) if (0..=i64::from(u32::MAX)).contains(number) => {
                NumberOrString::Number((i64::from(self.0) << 32) | number)
            }
            id => id.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn answer(id: i64) -> ClientJsonRpcMessage {
        serde_json::from_value(json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "decline" } }))
            .unwrap()
    }

    fn tagged(node: NodeTag, message: Value) -> Value {
        let event = ServerSseMessage::new("3/1", serde_json::from_value(message).unwrap());
        let event = node.tag(event);
        json!({ "event": event.event_id, "message": serde_json::to_value(event.message).unwrap() })
    }

    fn question(id: i64) -> Value {
        let params =
            json!({ "message": "Where?", "requestedSchema": { "type": "object", "properties": {} } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params })
    }

    #[test]
    fn an_answer_is_known_by_the_process_that_asked() {
        let (here, there) = (NodeTag(5), NodeTag(6));
        let asked = tagged(here, question(2));
        assert_eq!(asked["event"], "5-3/1");
        let id = asked["message"]["id"].as_i64().unwrap();
        assert!(id < 1 << 53, "a double holds it");
        let mut message = answer(id);
        assert_eq!(there.untag(&mut message), Addressee::Elsewhere);
        assert_eq!(serde_json::to_value(&message).unwrap()["id"], id, "it is passed on as it came");
        assert_eq!(here.untag(&mut message), Addressee::Here);
        assert_eq!(serde_json::to_value(&message).unwrap()["id"], 2);
        assert_eq!(here.untag(&mut answer(2)), Addressee::Here, "rmcp says that nobody asked this");
        assert_eq!(here.untag_event("5-3/1"), Some("3/1"));
        assert_eq!(there.untag_event("5-3/1"), None);
        assert_eq!(here.untag_event("3/1"), None);
    }

    #[test]
    fn only_ids_of_our_own_requests_are_tagged() {
        let node = NodeTag(5);
        let cancelled =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } });
        assert_eq!(tagged(node, cancelled)["message"]["params"]["requestId"], (5_i64 << 32) | 2);
        for same in [
            json!({ "jsonrpc": "2.0", "id": 2, "result": {} }),
            json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }),
        ] {
            assert_eq!(tagged(node, same.clone())["message"], same);
        }
    }
}
