//! Commands without any agent: demo, configuration, doctor, completions.

use serde_json::Value;

use crate::harness::{agent::SampleAgent, http, rialto::Rialto};

#[test]
fn the_demo_shows_everything_and_exits_with_0() {
    let rialto = Rialto::fresh();
    let said = rialto.cli(&["demo", "--once"]).ok();
    for shown in ["weather_desk.forecast", "error -32204", "error -32003", "Everything crossed as it should"]
    {
        assert!(said.out.contains(shown), "{shown} is missing:\n{}", said.out);
    }
    assert!(!rialto.data().exists(), "the demo must leave nothing behind");
}

#[test]
fn the_demo_stays_up_for_other_clients_until_it_is_told_to_stop() {
    let rialto = Rialto::fresh();
    let mut demo = rialto.start(&["demo"]);
    let mut url = None;
    loop {
        let line = demo.line().unwrap_or_else(|| panic!("the demo ended: {}", demo.stderr()));
        let word = line.split_whitespace().find(|word| word.ends_with("/mcp"));
        url = url.or_else(|| word.map(str::to_owned));
        if line.contains("Ctrl-C") {
            break;
        }
    }
    let ask = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let answer =
        http::post(&url.expect("the address is shown"), &[("MCP-Protocol-Version", "2025-06-18")], ask);
    assert!(answer.status == 200 && answer.body.contains("serverInfo"), "{answer:?}");
    demo.signal("INT");
    assert!(demo.end().success(), "{}", demo.stderr());
}

#[test]
fn every_shell_has_its_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let said = Rialto::fresh().cli(&["completions", shell]).ok();
        assert!(said.out.contains("agents") && said.out.contains("rialto"), "{shell}");
    }
}

#[test]
fn the_schema_of_the_configuration_documents_every_section() {
    let schema = Rialto::fresh().json(&["config", "schema"]);
    for section in ["data", "server", "auth", "store", "calls", "outbound", "mcp", "agents", "a2a"] {
        let described = schema["properties"][section]["description"].as_str().unwrap_or_default();
        assert!(!described.is_empty(), "{section}");
    }
}

#[test]
fn a_variable_of_the_environment_overrides_the_file() {
    let rialto =
        Rialto::fresh().with("RIALTO_CALLS__TIMEOUT_MS", "1234").with("A2A_DISCOVERY_TIMEOUT_MS", "77");
    std::fs::write(rialto.folder().join("rialto.toml"), "[calls]\ntimeout_ms = 1\nprobe_interval_secs = 9\n")
        .unwrap();
    let shown = rialto.cli(&["config", "show"]).ok().out;
    for line in ["timeout_ms = 1234", "probe_interval_secs = 9", "discovery_timeout_ms = 77"] {
        assert!(shown.contains(line), "{line} is missing:\n{shown}");
    }
}

#[test]
fn an_unknown_option_is_an_error_that_names_it() {
    let rialto = Rialto::fresh().with("RIALTO_CALLS__TIMEOUT", "1");
    let said = rialto.cli(&["agents", "list"]).exit(2);
    assert!(said.err.contains("timeout"), "{}", said.err);
    let said = Rialto::fresh().cli(&["agents", "list", "--config", "nowhere.toml"]).exit(2);
    assert!(said.err.contains("nowhere.toml"), "{}", said.err);
}

#[test]
fn the_doctor_finds_a_fresh_install_well_and_says_what_to_do_next() {
    let said = Rialto::fresh().with("RIALTO_SERVER__ADDR", "127.0.0.1:0").cli(&["doctor", "--json"]).ok();
    let findings = said.json();
    assert_eq!(level(&findings, "configuration"), "ok");
    assert_eq!(level(&findings, "store"), "ok");
    assert_eq!(level(&findings, "tools"), "warning");
    assert!(finding(&findings, "tools")["fix"].as_str().unwrap().starts_with("rialto agents add"));
}

#[test]
fn the_doctor_names_a_dead_agent_a_missing_token_and_a_missing_permit_and_each_fix() {
    let rialto = Rialto::fresh();
    let (dead, stranger) = (SampleAgent::named("Dead"), SampleAgent::named("Stranger"));
    rialto.trust(&dead.url);
    rialto.cli(&["agents", "add", &stranger.url, "--token-env", "NO_SUCH_VARIABLE"]).ok();
    drop(dead);
    let findings = rialto.cli(&["doctor", "--json"]).exit(1).json();
    let text = findings.to_string();
    assert_eq!(level(&findings, "agent dead"), "error");
    for word in ["rialto agents remove dead", "NO_SUCH_VARIABLE", "rialto policy allow stranger"] {
        assert!(text.contains(word), "{word} is missing: {text}");
    }
}

#[test]
fn the_doctor_names_a_broken_configuration_and_a_broken_policy() {
    let rialto = Rialto::fresh();
    rialto.cli(&["policy", "check"]).ok();
    std::fs::write(rialto.data().join("policies/mine.cedar"), "permit (").unwrap();
    let findings = rialto.cli(&["doctor", "--json"]).exit(1).json();
    assert!(findings.to_string().contains("mine.cedar"), "{findings}");
    std::fs::write(rialto.folder().join("rialto.toml"), "[calls\n").unwrap();
    let findings = rialto.cli(&["doctor", "--json"]).exit(1).json();
    assert_eq!(level(&findings, "configuration"), "error");
}

#[test]
fn a_data_folder_that_cannot_be_used_is_said_so() {
    let rialto = Rialto::fresh();
    std::fs::write(rialto.data(), "a file, not a folder").unwrap();
    let said = rialto.cli(&["agents", "list"]).exit(1);
    assert!(said.err.contains("data"), "{}", said.err);
    let findings = rialto.cli(&["doctor", "--json"]).exit(1).json();
    assert_eq!(level(&findings, "store"), "error");
}

#[track_caller]
fn finding<'a>(findings: &'a Value, what: &str) -> &'a Value {
    let found = findings.as_array().unwrap().iter().find(|finding| finding["what"] == what);
    found.unwrap_or_else(|| panic!("nothing about {what}: {findings}"))
}

#[track_caller]
fn level<'a>(findings: &'a Value, what: &str) -> &'a str {
    finding(findings, what)["level"].as_str().unwrap()
}
