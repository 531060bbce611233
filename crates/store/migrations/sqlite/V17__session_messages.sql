-- Messages of clients in MCP sessions for whichever process holds the other end of them, and the ends of sessions (`body` is null).
CREATE TABLE session_messages (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    body    TEXT,
    at      INTEGER NOT NULL
) STRICT;

CREATE INDEX session_messages_by_age ON session_messages (at) WHERE body IS NOT NULL;
CREATE INDEX session_ends_by_age ON session_messages (at) WHERE body IS NULL;
CREATE INDEX session_ends ON session_messages (session) WHERE body IS NULL;
PRAGMA user_version = 17;
