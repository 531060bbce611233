-- Who was chosen to do some work, and why: the whole decision as JSON.
CREATE TABLE dispatches (
    id        TEXT NOT NULL PRIMARY KEY,
    org       TEXT NOT NULL,
    project   TEXT NOT NULL,
    caller    TEXT NOT NULL,
    work_type TEXT NOT NULL,
    at        INTEGER NOT NULL,
    record    TEXT NOT NULL
) STRICT;
-- Ids sort by the time they were made.
CREATE INDEX dispatches_by_scope ON dispatches (org, project, id);

-- One task given to one agent. While `outcome` is not known it takes one of the agent's slots: as a task that is open, or,
-- before that task is written down, by this row until `until`.
CREATE TABLE plays (
    task      TEXT NOT NULL PRIMARY KEY,
    dispatch  TEXT NOT NULL,
    org       TEXT NOT NULL,
    agent     TEXT NOT NULL,
    work_type TEXT NOT NULL,
    until     INTEGER NOT NULL,
    outcome   TEXT,
    ended_at  INTEGER
) STRICT;
CREATE INDEX plays_open ON plays (org, agent) WHERE outcome IS NULL;
CREATE INDEX plays_by_dispatch ON plays (dispatch);

-- How well agents do each type of work: what went well and what did not, older observations discounted.
CREATE TABLE arms (
    org        TEXT NOT NULL,
    agent      TEXT NOT NULL,
    work_type  TEXT NOT NULL,
    wins       REAL NOT NULL,
    losses     REAL NOT NULL,
    recent_wins   REAL NOT NULL,
    recent_losses REAL NOT NULL,
    observed   INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (org, work_type, agent)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 8;
