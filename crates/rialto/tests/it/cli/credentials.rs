//! Credentials sent to agents, from the command line.

use serde_json::json;

use super::secrets::holding;
use crate::harness::{agent::SampleAgent, rialto::Rialto, server::message, token_issuer::TokenIssuer};

#[test]
fn what_an_agent_is_shown_can_be_changed_and_is_named_but_never_printed() {
    let rialto = Rialto::fresh().with("DESK_TOKEN", "s3cret").with("ANN_TOKEN", "s4cret");
    let agent = SampleAgent::named("Desk");
    rialto.trust(&agent.url);
    let basic = ["agents", "credential", "desk", "--secret", "env:DESK_TOKEN", "--user", "rialto"];
    let said = rialto.cli(&basic).ok();
    assert_eq!(said.out, "credential sent to desk: password of rialto, env:DESK_TOKEN\n");
    rialto.cli(&["call", "desk.echo"]).ok();
    let own = ["agents", "credential", "desk", "--for-caller", "local", "--secret", "env:ANN_TOKEN"];
    rialto.cli(&own).ok();
    rialto.cli(&["call", "desk.echo"]).ok();
    rialto.cli(&["agents", "credential", "desk", "--auth", "bearer"]).ok();
    rialto.cli(&["call", "desk.echo"]).ok();
    rialto.cli(&["agents", "credential", "desk", "--for-caller", "local", "--remove"]).ok();
    rialto.cli(&["agents", "credential", "desk", "--named-callers-only"]).ok();
    let refused = rialto.cli(&["call", "desk.echo"]);
    assert!(refused.err.contains("has no credential for local"), "{}", refused.err);
    rialto.cli(&["agents", "credential", "desk", "--remove"]).ok();
    rialto.cli(&["call", "desk.echo"]).ok();
    assert_eq!(agent.tokens(), ["Basic cmlhbHRvOnMzY3JldA==", "Basic cmlhbHRvOnM0Y3JldA==", "Bearer s4cret"]);
}

#[test]
fn a_card_says_how_its_secret_is_shown() {
    let rialto = Rialto::fresh().with("DESK_TOKEN", "rialto:s3cret");
    let agent = SampleAgent::named("Desk");
    agent.change_card(|card| {
        card["securitySchemes"] = json!({ "user": { "type": "http", "scheme": "basic" } });
        card["security"] = json!([{ "user": [] }]);
    });
    rialto.cli(&["agents", "add", &agent.url, "--trust", "trusted", "--secret", "env:DESK_TOKEN"]).ok();
    rialto.cli(&["call", "desk.echo"]).ok();
    assert_eq!(agent.tokens(), ["Basic cmlhbHRvOnMzY3JldA=="]);
    let shown = rialto.json(&["agents", "show", "desk", "--json"]);
    assert_eq!(
        (&shown["credential"], &shown["shownAs"]),
        (&json!({ "env": "DESK_TOKEN" }), &json!("user and password"))
    );
    let text = rialto.cli(&["agents", "show", "desk"]).ok().out;
    assert!(text.contains("credential user and password, env:DESK_TOKEN"), "{text}");
}

#[test]
fn a_running_server_goes_to_an_agent_with_what_was_set_last() {
    let rialto = Rialto::fresh().with("FIRST", "one").with("SECOND", "two");
    let (agent, file) = (SampleAgent::named("Desk"), rialto.folder().join("token"));
    rialto.cli(&["agents", "add", &agent.url, "--trust", "trusted", "--secret", "env:FIRST"]).ok();
    let server = rialto.serve(&["--allow-no-auth"]);
    let call = || {
        server.call("desk.echo", &json!({})).result();
    };
    call();
    rialto.cli(&["agents", "credential", "desk", "--secret", "env:SECOND"]).ok();
    call();
    std::fs::write(&file, "three").unwrap();
    let source = format!("file:{}", file.display());
    rialto.cli(&["agents", "credential", "desk", "--secret", &source]).ok();
    call();
    std::fs::write(&file, "four").unwrap();
    call();
    rialto.cli_fed(&["secrets", "set", "desk"], "five\n").ok();
    rialto.cli(&["agents", "credential", "desk", "--secret", "store:desk"]).ok();
    call();
    rialto.cli_fed(&["secrets", "set", "desk"], "six\n").ok();
    call();
    rialto.cli(&["agents", "credential", "desk", "--remove"]).ok();
    call();
    let tokens = ["one", "two", "three", "four", "five", "six"].map(|token| format!("Bearer {token}"));
    assert_eq!(agent.tokens(), tokens);
    assert_eq!(agent.heard().len(), 7);
}

#[test]
fn a_secret_that_is_not_there_is_warned_about_when_it_is_named() {
    let (rialto, agent) = (Rialto::fresh().with("SET", "x"), SampleAgent::named("Desk"));
    let add = ["agents", "add", &agent.url, "--trust", "trusted", "--secret"];
    let said = rialto.cli(&[add.as_slice(), &["env:NOT_SET"]].concat()).ok();
    assert!(said.err.contains("set the environment variable NOT_SET"), "{}", said.err);
    let said = rialto.cli(&[add.as_slice(), &["env:SET"]].concat()).ok();
    assert!(!said.err.contains("warning"), "{}", said.err);
    let said = rialto.cli(&["agents", "credential", "desk", "--secret", "env:NEITHER"]).ok();
    assert!(said.err.contains("set the environment variable NEITHER"), "{}", said.err);
}

#[test]
fn a_command_that_takes_no_credential_names_the_one_that_does() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    agent.show_instead(401, "{}");
    let said = rialto.cli(&["call", "desk.echo", "--agent", &agent.url]).exit(5);
    assert!(said.err.contains("`rialto agents add URL --secret env:NAME`"), "{}", said.err);
}

#[test]
fn a_key_in_the_address_is_not_logged() {
    let rialto = Rialto::fresh().with("DESK_KEY", "s3cret-key");
    let agent = SampleAgent::named("Desk");
    let key = ["--secret", "env:DESK_KEY", "--key-in", "query", "--key-name", "key"];
    rialto.cli(&[["agents", "add", &agent.url, "--trust", "trusted"].as_slice(), &key].concat()).ok();
    for (skill, status) in [("desk.echo", 0), ("desk.fail", 1), ("desk.nonsense", 1)] {
        let said = rialto.cli(&["call", skill, "--log", "trace", "--json"]);
        assert_eq!(said.status == 0, status == 0, "{said:?}");
        assert!(!said.out.contains("s3cret-key") && !said.err.contains("s3cret-key"), "{said:?}");
    }
    let mut found = Vec::new();
    holding(rialto.folder(), "s3cret-key", &mut found);
    assert_eq!(found, Vec::<std::path::PathBuf>::new());
}

#[test]
fn flags_that_do_not_fit_together_are_refused_with_what_to_say() {
    let rialto = Rialto::fresh();
    for (flags, word) in [
        (["--auth", "api-key", "--secret", "env:A"].as_slice(), "--key-name"),
        (&["--auth", "oauth2", "--secret", "env:A"], "--client-id"),
        (&["--user", "ann", "--key-name", "X-Key", "--secret", "env:A"], "more than one kind"),
        (&["--user", "ann"], "--secret"),
        (&["--secret", "hunter2"], "must not be on the command line"),
        (&["--secret", "env:A", "--for-host", "https://b.example/x"], "not a host"),
    ] {
        let said = rialto.cli(&[&["agents", "add", "http://127.0.0.1:9"], flags].concat());
        assert!(said.status == 2 && said.err.contains(word), "{flags:?}: {}", said.err);
    }
}

#[test]
fn a_secret_that_others_can_read_is_warned_about() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    let file = rialto.folder().join("token");
    std::fs::write(&file, "s3cret").unwrap();
    let file = file.display().to_string();
    let said = rialto.cli(&["agents", "add", &agent.url, "--trust", "trusted", "--token-file", &file]).ok();
    assert!(said.err.contains(&format!("chmod 600 {file}")), "{}", said.err);
    let findings = rialto.cli(&["doctor", "--json"]).json().to_string();
    assert!(findings.contains("others on this machine can read its secret"), "{findings}");
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let findings = rialto.cli(&["doctor", "--json"]).json().to_string();
    assert!(!findings.contains("others on this machine"), "{findings}");
}

#[test]
fn a_callers_token_is_exchanged_for_one_of_the_agent_and_is_written_nowhere() {
    let (issuer, agent) = (TokenIssuer::start(), SampleAgent::named("Desk"));
    let rialto = Rialto::fresh().with("CLIENT_SECRET", "s3cret-of-the-client");
    let config = format!("[auth]\nexchange_tokens = true\n{}", issuer.trust());
    std::fs::write(rialto.folder().join("rialto.toml"), config).unwrap();
    let token_url = format!("{}/token", issuer.url);
    let exchange =
        ["--auth", "exchange", "--client-id", "rialto", "--token-url", &token_url, "--audience", "desk"];
    let add = ["agents", "add", &agent.url, "--trust", "trusted", "--secret", "env:CLIENT_SECRET"];
    rialto.cli(&[add.as_slice(), &exchange].concat()).ok();
    let said = rialto.cli(&["call", "desk.echo"]).exit(5);
    assert!(said.err.contains("this caller came without a signed one"), "{}", said.err);

    let server = rialto.serve(&["--log", "trace"]);
    let (ann, bob) = (issuer.sign("ann"), issuer.sign("bob"));
    for token in [&ann, &ann, &bob] {
        let call = json!({ "name": "desk.echo", "arguments": {} });
        let answer = server.request("/mcp", "tools/call", call, Some(token));
        assert_eq!(message(&answer)["result"]["isError"], json!(null), "{answer:?}");
    }
    assert_eq!(agent.tokens(), ["Bearer given-1", "Bearer given-1", "Bearer given-2"]);
    let asked = issuer.asked();
    assert!(asked[0].contains(&ann) && asked[0].contains("audience=desk"), "{asked:?}");
    assert!(asked[1].contains(&bob) && asked.len() == 2, "{asked:?}");
    let log = server.log();
    server.kill();
    for secret in [ann.as_str(), bob.as_str(), "given-1", "s3cret-of-the-client"] {
        assert!(!log.contains(secret) && !agent.heard().iter().any(|heard| heard.contains(secret)), "{log}");
        let mut found = Vec::new();
        holding(rialto.folder(), secret, &mut found);
        assert_eq!(found, Vec::<std::path::PathBuf>::new());
    }
}
