-- Who was chosen to do some work, and why: the whole decision as JSON. Ids sort by the time they were made.
CREATE TABLE dispatches (
    id        TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org       TEXT COLLATE "C" NOT NULL,
    project   TEXT COLLATE "C" NOT NULL,
    caller    TEXT COLLATE "C" NOT NULL,
    work_type TEXT COLLATE "C" NOT NULL,
    at        BIGINT NOT NULL,
    record    TEXT NOT NULL
);
CREATE INDEX dispatches_by_scope ON dispatches (org, project, id);

-- One task given to one agent. While `outcome` is not known it takes one of the agent's slots: as a task that is open, or,
-- before that task is written down, by this row until `until`.
CREATE TABLE plays (
    task      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    dispatch  TEXT COLLATE "C" NOT NULL,
    org       TEXT COLLATE "C" NOT NULL,
    agent     TEXT COLLATE "C" NOT NULL,
    work_type TEXT COLLATE "C" NOT NULL,
    until     BIGINT NOT NULL,
    outcome   TEXT,
    ended_at  BIGINT
);
CREATE INDEX plays_open ON plays (org, agent) WHERE outcome IS NULL;
CREATE INDEX plays_by_dispatch ON plays (dispatch);

-- How well agents do each type of work: what went well and what did not, older observations discounted.
CREATE TABLE arms (
    org        TEXT COLLATE "C" NOT NULL,
    agent      TEXT COLLATE "C" NOT NULL,
    work_type  TEXT COLLATE "C" NOT NULL,
    wins       DOUBLE PRECISION NOT NULL,
    losses     DOUBLE PRECISION NOT NULL,
    recent_wins   DOUBLE PRECISION NOT NULL,
    recent_losses DOUBLE PRECISION NOT NULL,
    observed   BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (org, work_type, agent)
);
