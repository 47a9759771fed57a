"""Object storage: a SQLite history on disk, with an index and a watch cache in memory."""
