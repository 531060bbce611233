//! Compatibility with servers that answer `server/discover` incorrectly: they are treated as older servers.
//!
//! A server from before 2026-07-28 does not know `server/discover` and should answer with an error; then rmcp performs the older
//! handshake. But some answer unknown requests with an empty result, and some start so slowly that the older handshake is already sent
//! when they answer. Both are converted to the error that rmcp expects.

use std::{borrow::Cow, future::Future};

use rmcp::{
    ErrorData, RoleClient,
    model::{ClientRequest, DiscoverRequestMethod, JsonRpcMessage, RequestId, ServerResult},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};

/// Transport that converts each answer to `server/discover` to one that rmcp understands.
pub(crate) struct HandshakeCompat<T> {
    way: T,
    /// Id of the last such request without an answer.
    asked: Option<RequestId>,
    /// Id of a request that was replaced by the older handshake.
    late: Option<RequestId>,
}

// === impl HandshakeCompat ===

impl<T> HandshakeCompat<T> {
    pub(crate) const fn new(way: T) -> Self {
        Self { way, asked: None, late: None }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for HandshakeCompat<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &item {
            match request.request {
                ClientRequest::DiscoverRequest(_) => self.asked = Some(request.id.clone()),
                ClientRequest::InitializeRequest(_) => self.late = self.asked.take(),
                _ => {}
            }
        }
        self.way.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = loop {
            let message = self.way.receive().await?;
            if self.late.is_none() || answered(&message) != self.late.as_ref() {
                break message;
            }
            self.late = None;
        };
        let JsonRpcMessage::Response(answer) = message else { return Some(message) };
        if self.asked.as_ref() != Some(&answer.id) {
            return Some(JsonRpcMessage::Response(answer));
        }
        self.asked = None;
        if matches!(answer.result, ServerResult::DiscoverResult(_)) {
            return Some(JsonRpcMessage::Response(answer));
        }
        let unknown = ErrorData::method_not_found::<DiscoverRequestMethod>();
        Some(RxJsonRpcMessage::<RoleClient>::error(unknown, Some(answer.id)))
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.way.close()
    }
}

/// Id of the request that this message answers.
fn answered(message: &RxJsonRpcMessage<RoleClient>) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(answer) => Some(&answer.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rmcp::{model::ProtocolVersion, service::ClientServiceExt, transport::IntoTransport};
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, split};

    use super::*;
    use crate::connection::lifecycle;

    /// Server of an older version that answers everything else with an empty result.
    async fn obliging(stream: tokio::io::DuplexStream) -> Vec<String> {
        let (from, mut to) = split(stream);
        let (mut lines, mut heard) = (BufReader::new(from).lines(), Vec::new());
        while let Ok(Some(line)) = lines.next_line().await {
            let request: Value = serde_json::from_str(&line).unwrap();
            heard.push(request["method"].as_str().unwrap_or_default().to_owned());
            let result = match request["method"].as_str() {
                Some("initialize") => json!({
                    "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "old", "version": "1" },
                }),
                _ => json!({}),
            };
            if !request["id"].is_null() {
                let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
                to.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
            }
        }
        heard
    }

    #[tokio::test]
    async fn a_server_that_answers_with_nothing_is_greeted_in_the_older_way() {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let server = tokio::spawn(obliging(theirs));
        let way = IntoTransport::<RoleClient, _, _>::into_transport(split(ours));
        let running = ().serve_with_lifecycle(HandshakeCompat::new(way), lifecycle()).await.unwrap();
        assert_eq!(running.peer().peer_info().unwrap().protocol_version, ProtocolVersion::V_2025_11_25);
        running.cancel().await.unwrap();
        let heard = server.await.unwrap();
        assert_eq!(heard, ["server/discover", "initialize", "notifications/initialized"]);
    }

    /// Server that starts so slowly that both handshakes are queued.
    async fn slow(stream: tokio::io::DuplexStream) {
        let (from, mut to) = split(stream);
        let mut lines = BufReader::new(from).lines();
        let first: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
        let second: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
        let unknown = json!({ "code": -32601, "message": "Method not found" });
        let about = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "slow", "version": "1" },
        });
        for answer in [
            json!({ "jsonrpc": "2.0", "id": first["id"], "error": unknown }),
            json!({ "jsonrpc": "2.0", "id": second["id"], "result": about }),
        ] {
            to.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
        }
        while let Ok(Some(_)) = lines.next_line().await {}
    }

    #[tokio::test]
    async fn an_answer_that_comes_after_the_older_greeting_is_not_taken_for_the_answer_to_it() {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let server = tokio::spawn(slow(theirs));
        let mut way = HandshakeCompat::new(IntoTransport::<RoleClient, _, _>::into_transport(split(ours)));
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "rialto", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let about = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "rialto", "version": "1" },
        });
        for request in [
            json!({ "jsonrpc": "2.0", "id": 0, "method": "server/discover", "params": { "_meta": meta } }),
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about }),
        ] {
            way.send(serde_json::from_value(request).unwrap()).await.unwrap();
        }
        let heard = way.receive().await.unwrap();
        assert_eq!(answered(&heard), Some(&RequestId::Number(1)), "{heard:?}");
        way.close().await.unwrap();
        drop(way);
        server.await.unwrap();
    }
}
