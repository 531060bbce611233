//! scratch
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, clippy::all)]
use bytes::Bytes;
use futures::StreamExt;
use rialto_a2a::{
    credential::resolver,
    peer::{A2aPeer, Config, Ports},
};
use rialto_edge::{
    address::Reach,
    client::{self, Client},
    fetch::{Fetch, Request},
};
use rialto_engine::peer::{Learned, Peer};
use rialto_model::{
    agent::*,
    call::*,
    card::*,
    clock::SystemClock,
    event::Remote,
    ids::*,
    json::{Extra, Json},
    message::Part,
};
use rialto_policy::Policy;
use std::{sync::Arc, time::Duration};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
struct N;
impl Learned for N {
    fn speaks(&self, _: &Arc<Agent>, _: Dialect) {}
}
fn cpu() -> f64 {
    let s = std::fs::read_to_string("/proc/self/stat").unwrap();
    let r = s.rsplit(')').next().unwrap();
    let f: Vec<&str> = r.split_whitespace().collect();
    (f[11].parse::<f64>().unwrap() + f[12].parse::<f64>().unwrap()) * 10_000.0
}
async fn serve() {
    let l = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", l.local_addr().unwrap().port());
    let pad = "x".repeat(600);
    let body = format!(
        r#"{{"id":"1","jsonrpc":"2.0","result":{{"artifacts":[{{"artifactId":"a-1","name":"forecast","parts":[{{"data":{{"sky":"clear","pad":"{pad}"}},"kind":"data"}}]}}],"contextId":"ctx-1","id":"task-1","kind":"task","status":{{"state":"completed","timestamp":"2026-11-15T20:00:00.000000+00:00"}}}}}}"#
    );
    let answer: Arc<Vec<u8>> = Arc::new(
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes(),
    );
    loop {
        let (mut s, _) = l.accept().await.unwrap();
        s.set_nodelay(true).unwrap();
        let answer = answer.clone();
        tokio::spawn(async move {
            let mut b = vec![0; 65536];
            loop {
                match s.read(&mut b).await {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {
                        if s.write_all(&answer).await.is_err() {
                            return;
                        }
                    }
                }
            }
        });
    }
}
#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args[1] == "serve" {
        return serve().await;
    }
    let url = format!("http://127.0.0.1:{}", args[2]);
    let fetch: Arc<dyn Fetch> = Arc::new(Client::new(&client::Config::default()));
    let at = jiff::Timestamp::UNIX_EPOCH;
    let skill = Arc::new(Skill {
        id: "f".into(),
        name: "f".into(),
        description: String::new(),
        tags: vec![],
        examples: vec![],
        input_modes: vec![],
        output_modes: vec![],
        input_schema: None,
        extra: Extra::new(),
    });
    let card = Card {
        name: "x".into(),
        description: String::new(),
        version: None,
        interfaces: vec![Interface {
            url: url.clone(),
            binding: Binding::JsonRpc,
            dialect: Dialect::V03,
            tenant: None,
        }],
        skills: vec![skill.clone()],
        streaming: false,
        push_notifications: false,
        extended: false,
        signed: false,
        raw: Json::empty_object(),
    };
    let agent = Arc::new(Agent {
        id: AgentId::from("agt_0192837465"),
        scope: Scope::default(),
        url: url.clone(),
        slug: "x".into(),
        card: Arc::new(card),
        pending: None,
        trust: Trust::Trusted,
        health: Health::Healthy,
        signature: Signature::None,
        keep: Keep::Session,
        credential: None,
        allow_private: true,
        card_path: None,
        etag: None,
        speaks: None,
        timeout_ms: None,
        registered_at: at,
        last_fetched_at: at,
        last_seen_at: None,
        last_error: None,
        version: 1,
    });
    let peer = A2aPeer::new(
        Config::default(),
        Ports {
            fetch: fetch.clone(),
            tokens: resolver(|_| None),
            learned: Arc::new(N),
            clock: Arc::new(SystemClock),
        },
    );
    let policy = Arc::new(Policy::starter().unwrap());
    let target = Target { agent, skill: Some(skill) };
    let data = Json::parse(format!(r#"{{"a":"{}"}}"#, "y".repeat(500))).unwrap();
    let body = Bytes::from("z".repeat(900));
    let n = 40_000usize;
    for (name, conns, mode) in [
        ("client", 1usize, 0),
        ("client", 64, 0),
        ("peer", 1, 1),
        ("peer", 64, 1),
        ("permit only", 1, 2),
        ("client", 64, 0),
        ("peer", 64, 1),
    ] {
        let before = cpu();
        let begun = std::time::Instant::now();
        let tasks: Vec<_> = (0..conns)
            .map(|_| {
                let (fetch, peer, policy, target, data, body, url) = (
                    fetch.clone(),
                    peer.clone(),
                    policy.clone(),
                    target.clone(),
                    data.clone(),
                    body.clone(),
                    url.clone(),
                );
                tokio::spawn(async move {
                    let uri: http::Uri = url.parse().unwrap();
                    for i in 0..n / conns {
                        if mode == 0 {
                            let mut r = Request::new(http::Method::POST, uri.clone());
                            r.reach = Reach::Private;
                            r.body = body.clone();
                            r.patience = Duration::from_secs(60);
                            fetch.fetch(r).await.unwrap().body.read().await.unwrap();
                            continue;
                        }
                        let call = Call {
                            task: TaskId::from("task_1"),
                            caller: Caller::user("me"),
                            door: Door::Library,
                            target: target.clone(),
                            parts: vec![Part::data(data.clone())],
                            continues: Remote::default(),
                            session: format!("a2a-agt-f-{i}"),
                        };
                        let call = policy.check(call).unwrap();
                        if mode == 1 {
                            let mut e = peer.send(call);
                            let mut k = 0;
                            while let Some(_) = e.next().await {
                                k += 1;
                            }
                            assert_eq!(k, 3);
                        }
                    }
                })
            })
            .collect();
        for t in tasks {
            t.await.unwrap();
        }
        println!(
            "{name:>12} {conns:>3}: {:6.1} us cpu, {:8.0}/s",
            (cpu() - before) / n as f64,
            n as f64 / begun.elapsed().as_secs_f64()
        );
    }
}
