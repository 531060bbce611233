//! The console in a real browser: Chromium, driven by Playwright, looks at pages of the program with real agents behind it. What it
//! does there is in `interop/clients/console.mjs`.

use std::{
    process::Command,
    sync::LazyLock,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::harness::{
    agent::SampleAgent, foreign_agent::ForeignAgent, http, interop, process::ChildProcess, rialto::Rialto,
    root, server::ServerProcess,
};

/// A scenario takes no longer, also where others are at work.
const LONGEST: Duration = Duration::from_secs(300);

/// Two steps at once, a person's word, and a last one.
const DEPLOY: &str = r#"
name: deploy
description: Looks at what is to be deployed, asks a person, and deploys it.
status: active
input_schema: { type: object, required: [what], properties: { what: { type: string, title: What } } }
triggers: [skill, { type: http, path: in/deploy }]
nodes:
  look: { type: tool, tool: desk.look }
  check: { type: tool, tool: desk.greet, args: { name: "{{ $input.what }}" } }
  may: { type: approval, question: "Deploy {{ $input.what }}?", depends_on: [look, check] }
  deploy: { type: tool, tool: desk.echo, args: { deployed: "{{ $input.what }}" }, depends_on: [may] }
"#;

/// The server's owner, who may administer everything, and register agents of this machine.
fn owner() -> Rialto {
    owner_from_afar().with("RIALTO_SERVER__ALLOW_PRIVATE_OVER_API", "true")
}

/// The same, without leave to register agents of this machine.
fn owner_from_afar() -> Rialto {
    Rialto::fresh()
        .with("RIALTO_TOKEN", "owners-token-of-at-least-32-characters")
        .with("RIALTO_CALLS__PROBE_INTERVAL_SECS", "1")
}

/// An agent with the skills of the workflow, and the workflow.
fn desk_with_deploy(rialto: &Rialto) -> SampleAgent {
    let desk = SampleAgent::named("Desk");
    desk.change_card(|card| {
        let look = json!({ "id": "look", "name": "look", "description": "Can look.", "tags": ["sample"] });
        card["skills"].as_array_mut().unwrap().push(look);
    });
    rialto.trust(&desk.url);
    let file = rialto.folder().join("deploy.yaml");
    std::fs::write(&file, DEPLOY).unwrap();
    rialto.cli(&["workflow", "add", &file.display().to_string()]).ok();
    desk
}

/// Plays a scenario at a server, and fails with what the browser saw.
#[track_caller]
#[expect(clippy::print_stdout, reason = "what the browser measured is worth reading after a good run too")]
pub(super) fn play(scenario: &str, server: &ServerProcess, more: &[(&str, &str)]) {
    let token = server.token.as_deref().unwrap_or("owners-token-of-at-least-32-characters");
    let mut command = Command::new(interop());
    command.args(["console", scenario, "--url", &server.url, "--token", token]);
    for (name, value) in more {
        command.args([*name, *value]);
    }
    let mut browser = ChildProcess::start(format!("console {scenario}"), &mut command);
    let said = browser.line_by(Instant::now() + LONGEST);
    let status = browser.end();
    assert!(
        status.success() && said.as_deref() == Some("as it should be"),
        "{}\n{}",
        browser.stderr(),
        server.log()
    );
    print!("{}", browser.stderr());
}

/// With `RIALTO_SHOTS` set, the pictures in `docs/console` are made anew.
fn with_shots<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    static FOLDER: LazyLock<String> = LazyLock::new(|| root().join("docs/console").display().to_string());
    let shots = std::env::var_os("RIALTO_SHOTS").map(|_| ("--shots", FOLDER.as_str()));
    more.iter().copied().chain(shots).collect()
}

#[test]
fn the_owner_of_a_fresh_server_registers_an_agent_writes_a_policy_and_makes_a_token_without_a_shell() {
    let (rialto, desk) = (Rialto::fresh(), SampleAgent::named("Desk"));
    play("owner", &rialto.serve(&[]), &[("--agent", &desk.url)]);
}

#[test]
fn somebody_signs_in_registers_trusts_refreshes_and_removes_an_agent() {
    let (desk, garbled) = (SampleAgent::named("Desk"), SampleAgent::named("Garbled"));
    garbled.show_instead(200, "this is no card");
    let rialto = owner();
    play("registry", &rialto.serve(&[]), &[("--agent", &desk.url), ("--other", &garbled.url)]);
}

#[test]
fn every_way_in_which_an_agent_is_not_registered_is_told_with_what_would_help() {
    let rialto = owner();
    let (key, public) = (rialto.folder().join("key.pem"), rialto.folder().join("cards.json"));
    let key = key.display().to_string();
    rialto.cli(&["keys", "create", "--out", &key]).ok();
    std::fs::write(&public, rialto.cli(&["keys", "show", &key]).ok().out).unwrap();
    let rialto = rialto.with("RIALTO_A2A__CARD_KEYS", &json!([public]).to_string());
    play("refusals", &rialto.serve(&[]), &[]);
}

#[test]
fn an_address_of_this_machine_is_not_taken_from_afar() {
    let (desk, rialto) = (SampleAgent::named("Desk"), owner_from_afar());
    // It is the owner's machine; ann administers from afar.
    rialto.cli(&["policy", "add", "allow-admin", "all", "--caller", "ann"]).ok();
    let scopes = ["--scope", "admin", "--scope", "discover", "--scope", "call"];
    let made = rialto.json(&[&["tokens", "create", "ann", "--json"][..], &scopes].concat());
    let token = made["token"].as_str().unwrap();
    play("private", &rialto.serve(&[]), &[("--agent", &desk.url), ("--token", token)]);
}

#[test]
fn what_somebody_does_on_a_live_page_is_not_undone() {
    let (desk, rialto) = (SampleAgent::named("Desk"), owner());
    rialto.trust(&desk.url);
    play("live", &rialto.serve(&[]), &[]);
}

#[test]
fn pages_that_are_seen_now_and_then_keep_nobody_out() {
    let rialto = owner().with("RIALTO_CALLS__PIN_CARDS", "true");
    let (desk, other) = (desk_with_deploy(&rialto), SampleAgent::named("Reviewer"));
    rialto.cli(&["agents", "add", &other.url]).ok();
    rialto.cli(&["tools", "add", "parrot", "--function", "--description", "Says it again", "--", "cat"]).ok();
    desk.change_card(|card| {
        card["skills"][0] =
            json!({ "id": "fresh", "name": "fresh", "description": "is new", "tags": ["sample"] });
    });
    rialto.cli(&["agents", "refresh", "desk"]);
    let guest = rialto.json(&["tokens", "create", "guest", "--json"])["token"].as_str().unwrap().to_owned();
    play("corners", &rialto.serve(&[]), &[("--guest", &guest)]);
}

#[test]
fn many_cards_are_fetched_while_a_page_shows_how_far_it_is() {
    play("bulk", &owner().serve(&[]), &[]);
}

#[test]
fn a_skill_is_tried_a_question_answered_and_a_task_called_off() {
    let (desk, rialto) = (SampleAgent::named("Desk"), owner());
    rialto.trust(&desk.url);
    play("trying", &rialto.serve(&[]), &with_shots(&[]));
}

#[test]
fn a_result_is_seen_while_it_comes() {
    let (peer, rialto) = (ForeignAgent::start("py_1_3", &[]), owner());
    rialto.trust(&peer.url);
    play("stream", &rialto.serve(&[]), &[]);
}

#[test]
fn a_live_page_keeps_up_with_many_calls() {
    let (desk, rialto) =
        (SampleAgent::named("Desk"), owner().with("RIALTO_LIMITS__REQUESTS_PER_SECOND", "0"));
    rialto.trust(&desk.url);
    play("busy", &rialto.serve(&[]), &[]);
}

#[test]
fn every_page_is_light() {
    let rialto = owner();
    let desk = desk_with_deploy(&rialto);
    desk.enough();
    play("weight", &rialto.serve(&[]), &[]);
}

#[test]
fn a_function_is_deployed_tried_and_taken_back() {
    let rialto = owner().with("RIALTO_SERVER__ALLOW_COMMANDS_OVER_API", "true");
    play("tools", &rialto.serve(&[]), &[]);
}

#[test]
fn policies_are_written_tried_and_in_force() {
    let (desk, rialto) = (SampleAgent::named("Desk"), owner());
    rialto.trust(&desk.url);
    play("policies", &rialto.serve(&[]), &with_shots(&[]));
}

#[test]
fn a_call_that_waits_is_approved_and_another_denied() {
    let (desk, rialto) = (SampleAgent::named("Desk"), owner());
    rialto.trust(&desk.url);
    rialto.cli(&["policy", "add", "require-approval", "desk.echo", "--by", "the ops team"]).ok();
    let guest = rialto.json(&["tokens", "create", "guest", "--json"])["token"].as_str().unwrap().to_owned();
    play("approvals", &rialto.serve(&[]), &with_shots(&[("--guest", &guest)]));
}

#[test]
fn a_workflow_lights_up_while_it_runs() {
    let rialto = owner();
    let desk = desk_with_deploy(&rialto);
    play("workflows", &rialto.serve(&[]), &with_shots(&[("--agent", &desk.url)]));
}

#[test]
fn a_run_that_nobody_here_works_on_is_resumed() {
    let rialto = owner();
    let (desk, elsewhere) = (desk_with_deploy(&rialto), rialto.serve(&[]));
    let here = rialto.serve(&[]);
    play("resume", &elsewhere, &[("--agent", &desk.url), ("--other", &here.url)]);
    let looked = desk.heard().iter().filter(|body| body.contains("\"skillId\":\"look\"")).count();
    assert_eq!(looked, 1, "{:?}", desk.heard());
}

#[test]
fn nothing_on_any_page_keeps_anybody_out() {
    let rialto = owner();
    let (desk, other) = (desk_with_deploy(&rialto), SampleAgent::named("Reviewer"));
    desk.enough();
    rialto.cli(&["agents", "add", &other.url]).ok();
    let server = rialto.serve(&[]);
    for n in 0..12 {
        let call = |skill: &str, args: serde_json::Value| {
            let url = format!("{}/call/{skill}", server.url);
            http::post(
                &url,
                &[("Authorization", "Bearer owners-token-of-at-least-32-characters")],
                &args.to_string(),
            )
            .status
        };
        assert_eq!(call("desk.greet", json!({ "name": format!("caller {n}") })), 200);
        assert_eq!(call("desk.echo", json!({ "n": n })), 200);
        assert_eq!(call("desk.fail", json!({})), 502);
    }
    play("looks", &server, &with_shots(&[]));
}

#[test]
fn everything_can_be_done_without_a_mouse() {
    let (desk, rialto) = (SampleAgent::named("Desk"), owner());
    rialto.trust(&desk.url);
    play("keyboard", &rialto.serve(&[]), &[]);
}

#[test]
fn an_agent_that_means_no_good_is_shown_harmlessly() {
    let evil = SampleAgent::named("<img src=x onerror=\"window.pwned=1\">\u{202e}evil");
    let long = "LongName".repeat(1_250);
    let trap = "<script>window.pwned=1</script>\u{202e}\" onmouseover=\"window.pwned=1";
    evil.change_card(|card| {
        card["description"] = json!(format!("{trap}{long}"));
        card["skills"][0] = json!({
            "id": "a-trap", "name": trap, "description": format!("{trap}{long}"), "tags": [trap, long],
            "inputSchema": { "type": "object", "properties": {
                trap: { "type": "string", "title": long, "description": trap, "enum": [trap] },
                "long": { "type": "string", "description": long },
            } },
        });
        card["skills"][1] = json!({ "id": "long", "name": long, "description": long, "tags": [] });
    });
    let rialto = owner();
    play("hostile", &rialto.serve(&[]), &[("--agent", &evil.url)]);
}

#[test]
fn everything_essential_works_without_a_script() {
    let (desk, rialto) = (SampleAgent::named("Desk"), owner());
    play("plain", &rialto.serve(&[]), &[("--agent", &desk.url)]);
}
