//! Every key that a workflow may have, once.
//!
//! The reader takes keys by these tables and `rialto workflow schema` is made from them, so neither knows one that the other does not.
//! Names are written here with underscores; in a file `agentCardId` is as good as `agent_card_id`.

use crate::definition::{PARALLEL, Status};

/// A key, and what it holds.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// Other names for the same.
    pub(crate) also: &'static [&'static str],
    pub(crate) is: Is,
    pub(crate) about: &'static str,
}

/// What a value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Is {
    /// The name of a workflow or a node.
    Name,
    /// A string.
    Text,
    /// One of some words.
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
    Table(Table),
    /// A number of attempts, or an object of the keys of a table.
    CountOrTable(u32, Table),
    /// A length of time, or an object of the keys of a table.
    DurationOrTable(Table),
    /// One trigger or a list of them.
    Triggers,
    /// Nodes, as a list or by their ids.
    Nodes,
    /// Steps, as a list.
    Steps,
    /// What a node does, without an id.
    Does,
    /// How a pipeline's step gets its arguments.
    Mapping,
    /// What the sort of the node takes.
    Config,
}

/// An object with a table of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Limits,
    Retry,
    Backoff,
}

/// A sort of node.
#[derive(Debug)]
pub(crate) struct Sort {
    pub(crate) word: &'static str,
    pub(crate) about: &'static str,
    /// A node without a `type` that has one of these is of this sort.
    pub(crate) told_by: &'static [&'static str],
    pub(crate) needs: &'static [&'static str],
    pub(crate) keys: &'static [Key],
}

/// Nodes that run at once, and items of a `map`.
pub(crate) const MOST_PARALLEL: u32 = 256;
/// Attempts of one node.
pub(crate) const MOST_ATTEMPTS: u32 = 100;
/// The word for a node whose `nodeId` says what it does.
pub(crate) const ACTION: &str = "action";

pub(crate) const KINDS: [&str; 2] = ["workflow", "pipeline"];
const STATUSES: [&str; 3] = [Status::ALL[0].word(), Status::ALL[1].word(), Status::ALL[2].word()];
pub(crate) const TRIGGERS: [&str; 4] = ["manual", "http", "cron", "skill"];
const AGENT: &[&str] = &["agent_card_id", "agent_name", "agent_card_url"];
const ARGS: Key = key("args", &["arguments"], Is::Arguments, "What it is given.");
const MESSAGE: Key = key("message", &[], Is::TextTemplate, "What it is told, as text.");
const PARALLEL_ITEMS: &str = "How many at once; else as many as the workflow runs nodes.";
const _: () = assert!(PARALLEL == 8, "the texts below say so");

/// The keys of a workflow.
pub(crate) const WORKFLOW: &[Key] = &[
    key("name", &[], Is::Name, "What it is called; else the name of its file."),
    key("description", &[], Is::Text, "What it is good for, as its skill says it."),
    key(
        "status",
        &[],
        Is::Word(&STATUSES),
        "Drafts run only to be tried out, active ones are skills, archived ones refuse. Drafts are what they are at first.",
    ),
    key(
        "kind",
        &[],
        Is::Word(&KINDS),
        "A pipeline passes what a step has made to the next; else this is seen by its steps.",
    ),
    key("input_schema", &[], Is::Schema, "The JSON Schema of what a run is given."),
    key(
        "output",
        &[],
        Is::Template,
        "What a run answers with; else what those nodes have made that no other needs.",
    ),
    key("triggers", &["trigger"], Is::Triggers, "What begins a run, besides somebody who asks for one."),
    key("limits", &[], Is::Table(Table::Limits), "How much a run may take."),
    key("nodes", &[], Is::Nodes, "What is done: each node as soon as those it needs are done."),
    key(
        "steps",
        &[],
        Is::Steps,
        "What is done: one step after the other, unless one says what it depends on.",
    ),
];

/// The keys of `limits`.
pub(crate) const LIMITS: &[Key] = &[
    key("parallel", &[], Is::Count(MOST_PARALLEL), "Nodes that run at once; 8 when nothing is said."),
    key("timeout", &[], Is::Duration, "When the whole run must be over, from its beginning on."),
];

/// The keys of a trigger.
pub(crate) const TRIGGER: &[Key] = &[
    key("type", &[], Is::Word(&TRIGGERS), "What sort of trigger it is."),
    key("path", &[], Is::Text, "http: the path of the address, below the one of all workflows."),
    key("cron", &["expr", "schedule"], Is::Text, "cron: five fields, as in \"0 9 * * MON-FRI\"."),
    key("timezone", &[], Is::Text, "cron: the time zone it counts in, as in \"Europe/Berlin\"; else UTC."),
    key("input", &[], Is::Any, "cron: what the run is given."),
];

/// The keys that every node may have.
pub(crate) const NODE: &[Key] = &[
    key("id", &[], Is::Name, "What it is called: letters, digits, `_` and `-`."),
    key("type", &[], Is::Text, "What sort of node it is; or `action`, and `nodeId` says it."),
    key("node_id", &[], Is::Text, "What sort of node it is."),
    key(
        "config",
        &[],
        Is::Config,
        "What the sort of node takes; it may stand beside the other keys as well.",
    ),
    key("depends_on", &["needs"], Is::Ids, "Nodes that must be done before, besides those it refers to."),
    key("when", &[], Is::Condition, "It is skipped when this does not hold."),
    key("retry", &[], Is::CountOrTable(MOST_ATTEMPTS, Table::Retry), "How often it is tried."),
    key("timeout", &[], Is::Duration, "How long one attempt may take."),
    key("continue_on_failure", &[], Is::Flag, "Whether those that need it go on after it has failed."),
];

/// The keys that what a `map` does may have, besides those of its sort.
pub(crate) const INNER: &[Key] = &[
    key("type", &[], Is::Text, "What sort of node it is; or `action`, and `nodeId` says it."),
    key("node_id", &[], Is::Text, "What sort of node it is."),
    key(
        "config",
        &[],
        Is::Config,
        "What the sort of node takes; it may stand beside the other keys as well.",
    ),
];

/// The keys of `retry`.
pub(crate) const RETRY: &[Key] = &[
    key(
        "attempts",
        &["max_attempts"],
        Is::Count(MOST_ATTEMPTS),
        "Attempts altogether; 1 when nothing is said.",
    ),
    key("backoff", &[], Is::DurationOrTable(Table::Backoff), "The pauses between them."),
];

/// The keys of `backoff`.
pub(crate) const BACKOFF: &[Key] = &[
    key("first", &[], Is::Duration, "The pause after the first attempt; 1s when nothing is said."),
    key(
        "factor",
        &[],
        Is::Factor,
        "How much longer each pause is than the one before; 2 when nothing is said.",
    ),
    key("longest", &[], Is::Duration, "No pause is longer; 1m when nothing is said."),
];

/// The keys of a pipeline's step.
pub(crate) const STEP: &[Key] = &[
    key("id", &[], Is::Name, "What it is called: letters, digits, `_` and `-`."),
    key("tool", &[], Is::Text, "The tool it calls."),
    key("input_mapping", &[], Is::Mapping, "What the tool is given; else what the step before has made."),
    key("retry", &[], Is::CountOrTable(MOST_ATTEMPTS, Table::Retry), "How often it is tried."),
    key("timeout", &[], Is::Duration, "How long one attempt may take."),
    key("continue_on_failure", &[], Is::Flag, "Whether those that need it go on after it has failed."),
];

/// The keys of a group of steps.
pub(crate) const GROUP: &[Key] = &[key("parallel", &[], Is::Steps, "Steps that run at once.")];

/// The sorts of nodes.
pub(crate) const SORTS: &[Sort] = &[
    Sort {
        word: "agent.ref",
        about: "Looks an agent up; makes its agentCardId, name and url.",
        told_by: &[],
        needs: &["agent"],
        keys: &[key("agent", AGENT, Is::TextTemplate, "The agent's id, name or address.")],
    },
    Sort {
        word: "agent.invoke",
        about: "Asks a named agent.",
        told_by: &["agent", "skill"],
        needs: &["agent"],
        keys: &[
            key("agent", AGENT, Is::TextTemplate, "The agent's id, name or address."),
            key("skill", &["skill_id"], Is::TextTemplate, "Which of its skills."),
            ARGS,
            MESSAGE,
        ],
    },
    Sort {
        word: "agent.dispatch",
        about: "Asks whoever fits best.",
        told_by: &["work_type", "required_skills"],
        needs: &[],
        keys: &[
            key("work_type", &[], Is::TextTemplate, "What kind of work it is."),
            key("description", &[], Is::TextTemplate, "What is to be done."),
            key(
                "required_skills",
                &["capability", "capabilities"],
                Is::TextTemplates,
                "What whoever does it must be able to do: ids, names or tags of skills.",
            ),
            ARGS,
            MESSAGE,
        ],
    },
    Sort {
        word: "tool",
        about: "Calls a tool by the name that MCP clients know it by.",
        told_by: &["tool"],
        needs: &["tool"],
        keys: &[key("tool", &["name", "tool_name"], Is::Text, "The tool's name."), ARGS],
    },
    Sort {
        word: "pipeline",
        about: "Runs a pipeline and waits for it.",
        told_by: &["pipeline"],
        needs: &["pipeline"],
        keys: &[
            key("pipeline", &["name"], Is::Name, "The pipeline's name."),
            key("input", &["args"], Is::Template, "What it is given; else what this run was given."),
        ],
    },
    Sort {
        word: "workflow",
        about: "Runs another workflow and waits for it.",
        told_by: &["workflow"],
        needs: &["workflow"],
        keys: &[
            key("workflow", &["name"], Is::Name, "The workflow's name."),
            key("input", &["args"], Is::Template, "What it is given; else what this run was given."),
        ],
    },
    Sort {
        word: "condition",
        about: "Chooses a branch; the nodes of the other are skipped.",
        told_by: &["if", "then", "else"],
        needs: &["if"],
        keys: &[
            key("if", &["test", "condition"], Is::Condition, "What is asked."),
            key("then", &[], Is::Ids, "The nodes that go on when it holds."),
            key("else", &[], Is::Ids, "The nodes that go on when it does not."),
        ],
    },
    Sort {
        word: "map",
        about: "Does the same for each item of a list; makes the list of what each has made.",
        told_by: &["over", "do"],
        needs: &["over", "do"],
        keys: &[
            key("over", &["for_each", "items"], Is::Template, "The list."),
            key("parallel", &[], Is::Count(MOST_PARALLEL), PARALLEL_ITEMS),
            key("do", &[], Is::Does, "What is done with `{{ item }}` and `{{ index }}`."),
        ],
    },
    Sort {
        word: "approval",
        about: "Waits until a person agrees; a refusal fails the node.",
        told_by: &["question"],
        needs: &["question"],
        keys: &[
            key("question", &["approval", "prompt"], Is::TextTemplate, "What the person is asked."),
            key("details", &[], Is::Template, "What the person is shown beside it."),
            key("expires", &["expires_in"], Is::Duration, "When nobody has decided by then, it is refused."),
        ],
    },
    Sort {
        word: "set",
        about: "Makes a value of others.",
        told_by: &["value"],
        needs: &["value"],
        keys: &[key("value", &["set"], Is::Template, "The value.")],
    },
];

const fn key(name: &'static str, also: &'static [&'static str], is: Is, about: &'static str) -> Key {
    Key { name, also, is, about }
}

// === impl Key ===

impl Key {
    /// Every way it is written.
    pub(crate) fn spellings(&self) -> impl Iterator<Item = String> {
        std::iter::once(self.name).chain(self.also.iter().copied()).flat_map(|name| {
            let camel = camel(name);
            let is_other = camel != name;
            std::iter::once(name.to_owned()).chain(is_other.then_some(camel))
        })
    }

    /// Whether it is written like this.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        std::iter::once(&self.name).chain(self.also).any(|known| is_spelt(known, name))
    }
}

// === impl Table ===

impl Table {
    pub(crate) const fn keys(self) -> &'static [Key] {
        match self {
            Self::Limits => LIMITS,
            Self::Retry => RETRY,
            Self::Backoff => BACKOFF,
        }
    }
}

// === impl Sort ===

impl Sort {
    pub(crate) fn called(word: &str) -> Option<&'static Self> {
        SORTS.iter().find(|sort| sort.word == word)
    }

    /// The key of it that is called like this, by whichever of its names.
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.is_called(name))
    }
}

/// Whether `name` is `known`, with underscores or with capitals.
pub(crate) fn is_spelt(known: &str, name: &str) -> bool {
    known == name || (known.contains('_') && camel(known) == name)
}

fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let mut camel = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        camel.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        camel += letters.as_str();
    }
    camel
}
