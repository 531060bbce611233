//! Watching what comes on record.

use std::{sync::Arc, time::Duration};

use rialto_model::{
    audit_event::{AuditEvent, AuditPhase, SkillInvocation},
    ids::OrgId,
    json::Json,
    store::SweepLimits,
};
use rialto_testkit::store_suite::{announced, at};
use rialto_webhooks::audit_feed::{AuditFeed, FeedItem, FeedSubscription};

use crate::fixture::{Fixture, within};

fn org() -> OrgId {
    OrgId::from("default")
}

async fn record(watch: &mut FeedSubscription) -> u64 {
    match within(watch.next()).await.unwrap() {
        FeedItem::Record(record) => record.record,
        FeedItem::Missed(missed) => panic!("{missed} were missed"),
    }
}

async fn flush_audit(fixture: &Fixture) {
    // Whoever verifies the trail sees all of it, so from then on it is there for everybody.
    fixture.store.verify_audit().await.unwrap();
}

#[tokio::test]
async fn a_watcher_sees_what_comes_and_only_of_its_org() {
    let fixture = Fixture::new();
    fixture.announce(2).await;
    flush_audit(&fixture).await;
    let feed = AuditFeed::new(fixture.store.clone());
    let mut watch = feed.subscribe(org(), None).await.unwrap();
    let mut other = feed.subscribe(OrgId::from("other"), None).await.unwrap();
    fixture.announce(1).await;
    fixture.record(vec![announced(AuditPhase::PreVerb, "other", "task_9")]).await;
    fixture.announce(1).await;
    assert_eq!((record(&mut watch).await, record(&mut watch).await), (3, 5));
    assert_eq!(record(&mut other).await, 4);
}

#[tokio::test]
async fn a_watcher_goes_on_where_it_was_without_a_gap_and_without_anything_twice() {
    let fixture = Fixture::new();
    let feed = AuditFeed::new(fixture.store.clone());
    fixture.announce(600).await;
    flush_audit(&fixture).await;
    let mut watch = feed.subscribe(org(), Some(10)).await.unwrap();
    for expected in 11..=300 {
        assert_eq!(record(&mut watch).await, expected);
    }
    fixture.announce(100).await;
    for expected in 301..=700 {
        assert_eq!(record(&mut watch).await, expected);
    }
    assert_eq!(feed.missed(), 0);
}

#[tokio::test]
async fn records_that_a_slow_subscription_misses_are_counted_and_reported() {
    let fixture = Fixture::new();
    let feed = AuditFeed::with_queue(fixture.store.clone(), 4);
    let mut slow = feed.subscribe(org(), None).await.unwrap();
    let mut quick = feed.subscribe(org(), None).await.unwrap();
    for expected in 1..=10 {
        fixture.announce(1).await;
        assert_eq!(record(&mut quick).await, expected);
    }
    assert_eq!(within(slow.next()).await.unwrap(), FeedItem::Missed(6));
    for expected in 7..=10 {
        assert_eq!(record(&mut slow).await, expected);
    }
    assert_eq!(feed.missed(), 6);
}

#[tokio::test]
async fn records_read_in_the_trail_are_not_missed_however_short_the_queue_is() {
    let fixture = Fixture::new();
    let feed = AuditFeed::with_queue(fixture.store.clone(), 4);
    fixture.announce(300).await;
    flush_audit(&fixture).await;
    let mut slow = feed.subscribe(org(), Some(0)).await.unwrap();
    let mut quick = feed.subscribe(org(), None).await.unwrap();
    assert_eq!(record(&mut slow).await, 1);
    for expected in 301..=320 {
        fixture.announce(1).await;
        assert_eq!(record(&mut quick).await, expected);
    }
    for expected in 2..=320 {
        assert_eq!(record(&mut slow).await, expected);
    }
    assert_eq!(feed.missed(), 0);
}

#[tokio::test]
async fn arguments_that_are_large_stay_in_the_trail() {
    let fixture = Fixture::new();
    let mut event = announced(AuditPhase::PreVerb, "default", "task_1");
    let args = Json::encode(&"x".repeat(100_000));
    event.verb = Arc::new(SkillInvocation { args, ..SkillInvocation::clone(&event.verb) });
    fixture.record(vec![event]).await;
    flush_audit(&fixture).await;
    let mut watch = AuditFeed::new(fixture.store.clone()).subscribe(org(), Some(0)).await.unwrap();
    let FeedItem::Record(record) = within(watch.next()).await.unwrap() else { panic!("it is there") };
    assert_eq!(record.event.verb.args.get(), r#"{"omittedBytes":100002}"#);
}

#[tokio::test]
async fn records_removed_meanwhile_are_reported_as_missed() {
    let fixture = Fixture::new();
    for second in 0..3 {
        let event =
            AuditEvent { emitted_at: at(second), ..announced(AuditPhase::PreVerb, "default", "task_1") };
        fixture.record(vec![event]).await;
    }
    fixture.store.sweep(SweepLimits { audit_before: Some(at(2)), ..SweepLimits::default() }).await.unwrap();
    let mut watch = AuditFeed::new(fixture.store.clone()).subscribe(org(), Some(0)).await.unwrap();
    assert_eq!(within(watch.next()).await.unwrap(), FeedItem::Missed(2));
    assert_eq!(record(&mut watch).await, 3);
}

#[tokio::test]
async fn a_subscription_after_the_last_one_has_ended_starts_a_new_reader() {
    let fixture = Fixture::new();
    let feed = AuditFeed::new(fixture.store.clone());
    let watch = feed.subscribe(org(), None).await.unwrap();
    assert!(feed.is_watched());
    drop(watch);
    assert!(!feed.is_watched());
    let mut again = feed.subscribe(org(), None).await.unwrap();
    fixture.announce(1).await;
    assert_eq!(record(&mut again).await, 1);
    let quiet = tokio::time::timeout(Duration::from_millis(250), again.next()).await;
    assert!(quiet.is_err(), "nothing comes twice");
}

#[tokio::test]
async fn nothing_is_read_without_a_subscription() {
    let fixture = Fixture::new();
    let feed = AuditFeed::new(fixture.store.clone());
    drop(feed.subscribe(org(), None).await.unwrap());
    drop(feed);
    // Whoever reads holds on to the store.
    let is_free = async {
        while Arc::strong_count(&fixture.store) > 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(is_free).await;
}

#[tokio::test]
async fn a_place_that_this_trail_never_had_is_its_end() {
    let fixture = Fixture::new();
    fixture.announce(1).await;
    flush_audit(&fixture).await;
    for place in [2, u64::MAX] {
        let mut watch = AuditFeed::new(fixture.store.clone()).subscribe(org(), Some(place)).await.unwrap();
        fixture.announce(1).await;
        assert!(record(&mut watch).await > 1);
    }
}
