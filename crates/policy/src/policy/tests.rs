use std::sync::Arc;

use rialto_model::{
    agent::{Agent, Health, Keep, Signature, Trust},
    call::Caller,
    card::{Card, Skill},
    ids::Scope,
    json::{Extra, Json},
};

use super::*;
use crate::text::allow_agent;

fn skill(id: &str, tags: &[&str]) -> Skill {
    Skill {
        id: id.into(),
        name: id.into(),
        description: String::new(),
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        examples: Vec::new(),
        input_modes: Vec::new(),
        output_modes: Vec::new(),
        input_schema: None,
        extra: Extra::new(),
    }
}

fn agent(trust: Trust) -> Agent {
    let card = Card {
        name: "Vercel Ops".into(),
        description: String::new(),
        version: None,
        interfaces: Vec::new(),
        skills: vec![Arc::new(skill("deploy", &["ops"]))],
        streaming: false,
        push_notifications: false,
        extended: false,
        signed: false,
        raw: Json::empty_object(),
    };
    Agent {
        id: "agt_1".into(),
        scope: Scope::default(),
        url: "https://agents.example.com".into(),
        slug: "vercel_ops".into(),
        card: Arc::new(card),
        pending: None,
        trust,
        health: Health::Healthy,
        signature: Signature::None,
        keep: Keep::Stored,
        credential: None,
        allow_private: false,
        card_path: None,
        etag: None,
        speaks: None,
        timeout_ms: None,
        registered_at: "2026-01-01T00:00:00Z".parse().unwrap(),
        last_fetched_at: "2026-01-01T00:00:00Z".parse().unwrap(),
        last_seen_at: None,
        last_error: None,
        version: 1,
    }
}

fn ask(policy: &Policy, agent: &Agent, action: Action) -> Decision {
    let caller = Caller::user("ann");
    policy.decide(&Question {
        caller: &caller,
        action,
        agent,
        skill: agent.card.skills.first().map(|s| &**s),
    })
}

fn with(extra: &str) -> Policy {
    Policy::parse(&[
        Source { name: "starter.cedar".into(), text: STARTER.into() },
        Source { name: "extra.cedar".into(), text: extra.into() },
    ])
    .unwrap()
}

#[test]
fn the_starter_policy_lets_a_trusted_agent_be_called() {
    let decision = ask(&Policy::starter().unwrap(), &agent(Trust::Trusted), Action::Invoke);
    assert!(decision.allowed);
    assert_eq!(decision.policies, ["starter-invoke-trusted-skill"]);
}

#[test]
fn the_starter_policy_lets_an_external_agent_be_seen_but_not_called() {
    let policy = Policy::starter().unwrap();
    assert!(ask(&policy, &agent(Trust::External), Action::Discover).allowed);
    assert!(!ask(&policy, &agent(Trust::External), Action::Invoke).allowed);
}

#[test]
fn a_change_of_trust_is_seen_by_the_next_question() {
    let policy = Policy::starter().unwrap();
    let mut agent = agent(Trust::External);
    assert!(!ask(&policy, &agent, Action::Invoke).allowed);
    agent.trust = Trust::Trusted;
    agent.version += 1;
    assert!(ask(&policy, &agent, Action::Invoke).allowed);
}

#[test]
fn one_permit_lets_one_external_agent_be_called() {
    let external = agent(Trust::External);
    let policy = with(&allow_agent(&external.id).text);
    assert_eq!(ask(&policy, &external, Action::Invoke).policies, ["allow-agt_1"]);
}

#[test]
fn a_forbid_wins_and_is_named() {
    let policy = with(
        "@id(\"no-ops\") forbid (principal, action, resource is Skill) when { resource.tags.contains(\"ops\") };",
    );
    let trusted = agent(Trust::Trusted);
    assert_eq!(ask(&policy, &trusted, Action::Invoke).policies, ["no-ops"]);
}

#[test]
fn a_denial_names_the_command_that_would_allow_it() {
    let external = agent(Trust::External);
    let caller = Caller::user("ann");
    let question = Question { caller: &caller, action: Action::Invoke, agent: &external, skill: None };
    let denied = Denied::new(&question, Policy::starter().unwrap().decide(&question));
    insta::assert_snapshot!(denied, @"ann may not a2a_invoke vercel_ops: no policy permits it; to allow it run `rialto agents trust vercel_ops trusted`, or `rialto policy allow vercel_ops`");
}

#[test]
fn a_mistake_is_reported_with_its_place() {
    let source = |text: &str| Source { name: "x.cedar".into(), text: text.into() };
    let syntax = Policy::parse(&[source("permit (principal, action, resource)\nwen { true };")]).unwrap_err();
    assert_eq!(syntax.0[0].place, "x.cedar:2:1");
    let meaning = Policy::parse(&[source(
        "permit (principal, action, resource is Skill) when { resource.colour == 1 };",
    )]);
    let meaning = meaning.unwrap_err();
    assert_eq!(meaning.0[0].place, "x.cedar#1");
    assert!(meaning.0[0].message.contains("colour"), "{meaning}");
}

#[test]
fn two_policies_of_one_name_are_refused() {
    let text =
        "@id(\"a\") permit (principal, action, resource); @id(\"a\") permit (principal, action, resource);";
    let error = Policy::parse(&[Source { name: "x.cedar".into(), text: text.into() }]).unwrap_err();
    assert!(error.to_string().contains("two policies are called \"a\""));
}

#[test]
fn an_agent_that_calls_itself_is_one_entity() {
    let trusted = agent(Trust::Trusted);
    let mut caller = Caller::user("agt_1");
    caller.kind = CallerKind::Agent;
    let question = Question { caller: &caller, action: Action::Invoke, agent: &trusted, skill: None };
    assert!(Policy::starter().unwrap().decide(&question).allowed);
}

#[test]
fn what_is_open_to_all_is_answered_without_evaluation_but_a_forbid_still_wins() {
    let open = Policy::starter().unwrap();
    assert_eq!(ask(&open, &agent(Trust::External), Action::Discover).policies, ["starter-discover"]);
    let hidden =
        with("@id(\"hide\") forbid (principal, action == Action::\"a2a_discover\", resource is Skill);");
    assert_eq!(ask(&hidden, &agent(Trust::Trusted), Action::Discover).policies, ["hide"]);
    assert!(ask(&hidden, &agent(Trust::Trusted), Action::Cancel).allowed);
}
