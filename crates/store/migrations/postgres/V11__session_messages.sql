-- Messages of clients in MCP sessions for whichever node holds the other end of them, and the ends of sessions (`body` is null). Numbers
-- grow in the order of the commits, so a reader that remembers one misses nothing.
CREATE TABLE session_messages (
    number  BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session TEXT COLLATE "C" NOT NULL,
    body    TEXT,
    at      BIGINT NOT NULL
);

CREATE INDEX session_messages_by_age ON session_messages (at) WHERE body IS NOT NULL;
CREATE INDEX session_ends_by_age ON session_messages (at) WHERE body IS NULL;
CREATE INDEX session_ends ON session_messages (session) WHERE body IS NULL;
