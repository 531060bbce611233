use std::sync::Arc;

use rialto_model::{
    agent::{Agent, AgentTrust},
    call::{CallTarget, Caller, CallerKind, CancelRequest},
    event::RemoteIds,
};

use super::*;
use crate::{
    question::Resource,
    samples::agent,
    template::{Object, Template, Wish},
};

fn ask(policy: &Policy, agent: &Agent, action: Action) -> Arc<Decision> {
    let caller = Caller::user("ann");
    policy.decide(&about_skill(&caller, action, agent))
}

fn about_skill<'a>(caller: &'a Caller, action: Action, agent: &'a Agent) -> Question<'a> {
    let resource = Resource::Skill(agent, agent.card.skills.first().unwrap());
    Question { caller, caller_agent: None, action, resource, approved: false }
}

fn about_agent<'a>(caller: &'a Caller, agent: &'a Agent) -> Question<'a> {
    Question {
        caller,
        caller_agent: None,
        action: Action::Invoke,
        resource: Resource::Agent(agent),
        approved: false,
    }
}

/// A registered agent that calls in.
fn colleague(trust: AgentTrust) -> (Caller, Agent) {
    let row = Agent { id: "agt_2".into(), slug: "colleague".into(), ..agent(trust) };
    (Caller { kind: CallerKind::Agent, ..Caller::user("agt_2") }, row)
}

fn with(extra: &str) -> Policy {
    Policy::parse(&[
        Source { name: "starter.cedar".into(), text: STARTER.into(), org: None },
        Source { name: "extra.cedar".into(), text: extra.into(), org: None },
    ])
    .unwrap()
}

#[test]
fn the_starter_policy_lets_a_trusted_agent_be_called() {
    let decision = ask(&Policy::starter().unwrap(), &agent(AgentTrust::Trusted), Action::Invoke);
    assert!(decision.allowed);
    assert_eq!(*decision.policies, ["starter-invoke-trusted-skill"]);
}

#[test]
fn the_starter_policy_lets_an_external_agent_be_seen_but_not_called() {
    let policy = Policy::starter().unwrap();
    assert!(ask(&policy, &agent(AgentTrust::External), Action::Discover).allowed);
    assert!(!ask(&policy, &agent(AgentTrust::External), Action::Invoke).allowed);
}

#[test]
fn a_change_of_trust_is_seen_by_the_next_question() {
    let policy = Policy::starter().unwrap();
    let mut agent = agent(AgentTrust::External);
    assert!(!ask(&policy, &agent, Action::Invoke).allowed);
    agent.trust = AgentTrust::Trusted;
    agent.version += 1;
    assert!(ask(&policy, &agent, Action::Invoke).allowed);
}

#[test]
fn one_permit_lets_one_external_agent_be_called() {
    let external = agent(AgentTrust::External);
    let permit = Template { wish: Wish::Allow, caller: None, object: Object::Agent(&external) };
    let policy = with(&permit.compile("allow-ops").text);
    assert_eq!(*ask(&policy, &external, Action::Invoke).policies, ["allow-ops"]);
}

#[test]
fn a_forbid_wins_and_is_named() {
    let policy = with(
        "@id(\"no-ops\") forbid (principal, action, resource is Skill) when { resource.tags.contains(\"ops\") };",
    );
    let trusted = agent(AgentTrust::Trusted);
    assert_eq!(*ask(&policy, &trusted, Action::Invoke).policies, ["no-ops"]);
}

#[test]
fn a_denial_names_the_command_that_would_allow_it() {
    let external = agent(AgentTrust::External);
    let caller = Caller::user("ann");
    let denied = Policy::starter().unwrap().allow(&about_agent(&caller, &external)).unwrap_err();
    insta::assert_snapshot!(denied, @r#"caller "ann" is not allowed to call vercel_ops: no policy permits it. Allow it: `rialto policy allow vercel_ops --caller ann`; or let everybody call the agent: `rialto agents trust vercel_ops trusted`"#);
}

#[test]
fn a_mistake_is_reported_with_its_place() {
    let source = |text: &str| Source { name: "x.cedar".into(), text: text.into(), org: None };
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
    let error =
        Policy::parse(&[Source { name: "x.cedar".into(), text: text.into(), org: None }]).unwrap_err();
    assert!(error.to_string().contains("two policies are called \"a\""));
}

#[test]
fn an_agent_that_calls_itself_is_one_entity() {
    let trusted = agent(AgentTrust::Trusted);
    let caller = Caller { kind: CallerKind::Agent, ..Caller::user("agt_1") };
    assert!(Policy::starter().unwrap().decide(&about_agent(&caller, &trusted).by(Some(&trusted))).allowed);
}

#[test]
fn a_policy_can_look_at_the_row_of_an_agent_that_calls_in() {
    let policy = with(
        "@id(\"strangers\") forbid (principal is A2AAgent, action, resource) when { principal.trustLevel == \"external\" };",
    );
    let target = agent(AgentTrust::Trusted);
    let (caller, mut row) = colleague(AgentTrust::Trusted);
    assert!(policy.decide(&about_agent(&caller, &target).by(Some(&row))).allowed);
    (row.trust, row.version) = (AgentTrust::External, row.version + 1);
    let denied = policy.decide(&about_agent(&caller, &target).by(Some(&row)));
    assert_eq!((denied.allowed, &*denied.policies), (false, &["strangers".to_owned()][..]));
}

#[test]
fn an_agent_without_a_row_of_its_own_may_do_nothing() {
    let policy = with("permit (principal, action, resource);");
    let target = agent(AgentTrust::Trusted);
    let (caller, row) = colleague(AgentTrust::Trusted);
    let renamed = Agent { id: "agt_3".into(), ..row.clone() };
    let mut elsewhere = row;
    elsewhere.scope.org = "other".into();
    for row in [None, Some(&renamed), Some(&elsewhere)] {
        let denied = policy.allow(&about_agent(&caller, &target).by(row)).unwrap_err();
        assert_eq!(denied.decision.bar, Some(Bar::Unregistered));
    }
}

#[test]
fn no_policy_opens_one_org_to_another() {
    let policy = with("permit (principal, action, resource);");
    let mut caller = Caller::user("ann");
    caller.scope.org = "other".into();
    let target = agent(AgentTrust::System);
    for action in Action::ALL.into_iter().filter(|action| !action.is_admin()) {
        let denied = policy.allow(&about_skill(&caller, action, &target)).unwrap_err();
        assert_eq!(denied.decision.bar, Some(Bar::OtherOrg), "{denied}");
    }
}

#[test]
fn administration_is_nobodys_until_a_policy_says_whose() {
    let ann = Caller::user("ann");
    let question = Question::admin(&ann, Action::AdminTokens);
    let denied = Policy::starter().unwrap().allow(&question).unwrap_err();
    insta::assert_snapshot!(denied, @r#"caller "ann" is not allowed to administer tokens in org default (admin_tokens): no policy permits it. Allow it: `rialto policy add allow-admin admin_tokens --caller ann`"#);
    let policy = with(
        "permit (principal == User::\"ann\", action == Action::\"admin_tokens\", resource == Org::\"default\");",
    );
    assert!(policy.allow(&question).is_ok());
    assert!(policy.allow(&Question::admin(&ann, Action::AdminAudit)).is_err());
    assert!(policy.allow(&Question::admin(&Caller::user("bob"), Action::AdminTokens)).is_err());
}

#[test]
fn a_call_that_would_be_allowed_with_approval_can_be_held_and_no_other() {
    let ask = "@id(\"ask\") @approval(\"the ops team\") forbid (principal, action == Action::\"a2a_invoke\", resource) unless { context.approved };";
    let permit = "@id(\"all\") permit (principal, action == Action::\"a2a_invoke\", resource);";
    let never = "@id(\"never\") forbid (principal, action == Action::\"a2a_invoke\", resource);";
    let wish = || CancelRequest {
        caller: Caller::user("ann"),
        target: CallTarget { agent: Arc::new(agent(AgentTrust::Trusted)), skill: None },
        remote: RemoteIds::default(),
    };
    let parse = |text: String| Policy::parse(&[Source { name: "x.cedar".into(), text, org: None }]).unwrap();
    for (text, is_held) in [
        (format!("{ask} {permit}"), true),
        (ask.to_owned(), false),
        (format!("{ask} {permit} {never}"), false),
    ] {
        let policy = parse(text.clone());
        let held = policy.check_or_hold(Invocation(wish()), None);
        assert_eq!(held.is_ok(), is_held, "{text}");
        assert_eq!(policy.check_approved(Invocation(wish()), None).is_ok(), is_held, "{text}");
        if let Ok(leave) = held {
            let approvers = ["the ops team"];
            assert!(matches!(&leave, Leave::OnceApproved(_, decision) if decision.approvers == approvers));
        }
        // Whoever cannot hold it refuses it.
        assert!(policy.check(Invocation(wish())).is_err());
    }
}

/// Something that is invoked, in as few words as possible.
struct Invocation(CancelRequest);

impl Deed for Invocation {
    fn question(&self) -> Question<'_> {
        Question::about(&self.0.caller, Action::Invoke, &self.0.target)
    }
}

#[test]
fn a_forbid_that_waits_for_approval_says_who_must_give_it() {
    let policy = with(
        "@id(\"ask\") @approval(\"the ops team\") forbid (principal, action == Action::\"a2a_invoke\", resource) unless { context.approved };",
    );
    let ann = Caller::user("ann");
    let denied = policy.allow(&about_agent(&ann, &agent(AgentTrust::Trusted))).unwrap_err();
    insta::assert_snapshot!(denied, @r#"caller "ann" is not allowed to call vercel_ops: it needs approval by the ops team (policy ask), which nobody has given. Allow it without: `rialto policy remove ask`"#);
}

#[test]
fn a_question_that_was_asked_before_is_told_apart_by_everything_it_depends_on() {
    let policy = Policy::starter().unwrap();
    let (ann, bob) = (Caller::user("ann"), Caller::user("bob"));
    let session = Caller { kind: CallerKind::Session, ..Caller::user("ann") };
    let external = agent(AgentTrust::External);
    let newer = Agent { version: 2, ..agent(AgentTrust::Trusted) };
    let asked = [&ann, &bob, &session].map(|caller| {
        [&external, &newer].map(|agent| {
            [about_agent(caller, agent), about_skill(caller, Action::Invoke, agent)]
                .map(|question| policy.decide(&question))
        })
    });
    for (at, answers) in asked.iter().flatten().enumerate() {
        assert!(answers.iter().all(|answer| answer.allowed == (at % 2 == 1)));
    }
    // The same question again is the same answer, not a new one.
    let again = policy.decide(&about_agent(&ann, &newer));
    assert!(Arc::ptr_eq(&again, &asked[0][1][0]));
}

#[test]
fn what_is_open_to_all_is_answered_without_evaluation_but_a_forbid_still_wins() {
    let open = Policy::starter().unwrap();
    assert_eq!(*ask(&open, &agent(AgentTrust::External), Action::Discover).policies, ["starter-discover"]);
    let hidden =
        with("@id(\"hide\") forbid (principal, action == Action::\"a2a_discover\", resource is Skill);");
    assert_eq!(*ask(&hidden, &agent(AgentTrust::Trusted), Action::Discover).policies, ["hide"]);
    assert!(ask(&hidden, &agent(AgentTrust::Trusted), Action::Cancel).allowed);
}

#[test]
fn only_policies_that_can_apply_are_evaluated_unless_the_index_is_turned_off() {
    let permit = |number| {
        format!(
            "permit (principal, action == Action::\"a2a_invoke\", resource in A2AAgent::\"agt_{number}\");\n"
        )
    };
    let text: String = (1..=50).map(permit).collect();
    let parse = || Policy::parse(&[source("x.cedar", &text, None)]).unwrap();
    for (policy, evaluations) in
        [(parse(), 1), (parse().with_index(true), 1), (parse().with_index(false), 50)]
    {
        assert!(ask(&policy, &agent(AgentTrust::External), Action::Invoke).allowed);
        assert_eq!(policy.evaluations(), evaluations);
    }
}

fn source(name: &str, text: &str, org: Option<&str>) -> Source {
    Source { name: name.to_owned(), text: text.to_owned(), org: org.map(Into::into) }
}

fn in_org(org: &str, agent: Agent) -> Agent {
    let scope = rialto_model::ids::Scope { org: org.into(), ..agent.scope.clone() };
    Agent { scope, ..agent }
}

fn caller_in(org: &str, name: &str) -> Caller {
    let mut caller = Caller::user(name);
    caller.scope.org = org.into();
    caller
}

#[test]
fn a_policy_of_an_org_applies_to_that_org_alone() {
    let everything = "permit (principal, action, resource);";
    let nothing = "forbid (principal, action, resource);";
    let policy = Policy::parse(&[
        source("starter.cedar", STARTER, None),
        source("mine.cedar", everything, Some("acme")),
        source("mine.cedar", nothing, Some("shut")),
    ])
    .unwrap();
    let decided = |org: &str, trust| {
        // Each change of a row has a version of its own.
        let row = Agent { version: trust as u64, ..in_org(org, agent(trust)) };
        let caller = caller_in(org, "ann");
        policy.decide(&about_skill(&caller, Action::Invoke, &row)).allowed
    };
    let external = ["default", "acme", "shut"].map(|org| decided(org, AgentTrust::External));
    let trusted = ["default", "acme", "shut"].map(|org| decided(org, AgentTrust::Trusted));
    assert_eq!((external, trusted), ([false, true, false], [true, true, false]));
    // What is open to all stays open where nothing of the org's own forbids it.
    let seen = ["default", "acme", "shut"].map(|org| {
        let (row, caller) = (in_org(org, agent(AgentTrust::External)), caller_in(org, "ann"));
        policy.decide(&about_skill(&caller, Action::Discover, &row)).allowed
    });
    assert_eq!(seen, [true, true, false]);
}

#[test]
fn a_name_is_that_of_one_org() {
    let ann = r#"permit (principal == User::"ann", action, resource);"#;
    let asked = |sources: &[Source], caller: &Caller| {
        let row = in_org(caller.scope.org.as_str(), agent(AgentTrust::External));
        Policy::parse(sources).unwrap().decide(&about_skill(caller, Action::Invoke, &row)).allowed
    };
    let shared = [source("x.cedar", ann, None)];
    let of_acme = [source("x.cedar", ann, Some("acme"))];
    let qualified = [source("x.cedar", &ann.replace("ann", "acme/ann"), None)];
    let (here, there) = (Caller::user("ann"), caller_in("acme", "ann"));
    // A caller of the org `default` that calls itself like another org's.
    let pretender = Caller::user("acme/ann");
    let decisions = [&shared, &of_acme, &qualified]
        .map(|sources| [&here, &there, &pretender].map(|caller| asked(sources, caller)));
    assert_eq!(decisions, [[true, false, false], [false, true, false], [false, true, false]]);
}

#[test]
fn a_policy_of_an_org_that_names_another_is_refused_with_the_place() {
    let text = "// first\n@id(\"x\") forbid (principal, action, resource == Org::\"default\");";
    let error = Policy::parse(&[source("x.cedar", text, Some("acme"))]).unwrap_err();
    insta::assert_snapshot!(error, @r#"x.cedar:2:49: policy "x" belongs to org acme and names Org::"default" (a policy of an org applies to that org alone; name Org::"acme", or no org)"#);
    assert!(Policy::parse(&[source("x.cedar", text, None)]).is_ok());
    let hidden = r#"permit (principal, action, resource) when { principal in Org::"default" };"#;
    assert!(Policy::parse(&[source("x.cedar", hidden, Some("acme"))]).is_err());
}

#[test]
fn policies_of_two_orgs_may_have_one_name() {
    let text = r#"@id("x") permit (principal, action, resource);"#;
    let sources = [source("x.cedar", text, Some("acme")), source("x.cedar", text, Some("default"))];
    let rules = Policy::parse(&sources).unwrap().rules();
    let owners: Vec<_> = rules.iter().map(|rule| rule.org.as_ref().unwrap().as_str()).collect();
    assert_eq!(owners, ["acme", "default"]);
    assert!(Policy::parse(&[source("a.cedar", text, None), source("b.cedar", text, None)]).is_err());
}

#[test]
fn an_owner_administers_its_own_org_by_the_policy_of_a_fresh_install() {
    let policy = Policy::starter().unwrap();
    for org in ["default", "acme"] {
        let plain = caller_in(org, "olga");
        let owner =
            Caller { rights: rialto_model::token_scopes::TokenScopes::ALL.with_owner(), ..plain.clone() };
        for action in Action::ADMIN {
            // Asked in both orders: the decisions of one caller with and without the role are not mixed up.
            assert!(!policy.decide(&Question::admin(&plain, action)).allowed, "{action:?}");
            assert!(policy.decide(&Question::admin(&owner, action)).allowed, "{action:?}");
            assert!(!policy.decide(&Question::admin(&plain, action)).allowed, "{action:?}");
        }
    }
}
