//! Who may do what to whom, in full: every role, every action, every kind of resource.
//!
//! The tables are checked in, so a change of policy, schema or entities shows as a change of cells.

use rialto_model::{
    agent::{Agent, AgentTrust, Health},
    call::{Caller, CallerKind},
    token_scopes::TokenScopes,
};

use super::*;
use crate::{question::Resource, samples};

const RICH: &str = r#"
    @id("public") permit (principal, action == Action::"a2a_invoke", resource is Skill)
        when { resource.tags.contains("public") };
    @id("ann-and-external") permit (principal == User::"ann", action == Action::"a2a_invoke", resource == Skill::"agt_external/deploy");
    @id("colleagues") permit (principal is A2AAgent, action == Action::"a2a_invoke", resource in A2AAgent::"agt_external")
        when { principal.trustLevel == "trusted" };
    @id("strangers") forbid (principal is A2AAgent, action, resource)
        when { principal.trustLevel == "external" };
    @id("down") forbid (principal, action == Action::"a2a_invoke", resource is A2AAgent)
        when { resource.health == "unreachable" };
    @id("ask") @approval("ops") forbid (principal, action == Action::"a2a_invoke", resource in A2AAgent::"agt_system")
        unless { context.approved };
    @id("hidden") forbid (principal is Session, action == Action::"a2a_discover", resource is Skill)
        when { resource.agent.trustLevel == "system" };
    @id("auditors") permit (principal in Org::"default", action == Action::"admin_audit", resource == Org::"default");
    @id("tokens") permit (principal == User::"ann", action in [Action::"admin_tokens", Action::"admin_agents"], resource == Org::"default");
"#;

#[test]
fn the_starter_policy_in_full() {
    insta::assert_snapshot!(matrix(&Policy::starter().unwrap()));
}

#[test]
fn a_richer_set_in_full() {
    let sources = [("starter.cedar", STARTER), ("rich.cedar", RICH)].map(|(name, text)| Source {
        name: name.into(),
        text: text.into(),
        org: None,
    });
    insta::assert_snapshot!(matrix(&Policy::parse(&sources).unwrap()));
}

fn matrix(policy: &Policy) -> String {
    let roles = roles();
    let names = roles.each_ref().map(|(name, ..)| format!("{name:<16}"));
    let mut lines = vec![format!("{:<15}{:<24}{}", "", "", names.concat())];
    for action in Action::ALL {
        for (name, row, with_skill) in rows(action) {
            let resource = match (&row, with_skill) {
                (None, _) => Resource::Org,
                (Some(row), false) => Resource::Agent(row),
                (Some(row), true) => Resource::Skill(row, &row.card.skills[0]),
            };
            let cells = roles.each_ref().map(|(_, caller, caller_agent)| {
                let question = Question {
                    caller,
                    caller_agent: caller_agent.as_ref(),
                    action,
                    resource,
                    approved: false,
                };
                format!("{:<16}", cell(&policy.decide(&question)))
            });
            lines.push(format!("{:<15}{name:<24}{}", action.as_str(), cells.concat()));
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn cell(decision: &Decision) -> String {
    assert_eq!(decision.errors, Vec::<String>::new());
    match (decision.bar, decision.allowed) {
        (Some(bar), _) => format!("{bar:?}"),
        (None, true) => "yes".to_owned(),
        (None, false) if decision.policies.is_empty() => "-".to_owned(),
        (None, false) if !decision.approvers.is_empty() => "approval".to_owned(),
        (None, false) => "NO".to_owned(),
    }
}

fn roles() -> [(&'static str, Caller, Option<Agent>); 8] {
    let agent = |trust| (caller(CallerKind::Agent, "agt_caller"), Some(row("caller", trust)));
    let (external, external_row) = agent(AgentTrust::External);
    let (trusted, trusted_row) = agent(AgentTrust::Trusted);
    let mut foreign = Caller::user("ann");
    foreign.scope.org = "other".into();
    // The two are one agent before and after a change of trust: each has a version of its own.
    let trusted_row = trusted_row.map(|row| Agent { version: 2, ..row });
    [
        ("user ann", Caller::user("ann"), None),
        ("user bob", Caller::user("bob"), None),
        ("owner olga", Caller { rights: TokenScopes::ALL.with_owner(), ..Caller::user("olga") }, None),
        ("session", caller(CallerKind::Session, "s1"), None),
        ("agent external", external, external_row),
        ("agent trusted", trusted, trusted_row),
        ("agent gone", caller(CallerKind::Agent, "agt_gone"), None),
        ("other org's ann", foreign, None),
    ]
}

fn rows(action: Action) -> Vec<(String, Option<Agent>, bool)> {
    if action.is_admin() {
        return vec![("own org".to_owned(), None, false)];
    }
    let mut rows = Vec::new();
    for trust in [AgentTrust::External, AgentTrust::Trusted, AgentTrust::System] {
        rows.push((format!("{trust} agent"), Some(row(trust.as_str(), trust)), false));
        rows.push((format!("{trust} skill"), Some(row(trust.as_str(), trust)), true));
    }
    let mut tagged = row("tagged", AgentTrust::External);
    Arc::make_mut(&mut tagged.card).skills = vec![Arc::new(samples::skill("read", &["public"]))];
    rows.push(("external, tagged skill".to_owned(), Some(tagged), true));
    let down = Agent { health: Health::Unreachable, ..row("down", AgentTrust::Trusted) };
    rows.push(("unreachable agent".to_owned(), Some(down.clone()), false));
    rows.push(("unreachable skill".to_owned(), Some(down), true));
    rows
}

fn row(name: &str, trust: AgentTrust) -> Agent {
    Agent { id: format!("agt_{name}").into(), slug: name.to_owned(), ..samples::agent(trust) }
}

fn caller(kind: CallerKind, id: &str) -> Caller {
    Caller { kind, ..Caller::user(id) }
}
