//! Regret curves: two panels of lines in SVG.

use std::fmt::Write as _;

use super::simulation::SimulationRun;

const COLOURS: [&str; 5] = ["#0b6e4f", "#5fb49c", "#b5651d", "#6a7fdb", "#8d99ae"];
const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 240.0;

/// A way of choosing, what it lost with agents that stay as they are, and what it lost when the best one turned bad.
type PlotLine = (&'static str, SimulationRun, SimulationRun);

/// The picture.
pub(super) fn draw_svg(lines: &[PlotLine]) -> String {
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 860 340\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"860\" height=\"340\" fill=\"white\"/>\n",
    );
    let steady: Vec<(&str, &SimulationRun)> = lines.iter().map(|(name, steady, _)| (*name, steady)).collect();
    let turned: Vec<(&str, &SimulationRun)> = lines.iter().map(|(name, _, turned)| (*name, turned)).collect();
    draw_panel(&mut svg, 50.0, "100 agents that stay as they are", &steady);
    draw_panel(&mut svg, 480.0, "the best one turns bad in the middle", &turned);
    for (at, (name, ..)) in lines.iter().enumerate() {
        let (x, colour) = (50.0 + 160.0 * at as f64, COLOURS.get(at).unwrap_or(&"black"));
        let _ = writeln!(svg, "<rect x=\"{x}\" y=\"318\" width=\"14\" height=\"4\" fill=\"{colour}\"/>");
        let _ = writeln!(svg, "<text x=\"{}\" y=\"324\">{name}</text>", x + 20.0);
    }
    svg.push_str("</svg>\n");
    svg
}

/// Draws one panel. Regret is on a logarithmic scale, so that the best strategy is visible.
fn draw_panel(svg: &mut String, left: f64, title: &str, lines: &[(&str, &SimulationRun)]) {
    let top = 40.0;
    let most = lines.iter().map(|(_, run)| run.total()).fold(10.0, f64::max);
    let height = |lost: f64| top + HEIGHT - HEIGHT * (1.0 + lost.max(0.0)).ln() / (1.0 + most).ln();
    let _ = writeln!(svg, "<text x=\"{left}\" y=\"24\" font-weight=\"bold\">{title}</text>");
    let _ = writeln!(
        svg,
        "<path d=\"M{left} {top}V{}H{}\" fill=\"none\" stroke=\"#444\"/>",
        top + HEIGHT,
        left + WIDTH
    );
    for tick in [1.0, 10.0, 100.0, 1_000.0, 10_000.0] {
        if tick <= most {
            let y = height(tick);
            let _ = writeln!(svg, "<path d=\"M{left} {y:.1}h{WIDTH}\" stroke=\"#ddd\"/>");
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#444\">{tick}</text>",
                left - 4.0,
                y + 4.0
            );
        }
    }
    let length = lines.first().map_or(1, |(_, run)| run.len().max(1));
    for (at, (_, run)) in lines.iter().enumerate() {
        let mut path = String::new();
        for step in 0..=120_usize {
            let place = (length * step / 120).max(1);
            let x = left + WIDTH * place as f64 / length as f64;
            let word = if step == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{word}{x:.1} {:.1}", height(run.regret_at(place)));
        }
        let colour = COLOURS.get(at).unwrap_or(&"black");
        let _ = writeln!(svg, "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>");
    }
    let _ = writeln!(
        svg,
        "<text x=\"{left}\" y=\"298\" fill=\"#444\">tasks lost (regret) over {length} dispatches</text>"
    );
}
