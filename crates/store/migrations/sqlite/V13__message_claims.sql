-- Which task a message begins or continues, while several processes share this file. The first claim of a key wins.
CREATE TABLE message_claims (
    key    TEXT NOT NULL PRIMARY KEY,
    task   TEXT NOT NULL,
    runner INTEGER NOT NULL,
    at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX message_claims_by_age ON message_claims (at);
PRAGMA user_version = 13;
