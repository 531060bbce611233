//! What a store promises about the audit trail, and about forgetting.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use rialto_model::{
    audit_event::{AuditEvent, AuditPhase, InvocationOutcome, SkillInvocation},
    ids::{AgentId, Scope, TaskId},
    json::Json,
    store::{
        AuditFilter, AuditOutcome, ChainVerification, Store, SweepLimits, SweepReport, TaskAppend, TaskFilter,
    },
};

use super::{accepted, announced, at, entry, finished, head, run};

/// Newest is what was written last.
pub async fn the_audit_trail_comes_newest_first_and_stays_in_its_org(store: &dyn Store) {
    let ours: Vec<_> = ["1", "2", "3"].map(|task| announced(AuditPhase::PreVerb, "default", task)).into();
    store.audit(ours[..2].to_vec()).await.unwrap();
    store.audit(vec![announced(AuditPhase::PreVerb, "other", "9")]).await.unwrap();
    store.audit(ours[2..].to_vec()).await.unwrap();
    assert_eq!(trail(store, &AuditFilter::newest(2)).await, [ours[2].clone(), ours[1].clone()]);
}

/// Both with the opening and with the events.
pub async fn what_the_bus_announces_is_written_with_the_task(store: &dyn Store) {
    let task = head("task_1");
    let before = announced(AuditPhase::PreVerb, "default", "task_1");
    let after = announced(AuditPhase::PostVerb, "default", "task_1");
    store.open_task(&task, vec![before.clone()]).await.unwrap();
    let end = TaskAppend { audit: vec![after.clone()], ..entry(&task, vec![finished()], at(1)) };
    store.append(end).await.unwrap();
    assert_eq!(trail(store, &AuditFilter::newest(10)).await, [after, before]);
}

/// By time, by whose and about what, and by where the last page ended.
pub async fn the_audit_trail_can_be_narrowed(store: &dyn Store) {
    let [denied, completed, failed] = three_outcomes(store).await;
    let all = || AuditFilter::newest(10);
    let cases = [
        (AuditFilter { since: Some(at(10)), ..all() }, vec![&failed, &completed]),
        (AuditFilter { until: Some(at(10)), ..all() }, vec![&denied]),
        (AuditFilter { task: Some(TaskId::from("2")), ..all() }, vec![&completed]),
        (AuditFilter { caller: Some("ann".into()), ..all() }, vec![&failed, &completed, &denied]),
        (AuditFilter { caller: Some("bob".into()), ..all() }, vec![]),
        (AuditFilter { agent: Some(AgentId::from("agt_weather")), limit: 1, ..all() }, vec![&failed]),
        (AuditFilter { agent: Some(AgentId::from("agt_other")), ..all() }, vec![]),
        (AuditFilter { before: Some(3), ..all() }, vec![&completed, &denied]),
        (AuditFilter { admin: true, ..all() }, vec![]),
    ];
    for (filter, expected) in cases {
        let found = trail(store, &filter).await;
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{filter:?}");
        assert!(found.iter().all(|event| filter.fits(event)), "{filter:?}");
    }
}

/// To administrative operations, which are records like all others.
pub async fn the_audit_trail_can_be_narrowed_to_administration(store: &dyn Store) {
    three_outcomes(store).await;
    let mut operation = announced(AuditPhase::Admin, "default", "");
    operation.outcome = Some(InvocationOutcome::Completed);
    store.audit(vec![operation.clone()]).await.unwrap();
    let filter = AuditFilter { admin: true, ..AuditFilter::newest(10) };
    assert_eq!(trail(store, &filter).await, [operation]);
    assert_eq!(trail(store, &AuditFilter::newest(10)).await.len(), 4);
}

/// What was refused, what failed, and what went well.
pub async fn the_audit_trail_can_be_narrowed_to_an_outcome(store: &dyn Store) {
    let [denied, completed, failed] = three_outcomes(store).await;
    let cases = [
        (AuditOutcome::Denied, denied),
        (AuditOutcome::Completed, completed),
        (AuditOutcome::Failed, failed),
    ];
    for (outcome, event) in cases {
        let filter = AuditFilter { outcome: Some(outcome), ..AuditFilter::newest(10) };
        let all = trail(store, &AuditFilter::newest(10)).await;
        assert_eq!(trail(store, &filter).await, std::slice::from_ref(&event));
        assert_eq!(all.into_iter().filter(|event| filter.fits(event)).collect::<Vec<_>>(), [event]);
    }
}

/// As it was written, and the last seal is the last record's. Whoever looks on sees how far it is.
pub async fn the_audit_trail_can_be_verified(store: &dyn Store) {
    assert!(matches!(
        store.verify_audit().await.unwrap(),
        ChainVerification::Sound { records: 0, last: 0, .. }
    ));
    for task in ["1", "2", "3"] {
        store.audit(vec![announced(AuditPhase::PreVerb, "default", task)]).await.unwrap();
    }
    let newest = store.audit_records(&Scope::default(), &AuditFilter::newest(1)).await.unwrap();
    let sound = ChainVerification::Sound { records: 3, last: 3, seal: newest[0].seal.clone() };
    assert_eq!(store.verify_audit().await.unwrap(), sound);
    let reached = Arc::<AtomicU64>::default();
    assert_eq!(store.verify_audit_with_progress(Arc::clone(&reached)).await.unwrap(), sound);
    assert_eq!(reached.load(Ordering::Relaxed), 3);
}

/// What is left can still be verified, and goes on where it was.
pub async fn the_beginning_of_the_audit_trail_can_be_forgotten(store: &dyn Store) {
    for second in 0..4 {
        let event = AuditEvent { emitted_at: at(second), ..announced(AuditPhase::PreVerb, "default", "1") };
        store.audit(vec![event]).await.unwrap();
    }
    let sweep = |second| SweepLimits { audit_before: Some(at(second)), ..SweepLimits::default() };
    assert_eq!(store.sweep(sweep(2)).await.unwrap(), SweepReport { audit: 2, tasks: 0 });
    assert_eq!(store.sweep(sweep(2)).await.unwrap(), SweepReport::default());
    assert!(matches!(
        store.verify_audit().await.unwrap(),
        ChainVerification::Sound { records: 2, last: 4, .. }
    ));
    assert_eq!(store.sweep(sweep(9)).await.unwrap(), SweepReport { audit: 2, tasks: 0 });
    store.audit(vec![announced(AuditPhase::PreVerb, "default", "2")]).await.unwrap();
    assert!(matches!(
        store.verify_audit().await.unwrap(),
        ChainVerification::Sound { records: 1, last: 5, .. }
    ));
}

/// From the one behind any record, so many at a time, in the order they were written.
pub async fn the_audit_trail_can_be_read_forwards_over_all_orgs(store: &dyn Store) {
    assert_eq!(store.last_audit_number().await.unwrap(), 0);
    for (org, task) in [("default", "1"), ("other", "2"), ("default", "3")] {
        store.audit(vec![announced(AuditPhase::PreVerb, org, task)]).await.unwrap();
    }
    assert_eq!(forwards(store, 0, 10).await, [(1, "1".into()), (2, "2".into()), (3, "3".into())]);
    assert_eq!(forwards(store, 1, 1).await, [(2, "2".into())]);
    assert!(forwards(store, 3, 10).await.is_empty());
    assert!(forwards(store, u64::MAX, 10).await.is_empty());
    assert_eq!(store.last_audit_number().await.unwrap(), 3);
    let newest = store.audit_records(&Scope::default(), &AuditFilter::newest(1)).await.unwrap();
    assert_eq!(store.audit_after(2, 10).await.unwrap(), newest);
}

/// So that whoever reads along needs no more memory than one record and a little.
pub async fn large_records_are_read_a_few_at_a_time(store: &dyn Store) {
    for task in ["1", "2", "3"] {
        let mut event = announced(AuditPhase::PreVerb, "default", task);
        let args = Json::encode(&"x".repeat(3 * 1024 * 1024));
        event.verb = Arc::new(SkillInvocation { args, ..SkillInvocation::clone(&event.verb) });
        store.audit(vec![event]).await.unwrap();
    }
    for record in 0..3 {
        assert_eq!(forwards(store, record, 10).await, [(record + 1, (record + 1).to_string())]);
    }
}

/// Whoever has not read it in time can tell how much is missing.
pub async fn what_was_swept_shows_as_a_gap(store: &dyn Store) {
    for second in 0..3 {
        let event = AuditEvent { emitted_at: at(second), ..announced(AuditPhase::PreVerb, "default", "1") };
        store.audit(vec![event]).await.unwrap();
    }
    store.sweep(SweepLimits { audit_before: Some(at(2)), ..SweepLimits::default() }).await.unwrap();
    assert_eq!(forwards(store, 0, 10).await, [(3, "1".into())]);
}

/// Those that ended long ago, with their events; not those that are still open.
pub async fn old_tasks_can_be_forgotten(store: &dyn Store) {
    run(store, &head("task_1"), vec![accepted("r-1"), finished()]).await;
    run(store, &head("task_2"), vec![accepted("r-2")]).await;
    let all = TaskFilter { limit: 10, ..TaskFilter::default() };
    assert_eq!(store.tasks(&Scope::default(), &all).await.unwrap().len(), 2);
    let sweep = |second| SweepLimits { tasks_before: Some(at(second)), ..SweepLimits::default() };
    assert_eq!(store.sweep(sweep(1)).await.unwrap(), SweepReport::default());
    assert_eq!(store.sweep(sweep(2)).await.unwrap(), SweepReport { tasks: 1, audit: 0 });
    let left = store.tasks(&Scope::default(), &all).await.unwrap();
    assert_eq!(left.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), ["task_2"]);
    assert!(store.events(&TaskId::from("task_1"), 0).await.unwrap().is_empty());
}

/// Three records, ten seconds apart: one that was refused, one that went well, one that failed.
async fn three_outcomes(store: &dyn Store) -> [AuditEvent; 3] {
    let mut denied = announced(AuditPhase::PreVerb, "default", "1");
    denied.context.deny("no");
    let mut completed = announced(AuditPhase::PostVerb, "default", "2");
    (completed.outcome, completed.emitted_at) = (Some(InvocationOutcome::Completed), at(10));
    let mut failed = announced(AuditPhase::PostVerb, "default", "3");
    (failed.outcome, failed.emitted_at) = (Some(InvocationOutcome::Failed), at(20));
    let events = [denied, completed, failed];
    store.audit(events.to_vec()).await.unwrap();
    events
}

async fn trail(store: &dyn Store, filter: &AuditFilter) -> Vec<AuditEvent> {
    let records = store.audit_records(&Scope::default(), filter).await.unwrap();
    records.into_iter().map(|record| record.event).collect()
}

/// What stands behind a record: numbers and tasks.
async fn forwards(store: &dyn Store, record: u64, limit: usize) -> Vec<(u64, String)> {
    // Whoever verifies the trail sees all of it, so from then on it is there for everybody.
    store.verify_audit().await.unwrap();
    let records = store.audit_after(record, limit).await.unwrap();
    records.into_iter().map(|audited| (audited.record, audited.event.verb.task_id.to_string())).collect()
}
