-- From here on the first events of a task may stand without its arguments, which an older program could not read.
PRAGMA user_version = 12;
