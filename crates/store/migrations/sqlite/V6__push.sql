-- Who is told of a task, and how far. The task's events are what is to be told. Whoever delivers stands in `holder`, until
-- `held_until`.
CREATE TABLE push_configs (
    task            TEXT NOT NULL,
    id              TEXT NOT NULL,
    org             TEXT NOT NULL,
    project         TEXT NOT NULL,
    caller          TEXT NOT NULL,
    url             TEXT NOT NULL,
    token           TEXT,
    schemes         TEXT,
    credentials     TEXT,
    dialect         TEXT NOT NULL,
    extra           TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    told            INTEGER NOT NULL,
    failures        INTEGER NOT NULL,
    next_attempt_at INTEGER,
    last_error      TEXT,
    dead            INTEGER NOT NULL,
    holder          TEXT,
    held_until      INTEGER,
    PRIMARY KEY (task, id)
) STRICT;

PRAGMA user_version = 6;
