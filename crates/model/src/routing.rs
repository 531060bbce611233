//! Choosing who does some work: what is wanted, who was considered, and what became of it.
//!
//! A [`Dispatch`] is the whole record of one choice. It is written down with the choice, so that anybody can read later why
//! this agent was asked and not another. What agents are worth is learned from how their tasks end: a [`SlotAssignment`] is one task
//! given to one agent, and its reward moves the [`SuccessRate`] of that agent for that type of work.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    agent::Health,
    call::CallerId,
    ids::{AgentId, DispatchId, OrgId, Scope, SkillId, TaskId},
    task::TaskState,
};

/// The longest description, in bytes; what is behind it is not looked at.
pub const MAX_DESCRIPTION_BYTES: usize = 4_000;

/// The longest name of a type of work or of a required skill, in bytes.
pub const MAX_NAME_BYTES: usize = 200;

/// Maximum number of required skills.
pub const MAX_REQUIRED_SKILLS: usize = 32;

/// What is to be done, in the words of whoever wants it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "WorkRow")]
pub struct WorkDescription {
    /// The type of work (`qa`): agents are remembered by how well they do it.
    #[serde(alias = "work_type")]
    pub work_type: String,
    /// What is to be done.
    pub description: String,
    /// What the agent must have, each by the id, the name or a tag of one of its skills.
    #[serde(alias = "required_skills")]
    pub required_skills: Vec<String>,
    /// Media types that the agent must take (`image/png`); those of files that are sent count too.
    #[serde(alias = "input_modes", skip_serializing_if = "Vec::is_empty")]
    pub input_modes: Vec<String>,
}

/// Standard deviations that count as a change: about one in some thousand agents that never change is taken for one that did.
const SURPRISE: f64 = 4.0;

/// Observed success of an agent at one type of work.
///
/// Everything counts as long as the agent stays as it was. What it did lately is known apart, with older news losing weight; once that
/// does not fit the rest any more, the agent has changed, and only what is recent counts from then on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SuccessRate {
    /// Successes since the agent last changed.
    pub wins: f64,
    /// Failures since then.
    pub losses: f64,
    /// Recent successes, discounted.
    #[serde(default)]
    pub recent_wins: f64,
    /// Recent failures, discounted.
    #[serde(default)]
    pub recent_losses: f64,
    /// Number of observations.
    pub observed: u64,
}

/// Stored facts about an agent that a routing decision needs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RoutingStats {
    /// Success at this type of work.
    pub posterior: SuccessRate,
    /// Number of active tasks, those with a reserved slot included.
    pub active: u64,
}

/// Query for the routing facts of agents.
#[derive(Clone, Debug)]
pub struct RoutingStatsQuery {
    /// Org.
    pub org: OrgId,
    /// For which type of work.
    pub work_type: String,
    /// Of which agents.
    pub agents: Vec<AgentId>,
    /// Window of active tasks.
    pub window: ActivityWindow,
}

/// Window that decides which tasks count as active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivityWindow {
    /// That moment.
    pub now: Timestamp,
    /// A task without events since then is abandoned.
    pub since: Timestamp,
}

/// One task given to one agent. Until its end is known it takes one of the agent's slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotAssignment {
    /// The task, which may not be written down yet.
    pub task: TaskId,
    /// The agent.
    pub agent: AgentId,
    /// A slot whose task is not there by then is free again: its process is gone.
    pub until: Timestamp,
}

/// A slot that is wanted, with the record of the decision that wants it.
#[derive(Clone, Debug)]
pub struct SlotReservation {
    /// The record. It is written with the slot, or replaces the one written with the slot before.
    pub dispatch: Dispatch,
    /// The slot.
    pub play: SlotAssignment,
    /// Maximum number of tasks of the agent.
    pub hard_cap: u64,
    /// Window of active tasks.
    pub window: ActivityWindow,
}

/// How a play ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "PlayOutcome")]
pub enum AssignmentOutcome {
    /// The task was completed.
    Completed,
    /// It failed.
    Failed,
    /// The agent would not do it.
    Rejected,
    /// It was called off: that says nothing about the agent.
    Canceled,
    /// The agent could not be reached, and surely has heard nothing.
    Unreachable,
    /// It was refused here, before anything left: that says nothing about the agent.
    Refused,
}

/// The end of a play.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AssignmentEnd {
    /// Outcome.
    pub outcome: AssignmentOutcome,
    /// Reward from 0 to 1; none if the outcome says nothing about the agent.
    pub reward: Option<f64>,
    /// Weight that older observations keep.
    pub discount: f64,
    /// When.
    pub at: Timestamp,
}

/// A play whose task has ended without anybody saying so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedAssignment {
    /// The task.
    pub task: TaskId,
    /// Outcome.
    pub state: TaskState,
    /// When it began.
    pub begun_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
}

/// One choice: who was considered, with what result, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Dispatch {
    /// Its id.
    pub id: DispatchId,
    /// Where.
    pub scope: Scope,
    /// For whom.
    pub caller: CallerId,
    /// When.
    pub at: Timestamp,
    /// What the draws were made from: the same seed and the same standings give the same choice.
    pub seed: u64,
    /// What is to be done.
    pub work: WorkDescription,
    /// Who was considered, best first; those that fell out come last.
    pub candidates: Vec<DispatchCandidate>,
    /// How many more were considered that are not written down.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
    /// Whom it was given to, in order.
    pub attempts: Vec<AttemptRecord>,
}

/// One agent that was considered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DispatchCandidate")]
pub struct DispatchCandidate {
    /// The agent.
    pub agent_id: AgentId,
    /// What it is called.
    pub agent: String,
    /// The skill that fits best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<SkillId>,
    /// How well it fits, from 0 to 1.
    pub capability_score: f64,
    /// Why.
    pub reasons: Vec<String>,
    /// How it is doing.
    pub health: Health,
    /// What that counts.
    pub health_factor: f64,
    /// How many tasks it has.
    pub active_tasks: u64,
    /// What that counts.
    pub load_factor: f64,
    /// What its price counts; 1 where prices do not count.
    pub cost_factor: f64,
    /// What is known about how well it does this type of work.
    pub posterior: BetaDistribution,
    /// One draw from that; none when it fell out before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw: Option<f64>,
    /// The product of all of them: the highest wins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// What was decided about it.
    pub verdict: CandidateVerdict,
}

/// A Beta distribution, and how often it was observed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Beta")]
pub struct BetaDistribution {
    /// One, and what went well.
    pub alpha: f64,
    /// One, and what did not.
    pub beta: f64,
    /// How often it was observed.
    pub observed: u64,
}

/// What was decided about a candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "CandidateVerdict")]
pub enum CandidateVerdict {
    /// It has the highest score.
    Chosen,
    /// Another has a higher one.
    Passed,
    /// It cannot be chosen, and this is why.
    Out(String),
}

/// One agent that was given the work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DispatchAttempt")]
pub struct AttemptRecord {
    /// The agent.
    pub agent_id: AgentId,
    /// What it is called.
    pub agent: String,
    /// The task it was given.
    pub task_id: TaskId,
    /// How that ended, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<AssignmentOutcome>,
    /// Why it was left for the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_left: Option<String>,
}

/// Filter for a list of dispatches, newest first.
#[derive(Clone, Debug, Default)]
pub struct DispatchFilter {
    /// Only this caller's.
    pub caller: Option<CallerId>,
    /// Only of this type of work.
    pub work_type: Option<String>,
    /// Only the one with this id, or the one that made this task.
    pub id: Option<String>,
    /// Only those older than this one: the last id of the page before.
    pub before: Option<DispatchId>,
    /// Maximum number of rows.
    pub limit: usize,
}

// === impl WorkDescription ===

impl WorkDescription {
    /// Returns whether it says anything that an agent could be chosen by.
    pub fn is_empty(&self) -> bool {
        let is_blank = |text: &str| text.trim().is_empty();
        is_blank(&self.work_type)
            && is_blank(&self.description)
            && self.required_skills.iter().all(|item| is_blank(item))
    }

    /// Checks the members; the error names the wrong one.
    pub fn check(&self) -> Result<(), String> {
        if self.is_empty() {
            return Err("say what is to be done: a work type, a description or required skills".to_owned());
        }
        if self.work_type.len() > MAX_NAME_BYTES {
            return Err(format!("workType: expected at most {MAX_NAME_BYTES} bytes"));
        }
        if self.description.len() > MAX_DESCRIPTION_BYTES {
            return Err(format!("description: expected at most {MAX_DESCRIPTION_BYTES} bytes"));
        }
        if self.required_skills.len() > MAX_REQUIRED_SKILLS {
            return Err(format!("requiredSkills: expected at most {MAX_REQUIRED_SKILLS}"));
        }
        if self.required_skills.iter().any(|item| item.len() > MAX_NAME_BYTES) {
            return Err(format!("requiredSkills: expected at most {MAX_NAME_BYTES} bytes each"));
        }
        if self.input_modes.len() > MAX_REQUIRED_SKILLS {
            return Err(format!("inputModes: expected at most {MAX_REQUIRED_SKILLS}"));
        }
        let is_kind = |kind: &String| kind.len() <= MAX_NAME_BYTES && !kind.trim().is_empty();
        if !self.input_modes.iter().all(is_kind) {
            return Err(format!(
                "inputModes: expected media types like image/png, of at most {MAX_NAME_BYTES} bytes each"
            ));
        }
        Ok(())
    }
}

// === impl SuccessRate ===

impl SuccessRate {
    /// The distribution: everything is possible until something was observed.
    pub fn beta(&self) -> BetaDistribution {
        BetaDistribution {
            alpha: 1.0 + self.wins.max(0.0),
            beta: 1.0 + self.losses.max(0.0),
            observed: self.observed,
        }
    }

    /// Adds one observation; recent ones lose `1 - discount` of their weight with each.
    #[must_use]
    pub fn after(self, reward: f64, discount: f64) -> Self {
        let reward = reward.clamp(0.0, 1.0);
        let known = Self {
            wins: self.wins + reward,
            losses: self.losses + (1.0 - reward),
            recent_wins: self.recent_wins * discount + reward,
            recent_losses: self.recent_losses * discount + (1.0 - reward),
            observed: self.observed + 1,
        };
        if known.has_changed() {
            return Self { wins: known.recent_wins, losses: known.recent_losses, ..known };
        }
        known
    }

    /// Returns whether what the agent did lately would be too much of a surprise, were it still as it was.
    fn has_changed(&self) -> bool {
        let (all, recent) = (self.wins + self.losses, self.recent_wins + self.recent_losses);
        if all < recent + 1.0 {
            // There is nothing older to compare with.
            return false;
        }
        let rate = (self.wins + 1.0) / (all + 2.0);
        let deviation = (rate * (1.0 - rate) / recent).sqrt();
        (self.recent_wins / recent - rate).abs() > SURPRISE * deviation
    }
}

// === impl AssignmentOutcome ===

impl AssignmentOutcome {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Canceled => "canceled",
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
        }
    }

    /// Outcome of a task in this state, if it has ended.
    pub const fn from_state(state: TaskState) -> Option<Self> {
        match state {
            TaskState::Completed => Some(Self::Completed),
            TaskState::Failed => Some(Self::Failed),
            TaskState::Rejected => Some(Self::Rejected),
            TaskState::Canceled => Some(Self::Canceled),
            TaskState::Submitted
            | TaskState::Working
            | TaskState::InputRequired
            | TaskState::AuthRequired => None,
        }
    }

    /// Returns whether it says something about the agent.
    pub const fn is_observed(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Rejected | Self::Unreachable => true,
            Self::Canceled | Self::Refused => false,
        }
    }
}

// === impl Dispatch ===

impl Dispatch {
    /// Agent that does the work: the last one that was asked.
    pub fn worker(&self) -> Option<&AttemptRecord> {
        self.attempts.last()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_says_nothing_is_refused() {
        assert!(WorkDescription::default().check().unwrap_err().contains("say what"));
        assert!(
            WorkDescription { description: " ".to_owned(), ..WorkDescription::default() }.check().is_err()
        );
        let work =
            WorkDescription { work_type: "q".repeat(MAX_NAME_BYTES + 1), ..WorkDescription::default() };
        assert!(work.check().unwrap_err().contains("workType"));
    }

    #[test]
    fn only_what_the_agent_did_is_observed() {
        let all = [
            AssignmentOutcome::Completed,
            AssignmentOutcome::Failed,
            AssignmentOutcome::Rejected,
            AssignmentOutcome::Canceled,
            AssignmentOutcome::Unreachable,
            AssignmentOutcome::Refused,
        ];
        let observed: Vec<_> = all.into_iter().filter(|outcome| outcome.is_observed()).collect();
        assert!(
            !observed.contains(&AssignmentOutcome::Canceled)
                && !observed.contains(&AssignmentOutcome::Refused)
        );
        assert_eq!(observed.len(), 4);
        for state in
            [TaskState::Submitted, TaskState::Working, TaskState::InputRequired, TaskState::AuthRequired]
        {
            assert_eq!(AssignmentOutcome::from_state(state), None);
        }
    }

    fn observed(known: SuccessRate, rewards: impl IntoIterator<Item = f64>) -> SuccessRate {
        rewards.into_iter().fold(known, |known, reward| known.after(reward, 0.99))
    }

    /// Four of five go well, evenly.
    fn steady(count: usize) -> impl Iterator<Item = f64> {
        (0..count).map(|n| if n % 5 == 4 { 0.0 } else { 1.0 })
    }

    #[test]
    fn everything_counts_of_an_agent_that_stays_as_it_was() {
        let known = observed(SuccessRate::default(), steady(5_000));
        assert_eq!((known.wins, known.losses, known.observed), (4_000.0, 1_000.0, 5_000));
        assert!(known.recent_wins + known.recent_losses < 101.0);
    }

    #[test]
    fn what_was_is_forgotten_once_an_agent_has_changed() {
        let known = observed(SuccessRate::default(), steady(5_000));
        let changed = observed(known, [0.0; 40]);
        assert!(changed.wins + changed.losses < 140.0, "{changed:?}");
        assert_eq!(changed.observed, 5_040);
        let beta = changed.beta();
        assert!(beta.alpha / (beta.alpha + beta.beta) < 0.65, "{beta:?}");
        let rewards = steady(5_000).chain([0.0; 40]);
        let never = rewards.fold(SuccessRate::default(), |known, reward| known.after(reward, 1.0));
        assert!(never.wins > 3_999.0, "without a discount nothing is forgotten: {never:?}");
    }
}
