//! `[a2a]`: the A2A server, its agent card and its skills.

use std::{path::PathBuf, time::Duration};

use rialto_a2a::server::PublicSkills;
use rialto_http_server::stream_limits::StreamLimits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::commands::keys;

/// A2A server and client.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct A2aConfig {
    /// Offer all skills as an A2A agent.
    pub(crate) enabled: bool,
    /// Name of that agent (default: `rialto-<org>`).
    pub(crate) agent_name: Option<String>,
    /// Description of that agent (default: the number of tools).
    pub(crate) agent_description: Option<String>,
    /// Skill for messages that name none (default: the only skill, if there is one).
    pub(crate) default_skill: Option<String>,
    /// Maximum time that a caller waits for a response, in seconds. After it the current task is returned.
    pub(crate) wait_secs: u64,
    /// Maximum duration of a task, in seconds.
    pub(crate) task_timeout_secs: u64,
    /// Allow push notifications to private and loopback addresses.
    pub(crate) push_private: bool,
    /// Deduplicate messages: a message with a known `messageId` of the same caller is answered with the existing task. Without it,
    /// each message starts a task.
    pub(crate) once_per_message: bool,
    /// Skills on the public card for callers without a token: `deployed` lists tools, functions, workflows and pipelines, `all` also
    /// registered agents, `none` no skill. Callers with a token see the skills they may discover.
    #[schemars(with = "PublicSkillsName")]
    pub(crate) public_skills: PublicSkills,
    /// Default time that `invoke_a2a` waits for an agent, in seconds.
    pub(crate) default_timeout: u64,
    /// Default agent of `invoke_a2a`: its URL or, for `rialto mcp`, a card file.
    pub(crate) default_agent_card_url: Option<String>,
    /// Private key that signs Rialto's agent cards: a PEM file, created by `rialto keys create`. The public key is at
    /// `/.well-known/jwks.json`.
    pub(crate) signing_key: Option<PathBuf>,
    /// PEM or JWK files with trusted keys of agent cards. If there are any, a card with an invalid signature is rejected.
    pub(crate) card_keys: Vec<PathBuf>,
}

/// Names of [`PublicSkills`], for the schema.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
enum PublicSkillsName {
    Deployed,
    All,
    None,
}

// === impl A2aConfig ===

impl Default for A2aConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            agent_name: None,
            agent_description: None,
            default_skill: None,
            wait_secs: 120,
            task_timeout_secs: 3600,
            push_private: false,
            once_per_message: true,
            public_skills: PublicSkills::default(),
            default_timeout: 120,
            default_agent_card_url: None,
            signing_key: None,
            card_keys: Vec::new(),
        }
    }
}

impl A2aConfig {
    /// Configuration of the A2A server.
    pub(crate) fn server_config(&self, needs_token: bool) -> Result<rialto_a2a::server::Config, String> {
        let signer = self.signing_key.as_deref().map(keys::read_signer).transpose()?;
        Ok(rialto_a2a::server::Config {
            signer,
            agent_name: self.agent_name.clone(),
            agent_description: self.agent_description.clone(),
            default_skill: self.default_skill.clone(),
            needs_token,
            wait: Duration::from_secs(self.wait_secs),
            task_timeout: Duration::from_secs(self.task_timeout_secs),
            push_private: self.push_private,
            once_per_message: self.once_per_message,
            instance: None,
            public_skills: self.public_skills,
            streams: StreamLimits::default(),
        })
    }
}
