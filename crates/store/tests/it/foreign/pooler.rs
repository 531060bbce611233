//! The store by way of PgBouncer in transaction mode: every promise of the port, and what several processes see of one another.

use std::time::{Duration, Instant};

use rialto_model::store::{AgentStore, Store, StoreError};
use rialto_store::{Config, PostgresStore, StoreUrl};
use rialto_testkit::{
    pgbouncer::PgBouncer,
    postgres::Server,
    store_suite::{agent, parse_card},
};

/// A change by another process is seen by then where it is polled (docs/OPERATIONS.md).
const POLLED_WITHIN: Duration = Duration::from_millis(500);

/// How many connections listen.
const LISTENERS: &str = "SELECT count(*) FROM pg_locks WHERE classid = 'generation'::regclass::oid";

mod suite {
    use super::{Config, PgBouncer, Server, open};

    /// A server with a pooler before it. Fields go in their order.
    struct Pooled {
        pooler: PgBouncer,
        server: Server,
    }

    impl Pooled {
        fn start() -> Self {
            let server = Server::start();
            Self { pooler: PgBouncer::start(&server, 4), server }
        }

        fn database(&self) -> String {
            self.pooler.around(&self.server.database())
        }
    }

    // Each promise has a database of its own. That there is a pooler is found out.
    rialto_testkit::store_suite!(together server = Pooled::start(); async {
        Box::new(open(&server.database(), Config::default()).await)
    });
}

async fn open(url: &str, config: Config) -> PostgresStore {
    PostgresStore::open(&StoreUrl::from(url.to_owned()), &config, parse_card).await.unwrap()
}

fn listening(url: &str) -> Config {
    Config { listen_url: Some(StoreUrl::from(url.to_owned())), ..Config::default() }
}

/// Waits until another process sees a change, and answers how long that took.
async fn seen(store: &PostgresStore, number: u64) -> Duration {
    let begun = Instant::now();
    while store.generation() < number {
        assert!(begun.elapsed() < Duration::from_secs(30), "the change was not seen");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    begun.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_polled_behind_a_pooler_and_seen_within_the_stated_time() {
    let server = Server::start();
    let (direct, pooler) = (server.database(), PgBouncer::start(&server, 4));
    let url = pooler.around(&direct);
    let (here, there) = (open(&url, Config::default()).await, open(&url, Config::default()).await);
    assert_eq!(server.sql("rialto_0", LISTENERS), "0", "nobody takes a lock that a pooler would lose");
    let (mut row, mut waits) = (agent("weather"), Vec::new());
    for version in 1..=20 {
        row.version = version;
        let begun = Instant::now();
        let made = here.put_agent(&row, (version > 1).then(|| version - 1)).await.unwrap();
        seen(&there, made).await;
        waits.push(begun.elapsed());
    }
    // The machine has other things to do: one in ten may be late.
    waits.sort_unstable();
    assert!(waits[17] < POLLED_WITHIN, "{waits:?}");
    assert_eq!(there.agents().await.unwrap(), [row]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_an_address_of_the_server_itself_a_change_is_acknowledged_when_the_others_have_heard_of_it() {
    let server = Server::start();
    let (direct, pooler) = (server.database(), PgBouncer::start(&server, 4));
    let url = pooler.around(&direct);
    let (here, there) = (open(&url, listening(&direct)).await, open(&url, listening(&direct)).await);
    let end = Instant::now() + Duration::from_secs(30);
    while server.sql("rialto_0", LISTENERS) != "2" {
        assert!(Instant::now() < end, "nobody listens");
    }
    let mut row = agent("weather");
    for version in 1..=50 {
        row.version = version;
        let made = here.put_agent(&row, (version > 1).then(|| version - 1)).await.unwrap();
        assert_eq!(there.generation(), made, "change {version}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_start_at_once_behind_a_pooler_make_the_tables_once() {
    let server = Server::start();
    let (direct, pooler) = (server.database(), PgBouncer::start(&server, 3));
    let url = pooler.around(&direct);
    let opened = (0..5).map(|_| {
        let url = url.clone();
        let config = Config { pooler: Some(true), ..Config::default() };
        tokio::spawn(async move { open(&url, config).await.touch().await.unwrap() })
    });
    for opened in opened.collect::<Vec<_>>() {
        opened.await.unwrap();
    }
    let held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
    assert_eq!(server.sql("rialto_0", held), "0", "no lock stays behind");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_addresses_that_lead_to_different_databases_are_refused() {
    let server = Server::start();
    let (direct, other) = (server.database(), server.database());
    let pooler = PgBouncer::start(&server, 4);
    let (url, config) = (StoreUrl::from(pooler.around(&direct)), listening(&other));
    let error = PostgresStore::open(&url, &config, parse_card).await.err().unwrap();
    let StoreError::Unavailable(cause) = error else { panic!("{error:?}") };
    assert!(cause.to_string().contains("lead to different databases"), "{cause}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_durability_behind_a_pooler_wants_a_server_that_waits_for_its_disk() {
    let server = Server::start();
    let direct = server.database();
    let pooler = PgBouncer::start(&server, 4);
    let url = pooler.around(&direct);
    let config = Config { durability: rialto_store::Durability::Full, ..Config::default() };
    open(&url, config.clone()).await.touch().await.unwrap();
    server.sql("rialto_0", "ALTER DATABASE rialto_0 SET synchronous_commit = off");
    let fresh = PgBouncer::start(&server, 4);
    let url = StoreUrl::from(fresh.around(&direct));
    let error = PostgresStore::open(&url, &config, parse_card).await.err().unwrap();
    let StoreError::Unavailable(cause) = error else { panic!("{error:?}") };
    assert!(cause.to_string().contains("synchronous_commit"), "{cause}");
}
