//! What each operation answers, for the OpenAPI document.
//!
//! Shapes are written in a short form. `text`, `count`, `number`, `flag`, `time`, `object`, `any` and `null` are what they say, `X[]` is a
//! list, `X{}` an object with names for keys, `X | Y` one or the other, `'x'` that word, and everything else a shape by its name. A
//! member with a `?` may be missing; there are no members but these. The tests hold every answer that they get against its shape, so that
//! neither changes alone.

mod registry;
mod rules;
mod work;

use serde_json::{Map, Value, json};

use super::routes::Route;

/// An object by its name, with its members.
type Shape = (&'static str, &'static [(&'static str, &'static str)]);

/// What a good answer of an operation is; one that is missing here has none.
const ANSWERS: &[(&str, &str)] = &[
    ("GET /openapi.json", "object"),
    ("GET /me", "Me"),
    ("GET /overview", "Overview"),
    ("GET /events", "text"),
    ("GET /tasks", "TaskPage"),
    ("POST /tasks", "Begun"),
    ("GET /tasks/undelivered", "UndeliveredList"),
    ("GET /tasks/{id}", "Task"),
    ("GET /tasks/{id}/inspect", "Inspected"),
    ("GET /tasks/{id}/events", "Events"),
    ("POST /tasks/{id}/cancel", "Task"),
    ("POST /tasks/{id}/messages", "Told"),
    ("POST /check-workflow", "CheckedWorkflow"),
    ("GET /workflows", "WorkflowRow[]"),
    ("POST /workflows", "WorkflowRow"),
    ("GET /workflows/{name}", "WorkflowRow"),
    ("GET /workflows/{name}/versions", "WorkflowVersions"),
    ("DELETE /workflows/{name}", "Removed"),
    ("POST /workflows/{name}/status", "WorkflowRow"),
    ("GET /workflows/{name}/runs", "RunPage"),
    ("POST /workflows/{name}/runs", "Task"),
    ("GET /runs", "RunPage"),
    ("POST /runs", "Task"),
    ("GET /runs/{id}", "RunRecord"),
    ("POST /runs/{id}", "Task"),
    ("POST /runs/{id}/resume", "Task"),
    ("POST /runs/{id}/cancel", "Task"),
    ("GET /approvals", "ApprovalPage"),
    ("GET /approvals/{id}", "Approval"),
    ("POST /approvals/{id}/approve", "Approval"),
    ("POST /approvals/{id}/deny", "Approval"),
    ("POST /dispatch", "Dispatched"),
    ("GET /dispatches", "DispatchPage"),
    ("GET /dispatches/{id}", "Dispatch"),
    ("POST /resolve", "Dispatch"),
    ("GET /audit", "RecordPage"),
    ("GET /audit/verify", "Verified"),
    ("GET /costs", "Costs"),
];

/// Good answers with another status, when there are such.
const OTHERWISE: &[(&str, u16, &str, &str)] = &[
    ("POST /workflows/{name}/runs", 202, "The run's id; nobody waits for it", "RunBegun"),
    ("POST /runs", 202, "The run's id; nobody waits for it", "RunBegun"),
    ("POST /runs/{id}", 202, "The run's id; nobody waits for it", "RunBegun"),
    ("POST /runs/{id}/resume", 202, "The run's id; nobody waits for it", "RunBegun"),
];

/// What is one of a few words, or one of a few shapes.
const CHOICES: &[(&str, &str)] = &[
    ("CallerKind", "'user' | 'session' | 'agent'"),
    ("Health", "'healthy' | 'degraded' | 'unreachable' | 'unknown'"),
    ("RunState", "'running' | 'waiting' | 'completed' | 'failed' | 'canceled'"),
    (
        "TaskState",
        "'submitted' | 'working' | 'input-required' | 'auth-required' | 'completed' | 'failed' | 'canceled' | 'rejected'",
    ),
    ("Verdict", "'chosen' | 'passed' | Out"),
];

/// Every good answer of a route: its status, what it holds and its schema, if it has a body.
pub(super) fn of(route: &Route) -> Vec<(u16, &'static str, Option<Value>)> {
    let name = format!("{} {}", route.method, route.path.trim_start_matches("/api/v1"));
    let usual = ANSWERS.iter().find(|(known, _)| *known == name).map(|(_, shape)| schema(shape));
    let others = OTHERWISE.iter().filter(|(known, ..)| *known == name);
    let others = others.map(|(_, status, holds, shape)| (*status, *holds, Some(schema(shape))));
    std::iter::once((route.answer.0, route.answer.1, usual)).chain(others).collect()
}

/// The schema of every shape, by its name.
pub(super) fn schemas() -> Map<String, Value> {
    let choices = CHOICES.iter().map(|(name, shape)| ((*name).to_owned(), schema(shape)));
    let shapes = [registry::SHAPES, work::SHAPES, rules::SHAPES].into_iter().flatten();
    let objects = shapes.map(|(name, members)| ((*name).to_owned(), object(members)));
    choices.chain(objects).collect()
}

fn object(members: &[(&str, &str)]) -> Value {
    let is_there = |(name, _): &&(&str, &str)| !name.ends_with('?');
    let required: Vec<&str> = members.iter().filter(is_there).map(|(name, _)| *name).collect();
    let named = |(name, shape): &(&str, &str)| (name.trim_end_matches('?').to_owned(), schema(shape));
    let properties: Map<String, Value> = members.iter().map(named).collect();
    json!({ "type": "object", "required": required, "properties": properties, "additionalProperties": false })
}

/// What a shape is in JSON Schema.
fn schema(shape: &str) -> Value {
    let pieces: Vec<&str> = shape.split(" | ").collect();
    let words: Option<Vec<&str>> = pieces.iter().map(|piece| word(piece)).collect();
    match (words, pieces.as_slice()) {
        (Some(words), _) => json!({ "type": "string", "enum": words }),
        (None, [one]) => kind(one),
        (None, several) => json!({ "anyOf": several.iter().map(|piece| schema(piece)).collect::<Vec<_>>() }),
    }
}

/// What stands between quotes.
fn word(piece: &str) -> Option<&str> {
    piece.strip_prefix('\'')?.strip_suffix('\'')
}

fn kind(name: &str) -> Value {
    if let Some(of) = name.strip_suffix("[]") {
        return json!({ "type": "array", "items": kind(of) });
    }
    if let Some(of) = name.strip_suffix("{}") {
        return json!({ "type": "object", "additionalProperties": kind(of) });
    }
    match name {
        "text" => json!({ "type": "string" }),
        "count" => json!({ "type": "integer", "minimum": 0 }),
        "integer" => json!({ "type": "integer" }),
        "number" => json!({ "type": "number" }),
        "flag" => json!({ "type": "boolean" }),
        "time" => json!({ "type": "string", "format": "date-time" }),
        "object" => json!({ "type": "object" }),
        "null" => json!({ "type": "null" }),
        "any" => json!({}),
        shape => json!({ "$ref": format!("#/components/schemas/{shape}") }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::api::{response_schemas, routes};

    #[test]
    fn a_shape_says_what_there_is() {
        let shape = object(&[("next", "text | null"), ("rows?", "Rule[]")]);
        let schema = json!({
            "type": "object",
            "required": ["next"],
            "properties": {
                "next": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
                "rows": { "type": "array", "items": { "$ref": "#/components/schemas/Rule" } },
            },
            "additionalProperties": false,
        });
        assert_eq!(shape, schema);
    }

    #[test]
    fn every_answer_is_one_of_a_route_and_every_route_with_a_body_has_one() {
        let name = |route: &Route| format!("{} {}", route.method, route.path.trim_start_matches("/api/v1"));
        let known: HashSet<String> = routes().map(name).collect();
        let told = ANSWERS.iter().map(|(name, _)| *name).chain(OTHERWISE.iter().map(|(name, ..)| *name));
        for told in told {
            assert!(known.contains(told), "{told} is no route");
        }
        for route in routes() {
            let (status, _, schema) = of(route).swap_remove(0);
            let is_typed = response_schemas::responses_of(route).iter().any(|(.., schema)| schema.is_some());
            assert_eq!(schema.is_some() || is_typed, status != 204, "{} {}", route.method, route.path);
        }
    }

    #[test]
    fn every_shape_that_is_named_is_there() {
        let schemas = schemas();
        let whole = json!([schemas, routes().map(|route| format!("{:?}", of(route))).collect::<Vec<_>>()]);
        for named in whole.to_string().split("#/components/schemas/").skip(1) {
            let name = named.split(['"', '\\']).next().unwrap_or_default();
            assert!(schemas.contains_key(name), "{name}");
        }
    }
}
