use std::sync::Arc;

use proptest::prelude::*;
use rialto_model::name;
use rialto_testkit::agents::{agent, skill};

use super::*;

fn entry(agent_name: &str, skill_id: &str) -> Entry {
    let agent = Arc::new(agent(agent_name, vec![skill(skill_id)]));
    Entry {
        canonical: name::canonical(&agent.slug, skill_id),
        legacy: name::legacy(&agent.slug, skill_id),
        skill: Arc::clone(&agent.card.skills[0]),
        agent,
    }
}

fn listed(client: &str, mode: ToolNames, entry: &Entry) -> Vec<String> {
    Naming::of(client, mode).names(entry)
}

#[test]
fn clients_not_known_to_accept_dots_are_shown_the_alias() {
    let entry = entry("Linear (prod)", "create-issue");
    for client in [
        "claude-ai",
        "Anthropic/ClaudeAI",
        "cursor-vscode",
        "Visual Studio Code - Insiders",
        "github-copilot-developer",
        "openai-mcp",
        "mcp",
        "langchain-mcp",
        "cursory",
        "rialto",
        "",
    ] {
        assert_eq!(listed(client, ToolNames::Auto, &entry), ["a2a_linear_prod_create_issue"], "{client}");
    }
    for client in [
        "claude-code",
        "gemini-cli-mcp-client",
        "codex-mcp-client",
        "inspector-client",
        "inspector-cli",
        "mcp-inspector-tui",
        "rialto-demo",
    ] {
        assert_eq!(listed(client, ToolNames::Auto, &entry), ["linear_prod.create-issue"], "{client}");
    }
}

#[test]
fn what_was_asked_for_goes_before_what_the_client_prefers() {
    let entry = entry("a", "b");
    assert_eq!(listed("claude-ai", ToolNames::Canonical, &entry), ["a.b"]);
    assert_eq!(listed("mcp", ToolNames::Legacy, &entry), ["a2a_a_b"]);
    assert_eq!(listed("mcp", ToolNames::Both, &entry), ["a.b", "a2a_a_b"]);
}

#[test]
fn what_mcp_does_not_allow_in_a_name_is_never_listed() {
    let entry = entry("a", "pipeline:größe / x");
    assert_eq!(listed("mcp", ToolNames::Auto, &entry), ["a2a_a_pipeline_gr_e_x"]);
    assert_eq!(listed("mcp", ToolNames::Both, &entry), ["a2a_a_pipeline_gr_e_x"]);
}

#[test]
fn a_name_that_is_too_long_is_cut_and_ends_in_a_hash() {
    let entry = entry("An agent with a very long name", "a-skill-with-an-even-longer-name-than-that");
    assert_eq!(
        listed("cursor", ToolNames::Auto, &entry),
        ["a2a_an_agent_with_a_very_long_name_a_sk_632b9078"]
    );
    assert_eq!(listed("gemini", ToolNames::Auto, &entry), ["an_agent_with_a_very_long_name.a-skil_632b9078"]);
    assert_eq!(listed("inspector-cli", ToolNames::Auto, &entry), [entry.canonical.as_str()]);
    assert_eq!(
        listed("mcp", ToolNames::Auto, &entry),
        ["a2a_an_agent_with_a_very_long_name_a_skill_with_an_even_632b9078"]
    );
}

#[test]
fn only_what_ends_in_a_hash_looks_cut() {
    assert_eq!(hash_at_end("weather.fore_1a2b3c4d"), Some(("weather.fore", "1a2b3c4d")));
    assert_eq!(hash_at_end("weather.forecast"), None);
    assert_eq!(hash_at_end("weather_deadbeefs"), None);
    assert_eq!(hash_at_end("weather_1A2B3C4D"), None);
}

proptest! {
    #[test]
    fn every_listed_name_fits_its_client(
        agent in "[a-zA-Z0-9 _.-]{1,80}",
        skill in "\\PC{1,80}",
        client in prop::sample::select(vec!["claude-ai", "claude-code", "cursor", "vscode", "copilot", "openai", "codex", "gemini", "x"]),
        mode in prop::sample::select(vec![ToolNames::Auto, ToolNames::Canonical, ToolNames::Legacy, ToolNames::Both]),
    ) {
        let rule = ClientNameRule::of(client);
        for name in listed(client, mode, &entry(&agent, &skill)) {
            prop_assert!(!name.is_empty() && name.len() <= rule.max, "{name}");
            prop_assert!(is_allowed(&name), "{name}");
            prop_assert!(mode != ToolNames::Auto || !rule.refuses_dots || !name.contains('.'), "{name}");
        }
    }

    #[test]
    fn a_cut_name_says_which_skill_it_is(agent in "[a-z]{1,60}", skill in "[a-z]{50,90}") {
        let entry = entry(&agent, &skill);
        for name in listed("cursor", ToolNames::Both, &entry) {
            let (kept, end) = hash_at_end(&name).unwrap();
            prop_assert_eq!(end, hash(&entry.canonical));
            prop_assert!(entry.canonical.starts_with(kept) || entry.legacy.starts_with(kept));
        }
    }
}

#[test]
fn nothing_that_is_deployed_can_take_the_name_of_one_of_our_own_tools() {
    assert!(crate::builtin_tools::NAMES.iter().all(|name| rialto_engine::directory::RESERVED.contains(name)));
}

#[test]
fn schemas_are_portable_for_those_who_need_it_and_those_who_ask() {
    for (client, schemas, is_portable) in [
        ("claude-code", SchemaStyle::Auto, true),
        ("gemini-cli-mcp-client", SchemaStyle::Auto, true),
        ("mcp", SchemaStyle::Auto, false),
        ("mcp", SchemaStyle::Portable, true),
        ("claude-code", SchemaStyle::Original, false),
    ] {
        let naming = Naming::of(client, ToolNames::Auto).with_schemas(schemas);
        assert_eq!(naming.portable, is_portable, "{client} {schemas:?}");
    }
}
