//! Tool search: a list of three tools in place of all of them: one searches, one describes, one calls.
//!
//! For clients whose models choose badly among many tools, or pay for every line of the list. Nothing else changes: search finds only
//! tools that are visible to the caller, and a call through `call_tool` is a call of that tool, recorded under its name.

use std::sync::{Arc, LazyLock};

use arc_swap::ArcSwapOption;
use rialto_engine::{Engine, directory::Directory, search::Index};
use rialto_model::{
    call::CallTarget,
    failure::{Failure, FailureKind},
    json::Json,
};
use rmcp::model::{Tool, ToolAnnotations};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    builtin_tools, catalog::ToolCatalog, client_profile::ClientProfile, dispatch_tools, tool,
    tool_result::ToolResult,
};

/// The tool that calls another one.
pub(crate) const CALL: &str = "call_tool";

/// Default and maximum number of search results.
const DEFAULT_RESULTS: usize = 10;
const MAX_RESULTS: usize = 50;

/// Maximum length of a query, in bytes.
const MAX_QUERY_LENGTH: usize = 2_000;

/// Maximum length of a description in a search result.
const EXCERPT_LENGTH: usize = 300;

/// Search index of the skills, for the version of the registry at the last search.
#[derive(Default)]
pub(crate) struct ToolSearch {
    index: ArcSwapOption<Index>,
}

/// Arguments of `call_tool`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallToolArgs {
    /// The tool.
    pub(crate) name: String,
    /// Its arguments.
    pub(crate) arguments: Option<Json>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchToolsArgs {
    query: String,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DescribeToolArgs {
    name: String,
}

// === impl ToolSearch ===

impl ToolSearch {
    /// Index of this directory, built on first use. A large registry takes a while.
    async fn index(&self, directory: &Arc<Directory>) -> Result<Arc<Index>, Failure> {
        let known = self.index.load_full().filter(|known| Arc::ptr_eq(known.directory(), directory));
        if let Some(known) = known {
            return Ok(known);
        }
        let directory = Arc::clone(directory);
        let made = tokio::task::spawn_blocking(move || Arc::new(Index::of(&directory))).await;
        let made =
            made.map_err(|_| Failure::new(FailureKind::Internal, "the search was cut off; search again"))?;
        self.index.store(Some(Arc::clone(&made)));
        Ok(made)
    }

    /// `search_tools`: the tools that match a query, best first.
    pub(crate) async fn search(
        &self,
        engine: &Engine,
        client: &ClientProfile,
        catalog: &ToolCatalog,
        args: &Json,
    ) -> Result<ToolResult, Failure> {
        let wanted: SearchToolsArgs = builtin_tools::read(args)?;
        if wanted.query.len() > MAX_QUERY_LENGTH {
            let message = format!("query: expected at most {MAX_QUERY_LENGTH} characters");
            return Err(Failure::new(FailureKind::Invalid, message));
        }
        let limit = wanted.limit.unwrap_or(DEFAULT_RESULTS).clamp(1, MAX_RESULTS);
        let index = self.index(catalog.directory()).await?;
        let mut found = Vec::new();
        let mut total = 0_usize;
        for hit in index.find(&wanted.query) {
            let Some(entry) = index.directory().at(hit.place) else { continue };
            if !engine.policies().may_discover(&client.caller, &entry.target()) {
                continue;
            }
            total += 1;
            if found.len() < limit
                && let Some(tool) = catalog.tools_at(hit.place).first()
            {
                found.push(json!({
                    "name": tool.name,
                    "title": tool.title,
                    "description": excerpt(tool.description.as_deref().unwrap_or_default()),
                    "agent": entry.agent.slug,
                    "tags": entry.skill.tags,
                    "score": (f64::from(hit.score) * 100.0).round() / 100.0,
                }));
            }
        }
        let text = lines(&wanted.query, &found, total);
        Ok(ToolResult::text(text).with_structured(Json::encode(&json!({ "tools": found, "total": total }))))
    }
}

/// `describe_tool`: one tool, as it would be listed.
pub(crate) fn describe(
    catalog: &ToolCatalog,
    target: impl FnOnce(&str) -> Option<CallTarget>,
    args: &Json,
) -> Result<ToolResult, Failure> {
    let wanted: DescribeToolArgs = builtin_tools::read(args)?;
    if let Some(own) =
        builtin_tools::tools().iter().chain(dispatch_tools::tools()).find(|tool| tool.name == wanted.name)
    {
        return Ok(described(own));
    }
    let missing = || {
        let message = format!("there is no tool \"{}\"; search_tools finds those there are", wanted.name);
        Failure::new(FailureKind::NotFound, message)
    };
    let target = target(&wanted.name).ok_or_else(missing)?;
    let entry = catalog.directory().find(&target.verb()).ok_or_else(missing)?;
    Ok(described(&tool::of_skill(wanted.name.clone(), entry, catalog.is_portable())))
}

fn described(tool: &Tool) -> ToolResult {
    let value = serde_json::to_value(tool).unwrap_or_default();
    let text = serde_json::to_string_pretty(&value).unwrap_or_default();
    ToolResult::text(text).with_structured(Json::encode(&value))
}

fn lines(query: &str, found: &[Value], total: usize) -> String {
    if found.is_empty() {
        return format!("No tool fits \"{query}\". Try other words, or fewer.");
    }
    let mut text = String::new();
    for tool in found {
        let part = |name: &str| tool.get(name).and_then(Value::as_str).unwrap_or_default();
        text.push_str(&format!("{}: {}\n", part("name"), part("description")));
    }
    if total > found.len() {
        text.push_str(&format!("and {} more; say more precisely what you look for\n", total - found.len()));
    }
    text.push_str("describe_tool tells a tool's arguments, call_tool calls it.");
    text
}

fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_LENGTH) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or(text).trim_end()),
        None => text.to_owned(),
    }
}

/// The three tools, for the list.
pub(crate) fn tools() -> &'static [Tool] {
    static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| vec![search_tool(), describe_tool(), call_tool()]);
    &TOOLS
}

fn search_tool() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "query": { "type": "string", "description": "What the tool should do, in a few words" },
            "limit": { "type": "integer", "minimum": 1, "maximum": MAX_RESULTS, "description": "How many to find (10)" },
        },
        "required": ["query"],
        "additionalProperties": false,
    });
    let description = "Finds tools by what they do, best first. There are more tools than are listed here: search, \
                       then describe_tool, then call_tool.";
    made("search_tools", description, schema, true)
}

fn describe_tool() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": { "name": { "type": "string", "description": "A name that search_tools found" } },
        "required": ["name"],
        "additionalProperties": false,
    });
    made(
        "describe_tool",
        "Tells what a tool does and which arguments it takes, as a JSON schema.",
        schema,
        true,
    )
}

fn call_tool() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "A name that search_tools found" },
            "arguments": {
                "type": "object", "additionalProperties": true,
                "description": "The tool's arguments, by the schema that describe_tool tells",
            },
        },
        "required": ["name"],
        "additionalProperties": false,
    });
    made(CALL, "Calls a tool and answers with its result.", schema, false)
}

fn made(name: &'static str, description: &'static str, schema: Value, reads_only: bool) -> Tool {
    let schema = if let Value::Object(schema) = schema { schema } else { serde_json::Map::new() };
    let tool = Tool::new(name, description, Arc::new(schema));
    if reads_only { tool.with_annotations(ToolAnnotations::new().read_only(true)) } else { tool }
}
