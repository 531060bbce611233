//! `rialto webhooks`: receivers get every event, in spite of failures on either side.

use rialto_webhooks::signing_key::SigningKey;
use serde_json::{Value, json};

use crate::harness::{
    agent::SampleAgent,
    rialto::Rialto,
    until,
    webhook_receiver::{ReceivedRequest, WebhookReceiver},
};

#[track_caller]
fn added(rialto: &Rialto, args: &[&str]) -> Value {
    rialto.json(&[&["webhooks", "add"], args, &["--json"]].concat())
}

fn standing(rialto: &Rialto) -> Value {
    rialto.json(&["webhooks", "list", "--json"])[0].take()
}

#[test]
fn a_call_is_told_signed_and_in_order() {
    let (rialto, agent, receiver) = (Rialto::fresh(), SampleAgent::named("Desk"), WebhookReceiver::start());
    rialto.trust(&agent.url);
    let hook = added(&rialto, &[&receiver.url]);
    let server = rialto.serve(&["--allow-no-auth"]);
    server.call("desk.greet", &json!({ "name": "Ann" }));
    server.call("desk.fail", &json!({ "password": "hunter2" }));
    let told = receiver.until_told(5);
    let types = told.iter().map(|told| told.json()["type"].as_str().unwrap().to_owned());
    let names = ["pre", "post", "pre", "post", "error"].map(|name| format!("dev.rialto.verb.{name}"));
    assert_eq!(types.collect::<Vec<_>>(), names);
    // The agent and the webhook that were added are on record before them, and are not told unless somebody asks for that.
    assert_eq!(told.iter().map(ReceivedRequest::record).collect::<Vec<_>>(), [3, 4, 5, 6, 7]);
    let key = SigningKey::parse(hook["secret"].as_str().unwrap()).unwrap();
    for told in &told {
        assert_eq!(key.sign(&told.id, told.timestamp, told.body.as_bytes()), told.signature);
        assert!(!told.body.contains("hunter2"), "{}", told.body);
    }
    assert_eq!(told[0].json()["data"]["args"], json!({ "name": "Ann" }));
    until("it is written down", || (standing(&rialto)["delivered"] == 5).then_some(()));
}

#[test]
fn a_key_is_shown_once_and_kept_where_only_its_owner_reads_it() {
    let (rialto, receiver) = (Rialto::fresh(), WebhookReceiver::start());
    let hook = added(&rialto, &[&receiver.url, "--events", "post-verb,verb-error"]);
    let (id, key) = (hook["id"].as_str().unwrap(), hook["secret"].as_str().unwrap());
    assert_eq!(hook["events"], json!(["post-verb", "verb-error"]));
    let file = rialto.data().join("webhooks").join(format!("{id}.key"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), key);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(file.clone()), mode(rialto.data().join("webhooks"))), (0o600, 0o700));
    }
    let listed = rialto.cli(&["webhooks", "list", "--json"]).ok().out;
    assert!(listed.contains(id) && !listed.contains(key), "{listed}");
    let bytes = std::fs::read(rialto.data().join("rialto.db")).unwrap();
    assert!(!bytes.windows(key.len()).any(|window| window == key.as_bytes()));
    rialto.cli(&["webhooks", "test", id]).ok();
    let told = receiver.until_told(1);
    assert_eq!(told[0].json()["type"], "dev.rialto.webhook.test");
    rialto.cli(&["webhooks", "remove", id]).ok();
    assert!(!file.exists());
    assert!(rialto.cli(&["webhooks", "list"]).ok().out.contains("No webhooks"));
}

#[test]
fn a_key_of_ones_own_is_read_from_the_environment() {
    let receiver = WebhookReceiver::start();
    let key = SigningKey::encode(&[3; 32]);
    let rialto = Rialto::fresh().with("HOOK_KEY", &key).with("SHORT_KEY", "hunter2");
    assert_eq!(added(&rialto, &[&receiver.url, "--secret-env", "HOOK_KEY"])["secret"], Value::Null);
    rialto.cli(&["webhooks", "test", &receiver.url]).ok();
    let told = receiver.until_told(1).remove(0);
    let signed = SigningKey::parse(&key).unwrap().sign(&told.id, told.timestamp, told.body.as_bytes());
    assert_eq!(told.signature, signed);
    let said = rialto.cli(&["webhooks", "add", &receiver.url, "--secret-env", "SHORT_KEY"]).exit(2);
    assert!(said.err.contains("whsec_") && !said.err.contains("hunter2"), "{}", said.err);
}

#[test]
fn killed_in_the_middle_every_call_is_told_after_the_restart() {
    let (agent, receiver) = (SampleAgent::named("Desk"), WebhookReceiver::start());
    let rialto = Rialto::fresh().with("RIALTO_WEBHOOKS__TIMEOUT_MS", "200");
    rialto.trust(&agent.url);
    added(&rialto, &[&receiver.url]);
    let server = rialto.serve(&["--allow-no-auth"]);
    for _ in 0..10 {
        server.call("desk.echo", &json!({}));
    }
    receiver.until_told(3);
    receiver.answer(Some(500));
    for _ in 0..10 {
        server.call("desk.echo", &json!({}));
    }
    server.kill();
    receiver.answer(Some(200));
    let _server = rialto.serve(&["--allow-no-auth"]);
    until("all of it was told", || (standing(&rialto)["handled"] == 42).then_some(()));
    let mut records: Vec<u64> = receiver.told().iter().map(ReceivedRequest::record).collect();
    assert!(records.windows(2).all(|pair| pair[1] <= pair[0] + 1), "none is skipped: {records:?}");
    records.sort_unstable();
    records.dedup();
    assert_eq!(records, (3..=42).collect::<Vec<_>>());
}

#[test]
fn a_receiver_that_hangs_slows_no_call() {
    let (agent, receiver) = (SampleAgent::named("Desk"), WebhookReceiver::start());
    let rialto = Rialto::fresh().with("RIALTO_WEBHOOKS__TIMEOUT_MS", "600000");
    rialto.trust(&agent.url);
    added(&rialto, &[&receiver.url]);
    receiver.answer(None);
    let server = rialto.serve(&["--allow-no-auth"]);
    server.call("desk.echo", &json!({}));
    receiver.until_told(1);
    // The receiver is held up for ten minutes: were a call to wait for it, none of these would come to its end.
    for _ in 0..50 {
        server.call("desk.greet", &json!({ "name": "Ann" }));
    }
    assert_eq!((agent.heard().len(), receiver.told().len()), (51, 1));
}

#[test]
fn a_receiver_that_is_gone_is_listed_as_disabled_until_it_is_tried_again() {
    let (rialto, agent, receiver) = (Rialto::fresh(), SampleAgent::named("Desk"), WebhookReceiver::start());
    rialto.trust(&agent.url);
    let id = added(&rialto, &[&receiver.url])["id"].as_str().unwrap().to_owned();
    receiver.answer(Some(410));
    assert!(rialto.cli(&["webhooks", "test", &id]).exit(1).err.contains("410"));
    let server = rialto.serve(&["--allow-no-auth"]);
    server.call("desk.echo", &json!({}));
    until("it is disabled", || (standing(&rialto)["state"] == "disabled").then_some(()));
    assert!(rialto.cli(&["webhooks", "list"]).ok().out.contains("410 Gone"));
    let fix = format!("rialto webhooks retry {id}");
    assert!(rialto.cli(&["doctor"]).exit(1).out.contains(&fix));
    receiver.answer(Some(204));
    rialto.cli(&["webhooks", "retry", &id]).ok();
    until("it was told", || (standing(&rialto)["delivered"] == 2).then_some(()));
    assert_eq!(standing(&rialto)["state"], "good");
}

#[test]
fn an_address_that_cannot_be_sent_to_is_refused() {
    let rialto = Rialto::fresh();
    for url in
        ["nonsense", "ftp://example.com/", "https://ann:hunter2@example.com/", "https://example.com/#a"]
    {
        rialto.cli(&["webhooks", "add", url]).exit(2);
    }
    rialto.cli(&["webhooks", "add", "https://example.com/?token=hunter2"]).ok();
    assert!(!rialto.cli(&["webhooks", "list"]).ok().out.contains("hunter2"));
    assert!(rialto.cli(&["webhooks", "remove", "hook_x"]).exit(4).err.contains("webhooks list"));
}
