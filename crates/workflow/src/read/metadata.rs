//! Keys of a workflow beside its nodes.

use super::{
    DefinitionSource,
    diagnostics::Diagnostics,
    fields::ObjectFields,
    node, steps,
    tree::{ObjectMember, SourceTree, SourceValue},
};
use crate::{
    check,
    definition::{Workflow, WorkflowKind, WorkflowLimits, WorkflowStatus, WorkflowTrigger},
    pipeline,
    problem::ProblemCode,
    schedule::{CronSchedule, ScheduleError},
    schema_keys::{KINDS, LIMITS, MAX_PARALLEL, TRIGGER, TRIGGERS, WORKFLOW},
    template::JsonTemplate,
};

/// Triggers of one workflow.
const MAX_TRIGGERS: usize = 16;

pub(super) fn read_workflow(
    tree: &SourceTree,
    source: DefinitionSource<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Workflow> {
    let fields = ObjectFields::from_tree(tree, "a workflow", WORKFLOW, diagnostics)?;
    let text = |name, diagnostics: &mut Diagnostics| {
        fields.get(name).and_then(|tree| diagnostics.text(tree, name)).map(|text| text.text.clone())
    };
    let name = match fields.get("name") {
        Some(tree) => diagnostics.name(tree, "name").unwrap_or_default(),
        None => name_from_file(source.name),
    };
    let description = text("description", diagnostics).unwrap_or_default();
    let status = read_status(&fields, diagnostics);
    let kind = read_kind(&fields, source.kind, diagnostics);
    let input_schema = fields.get("input_schema").and_then(|tree| read_schema(tree, diagnostics));
    let triggers = fields.get("triggers").map(|tree| read_triggers(tree, diagnostics)).unwrap_or_default();
    let limits = fields.get("limits").map(|tree| read_limits(tree, diagnostics)).unwrap_or_default();
    let (drafts, made) = read_nodes(&fields, kind, diagnostics);
    let output = fields.get("output").and_then(|tree| diagnostics.template(tree)).or(made);
    let output_references = std::mem::take(&mut diagnostics.seen);
    let nodes = check::link_nodes(drafts, &output_references, &mut diagnostics.problems);
    Some(Workflow { name, description, status, kind, input_schema, output, triggers, limits, nodes })
}

/// The nodes, however they are written, and what a pipeline answers with.
fn read_nodes(
    fields: &ObjectFields<'_>,
    kind: WorkflowKind,
    diagnostics: &mut Diagnostics,
) -> (Vec<node::NodeDraft>, Option<JsonTemplate>) {
    match (fields.get("nodes"), fields.get("steps"), kind) {
        (Some(nodes), Some(_), _) => {
            diagnostics.problems.add(
                nodes.place,
                ProblemCode::DuplicateKey,
                "write \"nodes\" or \"steps\", not both",
            );
            (Vec::new(), None)
        }
        (Some(tree), None, WorkflowKind::Pipeline) => {
            diagnostics.problems.add(
                tree.place,
                ProblemCode::UnknownKey,
                "a pipeline has \"steps\", no \"nodes\"",
            );
            (Vec::new(), None)
        }
        (None, None, _) => {
            let message = "nothing is to be done; write \"nodes\" or \"steps\"";
            diagnostics.problems.add(fields.place, ProblemCode::MissingKey, message);
            (Vec::new(), None)
        }
        (Some(tree), None, WorkflowKind::Workflow) => (node::read_nodes(tree, diagnostics), None),
        (None, Some(tree), WorkflowKind::Workflow) => (steps::read_steps(tree, diagnostics), None),
        (None, Some(tree), WorkflowKind::Pipeline) => pipeline::read_steps(tree, diagnostics),
    }
}

/// Notation of a file: steps that are all tools are a pipeline, unless `kind` or the caller decides otherwise.
fn read_kind(
    fields: &ObjectFields<'_>,
    wanted: Option<WorkflowKind>,
    diagnostics: &mut Diagnostics,
) -> WorkflowKind {
    let said = fields
        .get("kind")
        .and_then(|tree| diagnostics.word(tree, "kind", &KINDS).map(|word| (word, tree.place)));
    let said = said.map(|(word, place)| {
        (if word == "pipeline" { WorkflowKind::Pipeline } else { WorkflowKind::Workflow }, place)
    });
    match (wanted, said) {
        (Some(wanted), Some((said, place))) if wanted != said => {
            diagnostics.problems.add(
                place,
                ProblemCode::BadValue,
                format!("a {} is wanted here", kind_word(wanted)),
            );
            wanted
        }
        (Some(wanted), _) => wanted,
        (None, Some((said, _))) => said,
        (None, None) if fields.get("steps").is_some_and(pipeline::is_pipeline) => WorkflowKind::Pipeline,
        (None, None) => WorkflowKind::Workflow,
    }
}

const fn kind_word(kind: WorkflowKind) -> &'static str {
    match kind {
        WorkflowKind::Workflow => "workflow",
        WorkflowKind::Pipeline => "pipeline",
    }
}

fn read_status(fields: &ObjectFields<'_>, diagnostics: &mut Diagnostics) -> WorkflowStatus {
    let words = WorkflowStatus::ALL.map(WorkflowStatus::word);
    let word = fields.get("status").and_then(|tree| diagnostics.word(tree, "status", &words));
    WorkflowStatus::ALL.into_iter().find(|status| Some(status.word()) == word).unwrap_or_default()
}

fn read_schema(tree: &SourceTree, diagnostics: &mut Diagnostics) -> Option<rialto_model::json::Json> {
    match tree.value {
        SourceValue::Object(_) | SourceValue::Bool(_) => Some(tree.json()),
        _ => diagnostics.report_type(tree, "input_schema", "a JSON Schema, which is an object"),
    }
}

fn read_limits(tree: &SourceTree, diagnostics: &mut Diagnostics) -> WorkflowLimits {
    let mut limits = WorkflowLimits::default();
    let Some(fields) = ObjectFields::from_tree(tree, "limits", LIMITS, diagnostics) else { return limits };
    if let Some(tree) = fields.get("parallel")
        && let Some(parallel) = diagnostics.expect_count(tree, "parallel", MAX_PARALLEL)
    {
        limits.parallel = parallel as usize;
    }
    limits.timeout = fields.get("timeout").and_then(|tree| diagnostics.duration(tree, "timeout"));
    limits
}

fn read_triggers(tree: &SourceTree, diagnostics: &mut Diagnostics) -> Vec<WorkflowTrigger> {
    let items = match &tree.value {
        SourceValue::List(items) => items.as_slice(),
        _ => std::slice::from_ref(tree),
    };
    if items.len() > MAX_TRIGGERS {
        let message = format!("a workflow has at most {MAX_TRIGGERS} triggers");
        diagnostics.problems.add(tree.place, ProblemCode::BadValue, message);
    }
    items.iter().take(MAX_TRIGGERS).filter_map(|item| read_trigger(item, diagnostics)).collect()
}

fn read_trigger(tree: &SourceTree, diagnostics: &mut Diagnostics) -> Option<WorkflowTrigger> {
    if let SourceValue::Text(_) = tree.value {
        return match diagnostics.word(tree, "a trigger", &TRIGGERS)? {
            "manual" => Some(WorkflowTrigger::Manual),
            "skill" => Some(WorkflowTrigger::Skill),
            "cron" => report_missing(tree, "cron", "cron: \"0 9 * * MON-FRI\"", diagnostics),
            _ => report_missing(tree, "http", "path: somewhere", diagnostics),
        };
    }
    let fields = ObjectFields::from_tree(tree, "a trigger", TRIGGER, diagnostics)?;
    let word = match fields.get("type") {
        Some(tree) => diagnostics.word(tree, "the type of a trigger", &TRIGGERS)?,
        None if fields.get("cron").is_some() => "cron",
        None if fields.get("path").is_some() => "http",
        None => {
            let message = format!("a trigger has a \"type\": one of {}", TRIGGERS.join(", "));
            return diagnostics.report(tree.place, ProblemCode::MissingKey, message);
        }
    };
    match word {
        "manual" => Some(WorkflowTrigger::Manual),
        "skill" => Some(WorkflowTrigger::Skill),
        "cron" => read_cron_trigger(tree, &fields, diagnostics),
        _ => read_http_trigger(tree, &fields, diagnostics),
    }
}

fn report_missing<T>(
    tree: &SourceTree,
    word: &str,
    example: &str,
    diagnostics: &mut Diagnostics,
) -> Option<T> {
    let message = format!("a trigger of type {word} is an object, as in {{ type: {word}, {example} }}");
    diagnostics.report(tree.place, ProblemCode::MissingKey, message)
}

fn read_cron_trigger(
    tree: &SourceTree,
    fields: &ObjectFields<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<WorkflowTrigger> {
    let Some(pattern) = fields.get("cron") else {
        return report_missing(tree, "cron", "cron: \"0 9 * * MON-FRI\"", diagnostics);
    };
    let zone = fields.get("timezone");
    let name =
        zone.and_then(|zone| diagnostics.text(zone, "timezone")).map_or("UTC", |text| text.text.as_str());
    let input = fields.get("input").map(SourceTree::json);
    match CronSchedule::parse(&diagnostics.text(pattern, "cron")?.text, name) {
        Ok(schedule) => Some(WorkflowTrigger::Cron { schedule, input }),
        Err(error) => {
            let at = if matches!(error, ScheduleError::Zone(_)) { zone.unwrap_or(pattern) } else { pattern };
            diagnostics.report(at.place, ProblemCode::BadSchedule, error.to_string())
        }
    }
}

fn read_http_trigger(
    tree: &SourceTree,
    fields: &ObjectFields<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<WorkflowTrigger> {
    let Some(tree) = fields.get("path") else {
        return report_missing(tree, "http", "path: somewhere", diagnostics);
    };
    let text = &diagnostics.text(tree, "path")?.text;
    let path = text.trim_matches('/');
    let is_part = |part: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '~');
        !part.is_empty() && part != "." && part != ".." && part.chars().all(is_plain)
    };
    if path.len() <= 200 && path.split('/').all(is_part) {
        return Some(WorkflowTrigger::Http { path: path.to_owned() });
    }
    let message =
        "path has letters, digits, \"-\", \"_\", \".\" and \"~\" between its slashes, as in reports/daily";
    diagnostics.report(tree.place, ProblemCode::BadValue, message)
}

/// Makes a valid name of a file name.
fn name_from_file(text: &str) -> String {
    let plain: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    let name: String = plain.trim_matches(['-', '_']).chars().take(64).collect();
    if name.is_empty() { "workflow".to_owned() } else { name }
}

/// True if an object has a key, in any spelling.
pub(super) fn has_key(members: &[ObjectMember], name: &str) -> bool {
    members.iter().any(|member| crate::schema_keys::is_spelling_of(name, &member.name))
}
