//! What is to be deployed, as a program describes it over the network: in the words of the configuration, without its files.

use rialto_engine::registry::Deployment;
use rialto_model::{
    failure::{Failure, FailureKind},
    ids::Scope,
};
use serde::Deserialize;
use serde_json::Value;

use crate::config::deployed::{Function, McpServer, Wanted};

/// Something to be deployed.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Described {
    Mcp(McpServer),
    Function(Function),
}

/// What is to be deployed in a project.
pub(crate) fn read(text: &str, scope: &Scope) -> Result<Deployment, Failure> {
    let invalid = |message: String| Failure::new(FailureKind::Invalid, message);
    let described: Described = serde_json::from_str(text).map_err(|error| invalid(error.to_string()))?;
    described.deployment(scope).map_err(invalid)
}

// === impl Described ===

impl Described {
    fn deployment(mut self, scope: &Scope) -> Result<Deployment, String> {
        let way = match &mut self {
            Self::Mcp(server) => &mut server.way,
            Self::Function(function) => &mut function.way,
        };
        if way.org.is_some() || way.project.is_some() {
            return Err("the org and the project are the caller's; the address selects others".to_owned());
        }
        way.org = Some(scope.org.to_string());
        way.project = Some(scope.project.to_string());
        if let Self::Function(function) = &self {
            let names_file = |schema: &Option<Value>| schema.as_ref().is_some_and(Value::is_string);
            if names_file(&function.input_schema) || names_file(&function.output_schema) {
                return Err("a schema is given as an object here, not as a file of this machine".to_owned());
            }
        }
        let made = match &self {
            Self::Mcp(server) => Wanted::Server(server).deployment(),
            Self::Function(function) => Wanted::Function(function).deployment(),
        };
        made.map_err(|(key, reason)| format!("{key}: {reason}"))
    }
}
