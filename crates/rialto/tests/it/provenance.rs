//! What comes into the tree: its licences, where it is from, and what must never be in it, as `deny.toml` says. `cargo deny` checks the
//! same and more; this needs nothing but cargo, so it is never left out.

use std::{collections::BTreeSet, process::Command};

use serde_json::Value;

use crate::harness::root;

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// What `deny.toml` says.
struct Rules {
    licences: Vec<String>,
    banned: Vec<String>,
}

// === impl Rules ===

impl Rules {
    fn read() -> Self {
        let text = std::fs::read_to_string(root().join("deny.toml")).unwrap();
        let table: toml::Table = text.parse().unwrap();
        let list = |section: &str, key: &str| -> Vec<String> {
            let items = table[section][key].as_array().unwrap();
            items.iter().map(|item| item.as_str().unwrap().to_owned()).collect()
        };
        Self { licences: list("licenses", "allow"), banned: list("bans", "deny") }
    }

    /// Evaluates an SPDX licence expression against the allowed licences.
    fn allow(&self, expression: &str) -> bool {
        let parsed = spdx::Expression::parse_mode(expression, spdx::ParseMode::LAX);
        let parsed = parsed.unwrap_or_else(|error| panic!("{expression}: {error}"));
        parsed.evaluate(|requirement| {
            let whole = requirement.to_string();
            self.licences.iter().any(|allowed| {
                *allowed == whole
                    || whole.strip_prefix(allowed).is_some_and(|rest| rest.starts_with(" WITH "))
            })
        })
    }
}

/// Everything that is in the tree on this machine's platform: of the others not everything is here to be looked at.
fn packages() -> Vec<Value> {
    let compiler = Command::new("rustc").arg("-vV").current_dir(root()).output().unwrap();
    let about = String::from_utf8(compiler.stdout).unwrap();
    let host = about.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let arguments = ["metadata", "--format-version=1", "--offline", "--locked", "--filter-platform", host];
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let used: Vec<Value> = nodes.iter().map(|node| node["id"].clone()).collect();
    let Value::Array(packages) = metadata["packages"].take() else { panic!("cargo names no packages") };
    packages.into_iter().filter(|package| used.contains(&package["id"])).collect()
}

#[test]
fn everything_in_the_tree_has_a_licence_that_is_allowed() {
    let rules = Rules::read();
    for package in packages() {
        let licence = package["license"].as_str().unwrap_or_else(|| panic!("{} has none", package["name"]));
        assert!(rules.allow(licence), "{}: {licence}", package["name"]);
    }
}

#[test]
fn nothing_in_the_tree_is_banned() {
    let rules = Rules::read();
    // What cargo's metadata names may be switched off; the tree holds only what is not.
    let arguments = ["tree", "--workspace", "--edges=all", "--prefix=none", "--offline", "--locked"];
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    let names: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains("rialto-model") && names.contains("tokio"), "{names:?}");
    for banned in &rules.banned {
        assert!(!names.contains(banned.as_str()), "{banned} must not be in the tree");
    }
}

#[test]
fn nothing_of_ours_takes_any_version_of_a_library() {
    for package in packages().iter().filter(|package| package["source"].is_null()) {
        for needed in package["dependencies"].as_array().unwrap() {
            let is_open = needed["req"] == "*" && !needed["path"].is_string();
            assert!(!is_open, "{} takes any {}", package["name"], needed["name"]);
        }
    }
}

#[test]
fn everything_is_ours_or_from_the_registry_on_every_platform() {
    let text = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let lock: toml::Table = text.parse().unwrap();
    for package in lock["package"].as_array().unwrap() {
        let source = package.get("source").and_then(toml::Value::as_str);
        assert!(source.is_none_or(|source| source == CRATES_IO), "{} is from {source:?}", package["name"]);
    }
}

#[test]
fn a_choice_is_enough_and_a_sum_needs_all() {
    let rules = Rules { licences: vec!["MIT".into(), "ISC".into()], banned: Vec::new() };
    for allowed in
        ["MIT", "MIT OR GPL-3.0", "GPL-3.0/MIT", "(GPL-3.0 OR MIT) AND ISC", "MIT WITH LLVM-exception"]
    {
        assert!(rules.allow(allowed), "{allowed}");
    }
    for refused in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR GPL-3.0) AND GPL-3.0"] {
        assert!(!rules.allow(refused), "{refused}");
    }
}
