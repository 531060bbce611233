//! Charts, drawn here as SVG: they need no script, and whoever cannot see them is told what they say.

use std::fmt::Write;

use maud::{Markup, html};
use rialto_model::{
    agent::{Health, Probe},
    routing::BetaDistribution,
};

const WIDTH: f64 = 640.0;

/// So many points are a curve.
const POINTS: u32 = 64;

/// Numbers over time as bars, with those of a second kind in front of them.
pub(crate) fn bars(values: &[u64], bad: &[u64], says: &str) -> Markup {
    const HEIGHT: f64 = 120.0;
    const WIDTH: f64 = 1_000.0;
    /// Where on the way from left to right something is said, what, and how it stands there.
    const MARKS: [(f64, &str, &str); 5] = [
        (0.0, "an hour ago", "start"),
        (0.25, "45 min", "middle"),
        (0.5, "30 min", "middle"),
        (0.75, "15 min", "middle"),
        (1.0, "now", "end"),
    ];
    let most = values.iter().copied().max().unwrap_or(0).max(1);
    let step = WIDTH / values.len().max(1) as f64;
    let height = |value: u64| value as f64 / most as f64 * (HEIGHT - 18.0);
    html! {
        svg.chart viewBox=(format!("0 0 {WIDTH} {}", HEIGHT + 18.0)) role="img" aria-label=(says) {
            line.axis x1="0" x2=(WIDTH) y1=(HEIGHT - 0.5) y2=(HEIGHT - 0.5) {}
            text x="0" y="11" { "most in a minute: " (most) }
            @for (part, said, stands) in MARKS { text x=(n(part * WIDTH)) y=(HEIGHT + 14.0) text-anchor=(stands) { (said) } }
            @for (at, value) in values.iter().enumerate() {
                @let x = at as f64 * step;
                @if *value > 0 {
                    rect.bar x=(n(x + 0.5)) width=(n(step - 1.0)) y=(n(HEIGHT - height(*value))) height=(n(height(*value))) {}
                }
                @if let Some(bad) = bad.get(at).filter(|bad| **bad > 0) {
                    rect.bar.bad x=(n(x + 0.5)) width=(n(step - 1.0)) y=(n(HEIGHT - height(*bad))) height=(n(height(*bad))) {}
                }
            }
        }
    }
}

/// How long an agent took to answer each probe, the oldest first.
pub(crate) fn latency(probes: &[Probe]) -> Markup {
    const HEIGHT: f64 = 130.0;
    let most = probes.iter().map(|probe| probe.elapsed_ms).max().unwrap_or(0).max(1);
    let step = WIDTH / probes.len().max(1) as f64;
    let y = |took: u64| HEIGHT - 6.0 - took as f64 / most as f64 * (HEIGHT - 26.0);
    let mut line = String::new();
    for (at, probe) in probes.iter().enumerate() {
        let (x, y) = (at as f64 * step + step / 2.0, y(probe.elapsed_ms));
        // Writing to a text cannot fail.
        let _ = write!(line, "{}{x:.1} {y:.1}", if at == 0 { "M" } else { " L" });
    }
    let says = format!("time that {} probes took, {most} ms at most", probes.len());
    html! {
        svg.chart viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(says) {
            line.axis x1="0" x2=(WIDTH) y1=(HEIGHT - 0.5) y2=(HEIGHT - 0.5) {}
            text x="0" y="11" { (most) " ms" }
            path.curve d=(line) {}
            @for (at, probe) in probes.iter().enumerate() {
                circle class=(format!("dot {}", tone(probe.health))) cx=(n(at as f64 * step + step / 2.0)) cy=(n(y(probe.elapsed_ms))) r="2.2" {
                    title { (probe.at.strftime("%F %T UTC")) ": " (probe.health) ", " (probe.elapsed_ms) " ms" }
                }
            }
        }
    }
}

/// How an agent was at each probe, the oldest first.
pub(crate) fn timeline(probes: &[Probe]) -> Markup {
    const HEIGHT: f64 = 22.0;
    let step = WIDTH / probes.len().max(1) as f64;
    let healthy = probes.iter().filter(|probe| probe.health == Health::Healthy).count();
    let says = format!("healthy at {healthy} of the last {} probes", probes.len());
    html! {
        svg.chart viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(says) {
            @for (at, probe) in probes.iter().enumerate() {
                @let lack = if probe.health == Health::Healthy { 0.0 } else { 7.0 };
                rect class=(format!("bar {}", if probe.health == Health::Healthy { "good" } else { tone(probe.health) }))
                    x=(n(at as f64 * step)) width=(n((step - 1.0).max(0.6))) y=(n(lack)) height=(n(HEIGHT - lack)) {
                    title { (probe.at.strftime("%F %T UTC")) ": " (probe.health) }
                }
            }
        }
    }
}

/// How good an agent may be at some work: the curve is high where it is likely.
pub(crate) fn curve(beta: &BetaDistribution) -> Markup {
    const HEIGHT: f64 = 80.0;
    const ACROSS: f64 = 260.0;
    let density = |x: f64| (beta.alpha - 1.0) * x.ln() + (beta.beta - 1.0) * (1.0 - x).ln();
    let places: Vec<f64> =
        (0..=POINTS).map(|at| (f64::from(at) / f64::from(POINTS)).clamp(0.004, 0.996)).collect();
    let highest = places.iter().map(|x| density(*x)).fold(f64::NEG_INFINITY, f64::max);
    let mut line = String::new();
    for (at, x) in places.iter().enumerate() {
        let y = HEIGHT - 14.0 - (density(*x) - highest).exp() * (HEIGHT - 20.0);
        let _ = write!(line, "{}{:.1} {y:.1}", if at == 0 { "M" } else { " L" }, x * ACROSS);
    }
    let mean = beta.alpha / (beta.alpha + beta.beta);
    let says = format!("goes well {:.0} of 100 times, observed {} times", mean * 100.0, beta.observed);
    html! {
        svg.chart.small viewBox=(format!("0 0 {ACROSS} {HEIGHT}")) role="img" aria-label=(says) {
            path.under d=(format!("{line} L{ACROSS} {:.1} L0 {:.1} Z", HEIGHT - 14.0, HEIGHT - 14.0)) {}
            path.curve d=(line) {}
            line.axis x1="0" x2=(ACROSS) y1=(HEIGHT - 14.0) y2=(HEIGHT - 14.0) {}
            text x="0" y=(HEIGHT - 2.0) { "0" }
            text x=(ACROSS) y=(HEIGHT - 2.0) text-anchor="end" { "1" }
            text x=(n(mean * ACROSS)) y=(HEIGHT - 2.0) text-anchor="middle" { (format!("{mean:.2}")) }
        }
    }
}

/// A share of one, as a bar.
pub(crate) fn share(value: f64) -> Markup {
    let value = value.clamp(0.0, 1.0);
    html! {
        svg.chart.share viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
            rect.bar.rest x="0" y="0" width="100" height="8" rx="2" {}
            rect.bar x="0" y="0" width=(n(value * 100.0)) height="8" rx="2" {}
        }
    }
}

fn n(value: f64) -> String {
    format!("{value:.1}")
}

const fn tone(health: Health) -> &'static str {
    match health {
        Health::Healthy => "",
        Health::Degraded | Health::Unknown => "warn",
        Health::Unreachable => "bad",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_stays_in_its_frame_however_sure_it_is() {
        for (alpha, beta) in [(1.0, 1.0), (40_000.0, 1.0), (1.0, 900.5), (2.0, 3.0)] {
            let svg = curve(&BetaDistribution { alpha, beta, observed: 1 }).into_string();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn nothing_to_draw_is_no_trouble() {
        assert!(bars(&[], &[], "none").into_string().contains("aria-label=\"none\""));
        assert!(latency(&[]).into_string().contains("0 probes"));
    }
}
