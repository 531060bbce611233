//! Policy text: parsing, validation and formatting.

use std::{collections::BTreeMap, str::FromStr};

use cedar_policy::{EntityUid, Policy, PolicyId, PolicySet, Schema, ValidationMode, Validator};
use miette::Diagnostic;
use rialto_model::ids::{AgentId, OrgId};

/// The schema that every policy is checked against.
pub const SCHEMA: &str = include_str!("schema.cedarschema");

/// The policy of a fresh install.
pub const STARTER: &str = include_str!("starter.cedar");

/// The policy of a fresh install that lets owners administer their org.
pub const OWNER_ADMIN: &str = include_str!("owner.cedar");

/// The layout of policy text.
const LINE_WIDTH: usize = 110;
const INDENT: isize = 4;

/// Policy text and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySource {
    /// A file name, or what a person would call it.
    pub name: String,
    /// Cedar policies.
    pub text: String,
    /// Org that the policies belong to, and apply to alone; none if they apply to all orgs.
    pub org: Option<OrgId>,
}

/// Error in a policy text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySourceError {
    /// `file:line:column`, or the file and the policy's id.
    pub place: String,
    /// Error message.
    pub message: String,
    /// Hint for a fix.
    pub help: Option<String>,
}

/// Rejected policies. Nothing has changed.
#[derive(Debug, thiserror::Error)]
#[error("{}", format_errors(.0))]
pub struct PolicyError(pub Vec<PolicySourceError>);

/// Validated policies of one owner: an org, or all orgs.
#[derive(Default)]
pub(crate) struct ValidatedPolicies {
    pub(crate) set: PolicySet,
    /// Each policy's id and its file, in the order they were written in.
    pub(crate) origins: Vec<(PolicyId, String)>,
}

/// Formats a text. Meaning and comments stay.
pub fn format(source: &PolicySource) -> Result<String, PolicyError> {
    let set = PolicySet::from_str(&source.text);
    set.map_err(|errors| PolicyError(errors.iter().map(|error| describe_error(source, error)).collect()))?;
    let layout = cedar_policy_formatter::Config { line_width: LINE_WIDTH, indent_width: INDENT };
    cedar_policy_formatter::policies_str_to_pretty(&source.text, &layout).map_err(|report| {
        let message = format!("the text cannot be laid out: {report}");
        PolicyError(vec![PolicySourceError { place: source.name.clone(), message, help: None }])
    })
}

/// Parses and validates policies, each named by its `@id` or by its place in its file. Policies of different owners are
/// kept apart: they may have the same names, and none is asked about another org.
pub(crate) fn compile(
    sources: &[PolicySource],
) -> Result<BTreeMap<Option<OrgId>, ValidatedPolicies>, PolicyError> {
    let schema = schema()?;
    let mut owners: BTreeMap<Option<OrgId>, ValidatedPolicies> = BTreeMap::new();
    let mut problems = Vec::new();
    for source in sources {
        let compiled = owners.entry(source.org.clone()).or_default();
        match PolicySet::from_str(&source.text) {
            Ok(set) => problems.extend(compiled.add(source, &set)),
            Err(errors) => problems.extend(errors.iter().map(|error| describe_error(source, error))),
        }
    }
    // Runs also when some text cannot be parsed, so that all problems are reported at once.
    problems.extend(owners.values().flat_map(|compiled| validate(&schema, &compiled.set)));
    if problems.is_empty() { Ok(owners) } else { Err(PolicyError(problems)) }
}

/// Agents that policies in a text name, by themselves or by a skill. An invalid text names none.
pub fn named_agents(text: &str) -> Vec<AgentId> {
    let Ok(set) = PolicySet::from_str(text) else { return Vec::new() };
    let literals = set.policies().flat_map(Policy::entity_literals);
    let agents = literals.filter_map(|uid| match uid.type_name().basename() {
        "A2AAgent" => Some(AgentId::from(uid.id().unescaped())),
        "Skill" => uid.id().unescaped().split_once('/').map(|(agent, _)| AgentId::from(agent)),
        _ => None,
    });
    agents.collect()
}

fn schema() -> Result<Schema, PolicyError> {
    Schema::from_cedarschema_str(SCHEMA).map(|(schema, _)| schema).map_err(|error| {
        PolicyError(vec![PolicySourceError {
            place: "schema".into(),
            message: error.to_string(),
            help: None,
        }])
    })
}

// === impl ValidatedPolicies ===

impl ValidatedPolicies {
    /// Adds the policies of one text and returns the problems.
    fn add(&mut self, source: &PolicySource, set: &PolicySet) -> Vec<PolicySourceError> {
        let mut problems = Vec::new();
        if set.templates().next().is_some() {
            problems.push(PolicySourceError {
                place: source.name.clone(),
                message: "templates (?principal, ?resource) cannot be used here".into(),
                help: Some("write the principal and the resource out".into()),
            });
        }
        for (number, policy) in sorted_by_number(set).into_iter().enumerate() {
            let unnamed = || format!("{}#{}", source.name, number + 1);
            let id = PolicyId::new(policy.annotation("id").map_or_else(unnamed, str::to_owned));
            problems.extend(source.org.as_ref().and_then(|org| names_another_org(source, policy, &id, org)));
            if self.set.add(policy.new_id(id.clone())).is_err() {
                problems.push(PolicySourceError {
                    place: source.name.clone(),
                    message: format!("two policies are called \"{id}\""),
                    help: Some("give one of them another @id".into()),
                });
            }
            self.origins.push((id, source.name.clone()));
        }
        problems
    }
}

/// Error of an org's policy that names another org: it would match nothing there, contrary to what its author intends.
fn names_another_org(
    source: &PolicySource,
    policy: &Policy,
    id: &PolicyId,
    org: &OrgId,
) -> Option<PolicySourceError> {
    let is_other =
        |uid: &EntityUid| uid.type_name().basename() == "Org" && uid.id().unescaped() != org.as_str();
    let other = policy.entity_literals().into_iter().find(is_other)?;
    let offset = source.text.find(&other.to_string());
    Some(PolicySourceError {
        place: offset.map_or_else(|| source.name.clone(), |offset| line_and_column(source, offset)),
        message: format!("policy \"{id}\" belongs to org {org} and names {other}"),
        help: Some(format!("a policy of an org applies to that org alone; name Org::\"{org}\", or no org")),
    })
}

/// Policies of one text, in its order.
pub(crate) fn sorted_by_number(set: &PolicySet) -> Vec<&Policy> {
    let mut policies: Vec<_> = set.policies().collect();
    policies.sort_by_key(|policy| policy_number(policy.id()));
    policies
}

/// Cedar calls the policies of one text `policy0`, `policy1`, …; by number they are in the text's order.
fn policy_number(id: &PolicyId) -> usize {
    AsRef::<str>::as_ref(id).trim_start_matches("policy").parse().unwrap_or(usize::MAX)
}

fn validate(schema: &Schema, set: &PolicySet) -> Vec<PolicySourceError> {
    let result = Validator::new(schema.clone()).validate(set, ValidationMode::Strict);
    result
        .validation_errors()
        .map(|error| PolicySourceError {
            place: error.policy_id().to_string(),
            message: strip_policy_name(&error.to_string()),
            help: error.help().map(|help| help.to_string()),
        })
        .collect()
}

/// Cedar leads each message with the policy's name, which [`PolicySourceError::place`] already says.
fn strip_policy_name(message: &str) -> String {
    match message.split_once("`, ") {
        Some((subject, rest)) if subject.starts_with("for policy `") => rest.to_owned(),
        _ => message.to_owned(),
    }
}

fn describe_error(source: &PolicySource, error: &dyn Diagnostic) -> PolicySourceError {
    let offset = error.labels().and_then(|mut labels| labels.next()).map(|label| label.offset());
    let place = offset.map_or_else(|| source.name.clone(), |offset| line_and_column(source, offset));
    PolicySourceError { place, message: error.to_string(), help: error.help().map(|help| help.to_string()) }
}

fn line_and_column(source: &PolicySource, offset: usize) -> String {
    let before = source.text.get(..offset).unwrap_or(&source.text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("{}:{line}:{column}", source.name)
}

fn format_errors(problems: &[PolicySourceError]) -> String {
    let lines = problems.iter().map(|problem| {
        let help = problem.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
        format!("{}: {}{help}", problem.place, problem.message)
    });
    lines.collect::<Vec<_>>().join("\n")
}
