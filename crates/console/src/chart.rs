//! Charts as SVG. They need no script, and each has a text for screen readers.

use std::fmt::Write;

use maud::{Markup, html};
use rialto_model::{
    agent::{Health, Probe},
    routing::BetaDistribution,
};

const CHART_WIDTH: f64 = 640.0;

/// Number of points of a curve.
const CURVE_POINTS: u32 = 64;

/// Bar chart of calls per minute, with failed calls in front.
pub(crate) fn bar_chart(values: &[u64], bad: &[u64], says: &str) -> Markup {
    const HEIGHT: f64 = 120.0;
    const CHART_WIDTH: f64 = 1_000.0;
    /// Labels of the time axis: position from 0 to 1, text and anchor.
    const AXIS_LABELS: [(f64, &str, &str); 5] = [
        (0.0, "an hour ago", "start"),
        (0.25, "45 min", "middle"),
        (0.5, "30 min", "middle"),
        (0.75, "15 min", "middle"),
        (1.0, "now", "end"),
    ];
    let most = values.iter().copied().max().unwrap_or(0).max(1);
    let step = CHART_WIDTH / values.len().max(1) as f64;
    let height = |value: u64| value as f64 / most as f64 * (HEIGHT - 18.0);
    html! {
        svg.chart viewBox=(format!("0 0 {CHART_WIDTH} {}", HEIGHT + 18.0)) role="img" aria-label=(says) {
            line.axis x1="0" x2=(CHART_WIDTH) y1=(HEIGHT - 0.5) y2=(HEIGHT - 0.5) {}
            text x="0" y="11" { "peak per minute: " (most) }
            @for (position, label, anchor) in AXIS_LABELS { text x=(coord(position * CHART_WIDTH)) y=(HEIGHT + 14.0) text-anchor=(anchor) { (label) } }
            @for (at, value) in values.iter().enumerate() {
                @let x = at as f64 * step;
                @if *value > 0 {
                    rect.bar x=(coord(x + 0.5)) width=(coord(step - 1.0)) y=(coord(HEIGHT - height(*value))) height=(coord(height(*value))) {}
                }
                @if let Some(bad) = bad.get(at).filter(|bad| **bad > 0) {
                    rect.bar.bad x=(coord(x + 0.5)) width=(coord(step - 1.0)) y=(coord(HEIGHT - height(*bad))) height=(coord(height(*bad))) {}
                }
            }
        }
    }
}

/// Line chart of an agent's latency at each probe, oldest first.
pub(crate) fn latency_chart(probes: &[Probe]) -> Markup {
    const HEIGHT: f64 = 130.0;
    let most = probes.iter().map(|probe| probe.elapsed_ms).max().unwrap_or(0).max(1);
    let step = CHART_WIDTH / probes.len().max(1) as f64;
    let y = |took: u64| HEIGHT - 6.0 - took as f64 / most as f64 * (HEIGHT - 26.0);
    let mut line = String::new();
    for (at, probe) in probes.iter().enumerate() {
        let (x, y) = (at as f64 * step + step / 2.0, y(probe.elapsed_ms));
        // Writing to a text cannot fail.
        let _ = write!(line, "{}{x:.1} {y:.1}", if at == 0 { "M" } else { " L" });
    }
    let says = format!("latency of {} probes, at most {most} ms", probes.len());
    html! {
        svg.chart viewBox=(format!("0 0 {CHART_WIDTH} {HEIGHT}")) role="img" aria-label=(says) {
            line.axis x1="0" x2=(CHART_WIDTH) y1=(HEIGHT - 0.5) y2=(HEIGHT - 0.5) {}
            text x="0" y="11" { (most) " ms" }
            path.curve d=(line) {}
            @for (at, probe) in probes.iter().enumerate() {
                circle class=(format!("dot {}", health_class(probe.health))) cx=(coord(at as f64 * step + step / 2.0)) cy=(coord(y(probe.elapsed_ms))) r="2.2" {
                    title { (probe.at.strftime("%F %T UTC")) ": " (probe.health) ", " (probe.elapsed_ms) " ms" }
                }
            }
        }
    }
}

/// Timeline of an agent's health at each probe, oldest first.
pub(crate) fn health_timeline(probes: &[Probe]) -> Markup {
    const HEIGHT: f64 = 22.0;
    let step = CHART_WIDTH / probes.len().max(1) as f64;
    let healthy = probes.iter().filter(|probe| probe.health == Health::Healthy).count();
    let says = format!("healthy in {healthy} of the last {} probes", probes.len());
    html! {
        svg.chart viewBox=(format!("0 0 {CHART_WIDTH} {HEIGHT}")) role="img" aria-label=(says) {
            @for (at, probe) in probes.iter().enumerate() {
                @let lack = if probe.health == Health::Healthy { 0.0 } else { 7.0 };
                rect class=(format!("bar {}", if probe.health == Health::Healthy { "good" } else { health_class(probe.health) }))
                    x=(coord(at as f64 * step)) width=(coord((step - 1.0).max(0.6))) y=(coord(lack)) height=(coord(HEIGHT - lack)) {
                    title { (probe.at.strftime("%F %T UTC")) ": " (probe.health) }
                }
            }
        }
    }
}

/// Density of a learned success rate between 0 and 1.
pub(crate) fn beta_curve(beta: &BetaDistribution) -> Markup {
    const HEIGHT: f64 = 80.0;
    const CURVE_WIDTH: f64 = 260.0;
    let density = |x: f64| (beta.alpha - 1.0) * x.ln() + (beta.beta - 1.0) * (1.0 - x).ln();
    let places: Vec<f64> =
        (0..=CURVE_POINTS).map(|at| (f64::from(at) / f64::from(CURVE_POINTS)).clamp(0.004, 0.996)).collect();
    let highest = places.iter().map(|x| density(*x)).fold(f64::NEG_INFINITY, f64::max);
    let mut line = String::new();
    for (at, x) in places.iter().enumerate() {
        let y = HEIGHT - 14.0 - (density(*x) - highest).exp() * (HEIGHT - 20.0);
        let _ = write!(line, "{}{:.1} {y:.1}", if at == 0 { "M" } else { " L" }, x * CURVE_WIDTH);
    }
    let mean = beta.alpha / (beta.alpha + beta.beta);
    let says = format!("success rate {:.0} %, {} observations", mean * 100.0, beta.observed);
    html! {
        svg.chart.small viewBox=(format!("0 0 {CURVE_WIDTH} {HEIGHT}")) role="img" aria-label=(says) {
            path.under d=(format!("{line} L{CURVE_WIDTH} {:.1} L0 {:.1} Z", HEIGHT - 14.0, HEIGHT - 14.0)) {}
            path.curve d=(line) {}
            line.axis x1="0" x2=(CURVE_WIDTH) y1=(HEIGHT - 14.0) y2=(HEIGHT - 14.0) {}
            text x="0" y=(HEIGHT - 2.0) { "0" }
            text x=(CURVE_WIDTH) y=(HEIGHT - 2.0) text-anchor="end" { "1" }
            text x=(coord(mean * CURVE_WIDTH)) y=(HEIGHT - 2.0) text-anchor="middle" { (format!("{mean:.2}")) }
        }
    }
}

/// Bar for a value between 0 and 1.
pub(crate) fn share_bar(value: f64) -> Markup {
    let value = value.clamp(0.0, 1.0);
    html! {
        svg.chart.share viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
            rect.bar.rest x="0" y="0" width="100" height="8" rx="2" {}
            rect.bar x="0" y="0" width=(coord(value * 100.0)) height="8" rx="2" {}
        }
    }
}

fn coord(value: f64) -> String {
    format!("{value:.1}")
}

const fn health_class(health: Health) -> &'static str {
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
    fn a_curve_has_finite_coordinates_for_extreme_parameters() {
        for (alpha, beta) in [(1.0, 1.0), (40_000.0, 1.0), (1.0, 900.5), (2.0, 3.0)] {
            let svg = beta_curve(&BetaDistribution { alpha, beta, observed: 1 }).into_string();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn empty_data_makes_an_empty_chart() {
        assert!(bar_chart(&[], &[], "none").into_string().contains("aria-label=\"none\""));
        assert!(latency_chart(&[]).into_string().contains("0 probes"));
    }
}
