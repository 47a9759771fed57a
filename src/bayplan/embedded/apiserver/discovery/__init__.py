"""Discovery: the documents by which clients learn what is served here."""
