//! What is done: tasks, work that names nobody, workflows and their runs, and what waits for approval.

use futures::FutureExt;
use rialto_api_types::{
    approvals::DecisionReason,
    dispatches::NewDispatch,
    schema::schema_of,
    tasks::{NewCall, TaskReply},
    workflows::{InlineRun, RunInput, RunReply, StatusChange, WorkflowDefinition},
};

use super::{PAGED, Route, delete, get, here, post};
use crate::api::{approvals, dispatches, flows, runs, tasks};

const KIND: (&str, &str) = ("kind", "workflow or pipeline");
const STATE: (&str, &str) = ("state", "running, waiting, completed, failed or canceled");
const OWN: (&str, &str) = ("own", "`true`: only your own");

/// How long whoever asks waits.
const WAIT: [(&str, &str); 2] =
    [("wait", "`false`: answer at once"), ("timeoutMs", "Answer after so many milliseconds; it goes on")];

pub(super) const ROUTES: &[Route] = &[
    Route {
        query: &[
            ("agent", "Only this agent's"),
            ("state", "Only in this state"),
            ("open", "`true`: only those that are not over"),
            OWN,
            PAGED[0],
            PAGED[1],
        ],
        ..get("/api/v1/tasks", "List tasks, newest first", "`tasks` and `next`", here!(tasks::list))
    },
    post(
        "/api/v1/tasks",
        "Call a skill or an agent by name; the call goes on by itself",
        Some(schema_of::<NewCall>),
        (202, "Its task's id, how long callers usually wait, and where its events begin"),
        here!(tasks::begin),
    ),
    Route {
        query: &[PAGED[0]],
        ..get(
            "/api/v1/tasks/undelivered",
            "List push notifications that were given up, newest first",
            "`undelivered`",
            here!(tasks::undelivered),
        )
    },
    Route {
        query: &[("ask", "`true`: an open one of yours is asked about at its agent first")],
        ..get("/api/v1/tasks/{id}", "A task", "The task", here!(tasks::show))
    },
    get(
        "/api/v1/tasks/{id}/inspect",
        "One call from both sides: what came in, what was decided, what went out, what happened when",
        "The call",
        here!(tasks::inspect),
    ),
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
        Some(schema_of::<TaskReply>),
        (202, "The task's id"),
        here!(tasks::say),
    ),
    Route {
        query: &[("name", "Its name, if the text says none")],
        ..post(
            "/api/v1/check-workflow",
            "Look a definition over without keeping it",
            Some(schema_of::<WorkflowDefinition>),
            (200, "`problems` by line and column; none is good"),
            here!(flows::check),
        )
    },
    Route {
        query: &[KIND],
        ..get("/api/v1/workflows", "List workflows and pipelines", "A list", here!(flows::list))
    },
    Route {
        query: &[
            ("name", "What it is called if it does not say so itself"),
            KIND,
            ("status", "draft, active or archived, in place of what it says"),
        ],
        ..post(
            "/api/v1/workflows",
            "Keep a version of a workflow",
            Some(schema_of::<WorkflowDefinition>),
            (200, "What was kept"),
            here!(flows::keep),
        )
    },
    Route {
        query: &[("version", "An earlier one; without it, the one in force")],
        ..get("/api/v1/workflows/{name}", "A workflow", "The workflow", here!(flows::show))
    },
    Route {
        query: &[PAGED[0], PAGED[1]],
        ..get(
            "/api/v1/workflows/{name}/versions",
            "Its versions, newest first",
            "`versions` and `next`",
            here!(flows::versions),
        )
    },
    Route {
        answer: (200, "Its name"),
        ..delete("/api/v1/workflows/{name}", "Remove a workflow", here!(flows::remove))
    },
    post(
        "/api/v1/workflows/{name}/status",
        "Publish, pause or archive a workflow",
        Some(schema_of::<StatusChange>),
        (200, "The workflow"),
        here!(flows::set_status),
    ),
    Route {
        query: &[STATE, OWN, PAGED[0], PAGED[1], PAGED[2]],
        ..get(
            "/api/v1/workflows/{name}/runs",
            "Its runs, newest first",
            "`runs` and `next`",
            here!(runs::of_workflow),
        )
    },
    Route {
        query: &[("draft", "`true`: try a draft out"), WAIT[0], WAIT[1]],
        ..post(
            "/api/v1/workflows/{name}/runs",
            "Begin a run",
            Some(schema_of::<RunInput>),
            (200, "Its task, when it is over or waits; 202 where nobody waits"),
            here!(runs::begin),
        )
    },
    Route {
        query: &[("name", "Only of this workflow"), STATE, OWN, PAGED[0], PAGED[1], PAGED[2]],
        ..get("/api/v1/runs", "List runs, newest first", "`runs` and `next`", here!(runs::all))
    },
    Route {
        query: &WAIT,
        ..post(
            "/api/v1/runs",
            "Run a workflow that is not kept",
            Some(schema_of::<InlineRun>),
            (200, "Its task, when it is over or waits; 202 where nobody waits"),
            here!(runs::begin_inline),
        )
    },
    get("/api/v1/runs/{id}", "A run, and how its steps stand", "The run", here!(runs::show)),
    Route {
        query: &WAIT,
        ..post(
            "/api/v1/runs/{id}",
            "Answer a question of a run",
            Some(schema_of::<RunReply>),
            (200, "Its task"),
            here!(runs::tell),
        )
    },
    Route {
        query: &[WAIT[0]],
        ..post(
            "/api/v1/runs/{id}/resume",
            "Take a run up again that nobody works on",
            None,
            (200, "Its task"),
            here!(runs::resume),
        )
    },
    post("/api/v1/runs/{id}/cancel", "Call a run off", None, (200, "Its task"), here!(runs::cancel)),
    Route {
        query: &[("state", "`waiting`, or `all`"), PAGED[0], PAGED[1], PAGED[2]],
        ..get(
            "/api/v1/approvals",
            "List what waits for approval, newest first",
            "`approvals` and `next`",
            here!(approvals::list),
        )
    },
    get(
        "/api/v1/approvals/{id}",
        "Something that waits or waited for approval",
        "The approval",
        here!(approvals::show),
    ),
    post(
        "/api/v1/approvals/{id}/approve",
        "Say that it may be done",
        Some(schema_of::<DecisionReason>),
        (200, "The approval"),
        here!(approvals::approve),
    ),
    post(
        "/api/v1/approvals/{id}/deny",
        "Say that it may not be done",
        Some(schema_of::<DecisionReason>),
        (200, "The approval"),
        here!(approvals::deny),
    ),
    post(
        "/api/v1/dispatch",
        "Give work to whoever does it best",
        Some(schema_of::<NewDispatch>),
        (200, "The result, and the choice"),
        here!(dispatches::dispatch),
    ),
    Route {
        query: &[
            ("workType", "Only of this type of work"),
            ("limit", "At most so many rows, 50 when it is not said, 200 at most"),
            PAGED[1],
            PAGED[2],
        ],
        ..get(
            "/api/v1/dispatches",
            "List choices, newest first",
            "`dispatches` and `next`",
            here!(dispatches::list),
        )
    },
    get(
        "/api/v1/dispatches/{id}",
        "A choice, by its id or by its task's",
        "The choice",
        here!(dispatches::show),
    ),
    post(
        "/api/v1/resolve",
        "Ask who would be chosen",
        Some(schema_of::<NewDispatch>),
        (200, "The choice"),
        here!(dispatches::resolve),
    ),
];
