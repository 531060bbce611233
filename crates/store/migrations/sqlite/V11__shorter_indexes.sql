-- A commit of a hundred messages touched every page of a stretch of 8192. With shorter ones it touches two or three, and the rare
-- look for a message goes through more of them.
DROP INDEX tasks_by_message;
CREATE INDEX tasks_by_message ON tasks (row / 2048, message_number) WHERE message_number IS NOT NULL;

-- The name of a conversation says enough: hardly anybody else has given the same.
DROP INDEX tasks_by_context;
CREATE INDEX tasks_by_context ON tasks (context, id) WHERE context IS NOT NULL;

PRAGMA user_version = 11;
