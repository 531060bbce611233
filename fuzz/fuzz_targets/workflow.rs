//! Any text as a workflow: refused with the places of what is wrong, or sound enough to be drawn in every way.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rialto_workflow::{
    graph::{DrawingFormat, NodeMarkers, draw},
    read::{DefinitionSource, json, workflow},
};

fuzz_target!(|text: &str| {
    if let Ok(told) = json(text) {
        json(told.get()).expect("JSON is read as JSON");
    }
    match workflow(DefinitionSource { text, name: "any", kind: None }) {
        Ok(read) => {
            for format in [DrawingFormat::Text, DrawingFormat::Mermaid, DrawingFormat::Svg] {
                draw(&read, format, &NodeMarkers::new());
            }
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            assert!(problems.iter().all(|problem| problem.place.line > 0 && problem.place.column > 0));
            problems.render("any", text);
        }
    }
});
