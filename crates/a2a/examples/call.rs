//! Calls one skill of one agent and prints every event: `call URL SKILL [JSON] [--task ID] [--context ID] [--cancel] [--follow]`.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, clippy::too_many_lines)]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::StreamExt;
use rialto_a2a::{
    credential::resolver,
    discover::Discoverer,
    peer::{A2aPeer, Config, Ports},
};
use rialto_a2a_wire::card::signature::Keys;
use rialto_edge::{
    client::{self, Client},
    fetch::Fetch,
};
use rialto_engine::peer::{Discovery, Fetched, Learned, Peer, Place};
use rialto_model::{
    agent::{Agent, Health, Keep, Signature, Trust},
    call::{Call, Caller, Cancel, Door, Follow, Target},
    card::Dialect,
    clock::SystemClock,
    event::Remote,
    ids::{AgentId, Scope, TaskId, fresh},
    json::Json,
    message::Part,
};
use rialto_policy::Policy;

struct Print;
impl Learned for Print {
    fn speaks(&self, _: &Arc<Agent>, dialect: Dialect) {
        println!("LEARNED {dialect}");
    }
}

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| args.iter().position(|a| a == name).and_then(|at| args.get(at + 1)).cloned();
    let flag = |name: &str| args.iter().any(|a| a == name);
    let fetch: Arc<dyn Fetch> = Arc::new(Client::new(&client::Config::default()));
    let tokens = resolver(|name| std::env::var(name).ok());
    let place = Place {
        url: args[0].clone(),
        card_path: None,
        credential: None,
        allow_private: true,
        etag: None,
        timeout: Duration::from_secs(5),
    };
    let found =
        Discoverer::new(Arc::clone(&fetch), Arc::clone(&tokens), Keys::new()).fetch(&place).await.unwrap();
    let Fetched::Card { card, path, .. } = found else { unreachable!() };
    println!("CARD {} at {path}, streaming {}, {:?}", card.name, card.streaming, card.interfaces);
    let at = jiff::Timestamp::UNIX_EPOCH;
    let skill = card.skill(&args[1]).cloned();
    let agent = Arc::new(Agent {
        id: AgentId::from("agt_1"),
        scope: Scope::default(),
        url: args[0].clone(),
        slug: "x".into(),
        card: Arc::new(*card),
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
        Ports { fetch, tokens, learned: Arc::new(Print), clock: Arc::new(SystemClock) },
    );
    let policy = Policy::starter().unwrap();
    let target = Target { agent, skill };
    let remote = Remote { task_id: option("--task"), context_id: option("--context") };
    let begun = Instant::now();
    if flag("--cancel") && remote.task_id.is_some() {
        let cancel = policy.check(Cancel { caller: Caller::user("me"), target, remote }).unwrap();
        println!("{:?}", peer.cancel(cancel).await);
        return;
    }
    if flag("--follow") {
        let follow =
            policy.check(Follow { caller: Caller::user("me"), target, remote, to_the_end: true }).unwrap();
        let mut events = peer.follow(follow);
        while let Some(event) = events.next().await {
            println!("{:>5} ms {event:?}", begun.elapsed().as_millis());
        }
        return;
    }
    let parts = match args.get(2).filter(|a| !a.starts_with("--")) {
        Some(text) if text.starts_with('{') => vec![Part::data(Json::parse(text.clone()).unwrap())],
        Some(text) => vec![Part::text(text.clone())],
        None => vec![Part::data(Json::empty_object())],
    };
    let session = format!("a2a-agt_1-{}-{}", args[1], fresh());
    let call = Call {
        task: TaskId::fresh(),
        caller: Caller::user("me"),
        door: Door::Library,
        target: target.clone(),
        parts,
        continues: remote,
        session,
    };
    let mut events = peer.send(policy.check(call).unwrap());
    let mut known = Remote::default();
    while let Some(event) = events.next().await {
        println!("{:>5} ms {event:?}", begun.elapsed().as_millis());
        if let rialto_model::event::Event::Accepted { remote, .. } = &event {
            known = remote.clone();
            if flag("--cancel") {
                tokio::time::sleep(Duration::from_millis(300)).await;
                let cancel = policy
                    .check(Cancel {
                        caller: Caller::user("me"),
                        target: target.clone(),
                        remote: known.clone(),
                    })
                    .unwrap();
                println!("CANCEL {:?}", peer.cancel(cancel).await);
                println!(
                    "AGAIN {:?}",
                    peer.cancel(
                        policy
                            .check(Cancel {
                                caller: Caller::user("me"),
                                target: target.clone(),
                                remote: known.clone()
                            })
                            .unwrap()
                    )
                    .await
                );
                return;
            }
        }
        if let rialto_model::event::Event::Asked { .. } = &event {
            println!("ANSWERING blue");
            let call = Call {
                task: TaskId::fresh(),
                caller: Caller::user("me"),
                door: Door::Library,
                target: target.clone(),
                parts: vec![Part::text("blue")],
                continues: known.clone(),
                session: format!("a2a-agt_1-{}-{}", args[1], fresh()),
            };
            events = peer.send(policy.check(call).unwrap());
        }
    }
}
