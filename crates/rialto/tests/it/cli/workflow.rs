//! `rialto workflow schema|validate|graph`: valid files, and the problems of invalid ones.

use crate::harness::rialto::Rialto;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/workflows");

fn file(rialto: &Rialto, name: &str, text: &str) -> String {
    let path = rialto.folder().join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn the_examples_are_valid() {
    let rialto = Rialto::fresh();
    let names = ["code-review", "dispatch-qa", "release", "summarize-and-translate"];
    let files: Vec<String> = names.iter().map(|name| format!("{EXAMPLES}/{name}.yaml")).collect();
    let mut arguments = vec!["workflow", "validate"];
    arguments.extend(files.iter().map(String::as_str));
    let out = rialto.cli(&arguments).ok().out;
    assert!(
        out.contains("code-review is valid, 2 nodes") && out.contains("release is valid, 9 nodes"),
        "{out}"
    );
}

#[test]
fn what_is_wrong_is_told_by_file_line_and_column() {
    let rialto = Rialto::fresh();
    let text = "nodes:\n  a: { tool: t, needs: b }\n  bb: { tool: t, args: { x: '{{ nodes.aa.x }}' }, colour: red }\n";
    let wrong = file(&rialto, "wrong.yaml", text);
    let right = file(&rialto, "right.json", r#"{"nodes": {"a": {"tool": "t"}}}"#);
    let told = rialto.cli(&["workflow", "validate", &wrong, &right]).exit(1);
    let expected = format!(
        "{wrong}:2:24: error: there is no node \"b\"\n  2 |   a: {{ tool: t, needs: b }}\n    |                        ^\n\
         {wrong}:3:33: error: nodes.aa.x refers to an unknown node: there is no node \"aa\"; did you mean \"a\"?\n"
    );
    assert!(told.err.starts_with(&expected), "{}\n{expected}", told.err);
    assert!(told.err.contains("unknown key \"colour\""), "{}", told.err);
    assert!(told.err.contains("1 of 2 workflows are not valid"), "{}", told.err);
    assert_eq!(told.out, format!("{right}: right is valid, 1 node\n"));
}

#[test]
fn programs_get_json() {
    let rialto = Rialto::fresh();
    let wrong = file(&rialto, "wrong.yaml", "steps: [{id: a, type: tol}]");
    let told = rialto.cli(&["workflow", "validate", &wrong, "--json"]).exit(1);
    let report: serde_json::Value = serde_json::from_str(&told.out).unwrap();
    let error = &report[0]["errors"][0];
    assert_eq!(report[0]["valid"], false);
    assert_eq!((error["line"].as_u64(), error["column"].as_u64()), (Some(1), Some(23)));
    assert_eq!(error["code"], "unknown-kind");
    assert!(error["message"].as_str().unwrap().ends_with("did you mean \"tool\"?"), "{error}");
    let schema = rialto.json(&["workflow", "schema"]);
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(schema["properties"]["steps"].is_object());
}

#[test]
fn a_workflow_is_drawn() {
    let rialto = Rialto::fresh();
    let release = format!("{EXAMPLES}/release.yaml");
    let text = rialto.cli(&["workflow", "graph", &release]).ok().out;
    assert!(text.starts_with("release (workflow, draft)\n\n1  fetch "), "{text}");
    let mermaid = rialto.cli(&["workflow", "graph", &release, "--format", "mermaid"]).ok().out;
    assert!(mermaid.starts_with("flowchart TD\n") && mermaid.contains("-- then -->"), "{mermaid}");
    let svg = rialto.cli(&["workflow", "graph", &release, "--format", "svg"]).ok().out;
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{svg}");
    let wrong = file(&rialto, "wrong.yaml", "nodes: [");
    assert!(
        rialto
            .cli(&["workflow", "graph", &wrong])
            .exit(1)
            .err
            .contains("wrong.yaml:2:1: error: this is no YAML")
    );
    assert!(rialto.cli(&["workflow", "graph", "nowhere.yaml"]).exit(2).err.contains("nowhere.yaml: "));
}
