use proptest::prelude::*;

use super::{layout::BOX_HEIGHT, *};
use crate::read::{DefinitionSource, workflow};

fn read(text: &str) -> Workflow {
    workflow(DefinitionSource { text, name: "picture", kind: None }).unwrap()
}

const BRANCHES: &str = r#"
nodes:
  fetch: { tool: github.get, args: { url: "{{ $input.url }}" } }
  check: { if: '{{ nodes.fetch.size }} > 10 and "a" in {{ nodes.fetch.tags }}', then: big, else: small }
  big: { agent: "Big <Agent>", skill: 'say "hi" & go' }
  small: { type: approval, question: "Go on with {{ $input.url }}?" }
  join: { type: set, value: "{{ nodes.big ?? nodes.small ?? nodes.fetch }}" }
"#;

#[test]
fn as_text_each_node_has_a_line() {
    let marks =
        NodeMarkers::from([("fetch".into(), NodeMarker::Completed), ("big".into(), NodeMarker::Skipped)]);
    insta::assert_snapshot!(draw(&read(BRANCHES), DrawingFormat::Text, &marks));
}

#[test]
fn as_mermaid_everything_is_escaped() {
    let marks =
        NodeMarkers::from([("fetch".into(), NodeMarker::Completed), ("small".into(), NodeMarker::Held)]);
    insta::assert_snapshot!(draw(&read(BRANCHES), DrawingFormat::Mermaid, &marks));
}

#[test]
fn as_svg_it_is_shapes_and_text_alone() {
    let marks = NodeMarkers::from([("fetch".into(), NodeMarker::Failed)]);
    let svg = draw(&read(BRANCHES), DrawingFormat::Svg, &marks);
    insta::assert_snapshot!(svg);
    let known = ["svg", "title", "path", "g", "rect", "text"];
    for tag in svg.split('<').skip(1).filter(|tag| !tag.starts_with('/')) {
        let name: String = tag.chars().take_while(char::is_ascii_alphabetic).collect();
        assert!(known.contains(&name.as_str()), "{tag}");
    }
    assert!(!svg.contains("href") && !svg.contains("style=") && !svg.contains("& go"));
}

#[test]
fn a_line_that_passes_a_row_goes_around_the_boxes_in_it() {
    let links = [(0, 1), (1, 2), (0, 2)].map(|(from, to)| GraphLink { from, to, branch: None });
    let layout = layout::lay_out(&[100.0; 3], &links);
    let [_, lane, _] = layout.lines[2].as_slice() else { panic!("{layout:?}") };
    assert!(
        (lane.x - layout.boxes[1].x).abs() > 50.0 && (lane.y - layout.boxes[1].y).abs() < 1.0,
        "{layout:?}"
    );
}

#[test]
fn lines_that_follow_from_others_are_left_out() {
    let read = read(
        "nodes: {a: {tool: t}, b: {tool: t, needs: a}, c: {tool: t, needs: [a, b]}, d: {tool: t, needs: [c, a]}}",
    );
    let drawn: Vec<_> = links(&read).iter().map(|link| (link.from, link.to)).collect();
    assert_eq!(drawn, [(0, 1), (1, 2), (2, 3)]);
}

/// A graph without circles, of nodes that each need some of those before them.
fn any_graph() -> impl Strategy<Value = (Vec<f64>, Vec<GraphLink>)> {
    (1_usize..40).prop_flat_map(|nodes| {
        let widths = prop::collection::vec(10.0_f64..400.0, nodes);
        let links = prop::collection::vec((0..nodes, 0..nodes), 0..80);
        let links = links.prop_map(|links| {
            let ordered = links.into_iter().filter(|(from, to)| from != to);
            ordered
                .map(|(one, other)| GraphLink { from: one.min(other), to: one.max(other), branch: None })
                .collect()
        });
        (widths, links)
    })
}

proptest! {
    #[test]
    fn boxes_never_overlap_and_all_is_inside_the_picture((widths, links) in any_graph()) {
        let layout = layout::lay_out(&widths, &links);
        for (at, middle) in layout.boxes.iter().enumerate() {
            let half = widths[at] / 2.0;
            prop_assert!(middle.x - half >= 0.0 && middle.x + half <= layout.width + 0.1);
            prop_assert!(middle.y - BOX_HEIGHT / 2.0 >= 0.0 && middle.y + BOX_HEIGHT / 2.0 <= layout.height + 0.1);
            for (other, place) in layout.boxes.iter().enumerate().skip(at + 1) {
                let is_apart = (middle.x - place.x).abs() >= (widths[at] + widths[other]) / 2.0;
                prop_assert!(is_apart || (middle.y - place.y).abs() >= BOX_HEIGHT, "{at} and {other}: {layout:?}");
            }
        }
        for (link, line) in links.iter().zip(&layout.lines) {
            prop_assert!(line.windows(2).all(|pair| pair[0].y < pair[1].y), "lines go down");
            prop_assert_eq!(line.first().map(|point| point.x), Some(layout.boxes[link.from].x));
        }
    }

    #[test]
    fn any_graph_at_all_is_laid_out(nodes in 1_usize..30, links in prop::collection::vec((0_usize..30, 0_usize..30), 0..60)) {
        let links: Vec<GraphLink> = links
            .into_iter()
            .filter(|(from, to)| *from < nodes && *to < nodes)
            .map(|(from, to)| GraphLink { from, to, branch: None })
            .collect();
        let layout = layout::lay_out(&vec![50.0; nodes], &links);
        prop_assert!(layout.width.is_finite() && layout.height.is_finite());
    }
}
