"""The objects of a snapshot: validated, observed and assumed, with forks that can be undone."""
