//! `GET /call/openapi.json`: what can be called, for programs that write programs.
//!
//! Each skill's description is made once per version of the registry; a request puts together those that its caller may
//! see. Addresses are relative to the document's own, so it is right wherever it is fetched from.

use std::{fmt::Write, sync::Arc};

use arc_swap::ArcSwap;
use rialto_engine::{
    Engine,
    directory::{Directory, Entry},
};
use rialto_model::{call::Caller, ids::Scope, json::Json, name};
use serde_json::{Value, json};

/// Descriptions are kept for this many projects; one more forgets the oldest.
const KEPT: usize = 16;

/// All that were asked for lately.
#[derive(Default)]
pub(crate) struct Descriptions {
    kept: ArcSwap<Vec<Arc<Described>>>,
}

/// The skills of one project, described.
struct Described {
    scope: Scope,
    directory: Arc<Directory>,
    /// By place in the list: the address and what is there, as members of an object.
    paths: Vec<String>,
}

// === impl Descriptions ===

impl Descriptions {
    /// The document for a caller, which says whether it needs a token.
    pub(crate) fn document(&self, engine: &Engine, caller: &Caller, needs_token: bool) -> String {
        let described = self.of(engine, &caller.scope);
        let mut paths = String::new();
        for (entry, path) in described.directory.listed().zip(&described.paths) {
            if engine.may_discover(caller, &entry.target()) {
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

    fn of(&self, engine: &Engine, scope: &Scope) -> Arc<Described> {
        let directory = engine.registry().directory(scope);
        let is_meant = |kept: &&Arc<Described>| kept.scope == *scope;
        if let Some(known) = self.kept.load().iter().find(is_meant)
            && Arc::ptr_eq(&known.directory, &directory)
        {
            return Arc::clone(known);
        }
        let paths = directory.listed().map(path).collect();
        let described = Arc::new(Described { scope: scope.clone(), directory, paths });
        self.kept.rcu(|kept| {
            let others = kept.iter().filter(|other| !is_meant(other)).cloned();
            let mut kept: Vec<_> = others.chain([Arc::clone(&described)]).collect();
            kept.drain(..kept.len().saturating_sub(KEPT));
            kept
        });
        described
    }
}

fn path(entry: &Entry) -> String {
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
