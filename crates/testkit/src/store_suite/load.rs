//! What a store promises about who has how much to do.

use std::collections::BTreeMap;

use rialto_model::{
    audit_event::AuditPhase,
    ids::{AgentId, OrgId, Scope},
    store::Store,
    task::TaskHead,
};

use super::{accepted, announced, finished, head, run};

/// By org, without those that are over and those that never began.
pub async fn the_load_of_an_agent_is_its_open_tasks(store: &dyn Store) {
    let of = |id: &str, agent: &str| TaskHead { agent: AgentId::from(agent), ..head(id) };
    run(store, &of("task_1", "agt_busy"), vec![accepted("r-1")]).await;
    store.open_task(&of("task_2", "agt_busy"), Vec::new()).await.unwrap();
    run(store, &of("task_3", "agt_busy"), vec![accepted("r-3"), finished()]).await;
    run(store, &of("task_4", "agt_idle"), vec![accepted("r-4"), finished()]).await;
    let elsewhere = Scope { org: OrgId::from("other"), ..Scope::default() };
    store.open_task(&TaskHead { scope: elsewhere, ..of("task_5", "agt_far") }, Vec::new()).await.unwrap();
    let mut refused = announced(AuditPhase::PreVerb, "default", "task_6");
    refused.context.deny("no");
    store.audit(vec![refused]).await.unwrap();
    let load = |org: &str| {
        let org = OrgId::from(org);
        async move { store.load(&org).await.unwrap() }
    };
    assert_eq!(load("default").await, BTreeMap::from([(AgentId::from("agt_busy"), 2)]));
    assert_eq!(load("other").await, BTreeMap::from([(AgentId::from("agt_far"), 1)]));
    assert!(load("nowhere").await.is_empty());
}
