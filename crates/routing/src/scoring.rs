//! Scores matching agents, to choose one.
//!
//! Thompson sampling: the learned success rate of an agent is a Beta distribution. One sample is drawn from it, and multiplied by how well
//! the agent matches, its health, its load and, if configured, its price. The highest product wins. An agent with few observations draws
//! high at times, so it is tried; one that is known to fail rarely does.

use rand::{Rng, SeedableRng, rngs::StdRng};
use rand_distr::Distribution;
use rialto_model::{
    agent::Health,
    routing::{BetaDistribution, SuccessRate},
};

/// Settings of the score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoringRules {
    /// Number of tasks from which the score of an agent is halved.
    pub soft_cap: u64,
    /// Number of tasks from which an agent gets no more.
    pub hard_cap: u64,
    /// Weight of prices: 0 is none, 1 means that half the price doubles the score.
    pub cost_weight: f64,
}

/// Agent that matches.
#[derive(Clone, Debug)]
pub struct ScoringCandidate {
    /// How well it matches, from 0 to 1.
    pub fit: f64,
    /// Its health.
    pub health: Health,
    /// Number of its active tasks.
    pub active: u64,
    /// Price of a task in cents, if it is known.
    pub cents: Option<f64>,
    /// Learned success rate for this type of work.
    pub posterior: SuccessRate,
    /// Reason why it cannot be chosen, whatever its score.
    pub excluded: Option<String>,
}

/// Score of a candidate, with its factors.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoredCandidate {
    /// Factor of its health.
    pub health_factor: f64,
    /// Factor of its load.
    pub load_factor: f64,
    /// Factor of its price.
    pub cost_factor: f64,
    /// Distribution of the sample.
    pub posterior: BetaDistribution,
    /// Sample and score, or the reason why there is none.
    pub outcome: Result<ThompsonSample, String>,
}

/// Sample and the resulting score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThompsonSample {
    /// Sampled success rate.
    pub value: f64,
    /// Product of all factors.
    pub score: f64,
}

// === impl ScoringRules ===

impl Default for ScoringRules {
    fn default() -> Self {
        Self { soft_cap: 5, hard_cap: 10, cost_weight: 0.0 }
    }
}

// === impl ScoredCandidate ===

impl ScoredCandidate {
    /// Score; none for an agent that cannot be chosen.
    pub fn score(&self) -> Option<f64> {
        self.outcome.as_ref().ok().map(|sample| sample.score)
    }
}

/// Scores all candidates, in their order. The same seed gives the same samples.
pub fn score_candidates(
    candidates: &[ScoringCandidate],
    rules: &ScoringRules,
    seed: u64,
) -> Vec<ScoredCandidate> {
    let mut random = StdRng::seed_from_u64(seed);
    let known = candidates.iter().filter_map(|candidate| candidate.cents);
    let cheapest = known.reduce(f64::min).unwrap_or(0.0);
    candidates.iter().map(|candidate| score_candidate(candidate, rules, cheapest, &mut random)).collect()
}

/// Indices by score, highest first, without those that cannot be chosen. Of equals, the first.
pub fn rank(scored: &[ScoredCandidate]) -> Vec<usize> {
    let scores = scored.iter().enumerate().filter_map(|(at, one)| Some((at, one.score()?)));
    let mut ranked: Vec<(usize, f64)> = scores.collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ranked.into_iter().map(|(at, _)| at).collect()
}

/// Factor of a health state; none if such an agent cannot be chosen.
pub const fn health_factor(health: Health) -> Option<f64> {
    match health {
        Health::Healthy => Some(1.0),
        Health::Unknown => Some(0.8),
        Health::Degraded => Some(0.5),
        Health::Unreachable => None,
    }
}

/// Sample of a learned success rate.
pub fn sample_posterior(posterior: BetaDistribution, random: &mut impl Rng) -> f64 {
    // Both are at least one, so there is such a distribution.
    rand_distr::Beta::new(posterior.alpha, posterior.beta).map_or(0.5, |beta| beta.sample(random))
}

/// Reward of a completed task: 1 if it was quick enough, and else the share of the time that it should have taken.
pub fn reward(took_secs: f64, target_secs: Option<f64>) -> f64 {
    match target_secs {
        Some(target) if target > 0.0 && took_secs > target => target / took_secs,
        _ => 1.0,
    }
}

fn score_candidate(
    candidate: &ScoringCandidate,
    rules: &ScoringRules,
    cheapest: f64,
    random: &mut StdRng,
) -> ScoredCandidate {
    let health = health_factor(candidate.health);
    let load_factor = if candidate.active >= rules.soft_cap { 0.5 } else { 1.0 };
    let cost_factor = match candidate.cents {
        Some(cents) if rules.cost_weight > 0.0 => ((cheapest + 1.0) / (cents + 1.0)).powf(rules.cost_weight),
        _ => 1.0,
    };
    let posterior = candidate.posterior.beta();
    let outcome = match (&candidate.excluded, health) {
        (Some(why), _) => Err(why.clone()),
        (None, None) => Err("it is unreachable".to_owned()),
        (None, Some(_)) if candidate.active >= rules.hard_cap => {
            Err(describe_full(candidate.active, rules.hard_cap))
        }
        (None, Some(health)) => {
            let value = sample_posterior(posterior, random);
            Ok(ThompsonSample { value, score: candidate.fit * health * load_factor * cost_factor * value })
        }
    };
    ScoredCandidate { health_factor: health.unwrap_or(0.0), load_factor, cost_factor, posterior, outcome }
}

/// Reason for an agent with too many tasks.
pub fn describe_full(active: u64, hard_cap: u64) -> String {
    format!("it has {active} tasks, and {hard_cap} are the most")
}

#[cfg(test)]
mod tests;
