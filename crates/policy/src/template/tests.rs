use cedar_policy::PolicySet;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    policy::Policy,
    samples,
    text::{OWNER_ADMIN, STARTER},
};

fn source(template: &Template<'_>) -> Source {
    template.compile(&template.name())
}

fn everybody(wish: Wish, object: Object<'_>) -> Template<'_> {
    Template { wish, caller: None, object }
}

/// What Cedar understands, if it is exactly one valid policy.
fn understood(template: &Template<'_>, name: &str) -> Value {
    let source = template.compile(name);
    Policy::parse(std::slice::from_ref(&source)).unwrap();
    let set: PolicySet = source.text.parse().unwrap();
    let policies: Vec<_> = set.policies().collect();
    assert_eq!((policies.len(), set.templates().count()), (1, 0), "{}", source.text);
    policies[0].to_json().unwrap()
}

/// Any text, and more often such as would end a string, a comment or a policy.
fn any_text() -> impl Strategy<Value = String> {
    let nasty = prop::sample::select(vec![
        "\"",
        "\\",
        "\\\"",
        "\n",
        "\r\n",
        "//",
        "/*",
        "*/",
        ");",
        "};",
        "\0",
        "\u{202e}",
        "\u{2028}",
        "\u{301}",
        "\"); permit (principal, action, resource); //",
        "@id(\"x\")",
        "{",
        "?principal",
        "ü",
        "\\u{22}",
        "*",
    ]);
    let pieces = prop_oneof![nasty.prop_map(str::to_owned), any::<String>(), "[a-z_/.-]{0,8}"];
    prop::collection::vec(pieces, 0..4).prop_map(|pieces| pieces.concat())
}

fn any_who() -> impl Strategy<Value = Option<Subject>> {
    let kind = prop::sample::select(vec![CallerKind::User, CallerKind::Session, CallerKind::Agent]);
    let caller = (kind, any_text()).prop_map(|(kind, id)| Subject::Caller { kind, id: id.into() });
    prop::option::of(prop_oneof![caller, Just(Subject::Owners)])
}

fn any_wish() -> impl Strategy<Value = Wish> {
    prop_oneof![Just(Wish::Allow), Just(Wish::Deny), any_text().prop_map(|by| Wish::Approval { by })]
}

/// Cedar's JSON of the policy that was meant, made without any text of ours.
fn meant(template: &Template<'_>, name: &str, resource: &Value, condition: Option<Value>) -> Value {
    let uid = |kind: &str, id: &str| json!({ "type": kind, "id": id });
    let principal = match &template.caller {
        None => json!({ "op": "All" }),
        Some(Subject::Owners) => json!({ "op": "in", "entity": uid("Role", "owner") }),
        Some(Subject::Caller { kind, id }) => {
            let kind = match kind {
                CallerKind::User => "User",
                CallerKind::Session => "Session",
                CallerKind::Agent => "A2AAgent",
            };
            json!({ "op": "==", "entity": uid(kind, id.as_str()) })
        }
    };
    let action = match template.object {
        Object::Admin([action], _) => json!({ "op": "==", "entity": uid("Action", action.as_str()) }),
        Object::Admin(actions, _) => {
            let actions = actions.iter().map(|action| uid("Action", action.as_str()));
            json!({ "op": "in", "entities": actions.collect::<Vec<_>>() })
        }
        _ => json!({ "op": "==", "entity": uid("Action", "a2a_invoke") }),
    };
    let mut annotations = json!({ "id": name, "summary": template.summary() });
    let mut conditions: Vec<Value> =
        condition.into_iter().map(|body| json!({ "kind": "when", "body": body })).collect();
    if let Wish::Approval { by } = &template.wish {
        annotations["approval"] = json!(by);
        let approved = json!({ ".": { "left": { "Var": "context" }, "attr": "approved" } });
        conditions.push(json!({ "kind": "unless", "body": approved }));
    }
    json!({
        "effect": if template.wish == Wish::Allow { "permit" } else { "forbid" },
        "principal": principal,
        "action": action,
        "resource": resource,
        "conditions": conditions,
        "annotations": annotations,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_things_are_called_a_template_is_one_policy_about_exactly_them(
        wish in any_wish(),
        caller in any_who(),
        [id, slug, url, skill, tag, name, org] in prop::array::uniform7(any_text()),
    ) {
        let agent = Agent {
            id: id.as_str().into(), slug, url, ..samples::agent(AgentTrust::External)
        };
        let (skill, org) = (SkillId::from(skill), OrgId::from(org));
        let cases = [
            (
                Object::Agent(&agent),
                json!({ "op": "in", "entity": { "type": "A2AAgent", "id": id } }),
                None,
            ),
            (
                Object::Skill(&agent, &skill),
                json!({ "op": "==", "entity": { "type": "Skill", "id": format!("{id}/{skill}") } }),
                None,
            ),
            (
                Object::Tag(&tag),
                json!({ "op": "is", "entity_type": "Skill" }),
                Some(json!({ "contains": {
                    "left": { ".": { "left": { "Var": "resource" }, "attr": "tags" } },
                    "right": { "Value": tag },
                } })),
            ),
        ];
        let whole = json!({ "op": "==", "entity": { "type": "Org", "id": org } });
        for actions in [&[Action::AdminAudit][..], &Action::ADMIN] {
            let admin = Template { wish: Wish::Allow, caller: caller.clone(), object: Object::Admin(actions, &org) };
            prop_assert_eq!(understood(&admin, &name), meant(&admin, &name, &whole, None));
        }
        for (object, resource, condition) in cases {
            let template = Template { wish: wish.clone(), caller: caller.clone(), object };
            prop_assert_eq!(understood(&template, &name), meant(&template, &name, &resource, condition));
            let file_name = template.name();
            prop_assert!(file_name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)));
        }
    }
}

#[test]
fn each_template_reads_well_and_is_laid_out_as_fmt_would() {
    let (agent, skill) = (samples::agent(AgentTrust::External), SkillId::from("deploy"));
    let ann = Subject::Caller { kind: CallerKind::User, id: "ann".into() };
    let approval = Wish::Approval { by: "the ops team".into() };
    let org = OrgId::from("default");
    let templates = [
        everybody(Wish::Allow, Object::Agent(&agent)),
        Template { caller: Some(ann.clone()), ..everybody(Wish::Allow, Object::Skill(&agent, &skill)) },
        everybody(Wish::Allow, Object::Trust(AgentTrust::Trusted)),
        everybody(Wish::Allow, Object::Tag("ops")),
        everybody(Wish::Deny, Object::Agent(&agent)),
        everybody(Wish::Deny, Object::Skill(&agent, &skill)),
        everybody(approval, Object::Skill(&agent, &skill)),
        Template {
            caller: Some(ann.clone()),
            ..everybody(Wish::Allow, Object::Admin(&[Action::AdminTokens], &org))
        },
        Template { caller: Some(ann), ..everybody(Wish::Allow, Object::Admin(&Action::ADMIN, &org)) },
        Template {
            caller: Some(Subject::Owners),
            ..everybody(Wish::Allow, Object::Admin(&Action::ADMIN, &org))
        },
    ];
    let sources = templates.map(|template| source(&template));
    Policy::parse(&sources).unwrap();
    for source in &sources {
        assert_eq!(format(source).unwrap(), source.text);
    }
    let shown = sources.map(|source| format!("// {}\n{}", source.name, source.text));
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn the_starter_policy_is_laid_out_as_fmt_would() {
    for text in [STARTER, OWNER_ADMIN] {
        let source = Source { name: "x.cedar".into(), text: text.into(), org: None };
        assert_eq!(format(&source).unwrap(), text);
    }
}
