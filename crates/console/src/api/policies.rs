//! `/api/v1/policies`.

use axum::response::Response;
use http::StatusCode;
use rialto_api_types::policies::{
    DecisionChange, NewPolicy, PermissionMatrix, PermissionRow, PolicyDetail, PolicyHistory, PolicyList,
    PolicyNames, PolicyPlace, PolicyPreview, PolicyProblem, PolicyProblems, PolicyQuestion,
    PolicyRestoration, PolicyRevision, PolicyRow, PolicyTemplateRow, PolicyTemplates, PolicyText,
    PolicyTextVersion, RemovedPolicy, ReplacedPolicyFile, SavedPolicy, StoredPolicyText,
};
use rialto_model::failure::Failure;
use rialto_policy::PolicySourceError;

use super::{asking::Asking, flows::word, good, told};
use crate::{
    admin::{
        policies::{self, Location, Text, USUAL, policy_rule},
        what_if::{self, Difference},
    },
    office::{KeptPolicy, PolicyVersion},
};

pub(super) async fn list(asking: Asking) -> Result<Response, Failure> {
    let texts = policies::list(&asking.console, &asking.caller).await?;
    let mut rows = Vec::new();
    for text in &texts {
        rows.push(policy_row(&asking, text, asking.is_set("texts")).await?);
    }
    good(&PolicyList { policies: rows })
}

pub(super) async fn show(asking: Asking) -> Result<Response, Failure> {
    let text = policies::show(&asking.console, &asking.caller, asking.part("name")).await?;
    let history = policies::history(&asking.console, &asking.caller, &text.name, location(&asking)?).await?;
    let revision = |old: PolicyVersion| PolicyRevision { version: old.version, at: old.at, by: old.by };
    let row = policy_row(&asking, &text, true).await?;
    good(&PolicyDetail { row, versions: history.into_iter().map(revision).collect() })
}

pub(super) async fn save(asking: Asking) -> Result<Response, Failure> {
    let (body, location): (PolicyText, _) = (asking.json()?, location(&asking)?);
    let (console, caller, name) = (&asking.console, &asking.caller, asking.part("name"));
    let kept = policies::save(console, caller, name, &body.text, location).await?;
    good(&saved(&asking, &kept).await?)
}

pub(super) async fn remove(asking: Asking) -> Result<Response, Failure> {
    let location = location(&asking)?;
    let gone = policies::remove(&asking.console, &asking.caller, asking.part("name"), location).await?;
    good(&RemovedPolicy { name: gone.name, file: gone.place })
}

pub(super) async fn history(asking: Asking) -> Result<Response, Failure> {
    let location = location(&asking)?;
    let versions = policies::history(&asking.console, &asking.caller, asking.part("name"), location).await?;
    good(&PolicyHistory { versions: versions.into_iter().map(text_version).collect() })
}

pub(super) async fn restore(asking: Asking) -> Result<Response, Failure> {
    let (PolicyRestoration { version }, location) = (asking.json()?, location(&asking)?);
    let (console, caller, name) = (&asking.console, &asking.caller, asking.part("name"));
    let kept = policies::restore(console, caller, name, version, location).await?;
    good(&saved(&asking, &kept).await?)
}

pub(super) async fn check(asking: Asking) -> Result<Response, Failure> {
    good(&PolicyNames { policies: policies::check(&asking.console, &asking.caller).await? })
}

pub(super) async fn validate(asking: Asking) -> Result<Response, Failure> {
    let body: PolicyText = asking.json()?;
    let problems = policies::validate(&asking.console, &asking.caller, &body.name, &body.text).await?;
    good(&PolicyProblems { problems: problems.into_iter().map(problem).collect() })
}

pub(super) async fn what_if(asking: Asking) -> Result<Response, Failure> {
    let body: PolicyText = asking.json()?;
    let (console, caller) = (&asking.console, &asking.caller);
    let problems = policies::validate(console, caller, &body.name, &body.text).await?;
    let differences = what_if::what_if(console, caller, &body.name, &body.text).await?;
    let change = |it: Difference| DecisionChange {
        caller: it.caller,
        target: it.target,
        is_admin: it.is_admin,
        allowed: it.allowed,
    };
    good(&PolicyPreview {
        differences: differences.into_iter().map(change).collect(),
        problems: problems.into_iter().map(problem).collect(),
    })
}

fn problem(problem: PolicySourceError) -> PolicyProblem {
    PolicyProblem { place: problem.place, message: problem.message, help: problem.help }
}

pub(super) async fn test(asking: Asking) -> Result<Response, Failure> {
    let asked: PolicyQuestion = asking.json()?;
    let answer = policies::test(&asking.console, &asking.caller, &asked).await?;
    good(&policies::ruling(&asked, &answer))
}

pub(super) async fn matrix(asking: Asking) -> Result<Response, Failure> {
    let names = asking.query("callers").unwrap_or(asking.caller.id.as_str());
    let names: Vec<String> =
        names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let matrix = what_if::matrix(&asking.console, &asking.caller, &names).await?;
    let rows = matrix.rows.into_iter().map(|(target, may)| PermissionRow { target, may });
    good(&PermissionMatrix { callers: matrix.callers, rows: rows.collect(), more: matrix.more })
}

pub(super) async fn templates(_: Asking) -> Result<Response, Failure> {
    let templates = USUAL.map(|(kind, summary, target)| PolicyTemplateRow {
        kind: kind.to_owned(),
        summary: summary.to_owned(),
        target: target.to_owned(),
    });
    good(&PolicyTemplates { templates: templates.into() })
}

pub(super) async fn add(asking: Asking) -> Result<Response, Failure> {
    let usual: NewPolicy = asking.json()?;
    let kept = policies::add_usual(&asking.console, &asking.caller, &usual).await?;
    Ok(told(StatusCode::CREATED, &saved(&asking, &kept).await?))
}

/// Row of a text.
async fn policy_row(asking: &Asking, text: &Text, with_text: bool) -> Result<PolicyRow, Failure> {
    Ok(PolicyRow {
        name: text.name.clone(),
        org: text.org.clone(),
        rules: text.rules.iter().map(policy_rule).collect(),
        text: with_text.then(|| text.text.clone()),
        created_by: policies::author(&asking.console, &asking.caller, text).await?,
    })
}

/// A text that was saved, and the policies in it.
async fn saved(asking: &Asking, kept: &KeptPolicy) -> Result<SavedPolicy, Failure> {
    let rules = policies::rules_in(&asking.console, &asking.caller, kept).await?;
    Ok(SavedPolicy {
        name: kept.listed.clone(),
        file: kept.place.clone(),
        org: kept.org.clone(),
        policies: rules.iter().map(policy_rule).collect(),
    })
}

/// An older text. A file's is known by when it was replaced, one in the store by when it was made and by whom.
fn text_version(old: PolicyVersion) -> PolicyTextVersion {
    let PolicyVersion { name, version, at, by, text, shelf } = old;
    match shelf {
        PolicyPlace::Files => {
            PolicyTextVersion::File(ReplacedPolicyFile { name, version, replaced_at: at, text })
        }
        PolicyPlace::Store => {
            PolicyTextVersion::Stored(StoredPolicyText { name, version, changed_at: at, by, text })
        }
    }
}

/// Where it is kept, and for whom it is, as far as that is said.
fn location(asking: &Asking) -> Result<Location, Failure> {
    Ok(Location { shelf: asking.read_query("shelf", word)?, all_orgs: asking.is_set("allOrgs") })
}
