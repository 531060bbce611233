//! Any text as a workflow: refused with the places of what is wrong, or sound enough to be drawn in every way.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rialto_flow::{
    graph::{Format, Marks, draw},
    read::{Source, json, workflow},
};

fuzz_target!(|text: &str| {
    if let Ok(told) = json(text) {
        json(told.get()).expect("JSON is read as JSON");
    }
    match workflow(Source { text, name: "any", kind: None }) {
        Ok(read) => {
            for format in [Format::Text, Format::Mermaid, Format::Svg] {
                draw(&read, format, &Marks::new());
            }
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            assert!(problems.iter().all(|problem| problem.place.line > 0 && problem.place.column > 0));
            problems.render("any", text);
        }
    }
});
