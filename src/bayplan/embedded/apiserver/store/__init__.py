"""Where objects live: a SQLite history on disk, and an index and a journal of it in memory."""
