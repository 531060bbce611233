use proptest::prelude::*;
use rialto_model::{
    agent::{Agent, AgentTrust},
    call::{Caller, CallerKind},
};

use super::*;
use crate::{
    entities::{Names, View},
    question::{Question, Resource},
    samples,
    text::{Source, compile},
};

const PRINCIPALS: &[&str] = &[
    "principal",
    "principal == User::\"ann\"",
    "principal == A2AAgent::\"agt_1\"",
    "principal in Org::\"default\"",
    "principal in Org::\"elsewhere\"",
    "principal is Session",
    "principal is A2AAgent in Org::\"default\"",
];

const ACTIONS: &[&str] = &[
    "action",
    "action == Action::\"a2a_invoke\"",
    "action == Action::\"a2a_discover\"",
    "action in [Action::\"a2a_invoke\", Action::\"a2a_cancel\"]",
];

const RESOURCES: &[&str] = &[
    "resource",
    "resource == A2AAgent::\"agt_1\"",
    "resource in A2AAgent::\"agt_1\"",
    "resource in A2AAgent::\"agt_2\"",
    "resource == Skill::\"agt_1/deploy\"",
    "resource == Skill::\"agt_2/deploy\"",
    "resource in Org::\"default\"",
    "resource is Skill",
    "resource is Skill in A2AAgent::\"agt_1\"",
];

/// The last one cannot be evaluated: a policy that fails must fail either way.
const CONDITIONS: &[&str] = &[
    "",
    "when { true }",
    "when { false }",
    "when { resource has tags && resource.tags.contains(\"ops\") }",
    "when { principal has trustLevel && principal.trustLevel == \"trusted\" }",
    "unless { context has approved && context.approved }",
    "when { resource.nonsense == 1 }",
];

fn one_policy() -> impl Strategy<Value = String> {
    let effect = prop_oneof![3 => Just("permit"), 1 => Just("forbid")];
    let parts = [PRINCIPALS, ACTIONS, RESOURCES, CONDITIONS].map(proptest::sample::select);
    let [principal, action, resource, condition] = parts;
    (effect, principal, action, resource, condition).prop_map(
        |(effect, principal, action, resource, condition)| {
            format!("{effect} ({principal}, {action}, {resource}) {condition};")
        },
    )
}

fn rows() -> [Agent; 2] {
    let first = samples::agent(AgentTrust::Trusted);
    let second = Agent { id: "agt_2".into(), ..samples::agent(AgentTrust::External) };
    [first, second]
}

fn callers() -> [Caller; 4] {
    let kind = |kind, id: &str| Caller { kind, ..Caller::user(id) };
    [
        Caller::user("ann"),
        Caller::user("bob"),
        kind(CallerKind::Session, "ann"),
        kind(CallerKind::Agent, "agt_1"),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_buckets_say_what_the_whole_set_says(policies in prop::collection::vec(one_policy(), 0..12)) {
        // Some of these would not pass validation; the buckets must not depend on that.
        let set: PolicySet = policies.join("\n").parse().unwrap();
        let (index, names, authorizer) = (Index::of(&set), Names::parse().unwrap(), Authorizer::new());
        let (rows, callers) = (rows(), callers());
        for caller in &callers {
            let caller_agent = (caller.kind == CallerKind::Agent).then_some(&rows[0]);
            for row in &rows {
                for resource in [Resource::Agent(row), Resource::Skill(row, &row.card.skills[0]), Resource::Org] {
                    for action in Action::ALL {
                        let question = Question { caller, caller_agent, action, resource, approved: false };
                        let asked = names.ask(&question, View::AllOrgs).unwrap();
                        let whole = Verdict::of(&authorizer, &set, &asked).decide();
                        prop_assert_eq!(index.ask(action, &asked).decide(), whole);
                    }
                }
            }
        }
    }
}

#[test]
fn a_policy_about_somebody_else_is_not_even_evaluated() {
    let text: String = (0..100)
        .map(|n| {
            format!(
                "permit (principal, action == Action::\"a2a_invoke\", resource in A2AAgent::\"agt_{n}\");\n"
            )
        })
        .collect();
    let set =
        compile(&[Source { name: "many.cedar".into(), text, org: None }]).unwrap().remove(&None).unwrap().set;
    let index = Index::of(&set);
    let sizes: Vec<u64> = index.buckets.values().map(|bucket| bucket.len).collect();
    assert_eq!(sizes, [1; 100]);
}
