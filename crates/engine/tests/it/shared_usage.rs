//! Limits and circuit breakers of several processes on one store.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rialto_engine::{Config, limits, routing};
use rialto_model::{
    agent::AgentTrust,
    clock::{Clock, SystemClock},
    failure::{Failure, FailureKind},
    store::Store,
};
use rialto_store::SqliteStore;
use rialto_testkit::{
    agents,
    faulty_store::{Fault, FaultyStore},
    peer::ScriptedPeer,
};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    breakers::{answering, state, status},
    fixture::World,
};

/// Two processes on one SQLite file, each with a peer of its own. Fields go in their order.
struct Processes {
    here: World,
    there: World,
    folder: TempDir,
}

fn open(folder: &TempDir) -> Arc<dyn Store> {
    let config = rialto_store::Config::default();
    Arc::new(SqliteStore::open(folder.path(), &config, agents::parse_card).unwrap())
}

impl Processes {
    async fn start(config: &Config, peers: [Arc<ScriptedPeer>; 2]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [here, there] = peers;
        let here = World::over_with(open(&folder), here, config.clone());
        here.register(agents::skill("deploy"), AgentTrust::Trusted).await;
        let there = World::over_with(open(&folder), there, config.clone());
        there.engine.sync().await.unwrap();
        let processes = Self { here, there, folder };
        // Windows begin at whole minutes: none begins during a test.
        let second = u64::try_from(SystemClock.now().as_second().rem_euclid(60)).unwrap();
        processes.forward(Duration::from_secs(61 - second));
        processes
    }

    fn forward(&self, by: Duration) {
        self.here.clock.forward(by);
        self.there.clock.forward(by);
    }

    /// Each sends what it has counted, and then reads what the others have.
    async fn exchange(&self) {
        for process in [&self.here, &self.there, &self.here] {
            process.engine.share_usage().await.unwrap();
        }
    }
}

async fn call(world: &World) -> Result<(), Failure> {
    world.call(json!({})).await.map(drop)
}

fn a_day(calls_per_day: u64) -> Config {
    let quota = limits::Quota { calls_per_day, ..limits::Quota::default() };
    let orgs = BTreeMap::from([("default".to_owned(), quota)]);
    Config { limits: limits::Config { orgs, ..limits::Config::default() }, ..Config::default() }
}

fn echoes() -> [Arc<ScriptedPeer>; 2] {
    [ScriptedPeer::echo(), ScriptedPeer::echo()]
}

#[tokio::test]
async fn calls_of_an_org_count_together_at_all_processes_and_after_a_restart() {
    let processes = Processes::start(&a_day(10), echoes()).await;
    let Processes { here, there, folder } = &processes;
    for (process, calls) in [(here, 4), (there, 4), (here, 1), (there, 1)] {
        for _ in 0..calls {
            call(process).await.unwrap();
        }
        processes.exchange().await;
    }
    for process in [here, there] {
        let refused = call(process).await.unwrap_err();
        assert!(
            refused.kind == FailureKind::Busy && refused.message.contains("10 calls of this day"),
            "{refused}"
        );
    }
    let restarted = World::over_with(open(folder), ScriptedPeer::echo(), a_day(10));
    restarted.engine.sync().await.unwrap();
    restarted.engine.share_usage().await.unwrap();
    assert_eq!(call(&restarted).await.unwrap_err().kind, FailureKind::Busy);
    processes.forward(Duration::from_secs(24 * 60 * 60));
    call(here).await.unwrap();
}

#[tokio::test]
async fn a_limit_is_exceeded_by_no_more_than_the_calls_between_two_exchanges() {
    let processes = Processes::start(&a_day(10), echoes()).await;
    let mut made = 0;
    for _ in 0..10 {
        for process in [&processes.here, &processes.there] {
            for _ in 0..3 {
                made += usize::from(call(process).await.is_ok());
            }
        }
        processes.exchange().await;
    }
    assert!((10..=12).contains(&made), "{made}");
}

#[tokio::test]
async fn calls_of_a_tool_in_a_minute_count_together() {
    let tools = BTreeMap::from([("vercel_ops.deploy".to_owned(), 3)]);
    let config =
        Config { limits: limits::Config { tools, ..limits::Config::default() }, ..Config::default() };
    let processes = Processes::start(&config, echoes()).await;
    let Processes { here, there, .. } = &processes;
    for process in [here, here, there] {
        call(process).await.unwrap();
    }
    processes.exchange().await;
    for process in [here, there] {
        // What a process knows of a tool is as old as its own last call.
        let refused = match call(process).await {
            Err(refused) => refused,
            Ok(()) => {
                processes.exchange().await;
                call(process).await.unwrap_err()
            }
        };
        assert!(refused.message.contains("calls of vercel_ops.deploy in this minute"), "{refused}");
    }
    processes.forward(Duration::from_secs(60));
    call(here).await.unwrap();
}

#[tokio::test]
async fn calls_that_could_not_be_sent_are_sent_later() {
    let folder = tempfile::tempdir().unwrap();
    let (store, switch) = FaultyStore::wrap(open(&folder));
    let here = World::over_with(store, ScriptedPeer::echo(), a_day(10));
    here.register(agents::skill("deploy"), AgentTrust::Trusted).await;
    for _ in 0..6 {
        call(&here).await.unwrap();
    }
    switch.set(Fault::Unavailable);
    here.engine.share_usage().await.unwrap_err();
    switch.set(Fault::None);
    here.engine.share_usage().await.unwrap();
    let there = World::over_with(open(&folder), ScriptedPeer::echo(), a_day(10));
    there.engine.sync().await.unwrap();
    there.engine.share_usage().await.unwrap();
    for _ in 0..4 {
        call(&there).await.unwrap();
    }
    assert_eq!(call(&there).await.unwrap_err().kind, FailureKind::Busy);
}

#[tokio::test]
async fn a_breaker_that_opens_at_one_process_opens_at_the_others_until_the_agent_answers_there() {
    let routing = routing::Config {
        breaker_window_secs: 3_600.0,
        breaker_pause_secs: 5.0,
        breaker_longest_secs: 5.0,
        ..routing::Config::default()
    };
    let config = Config { routing, ..Config::default() };
    // The fault is between the first process and the agent.
    let peers = [answering(|_| Some(status(503))), ScriptedPeer::echo()];
    let processes = Processes::start(&config, peers).await;
    let Processes { here, there, .. } = &processes;
    processes.exchange().await;
    for _ in 0..10 {
        call(here).await.unwrap_err();
    }
    assert_eq!((state(here), state(there)), ("open", "closed"));
    processes.exchange().await;
    processes.exchange().await;
    assert_eq!(state(there), "open");
    let refused = call(there).await.unwrap_err();
    assert!(refused.message.contains("circuit breaker is open: status 503"), "{refused}");
    assert_eq!(there.peer.calls.lock().len(), 0, "it needs no failures of its own");

    processes.forward(Duration::from_secs(6));
    call(there).await.unwrap();
    assert_eq!(state(there), "closed", "its own probe was answered");
    call(here).await.unwrap_err();
    processes.exchange().await;
    processes.exchange().await;
    assert_eq!((state(here), state(there)), ("open", "closed"), "an agent that answers here is called");
}
