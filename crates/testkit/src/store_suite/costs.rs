//! What a store promises about what calls cost.

use std::sync::Arc;

use jiff::SignedDuration;
use rialto_model::{
    audit_event::{AuditEvent, AuditPhase, InvocationOutcome, SkillInvocation},
    cost::{Cents, CostBy, CostQuery, CostSum},
    ids::{AgentId, Scope},
    store::Store,
};

use super::{announced, at};

/// Calls that failed cost nothing, and a cost that nobody knows is counted as such.
pub async fn costs_are_summed_up_by_whatever_is_asked_for(store: &dyn Store) {
    let day = SignedDuration::from_hours(24);
    let mut tomorrow = completed("3", "bob", "agt_b", Some(0.1));
    tomorrow.emitted_at = at(0) + day;
    let mut failed = completed("4", "ann", "agt_a", None);
    failed.outcome = Some(InvocationOutcome::Failed);
    let mut elsewhere = announced(AuditPhase::PostVerb, "other", "5");
    elsewhere.outcome = Some(InvocationOutcome::Completed);
    let events = [completed("1", "ann", "agt_a", Some(5.0)), completed("2", "ann", "agt_a", None), tomorrow];
    store.audit(events.into_iter().chain([failed, elsewhere]).collect()).await.unwrap();
    let all = CostQuery::default();
    let by = |by| CostQuery { by, ..all.clone() };
    for (query, expected) in [
        (by(CostBy::Agent), vec![sum("agt_a", 2, 1, 5.0), sum("agt_b", 1, 0, 0.1)]),
        (by(CostBy::Caller), vec![sum("ann", 2, 1, 5.0), sum("bob", 1, 0, 0.1)]),
        (by(CostBy::Skill), vec![sum("weather.forecast", 3, 1, 5.1)]),
        (by(CostBy::Day), vec![sum("2026-08-01", 2, 1, 5.0), sum("2026-08-02", 1, 0, 0.1)]),
        (CostQuery { since: Some(at(1)), ..all.clone() }, vec![sum("agt_b", 1, 0, 0.1)]),
        (CostQuery { until: Some(at(1)), ..all.clone() }, vec![sum("agt_a", 2, 1, 5.0)]),
        (CostQuery { agent: Some(AgentId::from("agt_b")), ..all.clone() }, vec![sum("agt_b", 1, 0, 0.1)]),
        (CostQuery { caller: Some("nobody".into()), ..all.clone() }, vec![]),
    ] {
        assert_eq!(store.costs(&Scope::default(), &query).await.unwrap(), expected, "{query:?}");
    }
}

/// Its cost is known once it is completed.
pub async fn a_task_that_asked_something_is_counted_once(store: &dyn Store) {
    let legs = vec![completed("1", "ann", "agt_a", None), completed("1", "ann", "agt_a", Some(2.5))];
    store.audit(legs).await.unwrap();
    let all = CostQuery::default();
    assert_eq!(store.costs(&Scope::default(), &all).await.unwrap(), [sum("agt_a", 1, 0, 2.5)]);
}

fn completed(task: &str, caller: &str, agent: &str, cents: Option<f64>) -> AuditEvent {
    let mut event = announced(AuditPhase::PostVerb, "default", task);
    let verb = SkillInvocation {
        caller: caller.into(),
        agent_card_id: agent.into(),
        ..SkillInvocation::clone(&event.verb)
    };
    (event.verb, event.outcome) = (Arc::new(verb), Some(InvocationOutcome::Completed));
    event.estimated_cents = cents.map(|cents| Cents::try_from(cents).unwrap());
    event
}

fn sum(key: &str, calls: u64, unknown: u64, cents: f64) -> CostSum {
    CostSum { key: key.into(), calls, unknown, estimated_cents: Cents::try_from(cents).unwrap() }
}
