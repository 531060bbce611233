//! Every route of `/api/v1`, once: what it is called, what it takes, and what does its work.

use futures::FutureExt;

use super::{Handler, agents, policies, records, tasks};

/// One route.
pub struct Route {
    /// The method.
    pub method: &'static str,
    /// The path, without org and project.
    pub path: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// Its parameters behind the question mark, with what they mean.
    pub query: &'static [(&'static str, &'static str)],
    /// The body it takes, by the name of its schema.
    pub body: Option<&'static str>,
    /// The status of a good answer, and what it holds.
    pub answer: (u16, &'static str),
    /// What does its work; none where that is done elsewhere in the program.
    pub(crate) handler: Option<Handler>,
}

const PAGED: [(&str, &str); 2] = [
    ("limit", "At most so many rows, 50 when it is not said, 500 at most"),
    ("cursor", "`next` of the page before"),
];

macro_rules! here {
    ($handler:path) => {
        Some(|asking| $handler(asking).boxed())
    };
}

const fn get(
    path: &'static str,
    summary: &'static str,
    holds: &'static str,
    handler: Option<Handler>,
) -> Route {
    Route { method: "GET", path, summary, query: &[], body: None, answer: (200, holds), handler }
}

const fn post(
    path: &'static str,
    summary: &'static str,
    body: Option<&'static str>,
    answer: (u16, &'static str),
    handler: Option<Handler>,
) -> Route {
    Route { method: "POST", path, summary, query: &[], body, answer, handler }
}

const fn delete(path: &'static str, summary: &'static str, handler: Option<Handler>) -> Route {
    Route { method: "DELETE", path, summary, query: &[], body: None, answer: (204, "It is gone"), handler }
}

/// All of them.
pub const ROUTES: &[Route] = &[
    get("/api/v1/openapi.json", "This document", "OpenAPI 3.1", here!(records::openapi)),
    get(
        "/api/v1/overview",
        "How things go",
        "Counts, and what calls of the last hour were like",
        here!(records::overview),
    ),
    Route {
        query: &[
            ("q", "Words in the name, the address or a skill"),
            ("health", "healthy, degraded, unreachable or unknown"),
            ("trust", "external, trusted or system"),
            PAGED[0],
            PAGED[1],
        ],
        ..get("/api/v1/agents", "List agents, by slug", "`agents`, `total` and `next`", here!(agents::list))
    },
    post(
        "/api/v1/agents",
        "Register an agent",
        Some("Agent"),
        (201, "The agent; 200 where it was known"),
        here!(agents::register),
    ),
    post(
        "/api/v1/refresh",
        "Fetch all cards again",
        None,
        (200, "How many answered"),
        here!(agents::refresh_all),
    ),
    get(
        "/api/v1/agents/{key}",
        "An agent by slug, id, URL or name",
        "The agent, its card, what waits for approval",
        here!(agents::show),
    ),
    delete("/api/v1/agents/{key}", "Remove an agent", here!(agents::remove)),
    post(
        "/api/v1/agents/{key}/refresh",
        "Fetch its card again",
        None,
        (200, "What came of it"),
        here!(agents::refresh),
    ),
    post(
        "/api/v1/agents/{key}/trust",
        "Change how far it is trusted",
        Some("Trust"),
        (200, "The agent"),
        here!(agents::trust),
    ),
    post(
        "/api/v1/agents/{key}/approve",
        "Take a changed card into use",
        None,
        (200, "The agent"),
        here!(agents::approve),
    ),
    Route {
        query: &[PAGED[0]],
        ..get(
            "/api/v1/agents/{key}/probes",
            "Its latest probes, newest first",
            "`probes`",
            here!(agents::probes),
        )
    },
    get(
        "/api/v1/agents/{key}/history",
        "What changed in its card, newest first",
        "`history`",
        here!(agents::history),
    ),
    Route {
        query: &[
            ("agent", "Only this agent's"),
            ("state", "Only in this state"),
            ("open", "`true`: only those that are not over"),
            ("own", "`true`: only your own"),
            PAGED[0],
            PAGED[1],
        ],
        ..get("/api/v1/tasks", "List tasks, newest first", "`tasks` and `next`", here!(tasks::list))
    },
    get("/api/v1/tasks/{id}", "A task", "The task", here!(tasks::show)),
    Route {
        query: &[("after", "Only those behind this event")],
        ..get(
            "/api/v1/tasks/{id}/events",
            "What happened to it; as it happens, with Accept: text/event-stream",
            "`events`",
            here!(tasks::events),
        )
    },
    post("/api/v1/tasks/{id}/cancel", "Call it off", None, (200, "The task"), here!(tasks::cancel)),
    post(
        "/api/v1/tasks/{id}/messages",
        "Answer its question, or go on with it",
        Some("Message"),
        (202, "The task's id"),
        here!(tasks::say),
    ),
    Route {
        query: &[
            ("since", "A time, or how long ago: 2h"),
            ("until", "The same"),
            ("agent", "Only about this agent"),
            ("caller", "Only this caller's"),
            ("task", "Only about this task"),
            ("outcome", "completed, failed or denied"),
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
    get("/api/v1/policies", "List policies", "`policies`", here!(policies::list)),
    get("/api/v1/policies/templates", "The usual policies", "`templates`", here!(policies::templates)),
    post(
        "/api/v1/policies/templates",
        "Write one of the usual policies",
        Some("Template"),
        (201, "Its name"),
        here!(policies::add),
    ),
    post(
        "/api/v1/policies/validate",
        "Check a text without keeping it",
        Some("PolicyText"),
        (200, "`problems`; none is good"),
        here!(policies::validate),
    ),
    post(
        "/api/v1/policies/test",
        "Ask whether something would be allowed, and why",
        Some("Question"),
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
        body: Some("PolicyText"),
        ..get(
            "/api/v1/policies/{name}",
            "Keep a text, if all that is then in force holds up",
            "Its name",
            here!(policies::save),
        )
    },
    delete("/api/v1/policies/{name}", "Take a text away; it can be restored", here!(policies::remove)),
    get("/api/v1/tokens", "List the tokens of the org", "`tokens`", here!(records::tokens)),
    post(
        "/api/v1/tokens",
        "Make a token; it is shown this once",
        Some("Token"),
        (201, "The token"),
        here!(records::create_token),
    ),
    delete("/api/v1/tokens/{id}", "Revoke a token", here!(records::revoke_token)),
    get(
        "/api/v1/events",
        "What comes on record, as it comes (text/event-stream)",
        "Server-sent events",
        None,
    ),
    get("/api/v1/guardrails", "Which guardrails are in force", "`guardrails`", None),
    post(
        "/api/v1/guardrails/test",
        "Ask what the guardrails in force find in a text",
        Some("Guarded"),
        (200, "The verdict and `findings`"),
        None,
    ),
    get("/api/v1/workflows", "List workflows", "`workflows`", None),
    post("/api/v1/workflows", "Keep a version of a workflow", Some("Workflow"), (200, "What was kept"), None),
    get("/api/v1/workflows/{name}", "A workflow", "The workflow", None),
    Route { answer: (200, "Its name"), ..delete("/api/v1/workflows/{name}", "Remove a workflow", None) },
    post(
        "/api/v1/workflows/{name}/status",
        "Publish, pause or archive a workflow",
        Some("Status"),
        (200, "The workflow"),
        None,
    ),
    get("/api/v1/workflows/{name}/runs", "Its runs, newest first", "`runs`", None),
    post(
        "/api/v1/workflows/{name}/runs",
        "Begin a run",
        Some("Arguments"),
        (200, "Its task, when it is over or waits"),
        None,
    ),
    get("/api/v1/runs/{id}", "A run, and how its steps stand", "The run", None),
    post("/api/v1/runs/{id}", "Answer a question of a run", Some("Answer"), (200, "The run"), None),
    post("/api/v1/runs/{id}/cancel", "Call a run off", None, (200, "The run"), None),
    Route {
        query: &[("state", "`waiting`, or `all`"), PAGED[0], ("before", "`next` of the page before")],
        ..get(
            "/api/v1/approvals",
            "List what waits for approval, newest first",
            "`approvals` and `next`",
            None,
        )
    },
    get("/api/v1/approvals/{id}", "Something that waits or waited for approval", "The approval", None),
    post(
        "/api/v1/approvals/{id}/approve",
        "Say that it may be done",
        Some("Decision"),
        (200, "The approval"),
        None,
    ),
    post(
        "/api/v1/approvals/{id}/deny",
        "Say that it may not be done",
        Some("Decision"),
        (200, "The approval"),
        None,
    ),
    get("/api/v1/tools", "List MCP servers and functions", "What is deployed", None),
    post(
        "/api/v1/tools",
        "Deploy an MCP server or a function",
        Some("Deployment"),
        (201, "What was deployed; 200 where it was known"),
        None,
    ),
    delete("/api/v1/tools/{name}", "Take back what is deployed", None),
    post(
        "/api/v1/dispatch",
        "Give work to whoever does it best",
        Some("Work"),
        (200, "The result, and the choice"),
        None,
    ),
    Route {
        query: &[
            ("workType", "Only of this type of work"),
            PAGED[0],
            ("before", "`next` of the page before"),
        ],
        ..get("/api/v1/dispatches", "List choices, newest first", "`dispatches` and `next`", None)
    },
    get("/api/v1/dispatches/{id}", "A choice, by its id or by its task's", "The choice", None),
    post("/api/v1/resolve", "Ask who would be chosen", Some("Work"), (200, "The choice"), None),
];
