//! A model server inside the test.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// A model server inside the test: it takes `idiot` for toxic.
pub(crate) struct ModelServer {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

// === impl ModelServer ===

impl ModelServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/classify", listener.local_addr().unwrap());
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let memory = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let said = answer(stream);
                memory.lock().unwrap().push(said);
            }
        });
        Self { url, asked }
    }

    /// The questions so far: each with its head in small letters, and its body.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Reads one request, answers it, and says what it was: the head in small letters, and the body.
fn answer(mut stream: TcpStream) -> String {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    let body = String::from_utf8(body).unwrap();
    let score = if body.contains("idiot") { 0.97 } else { 0.02 };
    let told = format!(r#"{{"scores":{{"toxicity":{score}}}}}"#);
    let length = told.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{told}"
    )
    .unwrap();
    head + &body
}
