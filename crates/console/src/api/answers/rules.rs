//! Shapes of who may do what, and of what was done: policies, guardrails, tokens, webhooks, secrets and the audit trail.

use super::Shape;

pub(super) const SHAPES: &[Shape] = &[
    // The audit trail, and what calls cost.
    ("RecordPage", &[("records", "Record[]"), ("next", "count | null")]),
    ("Record", &[("record", "count"), ("seal", "text"), ("event", "VerbEvent")]),
    (
        "VerbEvent",
        &[
            ("phase", "'pre-verb' | 'post-verb' | 'verb-error' | 'breaker' | 'guardrail' | 'admin'"),
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
            ("node?", "text"),
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
];
