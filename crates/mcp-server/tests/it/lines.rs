//! A client on a pair of streams: one JSON message a line, as over stdin and stdout.

use rialto_mcp_server::ServeError;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, split},
    task::JoinHandle,
};

use crate::house::{House, ann, within};

/// A client that is connected to the door.
pub(crate) struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    to: WriteHalf<DuplexStream>,
    server: JoinHandle<Result<(), ServeError>>,
    last_id: i64,
}

impl Client {
    /// Connects, and says nothing yet.
    pub(crate) fn connect(house: &House) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (door, stop) = (house.door.clone(), house.stop.clone());
        let (input, output) = split(theirs);
        let server = tokio::spawn(async move { Box::pin(door.serve(input, output, ann(), stop)).await });
        let (from, to) = split(ours);
        Self { lines: BufReader::new(from).lines(), to, server, last_id: 0 }
    }

    /// Connects and shakes hands in a protocol version before 2026-07-28.
    pub(crate) async fn initialized(house: &House, version: &str, name: &str) -> Self {
        let mut client = Self::connect(house);
        client.initialize(version, name).await;
        client
    }

    pub(crate) async fn initialize(&mut self, version: &str, name: &str) -> Value {
        self.initialize_with(version, name, json!({})).await
    }

    /// Shakes hands and says what it can do.
    pub(crate) async fn initialize_with(&mut self, version: &str, name: &str, capabilities: Value) -> Value {
        let params = json!({
            "protocolVersion": version, "capabilities": capabilities, "clientInfo": { "name": name, "version": "1" },
        });
        let answer = self.ask("initialize", params).await;
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        answer
    }

    /// Sends a request and waits for its answer, which must come next.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        let answer = self.hear().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Sends a request; its answer is for another moment.
    pub(crate) async fn begin(&mut self, method: &str, params: Value) -> i64 {
        self.last_id += 1;
        let id = self.last_id;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    pub(crate) async fn say(&mut self, message: &Value) {
        self.to.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// The next message, whatever it is.
    pub(crate) async fn hear(&mut self) -> Value {
        let line = within(self.lines.next_line()).await.unwrap().expect("a message, not the end");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not protocol: {line}"))
    }

    /// Says that nothing more will be asked, but goes on listening.
    pub(crate) async fn end_input(&mut self) {
        self.to.shutdown().await.unwrap();
    }

    /// Hangs up, and waits until the server has noticed.
    pub(crate) async fn hang_up(mut self) -> Result<(), ServeError> {
        self.to.shutdown().await.unwrap();
        within(self.server).await.unwrap()
    }
}

/// What a request of 2026-07-28 says about its sender, with `more` beside it.
pub(crate) fn modern(client: &str, more: Value) -> Value {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": client, "version": "1" },
    });
    meta.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    meta
}
