//! Guardrails on the road of a call: what they find goes nowhere, whichever way it went and whoever asked.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, stream};
use parking_lot::Mutex;
use rialto_engine::{CallUpdate, DispatchRequest, GuardrailSet, guardrails::Asker};
use rialto_guardrails::{
    classifier::{ClassifierOptions, ClassifyResponse},
    scoped_rules::Guardrails,
};
use rialto_model::{
    audit_event::{AuditEvent, AuditPhase},
    call::EntryProtocol,
    event::{Event, EventAside, QuestionKind},
    failure::{Failure, FailureKind},
    json::Json,
    message::{Artifact, Content, Part},
    routing::WorkDescription,
    store::{AuditFilter, TaskFilter},
    task::{Task, TaskState},
};
use rialto_testkit::peer::{ScriptedPeer, accepted, finished_with, working};
use serde_json::{Value, json};

use crate::fixture::{World, words};

/// What nobody may see where it is blocked.
const MARK: &str = "marker4711";

/// Looks for the mark, both ways unless `target` says otherwise.
fn on_mark(action: &str, target: &str) -> Value {
    let patterns = json!([{ "name": "mark", "pattern": "marker\\d+" }]);
    json!({ "action": action, "checks": [{ "type": "regex", "target": target, "config": { "patterns": patterns } }] })
}

fn nobody() -> Asker {
    Arc::new(|_: &ClassifierOptions, _: &str| async { Err("nobody is there".to_owned()) }.boxed())
}

pub(crate) fn guard(world: &World, setting: Value) {
    guard_with(world, setting, nobody());
}

fn guard_with(world: &World, setting: Value, asker: Asker) {
    let setting: Guardrails = serde_json::from_value(setting).unwrap();
    world.engine.guardrails().replace(GuardrailSet::new(&setting, asker).unwrap());
}

async fn world_with(events: Vec<Event>, setting: Value) -> World {
    let world = World::telling(events).await;
    guard(&world, setting);
    world
}

fn text(text: &str) -> Vec<Event> {
    finished_with(vec![Part::text(text)])
}

fn piece(text: &str, append: bool, last: bool) -> Event {
    let artifact = Artifact::new("a", vec![Part::text(text)]);
    Event::Artifact { artifact, append, last, aside: EventAside::default() }
}

fn finished() -> Event {
    Event::Finished { message: None, aside: EventAside::default() }
}

fn said(message: &str) -> Event {
    Event::Progress { working: true, message: Some(words(message)), aside: EventAside::default() }
}

async fn trail(world: &World) -> Vec<AuditEvent> {
    let filter = AuditFilter { limit: 100, ..AuditFilter::default() };
    let trail = world.store.audit_records(&world.caller.scope, &filter).await.unwrap();
    trail.into_iter().rev().map(|audited| audited.event).collect()
}

/// Everything that is kept and that hooks have heard, as one text.
async fn everything(world: &World) -> String {
    let mut all = format!("{:?} {:?}", trail(world).await, world.heard.events());
    let filter = TaskFilter { limit: 100, ..TaskFilter::default() };
    for head in world.store.tasks(&world.caller.scope, &filter).await.unwrap() {
        let events = world.store.events(&head.id, 0).await.unwrap();
        all.push_str(&format!("{head:?} {events:?}"));
    }
    let dispatches =
        world.engine.dispatches().list(&world.caller, rialto_model::routing::DispatchFilter::default());
    all.push_str(&format!("{:?}", dispatches.await.unwrap()));
    all
}

async fn assert_unseen(world: &World) {
    let all = everything(world).await;
    assert!(!all.contains(MARK), "{all}");
}

fn findings(events: &[AuditEvent]) -> Vec<Value> {
    let noted = events.iter().filter(|event| event.phase == AuditPhase::Guardrail);
    noted.map(|event| event.verb.args.value()).collect()
}

fn text_of(task: &Task) -> String {
    task.artifacts.iter().map(|artifact| rialto_model::message::text_of(&artifact.parts)).collect()
}

#[tokio::test]
async fn what_is_blocked_on_its_way_in_goes_nowhere() {
    let world = world_with(text("done"), on_mark("block", "input")).await;
    let failure = world.call(json!({ "note": MARK })).await.unwrap_err();
    assert_eq!((failure.kind, failure.kind.rpc_code()), (FailureKind::Blocked, -32209));
    assert_eq!(failure.kind.class(), "GuardrailBlockedError");
    let data = failure.data.unwrap().value();
    assert_eq!(
        (&data["checks"], &data["kinds"], &data["direction"]),
        (&json!(["regex"]), &json!(["mark"]), &json!("input"))
    );
    assert!(world.peer.calls.lock().is_empty(), "nothing was executed");
    let filter = TaskFilter { limit: 10, ..TaskFilter::default() };
    assert!(world.store.tasks(&world.caller.scope, &filter).await.unwrap().is_empty(), "there is no task");
    assert_unseen(&world).await;
    let trail = trail(&world).await;
    let phases: Vec<&str> = trail.iter().map(|event| event.phase.as_str()).collect();
    assert_eq!(phases, ["guardrail", "pre-verb", "post-verb", "verb-error"]);
    assert!(trail[1].context.denied);
    assert!(trail[1].context.reason.as_deref().unwrap().contains("regex/mark"));
    assert_eq!(trail[1].verb.args.value(), json!({ "withheld": "a guardrail found something in it" }));
    assert_eq!(trail[3].error.as_ref().unwrap().code, -32209);
    assert_eq!(findings(&trail)[0]["action"], "block");
    world.call(json!({ "note": "harmless" })).await.unwrap();
}

#[tokio::test]
async fn what_is_replaced_on_its_way_in_is_so_for_the_agent_and_the_store_alike() {
    let world = world_with(text("done"), on_mark("redact", "input")).await;
    world.call(json!({ "note": format!("see {MARK}!") })).await.unwrap();
    assert_eq!(world.peer.calls.lock()[0].args().value(), json!({ "note": "see [mark]!" }));
    assert_unseen(&world).await;
    assert!(everything(&world).await.contains("see [mark]!"));
}

#[tokio::test]
async fn a_conversation_keeps_what_went_on_and_not_what_was_said() {
    let world = world_with(text("done"), on_mark("redact", "input")).await;
    let mut request = world.talk("m1", None, json!({ "note": MARK }));
    let talk = request.conversation.as_mut().unwrap();
    let mut spoken = (*talk.spoken).clone();
    spoken.message.metadata = Some(Json::encode(&json!({ "beside": MARK })));
    talk.spoken = Arc::new(spoken);
    let id = world.say(request).await;
    let task = world.in_the_end(&id).await;
    assert_eq!(task.head.state, TaskState::Completed);
    assert_eq!(task.history[0].metadata.as_ref().unwrap().value(), json!({ "beside": "[mark]" }));
    {
        let calls = world.peer.calls.lock();
        let sent = calls[0].spoken.as_ref().unwrap();
        assert!(!format!("{sent:?} {:?}", calls[0].parts).contains(MARK));
    }
    assert_unseen(&world).await;
}

#[tokio::test]
async fn a_warning_lets_it_go_on_and_stands_in_the_tasks_metadata() {
    for target in ["input", "output", "both"] {
        let world = world_with(text(&format!("you said {MARK}")), on_mark("warn", target)).await;
        let task = world.call(json!({ "note": MARK })).await.unwrap();
        assert_eq!(text_of(&task), format!("you said {MARK}"));
        assert_eq!(task.guardrail().unwrap().header(), "warn; checks=regex; kinds=mark", "{target}");
        let kept = world.engine.tasks().read(&world.caller, task.head.id.as_str()).await.unwrap();
        assert_eq!(kept.metadata, task.metadata);
        let noted = findings(&trail(&world).await);
        assert_eq!(noted.len(), if target == "both" { 2 } else { 1 });
        assert_eq!(
            noted[0]["findings"][0],
            json!({ "check": "regex", "kind": "mark", "action": "warn", "count": 1 })
        );
    }
}

#[tokio::test]
async fn what_is_only_noted_changes_nothing_for_the_caller() {
    let world = world_with(text(MARK), on_mark("log", "both")).await;
    let task = world.call(json!({ "note": MARK })).await.unwrap();
    assert_eq!((text_of(&task).as_str(), task.metadata.as_ref()), (MARK, None));
    let noted = findings(&trail(&world).await);
    let ways: Vec<&Value> = noted.iter().map(|note| &note["direction"]).collect();
    assert_eq!(ways, ["input", "output"]);
    let told = format!("{noted:?}");
    assert!(!told.contains(MARK), "{told}");
}

#[tokio::test]
async fn an_answer_that_is_blocked_is_in_no_artifact_journal_or_event() {
    let parts = |content| vec![Part { filename: Some("a.txt".into()), ..Part::new(content) }];
    let raw = "bWFya2VyNDcxMQ==".to_owned();
    let answers = [
        text(&format!("it is {MARK}")),
        finished_with(parts(Content::Data(Json::encode(&json!({ "deep": [{ "a": MARK }] }))))),
        finished_with(parts(Content::Raw(raw))),
        finished_with(vec![Part { filename: Some(format!("{MARK}.txt")), ..Part::text("x") }]),
        vec![Event::Replied { message: words(MARK) }],
        vec![Event::Finished { message: Some(words(MARK)), aside: EventAside::default() }],
        vec![said(MARK), finished()],
        vec![Event::Asked {
            ask: QuestionKind::Input,
            message: Some(words(MARK)),
            aside: EventAside::default(),
        }],
        vec![Event::failed(Failure::new(FailureKind::PeerFailed, format!("no {MARK}")))],
        vec![Event::Rejected { message: Some(words(MARK)), aside: EventAside::default() }],
    ];
    for answer in answers {
        let world = world_with(answer.clone(), on_mark("block", "output")).await;
        let failure = world.call(json!({ "note": MARK })).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Blocked, "{answer:?}");
        let data = failure.data.unwrap().value();
        assert_eq!((&data["kinds"], &data["direction"]), (&json!(["mark"]), &json!("output")));
        let task = world.engine.tasks().read(&world.caller, data["taskId"].as_str().unwrap()).await.unwrap();
        assert_eq!(task.head.state, TaskState::Failed);
        assert_eq!(task.failure.unwrap().kind, FailureKind::Blocked);
        let events = world.store.events(&task.head.id, 0).await.unwrap();
        let kept = format!("{events:?} {:?}", task.artifacts);
        assert!(!kept.contains(MARK) && !kept.contains("bWFya2Vy"), "{kept}");
    }
}

#[tokio::test]
async fn pieces_are_held_back_until_the_whole_was_looked_through() {
    let (first, second) = MARK.split_at(6);
    let told = vec![
        accepted("r", "c"),
        working(),
        piece(first, false, false),
        piece(second, true, false),
        finished(),
    ];
    let world = world_with(told.clone(), on_mark("block", "output")).await;
    let failure = world.call(json!({})).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Blocked);
    let kept = everything(&world).await;
    assert!(!kept.contains("Artifact {"), "not even the first piece: {kept}");

    let world = world_with(told, on_mark("redact", "output")).await;
    let task = world.call(json!({})).await.unwrap();
    assert_eq!(text_of(&task), "[mark]");
    assert_unseen(&world).await;

    let clean = vec![accepted("r", "c"), piece("mark", false, false), piece("er x", true, true), finished()];
    let world = world_with(clean, on_mark("redact", "output")).await;
    let task = world.call(json!({})).await.unwrap();
    assert_eq!(
        task.artifacts[0].parts,
        [Part::text("mark"), Part::text("er x")],
        "what is clean stays as it came"
    );
}

#[tokio::test]
async fn nothing_is_told_before_it_was_looked_through_and_warnings_hold_nothing_back() {
    for (action, is_told_at_once) in [("redact", false), ("warn", true)] {
        let (go_on, more) = futures::channel::mpsc::unbounded::<Event>();
        let more = Arc::new(Mutex::new(Some(more)));
        let peer = ScriptedPeer::with(move |_| {
            let first = vec![accepted("r", "c"), piece("one ", false, false)];
            stream::iter(first).chain(more.lock().take().unwrap()).boxed()
        });
        let world = World::with(peer).await;
        guard(&world, on_mark(action, "output"));
        let mut running =
            world.engine.calls().start(world.request(json!({}))).await.unwrap().into_handle().unwrap();
        let mut heard = Vec::new();
        while let Ok(CallUpdate::Event(event)) =
            tokio::time::timeout(Duration::from_millis(300), running.next()).await
        {
            heard.push(event.name());
        }
        assert_eq!(heard.contains(&"artifact"), is_told_at_once, "{action}: {heard:?}");
        go_on.unbounded_send(piece(MARK, true, true)).unwrap();
        go_on.unbounded_send(finished()).unwrap();
        let task = running.finish().await.unwrap();
        let expected = if action == "redact" { "one [mark]".to_owned() } else { format!("one \n{MARK}") };
        assert_eq!(text_of(&task), expected);
    }
}

#[tokio::test]
async fn more_than_can_be_held_back_is_blocked() {
    let told = vec![piece(&"x".repeat(600), false, false), piece(&"y".repeat(600), true, true), finished()];
    let mut setting = on_mark("redact", "output");
    setting["hold_bytes"] = json!(1_000);
    let world = world_with(told.clone(), setting.clone()).await;
    let failure = world.call(json!({})).await.unwrap_err();
    assert_eq!(failure.data.unwrap().value()["kinds"], json!(["too-large"]));
    setting["action"] = json!("warn");
    let world = world_with(told, setting).await;
    assert_eq!(text_of(&world.call(json!({})).await.unwrap()).len(), 1_201, "what is not held back goes on");
}

#[tokio::test]
async fn an_answer_in_a_task_is_looked_through_like_a_call() {
    let asked = vec![
        accepted("r", "c"),
        Event::Asked {
            ask: QuestionKind::Input,
            message: Some(words("which one?")),
            aside: EventAside::default(),
        },
    ];
    let world = world_with(asked, on_mark("block", "input")).await;
    let task = world.call(json!({})).await.unwrap();
    assert_eq!(task.head.state, TaskState::InputRequired);
    let mut request = world.request(json!({ "answer": MARK }));
    request.task = Some(task.head.id.to_string());
    let failure = world.engine.calls().start(request).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Blocked);
    assert_eq!(world.peer.calls.lock().len(), 1);
    let after = world.engine.tasks().read(&world.caller, task.head.id.as_str()).await.unwrap();
    assert_eq!(after.head.state, TaskState::InputRequired, "the task still waits");
    assert_unseen(&world).await;
}

#[tokio::test]
async fn a_task_that_is_asked_about_later_comes_the_same_way() {
    let waits = vec![
        accepted("r", "c"),
        Event::Asked { ask: QuestionKind::Auth, message: None, aside: EventAside::default() },
    ];
    for by_following in [false, true] {
        let world = world_with(waits.clone(), on_mark("block", "output")).await;
        let task = world.call(json!({})).await.unwrap();
        world.peer.will_tell(vec![piece(MARK, false, true), finished()]);
        let id = task.head.id.as_str();
        let task = if by_following {
            let failure = world
                .engine
                .calls()
                .follow_remote(&world.caller, id)
                .await
                .unwrap()
                .finish()
                .await
                .unwrap_err();
            assert_eq!(failure.kind, FailureKind::Blocked);
            world.engine.tasks().read(&world.caller, id).await.unwrap()
        } else {
            world.engine.tasks().get(&world.caller, id).await.unwrap()
        };
        assert_eq!((task.head.state, task.failure.unwrap().kind), (TaskState::Failed, FailureKind::Blocked));
        assert_unseen(&world).await;
    }
}

#[tokio::test]
async fn a_caller_that_policy_refuses_leaves_no_words_either() {
    let world = World::empty(ScriptedPeer::echo(), rialto_engine::Config::default()).await;
    world.register(rialto_testkit::agents::skill("deploy"), rialto_model::agent::AgentTrust::External).await;
    guard(&world, on_mark("block", "input"));
    let failure = world.call(json!({ "note": MARK })).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Denied, "policy comes first");
    assert_unseen(&world).await;
    let failure = world.call(json!({ "note": "harmless" })).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Denied);
    assert!(everything(&world).await.contains("harmless"));
}

#[tokio::test]
async fn work_that_names_nobody_is_looked_through_before_the_choice_is_written_down() {
    let skill = rialto_testkit::agents::tagged_skill("deploy", &["qa"]);
    let world = World::empty(ScriptedPeer::echo(), rialto_engine::Config::default()).await;
    world.register(skill, rialto_model::agent::AgentTrust::Trusted).await;
    let wanted = |description: &str| {
        let work = WorkDescription {
            work_type: "qa".into(),
            description: description.into(),
            ..WorkDescription::default()
        };
        let parts = vec![Part::text(description)];
        DispatchRequest::new(world.caller.clone(), EntryProtocol::Library, work, parts)
    };
    guard(&world, on_mark("block", "input"));
    let failure = world.engine.dispatches().start(wanted(MARK)).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Blocked);
    assert!(world.peer.calls.lock().is_empty());
    let none =
        world.engine.dispatches().list(&world.caller, rialto_model::routing::DispatchFilter::default()).await;
    assert!(none.unwrap().is_empty());
    assert_unseen(&world).await;
    guard(&world, on_mark("redact", "input"));
    world.engine.dispatches().start(wanted(&format!("test {MARK}"))).await.unwrap().finish().await.unwrap();
    assert_unseen(&world).await;
    let kept = everything(&world).await;
    assert!(kept.contains("test [mark]"), "{kept}");
}

#[tokio::test]
async fn a_blocked_answer_teaches_nothing_about_its_agent() {
    let skill = rialto_testkit::agents::tagged_skill("deploy", &["qa"]);
    let world = World::empty(ScriptedPeer::telling(text(MARK)), rialto_engine::Config::default()).await;
    world.register(skill, rialto_model::agent::AgentTrust::Trusted).await;
    guard(&world, on_mark("block", "output"));
    let work = WorkDescription { work_type: "qa".into(), ..WorkDescription::default() };
    let wanted =
        DispatchRequest::new(world.caller.clone(), EntryProtocol::Library, work, vec![Part::text("go")]);
    let failure = world.engine.dispatches().start(wanted).await.unwrap().finish().await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Blocked);
    let record =
        world.engine.dispatches().list(&world.caller, rialto_model::routing::DispatchFilter::default()).await;
    let outcome = record.unwrap()[0].attempts[0].outcome.unwrap();
    assert!(!outcome.is_observed(), "{outcome:?}");
}

#[tokio::test]
async fn the_strictest_of_everybodys_the_orgs_and_the_skills_wins() {
    let mut setting = on_mark("log", "input");
    setting["orgs"] = json!({ "default": on_mark("warn", "input"), "other": on_mark("block", "input") });
    let world = world_with(text("done"), setting.clone()).await;
    assert!(
        world.call(json!({ "a": MARK })).await.unwrap().guardrail().is_some(),
        "the org's, not another's"
    );
    setting["skills"] =
        json!({ "vercel_ops.*": on_mark("redact", "input"), "vercel_ops.other": on_mark("block", "input") });
    guard(&world, setting.clone());
    world.call(json!({ "a": MARK })).await.unwrap();
    assert_eq!(world.peer.calls.lock()[1].args().value(), json!({ "a": "[mark]" }), "the agent's");
    setting["skills"]["vercel_ops.deploy"] = on_mark("block", "input");
    guard(&world, setting);
    assert_eq!(world.call(json!({ "a": MARK })).await.unwrap_err().kind, FailureKind::Blocked, "the skill's");
    world.engine.guardrails().replace(None);
    world.call(json!({ "a": MARK })).await.unwrap();
}

#[test]
fn what_does_not_hold_up_is_named_with_its_place() {
    let broken = json!({ "checks": [{ "type": "regex", "config": { "patterns": [{ "name": "x", "pattern": "(" }] } }] });
    let setting: Guardrails = serde_json::from_value(json!({ "skills": { "a.b": broken } })).unwrap();
    let error = GuardrailSet::new(&setting, nobody()).err().unwrap().to_string();
    assert!(error.starts_with("guardrails.skills.\"a.b\": "), "{error}");
    let setting: Guardrails = serde_json::from_value(broken).unwrap();
    let error = GuardrailSet::new(&setting, nobody()).err().unwrap().to_string();
    assert!(error.starts_with("guardrails: "), "{error}");
    assert!(GuardrailSet::new(&Guardrails::default(), nobody()).unwrap().is_none());
}

#[tokio::test]
async fn a_model_server_is_asked_about_each_part_at_once_and_its_silence_counts_as_configured() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let asker: Asker = Arc::new(move |_: &ClassifierOptions, text: &str| {
        seen.lock().push(text.to_owned());
        let is_bad = text.contains("idiot");
        let is_down = text.contains("down");
        async move {
            if is_down {
                return Err("connection refused".to_owned());
            }
            let scores = [("toxicity".to_owned(), if is_bad { 0.9 } else { 0.1 })].into();
            Ok(ClassifyResponse { scores })
        }
        .boxed()
    });
    let setting = |on_error: &str| {
        let config = json!({ "url": "https://models.example.com", "on_error": on_error });
        json!({ "checks": [{ "type": "toxicity", "target": "input", "config": config }] })
    };
    let world = World::telling(text("done")).await;
    guard_with(&world, setting("closed"), Arc::clone(&asker));
    let mut request = world.request(json!({}));
    request.parts = vec![Part::text("you"), Part::text("idiot")];
    let failure = world.engine.calls().start(request).await.unwrap_err();
    assert_eq!(failure.data.unwrap().value()["kinds"], json!(["toxicity"]));
    assert_eq!(asked.lock().len(), 2);
    world.call(json!({ "note": "nice" })).await.unwrap();
    let failure = world.call(json!({ "note": "down" })).await.unwrap_err();
    assert_eq!(failure.data.unwrap().value()["kinds"], json!(["unanswered"]));
    guard_with(&world, setting("open"), asker);
    world.call(json!({ "note": "down" })).await.unwrap();
}
