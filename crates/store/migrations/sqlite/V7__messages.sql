-- Messages have names in no order: in one great index each would touch a page of its own, and a page is what a commit
-- writes. So what is looked for is a number made of org, project, caller and message, and there is a stretch of the index for
-- every 8192 tasks. Tasks that were there before have no such number; they keep the index they had, which grows no more.
ALTER TABLE tasks ADD COLUMN message_number INTEGER;

DROP INDEX tasks_by_message;
CREATE INDEX tasks_by_message ON tasks (row / 8192, message_number) WHERE message_number IS NOT NULL;
CREATE INDEX tasks_by_old_message ON tasks (org, project, caller, message)
    WHERE message IS NOT NULL AND message_number IS NULL;

PRAGMA user_version = 7;
