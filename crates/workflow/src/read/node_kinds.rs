//! Readers for the keys of each type of node.

use super::{
    diagnostics::Diagnostics,
    fields::ObjectFields,
    node,
    tree::{SourceTree, SourceValue},
};
use crate::{
    definition::{NodeAction, NodeId, SourcePosition},
    problem::ProblemCode,
    schema_keys::{INNER, MAX_PARALLEL, NodeKind},
    template::JsonTemplate,
};

/// Types that cannot be the action of a `map`, with a hint.
const NOT_INSIDE: [&str; 3] = ["map", "condition", "approval"];

/// Fields of one node and the collected problems.
struct NodeReader<'a, 'b> {
    fields: &'b ObjectFields<'a>,
    diagnostics: &'b mut Diagnostics,
}

pub(super) fn read_action(
    kind: &NodeKind,
    fields: &ObjectFields<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<NodeAction> {
    let missing: Vec<_> = kind.needs.iter().filter(|name| fields.get(name).is_none()).collect();
    for name in &missing {
        let message = format!("a node of type {} has \"{name}\"", kind.word);
        diagnostics.problems.add(fields.place, ProblemCode::MissingKey, message);
    }
    let mut reading = NodeReader { fields, diagnostics };
    let action = match kind.word {
        "agent.ref" => Some(NodeAction::AgentRef { agent: reading.string("agent")? }),
        "agent.invoke" => reading.invoke(),
        "agent.dispatch" => reading.dispatch(),
        "tool" => {
            let (name, args) = (reading.word("tool"), reading.arguments("args"));
            Some(NodeAction::Tool { name: name?, args })
        }
        "pipeline" => {
            let (name, input) = (reading.name("pipeline"), reading.template("input"));
            Some(NodeAction::Pipeline { name: name?, input })
        }
        "workflow" => {
            let (name, input) = (reading.name("workflow"), reading.template("input"));
            Some(NodeAction::Workflow { name: name?, input })
        }
        "condition" => reading.condition(),
        "map" => reading.map(),
        "approval" => reading.approval(),
        _ => Some(NodeAction::Set { value: reading.template("value")? }),
    };
    action.filter(|_| missing.is_empty())
}

/// The branches of a condition, with their places.
pub(super) fn condition_branches(
    fields: &ObjectFields<'_>,
    diagnostics: &mut Diagnostics,
) -> Vec<(NodeId, SourcePosition)> {
    let both = ["then", "else"].into_iter().filter_map(|name| Some((name, fields.get(name)?)));
    both.flat_map(|(name, tree)| diagnostics.ids(tree, name)).collect()
}

// === impl NodeReader ===

impl<'a> NodeReader<'a, '_> {
    fn get(&self, name: &str) -> Option<&'a SourceTree> {
        self.fields.get(name)
    }

    fn string(&mut self, name: &str) -> Option<JsonTemplate> {
        self.diagnostics.string(self.get(name)?, name)
    }

    fn template(&mut self, name: &str) -> Option<JsonTemplate> {
        self.diagnostics.template(self.get(name)?)
    }

    fn arguments(&mut self, name: &str) -> Option<JsonTemplate> {
        self.diagnostics.arguments(self.get(name)?, name)
    }

    fn name(&mut self, name: &str) -> Option<String> {
        self.diagnostics.name(self.get(name)?, name)
    }

    /// A string without references, and not an empty one.
    fn word(&mut self, name: &str) -> Option<String> {
        let tree = self.get(name)?;
        let text = &self.diagnostics.text(tree, name)?.text;
        if text.is_empty() || text.contains("{{") {
            let message = format!("{name} is a name that is known beforehand, without references");
            return self.diagnostics.report(tree.place, ProblemCode::BadValue, message);
        }
        Some(text.clone())
    }

    fn invoke(&mut self) -> Option<NodeAction> {
        let (agent, skill) = (self.string("agent"), self.string("skill"));
        let (args, message) = (self.arguments("args"), self.string("message"));
        Some(NodeAction::Invoke { agent: agent?, skill, args, message })
    }

    fn dispatch(&mut self) -> Option<NodeAction> {
        let (work_type, description) = (self.string("work_type"), self.string("description"));
        let required_skills = self.strings("required_skills");
        let (args, message) = (self.arguments("args"), self.string("message"));
        let is_told =
            ["work_type", "description", "required_skills"].iter().any(|name| self.get(name).is_some());
        if !is_told {
            let message = "agent.dispatch needs \"workType\", \"requiredSkills\" or \"description\"";
            return self.diagnostics.report(self.fields.place, ProblemCode::MissingKey, message);
        }
        Some(NodeAction::Dispatch { work_type, description, required_skills, args, message })
    }

    fn strings(&mut self, name: &str) -> Vec<JsonTemplate> {
        match self.get(name) {
            None => Vec::new(),
            Some(SourceTree { value: SourceValue::List(items), .. }) => {
                items.iter().filter_map(|item| self.diagnostics.string(item, name)).collect()
            }
            Some(tree) => self.diagnostics.string(tree, name).into_iter().collect(),
        }
    }

    fn condition(&mut self) -> Option<NodeAction> {
        let test = self.get("if").and_then(|tree| self.diagnostics.condition(tree, "if"));
        // Their problems are reported where the positions are known.
        let mut ignored = Diagnostics::default();
        let mut ids = |name| {
            let ids = self.fields.get(name).map(|tree| ignored.ids(tree, name)).unwrap_or_default();
            ids.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
        };
        let (then, otherwise) = (ids("then"), ids("else"));
        Some(NodeAction::Condition { test: test?, then, otherwise })
    }

    fn map(&mut self) -> Option<NodeAction> {
        let over = self.get("over").and_then(|tree| self.list(tree));
        let parallel = self
            .get("parallel")
            .and_then(|tree| self.diagnostics.expect_count(tree, "parallel", MAX_PARALLEL));
        let action = self.get("do").and_then(|tree| self.inner(tree));
        Some(NodeAction::Map {
            over: over?,
            parallel: parallel.map(|many| many as usize),
            action: Box::new(action?),
        })
    }

    fn list(&mut self, tree: &SourceTree) -> Option<JsonTemplate> {
        match &tree.value {
            SourceValue::List(_) => self.diagnostics.template(tree),
            SourceValue::Text(text) if text.text.contains("{{") => self.diagnostics.template(tree),
            _ => self.diagnostics.report_type(tree, "over", "a list, or a reference to one"),
        }
    }

    fn inner(&mut self, tree: &SourceTree) -> Option<NodeAction> {
        let members = self.diagnostics.expect_object(tree, "do")?;
        let kind = node::node_kind(tree.place, members, self.diagnostics)?;
        if NOT_INSIDE.contains(&kind.word) {
            let message =
                format!("a map cannot do a {}; put it into a workflow of its own and do that", kind.word);
            return self.diagnostics.report(tree.place, ProblemCode::BadValue, message);
        }
        self.diagnostics.is_in_map = true;
        let fields = node::node_fields(tree.place, members, INNER, Some(kind), self.diagnostics);
        let action = read_action(kind, &fields, self.diagnostics);
        self.diagnostics.is_in_map = false;
        action
    }

    fn approval(&mut self) -> Option<NodeAction> {
        let (question, details) = (self.string("question"), self.template("details"));
        let expires = self.get("expires").and_then(|tree| self.diagnostics.duration(tree, "expires"));
        Some(NodeAction::Approval { question: question?, details, expires })
    }
}
