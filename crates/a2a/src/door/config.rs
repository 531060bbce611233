//! What can be set about the A2A door.

use std::time::Duration;

use rialto_a2a_wire::card::signature::Signer;
use rialto_edge::{address::Reach, streams::StreamLimits};
use rialto_model::{agent::Agent, call::Caller};
use serde::{Deserialize, Serialize};

use crate::instance::Instance;

/// How this server shows itself as an A2A agent.
#[derive(Clone, Debug)]
pub struct Config {
    /// The agent's name; none is `rialto-<org>`.
    pub agent_name: Option<String>,
    /// What it says of itself; none counts its tools.
    pub agent_description: Option<String>,
    /// The skill that a message goes to which names none.
    pub default_skill: Option<String>,
    /// Whether callers need a token, which the card then says.
    pub needs_token: bool,
    /// How long a caller waits for the answer at most. After that it gets the task as it stands.
    pub wait: Duration,
    /// How long a task may take.
    pub task_timeout: Duration,
    /// Whether push notifications may go to private and loopback addresses.
    pub push_private: bool,
    /// What cards are signed with.
    pub signer: Option<Signer>,
    /// Whether a message that comes again, under the same id, is answered with the task that it began before.
    pub once_per_message: bool,
    /// The installation whose cards these are, which they are marked with.
    pub instance: Option<Instance>,
    /// How many streams each caller may have open.
    pub streams: StreamLimits,
    /// The skills that cards show to callers without a token.
    pub public_skills: PublicSkills,
}

/// The skills that cards show to callers without a token. Callers with one see what they may discover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PublicSkills {
    /// Those of tools, functions, workflows and pipelines that are deployed here.
    #[default]
    Deployed,
    /// Those of registered agents too.
    All,
    /// None.
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
    /// Whether a card shows the skills of this row to this caller, as far as policy lets it.
    pub(crate) fn include(self, caller: &Caller, agent: &Agent) -> bool {
        match self {
            _ if !caller.is_stranger() => true,
            Self::Deployed => !agent.backing.is_agent(),
            Self::All => true,
            Self::None => false,
        }
    }
}
