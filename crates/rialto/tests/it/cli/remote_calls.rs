//! `rialto call … --server`: a call that a server makes goes as one that is made here.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::{Value, json};

use super::remote::ServerAndLocal;
use crate::harness::{agent::SampleAgent, rialto::CommandOutput, until};

/// What is said without the ids and moments, which are new for each call.
fn alike(said: &CommandOutput) -> (i32, String, String) {
    let plain = |text: &str| {
        let words = text.split_inclusive([' ', '"', '\n', ',', ';']);
        words.filter(|word| !word.contains("task_") && !word.contains("2026-")).collect::<String>()
    };
    (said.status, plain(&said.out), plain(&said.err))
}

#[test]
fn a_call_says_the_same_there_as_here() {
    let (both, desk) = (ServerAndLocal::new(), SampleAgent::named("Desk"));
    both.here.trust(&desk.url);
    for args in [
        &["call", "desk.echo", r#"{"n":12345678901234567890.10}"#][..],
        &["call", "desk.echo", r#"{"n":12345678901234567890.10}"#, "--json"],
        &["call", "a2a_desk_greet", r#"{"name":"Ann"}"#],
        &["call", "desk.echo"],
        &["call", "desk.greet", "{}"],
        &["call", "desk.greet", "{}", "--json"],
        &["call", "desk.greet", "no json"],
        &["call", "desk.fail"],
        &["call", "desk.fail", "--json"],
        &["call", "desk.nonsense"],
        &["call", "desk.ask"],
        &["call", "desk", "what is there?"],
        &["call", "desk"],
        &["call", "desk.ech"],
        &["call", "nobody.knows", "--json"],
    ] {
        let (here, there) = (both.here.cli(args), both.there(args));
        assert_eq!(alike(&here), alike(&there), "{args:?}");
    }
    let refused = SampleAgent::named("Other");
    both.here.cli(&["agents", "add", &refused.url]).ok();
    let (here, there) = (both.here.cli(&["call", "other.echo"]), both.there(&["call", "other.echo"]));
    assert_eq!((here.status, alike(&here)), (3, alike(&there)));
    let loaded = both.there(&["call", "desk.echo", "--agent", &desk.url]).exit(2);
    assert!(loaded.err.contains("rialto agents add"), "{}", loaded.err);
}

#[test]
fn a_question_is_answered_and_the_answer_alone_is_told() {
    let (both, desk) = (ServerAndLocal::new(), SampleAgent::named("Desk"));
    both.here.trust(&desk.url);
    let asked = both.there(&["call", "desk.ask", "--json"]).ok().json();
    assert_eq!(asked["state"], "input-required");
    let id = asked["taskId"].as_str().unwrap();
    let said = both.there(&["call", "desk", "red", "--task", id]).ok();
    assert!(said.out.contains("you chose red") && !said.err.contains("which colour"), "{said:?}");
}

#[test]
fn a_call_that_takes_too_long_goes_on_and_can_be_shown() {
    let (both, desk) = (ServerAndLocal::new(), SampleAgent::named("Desk"));
    desk.learn("later");
    both.here.trust(&desk.url);
    let args = ["call", "desk.later", r#"{"ms":1500}"#, "--timeout-ms", "300", "--json"];
    let late = both.there(&args).exit(6).json();
    let message = late["error"]["message"].as_str().unwrap();
    assert!(message.contains("did not finish within 300 ms"), "{message}");
    let id = late["error"]["data"]["taskId"].as_str().unwrap();
    until("it is done", || {
        let shown = both.there(&["tasks", "show", id, "--json"]).ok().json();
        (shown["state"] == "completed").then_some(())
    });
}

#[test]
fn ctrl_c_calls_it_off_there() {
    let (both, desk) = (ServerAndLocal::new(), SampleAgent::named("Desk"));
    both.here.trust(&desk.url);
    let args = ["call", "desk.slow", r#"{"ms":20000}"#, "--server", &both.server.url];
    let mut call = both.elsewhere.start(&args);
    until("the agent hears of it", || (!desk.heard().is_empty()).then_some(()));
    call.signal("INT");
    assert_eq!(call.end().code(), Some(1), "{}", call.stderr());
    assert!(call.stderr().contains("canceled"), "{}", call.stderr());
    let listed = both.there(&["tasks", "list", "--json"]).ok().json();
    assert_eq!(listed[0]["state"], "canceled");
}

#[test]
fn a_stream_that_breaks_off_is_gone_on_with() {
    let (both, desk) = (ServerAndLocal::new(), SampleAgent::named("Desk"));
    desk.learn("later");
    both.here.trust(&desk.url);
    let (url, cut) = cutting(both.server.url.strip_prefix("http://").unwrap().to_owned());
    let args = ["call", "desk.later", r#"{"ms":2500}"#, "--server", &url];
    let said = both.elsewhere.cli(&args).ok();
    assert!(said.out.contains("done at last"), "{said:?}");
    assert_eq!(cut.load(Ordering::SeqCst), 2, "the stream was cut twice");
}

/// Stands between, and cuts the first two connections on which events are told, as soon as they are.
fn cutting(to: String) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let cut = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&cut);
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(&to).unwrap();
            let (up, down) = ((client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client));
            thread::spawn(move || pass_on(up.0, up.1, |_| false));
            let counted = Arc::clone(&counted);
            thread::spawn(move || {
                pass_on(down.0, down.1, |text| {
                    let is_stream = text.contains("text/event-stream");
                    is_stream
                        && counted
                            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| (n < 2).then_some(n + 1))
                            .is_ok()
                });
            });
        }
    });
    (url, cut)
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, is_enough: impl Fn(&str) -> bool) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let is_over = is_enough(&String::from_utf8_lossy(&buffer[..read]));
        if to.write_all(&buffer[..read]).is_err() || is_over {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

#[test]
fn what_comes_on_record_is_followed_there() {
    let (both, desk) = (ServerAndLocal::new(), SampleAgent::named("Desk"));
    both.here.trust(&desk.url);
    let args = ["audit", "--follow", "--json", "--agent", "desk", "--server", &both.server.url];
    let follow = both.elsewhere.start(&args);
    until("it follows", || follow.stderr().contains("Shows new records").then_some(()));
    both.here.cli(&["call", "desk.echo", r#"{"n":1.10}"#]).ok();
    let lines: Vec<Value> = (0..2).map(|_| serde_json::from_str(&follow.line().unwrap()).unwrap()).collect();
    assert_eq!(lines[0]["event"]["phase"], "pre-verb");
    assert_eq!(lines[1]["event"]["phase"], "post-verb");
    assert_eq!(lines[1]["event"]["verb"], json!("desk.echo"));
}

#[test]
fn the_doctor_looks_at_the_server() {
    let both = ServerAndLocal::new();
    both.here.cli(&["policy", "remove", "allow-approve_call-for-local"]).ok();
    let found = both.there(&["doctor", "--json"]).ok().json();
    let of = |what: &str| {
        let found = found.as_array().unwrap().iter().find(|found| found["what"] == what);
        found.unwrap_or_else(|| panic!("nothing about {what}")).clone()
    };
    assert!(
        of("health")["level"] == "ok" && of("readiness")["level"] == "ok" && of("version")["level"] == "ok"
    );
    assert!(of("token")["finding"].as_str().unwrap().contains("local"), "{found}");
    assert_eq!(of("admin_agents")["level"], "ok");
    assert!(of("approve_call")["fix"].as_str().unwrap().contains("allow-admin approve_call --caller local"));
    let nobody = both.here.cli(&["doctor", "--server", "http://127.0.0.1:2"]).exit(1);
    assert!(nobody.out.contains("could not be reached"), "{}", nobody.out);
    let stranger = both.here.cli(&["doctor", "--server", &both.server.url]).exit(1);
    assert!(stranger.out.contains("RIALTO_TOKEN"), "{}", stranger.out);
}
