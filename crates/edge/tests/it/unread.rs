//! Requests of HTTP/2 that are answered before their body was read, frame by frame.

use std::{num::NonZero, time::Duration};

use axum::{Router, http::StatusCode};
use rialto_http_server::{listener::HttpListener, worker_threads::WorkerThreads};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

const PATIENCE: Duration = Duration::from_secs(20);

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// A client with a connection to a server that reads no body.
struct Client(TcpStream);

#[derive(Debug)]
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

// === impl Client ===

impl Client {
    async fn connect() -> Self {
        let listener = HttpListener::open("127.0.0.1:0").await.unwrap();
        let address = listener.address();
        let app = Router::new().fallback(|| async { (StatusCode::UNAUTHORIZED, "who are you?") });
        let workers = WorkerThreads::start(NonZero::<usize>::MIN).unwrap();
        tokio::spawn(listener.serve(move |_| app.clone(), workers, std::future::pending()));
        let mut client = Self(TcpStream::connect(address).await.unwrap());
        client.0.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        client.send(SETTINGS, 0, 0, &[]).await;
        client
    }

    /// Sends the head of a POST request, whose body is to come, and receives the response to its end.
    async fn begin(&mut self) {
        // POST, http, /, and the authority h: by their numbers in the table of RFC 7541.
        self.send(HEADERS, END_HEADERS, 1, &[0x83, 0x86, 0x84, 0x01, 1, b'h']).await;
        let frames = self.until(|frame| frame.stream == 1 && frame.flags & END_STREAM != 0).await;
        assert!(
            frames.iter().any(|frame| frame.kind == DATA && frame.payload == b"who are you?"),
            "{frames:?}"
        );
    }

    /// Everything that comes before the server has read what was sent so far.
    async fn sync(&mut self) -> Vec<Frame> {
        self.send(PING, 0, 0, &[7; 8]).await;
        self.until(|frame| frame.kind == PING && frame.flags & ACK != 0).await
    }

    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.0.write_all(&frame).await.unwrap();
    }

    async fn until(&mut self, is_last: impl Fn(&Frame) -> bool) -> Vec<Frame> {
        let mut frames = Vec::new();
        while !frames.last().is_some_and(&is_last) {
            frames.push(timeout(PATIENCE, self.next()).await.unwrap());
        }
        frames
    }

    async fn next(&mut self) -> Frame {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).await.unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.0.read_exact(&mut payload).await.unwrap();
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Frame { kind: head[3], flags: head[4], stream, payload }
    }
}

#[tokio::test]
async fn a_client_may_send_its_body_to_the_end_after_it_was_answered() {
    let mut client = Client::connect().await;
    client.begin().await;
    let mut frames = client.sync().await;
    client.send(DATA, 0, 1, &[b'x'; 16_384]).await;
    frames.extend(client.sync().await);
    client.send(DATA, END_STREAM, 1, b"the end").await;
    frames.extend(client.sync().await);
    assert!(!frames.iter().any(|frame| frame.kind == RST_STREAM), "{frames:?}");
}

#[tokio::test]
async fn a_client_that_never_sends_its_body_is_reset_without_an_error() {
    let mut client = Client::connect().await;
    client.begin().await;
    let frames = client.until(|frame| frame.kind == RST_STREAM).await;
    let last = frames.last().unwrap();
    assert_eq!((last.stream, last.payload.as_slice()), (1, &[0; 4][..]), "{last:?}");
}
