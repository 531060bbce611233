-- Calls in time windows, added up over all nodes. Windows are in seconds since 1970.
CREATE TABLE call_counts (
    key      TEXT COLLATE "C" NOT NULL,
    began_at BIGINT NOT NULL,
    ends_at  BIGINT NOT NULL,
    calls    BIGINT NOT NULL,
    PRIMARY KEY (key, began_at)
);
CREATE INDEX call_counts_by_end ON call_counts (ends_at);

-- The last opening of each agent's circuit breaker at any node.
CREATE TABLE breaker_openings (
    agent  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    at     BIGINT NOT NULL,
    until  BIGINT NOT NULL,
    reason TEXT NOT NULL
);
