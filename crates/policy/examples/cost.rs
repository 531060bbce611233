//! What a decision costs with few and with many policies: `cargo run --release -p rialto-policy --example cost`.
//!
//! *Warm* is a question that was asked before. *Cold* is one about a row that has just changed. `named` policies say
//! in their scope whom they are about, as those that Rialto writes do; `general` ones must all be evaluated. `unindexed` are named ones
//! without the policy index.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a tool for the bench, not part of the product"
)]

use std::{hint::black_box, time::Instant};

use rialto_model::{agent::AgentTrust, call::Caller};
use rialto_policy::{Action, Policy, Question, Resource, Source};

#[path = "../src/samples.rs"]
mod samples;

fn main() {
    println!("{:>9} {:>8} {:>12} {:>12}", "kind", "policies", "warm (µs)", "cold (µs)");
    let kinds = [("named", named as fn(usize) -> String), ("unindexed", named), ("general", general)];
    for (kind, one) in kinds {
        for count in [1, 100, 1_000] {
            let text = (1..=count).map(one).collect();
            let policy = Policy::parse(&[Source { name: "many.cedar".into(), text, org: None }]).unwrap();
            let policy = policy.with_index(kind != "unindexed");
            println!("{kind:>9} {count:>8} {:>12.3} {:>12.2}", warm(&policy), cold(&policy));
        }
    }
}

fn named(number: usize) -> String {
    format!("permit (principal, action == Action::\"a2a_invoke\", resource in A2AAgent::\"agt_{number}\");\n")
}

fn general(number: usize) -> String {
    format!(
        "permit (principal, action == Action::\"a2a_invoke\", resource is Skill) when {{ resource.tags.contains(\"tag_{number}\") }};\n"
    )
}

fn warm(policy: &Policy) -> f64 {
    per_decision(policy, 200_000, |_| 1)
}

fn cold(policy: &Policy) -> f64 {
    per_decision(policy, 2_000, |round| u64::from(round) + 10)
}

/// Microseconds for one decision about a row that has `version(round)`.
fn per_decision(policy: &Policy, rounds: u32, version: impl Fn(u32) -> u64) -> f64 {
    let (caller, mut agent) = (Caller::user("ann"), samples::agent(AgentTrust::External));
    let skill = samples::skill("deploy", &["ops"]);
    let begun = Instant::now();
    for round in 0..rounds {
        agent.version = version(round);
        let resource = Resource::Skill(&agent, &skill);
        let question = Question {
            caller: &caller,
            caller_agent: None,
            action: Action::Invoke,
            resource,
            approved: false,
        };
        black_box(policy.decide(&question));
    }
    begun.elapsed().as_secs_f64() * 1e6 / f64::from(rounds)
}
