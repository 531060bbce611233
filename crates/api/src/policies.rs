//! `/api/v1/policies`.

use axum::response::Response;
use futures::FutureExt;
use http::StatusCode;
use rialto_admin::{
    host::{ChangedPolicy, PolicyHistoryEntry},
    policies::{self, PolicyDocument, PolicySelector, TEMPLATES, policy_rule},
    policy_preview,
};
use rialto_api_types::{
    policies::{
        NewPolicy, PolicyDetail, PolicyHistory, PolicyList, PolicyNames, PolicyPlace, PolicyPreview,
        PolicyProblem, PolicyProblems, PolicyQuestion, PolicyRestoration, PolicyRevision, PolicyRow,
        PolicyTemplateRow, PolicyTemplates, PolicyText, PolicyTextVersion, RemovedPolicy, ReplacedPolicyFile,
        SavedPolicy, StoredPolicyText,
    },
    schema::schema_of,
};
use rialto_model::failure::Failure;
use rialto_policy::PolicySourceError;

use super::{
    json_response, ok_json,
    request::RouteRequest,
    routes::{Route, delete, get, handler, post},
    workflows::parse_word,
};

/// Query parameters for the place and the owner of a policy text.
const POLICY_LOCATION: &[(&str, &str)] = &[
    ("shelf", "`files` or `store`: the place it is kept in"),
    ("allOrgs", "`true`: a policy that applies to all orgs; for the server's owner"),
];

/// Routes of this resource.
pub(super) const ROUTES: &[Route] = &[
    Route {
        query: &[("texts", "`true`: include the Cedar texts")],
        ..get("/api/v1/policies", "List policies", "`policies`", handler!(list))
    },
    get(
        "/api/v1/policies/check",
        "Check the saved policies",
        "Names of all `policies`, which are valid",
        handler!(check),
    ),
    get("/api/v1/policies/templates", "List policy templates", "`templates`", handler!(templates)),
    post(
        "/api/v1/policies/templates",
        "Write a policy from a template",
        Some(schema_of::<NewPolicy>),
        (201, "The saved policy"),
        handler!(add_from_template),
    ),
    post(
        "/api/v1/policies/validate",
        "Check a policy text without saving it",
        Some(schema_of::<PolicyText>),
        (200, "`problems`; none if it is valid"),
        handler!(validate),
    ),
    post(
        "/api/v1/policies/what-if",
        "Preview the decisions that a policy text would change",
        Some(schema_of::<PolicyText>),
        (200, "`differences`, or the `problems` of an invalid text"),
        handler!(preview),
    ),
    post(
        "/api/v1/policies/test",
        "Test whether a request would be allowed, and why",
        Some(schema_of::<PolicyQuestion>),
        (200, "The decision, policy by policy"),
        handler!(test),
    ),
    Route {
        query: &[("callers", "Names of callers, separated by commas")],
        ..get(
            "/api/v1/policies/matrix",
            "Permissions of callers for each skill",
            "`callers` and `rows`",
            handler!(matrix),
        )
    },
    get("/api/v1/policies/{name}", "Show a policy text", "The text and its versions", handler!(show)),
    Route {
        method: "PUT",
        query: POLICY_LOCATION,
        body: Some(schema_of::<PolicyText>),
        ..get(
            "/api/v1/policies/{name}",
            "Save a policy text, if all active policies are then valid",
            "The saved policy",
            handler!(save),
        )
    },
    Route {
        query: POLICY_LOCATION,
        response: (200, "Name and place of the text"),
        ..delete("/api/v1/policies/{name}", "Remove a policy text; it can be restored", handler!(remove))
    },
    Route {
        query: POLICY_LOCATION,
        ..get(
            "/api/v1/policies/{name}/history",
            "List the versions of a policy text, newest first",
            "`versions`",
            handler!(history),
        )
    },
    Route {
        query: POLICY_LOCATION,
        ..post(
            "/api/v1/policies/{name}/restore",
            "Restore an earlier version of a policy text",
            Some(schema_of::<PolicyRestoration>),
            (200, "The saved policy"),
            handler!(restore),
        )
    },
];

pub(super) async fn list(request: RouteRequest) -> Result<Response, Failure> {
    let texts = policies::list(&request.admin, &request.caller).await?;
    let mut rows = Vec::new();
    for text in &texts {
        rows.push(policy_row(&request, text, request.flag("texts")).await?);
    }
    ok_json(&PolicyList { policies: rows })
}

pub(super) async fn show(request: RouteRequest) -> Result<Response, Failure> {
    let text = policies::show(&request.admin, &request.caller, request.path_param("name")).await?;
    let history = policies::history(&request.admin, &request.caller, &text.name, selector(&request)?).await?;
    let revision = |old: PolicyHistoryEntry| PolicyRevision { version: old.version, at: old.at, by: old.by };
    let row = policy_row(&request, &text, true).await?;
    ok_json(&PolicyDetail { row, versions: history.into_iter().map(revision).collect() })
}

pub(super) async fn save(request: RouteRequest) -> Result<Response, Failure> {
    let (body, selector): (PolicyText, _) = (request.json()?, selector(&request)?);
    let (admin, caller, name) = (&request.admin, &request.caller, request.path_param("name"));
    let changed = policies::save(admin, caller, name, &body.text, selector).await?;
    ok_json(&saved(&request, &changed).await?)
}

pub(super) async fn remove(request: RouteRequest) -> Result<Response, Failure> {
    let selector = selector(&request)?;
    let removed =
        policies::remove(&request.admin, &request.caller, request.path_param("name"), selector).await?;
    ok_json(&RemovedPolicy { name: removed.name, file: removed.location })
}

pub(super) async fn history(request: RouteRequest) -> Result<Response, Failure> {
    let selector = selector(&request)?;
    let versions =
        policies::history(&request.admin, &request.caller, request.path_param("name"), selector).await?;
    ok_json(&PolicyHistory { versions: versions.into_iter().map(text_version).collect() })
}

pub(super) async fn restore(request: RouteRequest) -> Result<Response, Failure> {
    let (PolicyRestoration { version }, selector) = (request.json()?, selector(&request)?);
    let (admin, caller, name) = (&request.admin, &request.caller, request.path_param("name"));
    let changed = policies::restore(admin, caller, name, version, selector).await?;
    ok_json(&saved(&request, &changed).await?)
}

pub(super) async fn check(request: RouteRequest) -> Result<Response, Failure> {
    ok_json(&PolicyNames { policies: policies::check(&request.admin, &request.caller).await? })
}

pub(super) async fn validate(request: RouteRequest) -> Result<Response, Failure> {
    let body: PolicyText = request.json()?;
    let problems = policies::validate(&request.admin, &request.caller, &body.name, &body.text).await?;
    ok_json(&PolicyProblems { problems: problems.into_iter().map(problem).collect() })
}

pub(super) async fn preview(request: RouteRequest) -> Result<Response, Failure> {
    let body: PolicyText = request.json()?;
    let (admin, caller) = (&request.admin, &request.caller);
    let problems = policies::validate(admin, caller, &body.name, &body.text).await?;
    let differences = policy_preview::decision_changes(admin, caller, &body.name, &body.text).await?;
    ok_json(&PolicyPreview { differences, problems: problems.into_iter().map(problem).collect() })
}

fn problem(problem: PolicySourceError) -> PolicyProblem {
    PolicyProblem { place: problem.place, message: problem.message, help: problem.help }
}

pub(super) async fn test(request: RouteRequest) -> Result<Response, Failure> {
    let question: PolicyQuestion = request.json()?;
    let result = policies::test_decision(&request.admin, &request.caller, &question).await?;
    ok_json(&policies::to_ruling(&question, &result))
}

pub(super) async fn matrix(request: RouteRequest) -> Result<Response, Failure> {
    let names = request.query("callers").unwrap_or(request.caller.id.as_str());
    let names: Vec<String> =
        names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    ok_json(&policy_preview::matrix(&request.admin, &request.caller, &names).await?)
}

pub(super) async fn templates(_: RouteRequest) -> Result<Response, Failure> {
    let templates = TEMPLATES.map(|(kind, summary, target)| PolicyTemplateRow {
        kind: kind.to_owned(),
        summary: summary.to_owned(),
        target: target.to_owned(),
    });
    ok_json(&PolicyTemplates { templates: templates.into() })
}

pub(super) async fn add_from_template(request: RouteRequest) -> Result<Response, Failure> {
    let new: NewPolicy = request.json()?;
    let changed = policies::add_from_template(&request.admin, &request.caller, &new).await?;
    Ok(json_response(StatusCode::CREATED, &saved(&request, &changed).await?))
}

/// Row of a text.
async fn policy_row(
    request: &RouteRequest,
    text: &PolicyDocument,
    with_text: bool,
) -> Result<PolicyRow, Failure> {
    Ok(PolicyRow {
        name: text.name.clone(),
        org: text.org.clone(),
        rules: text.rules.iter().map(policy_rule).collect(),
        text: with_text.then(|| text.text.clone()),
        created_by: policies::find_author(&request.admin, &request.caller, text).await?,
    })
}

/// Text that was saved, and the policies in it.
async fn saved(request: &RouteRequest, changed: &ChangedPolicy) -> Result<SavedPolicy, Failure> {
    let rules = policies::saved_rules(&request.admin, &request.caller, changed).await?;
    Ok(SavedPolicy {
        name: changed.listed.clone(),
        file: changed.location.clone(),
        org: changed.org.clone(),
        policies: rules.iter().map(policy_rule).collect(),
    })
}

/// Earlier version of a text. A file has the time of its replacement, a text in the store its author and the time it was saved.
fn text_version(old: PolicyHistoryEntry) -> PolicyTextVersion {
    let PolicyHistoryEntry { name, version, at, by, text, place } = old;
    match place {
        PolicyPlace::Files => {
            PolicyTextVersion::File(ReplacedPolicyFile { name, version, replaced_at: at, text })
        }
        PolicyPlace::Store => {
            PolicyTextVersion::Stored(StoredPolicyText { name, version, changed_at: at, by, text })
        }
    }
}

/// Place and owner of a policy text, from the query.
fn selector(request: &RouteRequest) -> Result<PolicySelector, Failure> {
    Ok(PolicySelector { place: request.parse_query("shelf", parse_word)?, all_orgs: request.flag("allOrgs") })
}
