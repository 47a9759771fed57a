"""REST operations without HTTP: create, read, change, delete, watch."""
