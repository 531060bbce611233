//! Delivery to webhooks, in order.

use jiff::SignedDuration;
use rialto_model::{
    audit_event::AuditPhase,
    webhook::{DeliveryState, Webhook},
};
use rialto_store::SqliteStore;
use rialto_testkit::store_suite::{announced, parse_card};
use rialto_webhooks::signing_key::SigningKey;

use crate::{
    fixture::{Fixture, within},
    receiver::{ReceivedRequest, Receiver, Reply},
};

fn records(got: &[ReceivedRequest]) -> Vec<u64> {
    got.iter().map(ReceivedRequest::record).collect()
}

#[tokio::test]
async fn an_event_comes_signed_as_a_cloud_event() {
    let (fixture, receiver) = (Fixture::new(), Receiver::start().await);
    fixture.hook("hook_1", &receiver.url).await;
    let dispatcher = fixture.start();
    fixture.record(vec![announced(AuditPhase::PostVerb, "default", "task_1")]).await;
    let got = within(receiver.got(1)).await.remove(0);
    assert_eq!(got.header("content-type"), "application/cloudevents+json");
    let (id, timestamp) = (got.header("webhook-id"), got.header("webhook-timestamp"));
    let signed = SigningKey::parse(&SigningKey::encode(&[7; 32])).unwrap().sign(
        id,
        timestamp.parse().unwrap(),
        &got.body,
    );
    assert_eq!(got.header("webhook-signature"), signed);
    let event = got.json();
    let record = &fixture.store.audit_after(0, 1).await.unwrap()[0];
    assert_eq!(event["id"], id);
    assert_eq!(id, format!("1-{}", &record.seal[..12]));
    assert_eq!((&event["specversion"], &event["type"]), (&"1.0".into(), &"dev.rialto.verb.post".into()));
    assert_eq!(event["data"], serde_json::to_value(&record.event).unwrap());
    dispatcher.stop().await;
}

#[tokio::test]
async fn a_webhook_hears_in_order_what_it_wants_of_its_own_org() {
    let (fixture, receiver) = (Fixture::new(), Receiver::start().await);
    fixture.announce(2).await;
    let hook = fixture.hook("hook_0", "http://127.0.0.1:1/").await;
    fixture.store.remove_webhook("hook_0").await.unwrap();
    let picky = Webhook {
        id: "hook_1".to_owned(),
        url: receiver.url.clone(),
        phases: vec![AuditPhase::PreVerb, AuditPhase::VerbError],
        ..hook
    };
    fixture.store.put_webhook(&picky).await.unwrap();
    let dispatcher = fixture.start();
    let phases = [AuditPhase::PreVerb, AuditPhase::PostVerb, AuditPhase::VerbError];
    let mine = phases.map(|phase| announced(phase, "default", "task_1"));
    let theirs = phases.map(|phase| announced(phase, "other", "task_2"));
    for _ in 0..40 {
        fixture.record([&theirs[..], &mine].concat()).await;
    }
    let got = within(receiver.got(80)).await;
    let wanted = (0..40).flat_map(|turn| [2 + turn * 6 + 4, 2 + turn * 6 + 6]);
    assert_eq!(records(&got), wanted.collect::<Vec<u64>>());
    let standing = fixture.until("hook_1", |standing| standing.delivered == 80).await;
    assert_eq!((standing.lost, standing.failures), (0, 0));
    dispatcher.stop().await;
}

#[tokio::test]
async fn an_event_that_was_not_taken_comes_again_before_any_other() {
    let (fixture, receiver) = (Fixture::new(), Receiver::start().await);
    fixture.hook("hook_1", &receiver.url).await;
    receiver.next(&[Reply::Status(204), Reply::Status(500), Reply::Status(503), Reply::Status(400)]);
    let dispatcher = fixture.start();
    fixture.announce(4).await;
    let got = within(receiver.got(7)).await;
    assert_eq!(records(&got), [1, 2, 2, 2, 2, 3, 4]);
    assert_eq!(got[1].header("webhook-id"), got[4].header("webhook-id"));
    let standing = fixture.until("hook_1", |standing| standing.delivered == 4).await;
    assert_eq!(standing, DeliveryState { handled: 4, delivered: 4, ..DeliveryState::default() });
    dispatcher.stop().await;
}

#[tokio::test]
async fn killed_in_the_middle_nothing_is_lost_and_nothing_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let open = || SqliteStore::open(folder.path(), &rialto_store::Config::default(), parse_card).unwrap();
    let receiver = Receiver::start().await;
    {
        let fixture = Fixture::with(open());
        fixture.hook("hook_1", &receiver.url).await;
        receiver.next(&[Reply::Status(204); 100]);
        receiver.next(&[Reply::Hang]);
        let dispatcher = fixture.start();
        fixture.announce(200).await;
        within(receiver.got(101)).await;
        dispatcher.kill().await;
    }
    let fixture = Fixture::with(open());
    // Whoever died still holds the lease for a while.
    fixture.clock.set_forward(SignedDuration::from_mins(5));
    let dispatcher = fixture.start();
    fixture.announce(1).await;
    let standing = fixture.until("hook_1", |standing| standing.handled == 201).await;
    assert_eq!(standing.lost, 0);
    let got = records(&receiver.received());
    assert_eq!(got[..101], (1..=101).collect::<Vec<u64>>());
    let resumed = got[101];
    assert!(resumed <= 101, "{resumed}");
    assert_eq!(got[101..], (resumed..=201).collect::<Vec<u64>>());
    dispatcher.stop().await;
}

#[tokio::test]
async fn stopped_and_started_again_nothing_comes_twice() {
    let (fixture, receiver) = (Fixture::new(), Receiver::start().await);
    fixture.hook("hook_1", &receiver.url).await;
    for turn in 1..=3 {
        let dispatcher = fixture.start();
        fixture.announce(20).await;
        within(receiver.got(turn * 20)).await;
        dispatcher.stop().await;
    }
    assert_eq!(records(&receiver.received()), (1..=60).collect::<Vec<u64>>());
}

#[tokio::test]
async fn only_one_of_two_processes_delivers() {
    let (fixture, receiver) = (Fixture::new(), Receiver::start().await);
    fixture.hook("hook_1", &receiver.url).await;
    let both = [fixture.start(), fixture.start()];
    for _ in 0..20 {
        fixture.announce(5).await;
    }
    fixture.until("hook_1", |standing| standing.delivered == 100).await;
    assert_eq!(records(&receiver.received()), (1..=100).collect::<Vec<u64>>());
    for dispatcher in both {
        dispatcher.stop().await;
    }
}
