-- Which task a message begins or continues, among all nodes. The first claim of a key wins.
CREATE TABLE message_claims (
    key    TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    task   TEXT COLLATE "C" NOT NULL,
    runner BIGINT NOT NULL,
    at     BIGINT NOT NULL
);

CREATE INDEX message_claims_by_age ON message_claims (at);
