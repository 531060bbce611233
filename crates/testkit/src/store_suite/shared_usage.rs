//! Promises about counts of calls and openings of circuit breakers.

use std::time::Duration;

use rialto_model::{
    ids::AgentId,
    store::{BreakerOpening, CallCount, OPENING_SHARED_FOR, Store, UsageReport},
};

use super::at;

fn report(second: i64, counts: &[(&str, i64, u64)], openings: Vec<BreakerOpening>) -> UsageReport {
    let first = at(0).as_second();
    let counts = counts.iter().map(|&(key, began_at, calls)| CallCount {
        key: key.to_owned(),
        began_at: first + began_at,
        ends_at: first + began_at + 60,
        calls,
    });
    UsageReport { counts: counts.collect(), openings, at: at(second) }
}

/// Counts of a window add up, and each report is answered with the totals of what it names.
pub async fn counts_of_calls_add_up(store: &dyn Store) {
    let first = report(1, &[("b", 0, 2), ("a", 0, 1)], Vec::new());
    assert_eq!(store.share_usage(&first).await.unwrap().totals, [2, 1]);
    let second = report(2, &[("a", 0, 5), ("c", 0, 0), ("b", 60, 4)], Vec::new());
    assert_eq!(store.share_usage(&second).await.unwrap().totals, [6, 0, 4], "windows are told apart");
    let asking = report(3, &[("a", 0, 0), ("b", 0, 0)], Vec::new());
    assert_eq!(store.share_usage(&asking).await.unwrap().totals, [6, 2], "asking adds nothing");
    let reports: Vec<_> = (0..20).map(|_| report(4, &[("a", 0, 1), ("b", 0, 1)], Vec::new())).collect();
    let shared = futures::future::join_all(reports.iter().map(|report| store.share_usage(report))).await;
    assert!(shared.iter().all(Result::is_ok), "{shared:?}");
    assert_eq!(store.share_usage(&asking).await.unwrap().totals, [26, 22], "none is lost");
    let later = report(61, &[("b", 60, 1)], Vec::new());
    assert_eq!(store.share_usage(&later).await.unwrap().totals, [5]);
    assert_eq!(store.share_usage(&asking).await.unwrap().totals, [0, 0], "windows that are over are removed");
}

/// The last opening of each agent's breaker is passed on for a while.
pub async fn openings_of_breakers_are_passed_on(store: &dyn Store) {
    let opening = |agent: &str, second: i64| BreakerOpening {
        agent: AgentId::from(agent),
        at: at(second),
        until: at(second + 5),
        reason: "connection refused".to_owned(),
    };
    let first = report(100, &[], vec![opening("desk", 100), opening("shop", 99)]);
    let mut shared = store.share_usage(&first).await.unwrap().openings;
    shared.sort_by(|one, other| one.agent.as_str().cmp(other.agent.as_str()));
    assert_eq!(shared, [opening("desk", 100), opening("shop", 99)]);
    // An older one that comes late changes nothing.
    store.share_usage(&report(101, &[], vec![opening("shop", 101), opening("desk", 98)])).await.unwrap();
    let after = at(100).checked_add(OPENING_SHARED_FOR).unwrap() + Duration::from_millis(500);
    let asking = UsageReport { counts: Vec::new(), openings: Vec::new(), at: after };
    assert_eq!(store.share_usage(&asking).await.unwrap().openings, [opening("shop", 101)]);
}
