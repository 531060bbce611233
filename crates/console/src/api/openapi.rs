//! `/api/v1/openapi.json`, made of the table of routes.

use rialto_api_types::{
    overview::ApiProblem,
    schema::{request_generator, response_generator, schema_of},
};
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::{
    response_schemas,
    routes::{Route, routes},
};

/// Paths whose body may be YAML.
const YAML_BODIES: [&str; 2] = ["/api/v1/check-workflow", "/api/v1/workflows"];

/// Path whose body may be left out: without names, all agents are meant.
const OPTIONAL_BODY: &str = "/api/v1/refresh";

/// Generators of the component schemas.
struct Generators {
    responses: SchemaGenerator,
    requests: SchemaGenerator,
}

/// The whole document, for the project that lies below `base`.
pub(super) fn document(base: &str) -> Value {
    let mut paths = Map::new();
    let mut generators = Generators { responses: response_generator(), requests: request_generator() };
    for route in routes() {
        let path = route.path.strip_prefix("/api/v1").unwrap_or(route.path);
        let item = paths.entry(path).or_insert_with(|| json!({}));
        item[route.method.to_lowercase()] = operation(route, &mut generators);
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
        "components": components(generators),
    })
}

fn operation(route: &Route, generators: &mut Generators) -> Value {
    let text = json!({ "type": "string" });
    let places = route.path.split('/').filter_map(|word| word.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> =
        places.map(|name| json!({ "name": name, "in": "path", "required": true, "schema": text })).collect();
    parameters.extend(route.query.iter().map(
        |(name, means)| json!({ "name": name, "in": "query", "description": means, "schema": parameter(name, means) }),
    ));
    let mut responses = json!({ "default": { "$ref": "#/components/responses/Problem" } });
    for (status, holds, schema) in described_responses(route, &mut generators.responses) {
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
        let schema = body(&mut generators.requests).to_value();
        let mut content = json!({ "application/json": { "schema": schema } });
        if YAML_BODIES.contains(&route.path) && route.method == "POST" {
            content["application/yaml"] = json!({ "schema": text });
        }
        operation["requestBody"] = json!({ "required": route.path != OPTIONAL_BODY, "content": content });
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

fn components(generators: Generators) -> Value {
    let Generators { mut responses, mut requests } = generators;
    let problem = schema_of::<ApiProblem>(&mut responses).to_value();
    let mut schemas = requests.take_definitions(true);
    // What is in both, such as the kind of a caller, is the same in both.
    schemas.extend(responses.take_definitions(true));
    json!({
        "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
        "schemas": schemas,
        "responses": { "Problem": {
            "description": "What went wrong, and how to fix it",
            "content": { "application/problem+json": { "schema": problem } },
        } },
    })
}

fn text() -> Value {
    json!({ "type": "string" })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Whether everything that a schema refers to is in the document.
    fn described(document: &Value, schema: &Value) -> bool {
        let text = schema.to_string();
        let names = text.split("#/components/schemas/").skip(1).map(|rest| rest.split('"').next());
        names.flatten().all(|name| document["components"]["schemas"][name].is_object())
    }

    #[test]
    fn every_schema_that_is_referred_to_is_there_and_means_one_thing() {
        let whole = document("");
        assert!(described(&whole, &whole));
        let mut requests = request_generator();
        for body in routes().filter_map(|route| route.body) {
            body(&mut requests);
        }
        for (name, schema) in requests.take_definitions(true) {
            assert_eq!(whole["components"]["schemas"][&name], schema, "{name}");
        }
    }

    #[test]
    fn every_body_has_a_schema_and_every_operation_a_name_of_its_own() {
        let document = document("");
        let mut ids = HashSet::new();
        for route in routes() {
            assert!(ids.insert(operation_id(route)), "{} {}", route.method, route.path);
            if let Some(body) = route.body {
                assert!(described(&document, &body(&mut request_generator()).to_value()), "{}", route.path);
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
