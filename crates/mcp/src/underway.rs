//! A call under way, as its client hears of it: progress, and then the end.

use rialto_engine::{Engine, Running, Step};
use rialto_model::{
    call::Caller,
    event::Event,
    failure::{Failure, Kind},
    message::{Message, text_of},
    task::Task,
};

use crate::{
    answer::Answer,
    asking::Inquiry,
    client::{Abilities, Client, Fluency},
    render,
};

/// Progress is told in at most so many characters: the whole text is in the result.
const TOLD: usize = 1_000;

/// How a call ends for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// A skill's tool: with the result; taking too long is an error.
    Skill,
    /// `send_message`: with how the task stands; taking too long is not an error.
    Message,
}

/// A call that runs. A client that lets go of it before its end calls it off.
pub(crate) struct Underway {
    engine: Engine,
    caller: Caller,
    fluency: Fluency,
    abilities: Abilities,
    agent: String,
    running: Running,
    manner: Manner,
    told: u32,
    is_over: bool,
}

/// What there is to tell.
pub(crate) enum Note {
    /// It goes on.
    Progress {
        /// Counts up from one.
        step: u32,
        /// What happened.
        text: String,
    },
    /// Its agent wants to know something, and the client can ask its person.
    Asked(Box<Inquiry>),
    /// It is over.
    End(Result<Answer, Failure>),
}

// === impl Underway ===

impl Underway {
    pub(crate) fn new(
        engine: Engine,
        client: &Client,
        agent: String,
        running: Running,
        manner: Manner,
    ) -> Self {
        let (caller, fluency, abilities) = (client.caller.clone(), client.fluency, client.abilities);
        Self { engine, caller, fluency, abilities, agent, running, manner, told: 0, is_over: false }
    }

    /// Waits for the next thing to tell. Nothing comes after the end.
    pub(crate) async fn next(&mut self) -> Note {
        loop {
            match self.running.next().await {
                Step::Event(event) => {
                    if let Some(text) = happened(&event) {
                        return self.progress(text);
                    }
                }
                Step::Heartbeat => return self.progress(format!("{} is still working", self.agent)),
                Step::Done(task) => {
                    self.is_over = true;
                    return self.done(&task);
                }
                Step::Failed(failure) => {
                    self.is_over = true;
                    return Note::End(self.failed(failure).await);
                }
            }
        }
    }

    fn done(&self, task: &Task) -> Note {
        let render = match self.manner {
            Manner::Skill => {
                if task.head.state.is_waiting()
                    && let Some(inquiry) = Inquiry::of(task, self.abilities, self.fluency)
                {
                    return Note::Asked(Box::new(inquiry));
                }
                render::result
            }
            // Whoever talks to an agent answers its questions in the same way.
            Manner::Message => render::status,
        };
        Note::End(Ok(render(task, &self.agent, self.fluency)))
    }

    fn progress(&mut self, text: String) -> Note {
        self.told += 1;
        Note::Progress { step: self.told, text }
    }

    /// A message whose task still runs has not failed: its sender gets the task's id.
    ///
    /// By `&mut`, because a call under way can be handed from thread to thread, but not shared between them.
    async fn failed(&mut self, failure: Failure) -> Result<Answer, Failure> {
        if self.manner == Manner::Message && failure.kind == Kind::PeerTimeout {
            let task = self.engine.task(&self.caller, self.running.task().as_str()).await?;
            if !task.head.state.is_terminal() {
                return Ok(render::status(&task, &self.agent, self.fluency));
            }
        }
        Err(failure)
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        if !self.is_over {
            self.running.cancel();
        }
    }
}

/// What an event is worth telling while the call goes on.
fn happened(event: &Event) -> Option<String> {
    match event {
        Event::Progress { working, message, .. } => {
            let said = message.as_ref().map(Message::text).filter(|text| !text.is_empty());
            Some(said.map_or_else(|| if *working { "working" } else { "queued" }.to_owned(), shortened))
        }
        Event::Artifact { artifact, .. } => {
            let text = text_of(&artifact.parts);
            let name = artifact.name.as_deref().unwrap_or(&artifact.id);
            Some(if text.is_empty() { format!("received {name}") } else { shortened(text) })
        }
        Event::Accepted { .. }
        | Event::Asked { .. }
        | Event::Answered { .. }
        | Event::Finished { .. }
        | Event::Replied { .. }
        | Event::Failed { .. }
        | Event::Rejected { .. }
        | Event::Canceled { .. } => None,
    }
}

fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(TOLD) {
        text.truncate(end);
        text.push('…');
    }
    text
}
