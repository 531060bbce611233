//! Shapes of what is there: who asks, agents and tools, and how all of it goes.

use super::Shape;

pub(super) const SHAPES: &[Shape] = &[
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
];
