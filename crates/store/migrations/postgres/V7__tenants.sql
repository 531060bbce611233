-- Orgs and projects that were created by name. Others exist as well: those of tokens, agents and policies.
CREATE TABLE tenants (
    org        TEXT COLLATE "C" NOT NULL,
    project    TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    PRIMARY KEY (org, project)
);
