//! What each sort of node takes.

use super::{
    fields::Fields,
    node,
    notes::Notes,
    tree::{Tree, Value},
};
use crate::{
    definition::{Does, NodeId, Place},
    keys::{INNER, MOST_PARALLEL, Sort},
    problem::Code,
    template::Template,
};

/// What cannot be done for each item, and what helps.
const NOT_INSIDE: [&str; 3] = ["map", "condition", "approval"];

/// The fields of one node, and where what is wrong with them is told.
struct Reading<'a, 'b> {
    fields: &'b Fields<'a>,
    notes: &'b mut Notes,
}

pub(super) fn read(sort: &Sort, fields: &Fields<'_>, notes: &mut Notes) -> Option<Does> {
    let missing: Vec<_> = sort.needs.iter().filter(|name| fields.get(name).is_none()).collect();
    for name in &missing {
        let message = format!("a node of type {} has \"{name}\"", sort.word);
        notes.problems.add(fields.place, Code::MissingKey, message);
    }
    let mut reading = Reading { fields, notes };
    let does = match sort.word {
        "agent.ref" => Some(Does::AgentRef { agent: reading.string("agent")? }),
        "agent.invoke" => reading.invoke(),
        "agent.dispatch" => reading.dispatch(),
        "tool" => {
            let (name, args) = (reading.word("tool"), reading.arguments("args"));
            Some(Does::Tool { name: name?, args })
        }
        "pipeline" => {
            let (name, input) = (reading.name("pipeline"), reading.template("input"));
            Some(Does::Pipeline { name: name?, input })
        }
        "workflow" => {
            let (name, input) = (reading.name("workflow"), reading.template("input"));
            Some(Does::Workflow { name: name?, input })
        }
        "condition" => reading.condition(),
        "map" => reading.map(),
        "approval" => reading.approval(),
        _ => Some(Does::Set { value: reading.template("value")? }),
    };
    does.filter(|_| missing.is_empty())
}

/// The branches of a condition, with their places.
pub(super) fn branches(fields: &Fields<'_>, notes: &mut Notes) -> Vec<(NodeId, Place)> {
    let both = ["then", "else"].into_iter().filter_map(|name| Some((name, fields.get(name)?)));
    both.flat_map(|(name, tree)| notes.ids(tree, name)).collect()
}

// === impl Reading ===

impl<'a> Reading<'a, '_> {
    fn get(&self, name: &str) -> Option<&'a Tree> {
        self.fields.get(name)
    }

    fn string(&mut self, name: &str) -> Option<Template> {
        self.notes.string(self.get(name)?, name)
    }

    fn template(&mut self, name: &str) -> Option<Template> {
        self.notes.template(self.get(name)?)
    }

    fn arguments(&mut self, name: &str) -> Option<Template> {
        self.notes.arguments(self.get(name)?, name)
    }

    fn name(&mut self, name: &str) -> Option<String> {
        self.notes.name(self.get(name)?, name)
    }

    /// A string without references, and not an empty one.
    fn word(&mut self, name: &str) -> Option<String> {
        let tree = self.get(name)?;
        let text = &self.notes.text(tree, name)?.text;
        if text.is_empty() || text.contains("{{") {
            let message = format!("{name} is a name that is known beforehand, without references");
            return self.notes.bad(tree.place, Code::BadValue, message);
        }
        Some(text.clone())
    }

    fn invoke(&mut self) -> Option<Does> {
        let (agent, skill) = (self.string("agent"), self.string("skill"));
        let (args, message) = (self.arguments("args"), self.string("message"));
        Some(Does::Invoke { agent: agent?, skill, args, message })
    }

    fn dispatch(&mut self) -> Option<Does> {
        let (work_type, description) = (self.string("work_type"), self.string("description"));
        let required_skills = self.strings("required_skills");
        let (args, message) = (self.arguments("args"), self.string("message"));
        let is_told =
            ["work_type", "description", "required_skills"].iter().any(|name| self.get(name).is_some());
        if !is_told {
            let message =
                "agent.dispatch says what is to be done: \"workType\", \"requiredSkills\" or \"description\"";
            return self.notes.bad(self.fields.place, Code::MissingKey, message);
        }
        Some(Does::Dispatch { work_type, description, required_skills, args, message })
    }

    fn strings(&mut self, name: &str) -> Vec<Template> {
        match self.get(name) {
            None => Vec::new(),
            Some(Tree { value: Value::List(items), .. }) => {
                items.iter().filter_map(|item| self.notes.string(item, name)).collect()
            }
            Some(tree) => self.notes.string(tree, name).into_iter().collect(),
        }
    }

    fn condition(&mut self) -> Option<Does> {
        let test = self.get("if").and_then(|tree| self.notes.condition(tree, "if"));
        // What is wrong with them is told where their places are kept.
        let mut ignored = Notes::default();
        let mut ids = |name| {
            let ids = self.fields.get(name).map(|tree| ignored.ids(tree, name)).unwrap_or_default();
            ids.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
        };
        let (then, otherwise) = (ids("then"), ids("else"));
        Some(Does::Condition { test: test?, then, otherwise })
    }

    fn map(&mut self) -> Option<Does> {
        let over = self.get("over").and_then(|tree| self.list(tree));
        let parallel =
            self.get("parallel").and_then(|tree| self.notes.count(tree, "parallel", MOST_PARALLEL));
        let does = self.get("do").and_then(|tree| self.inner(tree));
        Some(Does::Map { over: over?, parallel: parallel.map(|many| many as usize), does: Box::new(does?) })
    }

    fn list(&mut self, tree: &Tree) -> Option<Template> {
        match &tree.value {
            Value::List(_) => self.notes.template(tree),
            Value::Text(text) if text.text.contains("{{") => self.notes.template(tree),
            _ => self.notes.wrong_type(tree, "over", "a list, or a reference to one"),
        }
    }

    fn inner(&mut self, tree: &Tree) -> Option<Does> {
        let members = self.notes.object(tree, "do")?;
        let sort = node::sort(tree.place, members, self.notes)?;
        if NOT_INSIDE.contains(&sort.word) {
            let message =
                format!("a map cannot do a {}; put it into a workflow of its own and do that", sort.word);
            return self.notes.bad(tree.place, Code::BadValue, message);
        }
        self.notes.is_in_map = true;
        let fields = node::fields(tree.place, members, INNER, Some(sort), self.notes);
        let does = read(sort, &fields, self.notes);
        self.notes.is_in_map = false;
        does
    }

    fn approval(&mut self) -> Option<Does> {
        let (question, details) = (self.string("question"), self.template("details"));
        let expires = self.get("expires").and_then(|tree| self.notes.duration(tree, "expires"));
        Some(Does::Approval { question: question?, details, expires })
    }
}
