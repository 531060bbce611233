//! Configuration of the A2A server.

use std::time::Duration;

use rialto_a2a_codec::card::signature::Signer;
use rialto_http_client::address::Reach;
use rialto_http_server::stream_limits::StreamLimits;
use rialto_model::{agent::Agent, call::Caller};
use serde::{Deserialize, Serialize};

use crate::instance::Instance;

/// Configuration of the A2A server.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name of the agent; none is `rialto-<org>`.
    pub agent_name: Option<String>,
    /// Description of the agent; none is generated from the number of tools.
    pub agent_description: Option<String>,
    /// Default skill for messages that name none.
    pub default_skill: Option<String>,
    /// Require a token, and declare that in the card.
    pub needs_token: bool,
    /// Maximum time that a blocking request waits. After that it returns the task in its current state.
    pub wait: Duration,
    /// Timeout of a task.
    pub task_timeout: Duration,
    /// Allow push notifications to private and loopback addresses.
    pub push_private: bool,
    /// Signer of cards.
    pub signer: Option<Signer>,
    /// Deduplicate messages: a repeated message id returns the task that the first one created.
    pub once_per_message: bool,
    /// Installation whose marker is added to cards.
    pub instance: Option<Instance>,
    /// Limits on open streams per caller.
    pub streams: StreamLimits,
    /// Skills in cards for callers without a token.
    pub public_skills: PublicSkills,
}

/// Skills in cards for callers without a token. Callers with one see the skills that they may discover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PublicSkills {
    /// Tools, functions, workflows and pipelines that are deployed here.
    #[default]
    Deployed,
    /// Also the skills of registered agents.
    All,
    /// No skills.
    None,
}

// === impl Config ===

impl Config {
    pub(crate) const fn push_reach(&self) -> Reach {
        if self.push_private { Reach::Private } else { Reach::Public }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            agent_name: None,
            agent_description: None,
            default_skill: None,
            needs_token: true,
            wait: Duration::from_secs(120),
            task_timeout: Duration::from_secs(3600),
            push_private: false,
            signer: None,
            once_per_message: true,
            instance: None,
            streams: StreamLimits::default(),
            public_skills: PublicSkills::default(),
        }
    }
}

// === impl PublicSkills ===

impl PublicSkills {
    /// True when a card lists the skills of this row for this caller, subject to policy.
    pub(crate) fn include(self, caller: &Caller, agent: &Agent) -> bool {
        match self {
            _ if !caller.is_stranger() => true,
            Self::Deployed => !agent.backing.is_agent(),
            Self::All => true,
            Self::None => false,
        }
    }
}
