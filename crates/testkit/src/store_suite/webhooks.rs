//! What a store promises about webhooks.

use rialto_model::{
    audit_event::AuditPhase,
    credential::SecretSource,
    ids::OrgId,
    store::{Store, StoreError},
    webhook::{DeliveryLease, DeliveryState, LeaseOutcome, Webhook},
};

use super::{announced, at};

/// What was announced before it was added is not news to it.
pub async fn a_webhook_comes_back_as_it_was_put_and_begins_at_the_end_of_the_trail(store: &dyn Store) {
    store.audit(vec![announced(AuditPhase::PreVerb, "default", "1"); 3]).await.unwrap();
    let generation = store.generation();
    assert_eq!(store.put_webhook(&webhook("hook_1")).await.unwrap(), generation + 1);
    let second = Webhook {
        phases: vec![AuditPhase::VerbError],
        secret: SecretSource::File("/run/key".to_owned()),
        allow_private: true,
        created_at: at(1),
        ..webhook("hook_0")
    };
    store.put_webhook(&second).await.unwrap();
    let begun = DeliveryState { handled: 3, ..DeliveryState::default() };
    let expected = [webhook("hook_1"), second].map(|hook| Webhook { standing: begun.clone(), ..hook });
    assert_eq!(store.webhooks().await.unwrap(), expected);
    assert!(matches!(store.put_webhook(&webhook("hook_1")).await, Err(StoreError::Taken(_))));
    assert_eq!(store.generation(), generation + 2);
}

/// The right to deliver lasts for a while, can be prolonged, and goes to another when it is over.
pub async fn a_webhook_is_delivered_to_by_one_at_a_time(store: &dyn Store) {
    store.put_webhook(&webhook("hook_1")).await.unwrap();
    let ours = LeaseOutcome::Ours(Box::new(webhook("hook_1")));
    for (holder, now, until, expected) in [
        ("a", 0, 10, ours.clone()),
        ("b", 5, 15, LeaseOutcome::Others),
        ("a", 8, 18, ours.clone()),
        ("b", 17, 27, LeaseOutcome::Others),
        ("b", 18, 28, ours.clone()),
        ("a", 19, 29, LeaseOutcome::Others),
        ("b", 20, 20, ours.clone()),
        ("a", 20, 30, ours),
    ] {
        let leased = store.lease_webhook("hook_1", &lease(holder, now, until)).await.unwrap();
        assert_eq!(leased, expected, "{holder} at {now}");
    }
    assert_eq!(store.lease_webhook("hook_2", &lease("a", 0, 10)).await.unwrap(), LeaseOutcome::Gone);
}

/// Whoever lost the right to deliver must not move it back.
pub async fn only_the_holder_of_a_webhook_writes_how_far_it_is(store: &dyn Store) {
    store.put_webhook(&webhook("hook_1")).await.unwrap();
    let standing = DeliveryState {
        handled: 7,
        delivered: 5,
        lost: 2,
        failures: 3,
        next_attempt_at: Some(at(9)),
        last_error: Some("HTTP status 500".to_owned()),
        disabled: Some("it is gone".to_owned()),
    };
    assert!(!store.record_webhook_delivery("hook_1", "a", &standing).await.unwrap());
    store.lease_webhook("hook_1", &lease("a", 0, 10)).await.unwrap();
    assert!(!store.record_webhook_delivery("hook_1", "b", &standing).await.unwrap());
    let generation = store.generation();
    assert!(store.record_webhook_delivery("hook_1", "a", &standing).await.unwrap());
    assert_eq!(store.generation(), generation);
    assert_eq!(store.webhooks().await.unwrap()[0].standing, standing);
}

/// Both are a change that others see.
pub async fn a_webhook_can_be_tried_again_and_removed(store: &dyn Store) {
    store.put_webhook(&webhook("hook_1")).await.unwrap();
    store.lease_webhook("hook_1", &lease("a", 0, 10)).await.unwrap();
    let failed = DeliveryState {
        handled: 7,
        failures: 3,
        next_attempt_at: Some(at(9)),
        last_error: Some("HTTP status 500".to_owned()),
        disabled: Some("it is gone".to_owned()),
        ..DeliveryState::default()
    };
    store.record_webhook_delivery("hook_1", "a", &failed).await.unwrap();
    let generation = store.generation();
    assert_eq!(store.retry_webhook("hook_1").await.unwrap(), Some(generation + 1));
    let mended = DeliveryState { failures: 0, next_attempt_at: None, disabled: None, ..failed };
    assert_eq!(store.webhooks().await.unwrap()[0].standing, mended);
    assert_eq!(store.remove_webhook("hook_1").await.unwrap(), Some(generation + 2));
    assert_eq!(store.remove_webhook("hook_1").await.unwrap(), None);
    assert_eq!(store.retry_webhook("hook_1").await.unwrap(), None);
    assert!(store.webhooks().await.unwrap().is_empty());
    assert!(!store.record_webhook_delivery("hook_1", "a", &mended).await.unwrap());
}

fn webhook(id: &str) -> Webhook {
    Webhook {
        id: id.to_owned(),
        org: OrgId::from("default"),
        url: "https://hooks.example/rialto".to_owned(),
        phases: vec![AuditPhase::PreVerb, AuditPhase::PostVerb],
        secret: SecretSource::Env("HOOK_KEY".to_owned()),
        allow_private: false,
        created_at: at(0),
        standing: DeliveryState::default(),
    }
}

fn lease(holder: &str, now: i64, until: i64) -> DeliveryLease {
    DeliveryLease { holder: holder.to_owned(), now: at(now), until: at(until) }
}
