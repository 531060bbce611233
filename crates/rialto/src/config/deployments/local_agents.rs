//! `[[agents.local]]`: coding agents on this machine.

use rialto_model::backing::{self, BackingTransport, is_name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TransportConfig;

/// Coding agent that is started on this machine and speaks the Agent Client Protocol: Gemini CLI, Claude Code's adapter, Codex,
/// Goose, …
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LocalAgentConfig {
    /// Name: letters, digits, `-` and `_`.
    pub(crate) name: String,
    /// Description, for models and users that select agents.
    pub(crate) description: String,
    /// Skills, beside `prompt`, which every agent has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) skills: Vec<LocalSkillConfig>,
    /// Permission for tools that the agent asks to use: `ask` waits for approval, `allow` permits, `deny` denies.
    pub(crate) permission: PermissionName,
    /// Access to files below its folder (`cwd`) through Rialto: `none` (the agent uses its own tools), `read` or `write`.
    pub(crate) allow_files: FileAccessName,
    /// Command that starts it, in the folder `cwd`.
    #[serde(flatten)]
    pub(crate) way: TransportConfig,
}

/// Skill of a coding agent.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LocalSkillConfig {
    /// Id: letters, digits, `-` and `_`.
    pub(crate) id: String,
    /// Description, for models and users that select skills.
    pub(crate) description: String,
    /// Tags for search.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tags: Vec<String>,
    /// Instructions that precede the caller's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instructions: Option<String>,
}

/// Permission for tools that an agent asks to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PermissionName {
    /// Wait for approval.
    #[default]
    Ask,
    /// Permit.
    Allow,
    /// Deny.
    Deny,
}

/// Access to files through Rialto.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FileAccessName {
    /// No access.
    #[default]
    None,
    /// Read files.
    Read,
    /// Read and write files.
    Write,
}

// === impl LocalAgentConfig ===

impl LocalAgentConfig {
    pub(super) fn to_deployment(
        &self,
        via: BackingTransport,
    ) -> Result<backing::CodingAgentBacking, (String, String)> {
        if matches!(via, BackingTransport::Http(_)) {
            let reason = "a coding agent is started by a `command`; one at an address is added with `rialto agents add URL`";
            return Err(("url".to_owned(), reason.to_owned()));
        }
        let mut skills: Vec<backing::CodingAgentSkill> = Vec::new();
        for (at, skill) in self.skills.iter().enumerate() {
            let wrong = |reason: String| (format!("skills[{at}].id"), reason);
            if !is_name(&skill.id) {
                return Err(wrong(format!("\"{}\" must be letters, digits, `-` and `_`", skill.id)));
            }
            if skill.id == backing::PROMPT || skills.iter().any(|other| other.id == skill.id) {
                return Err(wrong(format!("it has a skill \"{}\" already", skill.id)));
            }
            skills.push(backing::CodingAgentSkill {
                id: skill.id.clone(),
                description: skill.description.clone(),
                tags: skill.tags.clone(),
                instructions: skill.instructions.clone(),
            });
        }
        Ok(backing::CodingAgentBacking {
            name: self.name.clone(),
            description: self.description.clone(),
            via,
            skills,
            permission: match self.permission {
                PermissionName::Ask => backing::ToolPermission::Ask,
                PermissionName::Allow => backing::ToolPermission::Allow,
                PermissionName::Deny => backing::ToolPermission::Deny,
            },
            files: match self.allow_files {
                FileAccessName::None => backing::FileAccess::None,
                FileAccessName::Read => backing::FileAccess::Read,
                FileAccessName::Write => backing::FileAccess::Write,
            },
        })
    }
}
