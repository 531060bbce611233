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
