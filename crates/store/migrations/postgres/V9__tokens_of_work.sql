-- The access token that a push notification config was set with and that a run was begun with, by its id, so that both end with it in every
-- process and after a restart. A run knows how many calls led to it as well.
ALTER TABLE push_configs ADD COLUMN created_with TEXT COLLATE "C";
CREATE INDEX push_configs_by_token ON push_configs (created_with) WHERE created_with IS NOT NULL;
ALTER TABLE flow_runs ADD COLUMN token TEXT COLLATE "C";
ALTER TABLE flow_runs ADD COLUMN hops BIGINT NOT NULL DEFAULT 0;
