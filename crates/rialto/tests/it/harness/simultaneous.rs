//! The same message to two servers in the same moment.

use std::{collections::BTreeSet, sync::Barrier, thread};

use serde_json::{Value, json};

use super::{agent::SampleAgent, http, server::ServerProcess};

/// Sends each of `count` messages to both servers at once. Answers the tasks that came of them, and how often the agent was called.
pub(crate) fn send_twice(
    servers: [&ServerProcess; 2],
    agent: &SampleAgent,
    count: usize,
) -> (BTreeSet<String>, usize) {
    let before = agent.heard().len();
    let mut tasks = BTreeSet::new();
    for number in 0..count {
        let barrier = Barrier::new(2);
        let told = thread::scope(|scope| {
            let sending = servers.map(|server| server.url.clone()).map(|url| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let parts = json!([{ "data": { "number": number } }]);
                    let id = format!("m-{number}");
                    let message = json!({
                        "messageId": id, "role": "ROLE_USER", "parts": parts, "metadata": { "skillId": "desk.echo" },
                    });
                    let request = json!({
                        "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message },
                    });
                    let headers = [("content-type", "application/json"), ("a2a-version", "1.0")];
                    barrier.wait();
                    http::post(&format!("{url}/a2a"), &headers, &request.to_string()).body
                })
            });
            sending.map(|sending| sending.join().unwrap())
        });
        for body in told {
            let answer: Value = serde_json::from_str(&body).unwrap();
            let id = answer["result"]["task"]["id"].as_str().unwrap_or_else(|| panic!("{answer}"));
            tasks.insert(id.to_owned());
        }
    }
    (tasks, agent.heard().len() - before)
}
