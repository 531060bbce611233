//! Every key that a workflow may have, once.
//!
//! The reader takes keys by these tables and `rialto workflow schema` is made from them, so neither knows one that the other does not.
//! Names are written here with underscores; in a file `agentCardId` is as good as `agent_card_id`.

use crate::definition::{DEFAULT_PARALLEL_NODES, WorkflowStatus};

/// A key, and what it holds.
#[derive(Debug)]
pub(crate) struct SchemaKey {
    pub(crate) name: &'static str,
    /// Alternative names.
    pub(crate) also: &'static [&'static str],
    pub(crate) is: ValueType,
    pub(crate) about: &'static str,
}

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueType {
    /// The name of a workflow or a node.
    Name,
    /// A string.
    Text,
    /// One of several words.
    Word(&'static [&'static str]),
    /// A JSON Schema.
    Schema,
    /// Any JSON.
    Any,
    /// Any JSON, with references.
    Template,
    /// A string, with references.
    TextTemplate,
    /// A string or a list of them, with references.
    TextTemplates,
    /// Arguments: an object, or a reference to one.
    Arguments,
    /// The id of a node or a list of them.
    Ids,
    /// A question, or its answer.
    Condition,
    /// A length of time.
    Duration,
    /// A whole number from 1 to this.
    Count(u32),
    /// A number of at least 1.
    Factor,
    /// True or false.
    Flag,
    /// An object of the keys of a table.
    Table(KeyTable),
    /// A number of attempts, or an object of the keys of a table.
    CountOrTable(u32, KeyTable),
    /// A length of time, or an object of the keys of a table.
    DurationOrTable(KeyTable),
    /// One trigger or a list of triggers.
    Triggers,
    /// Nodes, as a list or by their ids.
    Nodes,
    /// Steps, as a list.
    Steps,
    /// Action of a node, without an id.
    Does,
    /// Source of a pipeline step's arguments.
    Mapping,
    /// Keys of the node's type.
    Config,
}

/// An object with a table of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyTable {
    Limits,
    Retry,
    Backoff,
}

/// A sort of node.
#[derive(Debug)]
pub(crate) struct NodeKind {
    pub(crate) word: &'static str,
    pub(crate) about: &'static str,
    /// A node without a `type` that has one of these is of this sort.
    pub(crate) told_by: &'static [&'static str],
    pub(crate) needs: &'static [&'static str],
    pub(crate) keys: &'static [SchemaKey],
}

/// Nodes that run at once, and items of a `map`.
pub(crate) const MAX_PARALLEL: u32 = 256;
/// Attempts of one node.
pub(crate) const MAX_ATTEMPTS: u32 = 100;
/// Type of a node whose `nodeId` names the action.
pub(crate) const ACTION: &str = "action";

pub(crate) const KINDS: [&str; 2] = ["workflow", "pipeline"];
const STATUSES: [&str; 3] =
    [WorkflowStatus::ALL[0].word(), WorkflowStatus::ALL[1].word(), WorkflowStatus::ALL[2].word()];
pub(crate) const TRIGGERS: [&str; 4] = ["manual", "http", "cron", "skill"];
const AGENT: &[&str] = &["agent_card_id", "agent_name", "agent_card_url"];
const ARGS: SchemaKey = key("args", &["arguments"], ValueType::Arguments, "Arguments.");
const MESSAGE: SchemaKey = key("message", &[], ValueType::TextTemplate, "Message text.");
const PARALLEL_ITEMS: &str = "Maximum number of items at once (default: the workflow's limit).";
const _: () = assert!(DEFAULT_PARALLEL_NODES == 8, "the texts below say so");

/// The keys of a workflow.
pub(crate) const WORKFLOW: &[SchemaKey] = &[
    key("name", &[], ValueType::Name, "Name (default: the file's name)."),
    key("description", &[], ValueType::Text, "Description, also of its skill."),
    key(
        "status",
        &[],
        ValueType::Word(&STATUSES),
        "Drafts run only to be tried out, active ones are skills, archived ones refuse. Drafts are what they are at first.",
    ),
    key(
        "kind",
        &[],
        ValueType::Word(&KINDS),
        "Notation: in a `pipeline` each step receives the output of the one before (default: derived from the steps).",
    ),
    key("input_schema", &[], ValueType::Schema, "The JSON Schema of what a run is given."),
    key(
        "output",
        &[],
        ValueType::Template,
        "Output of a run (default: the output of nodes without dependents).",
    ),
    key("triggers", &["trigger"], ValueType::Triggers, "Triggers that start runs, beside calls."),
    key("limits", &[], ValueType::Table(KeyTable::Limits), "Limits of a run."),
    key("nodes", &[], ValueType::Nodes, "Nodes, each of which runs once its dependencies are done."),
    key(
        "steps",
        &[],
        ValueType::Steps,
        "Steps, which run in sequence unless they have explicit dependencies.",
    ),
];

/// The keys of `limits`.
pub(crate) const LIMITS: &[SchemaKey] = &[
    key(
        "parallel",
        &[],
        ValueType::Count(MAX_PARALLEL),
        "Maximum number of nodes that run at once (default: 8).",
    ),
    key("timeout", &[], ValueType::Duration, "When the whole run must be over, from its beginning on."),
];

/// The keys of a trigger.
pub(crate) const TRIGGER: &[SchemaKey] = &[
    key("type", &[], ValueType::Word(&TRIGGERS), "Type of the trigger."),
    key("path", &[], ValueType::Text, "http: the path of the address, below the one of all workflows."),
    key("cron", &["expr", "schedule"], ValueType::Text, "cron: five fields, as in \"0 9 * * MON-FRI\"."),
    key(
        "timezone",
        &[],
        ValueType::Text,
        "cron: the time zone it counts in, as in \"Europe/Berlin\"; else UTC.",
    ),
    key("input", &[], ValueType::Any, "cron: what the run is given."),
];

/// The keys that every node may have.
pub(crate) const NODE: &[SchemaKey] = &[
    key("id", &[], ValueType::Name, "Id: letters, digits, `_` and `-`."),
    key("type", &[], ValueType::Text, "Type of the node; with `action`, `nodeId` is the type."),
    key("node_id", &[], ValueType::Text, "Type of the node."),
    key("config", &[], ValueType::Config, "Keys of the node's type; they may also be beside the other keys."),
    key(
        "depends_on",
        &["needs"],
        ValueType::Ids,
        "Nodes that must be done first, beside those it refers to.",
    ),
    key("when", &[], ValueType::Condition, "Condition; the node is skipped if it is false."),
    key("retry", &[], ValueType::CountOrTable(MAX_ATTEMPTS, KeyTable::Retry), "Retries after failures."),
    key("timeout", &[], ValueType::Duration, "Timeout of one attempt."),
    key("continue_on_failure", &[], ValueType::Flag, "True if dependent nodes run after a failure."),
];

/// The keys that what a `map` does may have, besides those of its sort.
pub(crate) const INNER: &[SchemaKey] = &[
    key("type", &[], ValueType::Text, "Type of the node; with `action`, `nodeId` is the type."),
    key("node_id", &[], ValueType::Text, "Type of the node."),
    key("config", &[], ValueType::Config, "Keys of the node's type; they may also be beside the other keys."),
];

/// The keys of `retry`.
pub(crate) const RETRY: &[SchemaKey] = &[
    key(
        "attempts",
        &["max_attempts"],
        ValueType::Count(MAX_ATTEMPTS),
        "Maximum number of attempts (default: 1).",
    ),
    key("backoff", &[], ValueType::DurationOrTable(KeyTable::Backoff), "The pauses between them."),
];

/// The keys of `backoff`.
pub(crate) const BACKOFF: &[SchemaKey] = &[
    key("first", &[], ValueType::Duration, "Pause after the first attempt (default: 1s)."),
    key("factor", &[], ValueType::Factor, "Factor between pauses (default: 2)."),
    key("longest", &[], ValueType::Duration, "Maximum pause (default: 1m)."),
];

/// The keys of a pipeline's step.
pub(crate) const STEP: &[SchemaKey] = &[
    key("id", &[], ValueType::Name, "Id: letters, digits, `_` and `-`."),
    key("tool", &[], ValueType::Text, "The tool it calls."),
    key(
        "input_mapping",
        &[],
        ValueType::Mapping,
        "Arguments of the tool (default: the output of the step before).",
    ),
    key("retry", &[], ValueType::CountOrTable(MAX_ATTEMPTS, KeyTable::Retry), "Retries after failures."),
    key("timeout", &[], ValueType::Duration, "Timeout of one attempt."),
    key("continue_on_failure", &[], ValueType::Flag, "True if dependent nodes run after a failure."),
];

/// The keys of a group of steps.
pub(crate) const GROUP: &[SchemaKey] = &[key("parallel", &[], ValueType::Steps, "Steps that run at once.")];

/// The sorts of nodes.
pub(crate) const NODE_KINDS: &[NodeKind] = &[
    NodeKind {
        word: "agent.ref",
        about: "Finds an agent; the output has agentCardId, name and url.",
        told_by: &[],
        needs: &["agent"],
        keys: &[key("agent", AGENT, ValueType::TextTemplate, "The agent's id, name or address.")],
    },
    NodeKind {
        word: "agent.invoke",
        about: "Asks a named agent.",
        told_by: &["agent", "skill"],
        needs: &["agent"],
        keys: &[
            key("agent", AGENT, ValueType::TextTemplate, "The agent's id, name or address."),
            key("skill", &["skill_id"], ValueType::TextTemplate, "Which of its skills."),
            ARGS,
            MESSAGE,
        ],
    },
    NodeKind {
        word: "agent.dispatch",
        about: "Routes work to the best agent.",
        told_by: &["work_type", "required_skills"],
        needs: &[],
        keys: &[
            key("work_type", &[], ValueType::TextTemplate, "Type of work."),
            key("description", &[], ValueType::TextTemplate, "What is to be done."),
            key(
                "required_skills",
                &["capability", "capabilities"],
                ValueType::TextTemplates,
                "Required skills: ids, names or tags.",
            ),
            ARGS,
            MESSAGE,
        ],
    },
    NodeKind {
        word: "tool",
        about: "Calls a tool by the name that MCP clients know it by.",
        told_by: &["tool"],
        needs: &["tool"],
        keys: &[key("tool", &["name", "tool_name"], ValueType::Text, "The tool's name."), ARGS],
    },
    NodeKind {
        word: "pipeline",
        about: "Runs a pipeline and waits for it.",
        told_by: &["pipeline"],
        needs: &["pipeline"],
        keys: &[
            key("pipeline", &["name"], ValueType::Name, "The pipeline's name."),
            key("input", &["args"], ValueType::Template, "Input (default: the input of this run)."),
        ],
    },
    NodeKind {
        word: "workflow",
        about: "Runs another workflow and waits for it.",
        told_by: &["workflow"],
        needs: &["workflow"],
        keys: &[
            key("workflow", &["name"], ValueType::Name, "The workflow's name."),
            key("input", &["args"], ValueType::Template, "Input (default: the input of this run)."),
        ],
    },
    NodeKind {
        word: "condition",
        about: "Chooses a branch; the nodes of the other are skipped.",
        told_by: &["if", "then", "else"],
        needs: &["if"],
        keys: &[
            key("if", &["test", "condition"], ValueType::Condition, "What is asked."),
            key("then", &[], ValueType::Ids, "Nodes that run if it is true."),
            key("else", &[], ValueType::Ids, "Nodes that run if it is false."),
        ],
    },
    NodeKind {
        word: "map",
        about: "Runs an action for each item of a list; the output is the list of outputs.",
        told_by: &["over", "do"],
        needs: &["over", "do"],
        keys: &[
            key("over", &["for_each", "items"], ValueType::Template, "The list."),
            key("parallel", &[], ValueType::Count(MAX_PARALLEL), PARALLEL_ITEMS),
            key("do", &[], ValueType::Does, "What is done with `{{ item }}` and `{{ index }}`."),
        ],
    },
    NodeKind {
        word: "approval",
        about: "Waits until a person agrees; a refusal fails the node.",
        told_by: &["question"],
        needs: &["question"],
        keys: &[
            key("question", &["approval", "prompt"], ValueType::TextTemplate, "What the person is asked."),
            key("details", &[], ValueType::Template, "Details shown with the question."),
            key(
                "expires",
                &["expires_in"],
                ValueType::Duration,
                "Timeout, after which the approval is denied.",
            ),
        ],
    },
    NodeKind {
        word: "set",
        about: "Makes a value of others.",
        told_by: &["value"],
        needs: &["value"],
        keys: &[key("value", &["set"], ValueType::Template, "The value.")],
    },
];

const fn key(
    name: &'static str,
    also: &'static [&'static str],
    is: ValueType,
    about: &'static str,
) -> SchemaKey {
    SchemaKey { name, also, is, about }
}

// === impl SchemaKey ===

impl SchemaKey {
    /// Every way it is written.
    pub(crate) fn spellings(&self) -> impl Iterator<Item = String> {
        std::iter::once(self.name).chain(self.also.iter().copied()).flat_map(|name| {
            let camel = camel_case(name);
            let is_other = camel != name;
            std::iter::once(name.to_owned()).chain(is_other.then_some(camel))
        })
    }

    /// True if `name` is a spelling of the key.
    pub(crate) fn has_spelling(&self, name: &str) -> bool {
        std::iter::once(&self.name).chain(self.also).any(|known| is_spelling_of(known, name))
    }
}

// === impl KeyTable ===

impl KeyTable {
    pub(crate) const fn keys(self) -> &'static [SchemaKey] {
        match self {
            Self::Limits => LIMITS,
            Self::Retry => RETRY,
            Self::Backoff => BACKOFF,
        }
    }
}

// === impl NodeKind ===

impl NodeKind {
    pub(crate) fn find_by_word(word: &str) -> Option<&'static Self> {
        NODE_KINDS.iter().find(|kind| kind.word == word)
    }

    /// The key of it that is called like this, by whichever of its names.
    pub(crate) fn key(&self, name: &str) -> Option<&'static SchemaKey> {
        self.keys.iter().find(|key| key.has_spelling(name))
    }
}

/// True if `name` is `known`, in snake case or camel case.
pub(crate) fn is_spelling_of(known: &str, name: &str) -> bool {
    known == name || (known.contains('_') && camel_case(known) == name)
}

fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let mut camel = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        camel.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        camel += letters.as_str();
    }
    camel
}
