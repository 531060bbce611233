//! Choosing agents: how much is lost by not knowing them, how soon a change is noticed, and what a choice costs.
//!
//! The very functions that choose in Rialto are asked here, with agents that succeed at given rates. What another way of
//! choosing would have lost on the same agents and the same luck stands beside it.

mod fleet;
mod plot;
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
use rialto_route::{
    choice::{self, Entrant, Rules},
    skills::SkillIndex,
};
use serde::Serialize;

use self::simulation::{Course, Run, Way};
use crate::{
    report::{self, Check, Table, Verdict},
    seconds,
    trouble::{Trouble, during},
};

/// How to measure.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many courses are run with each number of agents, each with another seed; 0 only measures what a choice costs.
    #[arg(long, default_value_t = 5)]
    seeds: u64,
    /// How long each time is measured.
    #[arg(long, default_value = "1", value_parser = seconds::parse)]
    seconds: Duration,
    /// Where to draw what was lost, as an SVG file.
    #[arg(long)]
    plot: Option<PathBuf>,
}

/// What was measured.
#[derive(Serialize)]
pub(crate) struct Report {
    rows: Vec<Row>,
    times: Times,
    checks: Vec<Check>,
}

/// One way of choosing among so many agents.
#[derive(Serialize)]
struct Row {
    agents: usize,
    way: &'static str,
    dispatches: usize,
    /// What was lost in all by not asking the best one, in tasks.
    regret: f64,
    /// What was lost in the second half.
    late_regret: f64,
    /// How much more was lost in the second half than in the quarter before it: 1 grows like a logarithm, 2 like a line.
    growth: f64,
    /// After how many dispatches the best one that is left is asked mostly again when the best turns bad; none is never.
    recovery: Option<usize>,
}

/// What a choice costs.
#[derive(Serialize)]
struct Times {
    decision_us: f64,
    rebuild_ms: f64,
    match_ms: f64,
    match_words_ms: f64,
}

/// What takes longer than this is likely to be interrupted.
const LONG: Duration = Duration::from_millis(5);

/// How many agents there are, and how long a course with them is: at least two hundred tasks for each, because nobody is known before that.
const SIZES: [(usize, usize); 3] = [(10, 20_000), (100, 20_000), (1_000, 200_000)];

/// Measures.
pub(crate) fn run(args: &Args) -> Result<Report, Trouble> {
    let mut rows = Vec::new();
    let mut drawn = Vec::new();
    for (agents, length) in SIZES.into_iter().filter(|_| args.seeds > 0) {
        for way in Way::ALL {
            let runs: Vec<Run> =
                (0..args.seeds).map(|seed| Course { agents, length, seed, turns: false }.run(way)).collect();
            let turned: Vec<Run> =
                (0..args.seeds).map(|seed| Course { agents, length, seed, turns: true }.run(way)).collect();
            rows.push(row(agents, length, way, &runs, &turned));
            if agents == 100 {
                drawn.push((way.name(), middle_of(runs), middle_of(turned)));
            }
        }
    }
    if let Some(file) = &args.plot {
        std::fs::write(file, plot::svg(&drawn)).map_err(during("the plot could not be written"))?;
    }
    let times = times(args.seconds);
    let checks = checks(&rows, &times);
    Ok(Report { rows, times, checks })
}

fn row(agents: usize, length: usize, way: Way, runs: &[Run], turned: &[Run]) -> Row {
    let at = |share: f64| {
        let place = (length as f64 * share) as usize;
        runs.iter().map(|run| run.regret_at(place)).sum::<f64>() / runs.len() as f64
    };
    let (quarter, half, whole) = (at(0.25), at(0.5), at(1.0));
    let mut recoveries: Vec<usize> = turned.iter().map(|run| run.recovery.unwrap_or(usize::MAX)).collect();
    recoveries.sort_unstable();
    let recovery = recoveries.get(recoveries.len() / 2).copied().filter(|recovery| *recovery < usize::MAX);
    Row {
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
fn middle_of(mut runs: Vec<Run>) -> Run {
    runs.sort_by(|a, b| a.total().total_cmp(&b.total()));
    let middle = runs.len() / 2;
    runs.swap_remove(middle)
}

fn checks(rows: &[Row], times: &Times) -> Vec<Check> {
    let mut checks = Vec::new();
    for (agents, _) in SIZES {
        let of = |way: Way| rows.iter().find(|row| row.agents == agents && row.way == way.name());
        let Some(ours) = of(Way::Rialto) else { continue };
        let recovery = ours.recovery.map_or(f64::INFINITY, |recovery| recovery as f64);
        checks.push(Check::at_most(format!("{agents} agents: recovery"), recovery, 200.0, "dispatches"));
        for other in [Way::RoundRobin, Way::LeastLoaded, Way::EpsilonGreedy] {
            if let Some(theirs) = of(other) {
                let what = format!("{agents} agents: lost against {}", other.name());
                checks.push(Check::at_most(what, ours.regret / theirs.regret.max(1e-9), 1.0, "times"));
            }
        }
        checks.push(Check::at_most(format!("{agents} agents: growth"), ours.growth, 1.5, ""));
    }
    checks.push(Check::at_most("a decision among 100", times.decision_us, 30.0, "µs"));
    checks.push(Check::at_most("a rebuild with 10,000 agents", times.rebuild_ms, 200.0, "ms"));
    checks.push(Check::at_most("a match among 10,000 agents", times.match_ms, 1.0, "ms"));
    checks.push(Check::at_most("a match by words alone", times.match_words_ms, 1.0, "ms"));
    checks
}

fn times(each: Duration) -> Times {
    let entrants: Vec<Entrant> = (0..100_u32).map(entrant).collect();
    let rules = Rules::default();
    let mut seed = 0;
    let decision_us = best(each, || {
        seed += 1;
        choice::ranked(&choice::weigh(black_box(&entrants), &rules, seed)).first().copied()
    });
    let agents = fleet::agents(10_000, 10);
    let rebuild = best(each, || SkillIndex::of(1, black_box(agents.clone())).len());
    let index = SkillIndex::of(1, agents);
    let whole = WorkDescription {
        work_type: "tag7".to_owned(),
        description: "review the pull request of the new feature and tell what is wrong".to_owned(),
        required_skills: vec!["tag3".to_owned()],
        ..WorkDescription::default()
    };
    let words = WorkDescription { description: whole.description.clone(), ..WorkDescription::default() };
    let match_whole = best(each, || index.fits(black_box(&whole), 100).best.len());
    let match_words = best(each, || index.fits(black_box(&words), 100).best.len());
    Times {
        decision_us,
        rebuild_ms: rebuild / 1e3,
        match_ms: match_whole / 1e3,
        match_words_ms: match_words / 1e3,
    }
}

fn entrant(n: u32) -> Entrant {
    Entrant {
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
        barred: None,
    }
}

/// The microseconds of CPU one run takes when nothing disturbs it.
fn best<T>(each: Duration, mut run: impl FnMut() -> T) -> f64 {
    let begun = Instant::now();
    let mut best = f64::INFINITY;
    while begun.elapsed() < each || best.is_infinite() {
        let (once, spent) = (Instant::now(), on_cpu());
        black_box(run());
        let took = once.elapsed();
        // Short runs fit between two disturbances; long ones are held against what this thread has spent.
        let spent =
            on_cpu().zip(spent).map(|(after, before)| Duration::from_nanos(after.saturating_sub(before)));
        let took = spent.filter(|spent| *spent > LONG).unwrap_or(took);
        best = best.min(took.as_secs_f64() * 1e6);
    }
    best
}

/// The nanoseconds this thread has spent on a CPU, where the system says so.
fn on_cpu() -> Option<u64> {
    std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split_whitespace().next()?.parse().ok()
}

// === impl Report ===

impl Verdict for Report {
    fn checks(&self) -> &[Check] {
        &self.checks
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&[
            "way of choosing",
            "agents",
            "dispatches",
            "regret",
            "2nd half",
            "growth",
            "recovery",
        ]);
        for row in &self.rows {
            table.row([
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
        let Times { decision_us, rebuild_ms, match_ms, match_words_ms } = &self.times;
        writeln!(f, "a decision among 100 candidates      {decision_us:.1} µs")?;
        writeln!(f, "an index of 10,000 agents, 10 skills {rebuild_ms:.0} ms")?;
        writeln!(f, "a match there, everything asked      {match_ms:.2} ms")?;
        writeln!(f, "a match there, words alone           {match_words_ms:.2} ms\n")?;
        report::checks(f, &self.checks)?;
        write!(f, "\n{FOOTER}")
    }
}

const FOOTER: &str = "\
How to read this: agents succeed at rates between 0.1 and 0.9. Regret is what was lost against always asking the best one,
in tasks; growth is the regret of the second half against that of the quarter before it (1 grows like a logarithm, 2 like a
line); recovery is after how many dispatches nine tenths of what the best remaining agent could do are reached again, over 50
dispatches, when the best agent turns bad. Means over seeds; recovery is the median.";
