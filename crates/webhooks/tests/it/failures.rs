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
    fixture::{Fixture, within},
    receiver::{ReceivedRequest, Receiver, Reply},
};

fn records(receiver: &Receiver) -> Vec<u64> {
    receiver.received().iter().map(ReceivedRequest::record).collect()
}

#[tokio::test]
async fn a_receiver_that_asks_for_a_pause_gets_it_unless_a_retry_is_requested() {
    let (fixture, receiver) = (Fixture::new(), Receiver::start().await);
    fixture.hook("hook_1", &receiver.url).await;
    receiver.next(&[Reply::Header(429, "retry-after", "900")]);
    let dispatcher = fixture.start();
    fixture.announce(1).await;
    let standing = fixture.until("hook_1", |standing| standing.failures == 1).await;
    let wait = standing.next_attempt_at.unwrap().duration_since(now(&fixture));
    assert!(wait > SignedDuration::from_mins(14) && wait <= SignedDuration::from_mins(15), "{wait}");
    assert!(standing.last_error.unwrap().contains("429"));
    fixture.store.retry_webhook("hook_1").await.unwrap();
    fixture.until("hook_1", |standing| standing.delivered == 1).await;
    dispatcher.stop().await;
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_left_alone_until_it_is_mended() {
    let (fixture, receiver) = (Fixture::new(), Receiver::start().await);
    fixture.hook("hook_1", &receiver.url).await;
    receiver.next(&[Reply::Status(410)]);
    let dispatcher = fixture.start();
    fixture.announce(2).await;
    let standing = fixture.until("hook_1", |standing| standing.disabled.is_some()).await;
    assert_eq!((standing.handled, standing.delivered), (0, 0));
    assert_eq!(records(&receiver), [1]);
    fixture.store.retry_webhook("hook_1").await.unwrap();
    fixture.until("hook_1", |standing| standing.delivered == 2).await;
    assert_eq!(records(&receiver), [1, 1, 2]);
    dispatcher.stop().await;
}

#[tokio::test]
async fn old_events_are_dropped_while_a_receiver_fails_and_counted() {
    let (fixture, receiver) = (Fixture::new(), Receiver::start().await);
    fixture.hook("hook_1", &receiver.url).await;
    receiver.otherwise(Reply::Status(500));
    let dispatcher = fixture.start();
    fixture.announce(3).await;
    fixture.until("hook_1", |standing| standing.failures > 1).await;
    fixture.clock.set_forward(SignedDuration::from_hours(25));
    fixture.announce(1).await;
    let standing = fixture.until("hook_1", |standing| standing.lost == 3).await;
    assert_eq!((standing.handled, standing.delivered), (3, 0));
    receiver.otherwise(Reply::Status(200));
    let standing = fixture.until("hook_1", |standing| standing.delivered == 1).await;
    assert_eq!((standing.handled, standing.lost), (4, 3));
    dispatcher.stop().await;
}

#[tokio::test]
async fn records_removed_before_delivery_are_counted() {
    let (fixture, receiver) = (Fixture::new(), Receiver::start().await);
    fixture.hook("hook_1", &receiver.url).await;
    fixture.announce(3).await;
    let moment = now(&fixture);
    let later = AuditEvent { emitted_at: moment, ..announced(AuditPhase::PreVerb, "default", "task_2") };
    fixture.record(vec![later]).await;
    fixture.store.sweep(SweepLimits { audit_before: Some(moment), ..SweepLimits::default() }).await.unwrap();
    let dispatcher = fixture.start();
    let standing = fixture.until("hook_1", |standing| standing.delivered == 1).await;
    assert_eq!((standing.handled, standing.lost), (4, 3));
    assert_eq!(records(&receiver), [4]);
    dispatcher.stop().await;
}

#[tokio::test]
async fn a_receiver_that_hangs_delays_no_other() {
    let (fixture, slow, quick) = (Fixture::new(), Receiver::start().await, Receiver::start().await);
    fixture.hook("hook_1", &slow.url).await;
    fixture.hook("hook_2", &quick.url).await;
    slow.otherwise(Reply::Hang);
    let dispatcher = fixture.start();
    fixture.announce(1).await;
    within(slow.got(1)).await;
    fixture.announce(30).await;
    fixture.until("hook_2", |standing| standing.delivered == 31).await;
    assert_eq!(records(&slow), [1]);
    dispatcher.stop().await;
}

#[tokio::test]
async fn a_receiver_that_takes_too_long_is_tried_again() {
    let (mut fixture, receiver) = (Fixture::new(), Receiver::start().await);
    fixture.timeout = Duration::from_millis(50);
    fixture.hook("hook_1", &receiver.url).await;
    receiver.next(&[Reply::Hang]);
    let dispatcher = fixture.start();
    fixture.announce(2).await;
    fixture.until("hook_1", |standing| standing.delivered == 2).await;
    assert_eq!(records(&receiver), [1, 1, 2]);
    dispatcher.stop().await;
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (fixture, receiver, other) = (Fixture::new(), Receiver::start().await, Receiver::start().await);
    fixture.hook("hook_1", &receiver.url).await;
    let elsewhere: &'static str = other.url.clone().leak();
    receiver.next(&[Reply::Header(307, "location", elsewhere)]);
    let dispatcher = fixture.start();
    fixture.announce(1).await;
    fixture.until("hook_1", |standing| standing.delivered == 1).await;
    assert_eq!((records(&receiver), records(&other)), (vec![1, 1], vec![]));
    dispatcher.stop().await;
}

#[tokio::test]
async fn private_addresses_and_missing_keys_are_reported_in_the_state() {
    let (fixture, receiver) = (Fixture::new(), Receiver::start().await);
    let hook = fixture.hook("hook_0", &receiver.url).await;
    let public_only = Webhook { id: "hook_1".into(), allow_private: false, ..hook.clone() };
    let keyless = Webhook { id: "hook_2".into(), secret: SecretSource::Env("MISSING".into()), ..hook };
    for hook in [public_only, keyless] {
        fixture.store.put_webhook(&hook).await.unwrap();
    }
    fixture.store.remove_webhook("hook_0").await.unwrap();
    let dispatcher = fixture.start();
    fixture.announce(1).await;
    for (id, word) in [("hook_1", "loopback"), ("hook_2", "MISSING")] {
        let standing = fixture.until(id, |standing| standing.failures > 0).await;
        let told = standing.last_error.unwrap();
        assert!(told.contains(word), "{told}");
    }
    assert!(records(&receiver).is_empty());
    dispatcher.stop().await;
}

#[tokio::test]
async fn a_webhook_that_is_added_or_removed_meanwhile_is_noticed() {
    let (fixture, receiver) = (Fixture::new(), Receiver::start().await);
    let dispatcher = fixture.start();
    fixture.hook("hook_1", &receiver.url).await;
    fixture.announce(1).await;
    fixture.until("hook_1", |standing| standing.delivered == 1).await;
    fixture.store.remove_webhook("hook_1").await.unwrap();
    fixture.announce(1).await;
    fixture.hook("hook_2", &receiver.url).await;
    fixture.announce(1).await;
    fixture.until("hook_2", |standing| standing.delivered == 1).await;
    assert_eq!(records(&receiver), [1, 3]);
    dispatcher.stop().await;
}

fn now(fixture: &Fixture) -> Timestamp {
    fixture.clock.now()
}
