-- Policies that everybody who uses this store goes by. Every change is a row: the last one of a name is in force, and one without
-- a text has taken the policy away. Of each name the last 50 are kept.
CREATE TABLE policy_changes (
    version INTEGER PRIMARY KEY,
    name    TEXT NOT NULL,
    text    TEXT,
    at      INTEGER NOT NULL,
    by      TEXT NOT NULL
) STRICT;
CREATE INDEX policy_changes_by_name ON policy_changes (name, version);

PRAGMA user_version = 5;
