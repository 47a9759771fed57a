"""The rows of the page's tables, computed from a snapshot and updated as it changes."""
