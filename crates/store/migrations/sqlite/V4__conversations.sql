-- Tasks of callers that keep conversations with us (A2A). Other tasks have neither context nor message, and cost none of
-- these indexes anything.
ALTER TABLE tasks ADD COLUMN context TEXT;
ALTER TABLE tasks ADD COLUMN message TEXT;
-- The process that works on it; zero is one that nobody takes over from.
ALTER TABLE tasks ADD COLUMN runner INTEGER NOT NULL DEFAULT 0;

CREATE INDEX tasks_by_context ON tasks (org, project, context, id) WHERE context IS NOT NULL;
CREATE INDEX tasks_by_change ON tasks (org, project, caller, updated_at, id) WHERE context IS NOT NULL;
CREATE INDEX tasks_by_message ON tasks (org, project, caller, message) WHERE message IS NOT NULL;

-- Processes at work. One that has not said so again by `until` is gone.
CREATE TABLE runners (
    id    INTEGER PRIMARY KEY,
    until INTEGER NOT NULL
) STRICT;

PRAGMA user_version = 4;
