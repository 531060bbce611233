//! Stream of a running call: progress notifications, and then the end.

use std::time::Duration;

use rialto_engine::{CallHandle, CallUpdate, Engine};
use rialto_model::{
    backing::Backing,
    call::Caller,
    failure::{Failure, FailureKind},
    ids::TaskId,
    task::Task,
};
use tokio::time::{Instant, timeout_at};

use crate::{
    builtin_tools,
    client_profile::{ClientProfile, DeclaredCapabilities, ResultOptions},
    config::ToolErrors,
    elicitation::QuestionSet,
    progress::{self, ProgressMark, ProgressMeter},
    render,
    tool_result::ToolResult,
};

/// Style of a call's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultStyle {
    /// Tool of a skill: the output; a timeout is an error.
    Skill,
    /// `send_message`: the state of the task; a timeout is not an error.
    Message,
    /// `dispatch` and `invoke_a2a`: like a message, with their own view of the task.
    Invoked,
}

/// CallHandle call. Dropping it before the end cancels the call.
pub(crate) struct ToolCallStream {
    engine: Engine,
    caller: Caller,
    reader: ResultOptions,
    abilities: DeclaredCapabilities,
    agent: String,
    running: CallHandle,
    manner: ResultStyle,
    meter: ProgressMeter,
    /// Time after which the client wants a task instead.
    patience: Option<Duration>,
    is_over: bool,
}

/// Update of a running call.
pub(crate) enum ToolCallUpdate {
    /// Progress.
    Progress {
        /// Progress value.
        mark: ProgressMark,
        /// Progress message.
        text: String,
    },
    /// The agent asks a question, and the client supports elicitation.
    Asked(Box<QuestionSet>),
    /// End of the call.
    End(Result<ToolResult, Failure>),
}

// === impl ToolCallStream ===

impl ToolCallStream {
    pub(crate) fn new(
        engine: Engine,
        client: &ClientProfile,
        agent: String,
        running: CallHandle,
        manner: ResultStyle,
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
            meter: ProgressMeter::default(),
            patience: None,
            is_over: false,
        }
    }

    /// Waits for the next update. Nothing comes after the end.
    pub(crate) async fn next(&mut self) -> ToolCallUpdate {
        loop {
            match self.running.next().await {
                CallUpdate::Event(event) => {
                    if let Some(text) = progress::line(&event) {
                        return ToolCallUpdate::Progress { mark: self.meter.happened(&event), text };
                    }
                }
                CallUpdate::Heartbeat => {
                    let text = format!("{} is still working", self.agent);
                    return ToolCallUpdate::Progress { mark: self.meter.next(), text };
                }
                CallUpdate::Done(task) => {
                    self.is_over = true;
                    return self.done(&task);
                }
                CallUpdate::Failed(failure) => {
                    self.is_over = true;
                    return ToolCallUpdate::End(self.failed(failure).await);
                }
            }
        }
    }

    fn done(&self, task: &Task) -> ToolCallUpdate {
        ToolCallUpdate::End(Ok(match self.manner {
            ResultStyle::Skill => {
                if task.head.state.is_waiting()
                    && let Some(inquiry) = QuestionSet::of(task, self.abilities, self.reader.fluency)
                {
                    return ToolCallUpdate::Asked(Box::new(inquiry));
                }
                render::result(task, &self.agent, self.reader).read_by(self.reader)
            }
            // A client that sends messages answers questions by message.
            ResultStyle::Message => {
                render::status(task, &self.agent, self.reader).standing_read_by(self.reader)
            }
            ResultStyle::Invoked => self.invoked(task),
        }))
    }

    /// Renders the result as one of this kind of backend.
    pub(crate) fn with_backing(mut self, backing: &Backing) -> Self {
        self.reader = self.reader.of_backing(backing);
        self
    }

    /// Renders the result according to the tool's output schema.
    pub(crate) const fn with_promise(mut self) -> Self {
        self.reader = self.reader.promised();
        self
    }

    /// Result of `dispatch` and `invoke_a2a`. Routing may have selected the agent, or another one meanwhile.
    fn invoked(&self, task: &Task) -> ToolResult {
        let agent = builtin_tools::address(&self.engine, task);
        render::invoked(task, &agent, self.running.dispatch(), self.reader)
    }

    /// Sets the time after which the client wants a task instead.
    pub(crate) const fn with_patience(mut self, patience: Option<Duration>) -> Self {
        self.patience = patience;
        self
    }

    /// Time after which the client wants a task instead.
    pub(crate) const fn patience(&self) -> Option<Duration> {
        self.patience
    }

    /// Waits for the end or a question, until the timeout.
    pub(crate) async fn settled_within(&mut self, patience: Duration) -> Option<ToolCallUpdate> {
        if patience.is_zero() {
            return None;
        }
        let until = Instant::now() + patience;
        loop {
            match timeout_at(until, self.next()).await {
                Ok(ToolCallUpdate::Progress { .. }) => {}
                Ok(note) => return Some(note),
                Err(_) => return None,
            }
        }
    }

    /// Detaches the call; its task has the result.
    pub(crate) fn hand_over(&mut self) -> TaskId {
        self.is_over = true;
        self.running.task().clone()
    }

    /// Form of a failure at the end.
    pub(crate) const fn errors(&self) -> ToolErrors {
        self.reader.errors
    }

    /// True after the end.
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Continues the progress of an earlier call of the same request.
    pub(crate) const fn count_on(&mut self, meter: ProgressMeter) {
        self.meter = meter;
    }

    /// Progress so far.
    pub(crate) const fn meter(&self) -> ProgressMeter {
        self.meter
    }

    /// A message whose task still runs has not failed: its sender gets the task's id.
    ///
    /// By `&mut`, because a running call can be sent between threads, but not shared.
    async fn failed(&mut self, failure: Failure) -> Result<ToolResult, Failure> {
        if self.manner != ResultStyle::Skill && failure.kind == FailureKind::PeerTimeout {
            let task = self.engine.tasks().get(&self.caller, self.running.task().as_str()).await?;
            if !task.head.state.is_terminal() {
                if self.manner == ResultStyle::Invoked {
                    return Ok(self.invoked(&task));
                }
                return Ok(render::status(&task, &self.agent, self.reader));
            }
        }
        Err(failure)
    }
}

impl Drop for ToolCallStream {
    fn drop(&mut self) {
        if !self.is_over {
            self.running.cancel();
        }
    }
}
