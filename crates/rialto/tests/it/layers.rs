//! The arrows between crates, and who owns which library.
//!
//! Cargo forbids cycles, not knots. Each arrow stands in the table with the same commit that draws it, and the drawing
//! in `docs/ARCHITECTURE.md` is made from what cargo says.

use std::{collections::BTreeMap, path::Path, process::Command};

use serde_json::Value;

/// Who may use whom.
const MAY_USE: &[(&str, &[&str])] = &[
    ("rialto-model", &[]),
    ("rialto-a2a-wire", &["rialto-model"]),
    // Requests and responses of /api/v1: one definition for the server, the command line and the OpenAPI document.
    ("rialto-api-types", &["rialto-model"]),
    ("rialto-policy", &["rialto-model"]),
    // Who should do some work: pure, so that it can be simulated.
    ("rialto-route", &["rialto-model"]),
    // What may be said: pure, so that it can be tried out beforehand and measured.
    ("rialto-guard", &["rialto-model"]),
    // Every call passes the guardrails, whatever door it came in by.
    ("rialto-engine", &["rialto-guard", "rialto-model", "rialto-policy", "rialto-route"]),
    // Work in many steps: what a workflow is, and who runs it. Each step is a call of the engine.
    ("rialto-flow", &["rialto-model", "rialto-policy", "rialto-engine"]),
    ("rialto-store", &["rialto-model"]),
    ("rialto-edge", &["rialto-model"]),
    ("rialto-hooks", &["rialto-model", "rialto-edge"]),
    // Functions, and the door to everything in plain HTTP.
    ("rialto-function", &["rialto-model", "rialto-policy", "rialto-engine", "rialto-edge"]),
    ("rialto-mcp", &["rialto-model", "rialto-policy", "rialto-engine", "rialto-edge"]),
    // What a person sees and changes, as pages and as an API.
    (
        "rialto-console",
        &[
            "rialto-api-types",
            "rialto-model",
            "rialto-policy",
            "rialto-engine",
            "rialto-edge",
            "rialto-flow",
            "rialto-guard",
            // What comes on record is watched as it comes.
            "rialto-hooks",
        ],
    ),
    ("rialto-a2a", &["rialto-model", "rialto-policy", "rialto-engine", "rialto-edge", "rialto-a2a-wire"]),
    // Coding agents on this machine.
    ("rialto-acp", &["rialto-model", "rialto-policy", "rialto-engine", "rialto-edge"]),
    // The agents of `rialto demo` share no code with the codecs that they exercise; its client reads event streams.
    ("rialto-demo", &["rialto-a2a-wire", "rialto-edge"]),
    // The key to the secrets in the store.
    ("rialto-secrets", &["rialto-model", "rialto-engine", "rialto-store"]),
    // Metrics, health, logs and traces; secrets are masked in log lines.
    ("rialto-telemetry", &["rialto-model", "rialto-engine", "rialto-edge", "rialto-guard"]),
    (
        "rialto",
        &[
            "rialto-model",
            "rialto-policy",
            "rialto-engine",
            "rialto-store",
            "rialto-edge",
            "rialto-hooks",
            "rialto-mcp",
            "rialto-a2a",
            "rialto-acp",
            "rialto-a2a-wire",
            "rialto-api-types",
            "rialto-flow",
            "rialto-function",
            "rialto-guard",
            "rialto-console",
            "rialto-demo",
            "rialto-telemetry",
            "rialto-secrets",
        ],
    ),
    ("rialto-testkit", &["rialto-model", "rialto-policy", "rialto-engine"]),
    // The load harness measures the codecs, the guardrails and the choice of agents directly, and starts PostgreSQL as tests do.
    ("rialto-bench", &["rialto-model", "rialto-a2a-wire", "rialto-guard", "rialto-route", "rialto-testkit"]),
];

/// Libraries that are words of the language: any crate may use them.
const EVERYBODY: &[&str] = &[
    "arc-swap",
    "async-trait",
    "bytes",
    "futures",
    "http",
    "jiff",
    "parking_lot",
    "schemars",
    "serde",
    "serde_json",
    "thiserror",
    "tokio",
    "tokio-util",
    "tracing",
    "url",
];

/// Every other library, and the crates that may name it.
const OWNERS: &[(&str, &[&str])] = &[
    ("agent-client-protocol", &["rialto-acp"]),
    ("aho-corasick", &["rialto-engine", "rialto-guard"]),
    // Encrypts what is kept, and makes the key that cards are signed with; rustls brings it anyway.
    ("aws-lc-rs", &["rialto", "rialto-store"]),
    (
        "axum",
        &[
            "rialto-a2a",
            "rialto-console",
            "rialto-demo",
            "rialto-edge",
            "rialto-function",
            "rialto-mcp",
            "rialto-telemetry",
            "rialto",
        ],
    ),
    (
        "base64",
        &[
            "rialto",
            "rialto-a2a",
            "rialto-a2a-wire",
            "rialto-acp",
            "rialto-console",
            "rialto-edge",
            "rialto-function",
            "rialto-guard",
            "rialto-hooks",
            "rialto-mcp",
        ],
    ),
    ("cedar-policy", &["rialto-policy"]),
    ("cedar-policy-formatter", &["rialto-policy"]),
    ("clap", &["rialto", "rialto-bench"]),
    ("clap_complete", &["rialto"]),
    ("comfy-table", &["rialto"]),
    ("console", &["rialto"]),
    ("crc32fast", &["rialto-store"]),
    // Moments at which workflows begin.
    ("croner", &["rialto-flow"]),
    ("deadpool-postgres", &["rialto-store"]),
    ("flate2", &["rialto-edge"]),
    ("foldhash", &["rialto-model"]),
    ("getrandom", &["rialto"]),
    ("governor", &["rialto-edge"]),
    // Tells requests that an HTTP/2 server refused from those that it may have processed.
    ("h2", &["rialto-edge"]),
    // Signs what webhooks are told, and seals what MCP clients and forms of browsers bring back.
    ("hmac", &["rialto-edge", "rialto-hooks", "rialto-mcp"]),
    ("http-body", &["rialto-edge", "rialto-a2a", "rialto-mcp"]),
    ("http-body-util", &["rialto-edge", "rialto-a2a", "rialto-mcp", "rialto-bench"]),
    ("hyper", &["rialto-edge", "rialto-bench"]),
    ("hyper-rustls", &["rialto-edge"]),
    ("hyper-util", &["rialto-edge", "rialto-bench"]),
    ("indicatif", &["rialto"]),
    // Arguments are held against skills' schemas, messages against those of guardrails.
    ("jsonschema", &["rialto-engine", "rialto-guard"]),
    // Cards are signed on one side, callers' tokens on the other.
    ("jsonwebtoken", &["rialto-a2a-wire", "rialto-edge"]),
    // Pages are written with it.
    ("maud", &["rialto-console"]),
    ("memchr", &["rialto-a2a", "rialto-guard"]),
    ("miette", &["rialto-policy"]),
    ("mimalloc", &["rialto"]),
    ("multer", &["rialto-function"]),
    ("moka", &["rialto-policy"]),
    ("opentelemetry-proto", &["rialto-telemetry"]),
    ("pin-project-lite", &["rialto-edge"]),
    ("prometheus-client", &["rialto-telemetry"]),
    ("prost", &["rialto-telemetry"]),
    ("rand", &["rialto-engine", "rialto-a2a", "rialto-bench", "rialto-hooks", "rialto-route"]),
    ("rand_distr", &["rialto-route"]),
    ("refinery", &["rialto-store"]),
    ("regex", &["rialto-guard"]),
    ("rmcp", &["rialto-mcp"]),
    ("rusqlite", &["rialto-store"]),
    // Ends groups of processes.
    ("rustix", &["rialto-edge", "rialto-store"]),
    // What leaves over HTTP, and the way to a database.
    ("rustls", &["rialto-edge", "rialto-store"]),
    // The names in the certificates of clients.
    ("rustls-webpki", &["rialto-edge"]),
    // Workflows with the places of what is wrong with them, and with every digit.
    // Workflows are written in YAML, and so are the configurations of some MCP clients.
    ("saphyr-parser", &["rialto", "rialto-flow"]),
    ("serde_json_canonicalizer", &["rialto-a2a-wire"]),
    ("serde_path_to_error", &["rialto"]),
    (
        "sha2",
        &["rialto-a2a-wire", "rialto-edge", "rialto-engine", "rialto-hooks", "rialto-mcp", "rialto-store"],
    ),
    // The events that rmcp's HTTP client wants from whoever fetches for it.
    ("sse-stream", &["rialto-mcp"]),
    ("subtle", &["rialto-edge"]),
    ("tempfile", &["rialto-bench", "rialto-testkit"]),
    ("tokio-postgres", &["rialto-store"]),
    ("tokio-rustls", &["rialto-edge", "rialto-store"]),
    ("toml", &["rialto"]),
    ("tower", &["rialto-edge", "rialto-mcp"]),
    ("tracing-subscriber", &["rialto-telemetry"]),
    ("uuid", &["rialto-model"]),
    ("vm-memory", &["rialto-store"]),
    ("webpki-roots", &["rialto-edge", "rialto-store"]),
    ("zeroize", &["rialto-model"]),
];

#[test]
fn every_arrow_is_in_the_table() {
    let may_use: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    for (package, uses) in arrows() {
        let allowed =
            may_use.get(package.as_str()).unwrap_or_else(|| panic!("{package} is not in the table"));
        for used in uses {
            assert!(
                allowed.contains(&used.as_str()),
                "{package} uses {used}, which the table does not allow"
            );
        }
    }
}

#[test]
fn every_library_has_its_owners() {
    let owners: BTreeMap<&str, &[&str]> = OWNERS.iter().copied().collect();
    for (package, libraries) in dependencies(|name| !is_ours(name)) {
        for library in libraries.iter().filter(|library| !EVERYBODY.contains(&library.as_str())) {
            let owners = owners.get(library.as_str()).unwrap_or_else(|| panic!("{library} has no owner"));
            assert!(
                owners.contains(&package.as_str()),
                "{package} names {library}, whose owners are {owners:?}"
            );
        }
    }
}

#[test]
fn the_drawing_in_the_architecture_page_is_true() {
    let mut drawing = String::from("```mermaid\ngraph TD\n");
    for (package, uses) in arrows() {
        for used in uses {
            drawing += &format!("  {} --> {}\n", short(&package), short(&used));
        }
    }
    drawing += "```";
    let page = std::fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    assert!(page.contains(&drawing), "docs/ARCHITECTURE.md must contain this drawing:\n\n{drawing}\n");
}

fn arrows() -> BTreeMap<String, Vec<String>> {
    dependencies(is_ours)
}

/// The ordinary dependencies of each of our packages.
fn dependencies(wanted: impl Fn(&str) -> bool) -> BTreeMap<String, Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut found = BTreeMap::new();
    for package in metadata["packages"].as_array().unwrap() {
        let mut names: Vec<String> = package["dependencies"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|dependency| dependency["kind"].is_null())
            .map(|dependency| dependency["name"].as_str().unwrap().to_owned())
            .filter(|name| wanted(name))
            .collect();
        names.sort();
        found.insert(package["name"].as_str().unwrap().to_owned(), names);
    }
    found
}

fn is_ours(name: &str) -> bool {
    name == "rialto" || name.starts_with("rialto-")
}

fn short(package: &str) -> &str {
    package.strip_prefix("rialto-").unwrap_or(package)
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().and_then(Path::parent).unwrap()
}

#[test]
fn every_path_that_the_architecture_page_names_exists() {
    let text = std::fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let paths: Vec<&str> = text.split('`').filter(|part| part.starts_with("crates/")).collect();
    assert!(paths.len() > 30, "{paths:?}");
    let missing: Vec<_> = paths.iter().filter(|path| !root().join(path).exists()).collect();
    assert!(missing.is_empty(), "docs/ARCHITECTURE.md names {missing:?}");
}
