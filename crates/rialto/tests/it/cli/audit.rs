//! `rialto audit`: everything that was done can be found again, and nothing can be changed unnoticed.

use serde_json::{Value, json};

use crate::harness::{agent::SampleAgent, rialto::Rialto};

/// One call that went well, one that failed, one that was refused.
fn three_calls() -> (Rialto, SampleAgent, SampleAgent) {
    let (rialto, desk, other) = (Rialto::fresh(), SampleAgent::named("Desk"), SampleAgent::named("Other"));
    rialto.trust(&desk.url);
    rialto.cli(&["agents", "add", &other.url]).ok();
    rialto.cli(&["call", "desk.greet", r#"{"name":"Ann"}"#]).ok();
    rialto.cli(&["call", "desk.fail"]).exit(1);
    rialto.cli(&["call", "other.echo"]).exit(3);
    (rialto, desk, other)
}

fn phases(records: &Value) -> Vec<(&str, &str)> {
    let events = records.as_array().unwrap().iter().map(|record| &record["event"]);
    events.map(|event| (event["verb"].as_str().unwrap(), event["phase"].as_str().unwrap())).collect()
}

#[test]
fn every_call_is_on_record_and_can_be_found() {
    let (rialto, _desk, _other) = three_calls();
    let all = rialto.json(&["audit", "--json"]);
    let refused = [("other.echo", "verb-error"), ("other.echo", "post-verb"), ("other.echo", "pre-verb")];
    let failed = [("desk.fail", "verb-error"), ("desk.fail", "post-verb"), ("desk.fail", "pre-verb")];
    let went_well = [("desk.greet", "post-verb"), ("desk.greet", "pre-verb")];
    let registered = [("agent.register", "admin"); 2];
    assert_eq!(phases(&all), [&refused[..], &failed, &went_well, &registered].concat());
    for (search, expected) in [
        (["--agent", "other"], [&refused[..], &registered[..1]].concat()),
        (["--outcome", "denied"], refused.to_vec()),
        (["--outcome", "completed"], [&went_well[..1], &registered].concat()),
        (["--caller", "nobody"], Vec::new()),
        (["--before", "3"], registered.to_vec()),
        (["--since", "2999-01-01T00:00:00Z"], Vec::new()),
        (["--until", "7d"], Vec::new()),
    ] {
        let found = rialto.json(&[&["audit", "--json"][..], &search].concat());
        assert_eq!(phases(&found), expected, "{search:?}");
    }
    assert_eq!(phases(&rialto.json(&["audit", "--json", "--since", "1h"])).len(), 10);
    let table = rialto.cli(&["audit", "--limit", "1"]).ok().out;
    assert!(table.contains("verb-error") && table.contains("-32003"), "{table}");
    let said = rialto.cli(&["audit", "--since", "yesterday"]).exit(2);
    assert!(said.err.contains("7d"), "{}", said.err);
}

#[test]
fn a_flipped_byte_is_found_and_where() {
    let (rialto, _desk, _other) = three_calls();
    let sound = rialto.json(&["audit", "verify", "--json"]);
    assert_eq!((&sound["sound"], &sound["records"]), (&json!(true), &json!(10)));
    assert!(rialto.cli(&["audit", "verify"]).ok().out.contains("10 records"));

    let file = rialto.data().join("rialto.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let words = br#""verb":"desk.greet""#;
    let at = bytes.windows(words.len()).position(|window| window == words).unwrap();
    bytes[at + words.len() - 2] ^= 1;
    std::fs::write(&file, bytes).unwrap();

    let said = rialto.cli(&["audit", "verify"]).exit(1);
    assert!(
        said.err.contains("record 3 is not as it was written") || said.err.contains("record 4 is not"),
        "{}",
        said.err
    );
    assert!(rialto.cli(&["audit", "verify", "--json"]).exit(1).out.contains("\"sound\": false"));
}

#[test]
fn one_call_is_shown_from_both_sides() {
    let (rialto, desk, _other) = three_calls();
    let id = |verb: &str| {
        let records = rialto.json(&["audit", "--json"]);
        let mut found = records.as_array().unwrap().iter().filter(|record| record["event"]["verb"] == verb);
        found.next().unwrap()["event"]["taskId"].as_str().unwrap().to_owned()
    };
    let good = rialto.json(&["inspect", &id("desk.greet"), "--json"]);
    assert_eq!(good["cameIn"]["arguments"], json!({ "name": "Ann" }));
    assert_eq!((&good["cameIn"]["caller"], &good["cameIn"]["door"]), (&json!("local"), &json!("cli")));
    assert_eq!(good["decision"]["policies"], json!(["starter-invoke-trusted-skill"]));
    let out = &good["wentOut"];
    assert_eq!((&out["agent"], &out["protocol"]), (&json!("desk"), &json!("A2A 0.3 over JSON-RPC")));
    assert_eq!((&out["url"], &out["remoteTaskId"]), (&json!(desk.url), &json!("task-1")));
    assert_eq!(out["sent"][0]["content"], json!({ "name": "Ann" }));
    let told: Vec<&str> =
        good["timeline"].as_array().unwrap().iter().map(|entry| entry["who"].as_str().unwrap()).collect();
    assert_eq!((told.first(), told.contains(&"agent")), (Some(&"rialto"), true), "{good}");
    let failed = rialto.cli(&["inspect", &id("desk.fail")]).ok().out;
    for part in [
        "desk.fail  failed",
        "it broke on purpose",
        "allowed by starter-invoke-trusted-skill",
        "session a2a-",
    ] {
        assert!(failed.contains(part), "{part} is not in {failed}");
    }
    let refused = rialto.cli(&["inspect", &id("other.echo")]).ok().out;
    for part in ["rejected before a task was created", "rialto agents trust other trusted"] {
        assert!(refused.contains(part), "{part} is not in {refused}");
    }
    rialto.cli(&["inspect", "task_nowhere"]).exit(4);
}
