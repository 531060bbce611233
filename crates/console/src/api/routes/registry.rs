//! What is there: agents, tools, and how all of it goes.

use futures::FutureExt;
use rialto_api_types::{
    agents::{NewAgent, RefreshRequest, TrustChange},
    schema::schema_of,
    tools::NewDeployment,
};
use rialto_model::credential::Credential;

use super::{PAGED, Route, delete, get, here, post};
use crate::api::{agents, events, records, tools};

pub(super) const ROUTES: &[Route] = &[
    get("/api/v1/openapi.json", "This document", "OpenAPI 3.1", here!(records::openapi)),
    get(
        "/api/v1/me",
        "Who asks, and what it may do",
        "Name, kind, org, project, scopes, and what policies let it administer",
        here!(records::me),
    ),
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
        Some(schema_of::<NewAgent>),
        (201, "The agent; 200 where it was known"),
        here!(agents::register),
    ),
    Route {
        query: &[("wait", "`false`: answer at once (202); `GET /api/v1/refresh` says how far it is")],
        ..post(
            "/api/v1/refresh",
            "Fetch the cards of these agents again, or of all",
            Some(schema_of::<RefreshRequest>),
            (200, "How many answered, and what came of each"),
            here!(agents::refresh_all),
        )
    },
    get(
        "/api/v1/refresh",
        "How far the last round is that nobody waited for",
        "`all`, `answered`, `silent`, `isOver` and `begunAt`; null where there was none since the server started",
        here!(agents::progress),
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
        Some(schema_of::<TrustChange>),
        (200, "The agent"),
        here!(agents::trust),
    ),
    Route {
        method: "PUT",
        body: Some(schema_of::<Option<Credential>>),
        ..get(
            "/api/v1/agents/{key}/credential",
            "Change what it is shown at its door; null for nothing",
            "The agent",
            here!(agents::credential),
        )
    },
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
        "/api/v1/agents/{key}/standings",
        "How well it does each type of work it was observed at, the latest first",
        "`standings`",
        here!(agents::standings),
    ),
    get(
        "/api/v1/agents/{key}/history",
        "What changed in its card, newest first",
        "`history`",
        here!(agents::history),
    ),
    get(
        "/api/v1/events",
        "What comes on record, as it comes, and what has changed (text/event-stream)",
        "Server-sent events",
        here!(events::watch),
    ),
    get("/api/v1/tools", "List MCP servers and functions", "What is deployed", here!(tools::list)),
    post(
        "/api/v1/tools",
        "Deploy an MCP server or a function",
        Some(schema_of::<NewDeployment>),
        (201, "What was deployed; 200 where it was known"),
        here!(tools::deploy),
    ),
    get(
        "/api/v1/tools/{name}",
        "An MCP server or a function, by its name or that of a tool",
        "What is deployed",
        here!(tools::show),
    ),
    delete("/api/v1/tools/{name}", "Take back what is deployed", here!(tools::remove)),
];
