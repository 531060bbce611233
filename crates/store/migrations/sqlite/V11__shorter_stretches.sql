-- A commit of a hundred messages touched every page of a stretch of 8192. With shorter ones it touches two or three, and the rare
-- look for a message goes through more of them.
DROP INDEX tasks_by_message;
CREATE INDEX tasks_by_message ON tasks (row / 2048, message_number) WHERE message_number IS NOT NULL;

PRAGMA user_version = 11;
