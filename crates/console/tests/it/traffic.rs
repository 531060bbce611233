//! What calls of the last hour were like, however many there were and however they came.

use rialto_model::{
    agent::AgentTrust,
    audit_event::{AuditEvent, AuditPhase, InvocationOutcome},
    clock::{Clock, SystemClock},
    message::Part,
    store::AuditFilter,
};
use rialto_testkit::{
    agents,
    peer::{ScriptedPeer, finished_with},
};
use serde_json::Value;

use crate::house::{ANN, House};

/// A house with one call on record, and that.
async fn house() -> (House, AuditEvent) {
    let house = House::new(ScriptedPeer::telling(finished_with(vec![Part::text("done")]))).await;
    let card = agents::card("Desk", vec![agents::skill("ask")]);
    house.register("https://desk.example.com", card, AgentTrust::Trusted).await;
    house.submit(ANN, "/factory/agents/desk/try/ask", "message=hello").await;
    house.until("/factory/audit", "post-verb").await;
    let filter = AuditFilter { limit: 10, ..Default::default() };
    let records = house.store.audit_records(&Default::default(), &filter).await.unwrap();
    let one =
        records.into_iter().map(|record| record.event).find(|event| event.phase == AuditPhase::PostVerb);
    (house, one.unwrap())
}

/// Has so many calls on record as having ended in each of the last minutes, the oldest first; every tenth of them failed.
async fn had(minutes: impl IntoIterator<Item = i64>) -> (House, Value) {
    let (house, one) = house().await;
    let now = SystemClock.now();
    let minutes: Vec<i64> = minutes.into_iter().collect();
    for (at, count) in (1..=minutes.len()).rev().zip(minutes) {
        let at = i64::try_from(at).unwrap();
        let many = (0..count).map(|n| {
            let mut event = one.clone();
            let ago = jiff::SignedDuration::from_millis(at * 60_000 - n * 57_000 / count);
            event.emitted_at = now.checked_sub(ago).unwrap();
            event.duration_ms = Some(u64::try_from(n * 7_919 % 300).unwrap());
            event.outcome =
                Some(if n % 10 == 0 { InvocationOutcome::Failed } else { InvocationOutcome::Completed });
            event
        });
        house.store.audit(many.collect()).await.unwrap();
    }
    let calls = house.ask(ANN, "GET", "/api/v1/overview", "").await.json()["calls"].clone();
    (house, calls)
}

#[track_caller]
fn near(calls: &Value, name: &str, expected: f64, share: f64) {
    let told = calls[name].as_f64().unwrap();
    let is_near = (told - expected).abs() <= expected * share;
    assert!(is_near, "{name} is {told}, not about {expected}: {calls}");
}

#[tokio::test]
async fn an_hour_is_counted_exactly_up_to_twenty_thousand_records() {
    let (_house, calls) = had([300; 50]).await;
    assert_eq!((calls["ended"].as_u64(), calls["failed"].as_u64()), (Some(15_001), Some(1_500)));
    assert_eq!((calls["isEstimated"].as_bool(), calls["isCut"].as_bool()), (Some(false), Some(false)));
}

#[tokio::test]
async fn a_busy_hour_is_counted_from_some_of_its_records() {
    let (house, calls) = had([600; 50]).await;
    near(&calls, "ended", 30_000.0, 0.05);
    near(&calls, "failed", 3_000.0, 0.1);
    near(&calls, "p50Ms", 150.0, 0.1);
    near(&calls, "p99Ms", 297.0, 0.1);
    assert_eq!((calls["isEstimated"].as_bool(), calls["isCut"].as_bool()), (Some(true), Some(false)));
    assert!(house.page("/factory").await.body.contains("≈ "));
}

#[tokio::test]
async fn a_burst_does_not_stand_for_the_quiet_before_it() {
    let quiet = std::iter::repeat_n(20, 48);
    let (_house, calls) = had(quiet.chain([24_000, 20])).await;
    near(&calls, "ended", 24_980.0, 0.03);
    let minutes: Vec<f64> =
        calls["perMinute"].as_array().unwrap().iter().map(|count| count.as_f64().unwrap()).collect();
    let loud = minutes.iter().filter(|count| **count > 1_000.0).count();
    assert!(loud <= 2, "only the burst is loud: {minutes:?}");
}
