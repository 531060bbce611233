//! What a store promises about workflows and their runs.

use rialto_model::{
    event::QuestionKind,
    failure::{Failure, FailureKind},
    flow::{
        Flow, FlowKind, FlowRun, FlowSchedule, FlowStatus, FlowStep, RunChange, RunFilter, RunRecord,
        RunState, StepQuestion, StepState,
    },
    ids::{ProjectId, Scope, TaskId},
    json::Json,
    message::{Message, Part, Role},
    store::{Store, StoreError, SweepLimits},
    webhook::DeliveryLease,
};

use super::{at, finished, head, run as run_task};

/// A changed definition is another version; the ones before can still be read, and other projects see none of them.
pub async fn a_definition_comes_back_in_its_last_version(store: &dyn Store) {
    let generation = store.generation();
    let first = flow("deploy", 1);
    assert_eq!(store.put_flow(&first, 0, &[]).await.unwrap(), 1);
    assert_eq!(store.generation(), generation + 1);
    let second = Flow { status: FlowStatus::Archived, text: "other".to_owned(), ..flow("deploy", 2) };
    assert_eq!(store.put_flow(&second, 1, &[]).await.unwrap(), 2);
    let elsewhere = Flow { scope: elsewhere(), kind: FlowKind::Pipeline, ..flow("a", 1) };
    store.put_flow(&elsewhere, 0, &[]).await.unwrap();
    let here = Scope::default();
    assert_eq!(store.flows(Some(&here)).await.unwrap(), std::slice::from_ref(&second));
    assert_eq!(store.flows(None).await.unwrap(), [second.clone(), elsewhere]);
    assert_eq!(store.flow(&here, "deploy", None).await.unwrap(), Some(second));
    assert_eq!(store.flow(&here, "deploy", Some(1)).await.unwrap(), Some(first));
    assert_eq!(store.flow(&here, "a", None).await.unwrap(), None);
}

/// Whoever changes a definition has seen the one before.
pub async fn a_definition_is_not_changed_behind_somebodys_back(store: &dyn Store) {
    store.put_flow(&flow("deploy", 1), 0, &[]).await.unwrap();
    let generation = store.generation();
    for expected in [0, 2] {
        let put = store.put_flow(&flow("deploy", 1), expected, &[]).await;
        assert!(matches!(put, Err(StoreError::Conflict)), "{expected}");
    }
    assert_eq!(store.generation(), generation);
}

/// Runs go on with what they began with, and the name is free again.
pub async fn a_removed_definition_is_kept_for_its_runs(store: &dyn Store) {
    let (here, schedule) = (Scope::default(), schedule("deploy", 5));
    store.put_flow(&flow("deploy", 1), 0, std::slice::from_ref(&schedule)).await.unwrap();
    assert_eq!(store.schedules(&here).await.unwrap(), [schedule]);
    let generation = store.generation();
    assert_eq!(store.remove_flow(&here, "deploy").await.unwrap(), Some(generation + 1));
    assert_eq!(store.remove_flow(&here, "deploy").await.unwrap(), None);
    assert!(store.flows(None).await.unwrap().is_empty());
    assert!(store.schedules(&here).await.unwrap().is_empty());
    assert_eq!(store.flow(&here, "deploy", None).await.unwrap(), None);
    assert_eq!(store.flow(&here, "deploy", Some(1)).await.unwrap(), Some(flow("deploy", 1)));
    assert_eq!(store.put_flow(&flow("deploy", 9), 0, &[]).await.unwrap(), 3, "numbers are never used twice");
}

/// Everything that a run needs to go on is there again, digit for digit.
pub async fn a_run_comes_back_with_its_steps(store: &dyn Store) {
    let run = FlowRun {
        definition: Some("nodes: []".to_owned()),
        version: None,
        token: Some("tok_1".into()),
        hops: 3,
        ..run("task_1")
    };
    assert!(store.begin_run(&run, "d1", &[step("a")]).await.unwrap());
    let begun = store.run(&Scope::default(), &run.id).await.unwrap().unwrap();
    assert_eq!(begun.run, run);
    let done = FlowStep {
        task: Some(TaskId::from("task_a")),
        state: StepState::Completed,
        input: Some(Json::parse(r#"{"n": 1.000}"#).unwrap()),
        output: Some(Json::parse("10000000000000000000001").unwrap()),
        ended_at: Some(at(2)),
        ..step("a")
    };
    let message = Message::new("m", Role::Agent, vec![Part::text("Which one?")]);
    let asks = StepQuestion { ask: QuestionKind::Input, message: Some(message), expires: Some(at(99)) };
    let held = FlowStep { item: Some(3), state: StepState::Waiting, question: Some(asks), ..step("b") };
    let failure = Failure::new(FailureKind::PeerFailed, "no");
    let failed = FlowStep { attempt: 2, state: StepState::Failed, failure: Some(failure), ..step("a") };
    let steps = vec![done.clone(), held.clone(), failed.clone()];
    let waits = RunChange {
        state: RunState::Waiting,
        wakes_at: Some(at(99)),
        steps,
        token: Some("tok_2".into()),
        ..change("task_1", "d1")
    };
    assert!(store.change_run(waits).await.unwrap());
    let expected = RunRecord {
        run: FlowRun {
            state: RunState::Waiting,
            wakes_at: Some(at(99)),
            updated_at: at(1),
            token: Some("tok_2".into()),
            ..run
        },
        steps: vec![done, held, failed],
    };
    let id = TaskId::from("task_1");
    assert_eq!(store.run(&Scope::default(), &id).await.unwrap(), Some(expected));
    assert_eq!(store.run(&elsewhere(), &id).await.unwrap(), None);
}

/// A call that is made again begins nothing.
pub async fn a_run_begins_once(store: &dyn Store) {
    assert!(store.begin_run(&run("task_1"), "d1", &[step("a")]).await.unwrap());
    assert!(!store.begin_run(&run("task_1"), "d2", &[step("b")]).await.unwrap());
    let found = store.run(&Scope::default(), &TaskId::from("task_1")).await.unwrap().unwrap();
    assert_eq!(found.steps, [step("a")]);
}

/// Of two who drive a run, the one who took it last is right.
pub async fn only_who_took_a_run_last_writes_to_it(store: &dyn Store) {
    let id = TaskId::from("task_1");
    store.begin_run(&run("task_1"), "d1", &[]).await.unwrap();
    assert_eq!(store.take_run(&id, "d2").await.unwrap().unwrap().run.state, RunState::Running);
    let first = RunChange { steps: vec![step("a")], ..change("task_1", "d1") };
    assert!(!store.change_run(first).await.unwrap());
    let output = Some(Json::parse("7").unwrap());
    let second = RunChange { state: RunState::Completed, output, ..change("task_1", "d2") };
    assert!(store.change_run(second.clone()).await.unwrap());
    assert!(!store.change_run(second).await.unwrap(), "it is over");
    let over = store.take_run(&id, "d3").await.unwrap().unwrap();
    assert_eq!((over.run.state, over.steps.len()), (RunState::Completed, 0));
    assert_eq!(store.take_run(&TaskId::from("task_2"), "d3").await.unwrap(), None);
}

/// Whoever drives it learns of it with the next thing that is to be written.
pub async fn a_run_that_was_called_off_takes_no_more(store: &dyn Store) {
    let id = TaskId::from("task_1");
    let done = FlowStep { state: StepState::Completed, ..step("b") };
    store.begin_run(&run("task_1"), "d1", &[step("a"), done]).await.unwrap();
    let stood = store.cancel_run(&id, at(5)).await.unwrap().unwrap();
    assert_eq!(stood.steps[0].state, StepState::Running, "as it stood before");
    assert_eq!(store.cancel_run(&id, at(6)).await.unwrap(), None);
    assert!(!store.change_run(change("task_1", "d1")).await.unwrap());
    let found = store.run(&Scope::default(), &id).await.unwrap().unwrap();
    assert_eq!((found.run.state, found.run.updated_at), (RunState::Canceled, at(5)));
    let states: Vec<_> = found.steps.iter().map(|step| step.state).collect();
    assert_eq!(states, [StepState::Canceled, StepState::Completed]);
}

/// Newest first, by whatever is asked for.
pub async fn runs_can_be_narrowed(store: &dyn Store) {
    let runs = [
        run("task_1"),
        FlowRun { name: "other".to_owned(), ..run("task_2") },
        FlowRun { caller: "bob".into(), ..run("task_3") },
        FlowRun { state: RunState::Failed, ..run("task_4") },
        FlowRun { scope: elsewhere(), ..run("task_5") },
    ];
    for run in &runs {
        store.begin_run(run, "d", &[]).await.unwrap();
    }
    let all = RunFilter { limit: 10, ..RunFilter::default() };
    for (filter, expected) in [
        (all.clone(), vec!["task_4", "task_3", "task_2", "task_1"]),
        (RunFilter { limit: 2, ..all.clone() }, vec!["task_4", "task_3"]),
        (RunFilter { before: Some(TaskId::from("task_3")), ..all.clone() }, vec!["task_2", "task_1"]),
        (RunFilter { name: Some("other".to_owned()), ..all.clone() }, vec!["task_2"]),
        (RunFilter { caller: Some("bob".into()), ..all.clone() }, vec!["task_3"]),
        (RunFilter { state: Some(RunState::Failed), ..all }, vec!["task_4"]),
    ] {
        let found = store.runs(&Scope::default(), &filter).await.unwrap();
        assert_eq!(found.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), expected, "{filter:?}");
    }
}

/// What a run waits for may end by itself; one process sees to it.
pub async fn a_waiting_run_is_woken_by_one_at_a_time(store: &dyn Store) {
    store.begin_run(&run("task_1"), "d1", &[]).await.unwrap();
    let waits = RunChange { state: RunState::Waiting, wakes_at: Some(at(10)), ..change("task_1", "d1") };
    store.change_run(waits).await.unwrap();
    assert!(store.wake_runs(at(9), at(20), 10).await.unwrap().is_empty());
    assert_eq!(store.wake_runs(at(10), at(20), 10).await.unwrap().len(), 1);
    assert!(store.wake_runs(at(11), at(20), 10).await.unwrap().is_empty());
    assert_eq!(store.wake_runs(at(20), at(30), 10).await.unwrap().len(), 1);
}

/// However many look, one runs it; when that one is gone, another does, as the same task.
pub async fn a_schedule_is_run_by_one_at_a_time(store: &dyn Store) {
    store.put_flow(&flow("deploy", 1), 0, &[schedule("deploy", 5)]).await.unwrap();
    let lease = |holder: &str, now, until| DeliveryLease {
        holder: holder.to_owned(),
        now: at(now),
        until: at(until),
    };
    assert!(store.due_schedules(&lease("a", 4, 10), 10).await.unwrap().is_empty());
    assert_eq!(store.due_schedules(&lease("a", 5, 10), 10).await.unwrap(), [schedule("deploy", 5)]);
    assert!(store.due_schedules(&lease("b", 6, 20), 10).await.unwrap().is_empty());
    assert_eq!(store.due_schedules(&lease("b", 10, 20), 10).await.unwrap(), [schedule("deploy", 5)]);
    let next = FlowSchedule { next_at: at(65), task: TaskId::from("task_2"), ..schedule("deploy", 5) };
    assert!(!store.record_schedule_run(&next, "a").await.unwrap(), "it is another's");
    assert!(store.record_schedule_run(&next, "b").await.unwrap());
    assert_eq!(store.schedules(&Scope::default()).await.unwrap(), std::slice::from_ref(&next));
    assert!(store.due_schedules(&lease("b", 64, 70), 10).await.unwrap().is_empty());
    assert_eq!(store.due_schedules(&lease("a", 65, 70), 10).await.unwrap(), [next]);
}

/// A run is a task: when that is old, so is the run.
pub async fn runs_are_forgotten_with_their_tasks(store: &dyn Store) {
    run_task(store, &head("task_1"), vec![finished()]).await;
    let over = FlowRun { state: RunState::Completed, ..run("task_1") };
    store.begin_run(&over, "d", &[step("a")]).await.unwrap();
    store.begin_run(&run("task_2"), "d", &[]).await.unwrap();
    let sweep = SweepLimits { tasks_before: Some(at(0)), ..SweepLimits::default() };
    store.sweep(sweep).await.unwrap();
    let (here, id) = (Scope::default(), TaskId::from("task_1"));
    assert!(store.run(&here, &id).await.unwrap().is_some());
    let sweep = SweepLimits { tasks_before: Some(at(50)), ..SweepLimits::default() };
    store.sweep(sweep).await.unwrap();
    assert_eq!(store.run(&here, &id).await.unwrap(), None);
    assert!(store.run(&here, &TaskId::from("task_2")).await.unwrap().is_some(), "it is not over");
}

fn elsewhere() -> Scope {
    Scope { project: ProjectId::from("other"), ..Scope::default() }
}

fn flow(name: &str, version: u64) -> Flow {
    Flow {
        scope: Scope::default(),
        name: name.to_owned(),
        kind: FlowKind::Workflow,
        status: FlowStatus::Active,
        version,
        text: "name: deploy\nsteps: []\n".to_owned(),
        configured: false,
        by: "ann".into(),
        at: at(0),
        token: Some("tok_1".into()),
    }
}

fn schedule(name: &str, seconds: i64) -> FlowSchedule {
    let task = TaskId::from("task_1");
    FlowSchedule { scope: Scope::default(), name: name.to_owned(), number: 0, next_at: at(seconds), task }
}

fn run(id: &str) -> FlowRun {
    FlowRun {
        id: TaskId::from(id),
        scope: Scope::default(),
        caller: "ann".into(),
        token: None,
        hops: 0,
        name: "deploy".to_owned(),
        version: Some(1),
        definition: None,
        input: Json::parse(r#"{"price": 0.10}"#).unwrap(),
        depth: 1,
        state: RunState::Running,
        output: None,
        failure: None,
        wakes_at: None,
        created_at: at(0),
        updated_at: at(0),
    }
}

fn step(node: &str) -> FlowStep {
    FlowStep::begun(node, None, 1, at(1))
}

fn change(run: &str, driver: &str) -> RunChange {
    RunChange {
        run: TaskId::from(run),
        driver: driver.to_owned(),
        token: None,
        state: RunState::Running,
        output: None,
        failure: None,
        wakes_at: None,
        at: at(1),
        steps: Vec::new(),
    }
}
