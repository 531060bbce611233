//! Agents that succeed at given rates, and ways to choose among them.

use rand::{RngExt, SeedableRng, rngs::StdRng};
use rialto_model::{agent::Health, routing::SuccessRate};
use rialto_route::choice::{self, Entrant, Rules};

/// How often the recovery is looked at: over so many dispatches.
const WINDOW: usize = 50;

/// So much of the best that can be had counts as recovered.
const RECOVERED: f64 = 0.9;

/// What an epsilon-greedy chooser spends on trying others.
const EPSILON: f64 = 0.1;

/// A way of choosing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// As Rialto does, with its default discount.
    Rialto,
    /// The same, but nothing is ever forgotten.
    Undiscounted,
    EpsilonGreedy,
    LeastLoaded,
    RoundRobin,
}

/// So many agents, and so many dispatches.
#[derive(Clone, Copy)]
pub(super) struct Course {
    pub(super) agents: usize,
    pub(super) length: usize,
    pub(super) seed: u64,
    /// Whether the best agent turns bad in the middle.
    pub(super) turns: bool,
}

/// What came of it.
pub(super) struct Run {
    /// What was lost up to each dispatch.
    regret: Vec<f32>,
    /// How soon it recovered.
    pub(super) recovery: Option<usize>,
}

/// Chooses, and remembers what it must.
struct Chooser {
    way: Way,
    entrants: Vec<Entrant>,
    /// When each task under way ends.
    under_way: Vec<Vec<usize>>,
    random: StdRng,
}

// === impl Way ===

impl Way {
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

// === impl Course ===

impl Course {
    /// Lets one way of choosing run the course. The agents and their luck are the same for all ways.
    pub(super) fn run(self, way: Way) -> Run {
        let mut luck = StdRng::seed_from_u64(self.seed);
        let mut rates: Vec<f64> = (0..self.agents).map(|_| luck.random_range(0.1..0.9)).collect();
        let mut chooser = Chooser::new(way, self.agents, self.seed);
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
        Run { regret, recovery }
    }
}

// === impl Run ===

impl Run {
    /// What was lost up to a dispatch.
    pub(super) fn regret_at(&self, place: usize) -> f64 {
        let place = place.clamp(1, self.regret.len().max(1)) - 1;
        self.regret.get(place).copied().map_or(0.0, f64::from)
    }

    /// What was lost in all.
    pub(super) fn total(&self) -> f64 {
        self.regret_at(self.regret.len())
    }

    /// How many dispatches there were.
    pub(super) const fn len(&self) -> usize {
        self.regret.len()
    }
}

// === impl Chooser ===

impl Chooser {
    fn new(way: Way, agents: usize, seed: u64) -> Self {
        let entrant = Entrant {
            fit: 1.0,
            health: Health::Healthy,
            active: 0,
            cents: None,
            posterior: SuccessRate::default(),
            barred: None,
        };
        let random = StdRng::seed_from_u64(seed ^ 0x9e37_79b9);
        Self { way, entrants: vec![entrant; agents], under_way: vec![Vec::new(); agents], random }
    }

    fn choose(&mut self, now: usize) -> usize {
        let count = self.entrants.len();
        match self.way {
            Way::Rialto | Way::Undiscounted => {
                let weighed = choice::weigh(&self.entrants, &Rules::default(), self.random.random());
                choice::ranked(&weighed).first().copied().unwrap_or_default()
            }
            Way::EpsilonGreedy if self.random.random_bool(EPSILON) => self.random.random_range(0..count),
            Way::EpsilonGreedy => {
                let mean = |entrant: &Entrant| {
                    let known = entrant.posterior.beta();
                    known.alpha / (known.alpha + known.beta)
                };
                let means = self.entrants.iter().map(mean).enumerate();
                means.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |best| best.0)
            }
            Way::LeastLoaded => {
                for tasks in &mut self.under_way {
                    tasks.retain(|end| *end > now);
                }
                let first = self.random.random_range(0..count);
                let order = (0..count).map(|at| (first + at) % count);
                order.min_by_key(|at| self.under_way.get(*at).map_or(0, Vec::len)).unwrap_or_default()
            }
            Way::RoundRobin => now % count.max(1),
        }
    }

    fn learn(&mut self, at: usize, went_well: bool, now: usize) {
        let length = self.random.random_range(1..20);
        if let Some(tasks) = self.under_way.get_mut(at).filter(|_| self.way == Way::LeastLoaded) {
            tasks.push(now + length);
        }
        let discount = if self.way == Way::Rialto { 0.99 } else { 1.0 };
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
        let lost = |way| Course { agents: 10, length: 3_000, seed: 1, turns: false }.run(way).total();
        let ours = lost(Way::Rialto);
        for other in [Way::EpsilonGreedy, Way::LeastLoaded, Way::RoundRobin] {
            assert!(ours < lost(other), "{}: {ours} against {}", other.name(), lost(other));
        }
        let turned = Course { agents: 10, length: 3_000, seed: 1, turns: true }.run(Way::Rialto);
        assert!(turned.recovery.is_some_and(|recovery| recovery <= 200), "{:?}", turned.recovery);
    }

    #[test]
    fn the_same_seed_is_the_same_course() {
        let total = || Course { agents: 20, length: 500, seed: 3, turns: true }.run(Way::Rialto).total();
        assert_eq!(total().to_bits(), total().to_bits());
    }
}
