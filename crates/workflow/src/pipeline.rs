//! Pipelines: tools in sequence, each with the output of the step before.
//!
//! A pipeline becomes the nodes of a workflow, so there is one runner and one journal. The input of a step is its
//! `input_mapping`: `$input.f`, `$steps.<id>.f` and `literal:v`, which keep their JSON types. A step without one receives the
//! output of the step before; after a group, an object with the outputs of the group by id.

use rialto_model::json::Json;

use crate::{
    definition::{NodeAction, NodeId},
    problem::ProblemCode,
    read::{
        NodeDraft,
        diagnostics::{Diagnostics, did_you_mean},
        fields::ObjectFields,
        parallel_group, read_common,
        tree::{ObjectMember, SourceText, SourceTree, SourceValue},
    },
    reference::{ReferenceRoot, SyntaxError, TextCursor, ValueReference},
    schema_keys::STEP,
    template::JsonTemplate,
};

/// Prefix of a literal value in an input mapping.
const LITERAL: &str = "literal:";

/// Output available before a step.
enum PrecedingOutput {
    /// Nothing yet: there is what the run was given.
    Input,
    Step(NodeId),
    Group(Vec<NodeId>),
}

/// True if the steps are those of a pipeline: each names a tool and has no key of workflow nodes.
pub(crate) fn is_pipeline(steps: &SourceTree) -> bool {
    let SourceValue::List(items) = &steps.value else { return false };
    let is_step = |members: &[ObjectMember]| {
        members.iter().any(|member| member.name == "tool")
            && members.iter().all(|member| STEP.iter().any(|key| key.has_spelling(&member.name)))
    };
    let is_item = |item: &SourceTree| match &item.value {
        SourceValue::Object(members) => match members.as_slice() {
            [ObjectMember { name, tree, .. }] if name == "parallel" => is_pipeline(tree),
            members => is_step(members),
        },
        _ => false,
    };
    let maps = |item: &SourceTree| match &item.value {
        SourceValue::Object(members) => {
            members.iter().any(|member| crate::schema_keys::is_spelling_of("input_mapping", &member.name))
        }
        _ => false,
    };
    items.iter().any(maps) || (!items.is_empty() && items.iter().all(is_item))
}

/// Reads the steps; the template is what the pipeline answers with.
pub(crate) fn read_steps(
    tree: &SourceTree,
    diagnostics: &mut Diagnostics,
) -> (Vec<NodeDraft>, Option<JsonTemplate>) {
    let SourceValue::List(items) = &tree.value else {
        return (diagnostics.report_type(tree, "steps", "a list").unwrap_or_default(), None);
    };
    let mut drafts = Vec::new();
    let mut before = PrecedingOutput::Input;
    for item in crate::read::limit_nodes(tree, items, diagnostics) {
        let (next, group) = match parallel_group(item, diagnostics) {
            Some(steps) => {
                let group: Vec<NodeDraft> =
                    steps.iter().filter_map(|item| read_step(item, &before, diagnostics)).collect();
                (PrecedingOutput::Group(group.iter().map(|draft| draft.id.clone()).collect()), group)
            }
            None => {
                let Some(draft) = read_step(item, &before, diagnostics) else { continue };
                (PrecedingOutput::Step(draft.id.clone()), vec![draft])
            }
        };
        drafts.extend(group);
        before = next;
    }
    (drafts, Some(before.output_template()))
}

fn read_step(
    tree: &SourceTree,
    before: &PrecedingOutput,
    diagnostics: &mut Diagnostics,
) -> Option<NodeDraft> {
    let fields = ObjectFields::from_tree(tree, "a step", STEP, diagnostics)?;
    for name in ["id", "tool"] {
        if fields.get(name).is_none() {
            diagnostics.problems.add(
                tree.place,
                ProblemCode::MissingKey,
                format!("a step of a pipeline has \"{name}\""),
            );
        }
    }
    let id = fields.get("id").and_then(|tree| diagnostics.name(tree, "id"));
    let name =
        fields.get("tool").and_then(|tree| diagnostics.text(tree, "tool")).map(|text| text.text.clone());
    let args = match fields.get("input_mapping") {
        Some(tree) => input_mapping(tree, diagnostics),
        None => Some(before.output_template()),
    };
    let common = read_common(&fields, diagnostics);
    let seen = std::mem::take(&mut diagnostics.seen);
    let action = args.and_then(|args| Some(NodeAction::Tool { name: name?, args: Some(args) }));
    let (id, after) = (NodeId::from(id?.as_str()), before.ids());
    Some(NodeDraft {
        id,
        place: tree.place,
        action,
        depends_on: None,
        after,
        branches: Vec::new(),
        seen,
        common,
    })
}

// === impl PrecedingOutput ===

impl PrecedingOutput {
    /// Template of the whole output.
    fn output_template(&self) -> JsonTemplate {
        let made =
            |id: &NodeId| JsonTemplate::whole(ValueReference::whole(ReferenceRoot::Output(id.clone())));
        match self {
            Self::Input => JsonTemplate::whole(ValueReference::whole(ReferenceRoot::Trigger)),
            Self::Step(id) => made(id),
            Self::Group(ids) => JsonTemplate::object(ids.iter().map(|id| (id.to_string(), made(id)))),
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

/// Reads an input mapping: any JSON whose strings name the sources of values.
fn input_mapping(tree: &SourceTree, diagnostics: &mut Diagnostics) -> Option<JsonTemplate> {
    match &tree.value {
        SourceValue::Text(text) => input_source(text, tree, diagnostics),
        SourceValue::List(items) => {
            let items: Vec<_> = items.iter().map(|item| input_mapping(item, diagnostics)).collect();
            Some(JsonTemplate::list(items.into_iter().collect::<Option<Vec<_>>>()?))
        }
        SourceValue::Object(members) => {
            let read = |member: &ObjectMember| {
                Some((member.name.clone(), input_mapping(&member.tree, diagnostics)?))
            };
            let members: Vec<_> = members.iter().map(read).collect();
            Some(JsonTemplate::object(members.into_iter().collect::<Option<Vec<_>>>()?))
        }
        _ => Some(JsonTemplate::fixed(tree.json())),
    }
}

fn input_source(text: &SourceText, tree: &SourceTree, diagnostics: &mut Diagnostics) -> Option<JsonTemplate> {
    if let Some(literal) = text.text.strip_prefix(LITERAL) {
        // A number, a list and so on is what it is; anything else is a text.
        return Some(JsonTemplate::fixed(
            Json::parse(literal.trim()).unwrap_or_else(|_| Json::encode(literal)),
        ));
    }
    if text.text.contains("{{") {
        return diagnostics.template(tree);
    }
    match TextCursor::new(&text.text).parse_source() {
        Ok(reference) => {
            diagnostics.add_reference(&reference, text, tree.place);
            Some(JsonTemplate::whole(reference))
        }
        Err(SyntaxError { at, problem }) => {
            diagnostics.report(text.place(at, tree.place), ProblemCode::BadReference, problem)
        }
    }
}

// === impl TextCursor ===

impl TextCursor<'_> {
    /// Parses a text that is one source of a value.
    fn parse_source(mut self) -> Result<ValueReference, SyntaxError> {
        let text = self.rest();
        let word = text.split(['.', '[']).next().unwrap_or_default();
        self.skip(word.len());
        let root = match word {
            "$input" => ReferenceRoot::Trigger,
            "$steps" => ReferenceRoot::Output(self.parse_node_id()?),
            _ => {
                let hint = did_you_mean(word, ["$input", "$steps"]);
                let problem = format!(
                    "\"{text}\" names no source of the value; write $input.field, $steps.id.field or \
                     literal:{text}{hint}"
                );
                return Err(SyntaxError { at: 0, problem });
            }
        };
        let path = self.parse_path()?;
        if !self.is_at_end() {
            return Err(self.unexpected("\".\", \"[\" or the end"));
        }
        Ok(ValueReference { root, path, text: text.to_owned(), at: 0 })
    }
}

#[cfg(test)]
mod tests;
