//! Quality of agent selection: regret, recovery after a change, and the cost of a decision.
//!
//! The very functions that choose in Rialto are asked here, with agents that succeed at given rates. What another way of
//! selection would have lost on equal agents and random numbers is beside it.

mod plot;
mod sample_agents;
mod simulation;

use std::{
    fmt::{self, Display, Formatter},
    hint::black_box,
    path::PathBuf,
    time::{Duration, Instant},
};

use rialto_model::{
    agent::Health,
    routing::{SuccessRate, WorkDescription},
};
use rialto_routing::{
    scoring::{self, ScoringCandidate, ScoringRules},
    skill_index::SkillIndex,
};
use serde::Serialize;

use self::simulation::{Scenario, SimulationRun, Strategy};
use crate::{
    duration_arg,
    error::{BenchError, context},
    report::{self, BenchReport, TargetCheck, TextTable},
};

/// Options of the measurement.
#[derive(clap::Args)]
pub(crate) struct RoutingArgs {
    /// Number of runs per number of agents, each with another seed; 0 measures only the cost of a decision.
    #[arg(long, default_value_t = 5)]
    seeds: u64,
    /// Time per measured cost.
    #[arg(long, default_value = "1", value_parser = duration_arg::parse_seconds)]
    seconds: Duration,
    /// SVG file for the regret curves.
    #[arg(long)]
    plot: Option<PathBuf>,
}

/// Result of the measurement.
#[derive(Serialize)]
pub(crate) struct RoutingReport {
    rows: Vec<RoutingRow>,
    times: DecisionTimes,
    checks: Vec<TargetCheck>,
}

/// One strategy with one number of agents.
#[derive(Serialize)]
struct RoutingRow {
    agents: usize,
    way: &'static str,
    dispatches: usize,
    /// Total regret, in tasks.
    regret: f64,
    /// Regret in the second half.
    late_regret: f64,
    /// Ratio of the regret in the second half to that in the quarter before: 1 is logarithmic growth, 2 is linear.
    growth: f64,
    /// Number of dispatches until the best remaining agent is selected mostly again after the best fails; none is never.
    recovery: Option<usize>,
}

/// Cost of a decision.
#[derive(Serialize)]
struct DecisionTimes {
    decision_us: f64,
    rebuild_ms: f64,
    match_ms: f64,
    match_words_ms: f64,
}

/// Batches that take longer were probably interrupted.
const MAX_BATCH_TIME: Duration = Duration::from_millis(5);

/// Numbers of agents and lengths of a run: at least two hundred tasks per agent, which it takes to learn their rates.
const SIZES: [(usize, usize); 3] = [(10, 20_000), (100, 20_000), (1_000, 200_000)];

/// Measures.
pub(crate) fn run(args: &RoutingArgs) -> Result<RoutingReport, BenchError> {
    let mut rows = Vec::new();
    let mut drawn = Vec::new();
    for (agents, length) in SIZES.into_iter().filter(|_| args.seeds > 0) {
        for way in Strategy::ALL {
            let runs: Vec<SimulationRun> = (0..args.seeds)
                .map(|seed| Scenario { agents, length, seed, turns: false }.run(way))
                .collect();
            let turned: Vec<SimulationRun> =
                (0..args.seeds).map(|seed| Scenario { agents, length, seed, turns: true }.run(way)).collect();
            rows.push(strategy_row(agents, length, way, &runs, &turned));
            if agents == 100 {
                drawn.push((way.name(), median_run(runs), median_run(turned)));
            }
        }
    }
    if let Some(file) = &args.plot {
        std::fs::write(file, plot::draw_svg(&drawn)).map_err(context("the plot could not be written"))?;
    }
    let times = measure_times(args.seconds);
    let checks = target_checks(&rows, &times);
    Ok(RoutingReport { rows, times, checks })
}

fn strategy_row(
    agents: usize,
    length: usize,
    way: Strategy,
    runs: &[SimulationRun],
    turned: &[SimulationRun],
) -> RoutingRow {
    let at = |share: f64| {
        let place = (length as f64 * share) as usize;
        runs.iter().map(|run| run.regret_at(place)).sum::<f64>() / runs.len() as f64
    };
    let (quarter, half, whole) = (at(0.25), at(0.5), at(1.0));
    let mut recoveries: Vec<usize> = turned.iter().map(|run| run.recovery.unwrap_or(usize::MAX)).collect();
    recoveries.sort_unstable();
    let recovery = recoveries.get(recoveries.len() / 2).copied().filter(|recovery| *recovery < usize::MAX);
    RoutingRow {
        agents,
        way: way.name(),
        dispatches: length,
        regret: whole,
        late_regret: whole - half,
        growth: (whole - half) / (half - quarter).max(1e-9),
        recovery,
    }
}

/// The course that lost neither most nor least.
fn median_run(mut runs: Vec<SimulationRun>) -> SimulationRun {
    runs.sort_by(|a, b| a.total().total_cmp(&b.total()));
    let middle = runs.len() / 2;
    runs.swap_remove(middle)
}

fn target_checks(rows: &[RoutingRow], times: &DecisionTimes) -> Vec<TargetCheck> {
    let mut checks = Vec::new();
    for (agents, _) in SIZES {
        let of = |way: Strategy| rows.iter().find(|row| row.agents == agents && row.way == way.name());
        let Some(ours) = of(Strategy::Rialto) else { continue };
        let recovery = ours.recovery.map_or(f64::INFINITY, |recovery| recovery as f64);
        checks.push(TargetCheck::at_most(
            format!("{agents} agents: recovery"),
            recovery,
            200.0,
            "dispatches",
        ));
        for other in [Strategy::RoundRobin, Strategy::LeastLoaded, Strategy::EpsilonGreedy] {
            if let Some(theirs) = of(other) {
                let what = format!("{agents} agents: lost against {}", other.name());
                checks.push(TargetCheck::at_most(what, ours.regret / theirs.regret.max(1e-9), 1.0, "times"));
            }
        }
        checks.push(TargetCheck::at_most(format!("{agents} agents: growth"), ours.growth, 1.5, ""));
    }
    checks.push(TargetCheck::at_most("a decision among 100", times.decision_us, 30.0, "µs"));
    checks.push(TargetCheck::at_most("a rebuild with 10,000 agents", times.rebuild_ms, 200.0, "ms"));
    checks.push(TargetCheck::at_most("a match among 10,000 agents", times.match_ms, 1.0, "ms"));
    checks.push(TargetCheck::at_most("a match by words alone", times.match_words_ms, 1.0, "ms"));
    checks
}

fn measure_times(each: Duration) -> DecisionTimes {
    let entrants: Vec<ScoringCandidate> = (0..100_u32).map(entrant).collect();
    let rules = ScoringRules::default();
    let mut seed = 0;
    let decision_us = best_micros(each, || {
        seed += 1;
        scoring::rank(&scoring::score_candidates(black_box(&entrants), &rules, seed)).first().copied()
    });
    let agents = sample_agents::make_agents(10_000, 10);
    let rebuild = best_micros(each, || SkillIndex::new(1, black_box(agents.clone())).len());
    let index = SkillIndex::new(1, agents);
    let whole = WorkDescription {
        work_type: "tag7".to_owned(),
        description: "review the pull request of the new feature and tell what is wrong".to_owned(),
        required_skills: vec!["tag3".to_owned()],
        ..WorkDescription::default()
    };
    let words = WorkDescription { description: whole.description.clone(), ..WorkDescription::default() };
    let match_whole = best_micros(each, || index.find_matches(black_box(&whole), 100).best.len());
    let match_words = best_micros(each, || index.find_matches(black_box(&words), 100).best.len());
    DecisionTimes {
        decision_us,
        rebuild_ms: rebuild / 1e3,
        match_ms: match_whole / 1e3,
        match_words_ms: match_words / 1e3,
    }
}

fn entrant(n: u32) -> ScoringCandidate {
    ScoringCandidate {
        fit: 1.0 - f64::from(n % 10) / 20.0,
        health: if n.is_multiple_of(7) { Health::Unknown } else { Health::Healthy },
        active: u64::from(n % 9),
        cents: None,
        posterior: SuccessRate {
            wins: f64::from(n % 90),
            losses: f64::from(n % 13),
            observed: 100,
            ..SuccessRate::default()
        },
        excluded: None,
    }
}

/// The microseconds of CPU one run takes when nothing disturbs it.
fn best_micros<T>(each: Duration, mut run: impl FnMut() -> T) -> f64 {
    let begun = Instant::now();
    let mut best = f64::INFINITY;
    while begun.elapsed() < each || best.is_infinite() {
        let (once, spent) = (Instant::now(), thread_cpu_nanos());
        black_box(run());
        let took = once.elapsed();
        // Short runs fit between two disturbances; long ones are held against what this thread has spent.
        let spent = thread_cpu_nanos()
            .zip(spent)
            .map(|(after, before)| Duration::from_nanos(after.saturating_sub(before)));
        let took = spent.filter(|spent| *spent > MAX_BATCH_TIME).unwrap_or(took);
        best = best.min(took.as_secs_f64() * 1e6);
    }
    best
}

/// CPU time of this thread in nanoseconds, where the system reports it.
fn thread_cpu_nanos() -> Option<u64> {
    std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split_whitespace().next()?.parse().ok()
}

// === impl RoutingReport ===

impl BenchReport for RoutingReport {
    fn checks(&self) -> &[TargetCheck] {
        &self.checks
    }
}

impl Display for RoutingReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut table = TextTable::new(&[
            "way of choosing",
            "agents",
            "dispatches",
            "regret",
            "2nd half",
            "growth",
            "recovery",
        ]);
        for row in &self.rows {
            table.add_row([
                row.way.to_owned(),
                row.agents.to_string(),
                row.dispatches.to_string(),
                format!("{:.0}", row.regret),
                format!("{:.0}", row.late_regret),
                format!("{:.2}", row.growth),
                row.recovery.map_or_else(|| "never".to_owned(), |recovery| recovery.to_string()),
            ]);
        }
        writeln!(f, "{table}")?;
        let DecisionTimes { decision_us, rebuild_ms, match_ms, match_words_ms } = &self.times;
        writeln!(f, "a decision among 100 candidates      {decision_us:.1} µs")?;
        writeln!(f, "an index of 10,000 agents, 10 skills {rebuild_ms:.0} ms")?;
        writeln!(f, "a match there, everything asked      {match_ms:.2} ms")?;
        writeln!(f, "a match there, words alone           {match_words_ms:.2} ms\n")?;
        report::print_checks(f, &self.checks)?;
        write!(f, "\n{FOOTER}")
    }
}

const FOOTER: &str = "\
How to read this: agents succeed at rates between 0.1 and 0.9. Regret is what was lost against always asking the best one,
in tasks; growth is the regret of the second half against that of the quarter before it (1 grows like a logarithm, 2 like a
line); recovery is after how many dispatches nine tenths of what the best remaining agent could do are reached again, over 50
dispatches, when the best agent turns bad. Means over seeds; recovery is the median.";
