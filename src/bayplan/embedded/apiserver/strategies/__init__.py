"""REST strategies of kinds: defaults, initial status, allowed changes."""
