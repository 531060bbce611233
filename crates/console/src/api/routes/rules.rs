//! Who may do what, and what was done: policies, guardrails, tokens and the audit trail.

use futures::FutureExt;
use rialto_api_types::{
    guardrails::GuardrailTest,
    policies::{NewPolicy, PolicyQuestion, PolicyRestoration, PolicyText},
    schema::schema_of,
    secrets::SecretValue,
    tenants::{NewOrg, NewProject},
    tokens::NewToken,
    webhooks::NewWebhook,
};

use super::{PAGED, Route, delete, get, here, post};
use crate::api::{guardrails, keeping, nodes, orgs, policies, records};

const FORCE: &[(&str, &str)] = &[("force", "`true`: remove it with all that belongs to it")];

const LOCATION: &[(&str, &str)] = &[
    ("shelf", "`files` or `store`: where it is kept"),
    ("allOrgs", "`true`: a policy that applies to all orgs; for the server's owner"),
];

pub(super) const ROUTES: &[Route] = &[
    Route {
        query: &[
            ("since", "A time, or how long ago: 2h"),
            ("until", "The same"),
            ("agent", "Only about this agent"),
            ("caller", "Only this caller's"),
            ("task", "Only about this task"),
            ("outcome", "completed, failed or denied"),
            ("admin", "true: only administrative operations"),
            PAGED[0],
            PAGED[1],
        ],
        ..get(
            "/api/v1/audit",
            "Search the audit trail, newest first",
            "`records` and `next`",
            here!(records::audit),
        )
    },
    get(
        "/api/v1/audit/verify",
        "Compare the whole trail with its seals",
        "Whether it is as it was written",
        here!(records::verify),
    ),
    Route {
        query: &[
            ("since", "A time, or how long ago: 2h"),
            ("until", "The same"),
            ("agent", "Only this agent's"),
            ("caller", "Only this caller's"),
            ("by", "One sum for each agent, skill, caller or day"),
        ],
        ..get(
            "/api/v1/costs",
            "Sum up what completed calls cost",
            "`sums` and `total`",
            here!(records::costs),
        )
    },
    Route {
        query: &[("texts", "`true`: with their texts")],
        ..get("/api/v1/policies", "List policies", "`policies`", here!(policies::list))
    },
    get(
        "/api/v1/policies/check",
        "Check those that are kept",
        "The names of all `policies`, which hold up",
        here!(policies::check),
    ),
    get("/api/v1/policies/templates", "The usual policies", "`templates`", here!(policies::templates)),
    post(
        "/api/v1/policies/templates",
        "Write one of the usual policies",
        Some(schema_of::<NewPolicy>),
        (201, "Its name"),
        here!(policies::add),
    ),
    post(
        "/api/v1/policies/validate",
        "Check a text without keeping it",
        Some(schema_of::<PolicyText>),
        (200, "`problems`; none is good"),
        here!(policies::validate),
    ),
    post(
        "/api/v1/policies/what-if",
        "Ask who could call or administer what with a text in force, and not now",
        Some(schema_of::<PolicyText>),
        (200, "`differences`, and the `problems` of a text that does not hold up"),
        here!(policies::what_if),
    ),
    post(
        "/api/v1/policies/test",
        "Ask whether something would be allowed, and why",
        Some(schema_of::<PolicyQuestion>),
        (200, "The decision, policy by policy"),
        here!(policies::test),
    ),
    Route {
        query: &[("callers", "Names, with commas between them")],
        ..get("/api/v1/policies/matrix", "Who may call what", "`callers` and `rows`", here!(policies::matrix))
    },
    get("/api/v1/policies/{name}", "A text of policies", "The text and its versions", here!(policies::show)),
    Route {
        method: "PUT",
        query: LOCATION,
        body: Some(schema_of::<PolicyText>),
        ..get(
            "/api/v1/policies/{name}",
            "Keep a text, if all that is then in force holds up",
            "Its name",
            here!(policies::save),
        )
    },
    Route {
        query: LOCATION,
        answer: (200, "Where it was"),
        ..delete("/api/v1/policies/{name}", "Take a text away; it can be restored", here!(policies::remove))
    },
    Route {
        query: LOCATION,
        ..get(
            "/api/v1/policies/{name}/history",
            "The texts that it had, newest first",
            "`versions`",
            here!(policies::history),
        )
    },
    Route {
        query: LOCATION,
        ..post(
            "/api/v1/policies/{name}/restore",
            "Make an older text the one in force",
            Some(schema_of::<PolicyRestoration>),
            (200, "What is kept"),
            here!(policies::restore),
        )
    },
    get("/api/v1/orgs", "List orgs: at the machine all, else the caller's own", "`orgs`", here!(orgs::list)),
    post(
        "/api/v1/orgs",
        "Create an org, at the server's machine",
        Some(schema_of::<NewOrg>),
        (201, "Its name, and the token of its owner if one was named"),
        here!(orgs::create),
    ),
    Route {
        query: FORCE,
        ..delete("/api/v1/orgs/{org}", "Remove an org, at the server's machine", here!(orgs::remove))
    },
    get(
        "/api/v1/nodes",
        "List the servers that share the store; for callers of the org `default`",
        "`nodes`",
        here!(nodes::list),
    ),
    post(
        "/api/v1/nodes/{name}/drain",
        "Drain a node: it still answers requests, but is not ready and starts no work in the background",
        None,
        (200, "The node"),
        here!(nodes::drain),
    ),
    Route {
        answer: (200, "The node"),
        ..delete("/api/v1/nodes/{name}/drain", "Undo the draining of a node", here!(nodes::undrain))
    },
    get("/api/v1/projects", "List the projects of the org", "`projects`", here!(orgs::projects)),
    post(
        "/api/v1/projects",
        "Create a project in the org",
        Some(schema_of::<NewProject>),
        (201, "Its name"),
        here!(orgs::create_project),
    ),
    Route {
        query: FORCE,
        ..delete("/api/v1/projects/{project}", "Remove a project", here!(orgs::remove_project))
    },
    get("/api/v1/tokens", "List the tokens of the org", "`tokens`", here!(records::tokens)),
    post(
        "/api/v1/tokens",
        "Make a token; it is shown this once",
        Some(schema_of::<NewToken>),
        (201, "The token"),
        here!(records::create_token),
    ),
    delete("/api/v1/tokens/{id}", "Revoke a token", here!(records::revoke_token)),
    get(
        "/api/v1/sessions",
        "List console sessions: your own, or the org's if you may administer tokens",
        "`sessions`",
        here!(records::sessions),
    ),
    delete("/api/v1/sessions/{id}", "End a console session", here!(records::end_session)),
    get("/api/v1/guardrails", "Which guardrails are in force", "`guardrails`", here!(guardrails::show)),
    post(
        "/api/v1/guardrails/test",
        "Ask what the guardrails in force find in a text",
        Some(schema_of::<GuardrailTest>),
        (200, "The verdict, `findings` and what is left"),
        here!(guardrails::test),
    ),
    get(
        "/api/v1/webhooks",
        "List who is told of calls, and how far each was told",
        "`webhooks`",
        here!(keeping::webhooks),
    ),
    post(
        "/api/v1/webhooks",
        "Have an address told of calls; its key is shown this once",
        Some(schema_of::<NewWebhook>),
        (201, "The webhook, and its key as `secret`"),
        here!(keeping::add_webhook),
    ),
    Route {
        answer: (200, "The webhook that was"),
        ..delete("/api/v1/webhooks/{id}", "Tell an address nothing any more", here!(keeping::remove_webhook))
    },
    post(
        "/api/v1/webhooks/{id}/test",
        "Send an event that says it is a test, now",
        None,
        (200, "The webhook that took it"),
        here!(keeping::test_webhook),
    ),
    post(
        "/api/v1/webhooks/{id}/retry",
        "Try one again now that failed or was disabled",
        None,
        (200, "The webhook"),
        here!(keeping::retry_webhook),
    ),
    get("/api/v1/secrets", "List secrets, without themselves", "`secrets`", here!(keeping::secrets)),
    Route {
        method: "PUT",
        body: Some(schema_of::<SecretValue>),
        ..get(
            "/api/v1/secrets/{name}",
            "Keep a secret, encrypted; it is never read back",
            "Its name",
            here!(keeping::set_secret),
        )
    },
    Route {
        answer: (200, "Who is shown it"),
        ..delete("/api/v1/secrets/{name}", "Forget a secret", here!(keeping::remove_secret))
    },
];
