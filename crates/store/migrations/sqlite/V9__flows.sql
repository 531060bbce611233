-- Workflows and pipelines. Every change of one is a row: the last one of a name is in force, and one whose text is missing has
-- taken it away. Runs keep the version they began with, so none is ever let go of.
CREATE TABLE flow_versions (
    org        TEXT NOT NULL,
    project    TEXT NOT NULL,
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    status     TEXT NOT NULL,
    text       TEXT,
    configured INTEGER NOT NULL,
    by         TEXT NOT NULL,
    at         INTEGER NOT NULL,
    PRIMARY KEY (org, project, name, version)
) STRICT, WITHOUT ROWID;

-- Runs. Each is a task of the same id. Only the driver that took it last writes to it.
CREATE TABLE flow_runs (
    id         TEXT NOT NULL PRIMARY KEY,
    org        TEXT NOT NULL,
    project    TEXT NOT NULL,
    caller     TEXT NOT NULL,
    name       TEXT NOT NULL,
    version    INTEGER,
    definition TEXT,
    input      TEXT NOT NULL,
    depth      INTEGER NOT NULL,
    state      TEXT NOT NULL,
    output     TEXT,
    failure    TEXT,
    wakes_at   INTEGER,
    driver     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
-- Ids sort by the time they were made.
CREATE INDEX flow_runs_by_scope ON flow_runs (org, project, id);
CREATE INDEX flow_runs_to_wake ON flow_runs (wakes_at) WHERE wakes_at IS NOT NULL;

-- Steps of runs, in the order they began. One that does the same for many items has a row for each; the node itself is item -1.
CREATE TABLE flow_steps (
    row      INTEGER PRIMARY KEY,
    run      TEXT NOT NULL,
    node     TEXT NOT NULL,
    item     INTEGER NOT NULL,
    attempt  INTEGER NOT NULL,
    task     TEXT,
    state    TEXT NOT NULL,
    input    TEXT,
    output   TEXT,
    failure  TEXT,
    question TEXT,
    begun_at INTEGER NOT NULL,
    ended_at INTEGER,
    UNIQUE (run, node, item, attempt)
) STRICT;

-- Moments at which definitions are run by themselves, each as the task that is named before. Whoever runs them stands in
-- `holder`, until `held_until`.
CREATE TABLE flow_schedules (
    org        TEXT NOT NULL,
    project    TEXT NOT NULL,
    name       TEXT NOT NULL,
    number     INTEGER NOT NULL,
    next_at    INTEGER NOT NULL,
    task       TEXT NOT NULL,
    holder     TEXT,
    held_until INTEGER,
    PRIMARY KEY (org, project, name, number)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 9;
