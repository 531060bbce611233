//! Receivers that fail, hang, or have had enough.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rialto_model::{
    audit_event::{AuditEvent, AuditPhase},
    clock::Clock,
    credential::SecretSource,
    store::SweepLimits,
    webhook::Webhook,
};
use rialto_testkit::store_suite::announced;

use crate::{
    receiver::{Got, Receiver, Reply},
    world::{World, within},
};

fn records(receiver: &Receiver) -> Vec<u64> {
    receiver.so_far().iter().map(Got::record).collect()
}

#[tokio::test]
async fn a_receiver_that_asks_for_time_gets_it_unless_somebody_says_now() {
    let (world, receiver) = (World::new(), Receiver::start().await);
    world.hook("hook_1", &receiver.url).await;
    receiver.next(&[Reply::Header(429, "retry-after", "900")]);
    let at_work = world.deliver();
    world.announce(1).await;
    let standing = world.until("hook_1", |standing| standing.failures == 1).await;
    let wait = standing.next_attempt_at.unwrap().duration_since(now(&world));
    assert!(wait > SignedDuration::from_mins(14) && wait <= SignedDuration::from_mins(15), "{wait}");
    assert!(standing.last_error.unwrap().contains("429"));
    world.store.retry_webhook("hook_1").await.unwrap();
    world.until("hook_1", |standing| standing.delivered == 1).await;
    at_work.stop().await;
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_left_alone_until_it_is_mended() {
    let (world, receiver) = (World::new(), Receiver::start().await);
    world.hook("hook_1", &receiver.url).await;
    receiver.next(&[Reply::Status(410)]);
    let at_work = world.deliver();
    world.announce(2).await;
    let standing = world.until("hook_1", |standing| standing.disabled.is_some()).await;
    assert_eq!((standing.handled, standing.delivered), (0, 0));
    assert_eq!(records(&receiver), [1]);
    world.store.retry_webhook("hook_1").await.unwrap();
    world.until("hook_1", |standing| standing.delivered == 2).await;
    assert_eq!(records(&receiver), [1, 1, 2]);
    at_work.stop().await;
}

#[tokio::test]
async fn what_is_old_is_given_up_while_a_receiver_fails_and_that_is_counted() {
    let (world, receiver) = (World::new(), Receiver::start().await);
    world.hook("hook_1", &receiver.url).await;
    receiver.otherwise(Reply::Status(500));
    let at_work = world.deliver();
    world.announce(3).await;
    world.until("hook_1", |standing| standing.failures > 1).await;
    world.clock.set_forward(SignedDuration::from_hours(25));
    world.announce(1).await;
    let standing = world.until("hook_1", |standing| standing.lost == 3).await;
    assert_eq!((standing.handled, standing.delivered), (3, 0));
    receiver.otherwise(Reply::Status(200));
    let standing = world.until("hook_1", |standing| standing.delivered == 1).await;
    assert_eq!((standing.handled, standing.lost), (4, 3));
    at_work.stop().await;
}

#[tokio::test]
async fn what_was_swept_before_it_could_be_told_is_counted() {
    let (world, receiver) = (World::new(), Receiver::start().await);
    world.hook("hook_1", &receiver.url).await;
    world.announce(3).await;
    let moment = now(&world);
    let later = AuditEvent { emitted_at: moment, ..announced(AuditPhase::PreVerb, "default", "task_2") };
    world.record(vec![later]).await;
    world.store.sweep(SweepLimits { audit_before: Some(moment), ..SweepLimits::default() }).await.unwrap();
    let at_work = world.deliver();
    let standing = world.until("hook_1", |standing| standing.delivered == 1).await;
    assert_eq!((standing.handled, standing.lost), (4, 3));
    assert_eq!(records(&receiver), [4]);
    at_work.stop().await;
}

#[tokio::test]
async fn a_receiver_that_hangs_keeps_nobody_else_waiting() {
    let (world, slow, quick) = (World::new(), Receiver::start().await, Receiver::start().await);
    world.hook("hook_1", &slow.url).await;
    world.hook("hook_2", &quick.url).await;
    slow.otherwise(Reply::Hang);
    let at_work = world.deliver();
    world.announce(1).await;
    within(slow.got(1)).await;
    world.announce(30).await;
    world.until("hook_2", |standing| standing.delivered == 31).await;
    assert_eq!(records(&slow), [1]);
    at_work.stop().await;
}

#[tokio::test]
async fn a_receiver_that_takes_too_long_is_tried_again() {
    let (mut world, receiver) = (World::new(), Receiver::start().await);
    world.timeout = Duration::from_millis(50);
    world.hook("hook_1", &receiver.url).await;
    receiver.next(&[Reply::Hang]);
    let at_work = world.deliver();
    world.announce(2).await;
    world.until("hook_1", |standing| standing.delivered == 2).await;
    assert_eq!(records(&receiver), [1, 1, 2]);
    at_work.stop().await;
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (world, receiver, other) = (World::new(), Receiver::start().await, Receiver::start().await);
    world.hook("hook_1", &receiver.url).await;
    let elsewhere: &'static str = other.url.clone().leak();
    receiver.next(&[Reply::Header(307, "location", elsewhere)]);
    let at_work = world.deliver();
    world.announce(1).await;
    world.until("hook_1", |standing| standing.delivered == 1).await;
    assert_eq!((records(&receiver), records(&other)), (vec![1, 1], vec![]));
    at_work.stop().await;
}

#[tokio::test]
async fn private_addresses_and_missing_keys_are_told_to_whoever_looks() {
    let (world, receiver) = (World::new(), Receiver::start().await);
    let hook = world.hook("hook_0", &receiver.url).await;
    let public_only = Webhook { id: "hook_1".into(), allow_private: false, ..hook.clone() };
    let keyless = Webhook { id: "hook_2".into(), secret: SecretSource::Env("MISSING".into()), ..hook };
    for hook in [public_only, keyless] {
        world.store.put_webhook(&hook).await.unwrap();
    }
    world.store.remove_webhook("hook_0").await.unwrap();
    let at_work = world.deliver();
    world.announce(1).await;
    for (id, word) in [("hook_1", "loopback"), ("hook_2", "MISSING")] {
        let standing = world.until(id, |standing| standing.failures > 0).await;
        let told = standing.last_error.unwrap();
        assert!(told.contains(word), "{told}");
    }
    assert!(records(&receiver).is_empty());
    at_work.stop().await;
}

#[tokio::test]
async fn a_webhook_that_is_added_or_removed_meanwhile_is_noticed() {
    let (world, receiver) = (World::new(), Receiver::start().await);
    let at_work = world.deliver();
    world.hook("hook_1", &receiver.url).await;
    world.announce(1).await;
    world.until("hook_1", |standing| standing.delivered == 1).await;
    world.store.remove_webhook("hook_1").await.unwrap();
    world.announce(1).await;
    world.hook("hook_2", &receiver.url).await;
    world.announce(1).await;
    world.until("hook_2", |standing| standing.delivered == 1).await;
    assert_eq!(records(&receiver), [1, 3]);
    at_work.stop().await;
}

fn now(world: &World) -> Timestamp {
    world.clock.now()
}
