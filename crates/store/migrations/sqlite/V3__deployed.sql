-- What stands behind a row, as JSON; nothing for a remote agent. A configured row is changed by the configuration only.
ALTER TABLE agent_cards ADD COLUMN backing TEXT;
ALTER TABLE agent_cards ADD COLUMN configured INTEGER NOT NULL DEFAULT 0;

PRAGMA user_version = 3;
