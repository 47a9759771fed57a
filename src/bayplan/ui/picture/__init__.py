"""The picture: rows of the page's tables, computed from a snapshot and kept as it changes."""
