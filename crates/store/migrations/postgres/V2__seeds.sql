-- Random texts that every process must know alike, such as the key that MCP's request states are sealed with.
CREATE TABLE seeds (
    name TEXT PRIMARY KEY,
    text TEXT NOT NULL
);
