-- Times are nanoseconds since 1970 (UTC), so that a timestamp comes back exactly as it was given.
-- Cards, arguments, events and audit records are JSON text, kept as it came: `jsonb` would lay it out anew.
-- Names sort byte by byte (`COLLATE "C"`), whatever language the server speaks: ids sort by the time they were made.

-- Counts the changes of the registry, the tokens, the secrets, the webhooks and the policies.
CREATE TABLE generation (
    one    BOOLEAN NOT NULL PRIMARY KEY DEFAULT TRUE CHECK (one),
    number BIGINT NOT NULL
);
INSERT INTO generation (number) VALUES (1);

CREATE TABLE agent_cards (
    id              TEXT COLLATE "C" NOT NULL,
    org             TEXT COLLATE "C" NOT NULL,
    project         TEXT COLLATE "C" NOT NULL,
    url             TEXT NOT NULL,
    slug            TEXT NOT NULL,
    card            TEXT NOT NULL,
    pending_card    TEXT,
    pending_seen_at BIGINT,
    trust_level     TEXT NOT NULL,
    health_status   TEXT NOT NULL,
    signature       TEXT NOT NULL,
    credential      TEXT,
    allow_private   BOOLEAN NOT NULL,
    card_path       TEXT,
    etag            TEXT,
    speaks          TEXT,
    timeout_ms      BIGINT,
    registered_at   BIGINT NOT NULL,
    last_fetched_at BIGINT NOT NULL,
    last_seen_at    BIGINT,
    last_error      TEXT,
    version         BIGINT NOT NULL,
    -- What stands behind a row, as JSON; nothing for a remote agent. A configured row is changed by the configuration only.
    backing         TEXT,
    configured      BOOLEAN NOT NULL DEFAULT FALSE,
    CONSTRAINT agent_id PRIMARY KEY (id),
    CONSTRAINT agent_url UNIQUE (org, project, url),
    CONSTRAINT agent_slug UNIQUE (org, project, slug)
);

CREATE TABLE card_history (
    row         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    agent       TEXT COLLATE "C" NOT NULL REFERENCES agent_cards (id) ON DELETE CASCADE,
    replaced_at BIGINT NOT NULL,
    card        TEXT NOT NULL
);
CREATE INDEX card_history_by_agent ON card_history (agent, row);

CREATE TABLE health_probes (
    row        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    agent      TEXT COLLATE "C" NOT NULL REFERENCES agent_cards (id) ON DELETE CASCADE,
    at         BIGINT NOT NULL,
    health     TEXT NOT NULL,
    elapsed_ms BIGINT NOT NULL,
    error      TEXT
);
CREATE INDEX health_probes_by_agent ON health_probes (agent, row);

-- A task outlives its agent's row, so `agent` refers to nothing.
CREATE TABLE tasks (
    id                TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org               TEXT COLLATE "C" NOT NULL,
    project           TEXT COLLATE "C" NOT NULL,
    caller            TEXT COLLATE "C" NOT NULL,
    door              TEXT NOT NULL,
    agent             TEXT COLLATE "C" NOT NULL,
    agent_url         TEXT NOT NULL,
    skill             TEXT,
    session           TEXT NOT NULL,
    args              TEXT NOT NULL,
    state             TEXT NOT NULL,
    open              BOOLEAN NOT NULL,
    version           BIGINT NOT NULL,
    remote_task_id    TEXT COLLATE "C",
    remote_context_id TEXT,
    created_at        BIGINT NOT NULL,
    updated_at        BIGINT NOT NULL,
    -- Of callers that keep conversations with us (A2A); other tasks have neither.
    context           TEXT COLLATE "C",
    message           TEXT COLLATE "C",
    -- The process that works on it; zero is one that nobody takes over from.
    runner            BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX tasks_by_caller ON tasks (org, project, caller, id);
CREATE INDEX tasks_open ON tasks (id) WHERE open;
CREATE INDEX tasks_ended ON tasks (updated_at) WHERE NOT open;
CREATE INDEX tasks_by_remote_id ON tasks (remote_task_id, id) WHERE remote_task_id IS NOT NULL;

CREATE INDEX tasks_by_context ON tasks (org, project, context, id) WHERE context IS NOT NULL;
CREATE INDEX tasks_by_change ON tasks (org, project, caller, updated_at, id) WHERE context IS NOT NULL;
CREATE INDEX tasks_by_message ON tasks (org, project, caller, message) WHERE message IS NOT NULL;

-- Processes at work. One that has not said so again by `until` is gone.
CREATE TABLE runners (
    id    BIGINT NOT NULL PRIMARY KEY,
    until BIGINT NOT NULL
);

-- Who works on what: what a task is to whoever shares work out. A call that was refused has no row here.
CREATE VIEW a2a_task_instances AS
SELECT id AS task_id, org, project, agent AS agent_id, skill AS skill_id, caller, state, open AS active, created_at,
       updated_at, CASE WHEN NOT open THEN updated_at END AS ended_at
FROM tasks;

-- Events that were written together are one row, an array; `last` is the number of the last of them.
CREATE TABLE task_events (
    task   TEXT COLLATE "C" NOT NULL,
    last   BIGINT NOT NULL,
    at     BIGINT NOT NULL,
    events TEXT NOT NULL,
    PRIMARY KEY (task, last)
);

-- `seal` is a SHA-256 over this record and the seal before it. What stands between `event` and `seal` is taken from the event, to
-- be searched by; whoever verifies the trail compares it too. An index for each would cost every call something.
CREATE TABLE audit (
    record               BIGINT NOT NULL PRIMARY KEY,
    org                  TEXT COLLATE "C" NOT NULL,
    at                   BIGINT NOT NULL,
    event                TEXT NOT NULL,
    phase                TEXT NOT NULL,
    verb                 TEXT COLLATE "C" NOT NULL,
    agent                TEXT COLLATE "C" NOT NULL,
    caller               TEXT COLLATE "C" NOT NULL,
    task                 TEXT COLLATE "C" NOT NULL,
    outcome              TEXT,
    denied               BOOLEAN NOT NULL,
    estimated_millionths BIGINT,
    seal                 BYTEA NOT NULL
);

-- Where the trail ends, and what was swept from its beginning. Whoever adds to it holds this row until it is committed: so
-- the trail has no gaps, and no record appears before an earlier one.
CREATE TABLE audit_chain (
    one          BOOLEAN NOT NULL PRIMARY KEY DEFAULT TRUE CHECK (one),
    last_record  BIGINT NOT NULL,
    last_seal    BYTEA NOT NULL,
    swept_record BIGINT NOT NULL,
    swept_seal   BYTEA NOT NULL
);
INSERT INTO audit_chain (last_record, last_seal, swept_record, swept_seal)
VALUES (0, decode(repeat('00', 32), 'hex'), 0, decode(repeat('00', 32), 'hex'));

-- What calls cost, as far as their agents' cards say it. A task whose caller was asked something on the way has several
-- rows, and the cost is in the last one.
CREATE VIEW cost_events AS
SELECT record, org, at, caller, agent AS agent_id, verb, task AS task_id, estimated_millionths
FROM audit
WHERE phase = 'post-verb' AND outcome = 'completed';

-- The token itself is nowhere: `hash` is its SHA-256. `rights` are words with spaces between them.
CREATE TABLE tokens (
    id         TEXT COLLATE "C" NOT NULL,
    hash       TEXT NOT NULL,
    org        TEXT NOT NULL,
    project    TEXT NOT NULL,
    caller     TEXT NOT NULL,
    kind       TEXT NOT NULL,
    rights     TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    CONSTRAINT token_id PRIMARY KEY (id),
    CONSTRAINT token_hash UNIQUE (hash)
);

-- Agents' secrets, encrypted (AES-256-GCM, the name beside the text authenticated with it). `key` says which key opens a
-- row; the key itself is kept outside the database.
CREATE TABLE secrets (
    name   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    key    TEXT NOT NULL,
    text   BYTEA NOT NULL,
    set_at BIGINT NOT NULL
);

-- Who is told of calls, and how far. `secret` says where the key is, as JSON; the key itself is not here. Whoever delivers
-- stands in `holder`, until `held_until`.
CREATE TABLE webhooks (
    id              TEXT COLLATE "C" NOT NULL,
    org             TEXT NOT NULL,
    url             TEXT NOT NULL,
    phases          TEXT NOT NULL,
    secret          TEXT NOT NULL,
    allow_private   BOOLEAN NOT NULL,
    created_at      BIGINT NOT NULL,
    handled         BIGINT NOT NULL,
    delivered       BIGINT NOT NULL,
    lost            BIGINT NOT NULL,
    failures        BIGINT NOT NULL,
    next_attempt_at BIGINT,
    last_error      TEXT,
    disabled        TEXT,
    holder          TEXT,
    held_until      BIGINT,
    CONSTRAINT webhook_id PRIMARY KEY (id)
);

-- Policies that everybody who uses this store goes by. Every change is a row: the last one of a name is in force, and one without
-- a text has taken the policy away. Of each name the last 50 are kept.
CREATE TABLE policy_changes (
    version BIGINT NOT NULL PRIMARY KEY,
    name    TEXT COLLATE "C" NOT NULL,
    text    TEXT,
    at      BIGINT NOT NULL,
    by      TEXT NOT NULL
);
CREATE INDEX policy_changes_by_name ON policy_changes (name, version);

-- Who is told of a task, and how far. The task's events are what is to be told. Whoever delivers stands in `holder`, until
-- `held_until`.
CREATE TABLE push_configs (
    task            TEXT COLLATE "C" NOT NULL,
    id              TEXT COLLATE "C" NOT NULL,
    org             TEXT NOT NULL,
    project         TEXT NOT NULL,
    caller          TEXT NOT NULL,
    url             TEXT NOT NULL,
    token           TEXT,
    schemes         TEXT,
    credentials     TEXT,
    dialect         TEXT NOT NULL,
    extra           TEXT NOT NULL,
    created_at      BIGINT NOT NULL,
    told            BIGINT NOT NULL,
    failures        BIGINT NOT NULL,
    next_attempt_at BIGINT,
    last_error      TEXT,
    dead            BOOLEAN NOT NULL,
    holder          TEXT,
    held_until      BIGINT,
    PRIMARY KEY (task, id)
);
