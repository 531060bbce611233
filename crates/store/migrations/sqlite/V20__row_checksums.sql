-- CRC-32 of the columns that never change, for `rialto check`. Rows that an older program writes have none.
ALTER TABLE tasks ADD COLUMN checksum INTEGER;
ALTER TABLE task_events ADD COLUMN checksum INTEGER;
PRAGMA user_version = 20;
