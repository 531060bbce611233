-- Agents' secrets, encrypted (AES-256-GCM, the name beside the text authenticated with it). `key` says which key opens a
-- row; the key itself is kept outside the database.
CREATE TABLE secrets (
    name   TEXT NOT NULL PRIMARY KEY,
    key    TEXT NOT NULL,
    text   BLOB NOT NULL,
    set_at INTEGER NOT NULL
) STRICT;

PRAGMA user_version = 2;
