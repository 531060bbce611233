//! `[[agents.local]]`: coding agents on this machine, as a file says them.

use rialto_model::backing::{self, BackingTransport, is_name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Way;

/// A coding agent that is started on this machine and speaks the Agent Client Protocol: Gemini CLI, Claude Code's adapter,
/// Codex, Goose, …
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LocalAgent {
    /// Its name: letters, digits, `-` and `_`.
    pub(crate) name: String,
    /// What it is, for whoever decides whether to ask it.
    pub(crate) description: String,
    /// What it is good at. Every agent has the skill `prompt` beside these: it does what it is told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) skills: Vec<LocalSkill>,
    /// What becomes of its wish to use a tool that it asks about: `ask` has the task wait until somebody has approved it,
    /// `allow` lets it, `deny` does not.
    pub(crate) permission: PermissionName,
    /// Which files below its folder (`cwd`) it may have from us: `none` (it uses its own means), `read` or `write`.
    pub(crate) allow_files: FilesName,
    /// How it is started. It works in the folder `cwd`.
    #[serde(flatten)]
    pub(crate) way: Way,
}

/// Something a coding agent is good at.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LocalSkill {
    /// Its id: letters, digits, `-` and `_`.
    pub(crate) id: String,
    /// What it does, for whoever decides whether to ask for it.
    pub(crate) description: String,
    /// Words to find it by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tags: Vec<String>,
    /// What the agent is told before what the caller says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instructions: Option<String>,
}

/// What becomes of an agent's wish to use a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PermissionName {
    /// The task waits until somebody has approved it.
    #[default]
    Ask,
    /// It may.
    Allow,
    /// It may not.
    Deny,
}

/// Which files an agent may have from us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FilesName {
    /// None.
    #[default]
    None,
    /// It may read them.
    Read,
    /// It may read and write them.
    Write,
}

// === impl LocalAgent ===

impl LocalAgent {
    pub(super) fn made(
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
                FilesName::None => backing::FileAccess::None,
                FilesName::Read => backing::FileAccess::Read,
                FilesName::Write => backing::FileAccess::Write,
            },
        })
    }
}
