use proptest::prelude::*;

use super::*;
use crate::{
    event::EventAside,
    ids::{OrgId, ProcessId, ProjectId},
    message::{Part, Role},
};

fn head() -> TaskHead {
    TaskHead {
        id: TaskId::from("task_1"),
        scope: Scope { org: OrgId::from("default"), project: ProjectId::from("main") },
        caller: CallerId::from("ann"),
        door: EntryProtocol::Cli,
        agent: AgentId::from("agt_1"),
        agent_url: "http://127.0.0.1:1".to_owned(),
        skill: None,
        session: "a2a-agt_1-x-1".into(),
        args: Json::empty_object(),
        context: None,
        message: None,
        runner: ProcessId::NOBODY,
        state: TaskState::Submitted,
        version: 0,
        remote: RemoteIds::default(),
        created_at: Timestamp::UNIX_EPOCH,
        updated_at: Timestamp::UNIX_EPOCH,
    }
}

fn words(text: &str) -> Option<Message> {
    Some(Message::new("m", Role::Agent, vec![Part::text(text)]))
}

fn any_event() -> impl Strategy<Value = Event> {
    let aside = EventAside::default;
    let piece = |append| Event::Artifact {
        artifact: Artifact::new("a", vec![Part::text("x")]),
        append,
        last: false,
        aside: EventAside::default(),
    };
    prop_oneof![
        Just(Event::Accepted {
            remote: RemoteIds { task_id: Some("r".into()), context_id: None },
            aside: aside()
        }),
        any::<bool>().prop_map(|working| Event::Progress {
            working,
            message: None,
            aside: EventAside::default()
        }),
        any::<bool>().prop_map(piece),
        Just(Event::Asked { ask: QuestionKind::Input, message: words("?"), aside: aside() }),
        Just(Event::Asked { ask: QuestionKind::Auth, message: None, aside: aside() }),
        Just(Event::Answered { message: Message::new("m", Role::User, vec![]), content_hash: None }),
        Just(Event::Finished { message: None, aside: aside() }),
        Just(Event::Replied { message: Message::new("m", Role::Agent, vec![]) }),
        Just(Event::failed(Failure::new(FailureKind::PeerFailed, "no"))),
        Just(Event::Rejected { message: None, aside: aside() }),
        Just(Event::Canceled { message: words("stop"), aside: aside() }),
    ]
}

proptest! {
    #[test]
    fn a_terminal_state_is_never_left(events in prop::collection::vec(any_event(), 0..40)) {
        let mut task = Task::new(head());
        let mut ended_at: Option<Task> = None;
        for event in &events {
            let happened = task.apply(event, Timestamp::UNIX_EPOCH);
            if let Some(ended) = &ended_at {
                prop_assert!(!happened);
                prop_assert_eq!(&task, ended);
            } else if task.head.state.is_terminal() {
                ended_at = Some(task.clone());
            }
        }
    }

    #[test]
    fn every_event_can_happen_before_the_end(event in any_event(), state in prop::sample::select(TaskState::ALL.to_vec())) {
        prop_assert_eq!(state.after(&event).is_some(), !state.is_terminal());
    }

    #[test]
    fn a_task_never_returns_to_the_queue(event in any_event(), state in prop::sample::select(TaskState::ALL.to_vec())) {
        if state != TaskState::Submitted {
            prop_assert_ne!(state.after(&event), Some(TaskState::Submitted));
        }
    }

    #[test]
    fn the_version_counts_the_events_that_happened(events in prop::collection::vec(any_event(), 0..40)) {
        let mut task = Task::new(head());
        let happened = events.iter().filter(|event| task.apply(event, Timestamp::UNIX_EPOCH)).count();
        prop_assert_eq!(task.head.version, happened as u64);
    }

    #[test]
    fn events_survive_the_store(event in any_event()) {
        let text = serde_json::to_string(&event).unwrap();
        prop_assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
    }
}

#[test]
fn chunks_of_one_artifact_are_joined() {
    let mut task = Task::new(head());
    for (text, append) in [("a", false), ("b", true)] {
        let artifact = Artifact::new("out", vec![Part::text(text)]);
        task.apply(
            &Event::Artifact { artifact, append, last: append, aside: EventAside::default() },
            Timestamp::UNIX_EPOCH,
        );
    }
    assert_eq!(task.artifacts.len(), 1);
    assert_eq!(crate::message::text_of(&task.artifacts[0].parts), "a\nb");
}

#[test]
fn a_rejection_says_why() {
    let mut task = Task::new(head());
    task.apply(
        &Event::Rejected { message: words("not today"), aside: EventAside::default() },
        Timestamp::UNIX_EPOCH,
    );
    assert_eq!(task.failure.unwrap().message, "the agent rejected the task: not today");
}
