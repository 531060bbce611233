//! HTTP in a few lines, so that nothing of ours stands between a test and the wire.
//!
//! Requests are HTTP/1.0: then an answer ends where the connection does, streams included.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
};

use super::PATIENCE;

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    /// Status line and headers, in small letters.
    pub(crate) head: String,
    /// The name and the value of the cookie that was set, as they came.
    pub(crate) cookie: Option<String>,
    /// The id of the MCP session that was opened, as it came.
    pub(crate) session: Option<String>,
    pub(crate) body: String,
}

/// Asks for a page.
pub(crate) fn get(url: &str) -> Option<HttpAnswer> {
    send("GET", url, None, &[], "").ok()
}

/// Asks for a page, perhaps under another name than the server's address.
#[track_caller]
pub(crate) fn get_with(url: &str, host: Option<&str>, headers: &[(&str, &str)]) -> HttpAnswer {
    send("GET", url, host, headers, "").unwrap()
}

/// Asks for something to be taken away.
#[track_caller]
pub(crate) fn delete(url: &str, headers: &[(&str, &str)]) -> HttpAnswer {
    send("DELETE", url, None, headers, "").unwrap()
}

/// Puts JSON in place of something.
#[track_caller]
pub(crate) fn put(url: &str, headers: &[(&str, &str)], body: &str) -> HttpAnswer {
    send("PUT", url, None, headers, body).unwrap()
}

/// Posts JSON.
#[track_caller]
pub(crate) fn post(url: &str, headers: &[(&str, &str)], body: &str) -> HttpAnswer {
    send("POST", url, None, headers, body).unwrap()
}

/// Posts JSON to a server that may be gone, or go.
pub(crate) fn try_post(url: &str, headers: &[(&str, &str)], body: &str) -> std::io::Result<HttpAnswer> {
    send("POST", url, None, headers, body)
}

/// Posts JSON to a server under another name than its address.
#[track_caller]
pub(crate) fn post_to(url: &str, host: &str, headers: &[(&str, &str)], body: &str) -> HttpAnswer {
    send("POST", url, Some(host), headers, body).unwrap()
}

/// Asks for a stream, and answers its head and its lines as they come.
pub(crate) fn listen(url: &str, headers: &[(&str, &str)]) -> (String, impl Iterator<Item = String> + use<>) {
    listen_with("GET", url, headers, "")
}

/// The same by any method, with a body.
pub(crate) fn listen_with(
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (String, impl Iterator<Item = String> + use<>) {
    let stream = ask(method, url, None, headers, body).unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let head: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    (head.join("\n"), lines)
}

/// Posts JSON to a server that may be gone, or go, and answers the lines of its answer's body as they come. The last one may
/// be cut off.
pub(crate) fn lines_of(url: &str, body: &str) -> std::io::Result<impl Iterator<Item = String> + use<>> {
    let stream = ask("POST", url, None, &[], body)?;
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.by_ref().take_while(|line| !line.is_empty()).for_each(drop);
    Ok(lines)
}

fn send(
    method: &str,
    url: &str,
    host: Option<&str>,
    headers: &[(&str, &str)],
    body: &str,
) -> std::io::Result<HttpAnswer> {
    let mut answer = Vec::new();
    let (mut stream, written) = begin(method, url, host, headers, body)?;
    // A server that refuses a request answers before it has read all of it, and hangs up.
    let read = stream.read_to_end(&mut answer);
    if answer.is_empty() {
        written.and(read.map(drop))?;
    }
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&*answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    let header = |wanted: &str| {
        let headers = head.lines().filter_map(|line| line.split_once(':'));
        let mut values = headers.filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        values.next().map(|(_, value)| value.split(';').next().unwrap_or_default().trim().to_owned())
    };
    let (cookie, session) = (header("set-cookie"), header("mcp-session-id"));
    Ok(HttpAnswer { status, head: head.to_lowercase(), cookie, session, body: body.to_owned() })
}

/// Sends a request; the answer is still to be read.
fn ask(
    method: &str,
    url: &str,
    host: Option<&str>,
    headers: &[(&str, &str)],
    body: &str,
) -> std::io::Result<TcpStream> {
    let (stream, written) = begin(method, url, host, headers, body)?;
    written.map(|()| stream)
}

/// Sends a request, as much of it as is taken.
fn begin(
    method: &str,
    url: &str,
    host: Option<&str>,
    headers: &[(&str, &str)],
    body: &str,
) -> std::io::Result<(TcpStream, std::io::Result<()>)> {
    let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let host = host.unwrap_or(address);
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let is_json = !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let kind = if is_json { "Content-Type: application/json\r\n" } else { "" };
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let written = write!(
        stream,
        "{method} /{path} HTTP/1.0\r\nHost: {host}\r\n{kind}\
         Accept: application/json, text/event-stream\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    );
    Ok((stream, written))
}
