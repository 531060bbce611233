//! Policies from the command line, and what they mean to a server that is already running.

use serde_json::json;

use crate::harness::{agent::SampleAgent, outcome::CallOutcome, rialto::Rialto, server::ServerProcess};

const DENIED: (i64, &str) = (-32003, "AuthorizationError");

#[test]
fn each_command_that_a_denial_names_works_at_the_very_next_call_of_a_running_server() {
    for number in [0, 1] {
        let (rialto, agent, server) = served_stranger();
        let denial = call(&server);
        denial.error(DENIED.0, DENIED.1);
        let command = *commands_in(denial.complaint()).get(number).expect("the denial names two commands");
        let args: Vec<&str> = command.strip_prefix("rialto ").unwrap().split(' ').collect();
        assert_eq!(agent.heard(), Vec::<String>::new(), "a denied call must not leave");
        rialto.cli(&args).ok();
        let after = call(&server);
        assert!(after.answer.is_ok(), "after {command}: {}", after.complaint());
        assert_eq!(after.data(), &json!({ "to": "you" }));
        assert_eq!(agent.heard().len(), 1);
    }
}

#[test]
fn trust_that_is_taken_away_is_gone_at_the_very_next_call_of_a_running_server() {
    let (rialto, agent, server) = served_stranger();
    for _ in 0..3 {
        rialto.cli(&["agents", "trust", "desk", "trusted"]).ok();
        call(&server).result();
        rialto.cli(&["agents", "trust", "desk", "external"]).ok();
        call(&server).error(DENIED.0, DENIED.1);
    }
    assert_eq!(agent.heard().len(), 3);
}

#[test]
fn removing_an_agent_revokes_it_at_the_very_next_call_of_a_running_server() {
    let (rialto, agent, server) = served_stranger();
    rialto.cli(&["policy", "allow", "desk"]).ok();
    call(&server).result();
    rialto.cli(&["agents", "remove", "desk"]).ok();
    assert!(!server.list().contains(&"desk.echo".to_owned()));
    assert_eq!(call(&server).answer.unwrap_err()["code"], -32602);
    // Who comes back is a stranger again: the old permit was for the one that was removed.
    rialto.cli(&["agents", "add", &agent.url]).ok();
    call(&server).error(DENIED.0, DENIED.1);
}

#[test]
fn adding_an_agent_with_allow_lets_everybody_call_it() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.cli(&["agents", "add", &agent.url, "--allow"]).ok();
    rialto.cli(&["call", "desk.greet", r#"{"name":"Ann"}"#]).ok();
    assert_eq!(rialto.json(&["agents", "show", "desk", "--json"])["trust"], "external");
}

#[test]
fn the_policies_of_a_fresh_install_hold_up_and_can_be_read() {
    let rialto = Rialto::fresh();
    let said = rialto.cli(&["policy", "check"]).ok();
    assert!(said.out.contains("starter-invoke-trusted-skill"), "{}", said.out);
    let listed = rialto.json(&["policy", "list", "--json"]);
    let files: Vec<_> = listed["files"].as_array().unwrap().iter().map(|file| &file["name"]).collect();
    assert_eq!(files, ["owner.cedar", "starter.cedar"]);
    assert!(rialto.cli(&["policy", "schema"]).ok().out.contains("a2a_invoke"));
}

#[test]
fn a_policy_file_with_a_mistake_is_refused_with_its_place() {
    let rialto = Rialto::fresh();
    let file = rialto.folder().join("mine.cedar");
    let check = |text: &str| {
        std::fs::write(&file, text).unwrap();
        rialto.cli(&["policy", "check", file.to_str().unwrap()])
    };
    let said = check("permit (principal, action, resource);\npermit (principal\n").exit(2);
    assert!(said.err.contains("mine.cedar:"), "{}", said.err);
    let said =
        check(r#"@id("typo") permit (principal, action, resource is Skill) when { resource.skil == "x" };"#)
            .exit(2);
    assert!(said.err.contains("typo") && said.err.contains("skil"), "{}", said.err);
    check(r#"@id("good") permit (principal, action, resource);"#).ok();
}

#[test]
fn a_question_about_a_call_is_answered_with_the_policies_that_decide() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.cli(&["agents", "add", &agent.url]).ok();
    let denied = rialto.cli(&["policy", "test", "desk.echo", "--json"]).exit(3).json();
    assert_eq!((&denied["decision"], &denied["policies"]), (&json!("deny"), &json!([])));
    rialto.cli(&["policy", "test", "desk.echo", "--action", "a2a_discover"]).ok();
    rialto.cli(&["agents", "trust", "desk", "trusted"]).ok();
    let allowed = rialto.json(&["policy", "test", "desk.echo", "--caller", "ann", "--json"]);
    assert_eq!(allowed["decision"], "allow");
    assert_eq!(allowed["policies"], json!(["starter-invoke-trusted-skill"]));
    rialto.cli(&["policy", "test", "desk.echo", "--action", "fly"]).exit(2);
    rialto.cli(&["policy", "test", "nobody"]).exit(4);
    assert_eq!(agent.heard(), Vec::<String>::new());
}

#[test]
fn an_agent_that_calls_in_is_asked_about_with_its_own_row() {
    let rialto = Rialto::fresh();
    let (desk, clerk) = (SampleAgent::named("Desk"), SampleAgent::named("Clerk"));
    rialto.trust(&desk.url);
    rialto.cli(&["agents", "add", &clerk.url]).ok();
    let text = r#"@id("strangers") forbid (principal is A2AAgent, action, resource) when { principal.trustLevel == "external" };"#;
    std::fs::write(rialto.data().join("policies/mine.cedar"), text).unwrap();
    let asked = ["policy", "test", "desk.echo", "--caller", "clerk", "--caller-kind", "agent"];
    assert!(rialto.cli(&asked).exit(3).out.contains("strangers"));
    rialto.cli(&["agents", "trust", "clerk", "trusted"]).ok();
    rialto.cli(&asked).ok();
    rialto.cli(&["policy", "test", "desk.echo", "--caller", "nobody", "--caller-kind", "agent"]).exit(4);
}

#[test]
fn administration_is_nobodys_until_a_policy_says_whose() {
    let rialto = Rialto::fresh();
    let asked = ["policy", "test", "--action", "admin_tokens", "--caller", "ann"];
    rialto.cli(&asked).exit(3);
    let text = r#"permit (principal == User::"ann", action == Action::"admin_tokens", resource);"#;
    std::fs::write(rialto.data().join("policies/mine.cedar"), text).unwrap();
    rialto.cli(&asked).ok();
    rialto.cli(&["policy", "test", "desk", "--action", "admin_tokens"]).exit(2);
    rialto.cli(&["policy", "test"]).exit(2);
}

#[test]
fn a_forbid_wins_and_the_denial_names_it() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let text = r#"@id("no-echo") forbid (principal, action == Action::"a2a_invoke", resource is Skill) when { resource.skillId == "echo" };"#;
    std::fs::write(rialto.data().join("policies/mine.cedar"), text).unwrap();
    let said = rialto.cli(&["call", "desk.echo"]).exit(3);
    assert!(said.err.contains("no-echo"), "{}", said.err);
    rialto.cli(&["call", "desk.greet", r#"{"name":"Ann"}"#]).ok();
}

#[test]
fn a_running_server_takes_an_edited_policy_into_use_and_keeps_the_old_one_when_it_does_not_hold_up() {
    let (rialto, _agent, server) = served_stranger();
    let file = rialto.data().join("policies/mine.cedar");
    std::fs::write(&file, r#"@id("mine") permit (principal, action == Action::"a2a_invoke", resource);"#)
        .unwrap();
    crate::harness::until("the permit is in force", || call(&server).answer.ok());
    std::fs::write(&file, "permit (").unwrap();
    crate::harness::until("the mistake is logged", || server.log().contains("stay in force").then_some(()));
    call(&server).result();
    std::fs::remove_file(&file).unwrap();
    crate::harness::until("the permit is gone", || call(&server).answer.err());
}

/// A running server that knows one agent, which nobody vouched for.
pub(super) fn served_stranger() -> (Rialto, SampleAgent, ServerProcess) {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.cli(&["agents", "add", &agent.url]).ok();
    let server = rialto.serve(&["--allow-no-auth"]);
    (rialto, agent, server)
}

pub(super) fn call(server: &ServerProcess) -> CallOutcome {
    server.call("desk.echo", &json!({ "to": "you" }))
}

/// What stands between backticks.
fn commands_in(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).filter(|command| command.starts_with("rialto ")).collect()
}
