//! Policy text: what is written, what is wrong with it, and the texts we write ourselves.

use std::str::FromStr;

use cedar_policy::{PolicyId, PolicySet, Schema, ValidationMode, Validator, entities_errors::EntitiesError};
use miette::Diagnostic;
use rialto_model::ids::AgentId;

/// The schema that every policy is checked against.
pub const SCHEMA: &str = include_str!("schema.cedarschema");

/// The policy of a fresh install.
pub const STARTER: &str = include_str!("starter.cedar");

/// One piece of policy text and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// A file name, or what a person would call it.
    pub name: String,
    /// Cedar policies.
    pub text: String,
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// `file:line:column`, or the file and the policy's id.
    pub place: String,
    /// What is wrong.
    pub message: String,
    /// What would help.
    pub help: Option<String>,
}

/// Why policies were not accepted. Nothing has changed.
#[derive(Debug, thiserror::Error)]
#[error("{}", list(.0))]
pub struct PolicyError(pub Vec<Problem>);

/// A permit for every skill of one agent, for everybody.
///
/// The id is the only thing of the agent that enters the text, and it is ours; a name could carry anything.
pub fn allow_agent(agent: &AgentId) -> Source {
    let id = agent.as_str().escape_default();
    Source {
        name: format!("allow-{}.cedar", rialto_model::name::slug(agent.as_str())),
        text: format!(
            "@id(\"allow-{id}\")\npermit (principal, action == Action::\"a2a_invoke\", resource in A2AAgent::\"{id}\");\n"
        ),
    }
}

/// Parses and validates policies, each named by its `@id` or by its place in its file.
pub(crate) fn compile(sources: &[Source]) -> Result<(PolicySet, Schema), PolicyError> {
    let schema = schema()?;
    let mut all = PolicySet::new();
    let mut problems = Vec::new();
    for source in sources {
        match PolicySet::from_str(&source.text) {
            Ok(set) => add(&mut all, source, &set, &mut problems),
            Err(errors) => problems.extend(errors.iter().map(|error| problem_at(source, error))),
        }
    }
    if problems.is_empty() {
        problems = invalid(&schema, &all);
    }
    if problems.is_empty() { Ok((all, schema)) } else { Err(PolicyError(problems)) }
}

fn schema() -> Result<Schema, PolicyError> {
    Schema::from_cedarschema_str(SCHEMA).map(|(schema, _)| schema).map_err(|error| {
        PolicyError(vec![Problem { place: "schema".into(), message: error.to_string(), help: None }])
    })
}

fn add(all: &mut PolicySet, source: &Source, set: &PolicySet, problems: &mut Vec<Problem>) {
    if set.templates().next().is_some() {
        problems.push(Problem {
            place: source.name.clone(),
            message: "templates (?principal, ?resource) cannot be used here".into(),
            help: Some("write the principal and the resource out".into()),
        });
    }
    let mut policies: Vec<_> = set.policies().collect();
    policies.sort_by_key(|policy| policy_number(policy.id()));
    for (number, policy) in policies.into_iter().enumerate() {
        let id =
            policy.annotation("id").map_or_else(|| format!("{}#{}", source.name, number + 1), str::to_owned);
        if all.add(policy.new_id(PolicyId::new(&id))).is_err() {
            problems.push(Problem {
                place: source.name.clone(),
                message: format!("two policies are called \"{id}\""),
                help: Some("give one of them another @id".into()),
            });
        }
    }
}

/// Cedar calls the policies of one text `policy0`, `policy1`, …; by number they are in the text's order.
fn policy_number(id: &PolicyId) -> usize {
    AsRef::<str>::as_ref(id).trim_start_matches("policy").parse().unwrap_or(usize::MAX)
}

fn invalid(schema: &Schema, set: &PolicySet) -> Vec<Problem> {
    let result = Validator::new(schema.clone()).validate(set, ValidationMode::Strict);
    result
        .validation_errors()
        .map(|error| Problem {
            place: error.policy_id().to_string(),
            message: strip_subject(&error.to_string()),
            help: error.help().map(|help| help.to_string()),
        })
        .collect()
}

/// Cedar leads each message with the policy's name, which [`Problem::place`] already says.
fn strip_subject(message: &str) -> String {
    match message.split_once("`, ") {
        Some((subject, rest)) if subject.starts_with("for policy `") => rest.to_owned(),
        _ => message.to_owned(),
    }
}

fn problem_at(source: &Source, error: &dyn Diagnostic) -> Problem {
    let offset = error.labels().and_then(|mut labels| labels.next()).map(|label| label.offset());
    let place = offset.map_or_else(|| source.name.clone(), |offset| place_of(source, offset));
    Problem { place, message: error.to_string(), help: error.help().map(|help| help.to_string()) }
}

fn place_of(source: &Source, offset: usize) -> String {
    let before = source.text.get(..offset).unwrap_or(&source.text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("{}:{line}:{column}", source.name)
}

fn list(problems: &[Problem]) -> String {
    let lines = problems.iter().map(|problem| {
        let help = problem.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
        format!("{}: {}{help}", problem.place, problem.message)
    });
    lines.collect::<Vec<_>>().join("\n")
}

impl From<EntitiesError> for PolicyError {
    fn from(error: EntitiesError) -> Self {
        Self(vec![Problem { place: "entities".into(), message: error.to_string(), help: None }])
    }
}
