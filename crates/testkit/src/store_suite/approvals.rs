//! What a store promises about approvals.

use futures::future::join_all;
use rialto_model::{
    approval::{Approval, ApprovalFilter, ApprovalTarget, ApprovalVerdict},
    ids::{ApprovalId, OrgId, ProcessId, Scope, TaskId},
    json::Json,
    store::{Store, StoreError, SweepLimits},
};

use super::at;

/// Its arguments to the last digit, and both are changes that others see.
pub async fn what_waits_for_approval_comes_back_as_it_was_put(store: &dyn Store) {
    let generation = store.generation();
    assert_eq!(store.put_approval(&approval("apr_1")).await.unwrap(), generation + 1);
    let bare =
        Approval { by: Vec::new(), policies: Vec::new(), waits: ApprovalTarget::Work, ..approval("apr_2") };
    store.put_approval(&bare).await.unwrap();
    assert_eq!(store.approvals(&all()).await.unwrap(), [bare, approval("apr_1")]);
    assert!(matches!(store.put_approval(&approval("apr_1")).await, Err(StoreError::Taken(_))));
    assert!(store.decide_approval(&"apr_1".into(), &decided("ann", true)).await.unwrap());
    assert_eq!(store.generation(), generation + 3);
    assert!(store.close_approval(&"apr_1".into()).await.unwrap());
    assert!(!store.close_approval(&"apr_1".into()).await.unwrap());
    let one = ApprovalFilter { id: Some("apr_1".into()), ..all() };
    let expected = Approval { decided: Some(decided("ann", true)), is_settled: true, ..approval("apr_1") };
    assert_eq!(store.approvals(&one).await.unwrap(), [expected]);
}

/// However many decide, one of them has decided.
pub async fn of_many_decisions_at_once_the_first_counts(store: &dyn Store) {
    store.put_approval(&approval("apr_1")).await.unwrap();
    let id = ApprovalId::from("apr_1");
    let deciders: Vec<_> = (0..16).map(|number| decided(&format!("u{number}"), number % 2 == 0)).collect();
    let outcomes = join_all(deciders.iter().map(|decided| store.decide_approval(&id, decided))).await;
    let counted: Vec<_> =
        deciders.iter().zip(outcomes).filter(|(_, outcome)| *outcome.as_ref().unwrap()).collect();
    assert_eq!(counted.len(), 1);
    assert_eq!(store.approvals(&all()).await.unwrap()[0].decided.as_ref(), Some(counted[0].0));
    assert!(!store.decide_approval(&"apr_9".into(), &decided("ann", true)).await.unwrap());
}

/// By org, by task, by what is still to be done, and page by page.
pub async fn what_waits_for_approval_can_be_narrowed(store: &dyn Store) {
    for id in ["apr_1", "apr_2", "apr_3"] {
        store.put_approval(&approval(id)).await.unwrap();
    }
    let other = Scope { org: OrgId::from("other"), ..Scope::default() };
    let foreign = Approval { scope: other, task: TaskId::from("task_9"), ..approval("apr_4") };
    store.put_approval(&foreign).await.unwrap();
    store.decide_approval(&"apr_1".into(), &decided("ann", false)).await.unwrap();
    store.decide_approval(&"apr_2".into(), &decided("ann", true)).await.unwrap();
    store.close_approval(&"apr_1".into()).await.unwrap();
    let org = Some(OrgId::from("default"));
    for (filter, expected) in [
        (ApprovalFilter { org: org.clone(), ..all() }, "apr_3 apr_2 apr_1"),
        (ApprovalFilter { org: org.clone(), undecided: true, ..all() }, "apr_3"),
        (ApprovalFilter { org: org.clone(), unsettled: true, ..all() }, "apr_3 apr_2"),
        (ApprovalFilter { task: Some("task_9".into()), ..all() }, "apr_4"),
        (ApprovalFilter { org, before: Some("apr_3".into()), limit: 1, ..all() }, "apr_2"),
    ] {
        let found = store.approvals(&filter).await.unwrap();
        let found: Vec<_> = found.iter().map(|approval| approval.id.as_str()).collect();
        assert_eq!(found.join(" "), expected, "{filter:?}");
    }
}

/// What still waits stays, however old it is.
pub async fn approvals_are_forgotten_once_they_are_settled(store: &dyn Store) {
    for id in ["apr_1", "apr_2"] {
        store.put_approval(&approval(id)).await.unwrap();
    }
    store.decide_approval(&"apr_1".into(), &decided("ann", true)).await.unwrap();
    store.close_approval(&"apr_1".into()).await.unwrap();
    store.sweep(SweepLimits { tasks_before: Some(at(0)), ..SweepLimits::default() }).await.unwrap();
    assert_eq!(store.approvals(&all()).await.unwrap().len(), 2);
    store.sweep(SweepLimits { tasks_before: Some(at(60)), ..SweepLimits::default() }).await.unwrap();
    assert_eq!(store.approvals(&all()).await.unwrap(), [approval("apr_2")]);
}

fn all() -> ApprovalFilter {
    ApprovalFilter { limit: 100, ..ApprovalFilter::default() }
}

fn decided(by: &str, approved: bool) -> ApprovalVerdict {
    ApprovalVerdict {
        approved,
        by: by.to_owned(),
        reason: approved.then(|| "it is fine".to_owned()),
        at: at(5),
    }
}

fn approval(id: &str) -> Approval {
    Approval {
        id: id.into(),
        scope: Scope::default(),
        task: "task_1".into(),
        caller: "ann".into(),
        token: Some("tok_1".into()),
        agent: "agt_1".into(),
        tool: "vercel_ops.deploy".to_owned(),
        args: Json::parse(r#"{"n":1.000}"#).unwrap(),
        by: vec!["the ops team".to_owned()],
        policies: vec!["ask".to_owned()],
        waits: ApprovalTarget::Call,
        runner: ProcessId::from(7),
        asked_at: at(0),
        expires_at: at(900),
        decided: None,
        is_settled: false,
    }
}
