//! Requests byte by byte: an attacker does not use a library that would refuse to send them.

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
};

use crate::harness::PATIENCE;

/// A `tools/call` of the newest protocol.
pub(super) const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"desk.echo","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"rialto-tests","version":"1"}}}}"#;

/// A request to `/mcp` that would be answered, but for what an attack changes of it.
#[derive(Clone)]
pub(super) struct RawConnection {
    line: String,
    headers: Vec<(String, String)>,
    body: String,
}

// === impl RawConnection ===

impl RawConnection {
    /// A call as this caller would make it.
    pub(super) fn call(host: &str, token: &str) -> Self {
        let headers = [
            ("Host", host),
            ("Authorization", &format!("Bearer {token}")),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "desk.echo"),
            ("Connection", "close"),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Self { line: "POST /mcp HTTP/1.1".to_owned(), headers, body: CALL.to_owned() }
    }

    /// With another first line.
    pub(super) fn line(mut self, line: &str) -> Self {
        self.line = line.to_owned();
        self
    }

    /// With one header more.
    pub(super) fn and(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Without this header.
    pub(super) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(other, _)| other != name);
        self
    }

    /// With another value of this header.
    pub(super) fn with(self, name: &str, value: &str) -> Self {
        self.without(name).and(name, value)
    }

    /// With another body.
    pub(super) fn body(mut self, body: impl Into<String>) -> Self {
        self.body = body.into();
        self
    }

    /// The bytes. The length of the body is said, unless the attack says something about it.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let says_length = self.headers.iter().any(|(name, _)| {
            ["content-length", "transfer-encoding"].contains(&name.trim().to_lowercase().as_str())
        });
        let length = (!says_length).then(|| ("Content-Length".to_owned(), self.body.len().to_string()));
        let mut text = format!("{}\r\n", self.line);
        for (name, value) in self.headers.iter().chain(&length) {
            text += &format!("{name}: {value}\r\n");
        }
        (text + "\r\n" + &self.body).into_bytes()
    }
}

/// Sends bytes and reads until the other side hangs up. A server may hang up before it has read everything.
pub(super) fn exchange(address: &str, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => answer.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&answer)),
        }
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// The status of an answer.
pub(super) fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
}
