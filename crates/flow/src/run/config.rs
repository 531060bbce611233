//! What can be set about running workflows.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Work in many steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// How many steps of all runs may be at work at once in this process; the others wait for their turn.
    pub parallel_steps: usize,
    /// A folder with definitions: every `.yaml`, `.yml` and `.json` file in it is one. They are read at the start, and belong to
    /// the project `main` of the org `default`.
    pub folder: Option<PathBuf>,
    /// Whether MCP clients are shown `orchestrate_workflow` and `execute_dag` in the list of tools. They can be called in any
    /// case.
    pub tools: bool,
    /// How many workflows may be inside each other. One that is nested deeper fails.
    pub max_depth: u32,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self { parallel_steps: 256, folder: None, tools: false, max_depth: 8 }
    }
}
