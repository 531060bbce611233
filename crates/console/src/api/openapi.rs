//! `/api/v1/openapi.json`, made of the table of routes.

use rialto_api_types::schema::response_generator;
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::{
    response_schemas,
    routes::{Route, routes},
};

/// The whole document, for the project that lies below `base`.
pub(super) fn document(base: &str) -> Value {
    let (mut paths, mut generator) = (Map::new(), response_generator());
    for route in routes() {
        let path = route.path.strip_prefix("/api/v1").unwrap_or(route.path);
        let item = paths.entry(path).or_insert_with(|| json!({}));
        item[route.method.to_lowercase()] = operation(route, &mut generator);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Rialto's administration",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Below /<org>/<project>/ for any other project than the default one. What may be done is up to the token's scopes and the policies.",
        },
        "servers": [{ "url": format!("{base}/api/v1") }],
        "security": [{ "bearer": [] }],
        "paths": paths,
        "components": components(generator.take_definitions(true)),
    })
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let text = json!({ "type": "string" });
    let places = route.path.split('/').filter_map(|word| word.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> =
        places.map(|name| json!({ "name": name, "in": "path", "required": true, "schema": text })).collect();
    parameters.extend(route.query.iter().map(
        |(name, means)| json!({ "name": name, "in": "query", "description": means, "schema": parameter(name, means) }),
    ));
    let mut responses = json!({ "default": { "$ref": "#/components/responses/Problem" } });
    for (status, holds, schema) in described_responses(route, generator) {
        responses[status.to_string()] = answer(route, holds, schema.as_ref());
    }
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.summary,
        "tags": [route.path.split('/').nth(3).unwrap_or_default()],
        "parameters": parameters,
        "responses": responses,
    });
    if let Some(body) = route.body {
        let schema = json!({ "$ref": format!("#/components/schemas/{body}") });
        let mut content = json!({ "application/json": { "schema": schema } });
        if body == "Workflow" {
            content["application/yaml"] = json!({ "schema": text });
        }
        // Whoever names nobody means all of them.
        operation["requestBody"] = json!({ "required": body != "Picked", "content": content });
    }
    operation
}

/// Status, description and schema of every successful response.
fn described_responses(
    route: &Route,
    generator: &mut SchemaGenerator,
) -> Vec<(u16, &'static str, Option<Value>)> {
    let described = response_schemas::responses_of(route).into_iter().map(|(status, description, schema)| {
        (status, description, schema.map(|schema| schema(generator).to_value()))
    });
    described.collect()
}

/// What a parameter is, told by what it means.
fn parameter(name: &str, means: &str) -> Value {
    match name {
        "limit" => json!({ "type": "integer", "minimum": 1 }),
        "timeoutMs" | "after" | "version" => json!({ "type": "integer", "minimum": 0 }),
        _ if means.starts_with("`true`") || means.starts_with("`false`") => json!({ "type": "boolean" }),
        _ => text(),
    }
}

/// A good answer, and what it is written as.
fn answer(route: &Route, holds: &str, schema: Option<&Value>) -> Value {
    let mut answer = json!({ "description": holds });
    let Some(schema) = schema else { return answer };
    if route.path != "/api/v1/events" {
        answer["content"]["application/json"] = json!({ "schema": schema });
    }
    if route.path.ends_with("/events") {
        answer["content"]["text/event-stream"] = json!({ "schema": text() });
    }
    answer
}

fn operation_id(route: &Route) -> String {
    let words = route.path.trim_start_matches("/api/v1/").split(['/', '.']);
    let words = words.map(|word| word.trim_matches(['{', '}']));
    std::iter::once(route.method.to_lowercase().as_str()).chain(words).collect::<Vec<_>>().join("_")
}

fn components(responses: Map<String, Value>) -> Value {
    let schemas: Map<String, Value> =
        [registry_schemas(), work_schemas(), rule_schemas(), responses].into_iter().flatten().collect();
    json!({
        "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
        "schemas": schemas,
        "responses": { "Problem": {
            "description": "What went wrong, and how to fix it",
            "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
        } },
    })
}

/// Who is there to be called.
fn registry_schemas() -> Map<String, Value> {
    let (text, number, texts) = (text(), number(), texts());
    let level = json!({ "enum": ["external", "trusted"] });
    named([
        (
            "Agent",
            object(
                &["url"],
                &json!({
                    "url": text, "trust": level, "cardPath": text, "timeoutMs": number, "secret": text,
                    "credential": { "$ref": "#/components/schemas/Credential" }, "allow": { "type": "boolean" },
                }),
            ),
        ),
        ("Trust", object(&["trust"], &json!({ "trust": level }))),
        ("Secret", object(&["value"], &json!({ "value": text }))),
        ("Picked", object(&[], &json!({ "agents": texts }))),
        ("Deployment", deployment()),
    ])
}

/// What is to be deployed: reached by an address or a command, one of both.
fn deployment() -> Value {
    let (text, texts) = (text(), texts());
    let settings = json!({ "type": "object", "description": "Texts, or where a secret comes from" });
    object(
        &["kind", "name"],
        &json!({
            "kind": { "enum": ["mcp", "function"] }, "name": text, "url": text, "headers": settings,
            "command": { "oneOf": [text, texts] }, "args": texts, "env": settings, "cwd": text,
            "timeout": { "type": "number", "description": "In seconds" },
            "sampling": { "type": "string", "description": "Of a server: who answers what it asks a model" },
            "trust": { "enum": ["external", "trusted"], "description": "Of a server: what an external one changes is held" },
            "description": { "type": "string", "description": "Of a function: what it does" },
            "input_schema": { "type": "object" }, "output_schema": { "type": "object" },
            "idempotent": { "type": "boolean" },
        }),
    )
}

/// What is done.
fn work_schemas() -> Map<String, Value> {
    let (text, number, texts) = (text(), number(), texts());
    named([
        (
            "Call",
            object(
                &["name"],
                &json!({
                    "name": text, "arguments": {}, "text": text, "task": text, "context": text, "timeoutMs": number,
                }),
            ),
        ),
        ("Message", object(&[], &json!({ "text": text, "data": { "type": "object" } }))),
        ("Decision", object(&[], &json!({ "reason": text }))),
        ("Workflow", json!({ "description": "A definition, in YAML or JSON" })),
        ("Status", object(&["status"], &json!({ "status": { "enum": ["draft", "active", "archived"] } }))),
        ("Arguments", json!({ "type": "object" })),
        ("Inline", object(&["workflow"], &json!({ "workflow": text, "input": {} }))),
        ("Answer", object(&["message"], &json!({ "message": {}, "step": text }))),
        (
            "Work",
            json!({ "type": "object", "properties": {
            "workType": text, "description": text, "requiredSkills": texts, "inputModes": texts,
            "message": {}, "contextId": text, "timeoutMs": number,
        } }),
        ),
        (
            "Problem",
            json!({ "type": "object", "required": ["title", "status", "detail"], "properties": {
            "title": text, "status": number, "detail": text, "code": number, "class": text,
        } }),
        ),
    ])
}

/// Who may do what, and who hears of it.
fn rule_schemas() -> Map<String, Value> {
    let (text, number, texts) = (text(), number(), texts());
    let kind = json!({ "enum": ["user", "session", "agent"] });
    named([
        ("PolicyText", object(&["text"], &json!({ "name": text, "text": text }))),
        (
            "Question",
            object(&["action"], &json!({ "caller": text, "kind": kind, "action": text, "target": text })),
        ),
        (
            "Guarded",
            object(
                &[],
                &json!({
                    "text": text, "data": { "type": "object" }, "skill": text, "target": { "enum": ["input", "output", "both"] },
                    "checks": texts, "action": { "enum": ["log", "warn", "redact", "block"] },
                    "guardrail": { "type": "object", "description": "One as in the section [guardrails]" },
                    "orUsual": { "type": "boolean" },
                }),
            ),
        ),
        (
            "Template",
            object(
                &["kind", "target"],
                &json!({
                    "kind": text, "target": text, "caller": text, "callerKind": kind, "by": text, "name": text,
                    "role": { "enum": ["", "owner"] }, "shelf": { "enum": ["files", "store"] },
                    "allOrgs": { "type": "boolean" },
                }),
            ),
        ),
        ("NewOrg", object(&["org"], &json!({ "org": text, "owner": text }))),
        ("NewProject", object(&["project"], &json!({ "project": text }))),
        (
            "Token",
            object(
                &["caller"],
                &json!({
                    "caller": text, "kind": kind, "role": { "enum": ["owner"] }, "org": text, "project": text, "expiresDays": number,
                    "expiresAt": { "type": "string", "format": "date-time" },
                    "scopes": { "type": "array", "items": { "enum": ["call", "discover", "admin"] } },
                }),
            ),
        ),
        (
            "Webhook",
            object(&["url"], &json!({ "url": text, "org": text, "events": texts, "secretEnv": text })),
        ),
        ("Version", object(&["version"], &json!({ "version": number }))),
    ])
}

fn named<const N: usize>(schemas: [(&str, Value); N]) -> Map<String, Value> {
    schemas.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

/// An object with these members and no others.
fn object(required: &[&str], properties: &Value) -> Value {
    json!({ "type": "object", "required": required, "properties": properties, "additionalProperties": false })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn number() -> Value {
    json!({ "type": "integer" })
}

fn texts() -> Value {
    json!({ "type": "array", "items": text() })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_body_has_a_schema_and_every_operation_a_name_of_its_own() {
        let document = document("");
        let mut ids = HashSet::new();
        for route in routes() {
            assert!(ids.insert(operation_id(route)), "{} {}", route.method, route.path);
            if let Some(body) = route.body {
                assert!(document["components"]["schemas"][body].is_object(), "{body}");
            }
        }
        assert_eq!(
            document["paths"]["/agents/{key}"]["delete"]["responses"]["204"]["description"],
            "It is gone"
        );
        let limit = &document["paths"]["/agents"]["get"]["parameters"][3];
        assert_eq!(limit["schema"], json!({ "type": "integer", "minimum": 1 }));
        let stream = &document["paths"]["/events"]["get"]["responses"]["200"]["content"];
        assert!(stream["text/event-stream"].is_object(), "{stream}");
        let body = &document["paths"]["/workflows"]["post"]["requestBody"]["content"];
        assert!(body["application/yaml"].is_object(), "{body}");
    }
}
