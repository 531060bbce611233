//! Weighs those who fit, and chooses one.
//!
//! Thompson sampling: what is known about an agent is a Beta distribution, one draw is made from it, and the draw is multiplied
//! by how well the agent fits, how it is doing, how much it has to do and, if that counts, what it costs. The highest product
//! wins. An agent that nobody knows much about draws high at times, so it is tried; one that is known to fail rarely does.

use rand::{Rng, SeedableRng, rngs::StdRng};
use rand_distr::Distribution;
use rialto_model::{
    agent::Health,
    routing::{BetaDistribution, SuccessRate},
};

/// What is weighed, and how much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// With so many tasks an agent counts half.
    pub soft_cap: u64,
    /// With so many tasks an agent gets no more.
    pub hard_cap: u64,
    /// How much prices count: 0 is not at all, 1 is that half the price counts double.
    pub cost_weight: f64,
}

/// One who fits.
#[derive(Clone, Debug)]
pub struct Entrant {
    /// How well, from 0 to 1.
    pub fit: f64,
    /// How it is doing.
    pub health: Health,
    /// How many tasks it has.
    pub active: u64,
    /// What a task costs there, in cents, if it says so.
    pub cents: Option<f64>,
    /// How well it does this type of work.
    pub posterior: SuccessRate,
    /// Why it cannot be chosen, whatever it is worth.
    pub barred: Option<String>,
}

/// What was found about one who fits.
#[derive(Clone, Debug, PartialEq)]
pub struct Weighed {
    /// What its health counts.
    pub health_factor: f64,
    /// What its load counts.
    pub load_factor: f64,
    /// What its price counts.
    pub cost_factor: f64,
    /// The distribution that was drawn from.
    pub posterior: BetaDistribution,
    /// The draw and the product, or why there is none.
    pub outcome: Result<Drawn, String>,
}

/// A draw and what became of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    /// The draw.
    pub draw: f64,
    /// The product of everything.
    pub score: f64,
}

// === impl Rules ===

impl Default for Rules {
    fn default() -> Self {
        Self { soft_cap: 5, hard_cap: 10, cost_weight: 0.0 }
    }
}

// === impl Weighed ===

impl Weighed {
    /// The product; nothing for one that cannot be chosen.
    pub fn score(&self) -> Option<f64> {
        self.outcome.as_ref().ok().map(|drawn| drawn.score)
    }
}

/// Weighs all of them, in their order. The same seed gives the same draws.
pub fn weigh(entrants: &[Entrant], rules: &Rules, seed: u64) -> Vec<Weighed> {
    let mut random = StdRng::seed_from_u64(seed);
    let known = entrants.iter().filter_map(|entrant| entrant.cents);
    let cheapest = known.reduce(f64::min).unwrap_or(0.0);
    entrants.iter().map(|entrant| weigh_one(entrant, rules, cheapest, &mut random)).collect()
}

/// Their places, the highest score first; those that cannot be chosen are not among them. Of equals, the first.
pub fn ranked(weighed: &[Weighed]) -> Vec<usize> {
    let scores = weighed.iter().enumerate().filter_map(|(at, one)| Some((at, one.score()?)));
    let mut ranked: Vec<(usize, f64)> = scores.collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ranked.into_iter().map(|(at, _)| at).collect()
}

/// What an agent's health counts; none says that it cannot be chosen.
pub const fn health_factor(health: Health) -> Option<f64> {
    match health {
        Health::Healthy => Some(1.0),
        Health::Unknown => Some(0.8),
        Health::Degraded => Some(0.5),
        Health::Unreachable => None,
    }
}

/// One draw from what is known.
pub fn draw(posterior: BetaDistribution, random: &mut impl Rng) -> f64 {
    // Both are at least one, so there is such a distribution.
    rand_distr::Beta::new(posterior.alpha, posterior.beta).map_or(0.5, |beta| beta.sample(random))
}

/// What a completed task is worth: all of it if it was quick enough, and else the share of time that it should have taken.
pub fn reward(took_secs: f64, target_secs: Option<f64>) -> f64 {
    match target_secs {
        Some(target) if target > 0.0 && took_secs > target => target / took_secs,
        _ => 1.0,
    }
}

fn weigh_one(entrant: &Entrant, rules: &Rules, cheapest: f64, random: &mut StdRng) -> Weighed {
    let health = health_factor(entrant.health);
    let load_factor = if entrant.active >= rules.soft_cap { 0.5 } else { 1.0 };
    let cost_factor = match entrant.cents {
        Some(cents) if rules.cost_weight > 0.0 => ((cheapest + 1.0) / (cents + 1.0)).powf(rules.cost_weight),
        _ => 1.0,
    };
    let posterior = entrant.posterior.beta();
    let outcome = match (&entrant.barred, health) {
        (Some(why), _) => Err(why.clone()),
        (None, None) => Err("it is unreachable".to_owned()),
        (None, Some(_)) if entrant.active >= rules.hard_cap => Err(full(entrant.active, rules.hard_cap)),
        (None, Some(health)) => {
            let draw = draw(posterior, random);
            Ok(Drawn { draw, score: entrant.fit * health * load_factor * cost_factor * draw })
        }
    };
    Weighed { health_factor: health.unwrap_or(0.0), load_factor, cost_factor, posterior, outcome }
}

/// Why an agent gets no more work.
pub fn full(active: u64, hard_cap: u64) -> String {
    format!("it has {active} tasks, and {hard_cap} are the most")
}

#[cfg(test)]
mod tests;
