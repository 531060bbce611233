-- What waits until somebody has approved it, and what was decided. The first decision counts: `decided` is written once.
CREATE TABLE approvals (
    id         TEXT NOT NULL PRIMARY KEY,
    org        TEXT NOT NULL,
    project    TEXT NOT NULL,
    task       TEXT NOT NULL,
    asked_at   INTEGER NOT NULL,
    body       TEXT NOT NULL,
    decided    TEXT,
    settled    INTEGER NOT NULL
) STRICT;

CREATE INDEX approvals_of_task ON approvals (task);
CREATE INDEX approvals_unsettled ON approvals (id) WHERE settled = 0;

PRAGMA user_version = 10;
