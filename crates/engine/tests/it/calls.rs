//! What becomes of calls.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use rialto_engine::{Config, Request, Step, registry::Registration};
use rialto_model::{
    agent::AgentTrust,
    audit_event::{AuditEvent, AuditPhase, Hook},
    call::{CallTarget, Caller, CallerKind, EntryProtocol},
    card::Skill,
    cost::Cents,
    event::{Event, EventAside, QuestionKind},
    failure::{Failure, FailureKind},
    message::{Message, Part, Role},
    store::{AuditFilter, Store, TaskAppend, TaskFilter},
    task::{TaskHead, TaskState},
};
use rialto_testkit::{
    agents,
    peer::{ScriptedPeer, accepted, finished_with_data, working},
};
use serde_json::json;

use crate::fixture::World;

fn asked() -> Vec<Event> {
    let message = Some(Message::new("q", Role::Agent, vec![Part::text("which colour?")]));
    vec![
        accepted("remote-1", "context-1"),
        Event::Asked { ask: QuestionKind::Input, message, aside: EventAside::default() },
    ]
}

#[tokio::test]
async fn a_call_brings_its_result_and_is_in_the_journal() {
    let world = World::with(ScriptedPeer::echo()).await;
    let task = world.call(json!({ "n": 1 })).await.unwrap();
    assert_eq!(task.head.state, TaskState::Completed);
    let events = world.store.events(&task.head.id, 0).await.unwrap();
    assert_eq!(
        events.iter().map(|e| e.event.name()).collect::<Vec<_>>(),
        ["accepted", "artifact", "finished"]
    );
    assert_eq!(world.engine.task(&world.caller, task.head.id.as_str()).await.unwrap(), task);
}

#[tokio::test]
async fn the_bus_hears_of_a_call_before_and_after() {
    let world = World::with(ScriptedPeer::echo()).await;
    world.call(json!({ "branch": "main" })).await.unwrap();
    assert_eq!(world.phases(), ["pre-verb", "post-verb completed"]);
    let event = serde_json::to_value(&world.heard.events()[1]).unwrap();
    for member in [
        "verb",
        "legacyAlias",
        "orgId",
        "agentCardId",
        "agentUrl",
        "skillId",
        "sessionId",
        "args",
        "emittedAt",
        "durationMs",
        "outcome",
    ] {
        assert!(!event[member].is_null(), "{member} is missing in {event}");
    }
    assert_eq!(event["verb"], "vercel_ops.deploy");
    assert_eq!(event["legacyAlias"], "a2a_vercel_ops_deploy");
    assert_eq!(event["args"], json!({ "branch": "main" }));
    let prefix = format!("a2a-{}-deploy-", event["agentCardId"].as_str().unwrap());
    assert!(event["sessionId"].as_str().unwrap().starts_with(&prefix));
}

#[tokio::test]
async fn a_denied_call_leaves_no_packet_and_no_task_but_three_events() {
    let world = World::empty(ScriptedPeer::echo(), Config::default()).await;
    world.register(agents::skill("deploy"), AgentTrust::External).await;
    let failure = world.call(json!({})).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Denied);
    assert!(failure.message.contains("rialto agents trust vercel_ops trusted"), "{failure}");
    assert!(world.peer.calls.lock().is_empty());
    assert_eq!(world.phases(), ["pre-verb", "post-verb failed", "verb-error"]);
    assert!(world.heard.events()[0].context.denied);
    assert_eq!(world.heard.events()[2].error.as_ref().unwrap().code, -32003);
    let tasks =
        world.engine.tasks(&world.caller, TaskFilter { limit: 10, ..TaskFilter::default() }).await.unwrap();
    assert!(tasks.is_empty());
    assert!(world.store.load(&world.caller.scope.org).await.unwrap().is_empty());
    assert_eq!(
        world.store.audit_records(&world.caller.scope, &AuditFilter::newest(10)).await.unwrap().len(),
        3
    );
}

#[tokio::test]
async fn what_a_task_costs_is_told_once_it_is_completed_and_only_then() {
    let priced = |cents: f64| Skill { cost: Cents::try_from(cents).ok(), ..agents::skill("deploy") };
    let told = |world: &World| {
        let events = world.heard.events();
        let cost = events.last().unwrap().estimated_cents.map(|cents| cents.to_string());
        (serde_json::to_value(events.last().unwrap()).unwrap()["estimatedCents"].to_string(), cost)
    };
    let failed = Event::failed(Failure::new(FailureKind::PeerFailed, "no"));
    let done = [vec![accepted("r", "c")], finished_with_data(json!({}))].concat();
    for (skill, events, expected) in [
        (priced(2.5), done.clone(), Some("2.5")),
        (agents::skill("deploy"), done.clone(), None),
        (priced(2.5), asked(), None),
        (priced(2.5), vec![accepted("r", "c"), failed], None),
    ] {
        let world = World::empty(ScriptedPeer::telling(events), Config::default()).await;
        world.register(skill, AgentTrust::Trusted).await;
        let _ = world.call(json!({})).await;
        assert_eq!(world.peer.calls.lock().len(), 1, "the call was made");
        let cost = expected.map(str::to_owned);
        assert_eq!(told(&world), (cost.clone().unwrap_or_else(|| "null".into()), cost));
    }
}

#[tokio::test]
async fn a_change_of_trust_holds_for_the_very_next_call() {
    let world = World::empty(ScriptedPeer::echo(), Config::default()).await;
    world.register(agents::skill("deploy"), AgentTrust::External).await;
    assert!(world.call(json!({})).await.is_err());
    let agent = world.engine.registry().find(&world.caller.scope, "vercel_ops").unwrap();
    world.engine.registry().set_trust(&agent, AgentTrust::Trusted).await.unwrap();
    assert!(world.call(json!({})).await.is_ok());
    let agent = world.engine.registry().find(&world.caller.scope, "vercel_ops").unwrap();
    world.engine.registry().set_trust(&agent, AgentTrust::External).await.unwrap();
    assert_eq!(world.call(json!({})).await.unwrap_err().kind, FailureKind::Denied);
}

#[tokio::test]
async fn a_subscriber_can_deny_a_call() {
    let world = World::with(ScriptedPeer::echo()).await;
    world.engine.bus().subscribe(Arc::new(|event: &mut AuditEvent| event.context.deny("not on a Sunday")));
    let failure = world.call(json!({})).await.unwrap_err();
    assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Denied, "not on a Sunday"));
    assert!(world.peer.calls.lock().is_empty());
}

#[tokio::test]
async fn arguments_that_the_schema_does_not_allow_never_leave() {
    let world = World::empty(ScriptedPeer::echo(), Config::default()).await;
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    world.register(agents::skill_with_schema("deploy", schema), AgentTrust::Trusted).await;
    let failure = world.call(json!({ "n": "one" })).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Invalid);
    assert_eq!(failure.message, "arguments/n: \"one\" is not of type \"integer\"");
    assert_eq!(failure.data.unwrap().value()["path"], "/n");
    assert!(world.peer.calls.lock().is_empty());
    assert!(world.call(json!({ "n": 1 })).await.is_ok());
}

#[tokio::test]
async fn secrets_in_arguments_are_sent_but_not_written_down() {
    let world = World::with(ScriptedPeer::echo()).await;
    let task = world.call(json!({ "api_key": "hunter2" })).await.unwrap();
    assert!(world.peer.calls.lock()[0].args().get().contains("hunter2"));
    assert!(!task.head.args.get().contains("hunter2"));
    let trail = world.store.audit_records(&world.caller.scope, &AuditFilter::newest(10)).await.unwrap();
    assert!(!format!("{trail:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_failing_task_is_a_failure_with_the_task_s_ids() {
    let failure = Failure::new(FailureKind::PeerFailed, "it broke");
    let world = World::telling(vec![accepted("remote-1", "context-1"), Event::failed(failure)]).await;
    let failure = world.call(json!({})).await.unwrap_err();
    assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::PeerFailed, "it broke"));
    let data = failure.data.unwrap().value();
    assert_eq!(
        (&data["remoteTaskId"], &data["contextId"], &data["state"]),
        (&json!("remote-1"), &json!("context-1"), &json!("failed"))
    );
    assert_eq!(world.phases(), ["pre-verb", "post-verb failed", "verb-error"]);
}

#[tokio::test]
async fn a_peer_that_hangs_up_fails_the_task() {
    let world = World::telling(vec![working()]).await;
    assert_eq!(world.call(json!({})).await.unwrap_err().kind, FailureKind::PeerGarbled);
}

#[tokio::test]
async fn a_call_that_takes_too_long_goes_on_and_can_be_fetched_later() {
    let gate = Arc::new(tokio::sync::Notify::new());
    let opened = Arc::clone(&gate);
    let peer = ScriptedPeer::with(move |_| {
        let first = stream::iter([accepted("remote-1", "context-1"), working()]);
        let gate = Arc::clone(&gate);
        let later = stream::once(async move {
            gate.notified().await;
            stream::iter(finished_with_data(json!({ "late": true })))
        });
        first.chain(later.flatten()).boxed()
    });
    let world = World::with(peer).await;
    let request = Request { wall_clock: Some(Duration::from_millis(30)), ..world.request(json!({})) };
    let failure = world.engine.call(request).await.unwrap().finish().await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::PeerTimeout);
    let data = failure.data.unwrap().value();
    assert_eq!(data["remoteTaskId"], "remote-1");
    assert_eq!(world.phases(), ["pre-verb", "post-verb failed", "verb-error"]);
    let id = data["taskId"].as_str().unwrap();
    assert_eq!(world.engine.task(&world.caller, id).await.unwrap().head.state, TaskState::Working);
    opened.notify_one();
    let task = eventually_ended(&world, id).await;
    assert_eq!(task.artifacts.len(), 1);
    assert_eq!(world.phases().len(), 3, "a late end is not announced again");
}

async fn eventually_ended(world: &World, id: &str) -> rialto_model::task::Task {
    loop {
        let task = world.engine.task(&world.caller, id).await.unwrap();
        if task.head.state.is_terminal() {
            return task;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn whoever_waits_hears_something_now_and_then() {
    let peer = ScriptedPeer::with(|_| stream::pending().boxed());
    let world = World::empty(peer, Config { heartbeat_secs: 1, ..Config::default() }).await;
    world.register(agents::skill("deploy"), AgentTrust::Trusted).await;
    let mut running = world.engine.call(world.request(json!({}))).await.unwrap();
    assert!(matches!(running.next().await, Step::Heartbeat));
    assert!(matches!(running.next().await, Step::Heartbeat));
}

#[tokio::test]
async fn a_cancelled_call_reaches_the_remote_task() {
    let peer = ScriptedPeer::with(|_| {
        stream::iter([accepted("remote-1", "context-1"), working()]).chain(stream::pending()).boxed()
    });
    let world = World::with(peer).await;
    let mut running = world.engine.call(world.request(json!({}))).await.unwrap();
    assert!(matches!(running.next().await, Step::Event(_)));
    let id = running.task().clone();
    running.cancel();
    let failure = running.finish().await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::PeerFailed);
    assert_eq!(world.peer.cancels.lock()[0].remote.task_id.as_deref(), Some("remote-1"));
    assert_eq!(world.engine.task(&world.caller, id.as_str()).await.unwrap().head.state, TaskState::Canceled);
}

#[tokio::test]
async fn a_question_is_no_failure_and_the_answer_goes_on_with_the_same_task() {
    let peer = ScriptedPeer::with(|call| {
        let events = if call.continues.task_id.is_some() {
            finished_with_data(json!({ "colour": "red" }))
        } else {
            asked()
        };
        stream::iter(events).boxed()
    });
    let world = World::with(peer).await;
    let waiting = world.call(json!({})).await.unwrap();
    assert_eq!(waiting.head.state, TaskState::InputRequired);
    assert_eq!(waiting.message.unwrap().text(), "which colour?");
    let answer = Request {
        task: Some("remote-1".to_owned()),
        ..Request::message(
            world.caller.clone(),
            EntryProtocol::Library,
            world.request(json!({})).target,
            vec![Part::text("red")],
        )
    };
    let done = world.engine.call(answer).await.unwrap().finish().await.unwrap();
    assert_eq!((done.head.id, done.head.state), (waiting.head.id, TaskState::Completed));
    assert_eq!(world.phases(), ["pre-verb", "post-verb waiting", "pre-verb", "post-verb completed"]);
}

/// Writes to a task whenever a call is announced, as whoever follows it does.
struct Meddler(Arc<dyn Store>, TaskHead);

impl Hook for Meddler {
    fn hear(&self, event: &mut AuditEvent) {
        if event.phase != AuditPhase::PreVerb {
            return;
        }
        let (store, head) = (Arc::clone(&self.0), self.1.clone());
        let entry = TaskAppend {
            expected: head.version,
            at: head.updated_at,
            events: asked().split_off(asked().len() - 1),
            audit: Vec::new(),
            head: TaskHead { version: head.version + 1, ..head },
        };
        let append = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(store.append(entry)).unwrap();
        };
        std::thread::spawn(append).join().unwrap();
    }
}

#[tokio::test]
async fn what_is_said_while_a_task_goes_on_is_said_to_it_all_the_same() {
    let peer = ScriptedPeer::with(|call| {
        let is_answer = call.continues.task_id.is_some();
        stream::iter(if is_answer { finished_with_data(json!({ "colour": "red" })) } else { asked() }).boxed()
    });
    let world = World::with(peer).await;
    let waiting = world.call(json!({})).await.unwrap().head;
    world.engine.bus().subscribe(Arc::new(Meddler(Arc::clone(&world.store), waiting.clone())));
    let answer = Request { task: Some("remote-1".to_owned()), ..world.request(json!({ "colour": "red" })) };
    let done = world.engine.call(answer).await.unwrap().finish().await.unwrap();
    assert_eq!((done.head.id, done.head.state), (waiting.id, TaskState::Completed));
}

#[tokio::test]
async fn an_open_task_is_asked_about_and_what_is_known_is_not_written_twice() {
    let world = World::telling(asked()).await;
    let waiting = world.call(json!({})).await.unwrap();
    world.peer.will_tell(asked());
    let same = world.engine.task(&world.caller, "remote-1").await.unwrap();
    assert_eq!(same.head.version, waiting.head.version);
    world.peer.will_tell(finished_with_data(json!(1)));
    let done = world.engine.task(&world.caller, "remote-1").await.unwrap();
    assert_eq!(done.head.state, TaskState::Completed);
}

#[tokio::test]
async fn nobody_finds_another_caller_s_task() {
    let world = World::telling(asked()).await;
    let task = world.call(json!({})).await.unwrap();
    let other = Caller::user("bob");
    for id in [task.head.id.as_str(), "remote-1"] {
        assert_eq!(world.engine.task(&other, id).await.unwrap_err().kind, FailureKind::NotFound);
        assert_eq!(world.engine.cancel(&other, id).await.unwrap_err().kind, FailureKind::NotFound);
    }
    assert!(
        world
            .engine
            .tasks(&other, TaskFilter { limit: 9, ..TaskFilter::default() })
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn an_ended_task_cannot_be_called_off_or_continued() {
    let world = World::with(ScriptedPeer::echo()).await;
    let task = world.call(json!({})).await.unwrap();
    let id = task.head.id.to_string();
    assert_eq!(world.engine.cancel(&world.caller, &id).await.unwrap_err().kind, FailureKind::Conflict);
    let request = Request { task: Some(id), ..world.request(json!({})) };
    assert_eq!(world.engine.call(request).await.unwrap_err().kind, FailureKind::Conflict);
}

#[tokio::test]
async fn both_names_reach_the_same_skill() {
    let world = World::with(ScriptedPeer::echo()).await;
    for name in ["vercel_ops.deploy", "a2a_vercel_ops_deploy"] {
        let CallTarget { agent, skill } = world.engine.resolve(&world.caller, name).unwrap();
        assert_eq!((agent.slug.as_str(), skill.unwrap().id.as_str()), ("vercel_ops", "deploy"));
    }
    assert!(world.engine.resolve(&world.caller, "vercel_ops.other").is_none());
}

#[tokio::test]
async fn many_calls_at_once_all_end() {
    let world = World::with(ScriptedPeer::echo()).await;
    let calls = (0..200).map(|n| world.call(json!({ "n": n })));
    let results = futures::future::join_all(calls).await;
    assert!(results.iter().all(|result| result.as_ref().is_ok_and(|task| task.head.version == 3)));
}

#[tokio::test]
async fn an_agent_calls_in_as_itself_and_only_while_it_is_registered() {
    const CLERK: &str = "https://clerk.example.com";
    let mut world = World::with(ScriptedPeer::echo()).await;
    world.discovery.serve(CLERK, agents::card("Clerk", vec![agents::skill("file")]));
    let registry = world.engine.registry();
    let clerk = registry.register(Registration::new(CLERK)).await.unwrap().agent;
    world.caller = Caller { kind: CallerKind::Agent, ..Caller::user(clerk.id.as_str()) };
    world.call(json!({})).await.unwrap();
    let request = world.request(json!({}));
    world.engine.registry().remove(&clerk).await.unwrap();
    let refused = world.engine.call(request).await.err().unwrap();
    assert_eq!(refused.kind, FailureKind::Denied);
    assert!(refused.message.contains("not a registered agent"), "{refused}");
}
