//! Work that names nobody: who gets it, what is written down, and what is learned.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use parking_lot::Mutex;
use rialto_engine::{Config, DispatchRequest, Overheard, Request, Running, registry::Registration, routing};
use rialto_model::{
    agent::AgentTrust,
    audit_event::{AuditEvent, AuditPhase},
    call::{Call, CallTarget, Caller, EntryProtocol},
    card::Skill,
    event::{Event, EventAside, QuestionKind},
    failure::{Failure, FailureKind},
    message::{Content, Part},
    routing::{
        ActivityWindow, AssignmentOutcome, CandidateVerdict, Dispatch, DispatchFilter, RoutingStatsQuery,
        SuccessRate, WorkDescription,
    },
    store::AuditFilter,
    task::{Task, TaskState},
};
use rialto_testkit::{
    agents,
    peer::{ScriptedPeer, accepted, finished_with, working},
};

use crate::fixture::World;

/// An agent for each name, all of them with a skill that is tagged `qa`.
async fn world_of(names: &[&str], peer: Arc<ScriptedPeer>) -> World {
    world_with(names, peer, routing::Config { seed: Some(7), ..routing::Config::default() }).await
}

async fn world_with(names: &[&str], peer: Arc<ScriptedPeer>, routing: routing::Config) -> World {
    let world = World::empty(peer, Config { routing, ..Config::default() }).await;
    for name in names {
        join(&world, name, AgentTrust::Trusted).await;
    }
    world
}

async fn join(world: &World, name: &str, trust: AgentTrust) {
    let url = format!("https://{name}.example.com");
    world.discovery.serve(&url, agents::card(name, vec![agents::tagged_skill("test", &["qa"])]));
    let wanted = Registration { trust: Some(trust), ..Registration::new(url) };
    world.engine.registry().register(wanted).await.unwrap();
}

fn qa() -> WorkDescription {
    WorkDescription { work_type: "qa".to_owned(), ..WorkDescription::default() }
}

fn wanted(world: &World) -> DispatchRequest {
    DispatchRequest::new(world.caller.clone(), EntryProtocol::Library, qa(), vec![Part::text("test it")])
}

async fn dispatch(world: &World) -> Result<Task, Failure> {
    world.engine.dispatch(wanted(world)).await?.finish().await
}

/// What is known of an agent in the type of work that is dispatched here.
async fn known(world: &World, name: &str) -> SuccessRate {
    let agent = world.engine.registry().by_slug(&world.caller.scope, name).unwrap();
    let now = world.engine.now();
    let query = RoutingStatsQuery {
        org: world.caller.scope.org.clone(),
        work_type: "qa".to_owned(),
        agents: vec![agent.id.clone()],
        window: ActivityWindow { now, since: now - Duration::from_secs(60) },
    };
    let standings = world.store.routing_stats(&query).await.unwrap();
    standings.get(&agent.id).map(|standing| standing.posterior).unwrap_or_default()
}

async fn records(world: &World) -> Vec<Dispatch> {
    world.engine.dispatches(&world.caller, DispatchFilter::default()).await.unwrap()
}

fn slug_of(call: &Call) -> &str {
    &call.target.agent.slug
}

fn not_sent() -> Event {
    Event::failed(Failure::new(FailureKind::PeerUnreachable, "connection refused").not_sent())
}

fn failed(kind: FailureKind) -> Event {
    Event::failed(Failure::new(kind, "no"))
}

/// A peer whose agents answer by their names.
fn answering(answers: impl Fn(&str) -> Vec<Event> + Send + Sync + 'static) -> Arc<ScriptedPeer> {
    ScriptedPeer::with(move |call| stream::iter(answers(slug_of(call))).boxed())
}

fn done() -> Vec<Event> {
    finished_with(vec![Part::text("tested")])
}

#[tokio::test]
async fn work_goes_to_somebody_who_fits_and_the_decision_can_be_read_back() {
    let world = world_of(&["anna", "berta"], ScriptedPeer::echo()).await;
    join(&world, "carl", AgentTrust::Trusted).await;
    let running = world.engine.dispatch(wanted(&world)).await.unwrap();
    let id = running.dispatch().unwrap().clone();
    let task = running.finish().await.unwrap();
    assert_eq!(task.head.state, TaskState::Completed);

    for key in [id.to_string(), task.head.id.to_string()] {
        let filter = DispatchFilter { id: Some(key), ..DispatchFilter::default() };
        let found = world.engine.dispatches(&world.caller, filter).await.unwrap();
        let [record] = found.as_slice() else { panic!("one decision: {found:?}") };
        assert_eq!((&record.id, record.candidates.len()), (&id, 3));
        let chosen = &record.candidates[0];
        assert_eq!((&chosen.agent_id, &chosen.verdict), (&task.head.agent, &CandidateVerdict::Chosen));
        assert!(record.candidates[1..].iter().all(|other| other.verdict == CandidateVerdict::Passed));
        assert!(chosen.score >= record.candidates[1].score, "{record:?}");
        assert_eq!(record.attempts[0].outcome, Some(AssignmentOutcome::Completed));
        assert_eq!(record.attempts[0].task_id, task.head.id);
    }
    let slug = &records(&world).await[0].attempts[0].agent;
    assert_eq!(known(&world, slug).await, SuccessRate::default().after(1.0, 0.99));
}

#[tokio::test]
async fn the_same_seed_gives_the_same_choices() {
    let mut chosen = Vec::new();
    for _ in 0..2 {
        let world = world_of(&["anna", "berta", "carl"], ScriptedPeer::echo()).await;
        let mut names = Vec::new();
        for _ in 0..20 {
            dispatch(&world).await.unwrap();
        }
        names.extend(world.peer.calls.lock().iter().map(|call| slug_of(call).to_owned()));
        chosen.push(names);
    }
    assert_eq!(chosen[0], chosen[1]);
    assert!(
        chosen[0].iter().any(|name| name != &chosen[0][0]),
        "nobody knows yet who is best: {:?}",
        chosen[0]
    );
}

#[tokio::test]
async fn whoever_fails_gets_less_and_less() {
    let peer = answering(|name| if name == "bad" { vec![failed(FailureKind::PeerFailed)] } else { done() });
    let world = world_of(&["bad", "good"], peer).await;
    for _ in 0..60 {
        let _ = dispatch(&world).await;
    }
    let calls = world.peer.calls.lock();
    let bad = calls.iter().filter(|call| slug_of(call) == "bad").count();
    assert!(calls.len() == 60 && (1..15).contains(&bad), "{bad} of {}", calls.len());
}

#[tokio::test]
async fn what_failed_is_never_asked_of_another() {
    let peer = answering(|_| vec![accepted("r", "c"), failed(FailureKind::PeerFailed)]);
    let world = world_of(&["anna", "berta"], peer).await;
    let failure = dispatch(&world).await.unwrap_err();
    assert_eq!((failure.kind, world.peer.calls.lock().len()), (FailureKind::PeerFailed, 1));
    let record = records(&world).await.remove(0);
    assert_eq!(record.attempts[0].outcome, Some(AssignmentOutcome::Failed));
    assert_eq!(known(&world, &record.attempts[0].agent).await.losses, 1.0);
}

#[tokio::test]
async fn a_connection_that_broke_later_is_not_asked_of_another() {
    let world = world_of(&["anna", "berta"], answering(|_| vec![failed(FailureKind::PeerUnreachable)])).await;
    let failure = dispatch(&world).await.unwrap_err();
    assert_eq!((failure.kind, world.peer.calls.lock().len()), (FailureKind::PeerUnreachable, 1));
}

#[tokio::test]
async fn when_nobody_was_there_the_next_best_goes_on() {
    let peer = answering(|name| if name == "dead" { vec![not_sent()] } else { done() });
    let world = world_of(&["dead", "alive"], peer).await;
    let mut moved = None;
    for _ in 0..20 {
        let task = dispatch(&world).await.unwrap();
        assert_eq!(task.head.state, TaskState::Completed, "nothing is lost");
        let record = records(&world).await.remove(0);
        if record.attempts.len() == 2 {
            moved = Some((record, task));
            break;
        }
    }
    let (record, task) = moved.expect("the dead one is tried at times");
    let names: Vec<&str> = record.attempts.iter().map(|attempt| attempt.agent.as_str()).collect();
    assert_eq!(names, ["dead", "alive"]);
    assert_eq!(record.attempts[0].outcome, Some(AssignmentOutcome::Unreachable));
    assert_eq!(record.attempts[0].why_left.as_deref(), Some("connection refused"));
    assert_eq!(
        (record.attempts[1].outcome, &record.attempts[1].task_id),
        (Some(AssignmentOutcome::Completed), &task.head.id)
    );
    assert!(
        matches!(&record.candidates[0].verdict, CandidateVerdict::Out(why) if why == "connection refused")
    );
    assert_eq!(record.candidates[1].verdict, CandidateVerdict::Chosen);
    let first = world.engine.look(&world.caller, record.attempts[0].task_id.as_str()).await.unwrap();
    assert_eq!(first.head.state, TaskState::Failed, "both are in the journal");
    assert_eq!(known(&world, "dead").await.losses, 1.0);
}

#[tokio::test]
async fn when_nobody_else_is_there_the_failure_is_the_first_ones() {
    let world = world_of(&["dead"], answering(|_| vec![not_sent()])).await;
    let failure = dispatch(&world).await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.message.as_str()),
        (FailureKind::PeerUnreachable, "connection refused")
    );
}

#[tokio::test]
async fn whoever_cannot_be_reached_again_and_again_is_left_alone_and_then_tried_once() {
    let is_dead = Arc::new(Mutex::new(true));
    let dead = Arc::clone(&is_dead);
    let peer = answering(move |_| if *dead.lock() { vec![not_sent()] } else { done() });
    let breaker = routing::Config {
        breaker_failures: 3,
        breaker_pause_secs: 30.0,
        seed: Some(1),
        ..routing::Config::default()
    };
    let world = world_with(&["solo"], peer, breaker).await;
    let overheard = Overheard::default();
    world.engine.bus().subscribe(Arc::new(overheard.clone()));
    for _ in 0..3 {
        assert_eq!(dispatch(&world).await.unwrap_err().kind, FailureKind::PeerUnreachable);
    }
    let failure = dispatch(&world).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Busy);
    assert!(failure.message.contains("solo: it could not be reached and is left alone until"), "{failure}");
    assert_eq!(world.peer.calls.lock().len(), 3);
    *is_dead.lock() = false;
    world.clock.forward(Duration::from_secs(31));
    assert_eq!(dispatch(&world).await.unwrap().head.state, TaskState::Completed);
    assert_eq!(dispatch(&world).await.unwrap().head.state, TaskState::Completed, "it is closed again");

    let turns = |events: Vec<AuditEvent>| -> Vec<(String, String)> {
        let turns = events.into_iter().filter(|event| event.phase == AuditPhase::Breaker);
        turns.map(|event| (event.verb.verb.clone(), event.verb.args.get().to_owned())).collect()
    };
    let heard = turns(overheard.events());
    let names: Vec<&str> = heard.iter().map(|(verb, _)| verb.as_str()).collect();
    assert_eq!(names, ["breaker.open", "breaker.half-open", "breaker.closed"]);
    assert_eq!(heard[2].1, r#"{"agent":"solo","state":"closed"}"#);
    assert!(heard[0].1.starts_with(r#"{"agent":"solo","state":"open","until":"20"#), "{heard:?}");
    let trail = world
        .store
        .audit_records(&world.caller.scope, &AuditFilter { limit: 100, ..AuditFilter::default() })
        .await
        .unwrap();
    let mut recorded = turns(trail.into_iter().map(|audited| audited.event).collect());
    recorded.reverse();
    assert_eq!(recorded, heard, "what was told is on record");
}

#[tokio::test]
async fn whom_the_caller_may_not_call_is_no_candidate_and_nothing_is_learned_of_it() {
    let world = world_of(&["friend"], ScriptedPeer::echo()).await;
    join(&world, "stranger", AgentTrust::External).await;
    for _ in 0..20 {
        dispatch(&world).await.unwrap();
    }
    assert!(world.peer.calls.lock().iter().all(|call| slug_of(call) == "friend"));
    assert_eq!(known(&world, "stranger").await, SuccessRate::default());
    let record = records(&world).await.remove(0);
    let stranger = record.candidates.iter().find(|one| one.agent == "stranger").unwrap();
    assert!(
        stranger.draw.is_none()
            && matches!(&stranger.verdict, CandidateVerdict::Out(why) if why.contains("policy"))
    );
}

#[tokio::test]
async fn when_nobody_is_left_the_error_says_why_each_fell_out() {
    let world = world_of(&[], ScriptedPeer::echo()).await;
    let nobody = dispatch(&world).await.unwrap_err();
    assert_eq!(
        (nobody.kind, nobody.data.unwrap().value()["reason"].as_str()),
        (FailureKind::NotFound, Some("nobody-left"))
    );
    join(&world, "stranger", AgentTrust::External).await;
    let denied = dispatch(&world).await.unwrap_err();
    assert_eq!(denied.kind, FailureKind::Denied);
    let candidates = &denied.data.unwrap().value()["candidates"];
    assert_eq!(candidates[0]["agent"], "stranger");
    assert_eq!(candidates[0]["why"], "policy does not let ann call it");
    assert!(records(&world).await.is_empty() && world.peer.calls.lock().is_empty());
    let empty = DispatchRequest { work: WorkDescription::default(), ..wanted(&world) };
    assert_eq!(world.engine.dispatch(empty).await.unwrap_err().kind, FailureKind::Invalid);
}

#[tokio::test]
async fn a_call_that_is_refused_on_the_way_teaches_nothing_and_gives_its_slot_back() {
    let world = world_of(&["anna"], ScriptedPeer::echo()).await;
    world.engine.bus().subscribe(Arc::new(|event: &mut rialto_model::audit_event::AuditEvent| {
        event.context.deny("not today");
    }));
    for _ in 0..12 {
        assert_eq!(dispatch(&world).await.unwrap_err().kind, FailureKind::Denied, "never full");
    }
    assert_eq!(known(&world, "anna").await, SuccessRate::default());
    assert_eq!(records(&world).await[0].attempts[0].outcome, Some(AssignmentOutcome::Refused));
}

#[tokio::test]
async fn what_is_called_off_teaches_nothing() {
    let peer = ScriptedPeer::with(|_| {
        stream::iter([accepted("r", "c"), working()]).chain(stream::pending()).boxed()
    });
    let world = world_of(&["anna"], peer).await;
    let mut running = world.engine.dispatch(wanted(&world)).await.unwrap();
    running.next().await;
    running.cancel();
    assert!(running.finish().await.is_err());
    assert_eq!(known(&world, "anna").await, SuccessRate::default());
    assert_eq!(records(&world).await[0].attempts[0].outcome, Some(AssignmentOutcome::Canceled));
}

#[tokio::test]
async fn what_waits_teaches_nothing_until_it_is_over() {
    let asked = Event::Asked { ask: QuestionKind::Input, message: None, aside: EventAside::default() };
    let first = Arc::new(Mutex::new(true));
    let peer = answering(move |_| {
        let is_first = std::mem::take(&mut *first.lock());
        if is_first { vec![accepted("r", "c"), asked.clone()] } else { done() }
    });
    let world = world_of(&["anna"], peer).await;
    let task = dispatch(&world).await.unwrap();
    assert_eq!(task.head.state, TaskState::InputRequired);
    assert_eq!(known(&world, "anna").await, SuccessRate::default());
    let target = world.engine.worker(&world.caller, task.head.id.as_str()).await.unwrap();
    let mut answer =
        Request::message(world.caller.clone(), EntryProtocol::Library, target, vec![Part::text("yes")]);
    answer.task = Some(task.head.id.to_string());
    world.engine.call(answer).await.unwrap().finish().await.unwrap();
    world.clock.forward(Duration::from_secs(2));
    world.engine.explain(&world.caller, &qa()).await.unwrap();
    assert_eq!(known(&world, "anna").await.wins, 1.0);
}

#[tokio::test]
async fn what_ends_while_nobody_waits_is_learned_from_later() {
    let world = world_of(&["anna"], ScriptedPeer::echo()).await;
    drop(world.engine.dispatch(wanted(&world)).await.unwrap());
    world.engine.drain(Duration::from_secs(5)).await;
    assert_eq!(known(&world, "anna").await, SuccessRate::default());
    world.clock.forward(Duration::from_secs(2));
    world.engine.explain(&world.caller, &qa()).await.unwrap();
    assert_eq!(known(&world, "anna").await.wins, 1.0);
}

#[tokio::test]
async fn a_task_that_took_too_long_is_worth_less() {
    let world = world_with(
        &["slow"],
        ScriptedPeer::with(|_| {
            let late = stream::once(tokio::time::sleep(Duration::from_millis(60)))
                .flat_map(|()| stream::iter(done()));
            late.boxed()
        }),
        routing::Config { target_secs: Some(0.03), ..routing::Config::default() },
    )
    .await;
    dispatch(&world).await.unwrap();
    let SuccessRate { wins, losses, .. } = known(&world, "slow").await;
    assert!(wins > 0.0 && wins < 0.6 && losses > 0.4, "{wins} {losses}");
}

/// Of 256 who ask at once, in two processes on one store, each agent gets ten tasks and no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_agent_ever_has_more_than_it_can_take() {
    let hanging = || {
        ScriptedPeer::with(|_| stream::iter([accepted("r", "c"), working()]).chain(stream::pending()).boxed())
    };
    let world = world_of(&["anna", "berta", "carl"], hanging()).await;
    let other = world.beside(hanging()).await;
    let request = |world: &World, n: usize| {
        // A caller has a limit of its own.
        let caller = Caller::user(format!("user{n}"));
        let (engine, wanted) = (world.engine.clone(), DispatchRequest { caller, ..wanted(world) });
        tokio::spawn(async move { engine.dispatch(wanted).await })
    };
    let asked: Vec<_> = (0..256).map(|n| request(if n % 2 == 0 { &world } else { &other }, n)).collect();
    let mut under_way: Vec<Running> = Vec::new();
    for asked in asked {
        match asked.await.unwrap() {
            Ok(running) => under_way.push(running),
            Err(failure) => {
                assert_eq!(failure.kind, FailureKind::Busy, "{failure}");
                let data = failure.data.unwrap().value();
                assert_eq!(data["candidates"].as_array().unwrap().len(), 3, "{data}");
            }
        }
    }
    let mut tasks: HashMap<String, usize> = HashMap::new();
    for peer in [&world.peer, &other.peer] {
        for call in peer.calls.lock().iter() {
            *tasks.entry(slug_of(call).to_owned()).or_default() += 1;
        }
    }
    assert_eq!(under_way.len(), 30, "{tasks:?}");
    assert!(tasks.values().all(|count| *count == 10), "{tasks:?}");
}

#[tokio::test]
async fn a_direct_call_takes_a_slot_too() {
    let hanging = ScriptedPeer::with(|_| {
        stream::iter([accepted("r", "c"), working()]).chain(stream::pending()).boxed()
    });
    let world = world_of(&["anna"], hanging).await;
    let agent = world.engine.registry().by_slug(&world.caller.scope, "anna").unwrap();
    let mut calls = Vec::new();
    for _ in 0..6 {
        let target = CallTarget { agent: Arc::clone(&agent), skill: None };
        let request =
            Request::message(world.caller.clone(), EntryProtocol::Library, target, vec![Part::text("hi")]);
        calls.push(world.engine.call(request).await.unwrap());
    }
    let record = world.engine.explain(&world.caller, &qa()).await.unwrap();
    assert_eq!((record.candidates[0].active_tasks, record.candidates[0].load_factor), (6, 0.5));
}

#[tokio::test]
async fn a_change_of_the_registry_is_seen_by_the_next_decision() {
    let world = world_of(&["anna"], ScriptedPeer::echo()).await;
    assert_eq!(world.engine.explain(&world.caller, &qa()).await.unwrap().candidates.len(), 1);
    join(&world, "berta", AgentTrust::Trusted).await;
    let record = world.engine.explain(&world.caller, &qa()).await.unwrap();
    assert_eq!(record.candidates.len(), 2);
    assert!(records(&world).await.is_empty(), "an explanation promises nothing");
    let anna = world.engine.registry().by_slug(&world.caller.scope, "anna").unwrap();
    world.engine.registry().remove(&anna).await.unwrap();
    let record = world.engine.explain(&world.caller, &qa()).await.unwrap();
    assert_eq!(record.candidates.iter().map(|one| one.agent.as_str()).collect::<Vec<_>>(), ["berta"]);
}

#[tokio::test]
async fn words_go_to_the_agent_where_its_skill_wants_arguments() {
    let world = world_of(&[], ScriptedPeer::echo()).await;
    let schema = serde_json::json!({ "type": "object", "required": ["site"], "properties": { "site": {} }, "additionalProperties": false });
    let mut skill = agents::skill_with_schema("test", schema);
    skill.tags = vec!["qa".to_owned()];
    world.discovery.serve("https://strict.example.com", agents::card("strict", vec![skill]));
    let strict =
        Registration { trust: Some(AgentTrust::Trusted), ..Registration::new("https://strict.example.com") };
    world.engine.registry().register(strict).await.unwrap();
    let task = dispatch(&world).await.unwrap();
    assert_eq!(task.head.skill, None);
    let with = |parts| DispatchRequest { parts, ..wanted(&world) };
    let data = |text: &str| vec![Part::data(rialto_model::json::Json::parse(text).unwrap())];
    let fits = world.engine.dispatch(with(data(r#"{"site":"a"}"#))).await.unwrap().finish().await.unwrap();
    assert_eq!(fits.head.skill.unwrap().as_str(), "test");
    let failure = world.engine.dispatch(with(data(r#"{"sight":"a"}"#))).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Invalid);
    assert!(failure.message.contains("do not fit the schema"), "{failure}");
}

#[tokio::test]
async fn a_file_goes_to_who_takes_its_kind_and_the_record_says_who_does_not() {
    let world = world_of(&["anna"], ScriptedPeer::echo()).await;
    let url = "https://words.example.com".to_owned();
    let skill = Skill { input_modes: vec!["text/plain".to_owned()], ..agents::tagged_skill("test", &["qa"]) };
    world.discovery.serve(&url, agents::card("words", vec![skill]));
    let wanted_row = Registration { trust: Some(AgentTrust::Trusted), ..Registration::new(url) };
    world.engine.registry().register(wanted_row).await.unwrap();
    let picture = Part {
        media_type: Some("image/png".to_owned()),
        ..Part::new(Content::Raw("iVBORw0KGgo=".to_owned()))
    };
    for _ in 0..10 {
        let request = DispatchRequest { parts: vec![picture.clone()], ..wanted(&world) };
        let task = world.engine.dispatch(request).await.unwrap().finish().await.unwrap();
        let record = records(&world).await.remove(0);
        assert_eq!(record.worker().unwrap().task_id, task.head.id);
        assert_eq!(record.work.input_modes, ["image/png"]);
        let out = record.candidates.iter().find(|one| one.agent == "words").unwrap();
        let why = "its skill test takes text/plain, not image/png".to_owned();
        assert_eq!(out.verdict, CandidateVerdict::Out(why));
    }
    let named = WorkDescription { input_modes: vec!["video/mp4".to_owned()], ..qa() };
    let record = world.engine.explain(&world.caller, &named).await.unwrap();
    assert_eq!(record.candidates[0].agent, "anna", "who says nothing takes everything");
}
