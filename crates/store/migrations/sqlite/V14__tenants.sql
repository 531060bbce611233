-- Orgs and projects that were created by name. Others exist as well: those of tokens, agents and policies.
CREATE TABLE tenants (
    org        TEXT NOT NULL,
    project    TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    PRIMARY KEY (org, project)
) STRICT, WITHOUT ROWID;
PRAGMA user_version = 14;
