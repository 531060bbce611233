//! Backings of registry rows: MCP servers, functions, workflows, and coding agents on this machine.
//!
//! Each is a row of the registry like an agent, so names, policies, health, limits and the record of calls hold for it
//! without a second word. The row's backing says how its work is done; its card is made from what its tools say.

mod cards;
mod via;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{card::Card, flow::FLOWS, json::Json};

pub use self::{
    cards::{card, skill},
    via::{BackingEndpoint, BackingTransport, NodePlacement, ProcessCommand, SettingPiece, TransportSetting},
};

/// Backend of a registry row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backing {
    /// A remote A2A agent.
    #[default]
    A2a,
    /// An MCP server; each of its tools is a skill.
    Mcp(Arc<McpServerBacking>),
    /// A function, which is the one skill.
    Function(Arc<FunctionBacking>),
    /// The workflows and pipelines of a project; each that is published is a skill.
    Flow(Arc<WorkflowsBacking>),
    /// A coding agent that is started on this machine.
    Acp(Arc<CodingAgentBacking>),
}

/// An MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpServerBacking {
    /// Its name, unique in its project.
    pub name: String,
    /// Transport.
    pub via: BackingTransport,
    /// Agent or skill that answers the server's sampling requests; none declines them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<String>,
}

/// A function: arguments in, result out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FunctionBacking {
    /// Its name, unique in its project.
    pub name: String,
    /// Description.
    #[serde(default)]
    pub description: String,
    /// Transport.
    pub via: BackingTransport,
    /// JSON Schema of its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Json>,
    /// JSON Schema that its result must fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Json>,
    /// True if calling it twice does no more than calling it once.
    #[serde(default)]
    pub idempotent: bool,
    /// Timeout in milliseconds.
    pub timeout_ms: u64,
}

/// Published workflows and pipelines of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowsBacking {
    /// The skills.
    pub skills: Vec<WorkflowSkill>,
}

/// One workflow or pipeline, as a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowSkill {
    /// `orchestration:<name>` or `pipeline:<name>`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Description.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of what it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Json>,
}

/// A coding agent on this machine, which speaks the Agent Client Protocol on stdin and stdout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CodingAgentBacking {
    /// Its name, unique in its project.
    pub name: String,
    /// Description.
    #[serde(default)]
    pub description: String,
    /// Command that starts it.
    pub via: BackingTransport,
    /// Skills beside free prompts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<CodingAgentSkill>,
    /// Answer to its requests to use a tool.
    #[serde(default)]
    pub permission: ToolPermission,
    /// Access to files below its folder.
    #[serde(default)]
    pub files: FileAccess,
}

/// Something a coding agent on this machine is good at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CodingAgentSkill {
    /// Its id.
    pub id: String,
    /// Description.
    #[serde(default)]
    pub description: String,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Instructions sent before the caller's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// Answer to an agent's request to use a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolPermission {
    /// The task waits until somebody has approved it.
    #[default]
    Ask,
    /// It may.
    Allow,
    /// It may not.
    Deny,
}

/// Access to files that Rialto gives an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileAccess {
    /// None: it uses its own means.
    #[default]
    None,
    /// It may read them.
    Read,
    /// It may read and write them.
    Write,
}

/// The skill that every coding agent has.
pub const PROMPT: &str = "prompt";

// === impl Backing ===

impl Backing {
    /// Its address in the registry; none for an agent, which has one of its own.
    pub fn url(&self) -> Option<String> {
        match self {
            Self::A2a => None,
            Self::Mcp(server) => Some(format!("mcp:{}", server.name)),
            Self::Function(function) => Some(format!("function:{}", function.name)),
            Self::Flow(_) => Some(format!("flow:{FLOWS}")),
            Self::Acp(agent) => Some(format!("acp:{}", agent.name)),
        }
    }

    /// The name it was given; none for an agent, whose card has one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::A2a => None,
            Self::Mcp(server) => Some(&server.name),
            Self::Function(function) => Some(&function.name),
            Self::Flow(_) => Some(FLOWS),
            Self::Acp(agent) => Some(&agent.name),
        }
    }

    /// Transport; none for an agent, whose card names it, and for workflows, which run here.
    pub fn via(&self) -> Option<&BackingTransport> {
        match self {
            Self::A2a | Self::Flow(_) => None,
            Self::Mcp(server) => Some(&server.via),
            Self::Function(function) => Some(&function.via),
            Self::Acp(agent) => Some(&agent.via),
        }
    }

    /// Nodes that may run its program; none where every node runs a copy of its own, and for what is no program.
    pub fn placement(&self) -> Option<&NodePlacement> {
        match self.via()? {
            BackingTransport::Command(command) if !command.placement.is_anywhere() => {
                Some(&command.placement)
            }
            BackingTransport::Command(_) | BackingTransport::Http(_) => None,
        }
    }

    /// Returns whether it is a remote agent.
    pub const fn is_agent(&self) -> bool {
        matches!(self, Self::A2a)
    }

    /// Returns whether it remembers what was said before in the same conversation.
    pub const fn keeps_conversations(&self) -> bool {
        matches!(self, Self::A2a | Self::Acp(_))
    }

    /// Returns whether it gives its tasks names by which it can be asked about them later.
    pub const fn names_tasks(&self) -> bool {
        matches!(self, Self::A2a | Self::Flow(_))
    }

    /// Returns whether the same call again, under the same task, begins nothing new.
    pub const fn begins_once(&self) -> bool {
        matches!(self, Self::Flow(_))
    }

    /// Card made of the deployed definition, if that lists the skills; no backend has to be asked then.
    pub fn own_card(&self) -> Option<Card> {
        match self {
            Self::A2a | Self::Mcp(_) => None,
            Self::Function(function) => Some(function.card()),
            Self::Flow(flows) => Some(flows.card()),
            Self::Acp(agent) => Some(agent.card()),
        }
    }

    /// Its kind, for listings.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::A2a => "agent",
            Self::Mcp(_) => "mcp",
            Self::Function(_) => "function",
            Self::Flow(_) => "flow",
            Self::Acp(_) => "acp",
        }
    }

    /// Card until the backend has answered.
    pub fn first_card(&self) -> Option<Card> {
        match self {
            Self::A2a => None,
            Self::Mcp(server) => Some(card(&server.name, "", None, Vec::new())),
            Self::Function(_) | Self::Flow(_) | Self::Acp(_) => self.own_card(),
        }
    }
}

/// Returns whether something deployed can be called this: it stands in addresses and in lists of tools as it is.
pub fn is_name(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    name.len() <= 64 && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_comes_back_as_it_was() {
        let source = r#"{"mcp":{"name":"w","via":{"http":{"url":"https://w.example/mcp","headers":{"A":{"env":"T"},"B":"x"}}}}}"#;
        let backing: Backing = serde_json::from_str(source).unwrap();
        assert_eq!(serde_json::to_string(&backing).unwrap(), source);
        assert_eq!(backing.url().as_deref(), Some("mcp:w"));
    }

    #[test]
    fn an_idempotent_function_says_so_on_its_skill() {
        let function = FunctionBacking {
            name: "add".into(),
            description: "Adds".into(),
            via: BackingTransport::Command(ProcessCommand::default()),
            input_schema: Some(Json::parse(r#"{"type":"object"}"#).unwrap()),
            output_schema: Some(Json::parse(r#"{"type":"number"}"#).unwrap()),
            idempotent: true,
            timeout_ms: 1,
        };
        let card = function.card();
        assert!(card.skills[0].is_repeatable());
        let other = FunctionBacking { idempotent: false, ..function };
        assert!(!other.card().skills[0].is_repeatable());
    }

    #[test]
    fn a_name_stands_anywhere_as_it_is() {
        for good in ["weather-lookup", "a", "A_1"] {
            assert!(is_name(good), "{good}");
        }
        for wrong in ["", "-a", "a.b", "a/b", "a b", &"a".repeat(65)] {
            assert!(!is_name(wrong), "{wrong}");
        }
    }
}
