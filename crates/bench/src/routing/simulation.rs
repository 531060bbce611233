//! Agents that succeed at given rates, and ways to choose among them.

use rand::{RngExt, SeedableRng, rngs::StdRng};
use rialto_model::{agent::Health, routing::SuccessRate};
use rialto_routing::scoring::{self, ScoringCandidate, ScoringRules};

/// Number of dispatches over which recovery is measured.
const WINDOW: usize = 50;

/// Share of the best possible rate that counts as recovered.
const RECOVERED: f64 = 0.9;

/// Exploration rate of the epsilon-greedy strategy.
const EPSILON: f64 = 0.1;

/// A way of choosing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    /// As Rialto does, with its default discount.
    Rialto,
    /// Thompson sampling without forgetting.
    Undiscounted,
    EpsilonGreedy,
    LeastLoaded,
    RoundRobin,
}

/// Number of agents and of dispatches.
#[derive(Clone, Copy)]
pub(super) struct Scenario {
    pub(super) agents: usize,
    pub(super) length: usize,
    pub(super) seed: u64,
    /// True if the best agent fails from the middle on.
    pub(super) turns: bool,
}

/// Result of a simulation.
pub(super) struct SimulationRun {
    /// Cumulative regret after each dispatch.
    regret: Vec<f32>,
    /// Number of dispatches until recovery.
    pub(super) recovery: Option<usize>,
}

/// Chooses, and remembers what it must.
struct StrategyState {
    way: Strategy,
    entrants: Vec<ScoringCandidate>,
    /// End of each task in progress.
    under_way: Vec<Vec<usize>>,
    random: StdRng,
}

// === impl Strategy ===

impl Strategy {
    pub(super) const ALL: [Self; 5] =
        [Self::Rialto, Self::Undiscounted, Self::EpsilonGreedy, Self::LeastLoaded, Self::RoundRobin];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Rialto => "Rialto",
            Self::Undiscounted => "Rialto, discount = 1",
            Self::EpsilonGreedy => "epsilon-greedy",
            Self::LeastLoaded => "least loaded",
            Self::RoundRobin => "round robin",
        }
    }
}

// === impl Scenario ===

impl Scenario {
    /// Simulates one strategy. Agents and random numbers are equal for all strategies.
    pub(super) fn run(self, way: Strategy) -> SimulationRun {
        let mut luck = StdRng::seed_from_u64(self.seed);
        let mut rates: Vec<f64> = (0..self.agents).map(|_| luck.random_range(0.1..0.9)).collect();
        let mut chooser = StrategyState::new(way, self.agents, self.seed);
        let (mut regret, mut lost) = (Vec::with_capacity(self.length), 0.0);
        let (mut recovery, mut recent) = (None, 0.0);
        let turn = if self.turns { self.length / 2 } else { usize::MAX };
        let mut chosen = Vec::with_capacity(self.length);
        let mut best = best_of(&rates);
        for now in 0..self.length {
            if now == turn
                && let Some(rate) = rates.get_mut(best.0)
            {
                *rate = 0.05;
                best = best_of(&rates);
            }
            let at = chooser.choose(now);
            let rate = rates.get(at).copied().unwrap_or_default();
            chooser.learn(at, luck.random_bool(rate), now);
            lost += best.1 - rate;
            regret.push(lost as f32);
            chosen.push(rate);
            if now >= turn && recovery.is_none() {
                recent += rate;
                if now >= turn + WINDOW {
                    recent -= chosen.get(now - WINDOW).copied().unwrap_or_default();
                    if recent >= RECOVERED * best.1 * WINDOW as f64 {
                        recovery = Some(now - turn);
                    }
                }
            }
        }
        SimulationRun { regret, recovery }
    }
}

// === impl SimulationRun ===

impl SimulationRun {
    /// Regret up to a dispatch.
    pub(super) fn regret_at(&self, place: usize) -> f64 {
        let place = place.clamp(1, self.regret.len().max(1)) - 1;
        self.regret.get(place).copied().map_or(0.0, f64::from)
    }

    /// Total regret.
    pub(super) fn total(&self) -> f64 {
        self.regret_at(self.regret.len())
    }

    /// Number of dispatches.
    pub(super) const fn len(&self) -> usize {
        self.regret.len()
    }
}

// === impl StrategyState ===

impl StrategyState {
    fn new(way: Strategy, agents: usize, seed: u64) -> Self {
        let entrant = ScoringCandidate {
            fit: 1.0,
            health: Health::Healthy,
            active: 0,
            cents: None,
            posterior: SuccessRate::default(),
            excluded: None,
        };
        let random = StdRng::seed_from_u64(seed ^ 0x9e37_79b9);
        Self { way, entrants: vec![entrant; agents], under_way: vec![Vec::new(); agents], random }
    }

    fn choose(&mut self, now: usize) -> usize {
        let count = self.entrants.len();
        match self.way {
            Strategy::Rialto | Strategy::Undiscounted => {
                let weighed =
                    scoring::score_candidates(&self.entrants, &ScoringRules::default(), self.random.random());
                scoring::rank(&weighed).first().copied().unwrap_or_default()
            }
            Strategy::EpsilonGreedy if self.random.random_bool(EPSILON) => self.random.random_range(0..count),
            Strategy::EpsilonGreedy => {
                let mean = |entrant: &ScoringCandidate| {
                    let known = entrant.posterior.beta();
                    known.alpha / (known.alpha + known.beta)
                };
                let means = self.entrants.iter().map(mean).enumerate();
                means.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |best| best.0)
            }
            Strategy::LeastLoaded => {
                for tasks in &mut self.under_way {
                    tasks.retain(|end| *end > now);
                }
                let first = self.random.random_range(0..count);
                let order = (0..count).map(|at| (first + at) % count);
                order.min_by_key(|at| self.under_way.get(*at).map_or(0, Vec::len)).unwrap_or_default()
            }
            Strategy::RoundRobin => now % count.max(1),
        }
    }

    fn learn(&mut self, at: usize, went_well: bool, now: usize) {
        let length = self.random.random_range(1..20);
        if let Some(tasks) = self.under_way.get_mut(at).filter(|_| self.way == Strategy::LeastLoaded) {
            tasks.push(now + length);
        }
        let discount = if self.way == Strategy::Rialto { 0.99 } else { 1.0 };
        if let Some(entrant) = self.entrants.get_mut(at) {
            entrant.posterior = entrant.posterior.after(if went_well { 1.0 } else { 0.0 }, discount);
        }
    }
}

fn best_of(rates: &[f64]) -> (usize, f64) {
    rates.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_loses_least_and_recovers() {
        let lost = |way| Scenario { agents: 10, length: 3_000, seed: 1, turns: false }.run(way).total();
        let ours = lost(Strategy::Rialto);
        for other in [Strategy::EpsilonGreedy, Strategy::LeastLoaded, Strategy::RoundRobin] {
            assert!(ours < lost(other), "{}: {ours} against {}", other.name(), lost(other));
        }
        let turned = Scenario { agents: 10, length: 3_000, seed: 1, turns: true }.run(Strategy::Rialto);
        assert!(turned.recovery.is_some_and(|recovery| recovery <= 200), "{:?}", turned.recovery);
    }

    #[test]
    fn the_same_seed_is_the_same_course() {
        let total =
            || Scenario { agents: 20, length: 500, seed: 3, turns: true }.run(Strategy::Rialto).total();
        assert_eq!(total().to_bits(), total().to_bits());
    }
}
