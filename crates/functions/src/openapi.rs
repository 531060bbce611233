//! OpenAPI document of all skills that the caller may see: `GET /call/openapi.json`.
//!
//! The description of each skill is made once per version of the registry, and a request joins those that its caller may see. Addresses are
//! relative to the document's own, so they are right wherever it is fetched from.

use std::{fmt::Write, sync::Arc};

use arc_swap::ArcSwap;
use rialto_engine::{
    Engine,
    directory::{Directory, Entry},
};
use rialto_model::{call::Caller, ids::Scope, json::Json, name};
use serde_json::{Value, json};

/// Maximum number of projects whose descriptions are cached.
const MAX_CACHED_PROJECTS: usize = 16;

/// Cache of descriptions.
#[derive(Default)]
pub(crate) struct OpenApiDocuments {
    cached: ArcSwap<Vec<Arc<ProjectDescription>>>,
}

/// Described skills of one project.
struct ProjectDescription {
    scope: Scope,
    directory: Arc<Directory>,
    /// Path items of the listed skills, in order.
    paths: Vec<String>,
}

// === impl OpenApiDocuments ===

impl OpenApiDocuments {
    /// Document for a caller.
    pub(crate) fn render(&self, engine: &Engine, caller: &Caller, needs_token: bool) -> String {
        let described = self.project(engine, &caller.scope);
        let mut paths = String::new();
        for (entry, path) in described.directory.listed().zip(&described.paths) {
            if engine.policies().may_discover(caller, &entry.target()) {
                let comma = if paths.is_empty() { "" } else { "," };
                // Writing to a text cannot fail.
                let _ = write!(paths, "{comma}{path}");
            }
        }
        let (info, components) = (info(), components(needs_token));
        let security = if needs_token { r#""security":[{"bearer":[]}],"# } else { "" };
        format!(
            r#"{{"openapi":"3.1.0","info":{info},"servers":[{{"url":"."}}],{security}"paths":{{{paths}}},"components":{components}}}"#
        )
    }

    fn project(&self, engine: &Engine, scope: &Scope) -> Arc<ProjectDescription> {
        let directory = engine.registry().directory(scope);
        let is_project = |cached: &&Arc<ProjectDescription>| cached.scope == *scope;
        if let Some(known) = self.cached.load().iter().find(is_project)
            && Arc::ptr_eq(&known.directory, &directory)
        {
            return Arc::clone(known);
        }
        let paths = directory.listed().map(path_item).collect();
        let described = Arc::new(ProjectDescription { scope: scope.clone(), directory, paths });
        self.cached.rcu(|cached| {
            let others = cached.iter().filter(|other| !is_project(other)).cloned();
            let mut cached: Vec<_> = others.chain([Arc::clone(&described)]).collect();
            cached.drain(..cached.len().saturating_sub(MAX_CACHED_PROJECTS));
            cached
        });
        described
    }
}

fn path_item(entry: &Entry) -> String {
    let (skill, agent) = (&entry.skill, &entry.agent.card.name);
    let input = skill.input_schema.as_ref().map_or_else(|| json!({ "type": "object" }), Json::value);
    let output = skill.extra.get("outputSchema").map_or_else(|| json!({}), Json::value);
    let operation = json!({
        "post": {
            "operationId": entry.canonical,
            "summary": skill.name,
            "description": skill.description,
            "tags": [agent],
            "requestBody": { "content": { "application/json": { "schema": input } } },
            "responses": {
                "200": {
                    "description": "The result",
                    "content": { "application/json": { "schema": output }, "text/plain": {} },
                },
                "202": { "description": "It waits for an answer" },
                "default": { "$ref": "#/components/responses/Problem" },
            },
        },
    });
    format!("{}:{operation}", Json::encode(&format!("/{}", name::in_path(&entry.canonical))))
}

fn info() -> Value {
    let description = "Every skill that is deployed or registered here: arguments in, result out.";
    json!({ "title": "Rialto", "version": env!("CARGO_PKG_VERSION"), "description": description })
}

fn components(needs_token: bool) -> Value {
    let text = json!({ "type": "string" });
    let number = json!({ "type": "integer" });
    let mut components = json!({
        "responses": { "Problem": {
            "description": "What went wrong, and whose fault it is",
            "content": { "application/problem+json": { "schema": {
                "type": "object",
                "properties": {
                    "title": text, "status": number, "detail": text, "code": number, "class": text,
                    "path": text, "taskId": text,
                },
                "required": ["title", "status", "detail", "code", "class"],
            } } },
        } },
    });
    if needs_token {
        components["securitySchemes"] = json!({ "bearer": { "type": "http", "scheme": "bearer" } });
    }
    components
}
