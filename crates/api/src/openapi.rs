//! OpenAPI document, `/api/v1/openapi.json`, generated from the table of routes.

use axum::response::Response;
use futures::FutureExt;
use rialto_admin::tenants::project_path;
use rialto_api_types::{
    overview::ApiProblem,
    schema::{request_generator, response_generator, schema_of},
};
use rialto_model::failure::Failure;
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::{
    ok_json,
    request::RouteRequest,
    response_schemas,
    routes::{Route, get, handler, routes},
};

/// Paths whose body may be YAML.
const YAML_BODIES: [&str; 2] = ["/api/v1/check-workflow", "/api/v1/workflows"];

/// Path with an optional body; without it, the route applies to all agents.
const OPTIONAL_BODY: &str = "/api/v1/refresh";

/// Generators of the component schemas.
struct Generators {
    responses: SchemaGenerator,
    requests: SchemaGenerator,
}

/// Routes of this resource.
pub(super) const ROUTES: &[Route] =
    &[get("/api/v1/openapi.json", "This document", "OpenAPI 3.1", handler!(show))];
pub(super) async fn show(request: RouteRequest) -> Result<Response, Failure> {
    ok_json(&document(&project_path(&request.caller.scope)))
}

/// OpenAPI document for the project below `base`.
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
            "description": "The API of another project than the default one is below /<org>/<project>/. Permissions depend on the scopes of the token and on policies.",
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
        |(name, description)| json!({ "name": name, "in": "query", "description": description, "schema": parameter_schema(name, description) }),
    ));
    let mut responses = json!({ "default": { "$ref": "#/components/responses/Problem" } });
    for (status, holds, schema) in described_responses(route, &mut generators.responses) {
        responses[status.to_string()] = response_object(route, holds, schema.as_ref());
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

/// Schema of a query parameter, by its name and description.
fn parameter_schema(name: &str, description: &str) -> Value {
    match name {
        "limit" => json!({ "type": "integer", "minimum": 1 }),
        "timeoutMs" | "after" | "version" => json!({ "type": "integer", "minimum": 0 }),
        _ if description.starts_with("`true`") || description.starts_with("`false`") => {
            json!({ "type": "boolean" })
        }
        _ => text(),
    }
}

/// Description of a successful response.
fn response_object(route: &Route, holds: &str, schema: Option<&Value>) -> Value {
    let mut response = json!({ "description": holds });
    let Some(schema) = schema else { return response };
    if route.path != "/api/v1/events" {
        response["content"]["application/json"] = json!({ "schema": schema });
    }
    if route.path.ends_with("/events") {
        response["content"]["text/event-stream"] = json!({ "schema": text() });
    }
    response
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
    // Schemas that both generators have are equal.
    schemas.extend(responses.take_definitions(true));
    json!({
        "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
        "schemas": schemas,
        "responses": { "Problem": {
            "description": "Description of the error, and how to fix it",
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

    /// Whether all references of a schema are in the document.
    fn has_all_references(document: &Value, schema: &Value) -> bool {
        let text = schema.to_string();
        let names = text.split("#/components/schemas/").skip(1).map(|rest| rest.split('"').next());
        names.flatten().all(|name| document["components"]["schemas"][name].is_object())
    }

    #[test]
    fn every_referenced_schema_exists_and_is_the_same_in_requests_and_responses() {
        let whole = document("");
        assert!(has_all_references(&whole, &whole));
        let mut requests = request_generator();
        for body in routes().filter_map(|route| route.body) {
            body(&mut requests);
        }
        for (name, schema) in requests.take_definitions(true) {
            assert_eq!(whole["components"]["schemas"][&name], schema, "{name}");
        }
    }

    #[test]
    fn every_body_has_a_schema_and_every_operation_a_unique_id() {
        let document = document("");
        let mut ids = HashSet::new();
        for route in routes() {
            assert!(ids.insert(operation_id(route)), "{} {}", route.method, route.path);
            if let Some(body) = route.body {
                assert!(
                    has_all_references(&document, &body(&mut request_generator()).to_value()),
                    "{}",
                    route.path
                );
            }
        }
        assert_eq!(
            document["paths"]["/agents/{key}"]["delete"]["responses"]["204"]["description"],
            "Removed"
        );
        let limit = &document["paths"]["/agents"]["get"]["parameters"][3];
        assert_eq!(limit["schema"], json!({ "type": "integer", "minimum": 1 }));
        let stream = &document["paths"]["/events"]["get"]["responses"]["200"]["content"];
        assert!(stream["text/event-stream"].is_object(), "{stream}");
        let body = &document["paths"]["/workflows"]["post"]["requestBody"]["content"];
        assert!(body["application/yaml"].is_object(), "{body}");
    }
}
