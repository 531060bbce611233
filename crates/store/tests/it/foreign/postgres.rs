//! The store in a PostgreSQL database: every promise of the port, and what several processes at one database add to them.

use std::{collections::HashSet, error::Error as _, path::Path, sync::Arc, time::Duration};

use rialto_model::{
    audit_event::AuditPhase,
    ids::{Scope, TaskId},
    store::{AgentStore, AuditFilter, AuditStore, ChainVerification, Store, StoreError, TaskStore},
};
use rialto_store::{Config, PostgresStore, StoreUrl};
use rialto_testkit::{
    postgres::{PASSWORD, Server, server_file},
    store_suite::{accepted, agent, announced, at, entry, finished, head, parse_card},
};

/// Longer than anything here takes on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many say how far they have heard.
const FOLLOWERS: &str = "SELECT count(*) FROM pg_locks WHERE classid = 'generation'::regclass::oid";

/// What a process has said that has heard of nothing since the beginning.
const STANDS_STILL: &str =
    "SELECT pg_advisory_lock_shared('generation'::regclass::oid::int4, 0), pg_sleep(600)";

mod suite {
    use super::{Server, open};

    // Each promise has a database of its own.
    rialto_testkit::store_suite!(together server = Server::start(); async { Box::new(open(&server.database()).await) });
}

async fn try_open(url: &str) -> Result<PostgresStore, StoreError> {
    PostgresStore::open(&StoreUrl::from(url.to_owned()), &Config::default(), parse_card).await
}

async fn open(url: &str) -> PostgresStore {
    try_open(url).await.unwrap()
}

/// What the person who can mend it is told.
async fn told(url: &str) -> String {
    let error = try_open(url).await.err().unwrap();
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        told = format!("{told}: {next}");
        cause = next.source();
    }
    told
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let looking = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let found = tokio::time::timeout(PATIENCE, looking).await;
    assert!(found.is_ok(), "waited for this: {what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_process_changes_the_other_hears_of() {
    let mut server = Server::start();
    let url = server.database();
    let (here, there) = (open(&url).await, open(&url).await);
    let made = here.put_agent(&agent("weather"), None).await.unwrap();
    until("the other has heard of it", async || there.generation() == made).await;
    assert_eq!(there.agents().await.unwrap(), [agent("weather")]);

    // Also when the server was away meanwhile.
    server.stop();
    assert!(matches!(there.agents().await, Err(StoreError::Unavailable(_))));
    server.restart();
    until("it can be written again", async || here.touch().await.is_ok()).await;
    until("the other has heard of it", async || there.generation() == here.generation()).await;
    assert!(here.generation() > made);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_acknowledged_when_every_other_process_has_heard_of_it() {
    let server = Server::start();
    let url = server.database();
    let here = open(&url).await;
    let there = [open(&url).await, open(&url).await];
    until("all follow", async || server.sql("rialto_0", FOLLOWERS) == "3").await;
    let mut row = agent("weather");
    for version in 1..=100 {
        row.version = version;
        let made = here.put_agent(&row, (version > 1).then(|| version - 1)).await.unwrap();
        for other in &there {
            assert_eq!(other.generation(), made, "change {version}");
        }
    }
    let made = there[0].remove_agent(&row.id).await.unwrap().unwrap();
    assert_eq!((here.generation(), there[1].generation()), (made, made));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_stands_still_holds_up_one_change_and_not_the_next() {
    let server = Server::start();
    let url = server.database();
    let here = open(&url).await;
    until("it follows", async || server.sql("rialto_0", FOLLOWERS) == "1").await;
    let mut asleep = server.session("rialto_0", STANDS_STILL);
    until("somebody else is behind", async || server.sql("rialto_0", FOLLOWERS) == "2").await;
    let begun = std::time::Instant::now();
    here.touch().await.unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(2), "it is waited for");
    let begun = std::time::Instant::now();
    for _ in 0..3 {
        here.touch().await.unwrap();
    }
    assert!(begun.elapsed() < Duration::from_secs(2), "it is not waited for again");
    asleep.kill().unwrap();
    asleep.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_processes_write_one_trail_each_in_a_chain_of_its_own() {
    let server = Server::start();
    let url = server.database();
    let stores = [Arc::new(open(&url).await), Arc::new(open(&url).await), Arc::new(open(&url).await)];
    let callers = (0..48).map(|number: usize| {
        let store = Arc::clone(&stores[number % stores.len()]);
        tokio::spawn(async move {
            for call in 0..10 {
                let id = format!("task_{number}_{call}");
                let task = head(&id);
                store.open_task(&task, vec![announced(AuditPhase::PreVerb, "default", &id)]).await.unwrap();
                let begun = entry(&task, vec![accepted(&id)], at(1));
                let under_way = begun.head.clone();
                store.append(begun).await.unwrap();
                let mut end = entry(&under_way, vec![finished()], at(2));
                end.audit = vec![announced(AuditPhase::PostVerb, "default", &id)];
                store.append(end).await.unwrap();
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    for store in &stores {
        let verdict = store.verify_audit().await.unwrap();
        assert!(matches!(verdict, ChainVerification::Sound { records: 960, .. }), "{verdict:?}");
    }
    let chains = server.sql("rialto_0", "SELECT count(DISTINCT chain) FROM audit WHERE phase = 'post-verb'");
    assert!((3..=6).contains(&chains.parse::<usize>().unwrap()), "{chains}");
    assert_eq!(stores[0].events(&TaskId::from("task_7_7"), 0).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_opens_a_database_first_makes_its_tables_and_the_others_find_them() {
    let server = Server::start();
    let url = server.database();
    let opened = (0..6).map(|_| {
        let url = url.clone();
        tokio::spawn(async move { open(&url).await.touch().await.unwrap() })
    });
    let mut seen = HashSet::new();
    for opened in opened.collect::<Vec<_>>() {
        seen.insert(opened.await.unwrap());
    }
    assert_eq!(seen.len(), 6, "each change has a number of its own");

    // A later version has added something that this one does not know, and can be run beside it or taken back.
    server.sql("rialto_0", "INSERT INTO refinery_schema_history VALUES (998, 'later', '', '')");
    server
        .sql("rialto_0", "ALTER TABLE tasks ADD COLUMN later TEXT; ALTER TABLE audit ADD COLUMN later TEXT");
    let store = open(&url).await;
    let task = head("task_1");
    store.open_task(&task, vec![announced(AuditPhase::PreVerb, "default", "task_1")]).await.unwrap();
    store.append(entry(&task, vec![finished()], at(2))).await.unwrap();
    assert_eq!(store.events(&task.id, 0).await.unwrap().len(), 1);
    assert!(matches!(store.verify_audit().await.unwrap(), ChainVerification::Sound { records: 1, .. }));

    server.sql("rialto_0", "INSERT INTO refinery_schema_history VALUES (999, 'much later', '', '')");
    server.sql("rialto_0", "UPDATE schema_floor SET version = 999");
    let told = told(&url).await;
    assert!(told.contains("newer rialto; update this program"), "{told}");
}

#[tokio::test]
async fn a_check_lists_what_is_wrong_with_rows_and_seals() {
    let server = Server::start();
    let url = server.database();
    let store = open(&url).await;
    for id in ["task-1", "task-2", "task-3"] {
        let task = head(id);
        store.open_task(&task, vec![announced(AuditPhase::PreVerb, "default", id)]).await.unwrap();
        store.append(entry(&task, vec![accepted(&format!("r-{id}")), finished()], at(1))).await.unwrap();
    }
    let sound = store.check(&|_| {}).await.unwrap();
    assert_eq!((sound.findings(), sound.tasks, sound.audit_records), (&[][..], 3, 3));
    server.sql("rialto_0", "DELETE FROM tasks WHERE id = 'task-1'");
    server.sql("rialto_0", "UPDATE tasks SET version = 9 WHERE id = 'task-2'");
    server.sql("rialto_0", "UPDATE audit SET event = replace(event, 'task-3', 'task-X')");
    let report = store.check(&|_| {}).await.unwrap();
    let found: Vec<_> = report.findings().iter().map(|finding| finding.check).collect();
    assert_eq!(found, ["events", "events", "audit"], "{:?}", report.findings());
}

#[tokio::test]
async fn a_record_that_was_changed_or_filed_elsewhere_is_found() {
    let server = Server::start();
    let store = open(&server.database()).await;
    store.audit(vec![announced(AuditPhase::PreVerb, "default", "1"); 3]).await.unwrap();
    server.sql("rialto_0", "UPDATE audit SET caller = 'bob' WHERE record = 2");
    let hidden =
        ChainVerification::Broken { record: 2, why: "record 2 is not filed under what it says".to_owned() };
    assert_eq!(store.verify_audit().await.unwrap(), hidden);
    server.sql("rialto_0", "UPDATE audit SET event = replace(event, 'Oslo', 'Rome') WHERE record = 1");
    let changed =
        ChainVerification::Broken { record: 1, why: "record 1 is not as it was written".to_owned() };
    assert_eq!(store.verify_audit().await.unwrap(), changed);
    server.sql("rialto_0", "DELETE FROM audit WHERE record = 1");
    let missing = ChainVerification::Broken { record: 1, why: "record 1 is missing".to_owned() };
    assert_eq!(store.verify_audit().await.unwrap(), missing);
    server.sql("rialto_0", "TRUNCATE audit");
    let all = ChainVerification::Broken { record: 1, why: "record 1 and all up to 3 are missing".to_owned() };
    assert_eq!(store.verify_audit().await.unwrap(), all);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chain_that_was_removed_or_cut_short_as_a_whole_is_found() {
    let server = Server::start();
    let url = server.database();
    let (one, other) = (open(&url).await, open(&url).await);
    one.audit(vec![announced(AuditPhase::PreVerb, "default", "1"); 3]).await.unwrap();
    // The first record of the other says where the one ends.
    other.audit(vec![announced(AuditPhase::PreVerb, "default", "2"); 2]).await.unwrap();
    assert!(matches!(other.verify_audit().await.unwrap(), ChainVerification::Sound { records: 5, .. }));
    assert_eq!(other.audit_after(0, 10).await.unwrap().len(), 5, "nobody is shown cross-links");

    let broken = |why: &str| ChainVerification::Broken { record: 3, why: why.to_owned() };
    server.sql("rialto_0", "DELETE FROM audit WHERE chain = 0 AND number = 3");
    let cut = "UPDATE audit_chains SET last_number = 2, last_seal = (SELECT seal FROM audit WHERE number = 2 AND chain = 0)
        WHERE chain = 0";
    server.sql("rialto_0", cut);
    assert_eq!(
        other.verify_audit().await.unwrap(),
        broken("record 3 is missing, which other chains have seen")
    );
    server.sql("rialto_0", "DELETE FROM audit WHERE chain = 0; DELETE FROM audit_chains WHERE chain = 0");
    assert_eq!(
        other.verify_audit().await.unwrap(),
        broken("record 3 is missing, which other chains have seen")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_reads_along_misses_no_record_that_is_committed_late() {
    let server = Server::start();
    let url = server.database();
    let store = open(&url).await;
    store.audit(vec![announced(AuditPhase::PreVerb, "default", "1")]).await.unwrap();
    // Somebody has been given a number, and takes its time.
    let slow =
        "BEGIN; SELECT pg_advisory_xact_lock_shared((337044::bigint << 44) | last_value) FROM audit_records;
        SELECT nextval('audit_records'); SELECT pg_sleep(600)";
    let mut slow = server.session("rialto_0", slow);
    until("it has its number", async || {
        server.sql("rialto_0", "SELECT last_value FROM audit_records") == "2"
    })
    .await;
    store.audit(vec![announced(AuditPhase::PreVerb, "default", "3")]).await.unwrap();
    assert_eq!(store.last_audit_number().await.unwrap(), 1);
    assert_eq!(store.audit_after(0, 10).await.unwrap().len(), 1);
    slow.kill().unwrap();
    slow.wait().unwrap();
    server.sql("rialto_0", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()");
    until("the other record is seen", async || store.last_audit_number().await.unwrap() == 3).await;
    let read = store.audit_after(1, 10).await.unwrap();
    assert_eq!(read.iter().map(|record| (record.record, record.follows)).collect::<Vec<_>>(), [(3, 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_whose_chain_was_taken_goes_on_in_another() {
    let server = Server::start();
    let url = server.database();
    let store = open(&url).await;
    store.audit(vec![announced(AuditPhase::PreVerb, "default", "1")]).await.unwrap();
    server.sql("rialto_0", "UPDATE audit_chains SET used_at = 0");
    let other = open(&url).await;
    other.audit(vec![announced(AuditPhase::PreVerb, "default", "2")]).await.unwrap();
    store.audit(vec![announced(AuditPhase::PreVerb, "default", "3")]).await.unwrap();
    other.audit(vec![announced(AuditPhase::PreVerb, "default", "4")]).await.unwrap();
    let chains = "SELECT string_agg(chain::text, ',' ORDER BY record) FROM audit WHERE phase <> 'cross-link'";
    assert_eq!(server.sql("rialto_0", chains), "0,0,1,0");
    assert!(matches!(store.verify_audit().await.unwrap(), ChainVerification::Sound { records: 4, .. }));
}

#[tokio::test]
async fn arguments_that_postgresql_cannot_take_as_its_own_json_are_kept_and_found() {
    let server = Server::start();
    let store = open(&server.database()).await;
    let mut event = announced(AuditPhase::PreVerb, "default", "1");
    let mut verb = rialto_model::audit_event::SkillInvocation::clone(&event.verb);
    verb.args = rialto_model::json::Json::parse(r#"{"nul":"\u0000","half":"\ud800","big":1e999}"#).unwrap();
    event.verb = Arc::new(verb);
    store.audit(vec![event.clone()]).await.unwrap();
    let filter = AuditFilter { caller: Some("ann".into()), ..AuditFilter::newest(1) };
    let found = store.audit_records(&Scope::default(), &filter).await.unwrap();
    assert_eq!(found[0].event.verb.args.get(), event.verb.args.get());
    assert!(matches!(store.verify_audit().await.unwrap(), ChainVerification::Sound { .. }));
}

#[tokio::test]
async fn a_line_that_cannot_be_written_does_not_spoil_its_neighbours() {
    let server = Server::start();
    let store = open(&server.database()).await;
    let good: Vec<_> = (0..20).map(|n| head(&format!("task_{n}"))).collect();
    let bad = head("task_\0");
    let heads = good[..10].iter().chain([&bad]).chain(&good[10..]);
    let opened = futures::future::join_all(heads.map(|head| store.open_task(head, Vec::new()))).await;
    assert_eq!(opened.iter().filter(|outcome| outcome.is_ok()).count(), 20);
    assert!(opened[10].is_err());
}

#[tokio::test]
async fn what_is_wrong_is_told_with_its_fix_and_without_the_password() {
    let mut server = Server::start();
    let url = server.database();
    let cases = [
        (url.replace("rialto_0", "elsewhere"), "createdb"),
        (url.replace(PASSWORD, "wrong-hunter2hunter2"), "mend the user and the password"),
        (url.replace("postgres://rialto", "postgres://nobody"), "mend the user and the password"),
        (format!("{url}?sslmode=require"), "cannot be reached"),
    ];
    for (url, fix) in cases {
        let told = told(&url).await;
        assert!(told.contains(fix) && !told.contains("hunter2"), "{told}");
    }
    server.stop();
    let told = told(&url).await;
    assert!(told.contains("start it, or mend [store] url") && !told.contains("hunter2"), "{told}");
}

#[tokio::test]
async fn an_encrypted_way_is_checked_at_both_ends_of_its_name() {
    let keys = tempfile::tempdir().unwrap();
    let file =
        |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../http-client/tests/it/tls").join(name);
    let (cert, key) =
        (server_file(&file("server.pem"), keys.path()), server_file(&file("server.key"), keys.path()));
    let server = Server::start_with(&[
        "ssl=on".to_owned(),
        format!("ssl_cert_file={}", cert.display()),
        format!("ssl_key_file={}", key.display()),
    ]);
    let named = server.database().replace("127.0.0.1", "localhost");
    let trusting = format!("{named}?sslmode=require&sslrootcert={}", file("ca.pem").display());
    let store = open(&trusting).await;
    store.put_agent(&agent("weather"), None).await.unwrap();
    let by_encryption = "SELECT ssl, count(*) > 0 FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE application_name = 'rialto' GROUP BY ssl";
    assert_eq!(server.sql("rialto_0", by_encryption), "t|t");
    for wrong in [trusting.replace("ca.pem", "client-ca.pem"), format!("{named}?sslmode=require")] {
        let told = told(&wrong).await;
        assert!(told.contains("certificate") && !told.contains("hunter2"), "{told}");
    }
}
