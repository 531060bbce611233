//! What a store promises about decisions, slots and what is learned.

use std::time::Duration;

use rialto_model::{
    ids::{AgentId, DispatchId, Scope, TaskId},
    routing::{
        ActivityWindow, AssignmentEnd, AssignmentOutcome, AttemptRecord, Dispatch, DispatchFilter,
        EndedAssignment, RoutingStats, RoutingStatsQuery, SlotAssignment, SlotReservation, SuccessRate,
        WorkDescription,
    },
    store::{Store, SweepLimits},
    task::TaskState,
};

use super::{accepted, agent, at, entry, finished, head};

const CAP: u64 = 10;

/// However many ask at once, an agent is given no more than it can take; and what is given back can be given again.
pub async fn no_more_slots_are_given_out_than_there_are(store: &dyn Store) {
    let wanted: Vec<_> = (0..256).map(|n| wanted("weather", &format!("task_{n:03}"))).collect();
    let taken = futures::future::join_all(wanted.iter().map(|wanted| store.reserve(wanted))).await;
    let taken: Vec<bool> = taken.into_iter().collect::<Result<_, _>>().unwrap();
    assert_eq!(taken.iter().filter(|taken| **taken).count() as u64, CAP);
    assert_eq!(standing(store, "weather").await.active, CAP);
    assert!(store.reserve(&self::wanted("ops", "task_ops")).await.unwrap(), "another agent has its own");
    let first = taken.iter().position(|taken| *taken).unwrap();
    let task = TaskId::from(format!("task_{first:03}"));
    assert!(store.end_assignment(&task, &ended(AssignmentOutcome::Refused, None)).await.unwrap());
    assert_eq!(standing(store, "weather").await.active, CAP - 1);
    assert!(store.reserve(&self::wanted("weather", "task_again")).await.unwrap());
    assert!(!store.reserve(&self::wanted("weather", "task_more")).await.unwrap());
}

/// A task that is open takes a slot whoever made it, and one that was promised a slot before takes that one.
pub async fn an_open_task_takes_a_slot_and_counts_once(store: &dyn Store) {
    assert!(store.reserve(&wanted("weather", "task_1")).await.unwrap());
    assert_eq!(standing(store, "weather").await.active, 1);
    for task in ["task_1", "task_2"] {
        store.open_task(&head(task), Vec::new()).await.unwrap();
    }
    // What was just written may stand where only a look at the journal finds it.
    assert_eq!(store.load(&Scope::default().org).await.unwrap().len(), 1);
    assert_eq!(standing(store, "weather").await.active, 2);
    store.append(entry(&head("task_1"), vec![accepted("r-1"), finished()], at(1))).await.unwrap();
    assert_eq!(store.load(&Scope::default().org).await.unwrap()[&id("weather")], 1);
    assert_eq!(standing(store, "weather").await.active, 1);
}

/// A process that died between its decision and its task holds nothing for long.
pub async fn a_slot_whose_task_never_came_is_free_again(store: &dyn Store) {
    for n in 0..CAP {
        assert!(store.reserve(&wanted("weather", &format!("task_{n}"))).await.unwrap());
    }
    let later = |seconds| SlotReservation { window: window(seconds), ..wanted("weather", "task_later") };
    assert!(!store.reserve(&later(59)).await.unwrap());
    assert!(store.reserve(&later(60)).await.unwrap());
}

/// A task of which nothing was heard for long is not held against its agent.
pub async fn a_task_that_nobody_looks_after_takes_no_slot(store: &dyn Store) {
    store.open_task(&head("task_1"), Vec::new()).await.unwrap();
    store.load(&Scope::default().org).await.unwrap();
    let query = |seconds| RoutingStatsQuery { window: window(seconds), ..query("weather") };
    assert_eq!(store.routing_stats(&query(3_600)).await.unwrap()[&id("weather")].active, 1);
    assert!(store.routing_stats(&query(3_601)).await.unwrap().is_empty());
}

/// Each end counts once, older ones less than newer ones, and every type of work by itself.
pub async fn a_play_ends_once_and_its_agent_learns_from_it(store: &dyn Store) {
    let rewards = [1.0, 0.0, 0.25];
    let mut expected = SuccessRate::default();
    for (n, reward) in rewards.into_iter().enumerate() {
        let task = TaskId::from(format!("task_{n}"));
        assert!(store.reserve(&wanted("weather", task.as_str())).await.unwrap());
        let end = ended(AssignmentOutcome::Completed, Some(reward));
        assert!(store.end_assignment(&task, &end).await.unwrap());
        assert!(!store.end_assignment(&task, &end).await.unwrap(), "not twice");
        expected = expected.after(reward, 0.9);
    }
    let known = standing(store, "weather").await;
    assert_eq!(known.active, 0);
    let told = |posterior: SuccessRate| {
        let SuccessRate { wins, losses, recent_wins, recent_losses, .. } = posterior;
        [wins, losses, recent_wins, recent_losses]
    };
    let pairs = told(known.posterior).into_iter().zip(told(expected));
    assert!(pairs.into_iter().all(|(known, expected)| (known - expected).abs() < 1e-9), "{known:?}");
    assert_eq!(known.posterior.observed, 3);
    let other = RoutingStatsQuery { work_type: "other".to_owned(), ..query("weather") };
    assert!(store.routing_stats(&other).await.unwrap().is_empty());
    assert!(
        !store
            .end_assignment(&TaskId::from("task_none"), &ended(AssignmentOutcome::Failed, Some(0.0)))
            .await
            .unwrap()
    );
    store.put_agent(&agent("weather"), None).await.unwrap();
    store.remove_agent(&id("weather")).await.unwrap();
    assert_eq!(standing(store, "weather").await, RoutingStats::default(), "what is removed is forgotten");
}

/// What an agent was observed at is known by the type of work, its own and nobody else's.
pub async fn an_agent_is_known_by_each_type_of_work_it_did(store: &dyn Store) {
    let org = Scope::default().org;
    assert!(store.success_rates(&org, &id("weather"), 5).await.unwrap().is_empty());
    for (slug, task) in [("weather", "task_1"), ("weather", "task_2"), ("ops", "task_3")] {
        assert!(store.reserve(&wanted(slug, task)).await.unwrap());
        let end = ended(AssignmentOutcome::Completed, Some(1.0));
        assert!(store.end_assignment(&TaskId::from(task), &end).await.unwrap());
    }
    let expected = standing(store, "weather").await.posterior;
    assert_eq!(store.success_rates(&org, &id("weather"), 5).await.unwrap(), [("qa".to_owned(), expected)]);
    assert!(store.success_rates(&org, &id("weather"), 0).await.unwrap().is_empty());
}

/// A play without a reward ends, and that is all.
pub async fn what_says_nothing_about_an_agent_teaches_nothing(store: &dyn Store) {
    for (task, outcome) in [("task_1", AssignmentOutcome::Canceled), ("task_2", AssignmentOutcome::Refused)] {
        assert!(store.reserve(&wanted("weather", task)).await.unwrap());
        assert!(store.end_assignment(&TaskId::from(task), &ended(outcome, None)).await.unwrap());
    }
    assert_eq!(standing(store, "weather").await, RoutingStats::default());
}

/// Whoever comes later finds what nobody has learned from yet.
pub async fn plays_whose_tasks_are_over_are_found(store: &dyn Store) {
    for task in ["task_1", "task_2", "task_3"] {
        assert!(store.reserve(&wanted("weather", task)).await.unwrap());
        store.open_task(&head(task), Vec::new()).await.unwrap();
    }
    for task in ["task_1", "task_2"] {
        store.append(entry(&head(task), vec![accepted(task), finished()], at(7))).await.unwrap();
    }
    store.load(&Scope::default().org).await.unwrap();
    store
        .end_assignment(&TaskId::from("task_2"), &ended(AssignmentOutcome::Completed, Some(1.0)))
        .await
        .unwrap();
    let (task, state) = (TaskId::from("task_1"), TaskState::Completed);
    let expected = EndedAssignment { task, state, begun_at: at(0), ended_at: at(7) };
    assert_eq!(store.ended_assignments(10).await.unwrap(), [expected]);
}

/// Page by page, with how each attempt ended.
pub async fn decisions_come_newest_first_with_what_became_of_them(store: &dyn Store) {
    three_decisions(store).await;
    let page = listed(store, DispatchFilter { limit: 2, ..DispatchFilter::default() }).await;
    assert_eq!(ids(&page), ["dsp_task_3", "dsp_task_2"]);
    let before = Some(DispatchId::from("dsp_task_2"));
    let page = listed(store, DispatchFilter { before, limit: 2, ..DispatchFilter::default() }).await;
    assert_eq!(ids(&page), ["dsp_task_1"]);
    let outcomes: Vec<_> = page[0].attempts.iter().map(|attempt| attempt.outcome).collect();
    assert_eq!(outcomes, [Some(AssignmentOutcome::Unreachable), None]);
}

/// To one, to a caller's and to a type of work; those of another project are never among them.
pub async fn decisions_can_be_narrowed(store: &dyn Store) {
    three_decisions(store).await;
    let all = DispatchFilter { limit: 5, ..DispatchFilter::default() };
    for id in ["task_4", "dsp_task_1"] {
        let found = listed(store, DispatchFilter { id: Some(id.to_owned()), ..all.clone() }).await;
        assert_eq!(ids(&found), ["dsp_task_1"], "by {id}");
    }
    let count = async |filter| listed(store, filter).await.len();
    assert_eq!(count(DispatchFilter { caller: Some("bob".into()), ..all.clone() }).await, 0);
    assert_eq!(count(DispatchFilter { caller: Some("ann".into()), ..all.clone() }).await, 3);
    assert_eq!(count(DispatchFilter { work_type: Some("qa".to_owned()), ..all.clone() }).await, 3);
    assert_eq!(count(DispatchFilter { work_type: Some("other".to_owned()), ..all.clone() }).await, 0);
    let elsewhere = Scope { project: "web".into(), ..Scope::default() };
    assert!(store.dispatches(&elsewhere, &all).await.unwrap().is_empty());
}

/// Three decisions, the first of which went on from one agent to another.
async fn three_decisions(store: &dyn Store) {
    for task in ["task_1", "task_2", "task_3"] {
        assert!(store.reserve(&wanted("weather", task)).await.unwrap());
    }
    store
        .end_assignment(&TaskId::from("task_1"), &ended(AssignmentOutcome::Unreachable, Some(0.0)))
        .await
        .unwrap();
    let mut on = wanted("ops", "task_4");
    let mut first = decision("weather", "task_1");
    first.attempts.append(&mut on.dispatch.attempts);
    on.dispatch = first;
    assert!(store.reserve(&on).await.unwrap());
}

async fn listed(store: &dyn Store, filter: DispatchFilter) -> Vec<Dispatch> {
    store.dispatches(&Scope::default(), &filter).await.unwrap()
}

fn ids(found: &[Dispatch]) -> Vec<&str> {
    found.iter().map(|one| one.id.as_str()).collect()
}

/// What is older than tasks are kept goes with them.
pub async fn decisions_are_forgotten_with_their_tasks(store: &dyn Store) {
    assert!(store.reserve(&wanted("weather", "task_1")).await.unwrap());
    store.open_task(&head("task_1"), Vec::new()).await.unwrap();
    store.append(entry(&head("task_1"), vec![accepted("r"), finished()], at(1))).await.unwrap();
    store
        .end_assignment(&TaskId::from("task_1"), &ended(AssignmentOutcome::Completed, Some(1.0)))
        .await
        .unwrap();
    let all = DispatchFilter { limit: 5, ..DispatchFilter::default() };
    let sweep = |moment| SweepLimits { tasks_before: Some(at(moment)), ..SweepLimits::default() };
    store.sweep(sweep(0)).await.unwrap();
    assert_eq!(store.dispatches(&Scope::default(), &all).await.unwrap().len(), 1);
    store.sweep(sweep(100)).await.unwrap();
    assert!(store.dispatches(&Scope::default(), &all).await.unwrap().is_empty());
    assert_eq!(standing(store, "weather").await.posterior.observed, 1, "what was learned stays");
}

fn id(slug: &str) -> AgentId {
    AgentId::from(format!("agt_{slug}"))
}

fn window(seconds: i64) -> ActivityWindow {
    ActivityWindow { now: at(seconds), since: at(seconds - 3_600) }
}

fn query(slug: &str) -> RoutingStatsQuery {
    let (org, agents) = (Scope::default().org, vec![id(slug), id("unknown")]);
    RoutingStatsQuery { org, work_type: "qa".to_owned(), agents, window: window(0) }
}

async fn standing(store: &dyn Store, slug: &str) -> RoutingStats {
    store.routing_stats(&query(slug)).await.unwrap().remove(&id(slug)).unwrap_or_default()
}

fn decision(slug: &str, task: &str) -> Dispatch {
    let task_id = TaskId::from(task);
    let attempt =
        AttemptRecord { agent_id: id(slug), agent: slug.to_owned(), task_id, outcome: None, why_left: None };
    Dispatch {
        id: DispatchId::from(format!("dsp_{task}")),
        scope: Scope::default(),
        caller: "ann".into(),
        at: at(0),
        seed: 7,
        work: WorkDescription { work_type: "qa".to_owned(), ..WorkDescription::default() },
        candidates: Vec::new(),
        more: 0,
        attempts: vec![attempt],
    }
}

fn wanted(slug: &str, task: &str) -> SlotReservation {
    let until = at(0) + Duration::from_secs(60);
    let play = SlotAssignment { task: TaskId::from(task), agent: id(slug), until };
    SlotReservation { dispatch: decision(slug, task), play, hard_cap: CAP, window: window(0) }
}

fn ended(outcome: AssignmentOutcome, reward: Option<f64>) -> AssignmentEnd {
    AssignmentEnd { outcome, reward, discount: 0.9, at: at(2) }
}
