//! Streams that end before their task does: the task is polled, and the call fails when nothing changes any more.

use std::time::Duration;

use rialto_model::{
    card::{Binding, Dialect},
    failure::FailureKind,
};

use crate::{
    rows::{failure, send, streaming, told},
    script::{Answer, Script, data, envelope, error, events, result},
    streams::{BOTH, DONE, FIRST, STEP, TASK, snapshot},
};

const WITHOUT_RESULT: &str = "the agent closed its stream without a result";

/// A stream of these events whose connection then breaks.
fn broken(results: &[&str]) -> Answer {
    Answer::Broken(results.iter().map(|result| data(&envelope(result))).collect())
}

fn working() -> Answer {
    result(&snapshot("TASK_STATE_WORKING", ""))
}

fn done() -> Answer {
    result(&snapshot("TASK_STATE_COMPLETED", BOTH))
}

#[tokio::test]
async fn a_task_that_never_changes_after_its_stream_ended_fails() {
    for end in [events(&[TASK, STEP]), broken(&[TASK, STEP])] {
        // a2a-sdk 0.3 keeps the stream open that is joined again, though nothing runs any more.
        let mut answers = vec![end, Answer::Open(Vec::new())];
        answers.extend((0..200).map(|_| working()));
        let script = Script::start(answers).await;
        let agent = streaming(&script, Dialect::V10, Binding::JsonRpc);
        let events = tokio::time::timeout(Duration::from_secs(5), send(&agent)).await.unwrap();
        let failure = failure(&events);
        assert_eq!(failure.kind, FailureKind::PeerGarbled);
        assert!(failure.message.starts_with(WITHOUT_RESULT), "{}", failure.message);
        assert!(failure.message.contains("task-1 has been working"), "{}", failure.message);
        let polls = script.asked().iter().filter(|method| *method == "GetTask").count();
        assert!(polls >= 3, "{polls} polls");
    }
}

#[tokio::test]
async fn a_task_that_changes_after_its_stream_ended_is_waited_for() {
    let step = |n: u32| {
        let part = format!(r#"{{"artifactId":"a-{n}","parts":[{{"text":"{n}"}}]}}"#);
        Answer::Later(Duration::from_millis(60), Box::new(result(&snapshot("TASK_STATE_WORKING", &part))))
    };
    let mut answers = vec![broken(&[TASK, STEP]), error(-32004, "no")];
    answers.extend((0..6).map(step));
    answers.push(done());
    let script = Script::start(answers).await;
    let told = told(&send(&streaming(&script, Dialect::V10, Binding::JsonRpc)).await);
    assert_eq!(told.last().unwrap(), "finished", "{told:?}");
}

#[tokio::test]
async fn a_task_that_the_agent_does_not_know_any_more_fails_at_once() {
    let unknown = || error(-32001, "Task not found");
    let script = Script::start([broken(&[TASK, STEP]), unknown(), unknown()]).await;
    let failure = failure(&send(&streaming(&script, Dialect::V10, Binding::JsonRpc)).await);
    assert_eq!(failure.kind, FailureKind::PeerGarbled);
    assert!(failure.message.starts_with(WITHOUT_RESULT), "{}", failure.message);
    assert!(failure.message.ends_with("Task not found"), "{}", failure.message);
}

#[tokio::test]
async fn a_stream_that_breaks_before_it_names_a_task_fails_at_once_with_the_reason() {
    let script = Script::start([Answer::Broken(vec![": ping\r\n\r\n".into()])]).await;
    let failure = failure(&send(&streaming(&script, Dialect::V10, Binding::JsonRpc)).await);
    assert_eq!(failure.kind, FailureKind::PeerUnreachable);
    assert!(failure.message.starts_with(WITHOUT_RESULT), "{}", failure.message);
    assert_eq!(script.asked(), ["SendStreamingMessage"], "a message is not sent twice");
}

#[tokio::test]
async fn a_stream_cut_in_the_middle_of_an_event_recovers_like_one_cut_between_events() {
    let whole: String = [TASK, STEP, FIRST].iter().map(|event| data(&envelope(event))).collect();
    let last = whole.rfind("data:").unwrap();
    for at in [last, last + 3, last + 20, whole.len() - 6, whole.len() - 3, whole.len() - 1] {
        for cut in [Answer::Events, Answer::Broken] {
            let script = Script::start([
                cut(vec![whole[..last].to_owned(), whole[last..at].to_owned()]),
                events(&[DONE]),
                working(),
                done(),
            ])
            .await;
            let told = told(&send(&streaming(&script, Dialect::V10, Binding::JsonRpc)).await);
            assert_eq!(told.last().unwrap(), "finished", "cut at {at}: {told:?}");
            assert_eq!(script.asked()[..2], ["SendStreamingMessage", "SubscribeToTask"], "cut at {at}");
        }
    }
}
