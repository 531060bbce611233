//! `[a2a]`: the agent that stands for everything that can be called here.

use std::{path::PathBuf, time::Duration};

use rialto_a2a::server::PublicSkills;
use rialto_edge::stream_limits::StreamLimits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::commands::keys;

/// The A2A side.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct A2a {
    /// Whether everything that can be called here is offered as an A2A agent too.
    pub(crate) enabled: bool,
    /// That agent's name; `rialto-<org>` when it is not set.
    pub(crate) agent_name: Option<String>,
    /// That agent's description; when it is not set, it says how many tools there are.
    pub(crate) agent_description: Option<String>,
    /// The skill that a message goes to which names none. Without it, that is the only skill there is.
    pub(crate) default_skill: Option<String>,
    /// How long a caller waits for an answer at most, in seconds. After that it gets the task as it stands.
    pub(crate) wait_secs: u64,
    /// How long a task may take, in seconds.
    pub(crate) task_timeout_secs: u64,
    /// Whether push notifications may go to private and loopback addresses.
    pub(crate) push_private: bool,
    /// Whether a message that comes again, with the same `messageId` from the same caller, is answered with the task that it
    /// began before. Without it, clients that use an id more than once get a task each time.
    pub(crate) once_per_message: bool,
    /// The skills that the public card shows to callers without a token: `deployed` are those of tools, functions, workflows
    /// and pipelines, `all` are those of registered agents too, `none` shows none. Callers with a token see what they may
    /// discover.
    #[schemars(with = "PublicSkillsName")]
    pub(crate) public_skills: PublicSkills,
    /// How long `invoke_a2a` waits for an agent when its caller does not say, in seconds.
    pub(crate) default_timeout: u64,
    /// The agent that `invoke_a2a` calls when none is named: its URL or, for `rialto mcp`, a card file.
    pub(crate) default_agent_card_url: Option<String>,
    /// The private key that our own cards are signed with: a PEM file, made by `rialto keys create`. Its public half is at
    /// `/.well-known/jwks.json`.
    pub(crate) signing_key: Option<PathBuf>,
    /// PEM or JWK files with keys that agent cards may be signed with. When there are any, a card with a wrong
    /// signature is refused.
    pub(crate) card_keys: Vec<PathBuf>,
}

/// The names of [`PublicSkills`], for the schema.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
enum PublicSkillsName {
    Deployed,
    All,
    None,
}

// === impl A2a ===

impl Default for A2a {
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

impl A2a {
    /// What the A2A door is to know.
    pub(crate) fn door(&self, needs_token: bool) -> Result<rialto_a2a::server::Config, String> {
        let signer = self.signing_key.as_deref().map(keys::signer).transpose()?;
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
