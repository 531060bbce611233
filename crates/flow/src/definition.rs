//! What a workflow is, whichever way it was written.
//!
//! These are the words that the reader ends with and the runner begins with. A [`Workflow`] that came out of the reader is sound:
//! ids are unique, what a node needs is there and comes before it, and nothing waits for itself.

use std::{borrow::Borrow, fmt, sync::Arc, time::Duration};

use rialto_model::json::Json;
use serde::{Serialize, Serializer};

use crate::{condition::Condition, schedule::Schedule, template::Template};

/// Nodes that run at once when nothing else is said.
pub const PARALLEL: usize = 8;

/// A graph of nodes with a name.
#[derive(Clone, Debug)]
pub struct Workflow {
    /// What it is called, in its org.
    pub name: String,
    /// What it is good for, as its skill says it.
    pub description: String,
    /// Whether it may be run.
    pub status: Status,
    /// Which way it was written.
    pub kind: Kind,
    /// The JSON Schema of what a run is given.
    pub input_schema: Option<Json>,
    /// What a run answers with. Without it: what the [ends](Self::ends) have made.
    pub output: Option<Template>,
    /// What begins a run, besides somebody who asks for one.
    pub triggers: Vec<Trigger>,
    /// How much a run may take.
    pub limits: Limits,
    /// The nodes, in the order they were written.
    pub nodes: Vec<Node>,
}

/// Whether a workflow may be run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Being written: runs only to be tried out.
    #[default]
    Draft,
    /// In use: a skill among others.
    Active,
    /// Kept for the record: refuses to run.
    Archived,
}

/// Which way a workflow was written, and what its skill is called by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Nodes or steps: `orchestration:<name>`.
    #[default]
    Workflow,
    /// Tools one after the other: `pipeline:<name>`.
    Pipeline,
}

/// What begins a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    /// Somebody asks for it by name.
    Manual,
    /// A request to an address of ours.
    Http {
        /// The path below the one of all workflows, without a slash in front.
        path: String,
    },
    /// A moment comes.
    Cron {
        /// Which moments.
        schedule: Schedule,
        /// What the run is given.
        input: Option<Json>,
    },
    /// A call of the skill that the workflow is published as.
    Skill,
}

/// How much a run may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Nodes that run at once.
    pub parallel: usize,
    /// When the whole run must be over, from its beginning on.
    pub timeout: Option<Duration>,
}

/// What a node is called inside its workflow. Cloning shares the text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(Arc<str>);

/// One step of the work.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is called.
    pub id: NodeId,
    /// Those that must be over before it begins: the ones it names, the ones its templates look at, and the condition that it is a
    /// branch of; each once.
    pub needs: Vec<NodeId>,
    /// What it does.
    pub does: Does,
    /// It is skipped when this does not hold at the moment it would begin.
    pub when: Option<Condition>,
    /// How often it is tried.
    pub retry: Retry,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// Whether those that need it go on after it has failed. Its output is missing then.
    pub goes_on_after_failure: bool,
    /// Whether it runs even when all it needs was skipped. So does a step that only comes after another and does not look at it.
    pub runs_after_skipped: bool,
    /// Where it stands in the file.
    pub place: Place,
}

/// What a node does.
#[derive(Clone, Debug)]
pub enum Does {
    /// `agent.ref`: looks an agent up. Makes `{agentCardId, name, url, …}`.
    AgentRef {
        /// Its id, name or address.
        agent: Template,
    },
    /// `agent.invoke`: asks a named agent.
    Invoke {
        /// Its id, name or address.
        agent: Template,
        /// Which of its skills.
        skill: Option<Template>,
        /// What the skill is given, as data.
        args: Option<Template>,
        /// What it is told, as text.
        message: Option<Template>,
    },
    /// `agent.dispatch`: asks whoever fits best.
    Dispatch {
        /// What kind of work it is.
        work_type: Option<Template>,
        /// What is to be done.
        description: Option<Template>,
        /// What whoever does it must be able to do; each an id, name or tag of a skill.
        required_skills: Vec<Template>,
        /// What the skill is given, as data.
        args: Option<Template>,
        /// What it is told, as text.
        message: Option<Template>,
    },
    /// `tool`: calls a tool by the name that MCP clients know it by.
    Tool {
        /// Its name.
        name: String,
        /// What it is given; nothing is an empty object.
        args: Option<Template>,
    },
    /// `pipeline`: runs another pipeline and waits for it.
    Pipeline {
        /// Its name.
        name: String,
        /// What it is given; nothing is what this run was given.
        input: Option<Template>,
    },
    /// `workflow`: runs another workflow and waits for it.
    Workflow {
        /// Its name.
        name: String,
        /// What it is given; nothing is what this run was given.
        input: Option<Template>,
    },
    /// `condition`: chooses a branch. Makes `{"result": true}` or `{"result": false}`.
    ///
    /// The nodes of the other branch are skipped, and so is what needs only skipped ones.
    Condition {
        /// What is asked.
        test: Condition,
        /// Those that go on when it holds.
        then: Vec<NodeId>,
        /// Those that go on when it does not.
        otherwise: Vec<NodeId>,
    },
    /// `map`: does the same for each item of a list. Makes the list of what each has made, in the order of the items.
    Map {
        /// The list.
        over: Template,
        /// How many at once; nothing is as many as the workflow allows.
        parallel: Option<usize>,
        /// What is done; it knows `{{ item }}` and `{{ index }}`.
        does: Box<Does>,
    },
    /// `approval`: waits until a person agrees. Makes `{"approved": true, …}`; a refusal fails the node.
    Approval {
        /// What the person is asked.
        question: Template,
        /// What the person is shown beside it.
        details: Option<Template>,
        /// When nobody has decided by then, it is refused.
        expires: Option<Duration>,
    },
    /// `set`: makes a value of others.
    Set {
        /// The value.
        value: Template,
    },
}

/// How often a node is tried, and how long the pauses are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    /// Attempts altogether, at least one.
    pub attempts: u32,
    /// The pauses between them.
    pub backoff: Backoff,
}

/// Pauses that grow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// The pause after the first attempt.
    pub first: Duration,
    /// How much longer each is than the one before, at least 1.
    pub factor: f64,
    /// None is longer than this.
    pub longest: Duration,
}

/// A place in a file. Both count from one; columns count characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The character in the line.
    pub column: u32,
}

// === impl Workflow ===

impl Workflow {
    /// The node that is called `id`.
    pub fn node(&self, id: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id.as_str() == id)
    }

    /// The nodes that no other needs, in the order they were written.
    ///
    /// Where a workflow does not say what its output is, it is what these have made: of one the output itself, of several an
    /// object with the output of each under its id, without those that were skipped.
    pub fn ends(&self) -> impl Iterator<Item = &Node> {
        let is_needed = |id: &NodeId| self.nodes.iter().any(|node| node.needs.contains(id));
        self.nodes.iter().filter(move |node| !is_needed(&node.id))
    }
}

// === impl Status ===

impl Status {
    /// Every one there is.
    pub const ALL: [Self; 3] = [Self::Draft, Self::Active, Self::Archived];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Active => "active",
            Self::Archived => "archived",
        }
    }
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self { parallel: PARALLEL, timeout: None }
    }
}

// === impl NodeId ===

impl NodeId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for NodeId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl Borrow<str> for NodeId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for NodeId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

// === impl Does ===

impl Does {
    /// The word for it in a file.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::AgentRef { .. } => "agent.ref",
            Self::Invoke { .. } => "agent.invoke",
            Self::Dispatch { .. } => "agent.dispatch",
            Self::Tool { .. } => "tool",
            Self::Pipeline { .. } => "pipeline",
            Self::Workflow { .. } => "workflow",
            Self::Condition { .. } => "condition",
            Self::Map { .. } => "map",
            Self::Approval { .. } => "approval",
            Self::Set { .. } => "set",
        }
    }
}

// === impl Retry ===

impl Retry {
    /// How long to wait after the attempt with this number, the first being 1. None when it was the last.
    pub fn pause_after(&self, attempt: u32) -> Option<Duration> {
        (attempt < self.attempts).then(|| self.backoff.pause(attempt))
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 1, backoff: Backoff::default() }
    }
}

// === impl Backoff ===

impl Backoff {
    fn pause(&self, attempt: u32) -> Duration {
        let times = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let seconds = self.first.as_secs_f64() * self.factor.powi(times);
        let longest = self.longest.as_secs_f64();
        // Not a number, or more than anybody waits, is the longest.
        let seconds = if seconds < longest { seconds } else { longest };
        Duration::try_from_secs_f64(seconds).unwrap_or(self.longest)
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), factor: 2.0, longest: Duration::from_secs(60) }
    }
}

// === impl Place ===

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end() {
        let seconds = |retry: Retry, attempt| retry.pause_after(attempt).map(|pause| pause.as_secs());
        let retry = Retry { attempts: 10, ..Retry::default() };
        let pauses: Vec<_> = (1..=10).map(|attempt| seconds(retry, attempt)).collect();
        let expected = [1, 2, 4, 8, 16, 32, 60, 60, 60].map(Some);
        assert_eq!(pauses, [expected.as_slice(), &[None]].concat());
        assert_eq!(seconds(Retry::default(), 1), None);
        let endless = Retry { attempts: u32::MAX, ..Retry::default() };
        assert_eq!(seconds(endless, u32::MAX - 1), Some(60));
    }
}
