"""Execution of plans: scale-ups, removal of nodes, cleanup of failed instances."""
