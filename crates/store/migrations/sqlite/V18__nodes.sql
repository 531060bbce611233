-- Servers that share this file, by their names. `runner` is 0 when the process has ended and the node is still to be drained.
CREATE TABLE nodes (
    name       TEXT NOT NULL PRIMARY KEY,
    runner     INTEGER NOT NULL,
    process    INTEGER NOT NULL,
    address    TEXT NOT NULL,
    version    TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    renewed_at INTEGER NOT NULL,
    drained_by TEXT,
    drained_at INTEGER
) STRICT;

-- Programs that run on one process at a time, and the processes that hold them: MCP servers over stdio and coding agents.
CREATE TABLE program_holders (
    program TEXT NOT NULL PRIMARY KEY,
    runner  INTEGER NOT NULL
) STRICT;

-- Calls that one process passes on to another, because only that one runs the program that executes them. They are removed when they end.
CREATE TABLE relayed_calls (
    id       TEXT NOT NULL PRIMARY KEY,
    sender   INTEGER NOT NULL,
    receiver INTEGER NOT NULL,
    body     TEXT NOT NULL,
    at       INTEGER NOT NULL,
    is_taken INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX relayed_calls_waiting ON relayed_calls (receiver) WHERE is_taken = 0;

CREATE TABLE relayed_events (
    call   TEXT NOT NULL REFERENCES relayed_calls (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    body   TEXT NOT NULL,
    PRIMARY KEY (call, number)
) STRICT;

-- The oldest schema whose programs can work with this file: nothing that they use has changed since.
INSERT OR IGNORE INTO meta (key, value) VALUES ('schema_floor', 16);

PRAGMA user_version = 18;
