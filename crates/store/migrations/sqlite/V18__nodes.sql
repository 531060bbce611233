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

-- The oldest schema whose programs can work with this file: nothing that they use has changed since.
INSERT OR IGNORE INTO meta (key, value) VALUES ('schema_floor', 16);

PRAGMA user_version = 18;
