//! What each operation answers, for the OpenAPI document.
//!
//! Shapes are written in a short form. `text`, `count`, `number`, `flag`, `time`, `object`, `any` and `null` are what they say, `X[]` is a
//! list, `X{}` an object with names for keys, `X | Y` one or the other, `'x'` that word, and everything else a shape of [`SHAPES`]. A
//! member with a `?` may be missing; there are no members but these. The tests hold every answer that they get against its shape, so that
//! neither changes alone.

use serde_json::{Map, Value, json};

use super::routes::Route;

/// What a good answer of an operation is; one that is missing here has none.
const ANSWERS: &[(&str, &str)] = &[
    ("GET /openapi.json", "object"),
    ("GET /me", "Me"),
    ("GET /overview", "Overview"),
    ("GET /agents", "AgentPage"),
    ("POST /agents", "AgentRow"),
    ("POST /refresh", "RefreshedAll"),
    ("GET /refresh", "Round | null"),
    ("GET /agents/{key}", "AgentRow"),
    ("POST /agents/{key}/refresh", "Refreshed"),
    ("POST /agents/{key}/trust", "AgentRow"),
    ("PUT /agents/{key}/credential", "AgentRow"),
    ("POST /agents/{key}/approve", "AgentRow"),
    ("GET /agents/{key}/probes", "Probes"),
    ("GET /agents/{key}/standings", "Standings"),
    ("GET /agents/{key}/history", "CardHistory"),
    ("GET /events", "text"),
    ("GET /tools", "Tools[]"),
    ("POST /tools", "Tools"),
    ("GET /tools/{name}", "Tools"),
    ("GET /tasks", "TaskPage"),
    ("POST /tasks", "Begun"),
    ("GET /tasks/undelivered", "UndeliveredList"),
    ("GET /tasks/{id}", "Task"),
    ("GET /tasks/{id}/inspect", "Inspected"),
    ("GET /tasks/{id}/events", "Events"),
    ("POST /tasks/{id}/cancel", "Task"),
    ("POST /tasks/{id}/messages", "Told"),
    ("POST /check-workflow", "CheckedWorkflow"),
    ("GET /workflows", "WorkflowRow[]"),
    ("POST /workflows", "WorkflowRow"),
    ("GET /workflows/{name}", "WorkflowRow"),
    ("GET /workflows/{name}/versions", "WorkflowVersions"),
    ("DELETE /workflows/{name}", "Removed"),
    ("POST /workflows/{name}/status", "WorkflowRow"),
    ("GET /workflows/{name}/runs", "RunPage"),
    ("POST /workflows/{name}/runs", "Task"),
    ("GET /runs", "RunPage"),
    ("POST /runs", "Task"),
    ("GET /runs/{id}", "RunRecord"),
    ("POST /runs/{id}", "Task"),
    ("POST /runs/{id}/resume", "Task"),
    ("POST /runs/{id}/cancel", "Task"),
    ("GET /approvals", "ApprovalPage"),
    ("GET /approvals/{id}", "Approval"),
    ("POST /approvals/{id}/approve", "Approval"),
    ("POST /approvals/{id}/deny", "Approval"),
    ("POST /dispatch", "Dispatched"),
    ("GET /dispatches", "DispatchPage"),
    ("GET /dispatches/{id}", "Dispatch"),
    ("POST /resolve", "Dispatch"),
    ("GET /audit", "RecordPage"),
    ("GET /audit/verify", "Verified"),
    ("GET /costs", "Costs"),
    ("GET /policies", "Policies"),
    ("GET /policies/check", "PolicyNames"),
    ("GET /policies/templates", "Templates"),
    ("POST /policies/templates", "KeptPolicy"),
    ("POST /policies/validate", "PolicyProblems"),
    ("POST /policies/what-if", "WhatIf"),
    ("POST /policies/test", "Ruling"),
    ("GET /policies/matrix", "Matrix"),
    ("GET /policies/{name}", "PolicyRow"),
    ("PUT /policies/{name}", "KeptPolicy"),
    ("DELETE /policies/{name}", "GonePolicy"),
    ("GET /policies/{name}/history", "PolicyVersions"),
    ("POST /policies/{name}/restore", "KeptPolicy"),
    ("GET /tokens", "Tokens"),
    ("POST /tokens", "TokenRow"),
    ("GET /guardrails", "Guardrails"),
    ("POST /guardrails/test", "Tried"),
    ("GET /webhooks", "Webhooks"),
    ("POST /webhooks", "WebhookRow"),
    ("DELETE /webhooks/{id}", "WebhookRow"),
    ("POST /webhooks/{id}/test", "WebhookRow"),
    ("POST /webhooks/{id}/retry", "WebhookRow"),
    ("GET /secrets", "Secrets"),
    ("PUT /secrets/{name}", "SecretName"),
    ("DELETE /secrets/{name}", "SecretName"),
];

/// Good answers with another status, when there are such.
const OTHERWISE: &[(&str, u16, &str, &str)] = &[
    ("POST /agents", 200, "The agent, which was known", "AgentRow"),
    ("POST /refresh", 202, "How far it is; nobody waits for it", "Round"),
    ("POST /tools", 200, "What was deployed, which was known", "Tools"),
    ("POST /workflows/{name}/runs", 202, "The run's id; nobody waits for it", "RunBegun"),
    ("POST /runs", 202, "The run's id; nobody waits for it", "RunBegun"),
    ("POST /runs/{id}", 202, "The run's id; nobody waits for it", "RunBegun"),
    ("POST /runs/{id}/resume", 202, "The run's id; nobody waits for it", "RunBegun"),
];

/// What is one of a few words, or one of a few shapes.
const CHOICES: &[(&str, &str)] = &[
    ("CallerKind", "'user' | 'session' | 'agent'"),
    ("Health", "'healthy' | 'degraded' | 'unreachable' | 'unknown'"),
    ("Level", "'external' | 'trusted' | 'system'"),
    ("RunState", "'running' | 'waiting' | 'completed' | 'failed' | 'canceled'"),
    (
        "TaskState",
        "'submitted' | 'working' | 'input-required' | 'auth-required' | 'completed' | 'failed' | 'canceled' | 'rejected'",
    ),
    ("Verdict", "'chosen' | 'passed' | Out"),
];

/// Every object, with its members.
const SHAPES: &[(&str, &[(&str, &str)])] = &[
    // Who asks, and how things go.
    (
        "Me",
        &[
            ("caller", "text"),
            ("kind", "CallerKind"),
            ("org", "text"),
            ("project", "text"),
            ("scopes", "text[]"),
            ("may", "flag{}"),
            ("version", "text"),
        ],
    ),
    (
        "Overview",
        &[
            ("agents", "Counts"),
            ("unwell", "Unwell[]"),
            ("skills", "count"),
            ("tools", "count"),
            ("waiting", "count"),
            ("calls", "Calls | null"),
        ],
    ),
    ("Counts", &[("all", "count"), ("healthy", "count"), ("unwell", "count"), ("external", "count")]),
    ("Unwell", &[("agent", "text"), ("health", "Health"), ("lastError", "text | null")]),
    (
        "Calls",
        &[
            ("ended", "count"),
            ("failed", "count"),
            ("denied", "count"),
            ("p50Ms", "count | null"),
            ("p99Ms", "count | null"),
            ("perMinute", "count[]"),
            ("failedPerMinute", "count[]"),
            ("isEstimated", "flag"),
            ("isCut", "flag"),
        ],
    ),
    // Agents and tools.
    ("AgentPage", &[("agents", "AgentRow[]"), ("total", "count"), ("next", "text | null")]),
    (
        "AgentRow",
        &[
            ("id", "text"),
            ("name", "text"),
            ("slug", "text"),
            ("url", "text"),
            ("trust", "Level"),
            ("health", "Health"),
            ("signature", "'none' | 'unchecked' | 'valid'"),
            ("skills", "SkillRow[]"),
            ("interfaces", "Interface[]"),
            ("credential", "Credential"),
            ("registeredAt", "time"),
            ("lastFetchedAt", "time"),
            ("lastSeenAt", "time | null"),
            ("lastError", "text | null"),
            ("timeoutMs", "count | null"),
            ("version", "count"),
            ("allowedBy?", "text"),
            ("card?", "object"),
            ("shownAs?", "text | null"),
            ("scheme?", "text | null"),
            ("pending?", "CardChanges | null"),
        ],
    ),
    (
        "SkillRow",
        &[
            ("id", "text"),
            ("name", "text"),
            ("legacyAlias", "text"),
            ("description", "text"),
            ("tags", "text[]"),
            ("inputSchema", "any"),
        ],
    ),
    ("Interface", &[("url", "text"), ("binding", "text"), ("dialect", "text"), ("tenant?", "text")]),
    ("CardChanges", &[("added", "text[]"), ("removed", "text[]"), ("changed", "CardChange[]")]),
    ("CardChange", &[("of", "text"), ("member", "text"), ("before", "text"), ("after", "text")]),
    ("CardHistory", &[("history", "ReplacedCard[]"), ("pending", "CardChanges | null")]),
    ("ReplacedCard", &[("replacedAt", "time"), ("changes", "CardChanges")]),
    (
        "Refreshed",
        &[
            ("agent", "text"),
            ("outcome", "'unchanged' | 'changed' | 'held' | 'failed'"),
            ("changes?", "CardChanges"),
            ("error?", "text"),
        ],
    ),
    ("RefreshedAll", &[("refreshed", "count"), ("failed", "count"), ("outcomes", "Refreshed[]")]),
    (
        "Round",
        &[
            ("all", "count"),
            ("answered", "count"),
            ("silent", "count"),
            ("isOver", "flag"),
            ("begunAt", "time"),
        ],
    ),
    ("Probes", &[("probes", "Probe[]")]),
    (
        "Probe",
        &[
            ("agent", "text"),
            ("at", "time"),
            ("health", "Health"),
            ("elapsed_ms", "count"),
            ("error?", "text"),
        ],
    ),
    ("Standings", &[("standings", "Standing[]")]),
    ("Standing", &[("workType", "text"), ("alpha", "number"), ("beta", "number"), ("observed", "count")]),
    (
        "Tools",
        &[
            ("id", "text"),
            ("name", "text"),
            ("kind", "text"),
            ("org", "text"),
            ("project", "text"),
            ("url?", "text"),
            ("command?", "text[]"),
            ("settings?", "text{}"),
            ("configured", "flag"),
            ("trust", "Level"),
            ("health", "Health"),
            ("available", "flag"),
            ("lastError", "text | null"),
            ("timeoutMs", "count | null"),
            ("tools", "ToolRow[]"),
        ],
    ),
    (
        "ToolRow",
        &[
            ("name", "text"),
            ("fullName", "text"),
            ("description", "text"),
            ("available", "flag"),
            ("repeatable", "flag"),
            ("inputSchema", "any"),
            ("outputSchema?", "any"),
            ("annotations?", "any"),
        ],
    ),
    // Tasks.
    ("TaskPage", &[("tasks", "TaskHead[]"), ("next", "text | null")]),
    (
        "TaskHead",
        &[
            ("id", "text"),
            ("scope", "Scope"),
            ("caller", "text"),
            ("door", "text"),
            ("agent", "text"),
            ("agent_url", "text"),
            ("skill?", "text"),
            ("session", "text"),
            ("args", "any"),
            ("context?", "text"),
            ("message?", "text"),
            ("state", "TaskState"),
            ("version", "count"),
            ("remote", "Remote"),
            ("created_at", "time"),
            ("updated_at", "time"),
        ],
    ),
    ("Scope", &[("org", "text"), ("project", "text")]),
    ("Remote", &[("task_id?", "text"), ("context_id?", "text")]),
    ("Begun", &[("taskId", "text"), ("called", "text"), ("after", "count"), ("timeoutMs", "count")]),
    ("Told", &[("taskId", "text")]),
    (
        "Task",
        &[
            ("taskId", "text"),
            ("state", "TaskState"),
            ("agentId", "text"),
            ("agentUrl", "text"),
            ("skillId", "text | null"),
            ("remoteTaskId", "text | null"),
            ("contextId", "text | null"),
            ("message", "Turn | null"),
            ("artifacts", "Artifact[]"),
            ("failure", "Failure | null"),
            ("args", "any"),
            ("createdAt", "time"),
            ("updatedAt", "time"),
        ],
    ),
    (
        "Turn",
        &[
            ("id", "text"),
            ("role", "'user' | 'agent' | 'unspecified'"),
            ("parts", "Part[]"),
            ("context_id?", "text"),
            ("task_id?", "text"),
            ("metadata?", "object"),
            ("extensions?", "text[]"),
            ("reference_task_ids?", "text[]"),
            ("extra?", "object"),
        ],
    ),
    (
        "Part",
        &[
            ("content", "Content"),
            ("filename?", "text"),
            ("media_type?", "text"),
            ("metadata?", "object"),
            ("extra?", "object"),
        ],
    ),
    (
        "Content",
        &[("text?", "text"), ("data?", "any"), ("raw?", "text"), ("url?", "text"), ("unknown?", "any")],
    ),
    (
        "Artifact",
        &[
            ("id", "text"),
            ("name?", "text"),
            ("description?", "text"),
            ("parts", "Part[]"),
            ("metadata?", "object"),
            ("extensions?", "text[]"),
            ("extra?", "object"),
        ],
    ),
    ("Failure", &[("kind", "text"), ("message", "text"), ("data?", "any")]),
    ("Events", &[("events", "Recorded[]")]),
    ("Recorded", &[("seq", "count"), ("at", "time"), ("event", "Event")]),
    (
        "Event",
        &[
            ("accepted?", "Happening"),
            ("progress?", "Happening"),
            ("artifact?", "Happening"),
            ("asked?", "Happening"),
            ("answered?", "Happening"),
            ("finished?", "Happening"),
            ("replied?", "Happening"),
            ("failed?", "Happening"),
            ("rejected?", "Happening"),
            ("canceled?", "Happening"),
        ],
    ),
    (
        "Happening",
        &[
            ("remote?", "Remote"),
            ("working?", "flag"),
            ("message?", "Turn"),
            ("artifact?", "Artifact"),
            ("append?", "flag"),
            ("last?", "flag"),
            ("ask?", "'input' | 'auth'"),
            ("failure?", "Failure"),
            ("aside?", "Aside"),
        ],
    ),
    ("Aside", &[("timestamp?", "text"), ("metadata?", "object"), ("extra?", "object")]),
    (
        "Inspected",
        &[
            ("taskId", "text"),
            ("state", "TaskState | null"),
            ("cameIn", "CameIn"),
            ("decision", "PolicyDecision | null"),
            ("wentOut", "WentOut"),
            ("timeline", "TimelineEntry[]"),
        ],
    ),
    (
        "CameIn",
        &[
            ("caller", "text | null"),
            ("org", "text | null"),
            ("project", "text | null"),
            ("door", "text | null"),
            ("called", "text | null"),
            ("arguments", "any"),
            ("contextId", "text | null"),
            ("messageId", "text | null"),
        ],
    ),
    ("PolicyDecision", &[("allowed", "flag"), ("policies", "text[]"), ("reason", "text | null")]),
    (
        "WentOut",
        &[
            ("agent", "text | null"),
            ("url", "text | null"),
            ("protocol", "text | null"),
            ("skillId", "text | null"),
            ("sessionId", "text | null"),
            ("remoteTaskId", "text | null"),
            ("remoteContextId", "text | null"),
            ("sent", "Sent[]"),
        ],
    ),
    ("Sent", &[("at", "time"), ("content", "any")]),
    (
        "TimelineEntry",
        &[
            ("at", "time"),
            ("afterMs", "count"),
            ("who", "'caller' | 'rialto' | 'agent'"),
            ("what", "text"),
            ("record", "object"),
        ],
    ),
    ("UndeliveredList", &[("undelivered", "Undelivered[]")]),
    (
        "Undelivered",
        &[
            ("task", "text"),
            ("id", "text"),
            ("url", "text"),
            ("caller", "text"),
            ("toldUpTo", "count"),
            ("failures", "count"),
            ("lastError", "text"),
            ("createdAt", "time"),
        ],
    ),
    // Workflows and their runs.
    (
        "WorkflowRow",
        &[
            ("name", "text"),
            ("kind", "'workflow' | 'pipeline'"),
            ("status", "'draft' | 'active' | 'archived'"),
            ("version", "count"),
            ("skill", "text"),
            ("configured", "flag"),
            ("by", "text"),
            ("at", "time"),
            ("text?", "text"),
        ],
    ),
    ("WorkflowVersions", &[("versions", "WorkflowRow[]"), ("next", "count | null")]),
    ("CheckedWorkflow", &[("name", "text | null"), ("problems", "WorkflowProblem[]"), ("more", "count")]),
    ("WorkflowProblem", &[("line", "count"), ("column", "count"), ("code", "text"), ("message", "text")]),
    ("Removed", &[("removed", "text")]),
    ("RunPage", &[("runs", "Run[]"), ("next", "text | null")]),
    ("RunRecord", &[("run", "Run"), ("steps", "Step[]")]),
    ("RunBegun", &[("runId", "text"), ("state", "'running'")]),
    (
        "Run",
        &[
            ("id", "text"),
            ("scope", "Scope"),
            ("caller", "text"),
            ("name", "text"),
            ("version", "count | null"),
            ("definition?", "text"),
            ("input", "any"),
            ("depth", "count"),
            ("state", "RunState"),
            ("output?", "any"),
            ("failure?", "Failure"),
            ("wakesAt?", "time"),
            ("createdAt", "time"),
            ("updatedAt", "time"),
        ],
    ),
    (
        "Step",
        &[
            ("node", "text"),
            ("item?", "count"),
            ("attempt", "count"),
            ("task?", "text"),
            ("state", "'running' | 'waiting' | 'completed' | 'failed' | 'retrying' | 'skipped' | 'canceled'"),
            ("input?", "any"),
            ("output?", "any"),
            ("failure?", "Failure"),
            ("question?", "StepQuestion"),
            ("begunAt", "time"),
            ("endedAt?", "time"),
        ],
    ),
    ("StepQuestion", &[("ask", "'input' | 'auth'"), ("message?", "Turn"), ("expires?", "time")]),
    // What waits for approval.
    ("ApprovalPage", &[("approvals", "Approval[]"), ("next", "text | null")]),
    (
        "Approval",
        &[
            ("state", "'waiting' | 'approved' | 'denied' | 'withdrawn'"),
            ("id", "text"),
            ("scope", "Scope"),
            ("task", "text"),
            ("caller", "text"),
            ("agent", "text"),
            ("tool", "text"),
            ("args", "any"),
            ("by?", "text[]"),
            ("policies?", "text[]"),
            ("waits", "'call' | 'work'"),
            ("runner", "count"),
            ("askedAt", "time"),
            ("expiresAt", "time"),
            ("decided?", "Decided"),
            ("isSettled", "flag"),
        ],
    ),
    ("Decided", &[("approved", "flag"), ("by", "text"), ("reason?", "text"), ("at", "time")]),
    // Work that named nobody.
    ("Dispatched", &[("dispatchId", "text | null"), ("agent", "text | null"), ("task", "Task")]),
    ("DispatchPage", &[("dispatches", "Dispatch[]"), ("next", "text | null")]),
    (
        "Dispatch",
        &[
            ("id", "text"),
            ("scope", "Scope"),
            ("caller", "text"),
            ("at", "time"),
            ("seed", "count"),
            ("work", "WorkRow"),
            ("candidates", "Candidate[]"),
            ("more?", "count"),
            ("attempts", "Attempt[]"),
        ],
    ),
    (
        "WorkRow",
        &[
            ("workType", "text"),
            ("description", "text"),
            ("requiredSkills", "text[]"),
            ("inputModes?", "text[]"),
        ],
    ),
    (
        "Candidate",
        &[
            ("agentId", "text"),
            ("agent", "text"),
            ("skill?", "text"),
            ("capabilityScore", "number"),
            ("reasons", "text[]"),
            ("health", "Health"),
            ("healthFactor", "number"),
            ("activeTasks", "count"),
            ("loadFactor", "number"),
            ("costFactor", "number"),
            ("posterior", "Beta"),
            ("draw?", "number"),
            ("score?", "number"),
            ("verdict", "Verdict"),
        ],
    ),
    ("Beta", &[("alpha", "number"), ("beta", "number"), ("observed", "count")]),
    ("Out", &[("out", "text")]),
    (
        "Attempt",
        &[
            ("agentId", "text"),
            ("agent", "text"),
            ("taskId", "text"),
            ("outcome?", "'completed' | 'failed' | 'rejected' | 'canceled' | 'unreachable' | 'refused'"),
            ("whyLeft?", "text"),
        ],
    ),
    // The audit trail, and what calls cost.
    ("RecordPage", &[("records", "Record[]"), ("next", "count | null")]),
    ("Record", &[("record", "count"), ("seal", "text"), ("event", "VerbEvent")]),
    (
        "VerbEvent",
        &[
            ("phase", "'pre-verb' | 'post-verb' | 'verb-error' | 'breaker' | 'guardrail'"),
            ("verb", "text"),
            ("legacyAlias", "text"),
            ("orgId", "text"),
            ("agentCardId", "text"),
            ("agentUrl", "text"),
            ("skillId", "text"),
            ("sessionId", "text"),
            ("args", "any"),
            ("caller", "text"),
            ("taskId", "text"),
            ("emittedAt", "time"),
            ("context", "VerbContext"),
            ("durationMs?", "count"),
            ("outcome?", "'completed' | 'failed'"),
            ("estimatedCents?", "number"),
            ("error?", "VerbError"),
        ],
    ),
    ("VerbContext", &[("denied", "flag"), ("reason?", "text"), ("policies?", "text[]")]),
    ("VerbError", &[("code", "integer"), ("message", "text")]),
    (
        "Verified",
        &[
            ("sound", "flag"),
            ("records?", "count"),
            ("last?", "count"),
            ("seal?", "text"),
            ("record?", "count"),
            ("why?", "text"),
        ],
    ),
    ("Costs", &[("sums", "CostSum[]"), ("total", "CostSum")]),
    ("CostSum", &[("key", "text"), ("calls", "count"), ("unknown", "count"), ("estimatedCents", "number")]),
    // Policies.
    ("Policies", &[("policies", "PolicyRow[]")]),
    (
        "PolicyRow",
        &[("name", "text"), ("rules", "Rule[]"), ("text?", "text"), ("versions?", "PolicyVersionRow[]")],
    ),
    ("PolicyVersionRow", &[("version", "integer"), ("at", "time"), ("by", "text | null")]),
    ("Rule", &[("name", "text"), ("effect", "'permit' | 'forbid'"), ("summary", "text")]),
    ("PolicyNames", &[("policies", "text[]")]),
    ("Templates", &[("templates", "TemplateRow[]")]),
    ("TemplateRow", &[("kind", "text"), ("summary", "text"), ("target", "text")]),
    ("KeptPolicy", &[("name", "text"), ("file", "text"), ("policies", "Rule[]")]),
    ("GonePolicy", &[("name", "text"), ("file", "text")]),
    ("PolicyProblems", &[("problems", "PolicyProblem[]")]),
    ("PolicyProblem", &[("place", "text"), ("message", "text"), ("help", "text | null")]),
    ("WhatIf", &[("differences", "Difference[]"), ("problems", "PolicyProblem[]")]),
    ("Difference", &[("caller", "text"), ("target", "text"), ("isAdmin", "flag"), ("allowed", "flag")]),
    (
        "Ruling",
        &[
            ("decision", "'allow' | 'deny'"),
            ("caller", "text"),
            ("callerId", "text"),
            ("decidedBy", "text[]"),
            ("action", "text"),
            ("target", "text"),
            ("whyNot", "text | null"),
            ("policies", "PolicyFinding[]"),
            ("errors", "text[]"),
        ],
    ),
    (
        "PolicyFinding",
        &[
            ("name", "text"),
            ("effect", "'permit' | 'forbid'"),
            ("outcome", "text"),
            ("reason", "text"),
            ("summary", "text"),
            ("file", "text"),
        ],
    ),
    ("Matrix", &[("callers", "text[]"), ("rows", "MatrixRow[]"), ("more", "count")]),
    ("MatrixRow", &[("target", "text"), ("may", "flag[]")]),
    ("PolicyVersions", &[("versions", "PolicyVersion[]")]),
    (
        "PolicyVersion",
        &[
            ("name", "text"),
            ("version", "integer"),
            ("replacedAt?", "time"),
            ("changedAt?", "time"),
            ("by?", "text | null"),
            ("text", "text | null"),
        ],
    ),
    // Guardrails.
    ("Guardrails", &[("guardrails", "object")]),
    (
        "Tried",
        &[
            ("verdict", "'pass' | 'log' | 'warn' | 'redact' | 'block'"),
            ("findings", "GuardFinding[]"),
            ("redacted", "text"),
            ("notAsked", "count"),
            ("guardrails?", "text[]"),
        ],
    ),
    (
        "GuardFinding",
        &[
            ("check", "text"),
            ("kind", "text"),
            ("part", "count"),
            ("field", "'content' | 'metadata' | 'filename' | 'extra' | 'message'"),
            ("at?", "Bytes"),
            ("action", "'log' | 'warn' | 'redact' | 'block'"),
        ],
    ),
    ("Bytes", &[("start", "count"), ("end", "count")]),
    // Tokens, webhooks and secrets.
    ("Tokens", &[("tokens", "TokenRow[]")]),
    (
        "TokenRow",
        &[
            ("id", "text"),
            ("caller", "text"),
            ("kind", "CallerKind"),
            ("scopes", "text[]"),
            ("org", "text"),
            ("project", "text"),
            ("createdAt", "time"),
            ("expiresAt", "time | null"),
            ("revokedAt", "time | null"),
            ("state", "'good' | 'expired' | 'revoked'"),
            ("token?", "text"),
        ],
    ),
    ("Webhooks", &[("webhooks", "WebhookRow[]")]),
    (
        "WebhookRow",
        &[
            ("id", "text"),
            ("url", "text"),
            ("org", "text"),
            ("events", "text[]"),
            ("createdAt", "time"),
            ("state", "'good' | 'failing' | 'disabled'"),
            ("handled", "count"),
            ("delivered", "count"),
            ("lost", "count"),
            ("failures", "count"),
            ("nextAttemptAt", "time | null"),
            ("lastError", "text | null"),
            ("disabled", "text | null"),
            ("secret?", "text | null"),
        ],
    ),
    ("Secrets", &[("secrets", "SecretRow[]")]),
    ("SecretRow", &[("name", "text"), ("setAt", "time"), ("key", "text"), ("usedBy", "text[]")]),
    ("SecretName", &[("name", "text"), ("usedBy?", "text[]")]),
];

/// Every good answer of a route: its status, what it holds and its schema, if it has a body.
pub(super) fn of(route: &Route) -> Vec<(u16, &'static str, Option<Value>)> {
    let name = format!("{} {}", route.method, route.path.trim_start_matches("/api/v1"));
    let usual = ANSWERS.iter().find(|(known, _)| *known == name).map(|(_, shape)| schema(shape));
    let others = OTHERWISE.iter().filter(|(known, ..)| *known == name);
    let others = others.map(|(_, status, holds, shape)| (*status, *holds, Some(schema(shape))));
    std::iter::once((route.answer.0, route.answer.1, usual)).chain(others).collect()
}

/// The schema of every shape, by its name.
pub(super) fn schemas() -> Map<String, Value> {
    let choices = CHOICES.iter().map(|(name, shape)| ((*name).to_owned(), schema(shape)));
    let objects = SHAPES.iter().map(|(name, members)| ((*name).to_owned(), object(members)));
    choices.chain(objects).collect()
}

fn object(members: &[(&str, &str)]) -> Value {
    let is_there = |(name, _): &&(&str, &str)| !name.ends_with('?');
    let required: Vec<&str> = members.iter().filter(is_there).map(|(name, _)| *name).collect();
    let named = |(name, shape): &(&str, &str)| (name.trim_end_matches('?').to_owned(), schema(shape));
    let properties: Map<String, Value> = members.iter().map(named).collect();
    json!({ "type": "object", "required": required, "properties": properties, "additionalProperties": false })
}

/// What a shape is in JSON Schema.
fn schema(shape: &str) -> Value {
    let pieces: Vec<&str> = shape.split(" | ").collect();
    let words: Option<Vec<&str>> = pieces.iter().map(|piece| word(piece)).collect();
    match (words, pieces.as_slice()) {
        (Some(words), _) => json!({ "type": "string", "enum": words }),
        (None, [one]) => kind(one),
        (None, several) => json!({ "anyOf": several.iter().map(|piece| schema(piece)).collect::<Vec<_>>() }),
    }
}

/// What stands between quotes.
fn word(piece: &str) -> Option<&str> {
    piece.strip_prefix('\'')?.strip_suffix('\'')
}

fn kind(name: &str) -> Value {
    if let Some(of) = name.strip_suffix("[]") {
        return json!({ "type": "array", "items": kind(of) });
    }
    if let Some(of) = name.strip_suffix("{}") {
        return json!({ "type": "object", "additionalProperties": kind(of) });
    }
    match name {
        "text" => json!({ "type": "string" }),
        "count" => json!({ "type": "integer", "minimum": 0 }),
        "integer" => json!({ "type": "integer" }),
        "number" => json!({ "type": "number" }),
        "flag" => json!({ "type": "boolean" }),
        "time" => json!({ "type": "string", "format": "date-time" }),
        "object" => json!({ "type": "object" }),
        "null" => json!({ "type": "null" }),
        "any" => json!({}),
        shape => json!({ "$ref": format!("#/components/schemas/{shape}") }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::api::routes;

    #[test]
    fn a_shape_says_what_there_is() {
        let shape = object(&[("next", "text | null"), ("rows?", "Rule[]")]);
        let schema = json!({
            "type": "object",
            "required": ["next"],
            "properties": {
                "next": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
                "rows": { "type": "array", "items": { "$ref": "#/components/schemas/Rule" } },
            },
            "additionalProperties": false,
        });
        assert_eq!(shape, schema);
    }

    #[test]
    fn every_answer_is_one_of_a_route_and_every_route_with_a_body_has_one() {
        let name = |route: &Route| format!("{} {}", route.method, route.path.trim_start_matches("/api/v1"));
        let known: HashSet<String> = routes().map(name).collect();
        let told = ANSWERS.iter().map(|(name, _)| *name).chain(OTHERWISE.iter().map(|(name, ..)| *name));
        for told in told {
            assert!(known.contains(told), "{told} is no route");
        }
        for route in routes() {
            let (status, _, schema) = of(route).swap_remove(0);
            assert_eq!(schema.is_some(), status != 204, "{} {}", route.method, route.path);
        }
    }

    #[test]
    fn every_shape_that_is_named_is_there() {
        let schemas = schemas();
        let whole = json!([schemas, routes().map(|route| format!("{:?}", of(route))).collect::<Vec<_>>()]);
        for named in whole.to_string().split("#/components/schemas/").skip(1) {
            let name = named.split(['"', '\\']).next().unwrap_or_default();
            assert!(schemas.contains_key(name) || name == "Credential", "{name}");
        }
    }
}
