-- Each process seals its audit records in a chain of its own, so that none waits for another's commit. `record` is still the place in the
-- whole trail: it grows with time, and a transaction that was rolled back leaves a gap. Gaps and changes are found by `number`, the place
-- in the chain, which has none.
CREATE TABLE audit_chains (
    chain       BIGINT NOT NULL PRIMARY KEY,
    last_number BIGINT NOT NULL,
    last_seal   BYTEA NOT NULL,
    -- When somebody last added to it. A process takes a chain that nobody has used for a while.
    used_at     BIGINT NOT NULL
);
INSERT INTO audit_chains (chain, last_number, last_seal, used_at)
SELECT 0, last_record, last_seal, 0 FROM audit_chain;

-- The last records that were swept from the beginning of each chain.
CREATE TABLE audit_swept (
    chain  BIGINT NOT NULL PRIMARY KEY,
    number BIGINT NOT NULL,
    seal   BYTEA NOT NULL,
    record BIGINT NOT NULL
);
INSERT INTO audit_swept (chain, number, seal, record)
SELECT 0, swept_record, swept_seal, swept_record FROM audit_chain WHERE swept_record > 0;

CREATE SEQUENCE audit_records AS BIGINT;
SELECT setval('audit_records', last_record + 1, FALSE) FROM audit_chain;

-- What was there belongs to chain 0, where both numbers are the same.
ALTER TABLE audit ADD COLUMN chain BIGINT NOT NULL DEFAULT 0;
ALTER TABLE audit ADD COLUMN number BIGINT;
UPDATE audit SET number = record;
ALTER TABLE audit ALTER COLUMN number SET NOT NULL;
ALTER TABLE audit ALTER COLUMN record SET DEFAULT nextval('audit_records');
ALTER SEQUENCE audit_records OWNED BY audit.record;

-- From time to time a record of one chain says where the others end, so that none of them can be removed as a whole.
CREATE INDEX audit_cross_links ON audit (record) WHERE phase = 'cross-link';

DROP TABLE audit_chain;

-- The oldest schema whose programs can work with this database, while nodes are updated one after the other and when an update is undone. A
-- migration that takes away or changes what the version before uses raises it.
CREATE TABLE schema_floor (
    one     BOOLEAN NOT NULL PRIMARY KEY DEFAULT TRUE CHECK (one),
    version INT NOT NULL
);
INSERT INTO schema_floor (version) VALUES (10);
