-- Workflows and pipelines. Every change of one is a row: the last one of a name is in force, and one whose text is missing has
-- taken it away. Runs keep the version they began with, so none is ever let go of.
CREATE TABLE flow_versions (
    org        TEXT COLLATE "C" NOT NULL,
    project    TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    version    BIGINT NOT NULL,
    kind       TEXT NOT NULL,
    status     TEXT NOT NULL,
    text       TEXT,
    configured BOOLEAN NOT NULL,
    by         TEXT NOT NULL,
    at         BIGINT NOT NULL,
    CONSTRAINT flow_version PRIMARY KEY (org, project, name, version)
);

-- Runs. Each is a task of the same id. Only the driver that took it last writes to it.
CREATE TABLE flow_runs (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org        TEXT COLLATE "C" NOT NULL,
    project    TEXT COLLATE "C" NOT NULL,
    caller     TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    version    BIGINT,
    definition TEXT,
    input      TEXT NOT NULL,
    depth      BIGINT NOT NULL,
    state      TEXT NOT NULL,
    output     TEXT,
    failure    TEXT,
    wakes_at   BIGINT,
    driver     TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
-- Ids sort by the time they were made.
CREATE INDEX flow_runs_by_scope ON flow_runs (org, project, id);
CREATE INDEX flow_runs_to_wake ON flow_runs (wakes_at) WHERE wakes_at IS NOT NULL;

-- Steps of runs, in the order they began. One that does the same for many items has a row for each; the node itself is item -1.
CREATE TABLE flow_steps (
    row      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run      TEXT COLLATE "C" NOT NULL,
    node     TEXT COLLATE "C" NOT NULL,
    item     BIGINT NOT NULL,
    attempt  BIGINT NOT NULL,
    task     TEXT,
    state    TEXT NOT NULL,
    input    TEXT,
    output   TEXT,
    failure  TEXT,
    question TEXT,
    begun_at BIGINT NOT NULL,
    ended_at BIGINT,
    UNIQUE (run, node, item, attempt)
);

-- Moments at which definitions are run by themselves, each as the task that is named before. Whoever runs them stands in
-- `holder`, until `held_until`.
CREATE TABLE flow_schedules (
    org        TEXT COLLATE "C" NOT NULL,
    project    TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    number     BIGINT NOT NULL,
    next_at    BIGINT NOT NULL,
    task       TEXT NOT NULL,
    holder     TEXT,
    held_until BIGINT,
    PRIMARY KEY (org, project, name, number)
);
