-- Who made a token, and the token that a console session was begun with ('' for one that somebody else has signed): a session is a row
-- here that no bearer token leads to, so ending one is revoking it. A definition knows the token that it was given with.
ALTER TABLE tokens ADD COLUMN created_by TEXT;
ALTER TABLE tokens ADD COLUMN session_of TEXT;
ALTER TABLE flow_versions ADD COLUMN token TEXT;

PRAGMA user_version = 15;
