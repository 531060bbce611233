//! What a store promises about the bytes that orgs take in it.

use rialto_model::{
    audit_event::AuditPhase,
    ids::{OrgId, ProjectId, Scope},
    json::Json,
    store::{Store, SweepLimits},
    task::TaskHead,
};

use super::{announced, at, finished, head, progress, run};

/// Arguments, events and audit records count for the org that they belong to, until they are swept.
pub async fn bytes_are_counted_by_org(store: &dyn Store) {
    let (acme, default) = (OrgId::from("acme"), Scope::default().org);
    assert!(store.org_bytes().await.unwrap().is_empty());
    run(store, &head("task_1"), vec![progress(&words(20_000)), finished()]).await;
    let args = Json::encode(&serde_json::json!({ "text": words(10_000) }));
    let scope = Scope { org: acme.clone(), project: ProjectId::from("main") };
    run(store, &TaskHead { scope, args, ..head("task_2") }, vec![finished()]).await;
    let kept = store.org_bytes().await.unwrap();
    assert!((20_000..30_000).contains(&kept[&default]), "{kept:?}");
    assert!((10_000..20_000).contains(&kept[&acme]), "{kept:?}");
    store.audit(vec![announced(AuditPhase::PreVerb, "acme", "task_2")]).await.unwrap();
    let audited = store.org_bytes().await.unwrap();
    assert!(audited[&acme] > kept[&acme], "{audited:?}");
    assert_eq!(audited[&default], kept[&default]);
    store.sweep(SweepLimits { tasks_before: Some(at(100)), ..SweepLimits::default() }).await.unwrap();
    let swept = store.org_bytes().await.unwrap();
    assert_eq!(swept.get(&default), None, "nothing of it is left");
    assert!(swept[&acme] < 1_000, "its audit record stays: {swept:?}");
}

/// A text of this length that does not repeat itself soon.
fn words(length: usize) -> String {
    let mut text: String = (0..length / 4).map(|number| format!("{:04x}", number * 7_919 % 65_536)).collect();
    text.truncate(length);
    text
}
