//! Small MCP client: the demo calls the server over HTTP, as any client does.

use std::sync::Arc;

use http::{HeaderName, HeaderValue, Method, header};
use rialto_a2a_codec::sse;
use rialto_http_client::{
    HttpClient,
    address::Reach,
    fetch::{Fetch, FetchError, FetchRequest, FetchResponse},
};
use serde_json::{Value, json};

/// The version of MCP it speaks.
const VERSION: &str = "2026-07-28";

/// A client of one server.
pub(crate) struct DemoMcpClient {
    fetch: Arc<HttpClient>,
    uri: http::Uri,
}

/// Result of a request.
pub(crate) type RpcResult = Result<Value, Value>;

// === impl DemoMcpClient ===

impl DemoMcpClient {
    /// A client of the server at `url`.
    pub(crate) fn new(url: &str) -> Result<Self, String> {
        let uri = url.parse().map_err(|_| format!("{url} is not an address"))?;
        Ok(Self { fetch: Arc::new(HttpClient::new(&rialto_http_client::Config::default())), uri })
    }

    /// Makes a request; `progress` receives progress messages.
    pub(crate) async fn request(
        &self,
        method: &str,
        mut params: Value,
        mut progress: impl FnMut(&str),
    ) -> Result<RpcResult, String> {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "rialto-demo", "version": env!("CARGO_PKG_VERSION") },
            "progressToken": 1,
        });
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let response = self.send(method, &name, &body).await.map_err(|error| error.to_string())?;
        read(response, &mut progress).await
    }

    async fn send(&self, method: &str, name: &str, body: &Value) -> Result<FetchResponse, FetchError> {
        let text = |text: &str| HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""));
        let mut request = FetchRequest::new(Method::POST, self.uri.clone())
            .header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"))
            .header(HeaderName::from_static("mcp-protocol-version"), HeaderValue::from_static(VERSION))
            .header(HeaderName::from_static("mcp-method"), text(method));
        if !name.is_empty() {
            request = request.header(HeaderName::from_static("mcp-name"), text(name));
        }
        request.body = body.to_string().into();
        request.reach = Reach::Private;
        self.fetch.fetch(request).await
    }
}

async fn read(response: FetchResponse, progress: &mut impl FnMut(&str)) -> Result<RpcResult, String> {
    if response.media_type() != "text/event-stream" {
        let body = response.body.read().await.map_err(|error| error.to_string())?;
        let message = serde_json::from_slice(&body)
            .map_err(|error| format!("the server answered with no JSON: {error}"))?;
        return answer(message).ok_or_else(|| "the server answered with no result".to_owned());
    }
    let mut parser = sse::SseParser::new(1024 * 1024);
    let mut body = response.body;
    while let Some(chunk) = body.chunk().await.map_err(|error| error.to_string())? {
        for event in parser.feed(&chunk).map_err(|error| error.to_string())? {
            let Ok(message) = serde_json::from_str::<Value>(&event.data) else { continue };
            if message["method"] == "notifications/progress" {
                progress(message["params"]["message"].as_str().unwrap_or_default());
            } else if let Some(answer) = answer(message) {
                return Ok(answer);
            }
        }
    }
    Err("the server hung up without a result".to_owned())
}

/// The answer in a message. A failed call is a result that a model can read; its error is inside.
fn answer(mut message: Value) -> Option<RpcResult> {
    if message["result"]["isError"] == true {
        let error = message["result"]["structuredContent"]["error"].take();
        return Some(Err(error));
    }
    match (message["result"].take(), message["error"].take()) {
        (Value::Null, Value::Null) => None,
        (Value::Null, error) => Some(Err(error)),
        (result, _) => Some(Ok(result)),
    }
}
