//! `/api/v1/openapi.json`, made of the table of routes.

use serde_json::{Map, Value, json};

use super::routes::{ROUTES, Route};

pub(super) fn document() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = route.path.strip_prefix("/api/v1").unwrap_or(route.path);
        let item = paths.entry(path).or_insert_with(|| json!({}));
        item[route.method.to_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Rialto's administration",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Below /<org>/<project>/ for any other project than the default one. What may be done is up to the token's scopes and the policies.",
        },
        "servers": [{ "url": "." }],
        "security": [{ "bearer": [] }],
        "paths": paths,
        "components": components(),
    })
}

fn operation(route: &Route) -> Value {
    let text = json!({ "type": "string" });
    let places = route.path.split('/').filter_map(|word| word.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> =
        places.map(|name| json!({ "name": name, "in": "path", "required": true, "schema": text })).collect();
    parameters.extend(
        route.query.iter().map(
            |(name, means)| json!({ "name": name, "in": "query", "description": means, "schema": text }),
        ),
    );
    let (status, holds) = route.answer;
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.summary,
        "tags": [route.path.split('/').nth(3).unwrap_or_default()],
        "parameters": parameters,
        "responses": {
            status.to_string(): { "description": holds },
            "default": { "$ref": "#/components/responses/Problem" },
        },
    });
    if let Some(body) = route.body {
        let schema = json!({ "$ref": format!("#/components/schemas/{body}") });
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    }
    operation
}

fn operation_id(route: &Route) -> String {
    let words = route.path.trim_start_matches("/api/v1/").split(['/', '.']);
    let words = words.map(|word| word.trim_matches(['{', '}']));
    std::iter::once(route.method.to_lowercase().as_str()).chain(words).collect::<Vec<_>>().join("_")
}

fn components() -> Value {
    let (text, number) = (json!({ "type": "string" }), json!({ "type": "integer" }));
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    let level = json!({ "enum": ["external", "trusted"] });
    let kind = json!({ "enum": ["user", "session", "agent"] });
    let object = |required: &[&str], properties: Value| json!({ "type": "object", "required": required, "properties": properties, "additionalProperties": false });
    json!({
        "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
        "schemas": {
            "Agent": object(&["url"], json!({
                "url": text, "trust": level, "cardPath": text, "timeoutMs": number, "secret": text,
                "allow": { "type": "boolean" },
            })),
            "Trust": object(&["trust"], json!({ "trust": level })),
            "Message": object(&[], json!({ "text": text, "data": { "type": "object" } })),
            "PolicyText": object(&["text"], json!({ "name": text, "text": text })),
            "Question": object(&["action"], json!({ "caller": text, "kind": kind, "action": text, "target": text })),
            "Guarded": object(&[], json!({
                "text": text, "data": { "type": "object" }, "skill": text, "target": { "enum": ["input", "output"] },
            })),
            "Decision": object(&[], json!({ "reason": text })),
            "Workflow": json!({ "description": "A definition, in YAML or JSON" }),
            "Status": json!({ "type": "object" }),
            "Arguments": json!({ "type": "object" }),
            "Answer": object(&["message"], json!({ "message": {}, "step": text })),
            "Template": object(&["kind", "target"], json!({
                "kind": text, "target": text, "caller": text, "callerKind": kind, "by": text,
            })),
            "Token": object(&["caller"], json!({
                "caller": text, "kind": kind, "project": text, "expiresDays": number,
                "scopes": { "type": "array", "items": { "enum": ["call", "discover", "admin"] } },
            })),
            "Work": json!({ "type": "object", "properties": {
                "workType": text, "description": text, "requiredSkills": texts,
            } }),
            "Deployment": json!({ "type": "object", "required": ["kind", "name"], "properties": {
                "kind": { "enum": ["mcp", "function"] }, "name": text, "url": text,
            } }),
            "Problem": json!({ "type": "object", "required": ["title", "status", "detail"], "properties": {
                "title": text, "status": number, "detail": text, "code": number, "class": text,
            } }),
        },
        "responses": { "Problem": {
            "description": "What went wrong, and how to fix it",
            "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
        } },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_body_has_a_schema_and_every_operation_a_name_of_its_own() {
        let document = document();
        let mut ids = HashSet::new();
        for route in ROUTES {
            assert!(ids.insert(operation_id(route)), "{} {}", route.method, route.path);
            if let Some(body) = route.body {
                assert!(document["components"]["schemas"][body].is_object(), "{body}");
            }
        }
        assert_eq!(
            document["paths"]["/agents/{key}"]["delete"]["responses"]["204"]["description"],
            "It is gone"
        );
    }
}
