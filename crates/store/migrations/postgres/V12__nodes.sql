-- Servers that share this database, by their names. `runner` is 0 when the process has ended and the node is still to be drained.
CREATE TABLE nodes (
    name       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    runner     BIGINT NOT NULL,
    process    BIGINT NOT NULL,
    address    TEXT NOT NULL,
    version    TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    renewed_at BIGINT NOT NULL,
    drained_by TEXT,
    drained_at BIGINT
);

-- Programs that run on one node at a time, and the processes that hold them: MCP servers over stdio and coding agents.
CREATE TABLE program_holders (
    program TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    runner  BIGINT NOT NULL
);

-- Calls that one node passes on to another, because only that one runs the program that executes them. They are removed when they end.
CREATE TABLE relayed_calls (
    id       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    sender   BIGINT NOT NULL,
    receiver BIGINT NOT NULL,
    body     TEXT NOT NULL,
    at       BIGINT NOT NULL,
    is_taken BOOLEAN NOT NULL DEFAULT FALSE
);

CREATE INDEX relayed_calls_waiting ON relayed_calls (receiver) WHERE NOT is_taken;

CREATE TABLE relayed_events (
    call   TEXT COLLATE "C" NOT NULL REFERENCES relayed_calls (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    body   TEXT NOT NULL,
    PRIMARY KEY (call, number)
);
