-- Calls in time windows, added up over all processes that share this file. Windows are in seconds since 1970.
CREATE TABLE call_counts (
    key      TEXT NOT NULL,
    began_at INTEGER NOT NULL,
    ends_at  INTEGER NOT NULL,
    calls    INTEGER NOT NULL,
    PRIMARY KEY (key, began_at)
) STRICT, WITHOUT ROWID;
CREATE INDEX call_counts_by_end ON call_counts (ends_at);

-- The last opening of each agent's circuit breaker in any process.
CREATE TABLE breaker_openings (
    agent  TEXT NOT NULL PRIMARY KEY,
    at     INTEGER NOT NULL,
    until  INTEGER NOT NULL,
    reason TEXT NOT NULL
) STRICT, WITHOUT ROWID;
PRAGMA user_version = 19;
