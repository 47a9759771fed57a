"""Where objects live: a SQLite history on disk, and an index and a watch cache of it in memory."""
