//! Any text at all: it is read or refused, and what is read is sound.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::*;
use crate::{
    condition::Condition,
    graph::{self, DrawingFormat, NodeMarkers},
    reference::ReferenceRoot,
};

const SEEDS: [&str; 4] = [
    include_str!("../../../../../examples/workflows/code-review.yaml"),
    include_str!("../../../../../examples/workflows/release.yaml"),
    include_str!("../../../../../examples/workflows/summarize-and-translate.yaml"),
    r#"{"nodes": {"a": {"tool": "t", "args": {"x": [1, 2.50, null, "{{ $input.x ?? 'd' }}"]}}, "b": {"if": "{{ nodes.a.x }} in [1]", "then": ["c"]}, "c": {"over": [1], "do": {"tool": "t", "args": {"i": "{{ item }}"}}}}}"#,
];

const WORDS: [&str; 40] = [
    "nodes:",
    "steps:",
    "\n",
    "\n  ",
    "\n    ",
    "- ",
    "id: a",
    "id: b",
    "type: ",
    "tool: t",
    "agent: x",
    "parallel: ",
    "{",
    "}",
    "[",
    "]",
    ", ",
    ": ",
    "\"",
    "'",
    "{{ ",
    " }}",
    "nodes.a.x",
    "$input",
    "item",
    " ?? ",
    "&a ",
    "*a",
    "!!str ",
    "|",
    ">",
    "#",
    "---",
    "if: ",
    "then: b",
    "needs: [a]",
    "1.50",
    "~",
    "\\",
    "over: [1]",
];

/// Checks that a parsed workflow is sound, and that an error has a reason and a position.
fn check(text: &str) -> Result<(), TestCaseError> {
    let _ = json(text);
    match workflow(DefinitionSource { text, name: "any", kind: None }) {
        Ok(read) => {
            let ids: BTreeSet<&str> = read.nodes.iter().map(|node| node.id.as_str()).collect();
            prop_assert_eq!(ids.len(), read.nodes.len());
            let mut done: BTreeSet<&str> = BTreeSet::new();
            while done.len() < read.nodes.len() {
                let is_ready = |node: &&crate::definition::WorkflowNode| {
                    !done.contains(node.id.as_str()) && node.needs.iter().all(|id| done.contains(id.as_str()))
                };
                let next: Vec<_> = read.nodes.iter().filter(is_ready).map(|node| node.id.as_str()).collect();
                prop_assert!(!next.is_empty(), "nothing can go on");
                done.extend(next);
            }
            for format in [DrawingFormat::Text, DrawingFormat::Mermaid, DrawingFormat::Svg] {
                let _ = graph::draw(&read, format, &NodeMarkers::new());
            }
        }
        Err(problems) => {
            prop_assert!(!problems.is_empty());
            prop_assert!(problems.iter().all(|problem| problem.place.line > 0 && problem.place.column > 0));
            let _ = problems.render("any", text);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_text_is_read_or_refused(text in "(?s).{0,200}") {
        check(&text)?;
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn any_words_of_yaml_are_read_or_refused(words in prop::collection::vec(prop::sample::select(&WORDS), 0..40)) {
        check(&words.concat())?;
    }

    #[test]
    fn a_workflow_that_was_spoilt_is_read_or_refused(
        seed in prop::sample::select(&SEEDS),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), prop::sample::select(&WORDS)), 1..4),
    ) {
        let mut text = seed.to_owned();
        for (from, length, word) in cuts {
            let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            if starts.is_empty() {
                break;
            }
            let from = from.index(starts.len());
            let to = (from + length.index(12)).min(starts.len() - 1);
            text.replace_range(starts[from]..starts[to], word);
        }
        check(&text)?;
    }

    #[test]
    fn a_number_goes_through_a_file_as_it_is(number in "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?") {
        let yaml = format!("x: {number}\ny: [{number}, \"{number}\"]\n");
        let expected = format!("{{\"x\":{number},\"y\":[{number},\"{number}\"]}}");
        let read = json(&yaml).unwrap();
        prop_assert_eq!(read.get(), expected.as_str());
        let read = json(&expected).unwrap();
        prop_assert_eq!(read.get(), expected.as_str());
        let test = Condition::parse(&format!("{{{{ item }}}} == {number}")).unwrap();
        let value = Json::parse(&number).unwrap();
        prop_assert!(test.is_true(&|root: &ReferenceRoot| (*root == ReferenceRoot::Item).then(|| value.clone())));
    }
}
