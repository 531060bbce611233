//! Guardrails at every door: what each action does, which way, in an answer and in a stream; and that what is blocked is nowhere.

mod doors;

use serde_json::{Value, json};

use self::doors::{ACTIONS, DOORS, EndpointResponse, GuardedEndpoint, GuardrailFixture, INSIDE, OUTSIDE};
use crate::harness::{
    agent::{DIGITS, SampleAgent},
    http,
    model_server::ModelServer,
    rialto::Rialto,
    server::ServerProcess,
    until,
};

#[test]
fn each_action_does_what_it_says_at_each_door_on_the_way_in() {
    let mut house = GuardrailFixture::open();
    for door in DOORS {
        let told = house.say(door, "block", "echo", INSIDE);
        assert!(!told.body.contains(INSIDE), "{door:?}: {told:?}");
        assert_eq!((told.status, told.code), door.refusal(), "{door:?}: {told:?}");
        assert!(told.body.contains("regex/mark"), "{door:?}: {told:?}");
        assert!(house.heard("block").is_empty(), "{door:?}: nothing is executed");

        let told = house.say(door, "redact", "echo", INSIDE);
        assert!(told.body.contains("it is [mark].") && !told.body.contains(INSIDE), "{door:?}: {told:?}");
        let heard = house.heard("redact");
        assert!(heard.last().unwrap().contains("it is [mark]."), "{door:?}: {heard:?}");
        assert!(!heard.concat().contains(INSIDE), "{door:?}: {heard:?}");

        let told = house.say(door, "warn", "echo", INSIDE);
        assert!(told.body.contains(INSIDE), "{door:?}: {told:?}");
        check_warned(door, &told);

        let told = house.say(door, "log", "echo", INSIDE);
        assert!(told.body.contains(INSIDE) && told.warning.is_none(), "{door:?}: {told:?}");
        assert!(!told.body.contains("rialto/guardrail"), "{door:?}: {told:?}");
    }
    let log = until("it is logged", || {
        let log = house.server.log();
        log.contains("guardrail: regex/mark in what was said to log.echo: noted").then_some(log)
    });
    assert!(log.contains("guardrail: regex/mark in what was said to block.echo: blocked"));
    let page = metrics(&house.server);
    let blocked = r#"rialto_guardrail_findings_total{check="regex",action="block",direction="input"} "#;
    assert!(page.contains(blocked), "{page}");
    assert!(page.contains(r#"outcome="blocked""#), "{page}");
}

#[test]
fn each_action_does_what_it_says_at_each_door_on_the_way_back() {
    let mut house = GuardrailFixture::open();
    for door in DOORS {
        let told = house.say(door, "block", "echo", OUTSIDE);
        assert!(told.body.contains("regex/mark"), "{door:?}: {told:?}");
        if door.tells_tasks() {
            assert!(told.body.to_lowercase().contains("failed"), "{door:?}: {told:?}");
        } else {
            assert_eq!((told.status, told.code), door.refusal(), "{door:?}: {told:?}");
        }
        // What was said is not what was answered: the artifact is not there.
        assert!(!told.body.contains("artifact\":{\"artifactId"), "{door:?}: {told:?}");

        let told = house.say(door, "block", "digits", "nothing");
        assert!(!told.body.contains("12345678901234567890"), "{door:?}: {told:?}");

        let told = house.say(door, "redact", "echo", OUTSIDE);
        assert!(told.body.contains("it is [mark]."), "{door:?}: {told:?}");
        assert!(house.heard("redact").last().unwrap().contains(OUTSIDE), "{door:?}: what is said goes on");

        let told = house.say(door, "warn", "echo", OUTSIDE);
        assert!(told.body.contains(OUTSIDE), "{door:?}: {told:?}");
        check_warned(door, &told);

        let told = house.say(door, "log", "echo", OUTSIDE);
        assert!(told.body.contains(OUTSIDE) && told.warning.is_none(), "{door:?}: {told:?}");
    }
    let page = metrics(&house.server);
    for action in ACTIONS {
        let found = format!(r#"check="regex",action="{action}",direction="output""#);
        assert!(page.contains(&found), "{found} is not in {page}");
    }
}

/// A warning is in a header, where there still can be one, and with the task.
#[track_caller]
fn check_warned(door: GuardedEndpoint, told: &EndpointResponse) {
    if door.is_stream() {
        assert!(told.warning.is_none(), "{door:?}: the stream had begun: {told:?}");
    } else {
        let expected = if door == GuardedEndpoint::Stdio { "" } else { "warn; checks=regex; kinds=mark" };
        assert_eq!(told.warning.as_deref(), Some(expected), "{door:?}: {told:?}");
    }
    let is_in_body = !matches!(door, GuardedEndpoint::Plain | GuardedEndpoint::Dispatch);
    assert_eq!(told.body.contains("rialto/guardrail"), is_in_body, "{door:?}: {told:?}");
}

#[test]
fn what_is_blocked_never_reaches_peer_store_or_log() {
    let mut house = GuardrailFixture::open();
    for door in DOORS {
        let told = house.say(door, "block", "echo", INSIDE);
        assert!(!told.body.contains(INSIDE), "{door:?}: {told:?}");
        house.say(door, "block", "digits", "harmless");
    }
    let GuardrailFixture { rialto, agents, mut server, stdio, .. } = house;
    assert!(server.stop().success());
    let said = format!("{}{}", server.log(), stdio.leave());
    let heard = agents[0].heard().concat();
    assert!(heard.contains("harmless") && !heard.contains(INSIDE), "{heard}");
    let digits = &DIGITS[7..37];
    assert!(!said.contains(INSIDE) && !said.contains(digits), "{said}");
    assert!(said.contains("guardrail: regex/mark"), "{said}");
    let mut searched = 0;
    look_into(&rialto.data(), &mut |path, bytes| {
        searched += bytes.len();
        for mark in [INSIDE, digits] {
            let is_there = bytes.windows(mark.len()).any(|window| window == mark.as_bytes());
            assert!(!is_there, "{mark} is in {}", path.display());
        }
    });
    assert!(searched > 10_000, "there was something to search");
    let trail = rialto.json(&["audit", "--limit", "500", "--json"]);
    let withheld = trail.as_array().unwrap().iter().filter(|record| {
        record["event"]["args"]["withheld"].is_string() && record["event"]["context"]["denied"] == true
    });
    assert_eq!(withheld.count(), DOORS.len(), "each blocked call is on record");
    assert!(trail.to_string().contains("\"kinds\":[\"mark\"]"));
    rialto.cli(&["audit", "verify"]).ok();
}

fn look_into(folder: &std::path::Path, found: &mut impl FnMut(&std::path::Path, &[u8])) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            look_into(&path, found);
        } else {
            found(&path, &std::fs::read(&path).unwrap());
        }
    }
}

fn metrics(server: &ServerProcess) -> String {
    http::get(&format!("{}/metrics", server.url)).unwrap().body
}

#[test]
fn guardrails_change_while_the_server_runs_and_mistakes_change_nothing() {
    let rialto = Rialto::fresh();
    let agent = SampleAgent::named("Desk");
    let file = rialto.folder().join("rialto.toml");
    std::fs::write(&file, "").unwrap();
    rialto.trust(&agent.url);
    let server = rialto.serve(&[]);
    let call = || server.call("desk.echo", &json!({ "to": "ann@example.org" })).answer;
    call().unwrap();
    std::fs::write(&file, "[[guardrails.checks]]\ntype = \"pii\"\n").unwrap();
    let error = until("the guardrails are in force", || call().err());
    assert_eq!(error["data"]["class"], "GuardrailBlockedError");
    std::fs::write(&file, "[[guardrails.checks]]\ntype = \"pi\"\n").unwrap();
    until("the mistake is logged", || server.log().contains("did you mean \"pii\"?").then_some(()));
    assert!(call().is_err(), "the ones before stay in force");
    std::fs::write(&file, "").unwrap();
    until("they are gone", || call().ok());
}

#[test]
fn guardrails_that_do_not_hold_up_are_refused_at_the_start_by_name() {
    let rialto = Rialto::fresh();
    let text = "[guardrails.skills.\"desk.*\"]\nchecks = [{ type = \"regex\", config.patterns = [{ name = \"x\", pattern = \"(\" }] }]\n";
    std::fs::write(rialto.folder().join("rialto.toml"), text).unwrap();
    let said = rialto.cli(&["agents", "list"]);
    assert_ne!(said.status, 0);
    assert!(said.err.contains("guardrails.skills.\"desk.*\""), "{}", said.err);
    let doctor = rialto.cli(&["doctor"]);
    assert!(format!("{}{}", doctor.out, doctor.err).contains("guardrails"), "{doctor:?}");
}

#[test]
fn configured_guardrails_are_tried_out_and_shown() {
    let rialto = Rialto::fresh().with("RIALTO_TOKEN", "owners-token-of-at-least-32-characters");
    let text = "[guardrails]\naction = \"log\"\nchecks = [{ type = \"pii\" }]\n\
                [guardrails.orgs.acme]\nchecks = [{ type = \"secrets\" }]\n\
                [guardrails.skills.\"desk.book\"]\naction = \"redact\"\nchecks = [{ type = \"pii\", config.kinds = [\"email\"] }]\n";
    std::fs::write(rialto.folder().join("rialto.toml"), text).unwrap();
    let told = rialto.json(&["guard", "test", "--json", "to ann@example.org"]);
    assert_eq!((&told["verdict"], &told["guardrails"]), (&json!("log"), &json!(["guardrails"])));
    let told = rialto.json(&[
        "guard",
        "test",
        "--skill",
        "desk.book",
        "--org",
        "acme",
        "--json",
        "to ann@example.org",
    ]);
    assert_eq!(told["verdict"], "redact", "the strictest wins");
    let places = json!(["guardrails", "guardrails.orgs.acme", "guardrails.skills.\"desk.book\""]);
    assert_eq!(told["guardrails"], places);
    let said = rialto.cli(&["guard", "test", "--skill", "desk.book", "hello"]).ok().out;
    assert!(said.contains("Guardrails: guardrails, guardrails.skills.\"desk.book\""), "{said}");
    rialto.cli(&["guard", "test", "--checks", "pii", "to ann@example.org"]).exit(3);

    rialto.cli(&["policy", "add", "allow-admin", "admin_policies", "--caller", "owner"]).ok();
    let server = rialto.serve(&[]);
    let headers = [("Authorization", "Bearer owners-token-of-at-least-32-characters")];
    let shown = http::get_with(&format!("{}/api/v1/guardrails", server.url), None, &headers);
    let read: Value = serde_json::from_str(&shown.body).unwrap_or_else(|_| panic!("{shown:?}"));
    assert_eq!(read["guardrails"]["action"], "log", "{shown:?}");
    assert_eq!(read["guardrails"]["orgs"], json!({}), "another org's are its own");
    let test = |body: Value| {
        http::post(&format!("{}/api/v1/guardrails/test", server.url), &headers, &body.to_string())
    };
    let tried = test(json!({ "text": "to ann@example.org", "skill": "desk.book" }));
    let read: Value = serde_json::from_str(&tried.body).unwrap();
    assert_eq!((&read["verdict"], &read["findings"][0]["kind"]), (&json!("redact"), &json!("email")));
    assert!(!tried.body.contains("ann@"), "{tried:?}");
    assert_eq!(test(json!({})).status, 400);
    assert_eq!(http::get(&format!("{}/api/v1/guardrails", server.url)).unwrap().status, 401);
}

#[test]
fn tools_and_functions_are_guarded_like_agents() {
    let rialto = Rialto::fresh();
    let text = "[[functions]]\nname = \"up\"\ncommand = [\"tr\", \"a-z\", \"A-Z\"]\n\
                [guardrails.skills.up]\nchecks = [\n\
                { type = \"regex\", target = \"input\", config.patterns = [{ name = \"mark\", pattern = \"inmark\" }] },\n\
                { type = \"regex\", target = \"output\", config.patterns = [{ name = \"loud\", pattern = \"OUTMARK\" }] },\n]\n";
    std::fs::write(rialto.folder().join("rialto.toml"), text).unwrap();
    let server = rialto.serve(&["--allow-no-auth"]);
    let call = |word: &str| server.call("up", &json!({ "word": word }));
    assert!(call("fine").text().contains("FINE"));
    let error = call("inmark").answer.unwrap_err();
    assert_eq!((&error["code"], &error["data"]["direction"]), (&json!(-32209), &json!("input")), "{error}");
    let error = call("outmark").answer.unwrap_err();
    assert_eq!((&error["code"], &error["data"]["direction"]), (&json!(-32209), &json!("output")), "{error}");
    let said = rialto.cli(&["call", "up", r#"{"word":"inmark"}"#]).exit(3);
    assert!(said.err.contains("a guardrail blocked this"), "{}", said.err);
}

#[test]
fn a_model_server_is_asked_over_http_and_private_ones_only_where_that_is_allowed() {
    let judge = ModelServer::start();
    let agent = SampleAgent::named("Desk");
    let setting = |allow_private: bool| {
        format!(
            "[[guardrails.checks]]\ntype = \"toxicity\"\ntarget = \"input\"\n\
             config = {{ url = \"{}\", token = \"env:JUDGE\", allow_private = {allow_private} }}\n",
            judge.url
        )
    };
    let rialto = Rialto::fresh().with("JUDGE", "hunter2").with("RIALTO_LOG", "trace");
    let file = rialto.folder().join("rialto.toml");
    std::fs::write(&file, setting(true)).unwrap();
    rialto.trust(&agent.url);
    let server = rialto.serve(&[]);
    let call = |note: &str| server.call("desk.echo", &json!({ "note": note })).answer;
    call("you are kind").unwrap();
    let error = call("you idiot").unwrap_err();
    assert_eq!(
        (&error["data"]["checks"], &error["data"]["kinds"]),
        (&json!(["toxicity"]), &json!(["toxicity"]))
    );
    let asked = judge.asked();
    assert!(asked[0].contains("authorization: bearer hunter2"), "{asked:?}");
    assert!(
        asked[0].contains(r#"{"text":"{\"note\":\"you are kind\"}","labels":["toxicity"]}"#),
        "{asked:?}"
    );
    assert_eq!(agent.heard().len(), 1);
    std::fs::write(&file, setting(false)).unwrap();
    let error = until("it may not be asked any more", || call("you are kind").err());
    assert_eq!(error["data"]["kinds"], json!(["unanswered"]), "closed, as nobody said otherwise");
    let reported = || Some(server.log()).filter(|log| log.contains("could not be asked"));
    let log = until("the log has the reason", reported);
    assert!(!log.contains("hunter2") && !log.contains("idiot"), "{log}");
}
