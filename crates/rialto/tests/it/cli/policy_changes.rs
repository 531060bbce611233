//! Policies that are written, replaced, taken away and brought back from the command line.

use serde_json::{Value, json};

use super::policies::{call, served_stranger};
use crate::harness::{agent::SampleAgent, http, rialto::Rialto, until};

const DENIED: (i64, &str) = (-32003, "AuthorizationError");

#[test]
fn each_template_is_in_force_at_the_very_next_call_of_a_running_server() {
    let (rialto, _agent, server) = served_stranger();
    let add = |words: &[&str]| {
        let words = [&["policy", "add"], words, &["--json"]].concat();
        rialto.json(&words)["policies"][0]["name"].as_str().unwrap().to_owned()
    };
    for words in [
        &["allow-agent", "desk"][..],
        &["allow-skill", "desk.echo"],
        &["allow-trust", "external"],
        &["allow-tag", "sample"],
        &["allow-agent", "desk", "--caller", "local"],
    ] {
        call(&server).error(DENIED.0, DENIED.1);
        let name = add(words);
        call(&server).result();
        rialto.cli(&["policy", "remove", &name]).ok();
    }
    add(&["allow-agent", "desk"]);
    for words in [&["deny-agent", "desk"][..], &["deny-skill", "desk.echo"]] {
        call(&server).result();
        let name = add(words);
        let refused = call(&server);
        refused.error(DENIED.0, DENIED.1);
        assert!(refused.complaint().contains(&name), "{}", refused.complaint());
        rialto.cli(&["policy", "remove", &name]).ok();
    }
    call(&server).result();
    let name = add(&["require-approval", "desk.echo", "--by", "the ops team"]);
    let waits = call(&server);
    assert!(waits.text().contains(&name), "{}", waits.text());
    rialto.cli(&["policy", "remove", &name]).ok();
    call(&server).result();
}

#[test]
fn a_call_that_needs_approval_says_whose() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    rialto.cli(&["policy", "add", "require-approval", "desk", "--by", "the ops team"]).ok();
    let said = rialto.cli(&["call", "desk.echo"]);
    assert!(said.out.contains("It waits for approval by the ops team"), "{}", said.out);
    let told = rialto.cli(&["policy", "test", "desk.echo"]).exit(3);
    assert!(told.err.contains("needs approval by the ops team"), "{}", told.err);
    assert_eq!(agent.heard(), Vec::<String>::new());
}

#[test]
fn a_permit_for_one_caller_or_one_tag_is_for_nobody_and_nothing_else() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.cli(&["agents", "add", &agent.url]).ok();
    let test = |caller: &str| rialto.cli(&["policy", "test", "desk.echo", "--caller", caller]).status;
    rialto.cli(&["policy", "add", "allow-skill", "desk.echo", "--caller", "ann"]).ok();
    assert_eq!((test("ann"), test("bob")), (0, 3));
    rialto.cli(&["policy", "add", "allow-tag", "no such tag"]).ok();
    assert_eq!(test("bob"), 3);
    rialto.cli(&["policy", "test", "desk.greet", "--caller", "ann"]).exit(3);
}

#[test]
fn administration_is_given_by_the_command_that_the_denial_names() {
    let rialto = Rialto::fresh();
    let asked = ["policy", "test", "--action", "admin_agents", "--caller", "ann"];
    let denial = rialto.cli(&asked).exit(3).err;
    let command = denial.split('`').nth(1).unwrap().strip_prefix("rialto ").unwrap();
    rialto.cli(&command.split(' ').collect::<Vec<_>>()).ok();
    rialto.cli(&asked).ok();
    rialto.cli(&["policy", "add", "allow-admin", "admin_agents"]).exit(2);
}

#[test]
fn the_same_wish_twice_is_one_policy_and_a_name_that_is_taken_is_left_alone() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.cli(&["agents", "add", &agent.url]).ok();
    for _ in 0..2 {
        rialto.cli(&["policy", "add", "allow-agent", "desk"]).ok();
    }
    rialto.cli(&["policy", "allow", "desk"]).ok();
    assert_eq!(rialto.json(&["policy", "history", "allow-desk", "--json"]), json!([]));
    let other = SampleAgent::named("Other");
    rialto.cli(&["agents", "add", &other.url]).ok();
    rialto.cli(&["policy", "add", "allow-agent", "other", "--name", "allow-other"]).ok();
    rialto.cli(&["policy", "add", "allow-agent", "other", "--caller", "ann", "--name", "allow-other"]).ok();
    rialto.cli(&["policy", "add", "allow-agent", "other"]).ok();
    let names = names(&rialto);
    assert!(
        ["allow-desk", "allow-other", "allow-other_2"].iter().all(|name| names.contains(&(*name).to_owned()))
    );
}

#[test]
fn a_file_is_taken_whole_or_not_at_all_and_what_it_replaces_comes_back() {
    let rialto = Rialto::fresh();
    let file = rialto.folder().join("mine.cedar");
    let add = |text: &str| {
        std::fs::write(&file, text).unwrap();
        rialto.cli(&["policy", "add", "--file", file.to_str().unwrap()])
    };
    add("@id(\"one\") permit (principal, action, resource);").ok();
    let said =
        add("@id(\"two\") permit (principal, action, resource is Skill) when { resource.colour == 1 };");
    assert!(said.exit(2).err.contains("colour"));
    let said = add(
        "@id(\"two\") permit (principal, action, resource);\n@id(\"two\") forbid (principal, action, resource);",
    );
    assert!(said.exit(2).err.contains("two policies"));
    assert!(names(&rialto).contains(&"one".to_owned()));
    add("@id(\"two\") permit (principal, action, resource);").ok();
    let versions = rialto.json(&["policy", "history", "mine", "--json"]);
    let version = versions[0]["version"].to_string();
    assert!(versions[0]["text"].as_str().unwrap().contains("one"));
    rialto.cli(&["policy", "restore", "mine", &version]).ok();
    assert!(names(&rialto).contains(&"one".to_owned()));
    rialto.cli(&["policy", "restore", "mine", "7"]).exit(4);
    rialto.cli(&["policy", "remove", "nobody"]).exit(4);
    rialto.cli(&["policy", "remove", "starter-cancel"]).exit(2);
    rialto.cli(&["policy", "add", "--file", file.to_str().unwrap(), "--name", "../mine"]).exit(2);
}

#[test]
fn a_policy_that_keeps_everything_from_starting_can_be_mended() {
    let rialto = Rialto::fresh();
    rialto.cli(&["policy", "list"]).ok();
    let starter = rialto.data().join("policies/starter.cedar");
    let good = std::fs::read_to_string(&starter).unwrap();
    rialto.cli(&["policy", "remove", "starter"]).ok();
    std::fs::write(&starter, "permit (").unwrap();
    rialto.cli(&["agents", "list"]).exit(1);
    let version = rialto.json(&["policy", "history", "starter", "--json"])[0]["version"].to_string();
    rialto.cli(&["policy", "restore", "starter", &version]).ok();
    rialto.cli(&["agents", "list"]).ok();
    assert_eq!(std::fs::read_to_string(&starter).unwrap(), good);
}

#[test]
fn policies_are_laid_out_alike() {
    let rialto = Rialto::fresh();
    rialto.cli(&["policy", "fmt", "--check"]).ok();
    let file = rialto.data().join("policies/mine.cedar");
    std::fs::write(&file, "// why\npermit(principal,action,resource);").unwrap();
    assert!(rialto.cli(&["policy", "fmt", "--check"]).exit(1).err.contains("mine.cedar"));
    rialto.cli(&["policy", "fmt"]).ok();
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text, "// why\npermit (principal, action, resource);\n");
    rialto.cli(&["policy", "fmt", "--check", file.to_str().unwrap()]).ok();
    std::fs::write(&file, "permit (").unwrap();
    rialto.cli(&["policy", "fmt", file.to_str().unwrap()]).exit(2);
}

#[test]
fn every_policy_says_why_it_decides_or_why_not() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.cli(&["agents", "add", &agent.url]).ok();
    let outcome = |explained: &Value, name: &str| {
        let policies = explained["policies"].as_array().unwrap();
        policies.iter().find(|policy| policy["name"] == name).unwrap()["outcome"].clone()
    };
    let denied = rialto.cli(&["policy", "explain", "desk.echo", "--json"]).exit(3).json();
    assert_eq!(denied["decision"], "deny");
    assert_eq!(outcome(&denied, "starter-invoke-trusted-skill"), "conditions-not-met");
    assert_eq!(outcome(&denied, "starter-invoke-trusted-agent"), "other-target");
    assert_eq!(outcome(&denied, "starter-cancel"), "other-action");
    rialto.cli(&["policy", "add", "allow-agent", "desk"]).ok();
    let allowed = rialto.json(&["policy", "explain", "desk.echo", "--json"]);
    assert_eq!(outcome(&allowed, "allow-desk"), "decides");
    let shown = rialto.cli(&["policy", "explain", "desk.echo"]).ok().out;
    assert!(shown.contains("its conditions do not hold"), "{shown}");
}

#[test]
fn the_list_says_what_each_policy_does_and_where_it_stands() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.cli(&["agents", "add", &agent.url]).ok();
    rialto.cli(&["policy", "add", "deny-agent", "desk"]).ok();
    let listed = rialto.json(&["policy", "list", "--json"]);
    let summary = format!("nobody may call desk ({})", agent.url.trim_end_matches('/'));
    let denial = listed["policies"].as_array().unwrap().iter().find(|policy| policy["name"] == "deny-desk");
    assert_eq!(
        denial,
        Some(&json!({
            "name": "deny-desk",
            "effect": "forbid",
            "summary": summary,
            "file": "deny-desk.cedar",
            "org": "default",
        }))
    );
    let shown = rialto.cli(&["policy", "list"]).ok().out;
    assert!(shown.contains("everybody may call off what they started"), "{shown}");
}

#[test]
fn the_policies_of_an_agent_that_is_removed_go_with_it() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.cli(&["agents", "add", &agent.url, "--allow"]).ok();
    rialto.cli(&["policy", "add", "deny-skill", "desk.echo"]).ok();
    rialto.cli(&["agents", "remove", "desk"]).ok();
    let names = names(&rialto);
    assert_eq!(names.len(), 5, "{names:?}");
    assert!(names.iter().all(|name| name.starts_with("starter-") || name == "allow-admin-all"), "{names:?}");
}

fn names(rialto: &Rialto) -> Vec<String> {
    let listed = rialto.json(&["policy", "list", "--json"]);
    let policies = listed["policies"].as_array().unwrap().iter();
    policies.map(|policy| policy["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_policy_in_the_store_is_in_force_at_the_very_next_call_and_says_where_it_is_kept() {
    let (rialto, _agent, server) = served_stranger();
    call(&server).error(DENIED.0, DENIED.1);
    let added = rialto.json(&["policy", "add", "allow-agent", "desk", "--store", "--json"]);
    let (file, name) = (added["file"].as_str().unwrap(), added["policies"][0]["name"].as_str().unwrap());
    assert_eq!(file, format!("store:{name}"));
    call(&server).result();
    let listed = rialto.json(&["policy", "list", "--store", "--json"]);
    assert_eq!(
        (&listed["policies"][0]["name"], &listed["policies"][0]["file"]),
        (&json!(name), &json!(file))
    );
    assert_eq!(listed["policies"].as_array().unwrap().len(), 1, "{listed}");
    let explained = rialto.json(&["policy", "explain", "desk.echo", "--json"]);
    let kept: Vec<&Value> =
        explained["policies"].as_array().unwrap().iter().map(|rule| &rule["file"]).collect();
    assert!(kept.contains(&&json!(file)) && kept.contains(&&json!("starter.cedar")), "{explained}");

    rialto.cli(&["policy", "remove", name]).ok();
    call(&server).error(DENIED.0, DENIED.1);
    let history = rialto.json(&["policy", "history", name, "--json"]);
    assert_eq!((&history[0]["text"], &history[1]["version"]), (&Value::Null, &json!(1)), "{history}");
    rialto.cli(&["policy", "restore", name, "1"]).ok();
    call(&server).result();
    // The agent goes, and what is about nothing but it.
    rialto.cli(&["agents", "remove", "desk"]).ok();
    assert_eq!(rialto.json(&["policy", "list", "--store", "--json"])["policies"], json!([]));
}

#[test]
fn a_file_that_clashes_with_the_store_takes_nothing_down_and_is_told_of() {
    let (rialto, _agent, server) = served_stranger();
    let name =
        rialto.json(&["policy", "add", "allow-agent", "desk", "--store", "--json"])["policies"][0]["name"]
            .clone();
    call(&server).result();
    std::fs::create_dir_all(rialto.data().join("policies/default")).unwrap();
    let clash = format!("@id({name})\nforbid (principal, action, resource);\n");
    std::fs::write(rialto.data().join("policies/default/clash.cedar"), clash).unwrap();
    let ready = format!("{}/readyz", server.url);
    until("it is told of", || http::get(&ready).filter(|answer| answer.status == 503));
    call(&server).result();
    let told = rialto.cli(&["policy", "check"]).exit(2).err;
    assert!(told.contains(&format!("two policies are called {name}")), "{told}");
    rialto.cli(&["policy", "remove", "clash", "--as-file"]).ok();
    until("all is well", || http::get(&ready).filter(|answer| answer.status == 200));
    rialto.cli(&["policy", "check"]).ok();
}
