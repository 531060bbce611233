//! What a workflow says about itself, around its nodes.

use super::{
    Source,
    fields::Fields,
    node,
    notes::Notes,
    steps,
    tree::{Member, Tree, Value},
};
use crate::{
    check,
    definition::{Kind, Limits, Status, Trigger, Workflow},
    keys::{KINDS, LIMITS, MOST_PARALLEL, TRIGGER, TRIGGERS, WORKFLOW},
    pipeline,
    problem::Code,
    schedule::{Schedule, ScheduleError},
    template::Template,
};

/// Triggers of one workflow.
const MOST_TRIGGERS: usize = 16;

pub(super) fn read(tree: &Tree, source: Source<'_>, notes: &mut Notes) -> Option<Workflow> {
    let fields = Fields::of_tree(tree, "a workflow", WORKFLOW, notes)?;
    let text = |name, notes: &mut Notes| {
        fields.get(name).and_then(|tree| notes.text(tree, name)).map(|text| text.text.clone())
    };
    let name = match fields.get("name") {
        Some(tree) => notes.name(tree, "name").unwrap_or_default(),
        None => name_of(source.name),
    };
    let description = text("description", notes).unwrap_or_default();
    let status = status(&fields, notes);
    let kind = kind(&fields, source.kind, notes);
    let input_schema = fields.get("input_schema").and_then(|tree| schema(tree, notes));
    let triggers = fields.get("triggers").map(|tree| triggers(tree, notes)).unwrap_or_default();
    let limits = fields.get("limits").map(|tree| limits(tree, notes)).unwrap_or_default();
    let (drafts, made) = work(&fields, kind, notes);
    let output = fields.get("output").and_then(|tree| notes.template(tree)).or(made);
    let looked_at = std::mem::take(&mut notes.seen);
    let nodes = check::link(drafts, &looked_at, &mut notes.problems);
    Some(Workflow { name, description, status, kind, input_schema, output, triggers, limits, nodes })
}

/// The nodes, however they are written, and what a pipeline answers with.
fn work(fields: &Fields<'_>, kind: Kind, notes: &mut Notes) -> (Vec<node::Draft>, Option<Template>) {
    match (fields.get("nodes"), fields.get("steps"), kind) {
        (Some(nodes), Some(_), _) => {
            notes.problems.add(nodes.place, Code::DuplicateKey, "write \"nodes\" or \"steps\", not both");
            (Vec::new(), None)
        }
        (Some(tree), None, Kind::Pipeline) => {
            notes.problems.add(tree.place, Code::UnknownKey, "a pipeline has \"steps\", no \"nodes\"");
            (Vec::new(), None)
        }
        (None, None, _) => {
            let message = "nothing is to be done; write \"nodes\" or \"steps\"";
            notes.problems.add(fields.place, Code::MissingKey, message);
            (Vec::new(), None)
        }
        (Some(tree), None, Kind::Workflow) => (node::nodes(tree, notes), None),
        (None, Some(tree), Kind::Workflow) => (steps::read(tree, notes), None),
        (None, Some(tree), Kind::Pipeline) => pipeline::read(tree, notes),
    }
}

/// A file whose steps are nothing but tools is a pipeline, unless somebody says otherwise.
fn kind(fields: &Fields<'_>, wanted: Option<Kind>, notes: &mut Notes) -> Kind {
    let said =
        fields.get("kind").and_then(|tree| notes.word(tree, "kind", &KINDS).map(|word| (word, tree.place)));
    let said =
        said.map(|(word, place)| (if word == "pipeline" { Kind::Pipeline } else { Kind::Workflow }, place));
    match (wanted, said) {
        (Some(wanted), Some((said, place))) if wanted != said => {
            notes.problems.add(place, Code::BadValue, format!("a {} is wanted here", word(wanted)));
            wanted
        }
        (Some(wanted), _) => wanted,
        (None, Some((said, _))) => said,
        (None, None) if fields.get("steps").is_some_and(pipeline::is_one) => Kind::Pipeline,
        (None, None) => Kind::Workflow,
    }
}

const fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Workflow => "workflow",
        Kind::Pipeline => "pipeline",
    }
}

fn status(fields: &Fields<'_>, notes: &mut Notes) -> Status {
    let words = Status::ALL.map(Status::word);
    let word = fields.get("status").and_then(|tree| notes.word(tree, "status", &words));
    Status::ALL.into_iter().find(|status| Some(status.word()) == word).unwrap_or_default()
}

fn schema(tree: &Tree, notes: &mut Notes) -> Option<rialto_model::json::Json> {
    match tree.value {
        Value::Object(_) | Value::Bool(_) => Some(tree.json()),
        _ => notes.wrong_type(tree, "input_schema", "a JSON Schema, which is an object"),
    }
}

fn limits(tree: &Tree, notes: &mut Notes) -> Limits {
    let mut limits = Limits::default();
    let Some(fields) = Fields::of_tree(tree, "limits", LIMITS, notes) else { return limits };
    if let Some(tree) = fields.get("parallel")
        && let Some(parallel) = notes.count(tree, "parallel", MOST_PARALLEL)
    {
        limits.parallel = parallel as usize;
    }
    limits.timeout = fields.get("timeout").and_then(|tree| notes.duration(tree, "timeout"));
    limits
}

fn triggers(tree: &Tree, notes: &mut Notes) -> Vec<Trigger> {
    let items = match &tree.value {
        Value::List(items) => items.as_slice(),
        _ => std::slice::from_ref(tree),
    };
    if items.len() > MOST_TRIGGERS {
        let message = format!("a workflow has at most {MOST_TRIGGERS} triggers");
        notes.problems.add(tree.place, Code::BadValue, message);
    }
    items.iter().take(MOST_TRIGGERS).filter_map(|item| trigger(item, notes)).collect()
}

fn trigger(tree: &Tree, notes: &mut Notes) -> Option<Trigger> {
    if let Value::Text(_) = tree.value {
        return match notes.word(tree, "a trigger", &TRIGGERS)? {
            "manual" => Some(Trigger::Manual),
            "skill" => Some(Trigger::Skill),
            "cron" => missing(tree, "cron", "cron: \"0 9 * * MON-FRI\"", notes),
            _ => missing(tree, "http", "path: somewhere", notes),
        };
    }
    let fields = Fields::of_tree(tree, "a trigger", TRIGGER, notes)?;
    let word = match fields.get("type") {
        Some(tree) => notes.word(tree, "the type of a trigger", &TRIGGERS)?,
        None if fields.get("cron").is_some() => "cron",
        None if fields.get("path").is_some() => "http",
        None => {
            let message = format!("a trigger has a \"type\": one of {}", TRIGGERS.join(", "));
            return notes.bad(tree.place, Code::MissingKey, message);
        }
    };
    match word {
        "manual" => Some(Trigger::Manual),
        "skill" => Some(Trigger::Skill),
        "cron" => cron(tree, &fields, notes),
        _ => http(tree, &fields, notes),
    }
}

fn missing<T>(tree: &Tree, word: &str, example: &str, notes: &mut Notes) -> Option<T> {
    let message = format!("a trigger of type {word} is an object, as in {{ type: {word}, {example} }}");
    notes.bad(tree.place, Code::MissingKey, message)
}

fn cron(tree: &Tree, fields: &Fields<'_>, notes: &mut Notes) -> Option<Trigger> {
    let Some(pattern) = fields.get("cron") else {
        return missing(tree, "cron", "cron: \"0 9 * * MON-FRI\"", notes);
    };
    let zone = fields.get("timezone");
    let name = zone.and_then(|zone| notes.text(zone, "timezone")).map_or("UTC", |text| text.text.as_str());
    let input = fields.get("input").map(Tree::json);
    match Schedule::parse(&notes.text(pattern, "cron")?.text, name) {
        Ok(schedule) => Some(Trigger::Cron { schedule, input }),
        Err(error) => {
            let at = if matches!(error, ScheduleError::Zone(_)) { zone.unwrap_or(pattern) } else { pattern };
            notes.bad(at.place, Code::BadSchedule, error.to_string())
        }
    }
}

fn http(tree: &Tree, fields: &Fields<'_>, notes: &mut Notes) -> Option<Trigger> {
    let Some(tree) = fields.get("path") else { return missing(tree, "http", "path: somewhere", notes) };
    let text = &notes.text(tree, "path")?.text;
    let path = text.trim_matches('/');
    let is_part = |part: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '~');
        !part.is_empty() && part != "." && part != ".." && part.chars().all(is_plain)
    };
    if path.len() <= 200 && path.split('/').all(is_part) {
        return Some(Trigger::Http { path: path.to_owned() });
    }
    let message =
        "path has letters, digits, \"-\", \"_\", \".\" and \"~\" between its slashes, as in reports/daily";
    notes.bad(tree.place, Code::BadValue, message)
}

/// A name made of whatever the file is called.
fn name_of(text: &str) -> String {
    let plain: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    let name: String = plain.trim_matches(['-', '_']).chars().take(64).collect();
    if name.is_empty() { "workflow".to_owned() } else { name }
}

/// Whether an object has a key by any of its spellings.
pub(super) fn has(members: &[Member], name: &str) -> bool {
    members.iter().any(|member| crate::keys::is_spelt(name, &member.name))
}
