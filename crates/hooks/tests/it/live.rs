//! Watching what comes on record.

use std::{sync::Arc, time::Duration};

use rialto_hooks::live::{Live, News, Watch};
use rialto_model::{
    audit_event::{AuditEvent, AuditPhase, SkillInvocation},
    ids::OrgId,
    json::Json,
    store::SweepLimits,
};
use rialto_testkit::store_suite::{announced, at};

use crate::world::{World, within};

fn org() -> OrgId {
    OrgId::from("default")
}

async fn record(watch: &mut Watch) -> u64 {
    match within(watch.next()).await.unwrap() {
        News::Record(record) => record.record,
        News::Missed(missed) => panic!("{missed} were missed"),
    }
}

async fn on_record(world: &World) {
    // Whoever verifies the trail sees all of it, so from then on it is there for everybody.
    world.store.verify_audit().await.unwrap();
}

#[tokio::test]
async fn a_watcher_sees_what_comes_and_only_of_its_org() {
    let world = World::new();
    world.announce(2).await;
    on_record(&world).await;
    let live = Live::new(world.store.clone());
    let mut watch = live.watch(org(), None).await.unwrap();
    let mut other = live.watch(OrgId::from("other"), None).await.unwrap();
    world.announce(1).await;
    world.record(vec![announced(AuditPhase::PreVerb, "other", "task_9")]).await;
    world.announce(1).await;
    assert_eq!((record(&mut watch).await, record(&mut watch).await), (3, 5));
    assert_eq!(record(&mut other).await, 4);
}

#[tokio::test]
async fn a_watcher_goes_on_where_it_was_without_a_gap_and_without_anything_twice() {
    let world = World::new();
    let live = Live::new(world.store.clone());
    world.announce(600).await;
    on_record(&world).await;
    let mut watch = live.watch(org(), Some(10)).await.unwrap();
    for expected in 11..=300 {
        assert_eq!(record(&mut watch).await, expected);
    }
    world.announce(100).await;
    for expected in 301..=700 {
        assert_eq!(record(&mut watch).await, expected);
    }
    assert_eq!(live.missed(), 0);
}

#[tokio::test]
async fn what_a_slow_watcher_misses_is_counted_and_told() {
    let world = World::new();
    let live = Live::with_room(world.store.clone(), 4);
    let mut slow = live.watch(org(), None).await.unwrap();
    let mut quick = live.watch(org(), None).await.unwrap();
    for expected in 1..=10 {
        world.announce(1).await;
        assert_eq!(record(&mut quick).await, expected);
    }
    assert_eq!(within(slow.next()).await.unwrap(), News::Missed(6));
    for expected in 7..=10 {
        assert_eq!(record(&mut slow).await, expected);
    }
    assert_eq!(live.missed(), 6);
}

#[tokio::test]
async fn what_was_read_in_the_trail_is_not_missed_however_short_the_queue_is() {
    let world = World::new();
    let live = Live::with_room(world.store.clone(), 4);
    world.announce(300).await;
    on_record(&world).await;
    let mut slow = live.watch(org(), Some(0)).await.unwrap();
    let mut quick = live.watch(org(), None).await.unwrap();
    assert_eq!(record(&mut slow).await, 1);
    for expected in 301..=320 {
        world.announce(1).await;
        assert_eq!(record(&mut quick).await, expected);
    }
    for expected in 2..=320 {
        assert_eq!(record(&mut slow).await, expected);
    }
    assert_eq!(live.missed(), 0);
}

#[tokio::test]
async fn arguments_that_are_large_stay_in_the_trail() {
    let world = World::new();
    let mut event = announced(AuditPhase::PreVerb, "default", "task_1");
    let args = Json::encode(&"x".repeat(100_000));
    event.verb = Arc::new(SkillInvocation { args, ..SkillInvocation::clone(&event.verb) });
    world.record(vec![event]).await;
    on_record(&world).await;
    let mut watch = Live::new(world.store.clone()).watch(org(), Some(0)).await.unwrap();
    let News::Record(record) = within(watch.next()).await.unwrap() else { panic!("it is there") };
    assert_eq!(record.event.verb.args.get(), r#"{"omittedBytes":100002}"#);
}

#[tokio::test]
async fn what_was_swept_since_is_told_as_missed() {
    let world = World::new();
    for second in 0..3 {
        let event =
            AuditEvent { emitted_at: at(second), ..announced(AuditPhase::PreVerb, "default", "task_1") };
        world.record(vec![event]).await;
    }
    world.store.sweep(SweepLimits { audit_before: Some(at(2)), ..SweepLimits::default() }).await.unwrap();
    let mut watch = Live::new(world.store.clone()).watch(org(), Some(0)).await.unwrap();
    assert_eq!(within(watch.next()).await.unwrap(), News::Missed(2));
    assert_eq!(record(&mut watch).await, 3);
}

#[tokio::test]
async fn whoever_comes_after_the_last_one_has_left_begins_anew() {
    let world = World::new();
    let live = Live::new(world.store.clone());
    let watch = live.watch(org(), None).await.unwrap();
    assert!(live.is_watched());
    drop(watch);
    assert!(!live.is_watched());
    let mut again = live.watch(org(), None).await.unwrap();
    world.announce(1).await;
    assert_eq!(record(&mut again).await, 1);
    let quiet = tokio::time::timeout(Duration::from_millis(250), again.next()).await;
    assert!(quiet.is_err(), "nothing comes twice");
}

#[tokio::test]
async fn nothing_is_read_once_nobody_watches() {
    let world = World::new();
    let live = Live::new(world.store.clone());
    drop(live.watch(org(), None).await.unwrap());
    drop(live);
    // Whoever reads holds on to the store.
    let is_free = async {
        while Arc::strong_count(&world.store) > 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(is_free).await;
}

#[tokio::test]
async fn a_place_that_this_trail_never_had_is_its_end() {
    let world = World::new();
    world.announce(1).await;
    on_record(&world).await;
    for place in [2, u64::MAX] {
        let mut watch = Live::new(world.store.clone()).watch(org(), Some(place)).await.unwrap();
        world.announce(1).await;
        assert!(record(&mut watch).await > 1);
    }
}
