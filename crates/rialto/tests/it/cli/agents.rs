//! The registry from the command line.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{agent::SampleAgent, rialto::Rialto};

#[test]
fn an_agent_is_added_listed_shown_and_removed() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Vercel Ops"));
    let added = rialto.json(&["agents", "add", &agent.url, "--json"]);
    assert_eq!((&added["slug"], &added["trust"]), (&json!("vercel_ops"), &json!("external")));
    assert_eq!(added["url"], agent.url);

    let listed = rialto.json(&["agents", "list", "--json"]);
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["id"], added["id"]);
    let shown = rialto.json(&["agents", "show", "vercel_ops", "--json"]);
    assert_eq!(shown["card"]["name"], "Vercel Ops");
    let names: Vec<&str> =
        shown["skills"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "vercel_ops.echo",
            "vercel_ops.greet",
            "vercel_ops.fail",
            "vercel_ops.slow",
            "vercel_ops.nonsense",
            "vercel_ops.ask"
        ]
    );
    assert_eq!(shown["skills"][0]["legacyAlias"], "a2a_vercel_ops_echo");

    rialto.cli(&["agents", "remove", "vercel_ops"]).ok();
    assert_eq!(rialto.json(&["agents", "list", "--json"]), json!([]));
    rialto.cli(&["agents", "show", "vercel_ops"]).exit(4);
}

#[test]
fn an_agent_is_addressed_by_url_id_slug_or_name() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Code Reviewer"));
    let id = rialto.json(&["agents", "add", &agent.url, "--json"])["id"].clone();
    for key in [agent.url.as_str(), id.as_str().unwrap(), "code_reviewer", "Code Reviewer"] {
        assert_eq!(rialto.json(&["agents", "show", key, "--json"])["id"], id, "{key}");
    }
}

#[test]
fn every_spelling_of_an_address_is_the_same_row() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    let first = rialto.json(&["agents", "add", &agent.url, "--json"]);
    let shouted = agent.url.replace("http", "HTTP");
    for spelling in [
        format!("{shouted}/"),
        format!("{}//", agent.url),
        format!("{}/.well-known/agent-card.json", agent.url),
        format!("{}/.well-known/agent.json", agent.url),
    ] {
        let again = rialto.json(&["agents", "add", &spelling, "--json"]);
        assert_eq!((&again["id"], &again["url"]), (&first["id"], &first["url"]), "{spelling}");
    }
    assert_eq!(rialto.json(&["agents", "list", "--json"]).as_array().unwrap().len(), 1);
}

#[test]
fn registering_again_keeps_the_trust_that_was_given() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    assert_eq!(rialto.json(&["agents", "add", &agent.url, "--json"])["trust"], "trusted");
}

#[test]
fn two_agents_of_one_name_get_two_slugs_and_both_can_be_called() {
    let (rialto, one, other) = (Rialto::fresh(), SampleAgent::named("Desk"), SampleAgent::named("desk!"));
    assert_eq!((rialto.trust(&one.url), rialto.trust(&other.url)), ("desk".to_owned(), "desk_2".to_owned()));
    rialto.cli(&["call", "desk_2.echo", r#"{"to":"the second"}"#]).ok();
    assert_eq!((one.heard().len(), other.heard().len()), (0, 1));
    rialto.cli(&["call", "a2a_desk_echo", r#"{"to":"the first"}"#]).ok();
    assert_eq!((one.heard().len(), other.heard().len()), (1, 1));
}

#[test]
fn an_address_that_is_none_is_refused_with_the_reason() {
    let rialto = Rialto::fresh();
    for (address, reason) in [
        ("desk", "not a URL"),
        ("ftp://agents.example.com", "neither http nor https"),
        ("http://agents.example.com/?a=1", "query"),
        ("http://agents.example.com/#a", "fragment"),
    ] {
        let said = rialto.cli(&["agents", "add", address]).exit(2);
        assert!(said.err.contains(reason), "{address}: {}", said.err);
    }
    assert_eq!(rialto.json(&["agents", "list", "--json"]), json!([]));
}

#[test]
fn an_agent_without_a_card_is_not_stored_and_the_error_has_the_status() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    for status in [404, 503] {
        agent.show_instead(status, "{}");
        let said = rialto.cli(&["agents", "add", &agent.url]).exit(5);
        assert!(said.err.contains(&status.to_string()), "{}", said.err);
    }
    let nobody = rialto.cli(&["agents", "add", "http://127.0.0.1:2", "--json"]).exit(5).json();
    assert_eq!(nobody["error"]["class"], "RemoteA2ATransportError");
    assert_eq!(rialto.json(&["agents", "list", "--json"]), json!([]));
}

#[test]
fn an_invalid_card_is_not_stored_and_the_error_has_the_path() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    agent.change_card(|card| card["skills"][2]["id"] = json!(7));
    let said = rialto.cli(&["agents", "add", &agent.url]).exit(5);
    assert!(said.err.contains("skills[2].id: expected a string, found a number"), "{}", said.err);
    agent.change_card(|card| drop(card.as_object_mut().unwrap().remove("skills")));
    let said = rialto.cli(&["agents", "add", &agent.url]).exit(5);
    assert!(said.err.contains("skills: expected a list, found nothing"), "{}", said.err);
    assert_eq!(rialto.json(&["agents", "list", "--json"]), json!([]));
}

#[test]
fn a_card_that_is_too_large_is_not_read_to_its_end() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    agent.change_card(|card| card["description"] = json!("x".repeat(2 * 1024 * 1024)));
    let said = rialto.cli(&["agents", "add", &agent.url]).exit(5);
    assert!(said.err.contains("larger than 1048576 bytes"), "{}", said.err);
}

#[test]
fn an_agent_that_never_answers_is_waited_for_as_long_as_was_set() {
    let rialto = Rialto::fresh().with("A2A_DISCOVERY_TIMEOUT_MS", "300");
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let begun = Instant::now();
    let error = rialto.cli(&["agents", "add", &url, "--json"]).exit(5).json()["error"].clone();
    assert_eq!(error["class"], "RemoteA2ATransportError");
    assert!(error["message"].as_str().unwrap().contains("300"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(4), "the default of 5 s was used");
}

#[test]
fn a_failed_registration_leaves_a_known_row_as_it_was() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    let before = rialto.json(&["agents", "add", &agent.url, "--json"]);
    agent.show_instead(200, "no card");
    rialto.cli(&["agents", "add", &agent.url, "--trust", "trusted"]).exit(5);
    assert_eq!(rialto.json(&["agents", "list", "--json"])[0], before);
}

#[test]
fn nobody_can_hand_out_the_trust_of_the_system() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.cli(&["agents", "add", &agent.url, "--trust", "system"]).exit(2);
    assert_eq!(rialto.json(&["agents", "list", "--json"]), json!([]));
    rialto.trust(&agent.url);
    let said = rialto.cli(&["agents", "trust", "desk", "system"]).exit(2);
    assert!(said.err.contains("cannot be assigned"), "{}", said.err);
    assert_eq!(rialto.json(&["agents", "show", "desk", "--json"])["trust"], "trusted");
}

#[test]
fn trust_is_given_and_taken_and_internal_is_an_old_word_for_trusted() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.cli(&["agents", "add", &agent.url]).ok();
    for (level, trust) in [("internal", "trusted"), ("external", "external"), ("trusted", "trusted")] {
        rialto.cli(&["agents", "trust", "desk", level]).ok();
        assert_eq!(rialto.json(&["agents", "show", "desk", "--json"])["trust"], trust);
    }
}

#[test]
fn many_agents_are_imported_at_once_and_the_bad_ones_are_named() {
    let (rialto, one, other) = (Rialto::fresh(), SampleAgent::named("One"), SampleAgent::named("Other"));
    let list = format!("# ours\n{}\n\n{}\nhttp://127.0.0.1:2\n", one.url, other.url);
    let said = rialto.cli_fed(&["agents", "import", "-", "--trust", "trusted", "--json"], &list).exit(1);
    let told = said.json();
    assert_eq!(told["registered"], 2);
    assert_eq!(told["failed"][0]["url"], "http://127.0.0.1:2");
    let listed = rialto.json(&["agents", "list", "--json"]);
    let slugs: Vec<&Value> = listed.as_array().unwrap().iter().map(|row| &row["slug"]).collect();
    assert_eq!(slugs, ["one", "other"]);
}
