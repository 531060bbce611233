use std::sync::Arc;

use axum::{Router, routing};
use bytes::Bytes;
use futures::future::join_all;
use http::{Method, StatusCode};
use rialto_http_client::{
    Config, HttpClient,
    address::Reach,
    fetch::{Fetch, FetchError, FetchRequest},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::{Barrier, mpsc},
};

use crate::server::{Server, client, get, read_head, text};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

async fn ask(client: &HttpClient, server: &Server) -> String {
    text(client.fetch(get(server.uri("/"))).await.unwrap()).await
}

/// Number of connections it takes to ask a server twice that always answers with `bytes`.
async fn connections_for_two(bytes: &'static [u8], says: &str) -> usize {
    let server = Server::repeating(bytes).await;
    let client = client();
    for _ in 0..2 {
        assert_eq!(ask(&client, &server).await, says);
    }
    server.accepted()
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_connections_are_opened_as_are_needed_at_once_and_all_are_kept() {
    let all = Arc::new(Barrier::new(64));
    let meet = move || async move {
        all.wait().await;
        "met"
    };
    let server = Server::start(Router::new().route("/", routing::get(meet))).await;
    let client = client();
    for round in 0..10 {
        let answers = join_all((0..64).map(|_| ask(&client, &server))).await;
        assert!(answers.iter().all(|answer| answer == "met"));
        if round == 0 {
            assert_eq!(server.accepted(), 64);
        }
    }
    // Only connections whose last response has just ended may be missing from the pool when the next round begins.
    assert!(server.accepted() <= 2 * 64, "{} connections for 640 requests", server.accepted());
}

#[tokio::test]
async fn a_connection_that_the_server_closed_meanwhile_is_replaced() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let server = Server::handling(move |mut stream| {
        let tell = tell.clone();
        async move {
            read_head(&mut stream).await;
            stream.write_all(OK).await.unwrap();
            drop(stream);
            tell.send(()).unwrap();
        }
    })
    .await;
    let (client, other) = (client(), Server::repeating(OK).await);
    for asked in 1..=3 {
        assert_eq!(ask(&client, &server).await, "ok");
        told.recv().await.unwrap();
        // Whatever had happened on any socket before this answer has been seen when it is here.
        assert_eq!(ask(&client, &other).await, "ok");
        assert_eq!(server.accepted(), asked);
    }
    assert!(told.is_empty());
}

#[tokio::test]
async fn a_request_that_was_received_is_not_sent_again() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let server = Server::handling(move |mut stream| {
        let tell = tell.clone();
        async move {
            tell.send(read_head(&mut stream).await.unwrap()).unwrap();
            stream.write_all(OK).await.unwrap();
            tell.send(read_head(&mut stream).await.unwrap()).unwrap();
        }
    })
    .await;
    let client = client();
    assert_eq!(ask(&client, &server).await, "ok");
    let error = client.fetch(get(server.uri("/"))).await.unwrap_err();
    assert_eq!(error, FetchError::Broken(format!("{} hung up before it answered", server.address)));
    assert!(!error.is_surely_not_sent());
    assert_eq!(server.accepted(), 1);
    drop(server);
    assert!(told.recv().await.is_some() && told.recv().await.is_some() && told.is_empty());
}

#[tokio::test]
async fn a_body_in_chunks_leaves_a_connection_that_can_be_used_again() {
    let bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nwho\r\n2\r\nle\r\n0\r\n\r\n";
    assert_eq!(connections_for_two(bytes, "whole").await, 1);
}

#[tokio::test]
async fn the_last_piece_is_enough_when_the_end_came_with_it() {
    let bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n\r\n";
    let server = Server::repeating(bytes).await;
    let client = client();
    for _ in 0..2 {
        let mut answer = client.fetch(get(server.uri("/"))).await.unwrap();
        assert_eq!(answer.body.chunk().await.unwrap().unwrap(), "whole");
    }
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn a_body_that_comes_bit_by_bit_leaves_a_connection_that_can_be_used_again() {
    let (next, turns) = mpsc::unbounded_channel();
    let turns = Arc::new(tokio::sync::Mutex::new(turns));
    let server = Server::handling(move |mut stream| {
        let turns = Arc::clone(&turns);
        async move {
            while read_head(&mut stream).await.is_some() {
                stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await.unwrap();
                for bytes in ["3\r\none\r\n", "3\r\ntwo\r\n", "0\r\n\r\n"] {
                    turns.lock().await.recv().await.unwrap();
                    stream.write_all(bytes.as_bytes()).await.unwrap();
                }
            }
        }
    })
    .await;
    let client = client();
    for _ in 0..2 {
        let mut body = client.fetch(get(server.uri("/"))).await.unwrap().body;
        for piece in [Some("one"), Some("two"), None] {
            next.send(()).unwrap();
            assert_eq!(body.chunk().await.unwrap().as_deref(), piece.map(str::as_bytes));
        }
    }
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn an_answer_without_a_body_leaves_a_connection_that_can_be_used_again() {
    for bytes in [
        &b"HTTP/1.1 204 No Content\r\n\r\n"[..],
        b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    ] {
        assert_eq!(connections_for_two(bytes, "").await, 1);
    }
    let server = Server::repeating(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n").await;
    let client = client();
    for _ in 0..2 {
        let mut head = get(server.uri("/"));
        head.method = Method::HEAD;
        assert_eq!(text(client.fetch(head).await.unwrap()).await, "");
    }
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn a_server_may_say_more_before_its_answer() {
    let bytes = b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    assert_eq!(connections_for_two(bytes, "ok").await, 1);
}

#[tokio::test]
async fn a_server_that_will_close_is_not_asked_again_on_the_same_connection() {
    let closing = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
    assert_eq!(connections_for_two(closing, "ok").await, 2);
    let old = b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok";
    assert_eq!(connections_for_two(old, "ok").await, 2);
}

#[tokio::test]
async fn a_body_may_end_with_its_connection() {
    for bytes in [&b"HTTP/1.0 200 OK\r\n\r\nall of it"[..], b"HTTP/1.1 200 OK\r\n\r\nall of it"] {
        let server = Server::raw(bytes).await;
        let client = client();
        for asked in 1..=2 {
            assert_eq!(ask(&client, &server).await, "all of it");
            assert_eq!(server.accepted(), asked);
        }
    }
}

#[tokio::test]
async fn bytes_after_a_response_are_not_taken_for_the_next() {
    let bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\nforged";
    assert_eq!(connections_for_two(bytes, "ok").await, 2);
}

#[tokio::test]
async fn a_connection_that_speaks_something_else_now_is_not_used_again() {
    let bytes = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n";
    assert_eq!(connections_for_two(bytes, "").await, 2);
}

#[tokio::test]
async fn an_answer_may_come_before_all_of_the_request_is_sent() {
    let server = Server::handling(|mut stream| async move {
        read_head(&mut stream).await;
        let refusal = b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 3\r\n\r\nno!";
        stream.write_all(refusal).await.unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    })
    .await;
    let client = client();
    for asked in 1..=2 {
        let mut request = FetchRequest::new(Method::POST, server.uri("/"));
        request.reach = Reach::Private;
        // More than any socket takes in at once.
        request.body = Bytes::from(vec![0; 64 * 1024 * 1024]);
        let answer = client.fetch(request).await.unwrap();
        assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(text(answer).await, "no!");
        assert_eq!(server.accepted(), asked);
    }
}

#[tokio::test]
async fn a_dropped_body_closes_its_connection() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let server = Server::handling(move |mut stream| {
        let tell = tell.clone();
        async move {
            read_head(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nbegin").await.unwrap();
            tell.send(read_head(&mut stream).await).unwrap();
        }
    })
    .await;
    let client = client();
    for asked in 1..=2 {
        let mut answer = client.fetch(get(server.uri("/"))).await.unwrap();
        assert_eq!(answer.body.chunk().await.unwrap().unwrap(), "begin");
        drop(answer);
        assert_eq!(told.recv().await, Some(None));
        assert_eq!(server.accepted(), asked);
    }
}

#[tokio::test]
async fn an_unused_connection_is_closed_in_the_end() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let server = Server::handling(move |mut stream| {
        let tell = tell.clone();
        async move {
            read_head(&mut stream).await;
            stream.write_all(OK).await.unwrap();
            tell.send(read_head(&mut stream).await).unwrap();
        }
    })
    .await;
    let client = HttpClient::new(&Config { keep_idle_ms: 20, ..Config::default() });
    for asked in 1..=2 {
        assert_eq!(ask(&client, &server).await, "ok");
        assert_eq!(told.recv().await, Some(None));
        assert_eq!(server.accepted(), asked);
    }
}

#[tokio::test]
async fn no_more_than_128_unused_connections_are_kept() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let all = Arc::new(Barrier::new(130));
    let server = Server::handling(move |mut stream| {
        let (all, tell) = (Arc::clone(&all), tell.clone());
        async move {
            read_head(&mut stream).await;
            all.wait().await;
            stream.write_all(OK).await.unwrap();
            tell.send(read_head(&mut stream).await).unwrap();
        }
    })
    .await;
    let client = HttpClient::new(&Config { keep_idle_ms: 600_000, ..Config::default() });
    join_all((0..130).map(|_| ask(&client, &server))).await;
    assert_eq!(server.accepted(), 130);
    for _ in 0..2 {
        assert_eq!(told.recv().await, Some(None));
    }
}

#[tokio::test]
async fn connections_are_not_kept_when_none_shall_be() {
    let server = Server::repeating(OK).await;
    let client = HttpClient::new(&Config { keep_idle_ms: 0, ..Config::default() });
    for asked in 1..=3 {
        assert_eq!(ask(&client, &server).await, "ok");
        assert_eq!(server.accepted(), asked);
    }
}

#[tokio::test]
async fn a_request_that_is_dropped_closes_its_connection() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let server = Server::handling(move |mut stream| {
        let tell = tell.clone();
        async move {
            read_head(&mut stream).await;
            tell.send(read_head(&mut stream).await).unwrap();
        }
    })
    .await;
    let client = client();
    let mut request = get(server.uri("/"));
    request.patience = std::time::Duration::from_millis(20);
    let error = client.fetch(request).await.unwrap_err();
    assert_eq!(error, FetchError::Timeout(std::time::Duration::from_millis(20)));
    assert_eq!(told.recv().await, Some(None));
}
