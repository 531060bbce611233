//! Types of a parsed workflow, independent of its notation.
//!
//! The reader produces these types and the runner executes them. A [`Workflow`] from the reader is sound:
//! ids are unique, what a node needs is there and comes before it, and nothing waits for itself.

use std::{borrow::Borrow, collections::BTreeSet, fmt, sync::Arc, time::Duration};

use rialto_model::json::Json;
use serde::{Serialize, Serializer};

use crate::{condition::Condition, schedule::CronSchedule, template::JsonTemplate};

/// Default number of nodes that run at once.
pub const DEFAULT_PARALLEL_NODES: usize = 8;

/// A graph of nodes with a name.
#[derive(Clone, Debug)]
pub struct Workflow {
    /// Name, unique in its org.
    pub name: String,
    /// Description, also of its skill.
    pub description: String,
    /// Status: draft, active or archived.
    pub status: WorkflowStatus,
    /// Notation: workflow or pipeline.
    pub kind: WorkflowKind,
    /// The JSON Schema of what a run is given.
    pub input_schema: Option<Json>,
    /// Output of a run. Default: the outputs of the [ends](Self::ends).
    pub output: Option<JsonTemplate>,
    /// Triggers that start runs, beside calls.
    pub triggers: Vec<WorkflowTrigger>,
    /// Limits of a run.
    pub limits: WorkflowLimits,
    /// The nodes, in the order they were written.
    pub nodes: Vec<WorkflowNode>,
}

/// Status of a workflow; only an active one runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkflowStatus {
    /// Being written: runs only to be tried out.
    #[default]
    Draft,
    /// In use: a skill among others.
    Active,
    /// Retained for the record; does not run.
    Archived,
}

/// Notation of a workflow, which also determines the prefix of its skill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkflowKind {
    /// Nodes or steps: `orchestration:<name>`.
    #[default]
    Workflow,
    /// Tools one after the other: `pipeline:<name>`.
    Pipeline,
}

/// Trigger that starts runs.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkflowTrigger {
    /// Start by a call.
    Manual,
    /// A request to an address of ours.
    Http {
        /// The path below the one of all workflows, without a slash in front.
        path: String,
    },
    /// A moment comes.
    Cron {
        /// Cron schedule.
        schedule: CronSchedule,
        /// Input of the runs.
        input: Option<Json>,
    },
    /// A call of the skill that the workflow is published as.
    Skill,
}

/// Limits of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkflowLimits {
    /// Nodes that run at once.
    pub parallel: usize,
    /// Timeout of the whole run.
    pub timeout: Option<Duration>,
}

/// Id of a node inside its workflow. Cloning shares the text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(Arc<str>);

/// Node of a workflow.
#[derive(Clone, Debug)]
pub struct WorkflowNode {
    /// Id of the node.
    pub id: NodeId,
    /// Dependencies that must finish first: nodes it names, nodes its templates refer to, and the condition whose branch it is;
    /// each once.
    pub needs: Vec<NodeId>,
    /// Action of the node.
    pub action: NodeAction,
    /// Condition evaluated when the node would start; the node is skipped if it is false.
    pub when: Option<Condition>,
    /// Retries after failures.
    pub retry: RetryPolicy,
    /// Timeout of one attempt.
    pub timeout: Option<Duration>,
    /// True if dependent nodes run after a failure of this one, without its output.
    pub goes_on_after_failure: bool,
    /// The node is skipped if all nodes of one of these groups were skipped: nodes it names, and the only sources of one place of its
    /// templates. Nodes it merely comes after, or refers to with a default, may be skipped without it.
    pub skipped_with: Vec<Vec<NodeId>>,
    /// Position in the file.
    pub place: SourcePosition,
}

/// Action of a node.
#[derive(Clone, Debug)]
pub enum NodeAction {
    /// `agent.ref`: finds an agent. Output: `{agentCardId, name, url, …}`.
    AgentRef {
        /// Its id, name or address.
        agent: JsonTemplate,
    },
    /// `agent.invoke`: asks a named agent.
    Invoke {
        /// Its id, name or address.
        agent: JsonTemplate,
        /// Skill of the agent.
        skill: Option<JsonTemplate>,
        /// Arguments of the skill.
        args: Option<JsonTemplate>,
        /// Message text.
        message: Option<JsonTemplate>,
    },
    /// `agent.dispatch`: routes work to the best agent.
    Dispatch {
        /// Type of work.
        work_type: Option<JsonTemplate>,
        /// Description of the work.
        description: Option<JsonTemplate>,
        /// Required skills, each an id, name or tag.
        required_skills: Vec<JsonTemplate>,
        /// Arguments of the skill.
        args: Option<JsonTemplate>,
        /// Message text.
        message: Option<JsonTemplate>,
    },
    /// `tool`: calls a tool by the name that MCP clients know it by.
    Tool {
        /// Its name.
        name: String,
        /// Arguments; none is an empty object.
        args: Option<JsonTemplate>,
    },
    /// `pipeline`: runs another pipeline and waits for it.
    Pipeline {
        /// Its name.
        name: String,
        /// Input; none passes on the input of this run.
        input: Option<JsonTemplate>,
    },
    /// `workflow`: runs another workflow and waits for it.
    Workflow {
        /// Its name.
        name: String,
        /// Input; none passes on the input of this run.
        input: Option<JsonTemplate>,
    },
    /// `condition`: chooses a branch. Makes `{"result": true}` or `{"result": false}`.
    ///
    /// The nodes of the other branch are skipped, and so is what needs only skipped ones.
    Condition {
        /// Condition to evaluate.
        test: Condition,
        /// Branch if it is true.
        then: Vec<NodeId>,
        /// Branch if it is false.
        otherwise: Vec<NodeId>,
    },
    /// `map`: runs an action for each item of a list. Output: the list of outputs, in the order of the items.
    Map {
        /// The list.
        over: JsonTemplate,
        /// Maximum number of items at once (default: the workflow's limit).
        parallel: Option<usize>,
        /// Action for each item; it may refer to `{{ item }}` and `{{ index }}`.
        action: Box<NodeAction>,
    },
    /// `approval`: waits until a person agrees. Makes `{"approved": true, …}`; a refusal fails the node.
    Approval {
        /// Question to the approver.
        question: JsonTemplate,
        /// Details shown with the question.
        details: Option<JsonTemplate>,
        /// Timeout, after which the approval is denied.
        expires: Option<Duration>,
    },
    /// `set`: makes a value of others.
    Set {
        /// The value.
        value: JsonTemplate,
    },
}

/// Number of attempts of a node, and the pauses between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Attempts altogether, at least one.
    pub attempts: u32,
    /// The pauses between them.
    pub backoff: RetryBackoff,
}

/// Pauses that grow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryBackoff {
    /// The pause after the first attempt.
    pub first: Duration,
    /// Factor between pauses, at least 1.
    pub factor: f64,
    /// None is longer than this.
    pub longest: Duration,
}

/// A place in a file. Both count from one; columns count characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SourcePosition {
    /// The line.
    pub line: u32,
    /// The character in the line.
    pub column: u32,
}

// === impl Workflow ===

impl Workflow {
    /// The node that is called `id`.
    pub fn node(&self, id: &str) -> Option<&WorkflowNode> {
        self.nodes.iter().find(|node| node.id.as_str() == id)
    }

    /// The nodes that no other needs, in the order they were written.
    ///
    /// Default output of the workflow: the output of its only end, or an object with the output of each end under its id, without
    /// skipped ones.
    pub fn ends(&self) -> impl Iterator<Item = &WorkflowNode> {
        let needed: BTreeSet<&NodeId> = self.nodes.iter().flat_map(|node| &node.needs).collect();
        self.nodes.iter().filter(move |node| !needed.contains(&node.id))
    }
}

// === impl WorkflowStatus ===

impl WorkflowStatus {
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

// === impl WorkflowLimits ===

impl Default for WorkflowLimits {
    fn default() -> Self {
        Self { parallel: DEFAULT_PARALLEL_NODES, timeout: None }
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

// === impl NodeAction ===

impl NodeAction {
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

// === impl RetryPolicy ===

impl RetryPolicy {
    /// Pause after the attempt with this number, counted from 1. None after the last attempt.
    pub fn pause_after(&self, attempt: u32) -> Option<Duration> {
        (attempt < self.attempts).then(|| self.backoff.pause(attempt))
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: 1, backoff: RetryBackoff::default() }
    }
}

// === impl RetryBackoff ===

impl RetryBackoff {
    fn pause(&self, attempt: u32) -> Duration {
        let times = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let seconds = self.first.as_secs_f64() * self.factor.powi(times);
        let longest = self.longest.as_secs_f64();
        // A factor that is not a number, or is too large, results in the longest pause.
        let seconds = if seconds < longest { seconds } else { longest };
        Duration::try_from_secs_f64(seconds).unwrap_or(self.longest)
    }
}

impl Default for RetryBackoff {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), factor: 2.0, longest: Duration::from_secs(60) }
    }
}

// === impl SourcePosition ===

impl fmt::Display for SourcePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end() {
        let seconds = |retry: RetryPolicy, attempt| retry.pause_after(attempt).map(|pause| pause.as_secs());
        let retry = RetryPolicy { attempts: 10, ..RetryPolicy::default() };
        let pauses: Vec<_> = (1..=10).map(|attempt| seconds(retry, attempt)).collect();
        let expected = [1, 2, 4, 8, 16, 32, 60, 60, 60].map(Some);
        assert_eq!(pauses, [expected.as_slice(), &[None]].concat());
        assert_eq!(seconds(RetryPolicy::default(), 1), None);
        let endless = RetryPolicy { attempts: u32::MAX, ..RetryPolicy::default() };
        assert_eq!(seconds(endless, u32::MAX - 1), Some(60));
    }
}
