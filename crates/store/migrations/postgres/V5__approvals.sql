-- What waits until somebody has approved it, and what was decided. The first decision counts: `decided` is written once.
CREATE TABLE approvals (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org        TEXT NOT NULL,
    project    TEXT NOT NULL,
    task       TEXT COLLATE "C" NOT NULL,
    asked_at   BIGINT NOT NULL,
    body       TEXT NOT NULL,
    decided    TEXT,
    settled    BOOLEAN NOT NULL
);

CREATE INDEX approvals_of_task ON approvals (task);
CREATE INDEX approvals_unsettled ON approvals (id) WHERE NOT settled;
