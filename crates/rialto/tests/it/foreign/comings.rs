//! Agents that die and come back, seen by clients that stay connected.

use serde_json::json;

use crate::harness::{
    client::{McpClient, McpEra, McpTransport, Sdk},
    foreign_agent::ForeignAgent,
    rialto::Rialto,
    until,
};

#[test]
fn clients_on_stdio_are_told_when_an_agent_dies_and_when_it_is_back() {
    let rialto = probing();
    dies_and_comes_back(|agent| rialto.stdio(&["--agent", &agent.url]));
}

#[test]
fn clients_on_http_are_told_when_an_agent_dies_and_when_it_is_back() {
    let rialto = probing();
    let mut server = None;
    dies_and_comes_back(|agent| {
        rialto.trust(&agent.url);
        server.get_or_insert_with(|| rialto.serve(&[])).door()
    });
}

#[test]
fn clients_are_told_when_an_agent_is_registered_or_removed_by_another_process() {
    let (rialto, agent) = (probing(), ForeignAgent::start("plain_0_1", &[]));
    let server = rialto.serve(&["--allow-no-auth"]);
    let mut clients = everybody(|| server.door());
    let mut changes = |what: &str, is_listed: bool| {
        for client in &mut clients {
            client.hear_of_change();
            until(what, || (listed(client) == is_listed).then_some(()));
        }
    };
    rialto.cli(&["agents", "add", &agent.url]).ok();
    changes("the tools appear", true);
    rialto.cli(&["agents", "remove", "plain01_agent"]).ok();
    changes("the tools are gone", false);
}

/// One program that probes every second.
fn probing() -> Rialto {
    Rialto::fresh().with("RIALTO_CALLS__PROBE_INTERVAL_SECS", "1")
}

fn dies_and_comes_back(mut door: impl FnMut(&ForeignAgent) -> McpTransport) {
    let mut agent = ForeignAgent::start("plain_0_1", &[]);
    let mut clients = everybody(|| door(&agent));
    for client in &mut clients {
        assert!(listed(client));
        client.forget_changes();
    }
    agent.kill();
    for client in &mut clients {
        client.hear_of_change();
        until("the tools are gone", || (!listed(client)).then_some(()));
        client.forget_changes();
    }
    agent.revive();
    for client in &mut clients {
        client.hear_of_change();
        until("the tools are back", || listed(client).then_some(()));
        let said = client.call("plain01_agent.say", &json!({ "name": "again" }));
        assert_eq!(said.text(), "hello again");
    }
}

/// A client of each SDK and each era.
fn everybody(mut door: impl FnMut() -> McpTransport) -> Vec<McpClient> {
    let kinds =
        [Sdk::Python, Sdk::TypeScript].map(|sdk| [McpEra::Auto, McpEra::Legacy].map(|era| (sdk, era)));
    kinds.into_iter().flatten().map(|(sdk, era)| McpClient::start(sdk, era, &door())).collect()
}

fn listed(client: &mut McpClient) -> bool {
    client.list().contains(&"plain01_agent.say".to_owned())
}
