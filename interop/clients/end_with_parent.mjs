// Loaded before a client: a dead parent leaves no client behind, even one that waits for an answer.

const parent = process.ppid;
setInterval(() => process.ppid === parent || process.exit(1), 500).unref();
