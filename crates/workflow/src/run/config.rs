//! Configuration of workflow execution.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Work in many steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Maximum number of steps of all runs that execute at once in this process; others are queued.
    pub parallel_steps: usize,
    /// A folder with definitions: every `.yaml`, `.yml` and `.json` file in it is one. They are read at the start, and belong to
    /// the project `main` of the org `default`.
    pub folder: Option<PathBuf>,
    /// List `orchestrate_workflow` and `execute_dag` among the tools of MCP clients. They can be called in any case.
    pub tools: bool,
    /// Maximum nesting depth of workflows. A deeper run fails.
    pub max_depth: u32,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self { parallel_steps: 256, folder: None, tools: false, max_depth: 8 }
    }
}
