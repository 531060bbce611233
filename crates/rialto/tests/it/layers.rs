//! The arrows between crates, and who owns which library.
//!
//! Cargo forbids cycles, not knots. Each arrow stands in the table with the same commit that draws it, and the drawing
//! in `docs/ARCHITECTURE.md` is made from what cargo says.

use std::{collections::BTreeMap, path::Path, process::Command};

use serde_json::Value;

/// Who may use whom.
const MAY_USE: &[(&str, &[&str])] = &[
    (
        "rialto",
        &[
            "rialto-a2a-client",
            "rialto-a2a-codec",
            "rialto-a2a-server",
            "rialto-acp-client",
            "rialto-admin",
            "rialto-api",
            "rialto-api-types",
            "rialto-console",
            "rialto-demo",
            "rialto-engine",
            "rialto-functions",
            "rialto-guardrails",
            "rialto-http-client",
            "rialto-http-server",
            "rialto-mcp-client",
            "rialto-mcp-server",
            "rialto-model",
            "rialto-policy",
            "rialto-process",
            "rialto-secrets",
            "rialto-store",
            "rialto-telemetry",
            "rialto-webhooks",
            "rialto-workflow",
        ],
    ),
    // The two directions of A2A share the wire format and the marker of this installation, which the engine has.
    (
        "rialto-a2a-client",
        &[
            "rialto-a2a-codec",
            "rialto-engine",
            "rialto-http-client",
            "rialto-http-server",
            "rialto-model",
            "rialto-policy",
        ],
    ),
    ("rialto-a2a-codec", &["rialto-model"]),
    (
        "rialto-a2a-server",
        &[
            "rialto-a2a-codec",
            "rialto-engine",
            "rialto-http-client",
            "rialto-http-server",
            "rialto-model",
            "rialto-policy",
        ],
    ),
    // Coding agents on this machine.
    ("rialto-acp-client", &["rialto-engine", "rialto-model", "rialto-policy", "rialto-process"]),
    // Every administrative operation, for pages, API and commands.
    (
        "rialto-admin",
        &[
            "rialto-api-types",
            "rialto-engine",
            "rialto-guardrails",
            "rialto-http-server",
            "rialto-model",
            "rialto-policy",
            "rialto-webhooks",
            "rialto-workflow",
        ],
    ),
    (
        "rialto-api",
        &[
            "rialto-admin",
            "rialto-api-types",
            "rialto-engine",
            "rialto-guardrails",
            "rialto-http-server",
            "rialto-model",
            "rialto-policy",
            "rialto-webhooks",
            "rialto-workflow",
        ],
    ),
    // Requests and responses of /api/v1: one definition for the server, the command line and the OpenAPI document.
    ("rialto-api-types", &["rialto-model"]),
    // The load harness measures the codecs, the guardrails and the choice of agents directly, and starts PostgreSQL as tests do.
    (
        "rialto-bench",
        &["rialto-a2a-codec", "rialto-guardrails", "rialto-model", "rialto-routing", "rialto-testkit"],
    ),
    // Pages and the API: administration for people and programs. The audit log is watched as it grows.
    (
        "rialto-console",
        &[
            "rialto-admin",
            "rialto-api-types",
            "rialto-engine",
            "rialto-guardrails",
            "rialto-http-server",
            "rialto-model",
            "rialto-policy",
            "rialto-workflow",
        ],
    ),
    // The agents of `rialto demo` share no code with the codecs that they exercise; its client reads event streams.
    ("rialto-demo", &["rialto-a2a-codec", "rialto-http-client"]),
    // Every call passes the guardrails, whatever server it came in by.
    ("rialto-engine", &["rialto-guardrails", "rialto-model", "rialto-policy", "rialto-routing"]),
    // Functions, and the plain HTTP server.
    (
        "rialto-functions",
        &[
            "rialto-engine",
            "rialto-http-client",
            "rialto-http-server",
            "rialto-model",
            "rialto-policy",
            "rialto-process",
        ],
    ),
    // Content checks: pure, so that they can be tried beforehand and measured.
    ("rialto-guardrails", &["rialto-model"]),
    ("rialto-http-client", &["rialto-model"]),
    // Fetches the keys of identity providers with the one outbound client.
    ("rialto-http-server", &["rialto-http-client", "rialto-model"]),
    // Neither direction of MCP uses the other: what they share is in the model.
    (
        "rialto-mcp-client",
        &["rialto-engine", "rialto-http-client", "rialto-model", "rialto-policy", "rialto-process"],
    ),
    (
        "rialto-mcp-server",
        &[
            "rialto-engine",
            "rialto-http-client",
            "rialto-http-server",
            "rialto-model",
            "rialto-policy",
            "rialto-process",
        ],
    ),
    ("rialto-model", &[]),
    ("rialto-policy", &["rialto-model"]),
    ("rialto-process", &["rialto-model"]),
    // Agent selection: pure, so that it can be simulated.
    ("rialto-routing", &["rialto-model"]),
    // The key to the secrets in the store.
    ("rialto-secrets", &["rialto-engine", "rialto-model", "rialto-store"]),
    ("rialto-store", &["rialto-model"]),
    // Metrics, health, logs and traces; secrets are masked in log lines.
    (
        "rialto-telemetry",
        &["rialto-engine", "rialto-guardrails", "rialto-http-client", "rialto-http-server", "rialto-model"],
    ),
    ("rialto-testkit", &["rialto-engine", "rialto-model", "rialto-policy"]),
    ("rialto-webhooks", &["rialto-http-client", "rialto-model"]),
    // Each step of a workflow is a call of the engine.
    ("rialto-workflow", &["rialto-engine", "rialto-model", "rialto-policy"]),
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
    ("agent-client-protocol", &["rialto-acp-client"]),
    ("aho-corasick", &["rialto-guardrails"]),
    // Encrypts what is kept, and makes the key that cards are signed with; rustls brings it anyway.
    ("aws-lc-rs", &["rialto", "rialto-store"]),
    (
        "axum",
        &[
            "rialto",
            "rialto-a2a-server",
            "rialto-api",
            "rialto-console",
            "rialto-demo",
            "rialto-functions",
            "rialto-http-server",
            "rialto-mcp-server",
            "rialto-telemetry",
        ],
    ),
    (
        "base64",
        &[
            "rialto",
            "rialto-a2a-client",
            "rialto-a2a-codec",
            "rialto-a2a-server",
            "rialto-acp-client",
            "rialto-console",
            "rialto-functions",
            "rialto-guardrails",
            "rialto-http-server",
            "rialto-mcp-server",
            "rialto-webhooks",
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
    ("croner", &["rialto-workflow"]),
    ("deadpool-postgres", &["rialto-store"]),
    ("flate2", &["rialto-http-client"]),
    ("foldhash", &["rialto-model"]),
    ("getrandom", &["rialto"]),
    ("governor", &["rialto-http-server"]),
    // Tells requests that an HTTP/2 server refused from those that it may have processed.
    ("h2", &["rialto-http-client"]),
    // Signs what webhooks are told, and seals what MCP clients and forms of browsers bring back.
    ("hmac", &["rialto-http-server", "rialto-mcp-server", "rialto-webhooks"]),
    ("http-body", &["rialto-a2a-server", "rialto-http-client", "rialto-http-server"]),
    (
        "http-body-util",
        &[
            "rialto-a2a-server",
            "rialto-bench",
            "rialto-http-client",
            "rialto-http-server",
            "rialto-mcp-server",
        ],
    ),
    ("hyper", &["rialto-bench", "rialto-http-client", "rialto-http-server"]),
    ("hyper-rustls", &["rialto-http-client"]),
    ("hyper-util", &["rialto-bench", "rialto-http-client", "rialto-http-server"]),
    ("indicatif", &["rialto"]),
    // Arguments are held against skills' schemas, messages against those of guardrails.
    ("jsonschema", &["rialto-engine", "rialto-guardrails"]),
    // Cards are signed on one side, callers' tokens on the other.
    ("jsonwebtoken", &["rialto-a2a-codec", "rialto-http-server"]),
    // Pages are written with it.
    ("maud", &["rialto-console"]),
    ("memchr", &["rialto-a2a-client", "rialto-guardrails"]),
    ("miette", &["rialto-policy"]),
    ("mimalloc", &["rialto"]),
    ("moka", &["rialto-policy"]),
    ("multer", &["rialto-functions"]),
    ("opentelemetry-proto", &["rialto-telemetry"]),
    ("pin-project-lite", &["rialto-http-server"]),
    ("prometheus-client", &["rialto-telemetry"]),
    ("prost", &["rialto-telemetry"]),
    ("rand", &["rialto-a2a-client", "rialto-bench", "rialto-engine", "rialto-routing", "rialto-webhooks"]),
    ("rand_distr", &["rialto-routing"]),
    ("refinery", &["rialto-store"]),
    ("regex", &["rialto-guardrails"]),
    ("rmcp", &["rialto-mcp-client", "rialto-mcp-server"]),
    ("rusqlite", &["rialto-store"]),
    // Ends groups of processes.
    ("rustix", &["rialto-http-client", "rialto-http-server", "rialto-process", "rialto-store"]),
    // What leaves over HTTP, and the way to a database.
    ("rustls", &["rialto-http-client", "rialto-http-server", "rialto-store"]),
    // The names in the certificates of clients.
    ("rustls-webpki", &["rialto-http-server"]),
    // Workflows with the places of what is wrong with them, and with every digit.
    // Workflows are written in YAML, and so are the configurations of some MCP clients.
    ("saphyr-parser", &["rialto", "rialto-workflow"]),
    ("serde_json_canonicalizer", &["rialto-a2a-codec"]),
    ("serde_path_to_error", &["rialto"]),
    (
        "sha2",
        &[
            "rialto-a2a-codec",
            "rialto-engine",
            "rialto-http-server",
            "rialto-mcp-server",
            "rialto-store",
            "rialto-webhooks",
        ],
    ),
    // The events that rmcp's HTTP client wants from whoever fetches for it.
    ("sse-stream", &["rialto-mcp-client"]),
    ("subtle", &["rialto-http-server"]),
    ("tempfile", &["rialto-bench", "rialto-testkit"]),
    ("tokio-postgres", &["rialto-store"]),
    ("tokio-rustls", &["rialto-http-server", "rialto-store"]),
    ("toml", &["rialto"]),
    ("tower", &["rialto-http-client", "rialto-http-server"]),
    ("tracing-subscriber", &["rialto-telemetry"]),
    ("uuid", &["rialto-model"]),
    ("vm-memory", &["rialto-store"]),
    ("webpki-roots", &["rialto-store"]),
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
fn every_arrow_of_the_table_is_used() {
    let arrows = arrows();
    assert_eq!(arrows.len(), MAY_USE.len(), "a row for each crate, and no other");
    for (package, allowed) in MAY_USE {
        let used = arrows.get(*package).unwrap_or_else(|| panic!("there is no crate {package}"));
        for arrow in *allowed {
            assert!(used.iter().any(|used| used == arrow), "{package} does not use {arrow} any more");
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
fn every_owner_of_a_library_uses_it() {
    let dependencies = dependencies(|name| !is_ours(name));
    for (library, owners) in OWNERS {
        for owner in *owners {
            let used = dependencies.get(*owner).unwrap_or_else(|| panic!("there is no crate {owner}"));
            assert!(used.iter().any(|used| used == library), "{owner} does not use {library} any more");
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
