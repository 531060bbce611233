//! A call under way, as its client hears of it: progress, and then the end.

use std::time::Duration;

use rialto_engine::{Engine, Running, Step};
use rialto_model::{
    call::Caller,
    deployed::Backing,
    failure::{Failure, Kind},
    ids::TaskId,
    task::Task,
};
use tokio::time::{Instant, timeout_at};

use crate::{
    answer::Answer,
    asking::Inquiry,
    client::{Abilities, Client, Reader},
    config::ToolErrors,
    own,
    progress::{self, Mark, Meter},
    render,
};

/// How a call ends for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// A skill's tool: with the result; taking too long is an error.
    Skill,
    /// `send_message`: with how the task stands; taking too long is not an error.
    Message,
    /// `dispatch` and `invoke_a2a`: like a message, with what they say of a task.
    Invoked,
}

/// A call that runs. A client that lets go of it before its end calls it off.
pub(crate) struct Underway {
    engine: Engine,
    caller: Caller,
    reader: Reader,
    abilities: Abilities,
    agent: String,
    running: Running,
    manner: Manner,
    meter: Meter,
    /// How long its client waits before it wants a task instead.
    patience: Option<Duration>,
    is_over: bool,
}

/// What there is to tell.
pub(crate) enum Note {
    /// It goes on.
    Progress {
        /// How far it is.
        mark: Mark,
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
        let (caller, reader, abilities) = (client.caller.clone(), client.reader(), client.abilities);
        Self {
            engine,
            caller,
            reader,
            abilities,
            agent,
            running,
            manner,
            meter: Meter::default(),
            patience: None,
            is_over: false,
        }
    }

    /// Waits for the next thing to tell. Nothing comes after the end.
    pub(crate) async fn next(&mut self) -> Note {
        loop {
            match self.running.next().await {
                Step::Event(event) => {
                    if let Some(text) = progress::line(&event) {
                        return Note::Progress { mark: self.meter.happened(&event), text };
                    }
                }
                Step::Heartbeat => {
                    let text = format!("{} is still working", self.agent);
                    return Note::Progress { mark: self.meter.next(), text };
                }
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
        Note::End(Ok(match self.manner {
            Manner::Skill => {
                if task.head.state.is_waiting()
                    && let Some(inquiry) = Inquiry::of(task, self.abilities, self.reader.fluency)
                {
                    return Note::Asked(Box::new(inquiry));
                }
                render::result(task, &self.agent, self.reader).read_by(self.reader)
            }
            // Whoever talks to an agent answers its questions in the same way.
            Manner::Message => render::status(task, &self.agent, self.reader).standing_read_by(self.reader),
            Manner::Invoked => self.invoked(task),
        }))
    }

    /// Renders its result as one of this kind of backend.
    pub(crate) fn with_backing(mut self, backing: &Backing) -> Self {
        self.reader = self.reader.of_backing(backing);
        self
    }

    /// Tells its result in the shape that was promised.
    pub(crate) const fn with_promise(mut self) -> Self {
        self.reader = self.reader.promised();
        self
    }

    /// The agent may have been chosen, or be another one than at first.
    fn invoked(&self, task: &Task) -> Answer {
        let agent = own::address(&self.engine, task);
        render::invoked(task, &agent, self.running.dispatch(), self.reader)
    }

    /// From then on its client wants a task instead.
    pub(crate) const fn with_patience(mut self, patience: Option<Duration>) -> Self {
        self.patience = patience;
        self
    }

    /// How long its client waits before it wants a task instead.
    pub(crate) const fn patience(&self) -> Option<Duration> {
        self.patience
    }

    /// Waits for the end or a question, so long.
    pub(crate) async fn settled_within(&mut self, patience: Duration) -> Option<Note> {
        if patience.is_zero() {
            return None;
        }
        let until = Instant::now() + patience;
        loop {
            match timeout_at(until, self.next()).await {
                Ok(Note::Progress { .. }) => {}
                Ok(note) => return Some(note),
                Err(_) => return None,
            }
        }
    }

    /// Lets the call go on by itself; its task tells what comes of it.
    pub(crate) fn hand_over(&mut self) -> TaskId {
        self.is_over = true;
        self.running.task().clone()
    }

    /// Form of a failure at its end.
    pub(crate) const fn errors(&self) -> ToolErrors {
        self.reader.errors
    }

    /// Whether nothing more comes.
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Counts on from where another call of the same request has stopped.
    pub(crate) const fn count_on(&mut self, meter: Meter) {
        self.meter = meter;
    }

    /// How far it has counted.
    pub(crate) const fn meter(&self) -> Meter {
        self.meter
    }

    /// A message whose task still runs has not failed: its sender gets the task's id.
    ///
    /// By `&mut`, because a call under way can be handed from thread to thread, but not shared between them.
    async fn failed(&mut self, failure: Failure) -> Result<Answer, Failure> {
        if self.manner != Manner::Skill && failure.kind == Kind::PeerTimeout {
            let task = self.engine.task(&self.caller, self.running.task().as_str()).await?;
            if !task.head.state.is_terminal() {
                if self.manner == Manner::Invoked {
                    return Ok(self.invoked(&task));
                }
                return Ok(render::status(&task, &self.agent, self.reader));
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
