-- Times are nanoseconds since 1970 (UTC), so that a timestamp comes back exactly as it was given.
-- Cards, arguments, events and audit records are JSON text, kept as it came.

CREATE TABLE meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value ANY NOT NULL
) STRICT;
-- Counts the changes of agents and tokens.
INSERT INTO meta (key, value) VALUES ('generation', 1);

CREATE TABLE agent_cards (
    id              TEXT NOT NULL PRIMARY KEY,
    org             TEXT NOT NULL,
    project         TEXT NOT NULL,
    url             TEXT NOT NULL,
    slug            TEXT NOT NULL,
    card            TEXT NOT NULL,
    pending_card    TEXT,
    pending_seen_at INTEGER,
    trust_level     TEXT NOT NULL,
    health_status   TEXT NOT NULL,
    signature       TEXT NOT NULL,
    credential      TEXT,
    allow_private   INTEGER NOT NULL,
    card_path       TEXT,
    etag            TEXT,
    speaks          TEXT,
    timeout_ms      INTEGER,
    registered_at   INTEGER NOT NULL,
    last_fetched_at INTEGER NOT NULL,
    last_seen_at    INTEGER,
    last_error      TEXT,
    version         INTEGER NOT NULL,
    UNIQUE (org, project, url),
    UNIQUE (org, project, slug)
) STRICT;

CREATE TABLE card_history (
    row         INTEGER PRIMARY KEY,
    agent       TEXT NOT NULL REFERENCES agent_cards (id) ON DELETE CASCADE,
    replaced_at INTEGER NOT NULL,
    card        TEXT NOT NULL
) STRICT;
CREATE INDEX card_history_by_agent ON card_history (agent);

CREATE TABLE health_probes (
    row        INTEGER PRIMARY KEY,
    agent      TEXT NOT NULL REFERENCES agent_cards (id) ON DELETE CASCADE,
    at         INTEGER NOT NULL,
    health     TEXT NOT NULL,
    elapsed_ms INTEGER NOT NULL,
    error      TEXT
) STRICT;
CREATE INDEX health_probes_by_agent ON health_probes (agent);

-- A task outlives its agent's row, so `agent` refers to nothing. `open` is what `state` says, in a form that is cheap
-- to put a condition on: a list of states would be built into a temporary table at every write.
CREATE TABLE tasks (
    row               INTEGER PRIMARY KEY,
    id                TEXT NOT NULL,
    org               TEXT NOT NULL,
    project           TEXT NOT NULL,
    caller            TEXT NOT NULL,
    door              TEXT NOT NULL,
    agent             TEXT NOT NULL,
    agent_url         TEXT NOT NULL,
    skill             TEXT,
    session           TEXT NOT NULL,
    args              TEXT NOT NULL,
    state             TEXT NOT NULL,
    open              INTEGER NOT NULL,
    version           INTEGER NOT NULL,
    remote_task_id    TEXT,
    remote_context_id TEXT,
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL
) STRICT;
-- Ids sort by the time they were made, so these are also the order of creation.
CREATE UNIQUE INDEX tasks_by_id ON tasks (id);
CREATE INDEX tasks_by_caller ON tasks (org, project, caller, id);
CREATE INDEX tasks_open ON tasks (id) WHERE open = 1;
-- Remote ids come in no order: in one great index each would touch a page of its own, and a page is what a commit
-- writes. So there is a stretch of the index for every 1024 tasks, and whoever looks for an id looks in each.
CREATE INDEX tasks_by_remote_id ON tasks (row / 1024, remote_task_id) WHERE remote_task_id IS NOT NULL;

-- Who works on what: what a task is to whoever shares work out. A call that was refused has no row here.
CREATE VIEW a2a_task_instances AS
SELECT id AS task_id, org, project, agent AS agent_id, skill AS skill_id, caller, state, open AS active, created_at,
       updated_at, CASE WHEN open = 0 THEN updated_at END AS ended_at
FROM tasks;

-- Events that were written together are one row, an array. `key` is the task's row number times 2^24 and the number of
-- the last event: so the rows of a task stand together, in order, without an index beside the table.
CREATE TABLE task_events (
    key    INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    events TEXT NOT NULL
) STRICT;

-- Read from the end, where an index would only cost each call something. `seal` is a SHA-256 over this record and the
-- seal before it; the last one, and the last of those that were swept, are also in `meta`.
CREATE TABLE audit (
    row   INTEGER PRIMARY KEY,
    org   TEXT NOT NULL,
    at    INTEGER NOT NULL,
    event TEXT NOT NULL,
    seal  BLOB NOT NULL
) STRICT;

-- What calls cost, as far as their agents' cards say it. A task whose caller was asked something on the way has several
-- rows, and the cost is in the last one.
CREATE VIEW cost_events AS
SELECT row AS record, org, at, event ->> 'caller' AS caller, event ->> 'agentCardId' AS agent_id, event ->> 'verb' AS verb,
       event ->> 'skillId' AS skill_id, event ->> 'taskId' AS task_id, event ->> 'estimatedCents' AS estimated_cents
FROM audit
WHERE event ->> 'phase' = 'post-verb' AND event ->> 'outcome' = 'completed';

-- The token itself is nowhere: `hash` is its SHA-256. `rights` are words with spaces between them.
CREATE TABLE tokens (
    id         TEXT NOT NULL PRIMARY KEY,
    hash       TEXT NOT NULL UNIQUE,
    org        TEXT NOT NULL,
    project    TEXT NOT NULL,
    caller     TEXT NOT NULL,
    kind       TEXT NOT NULL,
    rights     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT;

-- Who is told of calls, and how far. `secret` says where the key is, as JSON; the key itself is not here. Whoever delivers
-- stands in `holder`, until `held_until`.
CREATE TABLE webhooks (
    id              TEXT NOT NULL PRIMARY KEY,
    org             TEXT NOT NULL,
    url             TEXT NOT NULL,
    phases          TEXT NOT NULL,
    secret          TEXT NOT NULL,
    allow_private   INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    handled         INTEGER NOT NULL,
    delivered       INTEGER NOT NULL,
    lost            INTEGER NOT NULL,
    failures        INTEGER NOT NULL,
    next_attempt_at INTEGER,
    last_error      TEXT,
    disabled        TEXT,
    holder          TEXT,
    held_until      INTEGER
) STRICT;

PRAGMA user_version = 1;
