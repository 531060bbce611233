//! Pipelines: tools one after the other, each with what the one before has made.
//!
//! A pipeline becomes the same nodes that a workflow has, so there is one runner and one journal. What a step is given is said by its
//! `input_mapping`: `$input.f`, `$steps.<id>.f` and `literal:v`, all of which keep their JSON types. A step without one gets all that
//! the step before has made; behind a group, an object with what each of the group has made under its id.

use rialto_model::json::Json;

use crate::{
    definition::{Does, NodeId},
    keys::STEP,
    problem::Code,
    read::{
        Draft, common,
        fields::Fields,
        group,
        notes::{Notes, did_you_mean},
        tree::{Member, Text, Tree, Value},
    },
    reference::{Cursor, Reference, Root, SyntaxError},
    template::Template,
};

/// What a step of a pipeline, and nothing else, begins a value with.
const LITERAL: &str = "literal:";

/// What was made before a step.
enum Before {
    /// Nothing yet: there is what the run was given.
    Input,
    Step(NodeId),
    Group(Vec<NodeId>),
}

/// Whether steps are those of a pipeline: each names a tool, and nothing that only a node of a workflow has.
pub(crate) fn is_one(steps: &Tree) -> bool {
    let Value::List(items) = &steps.value else { return false };
    let is_step = |members: &[Member]| {
        members.iter().any(|member| member.name == "tool")
            && members.iter().all(|member| STEP.iter().any(|key| key.is_called(&member.name)))
    };
    let is_item = |item: &Tree| match &item.value {
        Value::Object(members) => match members.as_slice() {
            [Member { name, tree, .. }] if name == "parallel" => is_one(tree),
            members => is_step(members),
        },
        _ => false,
    };
    let maps = |item: &Tree| match &item.value {
        Value::Object(members) => {
            members.iter().any(|member| crate::keys::is_spelt("input_mapping", &member.name))
        }
        _ => false,
    };
    items.iter().any(maps) || (!items.is_empty() && items.iter().all(is_item))
}

/// Reads the steps; the template is what the pipeline answers with.
pub(crate) fn read(tree: &Tree, notes: &mut Notes) -> (Vec<Draft>, Option<Template>) {
    let Value::List(items) = &tree.value else {
        return (notes.wrong_type(tree, "steps", "a list").unwrap_or_default(), None);
    };
    let mut drafts = Vec::new();
    let mut before = Before::Input;
    for item in crate::read::few(tree, items, notes) {
        let (next, group) = match group(item, notes) {
            Some(steps) => {
                let group: Vec<Draft> = steps.iter().filter_map(|item| step(item, &before, notes)).collect();
                (Before::Group(group.iter().map(|draft| draft.id.clone()).collect()), group)
            }
            None => {
                let Some(draft) = step(item, &before, notes) else { continue };
                (Before::Step(draft.id.clone()), vec![draft])
            }
        };
        drafts.extend(group);
        before = next;
    }
    (drafts, Some(before.made()))
}

fn step(tree: &Tree, before: &Before, notes: &mut Notes) -> Option<Draft> {
    let fields = Fields::of_tree(tree, "a step", STEP, notes)?;
    for name in ["id", "tool"] {
        if fields.get(name).is_none() {
            notes.problems.add(tree.place, Code::MissingKey, format!("a step of a pipeline has \"{name}\""));
        }
    }
    let id = fields.get("id").and_then(|tree| notes.name(tree, "id"));
    let name = fields.get("tool").and_then(|tree| notes.text(tree, "tool")).map(|text| text.text.clone());
    let args = match fields.get("input_mapping") {
        Some(tree) => mapping(tree, notes),
        None => Some(before.made()),
    };
    let common = common(&fields, notes);
    let seen = std::mem::take(&mut notes.seen);
    let does = args.and_then(|args| Some(Does::Tool { name: name?, args: Some(args) }));
    let (id, after) = (NodeId::from(id?.as_str()), before.ids());
    Some(Draft { id, place: tree.place, does, depends_on: None, after, branches: Vec::new(), seen, common })
}

// === impl Before ===

impl Before {
    /// All of it.
    fn made(&self) -> Template {
        let made = |id: &NodeId| Template::whole(Reference::whole(Root::Output(id.clone())));
        match self {
            Self::Input => Template::whole(Reference::whole(Root::Trigger)),
            Self::Step(id) => made(id),
            Self::Group(ids) => Template::object(ids.iter().map(|id| (id.to_string(), made(id)))),
        }
    }

    fn ids(&self) -> Vec<NodeId> {
        match self {
            Self::Input => Vec::new(),
            Self::Step(id) => vec![id.clone()],
            Self::Group(ids) => ids.clone(),
        }
    }
}

/// What a step is given: any JSON, in which strings say where values come from.
fn mapping(tree: &Tree, notes: &mut Notes) -> Option<Template> {
    match &tree.value {
        Value::Text(text) => source(text, tree, notes),
        Value::List(items) => {
            let items: Vec<_> = items.iter().map(|item| mapping(item, notes)).collect();
            Some(Template::list(items.into_iter().collect::<Option<Vec<_>>>()?))
        }
        Value::Object(members) => {
            let read = |member: &Member| Some((member.name.clone(), mapping(&member.tree, notes)?));
            let members: Vec<_> = members.iter().map(read).collect();
            Some(Template::object(members.into_iter().collect::<Option<Vec<_>>>()?))
        }
        _ => Some(Template::fixed(tree.json())),
    }
}

fn source(text: &Text, tree: &Tree, notes: &mut Notes) -> Option<Template> {
    if let Some(literal) = text.text.strip_prefix(LITERAL) {
        // A number, a list and so on is what it is; anything else is a text.
        return Some(Template::fixed(Json::parse(literal.trim()).unwrap_or_else(|_| Json::encode(literal))));
    }
    if text.text.contains("{{") {
        return notes.template(tree);
    }
    match Cursor::new(&text.text).mapped() {
        Ok(reference) => {
            notes.see(&reference, text, tree.place);
            Some(Template::whole(reference))
        }
        Err(SyntaxError { at, problem }) => {
            notes.bad(text.place(at, tree.place), Code::BadReference, problem)
        }
    }
}

// === impl Cursor ===

impl Cursor<'_> {
    /// A whole text that says where a value comes from.
    fn mapped(mut self) -> Result<Reference, SyntaxError> {
        let text = self.rest();
        let word = text.split(['.', '[']).next().unwrap_or_default();
        self.skip(word.len());
        let root = match word {
            "$input" => Root::Trigger,
            "$steps" => Root::Output(self.named()?),
            _ => {
                let hint = did_you_mean(word, ["$input", "$steps"]);
                let problem = format!(
                    "\"{text}\" says nothing about where the value comes from; write $input.field, $steps.id.field or \
                     literal:{text}{hint}"
                );
                return Err(SyntaxError { at: 0, problem });
            }
        };
        let path = self.path()?;
        if !self.is_over() {
            return Err(self.unexpected("\".\", \"[\" or the end"));
        }
        Ok(Reference { root, path, text: text.to_owned(), at: 0 })
    }
}

#[cfg(test)]
mod tests;
